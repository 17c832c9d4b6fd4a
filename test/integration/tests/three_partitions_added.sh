# SPDX-License-Identifier: BSD-2-Clause
# Partitions are added under load: unkeyed records find them, a send to one
# that is not there yet waits for it, and nothing is lost.
# limit: 180
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create more 3 3
event() {
    # asks for the partition that does not exist yet
    sender_start early more --records 10 --partition 8 -X max.block.ms=60000
    sleep 1
    sender_running early || fail "a send to partition 8 did not wait"
    must admin partitions more 9
    until_true 90 in_sync more 3 || fail "no full ISR"
    sender_wait early
    sleep 3
}
sender_start refresh more --threads 2 --rate 2000 --records 60000 \
    --form no-key -X metadata.max.age.ms=500 -X batch.size=1000
under_load more event
senders_end refresh
KEY_PARTITIONS=0
check_topic more "$LOADS early refresh" --retried --all-acked
for p in 3 4 5 6 7 8; do
    at_least "records in partition $p" \
        "$(finding gap $p | cut -d' ' -f4)" 20
done
