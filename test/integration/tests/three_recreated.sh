# SPDX-License-Identifier: BSD-2-Clause
# The topic is deleted and made anew under load: records go on into the new
# one, and what was acknowledged before is in the old one's files, which Kafka
# keeps for some minutes.  Replication factor 1, so that each log is there once.
# A batch that reached the old topic as it went may be in both, but in neither
# twice.
# limit: 180
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

event() {
    must admin delete anew
    sleep 1
    must topic_create anew 1:,2:,3: -
    sleep 4
}

# files PATTERN: PARTITION:FILE of each segment of that generation
files() {
    local file p
    # shellcheck disable=SC2231
    for file in "$CLUSTER"/n*/data/$1/*.log; do
        p=$(basename "$(dirname "$file")")
        p=${p#anew-}
        echo "${p%%.*}:$file"
    done
}

must topic_create anew 1:,2:,3: -
under_load anew event
# shellcheck disable=SC2046
java_tool KpLog 3 $(files 'anew-*-delete') >"$T/old.records" || fail KpLog
# shellcheck disable=SC2046
java_tool KpLog 3 $(files 'anew-[0-9]') >"$T/new.records" || fail KpLog
must read_batches anew "$T/anew.batches"
# shellcheck disable=SC2046,SC2086
compare $(journals $LOADS) --records "$T/old.records" \
    --records "$T/new.records" --batches "$T/anew.batches" --any-start --retried
at_least "records in the old topic" "$(wc -l <"$T/old.records")" 1500
at_least "records in the new topic" "$(wc -l <"$T/new.records")" 500
for name in $LOADS; do
    at_most "$name: failed" "$(sent "$name" failed)" 0
done
