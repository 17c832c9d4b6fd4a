# SPDX-License-Identifier: BSD-2-Clause
# Kafka 0.10.2 knows no record batch that we write: refused at once, long before
# max.block.ms, in words that name its versions of Produce and ours.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"
. "$KP_IT/lib/old.sh"

old_start 0.10.2.2
send old t --records 1 --status -X max.block.ms=20000
at_most "taken" "$(sent old taken)" 0
at_most "seconds" "$(awk '/^seconds/ { print $2 }' "$T/old.out")" 15
grep -q '^refused .*Produce' "$T/old.out" || fail "Produce is not named"
grep -Eq '0(-| to )2\b' "$T/old.out" || fail "its versions are not named"
grep -Eq '3(-| to )13\b' "$T/old.out" || fail "our versions are not named"
