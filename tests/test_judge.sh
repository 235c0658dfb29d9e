#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The command `judge` from outside: exit codes, the policy that auto finds, the override that
# explains a bug, JSON, and input that a stranger broke.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/tap.sh
vectors=tests/vectors/openai-torch

contains() { # file, text that it must hold
    grep -q -F -e "$2" "$work/$1"
    report $? "and says: $2"
}

exits 0 "float32 of the published reference" judge $vectors/small $vectors/small/trace-f32.safetensors
exits 1 "its bfloat16" judge $vectors/small $vectors/small/trace-bf16.safetensors
contains out "First divergence: 00.M8"
contains out "--policy openai-bf16,M8.alpha=bf16"
longest=$(awk '{ if (length($0) > w) w = length($0) } END { print w + 0 }' "$work/out")
[ "$longest" -le 100 ]
report $? "the report fits 100 columns: the longest line has $longest"
exits 0 "bfloat16 under the override" judge $vectors/small $vectors/small/trace-bf16.safetensors \
    --policy openai-bf16,M8.alpha=bf16
exits 1 "several traces: the worst verdict wins" judge $vectors/small $vectors/small/trace-f32.safetensors \
    $vectors/small/trace-bf16.safetensors --local --no-hint
exits 1 "JSON on standard output" judge $vectors/window $vectors/window/trace-bf16.safetensors --json -
python3 - "$work/out" <<'PY'
import json, sys
e = json.load(open(sys.argv[1]))
r = e["results"]
assert e["command"] == "judge" and e["exit"] == 1 and e["sinkproof"]
assert r[0]["id"] == "judgement" and r[0]["first_divergence"] == "00.M8"
assert r[0]["explained_by"] == "M8.alpha=bf16" and r[0]["policy"] == "openai-bf16"
bad = {p["id"] for p in r[1:] if not p["ok"]}
assert bad == {"00.M8", "01.M8"}, bad
m8 = next(p for p in r if p["id"] == "00.M8")
assert float.fromhex(m8["engine"]) != float.fromhex(m8["emulation"]) and len(m8["worst_index"]) == 3
PY
report $? "the JSON names the divergence, the override and the worst element in hex"

# A wrong eps leans every element one way: with fewer keys in the trace it is still found.
"$sinkproof" run synthetic:tiny --tokens random:40,seed=5 --policy f32 --trace "$work/t.safetensors" \
    >"$work/out" 2>&1
exits 0 "the reference's own trace" judge synthetic:tiny "$work/t.safetensors" --policy f32 --all
contains out "00.A1"
python3 - "$work/t.safetensors" "$work/engine.safetensors" <<'PY'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + n])
header["__metadata__"]["engine"] = "\x1b[2J\x9b2Jmine"
text = json.dumps(header).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data[8 + n:])
PY
exits 0 "an engine whose name would clear a terminal" judge synthetic:tiny "$work/engine.safetensors" --local
contains out "engine ?[2J??2Jmine"
exits 1 "the same trace on other weights" judge synthetic:tiny,seed=9 "$work/t.safetensors" --policy f32
contains out "First divergence: T0"
exits 1 "float32 declared as binary64" judge synthetic:tiny "$work/t.safetensors" --policy real-f64 --no-hint

# Both hold bfloat16; what the residual stream is stored in tells them apart.
for policy in bf16-operands openai-bf16; do
    "$sinkproof" run synthetic:tiny --tokens random:40,seed=5 --policy $policy \
        --trace "$work/auto.safetensors" >"$work/out" 2>&1
    exits 0 "a trace under $policy" judge synthetic:tiny "$work/auto.safetensors" --local
    contains out "auto: $policy fits"
done

"$sinkproof" info --policy openai-bf16,M8.alpha=bf16 >"$work/policy"
exits 0 "a policy in a file, as info prints it" judge $vectors/small $vectors/small/trace-bf16.safetensors \
    --policy "@$work/policy"

# More rows than the judge takes at once.
cat >"$work/long.json" <<'JSON'
{"num_hidden_layers": 1, "num_experts": 3, "experts_per_token": 2, "vocab_size": 11,
 "hidden_size": 32, "intermediate_size": 32, "head_dim": 4, "num_attention_heads": 2,
 "num_key_value_heads": 1, "sliding_window": 128, "initial_context_length": 4096}
JSON
"$sinkproof" run "synthetic:$work/long.json" --tokens random:600 --policy openai-bf16 \
    --trace "$work/long.safetensors" >"$work/out" 2>&1
exits 0 "600 tokens" judge "synthetic:$work/long.json" "$work/long.safetensors" --policy openai-bf16 --local

exits 2 "no trace" judge $vectors/small
exits 2 "an unknown policy" judge $vectors/small $vectors/small/trace-f32.safetensors --policy bf17
contains err "openai-bf16"
exits 2 "a rate that is no probability" judge $vectors/small $vectors/small/trace-f32.safetensors --rate 2
exits 3 "no such model" judge "$work/none" $vectors/small/trace-f32.safetensors
exits 3 "no such trace" judge $vectors/small "$work/none.safetensors"
contains err "none.safetensors"
head -c 20000 $vectors/small/trace-f32.safetensors >"$work/cut.safetensors"
exits 3 "a truncated trace" judge $vectors/small "$work/cut.safetensors"
empty out "and standard output is empty"
exits 3 "the same with JSON" judge $vectors/small "$work/cut.safetensors" --json "$work/cut.json"
[ ! -e "$work/cut.json" ]
report $? "and no JSON is written"
exits 3 "the same with JSON on standard output" judge $vectors/small "$work/cut.safetensors" --json -
empty out "and standard output is empty"
exits 3 "the trace of another model" judge $vectors/window $vectors/small/trace-f32.safetensors
contains err "expected"
exits 3 "a JSON file that cannot be written" judge $vectors/small $vectors/small/trace-f32.safetensors --local \
    --json "$work/no/folder.json"

mkdir "$work/a-temporary-folder-with-a-rather-long-name"
TMPDIR="$work/a-temporary-folder-with-a-rather-long-name" "$sinkproof" demo >"$work/out" 2>"$work/err"
report $? "the demo's tour holds"
contains out "The tour holds"

tap_done
