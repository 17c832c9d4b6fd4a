# SPDX-License-Identifier: BSD-2-Clause
# The checker itself: a log that lacks a record, has one twice, out of order,
# or with another byte in it must not pass.
# shellcheck shell=bash disable=SC1091,SC2034
. "$KP_IT/lib/test.sh"

must topic_create checker 1 1 message.timestamp.type=LogAppendTime
send good checker --records 50 --size 10
check_topic checker good --all-acked

# denied PROBLEM OPTION FILE: verify must fail, and name this problem
denied() {
    "$BIN/verify" --journal "$T/good.journal" "$2" "$3" >"$T/denied.out" &&
        fail "$1 was not noticed"
    grep -q "^problem $1 " "$T/denied.out" ||
        fail "instead of $1: $(cat "$T/denied.out")"
}

log=$T/checker.records
sed 7d "$log" >"$T/lost"
denied lost --records "$T/lost"
sed '20{p;s/^0 [0-9]*/0 50/;H;d};${p;x}' "$log" | sed '/^$/d' >"$T/twice"
denied twice --records "$T/twice"
awk '$2 == 30 { a = $0; next } { print } $2 == 31 { print a }' "$log" |
    awk '{ $2 = NR - 1; print }' >"$T/order"
denied order --records "$T/order"
denied place --records "$T/order"
awk '$2 == 11 { $5 = "abc" } { print }' "$log" >"$T/changed"
denied stranger --records "$T/changed"
awk '$2 == 12 { $3 = sprintf("%.0f", $3 + 1) } { print }' "$log" >"$T/stamp"
denied timestamp --records "$T/stamp"
awk '$2 == 13 { $7 = 3 } { print }' "$log" >"$T/key"
denied partition-of-key --records "$T/key"
LC_ALL=C sed 's/good:0:9:/good:0:X:/' "$T/checker.kcat" >"$T/byte"
denied stranger --kcat "$T/byte"
sed 's/baseSequence: 0 /baseSequence: 1 /' "$T/checker.batches" >"$T/gap"
denied sequence-gap --batches "$T/gap"
sed 's/isvalid: true/isvalid: false/' "$T/checker.batches" >"$T/invalid"
denied invalid-batch --batches "$T/invalid"
