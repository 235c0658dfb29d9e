# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# What the shell tests share; sourced from the project's root. $work is a folder of the test's own.
sinkproof=${SINKPROOF:-build/release/sinkproof}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
n=0
failed=0

report() { # status, text
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; fi
}

# `sinkproof ARGUMENTS` must exit with $1; its output and errors go to $work/out and $work/err.
exits() { # code, text, arguments
    expected=$1
    text=$2
    shift 2
    "$sinkproof" "$@" >"$work/out" 2>"$work/err"
    found=$?
    [ "$found" = "$expected" ]
    report $? "$text: exit $found, expected $expected"
}

empty() { # file, text
    [ ! -s "$work/$1" ]
    report $? "$2"
}

# The last line of a test. What again_of started ends here, so that its seconds count as the test's.
tap_done() {
    [ -z "${again_process-}" ] || { exec 6>&- && wait "$again_process"; }
    echo "1..$n"
    exit $failed
}
