# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# lib/kafka.sh - brokers of the newest Kafka: one node, or a controller and
# three brokers.  Needs KP_KAFKA (jars) and CLUSTER (folder of this cluster).
#
# Node N listens on 1910N, the controller on 1911N.  Every process started
# leaves its id in $CLUSTER/nN/pid, so that any script can stop it.

HOST=127.0.0.1
JARS=$KP_KAFKA/$KP_KAFKA_VERSION/libs
CP=$(printf '%s:' "$JARS"/*.jar)$KP_KAFKA/helpers/helpers.jar
JAVA_OPTIONS="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xlog:disable
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn"

# until_true SECONDS COMMAND...: try again until it succeeds
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}

# java_tool CLASS ARGUMENT...: one of Kafka's command-line tools
java_tool() {
    # shellcheck disable=SC2086
    java -Xmx512m $JAVA_OPTIONS -cp "$CP" "$@"
}

# -- Nodes ----------------------------------------------------------------

node_address() { echo "$HOST:1910$1"; }
node_pid() { cat "$CLUSTER/n$1/pid" 2>/dev/null; }
node_alive() { kill -0 "$(node_pid "$1")" 2>/dev/null; }

# What all nodes have in common.  Sessions are short, so that a dead broker is
# noticed in 2.5 seconds, but not so short that one that gets no processor for a
# while is taken for dead; min.insync.replicas has to stand at the controller.
common_properties() {
    cat <<P
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
controller.listener.names=CONTROLLER
default.replication.factor=$1
min.insync.replicas=$2
offsets.topic.replication.factor=$1
offsets.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2500
broker.heartbeat.interval.ms=200
auto.create.topics.enable=false
log.initial.task.delay.ms=500
P
    # What a test looks for in the files of a topic that is gone stays until then.
    [ "$1" = 1 ] || echo log.segment.delete.delay.ms=300000
}

# node_write NODE ROLES CONTROLLER LISTENERS REPLICAS MINIMUM
node_write() {
    local dir=$CLUSTER/n$1
    mkdir -p "$dir"
    {
        common_properties "$5" "$6"
        echo "node.id=$1"
        echo "broker.rack=rack-$1"
        echo "process.roles=$2"
        echo "controller.quorum.bootstrap.servers=$3"
        echo "listeners=$4"
        echo "log.dirs=$dir/data"
        [ "$2" = controller ] ||
            echo "inter.broker.listener.name=PLAINTEXT"
    } >"$dir/server.properties"
}

# node_format NODE OPTION
node_format() {
    local dir=$CLUSTER/n$1
    rm -rf "$dir/data"
    java_tool kafka.tools.StorageTool format -t kpkpkpkpkpkpkpkpkpkpkQ \
        -c "$dir/server.properties" "$2" >"$dir/format.txt" 2>&1 ||
        { tail -3 "$dir/format.txt" >&2; return 1; }
}

# A broker is its own session: what ends a test must not end it.  It must not
# hold our ends of the helper's pipes either.
node_start() {
    local dir=$CLUSTER/n$1
    (
        [ -n "${ADMIN_IN:-}" ] && exec {ADMIN_IN}>&- {ADMIN_OUT}>&-
        # shellcheck disable=SC2086
        exec setsid java -Xms64m -Xmx${NODE_HEAP_MB:-256}m $JAVA_OPTIONS \
            -cp "$CP" kafka.Kafka "$dir/server.properties"
    ) >>"$dir/log.txt" 2>&1 </dev/null &
    echo $! >"$dir/pid"
    disown
}

# node_lists NODE COUNT: it answers Metadata, with so many live brokers
node_lists() {
    [ "$(timeout -s KILL 3 kcat -b "$(node_address "$1")" -L -m 2 2>/dev/null |
        awk '/ brokers:/ { print $1 }')" = "$2" ]
}

node_kill() { kill -9 "$(node_pid "$1")" && until_true 30 node_gone "$1"; }
node_gone() { ! node_alive "$1"; }
node_pause() { kill -STOP "$(node_pid "$1")"; }
node_go_on() { kill -CONT "$(node_pid "$1")"; }

# A controlled shutdown: leaders move away first.
node_stop() {
    kill "$(node_pid "$1")" && until_true 40 node_gone "$1"
}

# -- Clusters -------------------------------------------------------------

cluster_nodes() {
    case $KIND in one) echo 1 ;; three) echo 0 1 2 3 ;; esac
}
cluster_brokers() { case $KIND in one) echo 1 ;; three) echo 1 2 3 ;; esac; }
cluster_size() { cluster_brokers | wc -w; }

cluster_write_one() {
    node_write 1 broker,controller "$HOST:19111" \
        "PLAINTEXT://$HOST:19101,CONTROLLER://$HOST:19111" 1 1
    node_format 1 --standalone
}

cluster_write_three() {
    local n formats=()
    node_write 0 controller "$HOST:19110" "CONTROLLER://$HOST:19110" 3 2
    node_format 0 --standalone & formats+=($!)
    for n in 1 2 3; do
        node_write "$n" broker "$HOST:19110" "PLAINTEXT://$HOST:1910$n" 3 2
        node_format "$n" --no-initial-controllers & formats+=($!)
    done
    for n in "${formats[@]}"; do wait "$n" || return 1; done
}

# cluster_start KIND: "one" or "three", from nothing
cluster_start() {
    local n
    KIND=$1
    mkdir -p "$CLUSTER"
    echo "$KIND" >"$CLUSTER/kind"
    "cluster_write_$KIND" || return 1
    for n in $(cluster_nodes); do node_start "$n"; done
    until_true 90 node_lists 1 "$(cluster_size)" || return 1
    admin_start
}

# Bring back whatever a test left stopped or dead.
cluster_heal() {
    local n
    for n in $(cluster_nodes); do
        if node_alive "$n"; then node_go_on "$n"; else node_start "$n"; fi
    done
    for n in $(cluster_brokers); do
        until_true 90 node_lists "$n" "$(cluster_size)" || return 1
    done
}

cluster_stop() {
    local file
    for file in "$CLUSTER"/*/pid; do
        [ -e "$file" ] && kill -9 "$(cat "$file")" 2>/dev/null
    done
    rm -rf "$CLUSTER"
}

