# SPDX-License-Identifier: BSD-2-Clause
# The preferred leader moves round, nine times, with all brokers in health.
# limit: 180
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

event() {
    local n p
    for n in 1 2 3 1 2 3 1 2 3; do
        for p in 0 1 2; do must admin leader moved $p $n; done
        until_true 10 led_by moved 0 $n || fail "leader of 0 is not $n"
        sleep 0.2
    done
}

must topic_create moved 3 3
under_load moved event
check_topic moved "$LOADS" --retried --all-acked
