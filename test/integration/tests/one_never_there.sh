# SPDX-License-Identifier: BSD-2-Clause
# A producer whose broker never answers: connection refused, for ever.  Sends
# fail in max.block.ms, KP_NOWAIT at once, kp_status says why, and trying again
# costs next to no processor time.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

BOOTSTRAP=$HOST:19150
sender_start waits t --records 3 --status -X max.block.ms=1500
sender_start nowait t --records 60000 --nowait --refused-pause-ms 10 --status
began=$EPOCHREALTIME
sleep 4
ticks=$(awk -v began="$began" -v now="$EPOCHREALTIME" \
    '{ print ($14 + $15) * 4 / (now - began) }' \
    "/proc/${SENDER[nowait]}/stat")
at_most "processor time of 4 s in 1/100 s" "$ticks" 60
sender_wait waits
senders_end nowait
compare --journal "$T/waits.journal" --journal "$T/nowait.journal"
for name in waits nowait; do
    at_most "$name: taken" "$(sent $name taken)" 0
    grep -q "^refused .*$HOST:19150" "$T/$name.out" ||
        fail "$name: kp_status does not name the broker"
done
at_least "ms in a send" "$(finding blocked-ms | cut -d' ' -f3)" 1400
