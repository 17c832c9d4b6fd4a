# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# lib/test.sh - what every test starts with.  `run` sets KP_IT (this folder),
# KP_KAFKA, BIN (programs), CLUSTER and T (a folder of this test's own).
# A test fails by exiting with another status than 0.
set -u -o pipefail
# shellcheck disable=SC1091
. "$KP_IT/lib/versions.sh"
# shellcheck disable=SC1091
. "$KP_IT/lib/kafka.sh"

KIND=$(cat "$CLUSTER/kind" 2>/dev/null)
declare -A SENDER
TOPICS=()

fail() {
    echo "FAIL: $*"
    exit 1
}

# must COMMAND...: it has to succeed
must() { "$@" || fail "$* (status $?)"; }

# Senders that a failed test left behind; and topics that a good one needs no
# longer, for a broker that starts again looks at all it has.
end_test() {
    local status=$? name
    end_senders
    [ $status -eq 0 ] || return
    for name in "${TOPICS[@]}"; do admin delete "$name" 2>/dev/null; done
}
end_senders() {
    local name
    for name in "${!SENDER[@]}"; do
        kill -9 "${SENDER[$name]}" 2>/dev/null
    done
}
trap end_test EXIT

# -- Sending --------------------------------------------------------------

# sender_start NAME TOPIC OPTION...: kp_sender, into $T/NAME.journal
sender_start() {
    local name=$1 topic=$2
    shift 2
    "$BIN/kp_sender" --bootstrap "${BOOTSTRAP:-$(bootstrap)}" \
        --topic "$topic" --run "$name" --journal "$T/$name.journal" "$@" \
        >"$T/$name.out" 2>"$T/$name.err" &
    SENDER[$name]=$!
}

# senders_end NAME...: let them send no more, as for Ctrl-C; wait for all
senders_end() {
    local name
    for name in "$@"; do kill -TERM "${SENDER[$name]}" 2>/dev/null; done
    for name in "$@"; do sender_wait "$name"; done
}

sender_wait() {
    local status
    wait "${SENDER[$1]}"
    status=$?
    unset "SENDER[$1]"
    sed "s/^/$1: /" "$T/$1.out"
    if [ $status -ne 0 ]; then
        head -5 "$T/$1.err"
        fail "kp_sender $1: status $status"
    fi
}

sender_running() { kill -0 "${SENDER[$1]}" 2>/dev/null; }

# send NAME TOPIC OPTION...: from start to end
send() {
    sender_start "$@"
    sender_wait "$1"
}

# sent NAME WORD: the number after WORD in its line of counts
sent() {
    awk -v w="$2" '/^calls/ { for (i = 1; i < NF; i += 2) if ($i == w)
        print $(i + 1) }' "$T/$1.out"
}

# under_load TOPIC COMMAND...: run it while four senders of different habits
# are at work; leaves their journals, and their names in LOADS
LOADS="callback future queue impatient"
under_load() {
    local topic=$1
    shift
    local common=(--threads 2 --rate 600 --records 60000)
    sender_start callback "$topic" "${common[@]}" --keys 500
    sender_start future "$topic" "${common[@]}" --reports future \
        -X compression.type=lz4
    sender_start queue "$topic" "${common[@]}" --reports queue --form no-key \
        -X linger.ms=20 -X compression.type=zstd
    sender_start impatient "$topic" "${common[@]}" --form headers \
        -X linger.ms=0 -X request.timeout.ms=2000 -X batch.size=2000
    until_true 60 holds_some "$topic" 1500 || fail "the load does not start"
    "$@"
    sleep 1
    # shellcheck disable=SC2086
    senders_end $LOADS
}

# -- Comparing ------------------------------------------------------------

# compare OPTION... : runs verify, its findings into $T/verify.out
compare() {
    if ! "$BIN/verify" "$@" >"$T/verify.out" 2>&1; then
        cat "$T/verify.out"
        fail "what was reported is not what is in the log"
    fi
    cat "$T/verify.out"
}

# journals NAME...: the options that name their files
journals() { printf -- "--journal $T/%s.journal " "$@"; }

# check_topic TOPIC "NAME..." OPTION...: kcat, Kafka's classes and Kafka's dump
# agree with the journals of these senders
check_topic() {
    local topic=$1 names=$2
    shift 2
    must read_kcat "$topic" "$T/$topic.kcat"
    must read_log "$topic" "$T/$topic.records"
    must read_batches "$topic" "$T/$topic.batches"
    # shellcheck disable=SC2046,SC2086
    compare $(journals $names) --kcat "$T/$topic.kcat" \
        --records "$T/$topic.records" --batches "$T/$topic.batches" "$@"
}

# holds TOPIC COUNT: so many records are readable
holds() {
    [ "$(admin offsets "$1" | awk '{ n += $2 } END { print n + 0 }')" = "$2" ]
}

# holds_some TOPIC COUNT: at least so many are
holds_some() {
    [ "$(admin offsets "$1" | awk '{ n += $2 } END { print n + 0 }')" -ge "$2" ]
}

# finding WORD...: the first line of verify that starts with these words
finding() { grep -m1 "^$* " "$T/verify.out"; }

# The longest that any partition got no acknowledgement, in ms: the one that a
# broker led, or all that it was in sync with.
interruption_ms() {
    awk '/^gap / && $3 > most { most = $3 } END { print most + 0 }' \
        "$T/verify.out"
}

# at_most NAME VALUE LIMIT, at_least NAME VALUE LIMIT
at_most() {
    awk -v v="$2" -v l="$3" 'BEGIN { exit !(v != "" && v <= l) }' ||
        fail "$1 is '$2', and may be $3"
}
at_least() {
    awk -v v="$2" -v l="$3" 'BEGIN { exit !(v != "" && v >= l) }' ||
        fail "$1 is '$2', and must be $3"
}

[ -p "$CLUSTER/admin/in" ] && admin_open
