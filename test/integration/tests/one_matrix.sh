# SPDX-License-Identifier: BSD-2-Clause
# Every combination of acks, codec, partitioner (explicit, keyed, sticky, round
# robin, a function, rack-aware), key and value (both, either or none of them
# null, empty, binary) and headers (none, plain, odd ones) with 1,000 records
# each: 1,620,000 records, read back by kcat, by Kafka's own classes (which also
# say where Java would have put each key) and by Kafka's log dump.
# limit: 400
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create matrix 6 1 retention.ms=-1
must timeout 200 "$BIN/kp_matrix" "$(bootstrap)" matrix 1000 \
    "$T/matrix.journal" >"$T/matrix.out"
cat "$T/matrix.out"
# acks=0 may still be on its way when the producer is closed
until_true 30 holds matrix 1620000 || fail "$(admin offsets matrix)"
READ_LIMIT_S=150
check_topic matrix matrix --all-acked --all-found
