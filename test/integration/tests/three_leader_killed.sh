# SPDX-License-Identifier: BSD-2-Clause
# The leader is killed with kill -9 under load and comes back later.
# limit: 180
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

event() {
    until_true 60 in_sync killed 3 || fail "no full ISR before it"
    victim=$(leader_of killed 0)
    must node_kill "$victim"
    sleep 5
    node_start "$victim"
    until_true 30 led_by_another killed 0 "$victim" ||
        fail "partition 0 has no other leader"
    until_true 90 in_sync killed 3 || fail "no full ISR"
}

must topic_create killed 6 3
under_load killed event
check_topic killed "$LOADS" --retried --all-acked
at_least "interruption in ms" "$(interruption_ms)" 300
