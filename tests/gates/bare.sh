#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The README's two commands where a newcomer types them: in a root that debootstrap made, with gcc,
# make, git and python3 and nothing else, on Debian stable and the release before it. Every root is
# fresh, so the packages are missing each time; each command is the first one in some root of each
# number of jobs. The mirror and its keys are those of this machine's apt.
#
# Needs root, debootstrap and namespaces of its own for mounts and processes: whatever ends this test,
# the kernel unmounts and kills what it left. Logs: BUILD/RELEASE-*.log.
set -u
cd "$(dirname "$0")/../.." || exit 1
releases="stable oldstable"
logs=${SINKPROOF_BUILD:-build/release/bare}
folder=build/roots # apart from the variants, whose files make looks through

# Where this machine's own Debian release comes from: asked of apt, which reads .list and .sources files.
mirror() {
    local ID= VERSION_CODENAME=
    . /etc/os-release
    [ "$ID" != debian ] || apt-get --print-uris update |
        sed -n "s#^'\(.*\)/dists/\($VERSION_CODENAME\|stable\|oldstable\)/InRelease'.*#\1#p" | head -n 1
}

# Everything before the first root: what is missing is one failed result with a sentence.
if [ "${1:-}" != inside ]; then
    stop() {
        echo "not ok 1 - bare: $*"
        echo "sinkproof: $*" >&2
        echo "1..1"
        exit 1
    }
    [ "$(id -u)" = 0 ] || stop "a root for a bare machine can only be made by root (SINKPROOF_NO_BARE=1 leaves it out)"
    for tool in debootstrap unshare chroot setpriv; do
        command -v $tool >/dev/null || stop "$tool is missing: sh tests/install.sh --with bare build"
    done
    unshare --mount --pid --net --fork --kill-child true || stop "this kernel gives root no namespaces of its own"
    [ -n "$(mirror)" ] || stop "the apt of this machine names no mirror of its own Debian release"
    mkdir -p "$folder" "$logs"
    inside=
    trap '[ -z "$inside" ] || { kill -KILL $inside; wait $inside; } 2>/dev/null; rm -rf --one-file-system "$folder"' EXIT
    trap 'exit 1' TERM INT HUP
    unshare --mount --pid --fork --kill-child bash "$0" inside &
    inside=$!
    wait $inside
    status=$?
    inside=
    exit $status
fi

n=0
failed=0
report() { # status, text
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; fi
}

