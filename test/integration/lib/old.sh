# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034
#
# lib/old.sh - one broker of an older Kafka, with ZooKeeper up to 2.8.  Sourced
# after lib/test.sh.  ZooKeeper is on 18181, the broker on 18092, the
# controller of a newer one on 18093.  Topics are made by the first send.

OLD_PORT=18092
BOOTSTRAP=$HOST:$OLD_PORT
OLD_PIDS=()

end_old() {
    local pid
    end_senders
    for pid in "${OLD_PIDS[@]}"; do kill -9 "$pid" 2>/dev/null; done
}
trap end_old EXIT

port_open() { (exec 3<>"/dev/tcp/$HOST/$1") 2>/dev/null; }

# old_java NAME CLASS ARGUMENT...: in the background, its log in $T/NAME.log
old_java() {
    local name=$1
    shift
    java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xlog:disable \
        -Dzookeeper.jmx.log4j.disable=true \
        "-Dlog4j.configuration=file:$T/log4j.properties" \
        -cp "$OLD_CP" "$@" >"$T/$name.log" 2>&1 </dev/null &
    OLD_PIDS+=($!)
    disown
}

old_log4j() {
    cat >"$T/log4j.properties" <<'P'
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c: %m%n
P
}

old_properties() {
    cat >"$T/broker.properties" <<P
log.dirs=$T/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
log.cleaner.enable=false
P
}

old_start_zookeeper() {
    mkdir -p "$T/zk"
    printf '%s\n' tickTime=500 "dataDir=$T/zk" clientPort=18181 \
        "clientPortAddress=$HOST" admin.enableServer=false >"$T/zk.properties"
    old_java zk org.apache.zookeeper.server.quorum.QuorumPeerMain \
        "$T/zk.properties"
    until_true 60 port_open 18181 || fail "no ZooKeeper: $(tail -3 "$T/zk.log")"
    printf '%s\n' broker.id=1 "zookeeper.connect=$HOST:18181" \
        "listeners=PLAINTEXT://$HOST:$OLD_PORT" \
        "advertised.listeners=PLAINTEXT://$HOST:$OLD_PORT" \
        >>"$T/broker.properties"
}

old_format_controller() {
    printf '%s\n' node.id=1 process.roles=broker,controller \
        "controller.quorum.voters=1@$HOST:18093" \
        controller.listener.names=CONTROLLER \
        "listeners=PLAINTEXT://$HOST:$OLD_PORT,CONTROLLER://$HOST:18093" \
        >>"$T/broker.properties"
    java -cp "$OLD_CP" kafka.tools.StorageTool format \
        -t kpkpkpkpkpkpkpkpkpkpkQ -c "$T/broker.properties" \
        >"$T/format.log" 2>&1 || fail "format: $(tail -3 "$T/format.log")"
}

# old_lists VERSION: the broker is in its own Metadata.  kcat asks 0.9 for
# ApiVersions unless told not to.
old_lists() {
    local options=()
    [[ $1 == 0.9* ]] && options=(-X api.version.request=false
        -X broker.version.fallback=0.9.0.1)
    timeout -s KILL 5 kcat -b "$BOOTSTRAP" -L "${options[@]}" 2>/dev/null |
        grep -q ' 1 brokers:'
}

# old_start VERSION
old_start() {
    OLD_CP=$(printf '%s:' "$KP_KAFKA/$1/libs"/*.jar)
    old_log4j
    old_properties
    case $1 in
    3.*) old_format_controller ;;
    *) old_start_zookeeper ;;
    esac
    old_java broker kafka.Kafka "$T/broker.properties"
    until_true 60 old_lists "$1" ||
        fail "no broker: $(tail -3 "$T/broker.log")"
}

# old_holds TOPIC COUNT: so many records are readable
old_holds() {
    [ "$(timeout -s KILL 10 kcat -b "$BOOTSTRAP" -t "$1" -C -e -q \
        -f '.\n' 2>/dev/null | wc -l)" = "$2" ]
}

# old_takes VERSION OPTION...: records with acks=all, 1 and 0 arrive
old_takes() {
    local version=$1 acks
    shift
    old_start "$version"
    for acks in all 1 0; do
        send "acks-$acks" "acks-$acks" --threads 2 --records 500 \
            --keys 50 -X acks=$acks "$@"
        until_true 60 old_holds "acks-$acks" 1000 ||
            fail "acks=$acks: not 1,000 records"
        must read_kcat "acks-$acks" "$T/acks-$acks.kcat"
        compare --journal "$T/acks-$acks.journal" \
            --kcat "$T/acks-$acks.kcat" --all-acked --all-found
    done
}
