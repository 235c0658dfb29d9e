#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The command's outer shape: help, exit codes, what stands on which stream, and that a failed run
# leaves no file behind.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh

contains() { # file, word, text
    grep -q -e "$2" "$work/$1"
    report $? "$3"
}

exits 0 "--help" --help
contains out "judge" "the list of commands is on standard output"
exits 0 "--version" --version
exits 2 "no command"
empty out "usage goes to standard error"
exits 2 "an unknown command" frobnicate
contains err "judge" "and the known ones are listed"
for command in demo synth info run truth judge; do
    exits 0 "$command --help" $command --help
done

exits 0 "run" run synthetic:tiny --tokens 1,2,3
contains out "policy real-f64" "the result names its policy"
contains err "peak memory" "the cost is on standard error"
exits 0 "run --json -" run synthetic:tiny --tokens 1,2,3 --json - --policy f32 --generate 2
python3 -c '
import json, sys
e = json.load(open(sys.argv[1]))
r = e["results"][0]
assert e["command"] == "run" and e["exit"] == 0 and r["policy"] == "f32" and len(r["generated"]) == 2
' "$work/out"
report $? "standard output is one JSON envelope"

# Chunks, a trace and generation do not change a bit of the printed result.
"$sinkproof" run synthetic:tiny --tokens random:40,seed=3 --generate 5 >"$work/plain" 2>"$work/err"
for chunk in 1 7 8 9 39; do
    "$sinkproof" run synthetic:tiny --tokens random:40,seed=3 --generate 5 --chunk $chunk \
        --trace "$work/t$chunk.safetensors" --points A9,F2 >"$work/chunked" 2>"$work/err"
    cmp -s "$work/plain" "$work/chunked"
    report $? "model.forward run --chunk $chunk --trace prints the same result"
done
cmp -s "$work/t1.safetensors" "$work/t39.safetensors"
report $? "model.forward traces of chunks of 1 and of 39 are the same file"

printf '1, 2\n3\t4,\n5' >"$work/ids"
"$sinkproof" run synthetic:tiny --tokens @"$work/ids" >"$work/a" 2>"$work/err"
"$sinkproof" run synthetic:tiny --tokens 1,2,3,4,5 >"$work/b" 2>"$work/err"
cmp -s "$work/a" "$work/b"
report $? "ids from a file"

exits 2 "no model" run --tokens 1
exits 2 "no tokens" run synthetic:tiny
exits 2 "an unknown policy" run synthetic:tiny --tokens 1 --policy bf17
contains err "hf-bf16" "and the known ones are listed"
exits 2 "an unknown engine" run synthetic:tiny --tokens 1 --engine slow
contains err "known are ref, lanes and fast" "and the known ones are listed"
exits 2 "--points without --trace" run synthetic:tiny --tokens 1 --points A9
exits 3 "an unknown model" run synthetic:nano --tokens 1
exits 3 "a missing directory" run "$work/none" --tokens 1
for ids in 211 -1 1,x 1.5 "" "," 99999999999999999999 "@$work/none" "random:0" "random:3,seed=x"; do
    exits 3 "--tokens '$ids'" run synthetic:tiny --tokens="$ids" --trace "$work/bad.safetensors"
    empty out "and nothing on standard output"
done
exits 3 "--points A99" run synthetic:tiny --tokens 1 --trace "$work/bad.safetensors" --points A99
exits 3 "a trace in no directory" run synthetic:tiny --tokens 1 --trace "$work/none/bad.safetensors"
[ "$(ls "$work" | grep -c bad)" = 0 ]
report $? "failed runs left no file behind"

exits 3 "a truth that no memory holds" truth synthetic:tiny --tokens random:100000
contains err "GiB" "and says how much it would be"

exits 0 "demo" demo

tap_done
