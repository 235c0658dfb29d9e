#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# ThreadSanitizer catches a race in this build, and takes no ordered program for one. RACE: the program.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh

"$RACE" race >"$work/out" 2>&1
status=$?
[ $status = 66 ] && grep -q 'WARNING: ThreadSanitizer: data race' "$work/out"
report $? "a race is caught: exit $status, expected 66"
for which in reduction barrier; do
    "$RACE" $which >"$work/out" 2>&1
    status=$?
    [ $status = 0 ] && [ ! -s "$work/out" ]
    report $? "$which: no race is reported: exit $status"
    sed 's/^/# /' "$work/out" | head -n 20
done
tap_done
