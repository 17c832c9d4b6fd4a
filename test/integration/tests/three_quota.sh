# SPDX-License-Identifier: BSD-2-Clause
# A byte quota: the broker asks for pauses and stops reading.  The producer
# keeps them: everything is delivered at the quota's pace, with no request
# timing out, though the time-out is shorter than the whole.
# limit: 180
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create throttled 1 3
must admin quota slow producer_byte_rate=150000
send slow throttled --records 3000 --size 1000 --form binary \
    -X client.id=slow -X request.timeout.ms=8000 -X max.block.ms=60000
must admin quota slow producer_byte_rate=
seconds=$(awk '/^seconds/ { print $2 }' "$T/slow.out")
at_least "seconds under the quota" "$seconds" 4
check_topic throttled slow --all-acked

must admin quota pauses request_percentage=0.5
send pauses throttled --records 300 --rate 100 --size 100 \
    -X client.id=pauses -X linger.ms=0 -X request.timeout.ms=8000
must admin quota pauses request_percentage=
check_topic throttled "slow pauses" --all-acked
