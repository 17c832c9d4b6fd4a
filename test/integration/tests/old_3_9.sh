# SPDX-License-Identifier: BSD-2-Clause
# Kafka 3.9.1: a topic made by the first send, and records each way of acks.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"
. "$KP_IT/lib/old.sh"

old_takes 3.9.1 -X compression.type=zstd
