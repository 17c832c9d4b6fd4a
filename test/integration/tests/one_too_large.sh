# SPDX-License-Identifier: BSD-2-Clause
# The topic takes smaller batches than the producer makes: they are split, and
# every record arrives, in order and once.  A record that is too large by
# itself is refused and not stored, and its neighbours are.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create large 2 1 max.message.bytes=20000
send split large --threads 2 --records 4000 --size 100 \
    -X batch.size=200000 -X linger.ms=20
check_topic large split --all-acked

send one large --records 200 --partitions 2 --size 100 \
    --large-at 100 --large-size 30000 -X linger.ms=50
at_most "refused records" "$(sent one failed)" 1
at_least "refused records" "$(sent one no)" 1
grep -q 'failed MESSAGE_TOO_LARGE 1' "$T/one.out" || fail "another error"
check_topic large "split one"
