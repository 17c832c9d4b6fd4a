# SPDX-License-Identifier: BSD-2-Clause
# Five million small records from eight threads: kcat, Kafka's own classes and
# Kafka's log dump find each once, in order, byte for byte, and the sequences
# have no gap.
# limit: 400
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create million 6 1
send million million --threads 8 --records 625000 --size 20 --keys 1000
until_true 30 holds million 5000000 || fail "$(admin offsets million)"
READ_LIMIT_S=150
must read_kcat million "$T/million.kcat"
must read_log million "$T/million.records"
must read_batches million "$T/million.batches"
compare --journal "$T/million.journal" --kcat "$T/million.kcat" \
    --records "$T/million.records" --batches "$T/million.batches" --all-acked
at_least "kcat's records" "$(finding kcat | cut -d' ' -f2)" 5000000
at_least "Kafka's records" "$(finding log | cut -d' ' -f2)" 5000000
at_least "the dump's records" "$(finding batches | cut -d' ' -f2)" 5000000
