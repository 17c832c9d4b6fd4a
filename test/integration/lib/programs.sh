# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# lib/programs.sh - builds the programs of this folder.  They use the public
# API only, so they are linked with the shared library as a user's would be.

WARNINGS="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
    -Werror"

# program NAME SOURCE... -- LIBRARY...
program() {
    local name=$1 sources=()
    shift
    while [ "$1" != -- ]; do sources+=("$1"); shift; done
    shift
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 -g -pthread $WARNINGS \
        -I"$KP_IT/../.." -I"$KP_IT/../../include" \
        "${sources[@]}" "$@" -o "$BIN/$name"
}

# build_programs FOLDER
build_programs() {
    local library=(-L"$KP_BUILD" -lkp "-Wl,-rpath,$KP_BUILD")
    mkdir -p "$1"
    program verify "$KP_IT"/verify.c "$KP_IT"/verify/*.c \
        "$KP_IT"/sender/journal.c -- "${library[@]}" &&
        program kp_sender "$KP_IT"/kp_sender.c "$KP_IT"/sender/*.c \
            -- "${library[@]}" &&
        program kp_matrix "$KP_IT"/kp_matrix.c "$KP_IT"/sender/*.c \
            -- "${library[@]}"
}
