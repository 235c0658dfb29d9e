#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The diagnosis as `judge` prints it, as JSON, and left out; and --bisect.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

contains() { # file, text that it must hold
    grep -q -F -e "$2" "$work/$1"
    report $? "and says: $2"
}

exits 0 "a run with alpha in bfloat16" run synthetic:tiny --policy f32,M8.alpha=bf16 --tokens random:12,seed=3 \
    --trace "$work/alpha.safetensors"
exits 1 "judged" judge synthetic:tiny "$work/alpha.safetensors" --policy f32 --local --no-hint
contains out "M8 of layers 0-3: explained, every element is inside"
contains out "alpha is rounded to bfloat16: 1.703125 [alpha-bf16]"
contains out "next best, "
exits 1 "the same without a diagnosis" judge synthetic:tiny "$work/alpha.safetensors" --policy f32 --local \
    --no-hint --no-diagnosis
! grep -q Diagnosis "$work/out"
report $? "and says nothing of a diagnosis"
exits 1 "as JSON" judge synthetic:tiny "$work/alpha.safetensors" --policy f32 --local --no-hint --json -
python3 - "$work/out" <<'END'
import json, sys
(found,) = json.load(open(sys.argv[1]))["results"][0]["diagnosis"]
assert found["status"] == "explained" and found["mistakes"] == ["alpha-bf16"], found
assert found["points"] == ["00.M8", "01.M8", "02.M8", "03.M8"] and found["next_bounds"] > 0, found
assert found["indistinguishable"] == [] and found["pattern"] is None, found
END
report $? "one finding of four points, one mistake"
exits 0 "an honest trace" run synthetic:tiny --policy f32 --tokens random:6 --trace "$work/honest.safetensors"
exits 0 "is judged" judge synthetic:tiny "$work/honest.safetensors" --policy f32 --local --json -
grep -q '"diagnosis": \[\]' "$work/out"
report $? "and has nothing to diagnose"

# An engine whose window is one key too wide shows it with nine tokens.
exits 0 "the tiny model as files" synth synthetic:tiny --out "$work/right"
cp -r "$work/right" "$work/wide"
sed -i 's/"sliding_window": 8/"sliding_window": 9/' "$work/wide/config.json"
exits 1 "a bisection" judge "$work/right" --policy f32 --tokens random:30,seed=1 \
    --bisect "$sinkproof run $work/wide --policy f32 --tokens {tokens} --trace {out} >/dev/null 2>&1"
contains out "30 tokens: fails"
contains out "The mistake shows with 9 tokens and not with the first 8 of them."
contains out "the window is one key too wide [window-wide]"
contains out "--trace trace.safetensors"
exits 0 "an engine without a mistake" judge "$work/right" --policy f32 --tokens random:9,seed=1 \
    --bisect "$sinkproof run $work/right --policy f32 --tokens {tokens} --trace {out} >/dev/null 2>&1"
contains out "Nothing fails with 9 tokens."
exits 1 "a command that says it by its exit code" judge synthetic:tiny --tokens random:40 --bisect 'test {n} -lt 17'
contains out "The mistake shows with 17 tokens and not with the first 16 of them."
exits 3 "one that cannot be run" judge synthetic:tiny --tokens 1,2 --bisect 'exit 9'
contains err "exits 9: expected 0 or 1"
exits 3 "one that writes no trace" judge synthetic:tiny --tokens 1,2 --bisect 'true {out}'
exits 2 "no tokens" judge synthetic:tiny --bisect 'true'
tap_done
