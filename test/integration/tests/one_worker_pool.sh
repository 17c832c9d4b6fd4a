# SPDX-License-Identifier: BSD-2-Clause
# 1,000 threads share a producer; each sends a record and waits for its report,
# ten times: the example of a worker pool, as it stands in the documentation.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create pool 6 1
must timeout 50 "$KP_BUILD/docs/examples/worker_pool" "$(bootstrap)" pool \
    1000 10
until_true 30 holds pool 10000 || fail "$(admin offsets pool)"
timeout -s KILL 30 kcat -b "$(bootstrap)" -t pool -C -e -q -f '%s\n' |
    sort -u >"$T/values"
at_least "different records" "$(wc -l <"$T/values")" 10000
