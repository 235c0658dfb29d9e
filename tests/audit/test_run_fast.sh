#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# `sinkproof run` with the fast path: the emulation and the fast path print the same result and write
# the same trace, for every policy that they serve, every number of threads, chunked and streamed;
# generation can be had again; and what the fast path does not do is said.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
model=synthetic:tiny
gpt2=synthetic:tiny-gpt2

contains() { # file, words, text
    grep -q -e "$2" "$work/$1"
    report $? "$3"
}

# Two traces are equal in every tensor, in its dtype and bytes, but for A6 where the mask hides a key
# (the fast path has no such number).
same_traces() { # one, other, points of a layer, window of the even layers or 0
    python3 - "$@" <<'PY'
import json, struct, sys

def load(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8 : 8 + size])
    meta = head.pop("__metadata__")
    meta.pop("engine")
    return meta, {k: (v["dtype"], v["shape"], data[8 + size + v["data_offsets"][0] :
                      8 + size + v["data_offsets"][1]]) for k, v in head.items()}

(meta_a, a), (meta_b, b) = load(sys.argv[1]), load(sys.argv[2])
points, short = map(int, sys.argv[3:])
assert meta_a == meta_b, (meta_a, meta_b)
for name in sorted(set(a) | set(b)):
    x, y = a[name], b[name]
    assert x[:2] == y[:2], name
    if name.endswith(".A6"):
        heads, n, keys = x[1]
        wide, window = len(x[2]) // (heads * n * keys), short if short and int(name[:2]) % 2 == 0 else keys
        for row in range(heads * n):
            i = row % n
            seen = slice((row * keys + max(0, i + 1 - window)) * wide, (row * keys + i + 1) * wide)
            assert x[2][seen] == y[2][seen], name
    else:
        assert x[2] == y[2], name
assert len(b) == 3 + points * 4 + 2, len(b)  # and tokens, positions
PY
}

for policy in f32 f32,A2=bf16,A4=bf16 bf16-operands; do
    set -- $model --tokens random:40,seed=5 --policy $policy --generate 4
    exits 0 "lanes $policy" run "$@" --engine lanes --trace "$work/lanes"
    cp "$work/out" "$work/lanes.out"
    exits 0 "fast $policy" run "$@" --engine fast --threads 2 --trace "$work/fast"
    cmp -s "$work/lanes.out" "$work/out"
    report $? "model.forward $policy lanes and fast print the same result"
    same_traces "$work/lanes" "$work/fast" 19 8
    report $? "model.forward $policy lanes and fast write the same trace"
    exits 0 "judge the trace of $policy" judge $model "$work/fast" --policy $policy
    for how in "--threads 1" "--threads 3 --chunk 7" "--chunk 1" "--streamed"; do
        # shellcheck disable=SC2086
        exits 0 "fast $policy $how" run "$@" --engine fast $how
        cmp -s "$work/lanes.out" "$work/out"
        report $? "model.forward $policy fast $how prints the same result"
    done
done
contains err "engine fast" "what ran is on standard error"
for policy in f32 bf16-operands; do # the other architecture
    set -- $gpt2 --tokens random:40,seed=5 --policy $policy --generate 4
    exits 0 "lanes $policy, GPT-2" run "$@" --engine lanes --trace "$work/lanes"
    cp "$work/out" "$work/lanes.out"
    exits 0 "fast $policy, GPT-2" run "$@" --engine fast --threads 2 --trace "$work/fast"
    cmp -s "$work/lanes.out" "$work/out"
    report $? "gpt2.forward $policy lanes and fast print the same result"
    same_traces "$work/lanes" "$work/fast" 13 0
    report $? "gpt2.forward $policy lanes and fast write the same trace"
    exits 0 "judge GPT-2's trace of $policy" judge $gpt2 "$work/fast" --policy $policy
    exits 0 "fast $policy streamed, GPT-2" run "$@" --engine fast --streamed --chunk 7
    cmp -s "$work/lanes.out" "$work/out"
    report $? "gpt2.forward $policy streamed in pieces prints the same result"
done
exits 0 "fast on GPT-2" run $gpt2 --tokens 1,2,3 --engine fast --threads 1

threads_of() { # OMP_NUM_THREADS, then options
    env OMP_NUM_THREADS="$1" "$sinkproof" run $model --tokens 1,2,3 --engine fast $2 --json - 2>"$work/err" |
        python3 -c 'import json,sys; print(json.load(sys.stdin)["results"][0]["threads"])'
}
usable=$(python3 -c 'import os; print(min(len(os.sched_getaffinity(0)), 64))')
found="$(threads_of 1 '') $(threads_of 1 '--threads 3') $(threads_of 64 '')"
[ "$found" = "1 3 $usable" ]
report $? "OMP_NUM_THREADS limits the fast path's threads, --threads says them, no more than processors: $found"

exits 0 "another instruction set" run $model --tokens 1,2,3 --engine fast --json "$work/json"
portable=$(SINKPROOF_ISA=portable "$sinkproof" run $model --tokens 1,2,3 --engine fast --json - 2>"$work/err" |
    python3 -c 'import json,sys; r = json.load(sys.stdin)["results"][0]; print(r["isa"], r["policy"], r["logits"])')
fastest=$(python3 -c 'import json,sys; r = json.load(open(sys.argv[1]))["results"][0]; print("portable", r["policy"], r["logits"])' "$work/json")
[ -n "$portable" ] && [ "$portable" = "$fastest" ]
report $? "model.forward portable and the fastest instruction set: the same logits"
SINKPROOF_ISA=z80 "$sinkproof" run $model --tokens 1 --engine fast >"$work/out" 2>"$work/err"
[ $? = 2 ]
report $? "an unknown instruction set: exit 2"
contains err "portable" "and the known ones are listed"

exits 0 "drawn tokens" run $model --tokens 1,2 --engine fast --generate 20 --temperature 0.7 --seed 9
contains out "temperature 0.7, seed 9" "the seed is printed"
cp "$work/out" "$work/first"
exits 0 "drawn again" run $model --tokens 1,2 --engine fast --generate 20 --temperature 0.7 --seed 9 --threads 1
cmp -s "$work/first" "$work/out"
report $? "the same seed, the same text"
exits 0 "another seed" run $model --tokens 1,2 --engine fast --generate 20 --temperature 0.7 --seed 10
! cmp -s "$work/first" "$work/out"
report $? "another seed, another text"

exits 2 "a policy that fast does not serve" run $model --tokens 1 --engine fast --policy openai-bf16
contains err "f32,A2=bf16,A4=bf16" "and those that it serves are listed"
exits 2 "a policy that lanes does not serve" run $model --tokens 1 --engine lanes --policy real-f64
for point in A9 03.A10 M5 A1,00.M9; do
    exits 2 "a point that fast never holds: $point" run $model --tokens 1 --engine fast \
        --trace "$work/none" --points $point
done
exits 2 "a point that lanes never holds" run $model --tokens 1 --engine lanes --trace "$work/none" --points A9
exits 0 "a point that lanes holds" run $model --tokens 1 --engine lanes --trace "$work/some" --points M5
exits 2 "threads of the reference" run $model --tokens 1 --threads 2
exits 2 "streamed reference" run $model --tokens 1 --streamed
exits 2 "a temperature without tokens" run $model --tokens 1 --temperature 1
exits 2 "a negative temperature" run $model --tokens 1 --generate 1 --temperature=-1
exits 2 "no threads" run $model --tokens 1 --engine fast --threads 0
exits 3 "a bad token" run $model --tokens 211 --engine fast

tap_done
