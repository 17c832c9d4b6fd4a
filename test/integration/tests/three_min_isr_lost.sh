# SPDX-License-Identifier: BSD-2-Clause
# Two of three brokers die, so that min.insync.replicas is lost.  A patient
# producer waits and delivers; an impatient one is told KP_ETIMEDOUT with the
# cause, and its reports are true.
# limit: 180
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

event() {
    must node_kill 2
    must node_kill 3
    sleep 6
    node_start 2
    node_start 3
    until_true 90 in_sync minimum 3 || fail "no full ISR"
    sleep 2
}

must topic_create minimum 1:2:3,1:3:2 -
sender_start hasty minimum --threads 2 --rate 400 --records 20000 \
    -X delivery.timeout.ms=2500 -X request.timeout.ms=1000
under_load minimum event
senders_end hasty
at_least "records of the hasty one that failed" "$(sent hasty failed)" 100
for name in $LOADS; do
    at_most "$name: failed" "$(sent "$name" failed)" 0
    at_most "$name: refused" \
        $(($(sent "$name" calls) - $(sent "$name" taken))) 0
done
check_topic minimum "$LOADS hasty" --retried
