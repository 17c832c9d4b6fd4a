# SPDX-License-Identifier: BSD-2-Clause
# The programs of docs/examples do what they say.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

examples=$KP_BUILD/docs/examples

# example NAME RECORDS ARGUMENT...: it succeeds, and the topic holds so many
example() {
    local name=$1 count=$2
    shift 2
    must topic_create "$name" 3 1
    must timeout 30 "$examples/$name" "$(bootstrap)" "$name" "$@"
    until_true 30 holds "$name" "$count" || fail "$name: $(admin offsets "$name")"
}

example send_and_wait 1
example callbacks 1000 1000
example event_loop 1000 1000
example worker_pool 100 10 10

# Nobody listens there: the loop gives up, and says what stands in the way.
timeout 40 "$examples/event_loop" "$HOST:19199" nobody 10 \
    >"$T/nobody.out" 2>&1 && fail "success without a broker"
grep -q "$HOST:19199" "$T/nobody.out" || fail "$(cat "$T/nobody.out")"
