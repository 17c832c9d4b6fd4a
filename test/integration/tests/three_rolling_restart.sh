# SPDX-License-Identifier: BSD-2-Clause
# Every broker is restarted in turn, as in an upgrade.
# limit: 300
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

event() {
    local n
    for n in 1 2 3; do
        must node_stop "$n"
        node_start "$n"
        until_true 90 in_sync rolling 3 || fail "no full ISR"
    done
}

must topic_create rolling 6 3
under_load rolling event
check_topic rolling "$LOADS" --retried --all-acked
