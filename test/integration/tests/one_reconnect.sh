# SPDX-License-Identifier: BSD-2-Clause
# The producer that reconnects for ever.  A broker stops answering, so that the
# buffers fill up; then it dies and its port is closed, and the buffers stay
# full; then it comes back.  With batches and without, blocking and KP_NOWAIT,
# futures, callbacks and queues: every report is in time and true, no send
# waits past max.block.ms, and afterwards all go on.
# limit: 120
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create again 4 1
names=
margin_ms=1500

# one NAME OPTION...: a sender that fills its buffer in about a second
one() {
    names="$names $1"
    sender_start "$1" again --rate 700 --records 60000 --size 1000 \
        -X buffer.memory=600000 -X delivery.timeout.ms=4000 \
        -X request.timeout.ms=2000 -X max.block.ms=1500 "${@:2}"
}
for batch in 16384 0; do
    for reports in future callback queue; do
        one "$reports-$batch-wait" --reports $reports -X batch.size=$batch
        one "$reports-$batch-nowait" --reports $reports -X batch.size=$batch \
            --nowait --refused-pause-ms 1
    done
done

sleep 2
node_pause 1
sleep 2
must node_kill 1
sleep 5
node_start 1
until_true 30 node_lists 1 1 || fail "the broker did not come back"
sleep 4
# shellcheck disable=SC2086
senders_end $names

check_topic again "$names" --retried --margin-ms $margin_ms
for name in $names; do
    grep -q 'refused BUFFER\|refused KP_EBUFFER' "$T/$name.out" ||
        fail "$name: its buffer was never full"
    at_least "$name: failed records" "$(sent "$name" failed)" 1
    last=$(grep -a -o "$name:0:[0-9]*:" "$T/again.kcat" | cut -d: -f3 |
        sort -n | tail -1)
    at_least "$name: last record in the log" "$last" \
        $(($(sent "$name" calls) - 700))
done
