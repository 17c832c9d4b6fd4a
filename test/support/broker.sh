# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# broker.sh - for scripts: start and stop the test broker, kp-broker.
#
#   . broker.sh
#   broker_start [options of kp-broker]   sets $bootstrap, or ends the script
#   broker_stop                           its totals are then in $broker_out
#
# The program is $KP_BROKER.  What is still running ends with the script.

broker_dir=$(mktemp -d) || exit 1
broker_out=$broker_dir/out
broker_pid=
trap 'broker_stop; rm -rf "$broker_dir"' EXIT
trap 'exit 130' INT TERM HUP

broker_start() {
    local tries=0
    bootstrap=
    : >"$broker_out" # what the one before said is not ours
    "$KP_BROKER" "$@" >"$broker_out" 2>"$broker_dir/err" &
    broker_pid=$!
    # its first line says where it listens; 30 s for a slow machine
    while [ -z "$bootstrap" ]; do
        bootstrap=$(sed -n 's/^bootstrap //p' "$broker_out")
        tries=$((tries + 1))
        if [ $tries -gt 600 ] || ! kill -0 "$broker_pid" 2>/dev/null; then
            echo "the test broker $KP_BROKER did not start:"
            cat "$broker_dir/err"
            exit 1
        fi
        [ -n "$bootstrap" ] || read -r -t 0.05 _ <> <(:)
    done
}

broker_stop() {
    [ -n "$broker_pid" ] || return 0
    kill "$broker_pid" 2>/dev/null
    wait "$broker_pid" 2>/dev/null
    broker_pid=
}

# After broker_stop: how many records a topic got.
broker_records() { # topic
    sed -n "s/^topic $1 .* records \([0-9]*\) .*/\1/p" "$broker_out"
}
