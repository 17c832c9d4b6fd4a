# SPDX-License-Identifier: BSD-2-Clause
# The leader is killed with kill -9 under load and comes back later.
# limit: 180
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

event() {
    victim=$(leader_of killed 0)
    must node_kill "$victim"
    sleep 4
    node_start "$victim"
    until_true 90 in_sync killed 3 || fail "no full ISR"
}

must topic_create killed 6 3
under_load killed event
check_topic killed "$LOADS" --retried --all-acked
at_least "interruption in ms" "$(finding gap 0 | cut -d' ' -f3)" 300
