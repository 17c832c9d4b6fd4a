# SPDX-License-Identifier: BSD-2-Clause
# An epoch for each partition, after an outage: batches of one partition expire
# while its broker is stopped, so that nobody knows whether they are in the log.
# When it goes on, that partition starts again under epoch 1; the others, on
# other brokers, stay under epoch 0 all the time.
# limit: 180
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create expired 1:,2:,3: - min.insync.replicas=1
sender_start expired expired --threads 3 --lane-partitions 3 --rate 900 \
    --records 20000 --size 200 -X delivery.timeout.ms=4000 \
    -X request.timeout.ms=1500 -X max.block.ms=500
until_true 60 holds_some expired 600 || fail "the load does not start"
node_pause 1
sleep 6
node_go_on 1
until_true 90 node_lists 1 3 || fail "no three brokers"
sleep 4
senders_end expired
check_topic expired expired --retried
at_least "failed records" "$(sent expired failed)" 100

# epochs_of PARTITION: those in its log, in order
epochs_of() { awk -v p="expired-$1" '/^epoch/ && $2 == p { print $4 }' \
    "$T/verify.out" | xargs; }
[[ $(epochs_of 0) == "0 1"* ]] || fail "partition 0: epochs $(epochs_of 0)"
[ "$(epochs_of 1)" = 0 ] || fail "partition 1: epochs $(epochs_of 1)"
[ "$(epochs_of 2)" = 0 ] || fail "partition 2: epochs $(epochs_of 2)"
at_least "records of partition 1" "$(finding gap 1 | cut -d' ' -f4)" 2500
