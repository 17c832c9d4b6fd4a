# SPDX-License-Identifier: BSD-2-Clause
# An epoch for each partition: a refused record costs its partition its
# numbers, so that one starts again at sequence 0 under epoch 1, while the
# other goes on under epoch 0 without noticing.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create epoch 2 1 max.message.bytes=3000
send epoch epoch --records 3000 --rate 2000 --partitions 2 --size 50 \
    --large-at 1000 --large-size 5000 -X batch.size=1000
at_most "failed records" "$(sent epoch failed)" 1
at_least "acknowledged records" "$(sent epoch acked)" 2999
check_topic epoch epoch
[ "$(grep '^epoch epoch-0 ' "$T/verify.out" | cut -d' ' -f4 | xargs)" = "0 1" ] ||
    fail "partition 0 is not at epoch 1 after epoch 0"
[ "$(grep '^epoch epoch-1 ' "$T/verify.out" | cut -d' ' -f4 | xargs)" = "0" ] ||
    fail "partition 1 did not stay at epoch 0"
[ "$(cut -d' ' -f3 <(grep '^epoch' "$T/verify.out") | sort -u | wc -l)" = 1 ] ||
    fail "the producer id changed"
