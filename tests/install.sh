#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# Names the Debian or Ubuntu packages that this machine lacks and installs them.
#   install.sh [--check] [--only library] [--with clang|fuzz|tsan|qemu|venv|format|formal|book|wasm|browser|bare|mpi]... LOGDIR
# As root, or through sudo when it is there and asks for no password. Progress goes to standard error;
# what cannot be done is one sentence on standard output, with the command to run by hand, and exit 3:
# without root, without network, always under --check. A package database that another program holds is
# waited for, SINKPROOF_LOCK_SECONDS long (600). On a system without dpkg it only tries the headers.
set -eu

check= extra= only= log=.
while [ $# -gt 0 ]; do
    case $1 in
    --check) check=1 ;;
    --with) extra="$extra $2"; shift ;;
    --only) only=$2; shift ;;
    *) log=$1 ;;
    esac
    shift
done

say() { printf 'sinkproof: %s\n' "$*" >&2; }
refuse() { # the sentence
    printf 'sinkproof: %s\n' "$*"
    exit 3
}

if ! command -v dpkg-query >/dev/null 2>&1; then
    headers="cblas.h jansson.h" names="OpenBLAS and Jansson"
    if [ -z "$only" ]; then
        headers="mpfr.h gmp.h flint/flint.h pcre2.h $headers"
        names="MPFR, GMP, FLINT (2.9 with Arb, or 3), PCRE2, $names"
    fi
    for header in $headers; do
        printf '#include <stdio.h>\n#define PCRE2_CODE_UNIT_WIDTH 8\n#include <%s>\nint main(void){return 0;}\n' "$header" |
            ${CC:-gcc} -xc - -fsyntax-only 2>/dev/null ||
            refuse "missing header <$header>: install $names"
    done
    exit 0
fi

packages="gcc libc6-dev make git python3 perl libmpfr-dev libgmp-dev libflint-dev libopenblas-dev libjansson-dev libpcre2-dev"
[ -z "$only" ] || packages="gcc libc6-dev make libopenblas-dev libjansson-dev" # what `make library` needs

# A package that some releases have and others do not: asked of the index, so refreshed when silent.
exists() { apt-cache show "$1" 2>/dev/null | grep -q '^Package:'; }
installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
# The versioned package that an unversioned one stands for (clang -> 14).
clang_version() { apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1; }

# FLINT 3 carries Arb itself; beside FLINT 2 it is a package of its own. Where the index is silent
# (a container's often is), the release says which FLINT there is.
has_flint_2() {
    case $(. /etc/os-release 2>/dev/null && echo "$ID $VERSION_ID") in
    "debian 12" | "ubuntu 22.04") return 0 ;;
    esac
    return 1
}
lacks_arb() {
    [ ! -e /usr/include/arb.h ] && [ ! -e /usr/include/flint/arb.h ] &&
        { installed libflint-dev || exists libflint-arb-dev || { ! exists libflint-dev && has_flint_2; }; }
}

# A package only for its command, which may have come from elsewhere.
for_command() { command -v "$1" >/dev/null 2>&1 || list="$list $2"; }

missing() {
    list=$packages
    # For the test of an installation: a C++ compiler, flags, manual pages, Debian packages.
    if [ -z "$only" ]; then
        for_command g++ g++; for_command pkg-config pkgconf
        for_command groff groff-base; for_command dpkg-shlibdeps dpkg-dev
    fi
    for room in $extra; do
        case $room in
        clang) list="$list clang libomp-dev" ;; # gcc brings its own OpenMP, clang does not
        fuzz | tsan) list="$list clang libomp-dev"; v=$(clang_version); [ -z "$v" ] || list="$list libclang-rt-$v-dev" ;;
        qemu) list="$list gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user" ;;
        venv) list="$list python3-venv" ;;
        format) list="$list clang-format" ;;
        formal) list="$list coq libcoq-coquelicot libcoq-flocq libcoq-interval sollya" ;;
        book) for_command pandoc pandoc; for_command gnuplot gnuplot-nox; for_command node nodejs; for_command npm npm ;;
        # WebAssembly: where a release lacks it, the page that computes says so (doc/explore/explore.py).
        wasm)
            v=$(clang_version)
            if exists wasi-libc && exists "libclang-rt-$v-dev-wasm32"; then list="$list clang lld wasi-libc libclang-rt-$v-dev-wasm32"; fi ;;
        bare) list="$list debootstrap" ;;
        mpi) for_command mpirun openmpi-bin ;;
        browser) if exists chromium; then for_command chromium chromium; fi ;; # else the tests skip it by name
        esac
    done
    for p in $(printf '%s\n' $list | awk '!seen[$0]++'); do installed "$p" || printf '%s ' "$p"; done
    if [ -z "$only" ] && lacks_arb; then printf 'libflint-arb-dev '; fi
}

# shellcheck disable=SC2046  # words, with one space between
words() { echo $(missing); }
again='make again'
[ -z "$only" ] || again='try again'
by_hand() { echo "as root, run \"apt-get update && apt-get install -y --no-install-recommends $lacking\", then $again"; }

lacking=$(words)
[ -n "$lacking" ] || exit 0

root=
if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then root=sudo; else root=none; fi
fi
if [ -n "$check" ] || [ "$root" = none ]; then refuse "packages are missing here: $(by_hand)"; fi

mkdir -p "$log"
said=$log/apt.said.$$
trap 'rm -f "$said"' EXIT
: >"$log/apt.log"
say "installing what is missing here (apt-get, log in $log/apt.log): $lacking"

# apt-get takes four locks, of the index, the archives and twice of dpkg, and has an option to wait for
# some of them. So it is its refusal that is waited out, whichever lock it names.
LOCKED='Could not get lock|locked by another process'
waited=0
apt() {
    while :; do
        status=0
        $root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get "$@" >"$said" 2>&1 </dev/null || status=$?
        cat "$said" >>"$log/apt.log"
        [ $status -ne 0 ] && grep -Eq "$LOCKED" "$said" || return $status
        holder=$(sed -n 's/.*held by \(process [0-9]* ([^)]*)\).*/\1/p' "$said" | head -n 1)
        holder=${holder:-another program}
        [ $waited -ne 0 ] || say "the package database is locked by $holder: waiting for it"
        if [ $waited -ge "${SINKPROOF_LOCK_SECONDS:-600}" ]; then
            refuse "$holder has kept the package database locked for $waited s: when it is done, $(by_hand)"
        fi
        waited=$((waited + 1))
        sleep 1
    done
}

apt update || : # the index at hand may do; if not, the installation says so
lacking=$(words) # the fresh index may know more
# shellcheck disable=SC2086  # a list of words
if ! apt install -y --no-install-recommends $lacking; then
    why=$(grep 'Failed to fetch' "$log/apt.log" | head -n 1) # without a network: more telling than what follows
    [ -n "$why" ] || why=$(grep -E '^(E|Error): ' "$log/apt.log" | tail -n 1)
    refuse "apt-get could not install them (${why:-no reason given}; all of it in $log/apt.log): $(by_hand)"
fi
