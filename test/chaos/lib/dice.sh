# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# lib/dice.sh - what a seed decides, and the clock of a run.

# Knuth's MMIX generator; the upper bits are good enough to choose faults.
dice_seed() { DICE=$1; for _ in 1 2 3; do roll 2; done; }

# roll N: a number from 0 to N - 1 in ROLLED.  (Not printed: a subshell would
# keep the new state for itself.)
roll() {
    DICE=$((DICE * 6364136223846793005 + 1442695040888963407))
    ROLLED=$((((DICE >> 33) & 0x7fffffff) % $1))
}

# between LOW HIGH: a number in ROLLED, both ends possible
between() {
    roll $(($2 - $1 + 1))
    ROLLED=$((ROLLED + $1))
}

# pick WORD...: one of them in PICKED
pick() {
    roll $#
    shift "$ROLLED"
    # shellcheck disable=SC2034
    PICKED=$1
}

# now: milliseconds in NOW
now() {
    NOW=${EPOCHREALTIME/[.,]/}
    NOW=$((NOW / 1000))
}

# tell WORD...: an event, with the seconds since START
tell() {
    now
    printf '  %5d.%03d  %s\n' $(((NOW - START) / 1000)) \
        $(((NOW - START) % 1000)) "$*"
}
