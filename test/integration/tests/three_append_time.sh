# SPDX-License-Identifier: BSD-2-Clause
# LogAppendTime: reports carry the broker's time, which is the one in the log.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create broker-time 3 3 message.timestamp.type=LogAppendTime
before_ms=$(date +%s%3N)
for codec in none gzip zstd; do
    send time-$codec broker-time --records 2000 -X compression.type=$codec
done
after_ms=$(date +%s%3N)
check_topic broker-time "time-none time-gzip time-zstd" --all-acked \
    --other-stamps
awk -v low="$before_ms" -v high="$after_ms" '$3 < low || $3 > high { bad = 1 }
    END { exit bad }' "$T/broker-time.records" || fail "not the broker's time"
