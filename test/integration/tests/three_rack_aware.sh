# SPDX-License-Identifier: BSD-2-Clause
# Brokers in three racks: with partitioner.rack.aware unkeyed records go to
# leaders in the client's rack, as long as there are any; when its broker is dead
# they go to the others.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create racks 1:2:3,2:3:1,3:1:2 -
rack=(--form no-key -X client.rack=rack-2 -X partitioner.rack.aware=true
    -X batch.size=2000 -X metadata.max.age.ms=500)

# in_partition P: the records it has
in_partition() { admin offsets racks | awk -v p="$1" '$1 == p { print $2 }'; }

# All of them, though the first ones are sent the moment the topic is known.
send own racks --threads 2 --records 2000 "${rack[@]}"
until_true 30 holds racks 4000 || fail "$(admin offsets racks)"
at_least "records in our rack" "$(in_partition 1)" 4000

# Without the switch the rack alone changes nothing.
send all racks --threads 2 --records 1000 --form no-key -X batch.size=2000 \
    -X client.rack=rack-2
until_true 30 holds racks 6000 || fail "$(admin offsets racks)"
for p in 0 2; do
    at_least "records in partition $p" \
        "$(in_partition $p)" 200
done

# Nobody leads in our rack any more: any partition will do.
must node_kill 2
until_true 30 topic_led racks || fail "no leaders"
send moved racks --threads 2 --records 1000 "${rack[@]}"
check_topic racks "own all moved" --retried --all-acked
