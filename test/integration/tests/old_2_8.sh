# SPDX-License-Identifier: BSD-2-Clause
# Kafka 2.8.2: a topic made by the first send, and records each way of acks.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"
. "$KP_IT/lib/old.sh"

old_takes 2.8.2 -X compression.type=zstd
