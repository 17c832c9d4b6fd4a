# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# lib.sh - what deps and build have in common.  Needs KP_PEERS.

say() { echo "peers: $*"; }
left_out() { # PEER WHY...
    local peer=$1
    shift
    say "$peer is left out: $*"
    return 1
}

# A folder is complete for a version, or made again.
is_complete() { [ "$(cat "$1/complete" 2>/dev/null)" = "$2" ]; }
mark_complete() { echo "$2" >"$1/complete"; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo -n "$@"
    else return 1; fi
}

install_package() {
    [ "${KP_DEPS:-}" = no ] && return 1
    command -v apt-get >/dev/null || return 1
    say "installing $1"
    as_root apt-get -qq -o DPkg::Lock::Timeout=60 update >/dev/null 2>&1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
        -o DPkg::Lock::Timeout=60 install --no-install-recommends "$1" \
        >/dev/null 2>&1
}

need_command() { # COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 || install_package "$2"
}

need_header() { # HEADER PACKAGE
    echo "#include <$1>" | gcc -E -x c - >/dev/null 2>&1 || install_package "$2"
}

# Modules go where everything fetched goes; compiled packages to Go's own cache,
# so that the next clone finds them.
go_env() {
    export GOMODCACHE=${GOMODCACHE:-$KP_PEERS/go} CGO_ENABLED=0
    export GOFLAGS="-modcacherw -trimpath -buildvcs=false"
}
