# SPDX-License-Identifier: BSD-2-Clause
# Kafka 0.11.0.3: a topic made by the first send, and records each way of acks.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"
. "$KP_IT/lib/old.sh"

old_takes 0.11.0.3 -X compression.type=snappy
