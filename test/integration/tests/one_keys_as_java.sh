# SPDX-License-Identifier: BSD-2-Clause
# Keyed records go where Kafka's console producer sends the same keys.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create ours 7 1
must topic_create javas 7 1
send keys ours --records 2000
for i in $(seq 0 1999); do echo "keys:0:$i|x"; done |
    java_tool org.apache.kafka.tools.ConsoleProducer \
        --bootstrap-server "$(bootstrap)" --topic javas \
        --reader-property parse.key=true \
        --reader-property key.separator='|' || fail "console producer"
for topic in ours javas; do
    timeout -s KILL 30 kcat -b "$(bootstrap)" -t $topic -C -e -q \
        -f '%k %p\n' | sort >"$T/$topic"
done
at_least "keys" "$(wc -l <"$T/javas")" 2000
must diff "$T/ours" "$T/javas"