bootstrap() {
    case $KIND in
    one) echo "$HOST:19101" ;;
    three) echo "$HOST:19101,$HOST:19102,$HOST:19103" ;;
    esac
}

# -- The long-lived admin helper ------------------------------------------

admin_start() {
    local dir=$CLUSTER/admin
    mkdir -p "$dir"
    mkfifo "$dir/in" "$dir/out"
    # shellcheck disable=SC2086
    setsid java -Xmx128m $JAVA_OPTIONS -cp "$CP" KpAdmin "$(bootstrap)" \
        <>"$dir/in" 1<>"$dir/out" 2>"$dir/log.txt" &
    echo $! >"$dir/pid"
    disown
}

# Both ends are opened for both, so that neither open waits.
admin_open() {
    exec {ADMIN_IN}<>"$CLUSTER/admin/in" {ADMIN_OUT}<>"$CLUSTER/admin/out"
}

# admin COMMAND ARGUMENT...: prints the answer; its errors on standard error
admin() {
    local id=$BASHPID.$RANDOM line
    echo "$id $*" >&"$ADMIN_IN"
    while IFS= read -r -t 40 line <&"$ADMIN_OUT"; do
        [ "${line%% *}" = "$id" ] || continue
        line=${line#* }
        case $line in
        ok) return 0 ;;
        err\ *) echo "admin $*: $line" >&2; return 1 ;;
        *) echo "$line" ;;
        esac
    done
    echo "admin $*: no answer" >&2
    return 1
}

# -- Topics ---------------------------------------------------------------

# leader_of TOPIC PARTITION: its broker, -1 for none
leader_of() { admin describe "$1" | awk -v p="$2" '$1 == p { print $2 }'; }

# led_by TOPIC PARTITION NODE; led_by_another: it has a leader, not this node.
# A broker may answer with what it knew a moment ago: wait for these.
led_by() { [ "$(leader_of "$1" "$2")" = "$3" ]; }
led_by_another() {
    local leader
    leader=$(leader_of "$1" "$2")
    [ -n "$leader" ] && [ "$leader" -ge 0 ] && [ "$leader" != "$3" ]
}

# in_sync TOPIC N: each partition has a leader and N replicas in sync
in_sync() {
    admin describe "$1" 2>/dev/null | awk -v n="$2" '
        { some = 1; if ($2 < 0 || split($3, a, ",") != n) bad = 1 }
        END { exit !(some && !bad) }'
}

# topic_create NAME PARTITIONS REPLICAS [k=v...], or with replica lists:
# topic_create NAME 1:2:3,2:3:1 - ...; waits until its leaders are known
topic_create() {
    TOPICS+=("$1")
    admin create "$@" && until_true 60 topic_led "$1"
}
topic_led() {
    admin describe "$1" 2>/dev/null |
        awk '{ some = 1; if ($2 < 0) bad = 1 } END { exit !(some && !bad) }'
}

# -- Readers --------------------------------------------------------------

# read_kcat TOPIC FILE: every record, in a form verify understands
read_kcat() {
    timeout -s KILL "${READ_LIMIT_S:-60}" kcat \
        -b "${BOOTSTRAP:-$(bootstrap)}" -t "$1" -C -e -q -X check.crcs=true \
        -X fetch.message.max.bytes=10485760 \
        -X fetch.wait.max.ms=10 -X queued.min.messages=1000000 \
        -f '%p %o %T %K %S\n%k%s' >"$2"
}

# segments TOPIC: "PARTITION:FILE" of each segment, at the partition's leader
segments() {
    local partition leader rest file
    admin describe "$1" | sort -n | while read -r partition leader rest; do
        for file in "$CLUSTER/n$leader/data/$1-$partition"/*.log; do
            echo "$partition:$file"
        done
    done
}

# read_log TOPIC FILE: every record, decoded by Kafka's own classes.
# KEY_PARTITIONS=0: the number of partitions changed, so keys tell nothing
read_log() {
    local count list
    list=$(segments "$1")
    count=${KEY_PARTITIONS:-$(echo "$list" | cut -d: -f1 | sort -u | wc -l)}
    # shellcheck disable=SC2086
    java_tool KpLog "$count" $list >"$2"
}

# read_batches TOPIC FILE: Kafka's log dump, without the records
read_batches() {
    local files
    files=$(segments "$1" | cut -d: -f2- | paste -sd,)
    java_tool org.apache.kafka.tools.DumpLogSegments --files "$files" >"$2"
}
