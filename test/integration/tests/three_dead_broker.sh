# SPDX-License-Identifier: BSD-2-Clause
# A dead broker beside two live ones: it is stopped, its partition's records
# fill what they may of the buffer, and the other partitions go on at full
# speed.  Blocking and with KP_NOWAIT.
# limit: 180
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create dead 1:,2:,3: - min.insync.replicas=1
# A megabyte a second and partition.  That a broker is dead is known after two
# request time-outs at most; until then its partition may take what it can.
for mode in wait nowait; do
    option=
    [ $mode = nowait ] && option="--nowait --refused-pause-ms 1"
    # shellcheck disable=SC2086
    sender_start $mode dead --threads 3 --lane-partitions 3 --rate 1500 \
        --records 60000 --size 2000 $option -X buffer.memory=6000000 \
        -X max.block.ms=1000 -X delivery.timeout.ms=20000 \
        -X request.timeout.ms=1000
done
until_true 60 holds_some dead 3000 || fail "the load does not start"
node_pause 1
sleep 9
node_go_on 1
until_true 90 node_lists 1 3 || fail "no three brokers"
sleep 3
senders_end wait nowait
check_topic dead "wait nowait" --retried
for mode in wait nowait; do
    compare --journal "$T/$mode.journal" --kcat "$T/dead.kcat" \
        --strangers-ok --retried
    grep -q 'refused KP_EBUFFER' "$T/$mode.out" ||
        fail "$mode: the dead broker's share was never full"
    at_least "$mode: ms without the dead broker" \
        "$(finding gap 0 | cut -d' ' -f3)" 7000
    for p in 1 2; do
        at_most "$mode: longest gap of partition $p in ms" \
            "$(finding gap $p | cut -d' ' -f3)" 5000
        at_least "$mode: records of partition $p" \
            "$(finding gap $p | cut -d' ' -f4)" 4000
    done
done
