# SPDX-License-Identifier: BSD-2-Clause
# The leader is stopped, so that its socket stays open and nothing answers,
# and continued after its partitions have moved.
# limit: 180
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

event() {
    until_true 60 in_sync paused 3 || fail "no full ISR before it"
    victim=$(leader_of paused 0)
    node_pause "$victim"
    sleep 5
    node_go_on "$victim"
    until_true 30 led_by_another paused 0 "$victim" ||
        fail "partition 0 has no other leader"
    until_true 90 in_sync paused 3 || fail "no full ISR"
}

must topic_create paused 6 3
under_load paused event
check_topic paused "$LOADS" --retried --all-acked
at_least "interruption in ms" "$(interruption_ms)" 300