# The keys that its sources name, and those trusted for all: one ring, armoured ones opened.
keyring() {
    {
        cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
            grep -v '^#' | grep -oi 'signed-by[:=] */[^] ]*' | sed 's/^[^/]*//'
        ls /etc/apt/trusted.gpg /etc/apt/trusted.gpg.d/*.gpg /etc/apt/trusted.gpg.d/*.asc 2>/dev/null
    } | sort -u | while read -r key; do
        if head -c 5 "$key" | grep -q -e '-----'; then sed '1,/^$/d; /^=/,$d' "$key" | base64 -d; else cat "$key"; fi
    done
}

# A minimal root with what the README asks of a fresh machine; it reaches the mirror as this machine does.
make_base() { # release
    debootstrap --variant=minbase --include=gcc,make,git,python3 --keyring="$PWD/$folder/keyring.gpg" \
        "$1" "$PWD/$folder/$1" "$(mirror)" >"$logs/$1-root.log" 2>&1 || return 1
    rm -rf "$folder/$1"/var/cache/apt/archives/*.deb "$folder/$1"/var/lib/apt/lists/*
    apt-config dump | grep '^Acquire::' >"$folder/$1/etc/apt/apt.conf.d/00machine"
    chroot "$folder/$1" gcc -xc -E - <<<'#include <mpfr.h>' >/dev/null 2>&1 || touch "$folder/$1/made"
}
named() { sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' "$folder/$1/etc/os-release"; }

# A copy of it with a clone of HEAD: $root.
fresh() { # release
    root=$folder/root
    umount "$root/proc" "$root/sys" "$root/dev/pts" 2>/dev/null
    rm -rf --one-file-system "$root"
    cp -a "$folder/$1" "$root" && git clone -q "$folder/head" "$root/root/sinkproof" &&
        mount -t proc proc "$root/proc" && mount -t sysfs -o ro sysfs "$root/sys" &&
        mkdir -p "$root/dev/pts" && mount -t devpts -o ptmxmode=0666 devpts "$root/dev/pts" && return
    report 1 "$1: a fresh root with a clone of HEAD"
    return 1
}

# One command in $root as typed by a newcomer, with nothing of this environment but the way to a proxy.
typed() { # log, words
    local log=$1 start=$SECONDS status=0
    shift
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        chroot "$root" env -C /root/sinkproof "$@" </dev/null >"$log" 2>&1 || status=$?
    seconds=$((SECONDS - start))
    return $status
}

# A result, with the end of its log where it failed.
show() { # status, log, text
    report "$1" "$3"
    [ "$1" = 0 ] || { echo "$3: the end of $2"; tail -n 30 "$2"; } >&2
}

demo() { # release, jobs
    log=$logs/$1-demo$2.log
    typed "$log" make demo "$2"
    show $? "$log" "$1: make demo $2 exits with 0 ($seconds s)"
}

tests() { # release, jobs
    log=$logs/$1-test$2.log
    typed "$log" make test "$2" && [ "$(tail -n 1 "$log")" = "Result: PASS" ]
    show $? "$log" "$1: make test $2 closes with PASS ($seconds s): $(grep -E '^[0-9]+ passed' "$log")"
    ! grep ' warning: ' "$log" >&2
    report $? "$1: its compiler, $(chroot "$root" gcc -dumpfullversion), warns of nothing"
}

# The locks of dpkg and of the index, held from before the first command until some seconds into it.
HOLD='import fcntl, sys, time
locks = [open(path, "w") for path in ("/var/lib/dpkg/lock-frontend", "/var/lib/apt/lists/lock")]
for lock in locks: fcntl.lockf(lock, fcntl.LOCK_EX)
open("/root/held", "w").close()
time.sleep(5)
locks.pop().close()
time.sleep(5)'
locked() { # release, jobs
    mkdir -p "$root/var/lib/apt/lists"
    chroot "$root" python3 -c "$HOLD" &
    local holder=$!
    until [ -e "$root/root/held" ] || ! kill -0 $holder 2>/dev/null; do sleep 0.1; done
    demo "$1" "$2"
    wait $holder
    [ "$(grep -c 'is locked by process [0-9]* (python3): waiting for it' "$log")" = 1 ]
    show $? "$log" "$1: the locks of the index and of dpkg, held by another, were waited for and said once"
}

# Where nothing can be installed make fails, with so many lines, the last of which names the command.
refused() { # release, lines, what is typed, the words that do it
    local release=$1 lines=$2 what=$3 log=$logs/$1-refused.log
    shift 3
    typed "$log" "$@"
    [ $? = 2 ] && [ "$(wc -l <"$log")" = "$lines" ] && ! grep -Eq 'Error [0-9]|unfinished jobs' "$log" &&
        tail -n 1 "$log" | grep -q 'as root, run "apt-get update && apt-get install '
    show $? "$log" "$release: $what exits with 2, the command to run in line $lines of $lines"
}

cannot() { # release
    local jobs
    chroot "$root" chown -R nobody /root
    for jobs in -j1 -j8; do
        refused "$1" 1 "make demo $jobs by a user who may not install" \
            setpriv --reuid=65534 --clear-groups make demo $jobs
    done
    chroot "$root" chown -R root /root
    refused "$1" 2 "make demo -j8 without a network" unshare --net make demo -j8
}

# Two fresh roots of a release. In one the tests come first and with other jobs than in the release
# before; in the other the tour, while another process installs something. The tests take minutes:
# once for each release.
jobs="-j1 -j8"
whole() { # release
    fresh "$1" && cannot "$1"
    fresh "$1" && tests "$1" "${jobs% *}" && demo "$1" "${jobs% *}"
    fresh "$1" && locked "$1" "${jobs#* }"
    jobs="${jobs#* } ${jobs% *}"
}

git clone -q --no-hardlinks . "$folder/head" || exit 1
keyring >"$folder/keyring.gpg"
for release in $releases; do make_base "$release" & done
wait
for release in $releases; do
    [ -e "$folder/$release/made" ]
    show $? "$logs/$release-root.log" "$release: a minimal root from this machine's mirror: $(named "$release")"
    [ ! -e "$folder/$release/made" ] || whole "$release"
done
echo "1..$n"
exit $failed
