# SPDX-License-Identifier: BSD-2-Clause
# What a topic's settings forbid is refused with the broker's own code, stored
# NO, and is not in the log; what they allow in the same batches is.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create compacted 1 1 cleanup.policy=compact
send keyless compacted --records 20 --form no-key
grep -q 'failed INVALID_RECORD 20' "$T/keyless.out" || fail "another error"
at_least "stored NO" "$(sent keyless no)" 20
send keyed compacted --records 20
check_topic compacted "keyless keyed"

must topic_create dated 1 1 message.timestamp.before.max.ms=1 \
    message.timestamp.after.max.ms=1
send old dated --records 1 --form all-null
grep -q 'failed INVALID_TIMESTAMP 1' "$T/old.out" || fail "another error"
at_least "stored NO" "$(sent old no)" 1
check_topic dated old

sender_start unknown missing --records 3 --status -X max.block.ms=4000
sender_wait unknown
at_most "taken for a topic that is not there" "$(sent unknown taken)" 0
grep -q '^refused .*UNKNOWN_TOPIC_OR_PARTITION' "$T/unknown.out" ||
    fail "no reason was given"
