# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# lib/faults.sh - what the seed does to the brokers and to the links, and how
# each harm ends.  Nothing here waits: the end of a fault stands in PENDING as
# "MILLISECOND COMMAND..." until its time has come.

declare -A STATE # of each node: up, dead, stopped, leaving
declare -A LINK  # of each link: fine, harmed
PENDING=()

# later MS COMMAND...
later() {
    local due
    now
    due=$((NOW + $1))
    shift
    PENDING+=("$due $*")
}

run_due() {
    local left=() entry
    now
    for entry in "${PENDING[@]}"; do
        # shellcheck disable=SC2086
        if [ "${entry%% *}" -le "$NOW" ]; then ${entry#* }
        else left+=("$entry"); fi
    done
    PENDING=("${left[@]}")
}

# How long a fault lasts, in ROLLED: at times longer than some deadlines.
lasting() {
    roll 5
    if [ "$ROLLED" = 0 ]; then between 8000 16000; else between 200 6000; fi
}

# -- Nodes ----------------------------------------------------------------

node_back() { # NODE: from wherever it is
    case ${STATE[$1]} in
    stopped)
        tell "node $1 goes on"
        node_go_on "$1" ;;
    dead)
        tell "node $1 starts"
        node_start "$1" ;;
    leaving)
        if node_alive "$1"; then
            later 500 node_back "$1"
            return
        fi
        tell "node $1 has ended, and starts"
        node_start "$1" ;;
    esac
    STATE[$1]=up
}

# A second node may be away too, but seldom: then most partitions stand still.
may_harm_node() {
    local n away=0
    [ "${STATE[$1]}" = up ] && node_alive "$1" || return 1
    [ "$1" = 0 ] && return 0
    for n in 1 2 3; do [ "${STATE[$n]}" = up ] || away=$((away + 1)); done
    [ "$away" = 0 ] && return 0
    roll 5
    [ "$away" = 1 ] && [ "$ROLLED" = 0 ]
}

fault_kill() {
    tell "node $1 is killed (9)"
    node_kill "$1"
    STATE[$1]=dead
    between 200 6000
    later "$ROLLED" node_back "$1"
}

fault_stop() {
    lasting
    tell "node $1 is stopped for $ROLLED ms"
    node_pause "$1"
    STATE[$1]=stopped
    later "$ROLLED" node_back "$1"
}

fault_restart() {
    tell "node $1 is asked to end"
    kill "$(node_pid "$1")"
    STATE[$1]=leaving
    later 1000 node_back "$1"
}

node_fault() {
    local what=$1 n
    pick 0 1 1 1 2 2 2 3 3 3
    n=$PICKED
    may_harm_node "$n" || return 1
    "fault_$what" "$n"
}

# -- Leaders --------------------------------------------------------------

# The helper waits for its answers, so it has a process of its own, and the
# run goes on without it.
leader_fault() {
    local partition
    [ -z "${MOVER:-}" ] || ! kill -0 "$MOVER" 2>/dev/null || return 1
    roll "$PARTITIONS"
    partition=$ROLLED
    between 1 3
    tell "partition $partition is to be led by node $ROLLED"
    admin leader "$TOPIC" "$partition" "$ROLLED" >/dev/null 2>&1 &
    MOVER=$!
}

# -- Links ----------------------------------------------------------------

link() { echo "$*" >&"$PROXY_IN"; }

link_back() {
    tell "link $1 is restored"
    link "$1" go
    LINK[$1]=fine
}

link_fault() {
    local n what=$1 lasts
    between 1 3
    n=$ROLLED
    [ "${LINK[$n]}" = fine ] || return 1
    lasting
    lasts=$ROLLED
    case $what in
    delay)
        between 20 900
        tell "link $n is $ROLLED ms slow for $lasts ms"
        link "$n" delay "$ROLLED" ;;
    hold | hold-up | hold-down)
        tell "link $n: $what for $lasts ms"
        link "$n" "$what" ;;
    refuse | swallow)
        tell "link $n is reset, and will $what for $lasts ms"
        link "$n" "$what"
        link "$n" rst ;;
    cut | cut-down)
        between 1 60000
        tell "link $n: $what after $ROLLED bytes"
        link "$n" "$what" "$ROLLED"
        return ;;
    rst | fin)
        tell "link $n: $what"
        link "$n" "$what"
        return ;;
    esac
    LINK[$n]=harmed
    later "$lasts" link_back "$n"
}

# -- One after the other --------------------------------------------------

# Every kind comes up before any of them does again, however short the run.
FAULTS="kill kill kill stop stop restart leader leader leader leader cut cut
    cut-down cut-down rst fin delay delay hold hold-up hold-down refuse swallow"

shuffle() {
    local i card
    read -r -d '' -a DECK <<<"$FAULTS"
    for ((i = ${#DECK[@]} - 1; i > 0; i--)); do
        roll $((i + 1))
        card=${DECK[i]}
        DECK[i]=${DECK[ROLLED]}
        DECK[ROLLED]=$card
    done
}

# 1: it is not possible now.
try_fault() {
    case $1 in
    kill | stop | restart) node_fault "$1" ;;
    leader) leader_fault ;;
    *) link_fault "$1" ;;
    esac
}

# One that is not possible now goes to the end.
one_fault() {
    local card
    [ ${#DECK[@]} -gt 0 ] || shuffle
    card=${DECK[0]}
    DECK=("${DECK[@]:1}")
    try_fault "$card" || DECK+=("$card")
}

faults_begin() {
    local n
    PENDING=()
    DECK=()
    for n in 0 1 2 3; do STATE[$n]=up; done
    for n in 1 2 3; do LINK[$n]=fine; done
    NEXT_FAULT=$((START + 3000))
}

# Called every moment of a run.
faults_turn() {
    run_due
    now
    [ "$NOW" -ge "$NEXT_FAULT" ] || return 0
    one_fault
    between 200 3000
    now
    NEXT_FAULT=$((NOW + ROLLED))
}

# Every harm is undone, also those whose time has not come.
faults_end() {
    local n
    PENDING=()
    for n in 1 2 3; do link "$n" go; done
    for n in 0 1 2 3; do
        [ "${STATE[$n]}" != leaving ] || until_true 40 node_gone "$n"
    done
    tell "everything is restored"
    cluster_heal
}
