# SPDX-License-Identifier: BSD-2-Clause
# Kafka 0.9 does not answer ApiVersions and leaves the connection open: after
# request.timeout.ms kp_status says so.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"
. "$KP_IT/lib/old.sh"

old_start 0.9.0.1
send old t --records 1 --status -X request.timeout.ms=2000 \
    -X max.block.ms=6000 -X delivery.timeout.ms=8000
at_most "taken" "$(sent old taken)" 0
at_least "seconds" "$(awk '/^seconds/ { print $2 }' "$T/old.out")" 1.9
at_most "seconds" "$(awk '/^seconds/ { print $2 }' "$T/old.out")" 15
grep -q '^refused .*ApiVersions' "$T/old.out" ||
    fail "ApiVersions is not named"
