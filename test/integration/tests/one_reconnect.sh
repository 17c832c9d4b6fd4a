# SPDX-License-Identifier: BSD-2-Clause
# The producer that reconnects for ever.  A broker stops answering, so that the
# buffers fill up; then it dies and its port is closed, and the buffers stay
# full; then it comes back.  With batches and without, blocking and KP_NOWAIT,
# futures, callbacks and queues: every report is in time and true, no send
# waits past max.block.ms, and afterwards all go on.
# limit: 240
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create again 4 1
names=

# one NAME OPTION...: a sender that fills its buffer in about a second
one() {
    names="$names $1"
    sender_start "$1" again --rate 400 --records 60000 --size 1000 \
        -X buffer.memory=400000 -X delivery.timeout.ms=4000 \
        -X request.timeout.ms=2000 -X max.block.ms=1500 "${@:2}"
}
for batch in 16384 0; do
    for reports in future callback queue; do
        one "$reports-$batch-wait" --reports $reports -X batch.size=$batch
        one "$reports-$batch-nowait" --reports $reports -X batch.size=$batch \
            --nowait --refused-pause-ms 1
    done
done

# in_log FILE: "NAME SEQUENCE", the last of each sender.  From the segments: a
# consumer might chase the end of a log that grows.
in_log() {
    cat "$CLUSTER"/n1/data/again-*/*.log |
        grep -a -o '[a-z]*-[0-9]*-[a-z]*:0:[0-9]*:' |
        awk -F: '$3 > last[$1] { last[$1] = $3 }
            END { for (n in last) print n, last[n] }' | sort >"$1"
}

all_in_log() {
    in_log "$T/first"
    [ "$(wc -l <"$T/first")" = 12 ]
}

# Each sender got another hundred records into the log since $T/before.
all_go_on() {
    in_log "$T/after"
    join "$T/before" "$T/after" |
        awk '$3 >= $2 + 100 { n++ } END { exit n != 12 }'
}

until_true 60 holds_some again 2000 || fail "the load does not start"
until_true 60 all_in_log || fail "not all have started: $(cat "$T/first")"
node_pause 1
sleep 2.5
must node_kill 1
sleep 5
node_start 1
until_true 90 node_lists 1 1 || fail "the broker did not come back"
in_log "$T/before"
at_least "senders in the log" "$(wc -l <"$T/before")" 12
until_true 60 all_go_on || fail "$(join "$T/before" "$T/after")"
# shellcheck disable=SC2086
senders_end $names

check_topic again "$names" --retried
for name in $names; do
    grep -q 'refused KP_EBUFFER' "$T/$name.out" ||
        fail "$name: its buffer was never full"
    at_least "$name: failed records" "$(sent "$name" failed)" 1
done
