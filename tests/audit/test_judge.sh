#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The command `judge` from outside: exit codes, the policy that auto finds, the override that
# explains a bug, JSON, and input that a stranger broke.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
vectors=tests/vectors/openai-torch

contains() { # file, text that it must hold
    grep -q -F -e "$2" "$work/$1"
    report $? "and says: $2"
}

fits_100() { # the report in $work/out
    longest=$(awk '{ if (length($0) > w) w = length($0) } END { print w + 0 }' "$work/out")
    [ "$longest" -le 100 ]
    report $? "the report fits 100 columns: the longest line has $longest"
}

exits 0 "float32 of the published reference" judge $vectors/small $vectors/small/trace-f32.safetensors
exits 1 "its bfloat16" judge $vectors/small $vectors/small/trace-bf16.safetensors --json "$work/bf16.json"
contains out "First divergence: 00.M8"
contains out "--policy openai-bf16,M8.alpha=bf16"
fits_100
exits 0 "bfloat16 under the override" judge $vectors/small $vectors/small/trace-bf16.safetensors \
    --policy openai-bf16,M8.alpha=bf16
python3 - "$work/bf16.json" <<'PY'
import json, sys
e = json.load(open(sys.argv[1]))
r = e["results"]
assert e["command"] == "judge" and e["exit"] == 1 and e["sinkproof"]
assert r[0]["id"] == "judgement" and r[0]["first_divergence"] == "00.M8"
assert r[0]["explained_by"] == "M8.alpha=bf16" and r[0]["policy"] == "openai-bf16"
bad = {p["id"] for p in r[1:] if not p["ok"]}
assert bad == {f"{layer:02}.M8" for layer in range(4)}, bad
m8 = next(p for p in r if p["id"] == "00.M8")
assert float.fromhex(m8["engine"]) != float.fromhex(m8["emulation"]) and len(m8["worst_index"]) == 3
PY
report $? "the JSON names the divergence, the override and the worst element in hex"

# A wrong eps leans every element one way: with fewer keys in the trace it is still found.
"$sinkproof" run synthetic:tiny --tokens random:12,seed=5 --policy f32 --trace "$work/t.safetensors" \
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
exits 3 "the same trace beside other weights" judge synthetic:tiny,seed=9 "$work/t.safetensors" --policy f32
contains err "is a trace of another model: its metadata name the fingerprint"
"$sinkproof" run synthetic:tiny --tokens random:3,seed=5 --policy f32 --trace "$work/three.safetensors" >"$work/out" 2>&1
exits 1 "and on them, if any model will do" judge synthetic:tiny,seed=9 "$work/three.safetensors" --policy f32 --any-model
contains out "Another model: the trace's metadata name fingerprint"
contains out "First divergence: T0"
contains out "T0: unknown: no known mistake explains it, and no pair"
contains out "(no pairs: none was found where they were tried before)"
grep -q 'of layers 1-2: undecided:' "$work/out"
report $? "and later layers are not searched in pairs again"
contains out "of layer 3: not looked into; what explains"
fits_100
cat >"$work/nudge.py" <<'PY'
# The logits of a float32 trace, changed in the way that is named.
import json, random, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
n = struct.unpack("<Q", data[:8])[0]
begin, end = (8 + n + o for o in json.loads(data[8:8 + n])["F2"]["data_offsets"])
random.seed(7)
change = {"lean": lambda x: struct.pack("<f", x * (1 + 1e-7)),
          "noise": lambda x: struct.pack("<I", struct.unpack("<I", struct.pack("<f", x))[0] & ~63 | random.randrange(64))}
for at in range(begin, end, 4):
    data[at:at + 4] = change[sys.argv[3]](struct.unpack("<f", data[at:at + 4])[0])
open(sys.argv[2], "wb").write(data)
PY
for change in lean noise; do
    python3 "$work/nudge.py" "$work/t.safetensors" "$work/nudged.safetensors" $change
    exits 4 "logits changed: $change" judge synthetic:tiny "$work/nudged.safetensors" --policy f32 --local
    contains out "First suspicion: F2."
    case $change in
        lean) contains out "Errors lean one way" ;;
        noise)
            contains out "elements are unlikely: outside the likely set"
            contains out "Errors are too large"
            ;;
    esac
    fits_100
done
exits 1 "float32 declared as binary64" judge synthetic:tiny "$work/t.safetensors" --policy real-f64 --no-hint \
    --no-diagnosis

# Both hold bfloat16; what the residual stream is stored in tells them apart.
for policy in bf16-operands openai-bf16; do
    "$sinkproof" run synthetic:tiny --tokens random:12,seed=5 --policy $policy \
        --trace "$work/auto.safetensors" >"$work/out" 2>&1
    exits 0 "a trace under $policy" judge synthetic:tiny "$work/auto.safetensors" --local
    contains out "auto: $policy fits"
done

"$sinkproof" info --policy openai-bf16,M8.alpha=bf16 >"$work/policy"
exits 0 "a policy in a file, as info prints it" judge $vectors/small $vectors/small/trace-bf16.safetensors \
    --policy "@$work/policy"

# Half a trace: what it cannot decide it names with the remedy, and only a trace that decides nothing,
# or --strict, raises the exit code.
half() { # policy, points, how many tokens (24)
    "$sinkproof" run synthetic:tiny --tokens "random:${3-24},seed=4" --policy "$1" --points "$2" \
        --trace "$work/half.safetensors" >"$work/out" 2>&1
}
for policy in f32 bf16 openai-bf16 hf-bf16 f16; do
    for points in A13,M12 A13,M3,M12; do
        half $policy $points
        exits 0 "$points under $policy" judge synthetic:tiny "$work/half.safetensors" --policy $policy --local
        ! grep -q 'explains all' "$work/out"
        report $? "and no hint where nothing fails"
    done
done
half f32 F2
exits 4 "logits alone" judge synthetic:tiny "$work/half.safetensors" --policy f32
contains out "Verdict under f32: undecided (exit 4)."
contains out "This trace decides nothing; add A13, M3 and M12."
contains out "where that arose is not told: its inputs are not traced"
contains out ">240"
half f32 00.A13,00.M3,00.M12,01.A13,01.M3,01.M12,F1,F2
exits 0 "two of four layers, and the logits" judge synthetic:tiny "$work/half.safetensors" --policy f32
contains out "F1 undecided: layers 2-3 are not traced; add M12 of layer 3"
contains out "1 of 8 points undecided (exit 0)."
exits 4 "the same, strictly" judge synthetic:tiny "$work/half.safetensors" --policy f32 --strict
half f32 00.A13,00.M3,00.M12,01.A13,01.M3,01.M12,F1,F2,03.M12
exits 0 "with what was asked for" judge synthetic:tiny "$work/half.safetensors" --policy f32
contains out "M12 of layer 3 undecided: layer 2 is not traced; add A13, M3 of layer 3"
half f32 00.A13,00.M3,00.M12,01.A13,01.M3,01.M12,F2
exits 0 "the logits alone of what lies behind" judge synthetic:tiny "$work/half.safetensors" --policy f32
contains out "F2 undecided: layers 2-3 are not traced; add M12 of layer 3"
half f32,M8.alpha=bf16 A13,M3,M12 64
exits 4 "a rounded constant, bridged" judge synthetic:tiny "$work/half.safetensors" --policy f32
contains out "One override explains all of it (4 points): --policy f32,M8.alpha=bf16"
contains out "Verdict under f32: suspicious (exit 4)."
fits_100
exits 0 "under what the hint says" judge synthetic:tiny "$work/half.safetensors" --policy f32,M8.alpha=bf16
exits 1 "an override that repeats the policy's explains nothing" judge $vectors/small \
    $vectors/small/trace-f32.safetensors --policy openai-bf16,M8.alpha=bf16 --no-diagnosis
! grep -q -i 'override.* explain' "$work/out" && grep -Eq '^Another policy explains .*: --policy f32$' "$work/out"
report $? "and no hint repeats what the policy says; what the trace is, is another one"

# A number that is none, and numbers that were saved wider than they are.
half f32 T0,A13,M3,M12
cat >"$work/nan.py" <<'PY'
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
n = struct.unpack("<Q", data[:8])[0]
at = json.loads(data[8:8 + n])["00.A13"]["data_offsets"][0] + 4 * int(sys.argv[2])
struct.pack_into("<f", data, 8 + n + at, float("nan"))
open(sys.argv[1], "wb").write(data)
PY
python3 "$work/nan.py" "$work/half.safetensors" 0
exits 1 "one element that is NaN" judge synthetic:tiny "$work/half.safetensors" --policy f32
grep -Eq '^  A13 of layer 0: one of [0-9]+ elements, no finite number: all others are inside' "$work/out"
report $? "and it is one of so many"
python3 "$work/nan.py" "$work/half.safetensors" 1
exits 1 "several traces: the worst verdict wins" judge synthetic:tiny "$work/t.safetensors" \
    "$work/half.safetensors" "$work/t.safetensors" --policy f32 --local --no-hint --no-diagnosis
exits 1 "an engine that yields NaN" judge synthetic:tiny "$work/half.safetensors" --policy f32
contains out "First divergence: 00.A13."
contains out "2 NaN; the set is bounded at (0, 0)"
grep -Eq '^  A13 of layer 0: undecided: searched [1-9][0-9] of [0-9]{4,} suppositions, none explains it' "$work/out"
report $? "and how few of the suppositions were searched"
contains out "(of what reaches a NaN or an infinity, only what may overflow was tried)"
"$sinkproof" run synthetic:tiny --tokens random:12,seed=5 --policy openai-bf16 \
    --trace "$work/narrow.safetensors" >"$work/out" 2>&1
cat >"$work/widen.py" <<'PY'
# Saves the bfloat16 tensors of a trace as float32, as .float() does.
import json, struct, sys
data = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header, body, out = json.loads(data[8:8 + n]), data[8 + n:], bytearray()
for name, t in header.items():
    if name == "__metadata__":
        continue
    raw = body[slice(*t["data_offsets"])]
    if t["dtype"] == "BF16":
        raw = b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2))
        t["dtype"] = "F32"
    elif t["dtype"] == "F32":
        raw = struct.pack(f"<{len(raw) // 4}d", *struct.unpack(f"<{len(raw) // 4}f", raw))
        t["dtype"] = "F64"
    t["data_offsets"] = [len(out), len(out) + len(raw)]
    out += raw
text = json.dumps(header).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + out)
PY
python3 "$work/widen.py" "$work/narrow.safetensors" "$work/wide.safetensors"
exits 0 "bfloat16 saved as float32" judge synthetic:tiny "$work/wide.safetensors" --local
contains out "every value is a bf16 number, though stored wider"
contains out "auto: openai-bf16 fits"

# What auto must not presume: that a trace is stored as its engine computes.
auto_fits() { # policy that must fit, how often the trace is saved wider, arguments of run
    fits=$1
    times=$2
    shift 2
    "$sinkproof" run synthetic:tiny --tokens random:8,seed=5 --trace "$work/auto.safetensors" "$@" >"$work/out" 2>&1
    while [ "$times" -gt 0 ]; do
        python3 "$work/widen.py" "$work/auto.safetensors" "$work/auto.safetensors"
        times=$((times - 1))
    done
    exits 0 "auto: $*, saved as it is judged" judge synthetic:tiny "$work/auto.safetensors" --local
    contains out "auto: $fits fits"
}
auto_fits f32 1 --policy f32
auto_fits f32 0 --policy f32,M9=real
auto_fits bf16 1 --policy bf16,A6=f32,A12=f32,F2=f32
auto_fits bf16 2 --policy bf16,A6=f32,A12=f32,F2=f32
auto_fits vllm-bf16 0 --policy vllm-bf16
auto_fits vllm-bf16 1 --policy vllm-bf16
auto_fits bf16-operands 0 --policy bf16-operands --points 00.A2.q,00.A4.q,00.M5,00.M8,01.M1
# Slots of which the experts are not known: undecided, and named.
"$sinkproof" run synthetic:tiny --tokens random:8,seed=5 --policy hf-bf16 --points 00.M5,01.M8 \
    --trace "$work/slots.safetensors" >"$work/out" 2>&1
exits 4 "M5 and M8 of experts that are not known" judge synthetic:tiny "$work/slots.safetensors" --policy hf-bf16
contains out "This trace decides nothing; add A13, M3 and M12."

# Operands rounded to bfloat16 in an engine that is declared float32: one cause, named first.
"$sinkproof" run synthetic:tiny --tokens random:12,seed=5 --policy bf16-operands \
    --trace "$work/narrow.safetensors" >"$work/out" 2>&1
python3 "$work/widen.py" "$work/narrow.safetensors" "$work/operands.safetensors"
exits 1 "bf16 operands declared as f32" judge synthetic:tiny "$work/operands.safetensors" --policy f32
sed -n 3p "$work/out" | grep -Eq '^Another policy explains all of it \([0-9]+ points\): --policy bf16-operands$'
report $? "and the report begins with the cause"
"$sinkproof" run synthetic:tiny --tokens random:12,seed=5 --policy hf-bf16 --trace "$work/hf.safetensors" >"$work/out" 2>&1
python3 "$work/widen.py" "$work/hf.safetensors" "$work/hf32.safetensors"
for declared in f32 openai-bf16; do
    exits 1 "hf-bf16 saved as float32, declared as $declared" judge synthetic:tiny "$work/hf32.safetensors" \
        --policy $declared --local --no-diagnosis
    sed -n 3p "$work/out" | grep -Eq '^Another policy explains all of it \([0-9]+ points\): --policy hf-bf16$'
    report $? "the report begins with the policy that it is"
done

# The parts of an error: engine - truth = what arose here + what was inherited, by the triangle.
"$sinkproof" judge synthetic:tiny "$work/t.safetensors" --policy f32 --json "$work/parts.json" >"$work/out"
python3 - "$work/parts.json" <<'PY'
import json, sys
parts = [p for p in json.load(open(sys.argv[1]))["results"][1:] if p.get("error")]
u = 2.0 ** -53
for p in parts:
    e, l, i = p["error"], p["local"], p["inherited"]
    # Squares are summed in binary64: n of them err by n u, their root by half of that.
    slack = (1 + p["elements"] * u) * (1 + 8 * u)
    assert e <= (l + i) * slack and l <= (e + i) * slack and i <= (e + l) * slack, p
assert len(parts) > 60 and all(p["local"] > 0 for p in parts if p["id"].endswith("A1"))
PY
report $? "error, local and inherited obey the triangle at every point"

awk '/^F[12] .*[|]/ { print $1, $(NF - 2) }' "$work/out" >"$work/noise"
python3 - "$work/parts.json" "$work/noise" <<'PY'
import json, sys
power = {p["id"]: p["power_noise_ulp"] for p in json.load(open(sys.argv[1]))["results"][1:]}
shown = dict(line.split() for line in open(sys.argv[2]))
assert shown == {p: f"{power[p]:.2g}" for p in ("F1", "F2")}, (shown, power["F1"], power["F2"])
PY
report $? "the column noise is what the JSON says"

# Scores of hundreds (YaRN's concentration grows with the logarithm of the factor), where forms part:
# the reference's exact weights fit each of them, those from a float32 LSE in base 2 one alone.
cat >"$work/steep.json" <<'JSON'
{"num_hidden_layers": 1, "num_experts": 8, "experts_per_token": 2, "vocab_size": 97, "hidden_size": 64,
 "intermediate_size": 32, "head_dim": 16, "num_attention_heads": 4, "num_key_value_heads": 2,
 "sliding_window": 64, "initial_context_length": 4096, "rope_scaling_factor": 1e30}
JSON
"$sinkproof" run "synthetic:$work/steep.json" --tokens random:60,seed=4 --policy f32 --points A6,A9,M4,M8 \
    --trace "$work/steep.safetensors" >"$work/out" 2>&1
python3 - "$work/steep.safetensors" "$work/lse.safetensors" <<'PY'
import json, math, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
size = struct.unpack("<Q", data[:8])[0]
header, log2_e = json.loads(data[8:8 + size]), 1.44269504
f32 = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
place = lambda name, i: 8 + size + header[name]["data_offsets"][0] + 4 * i
heads, n, _ = header["00.A6"]["shape"]
for row in range(heads * n):
    keys = range(row % n + 1)
    s = [struct.unpack_from("<f", data, place("00.A6", row * n + j))[0] for j in keys]
    known = max(keys, key=lambda j: s[j])  # exact weights tell the sum, the sink's share with it
    weight = struct.unpack_from("<f", data, place("00.A9", row * (n + 1) + known))[0]
    lse = f32(f32(s[known] - math.log(weight)) * f32(log2_e))
    for j in keys:
        y = f32(s[j] * f32(log2_e) - lse)
        struct.pack_into("<f", data, place("00.A9", row * (n + 1) + j), 2.0 ** y)
open(sys.argv[2], "wb").write(data)
PY
exits 0 "weights from an LSE in base 2" judge "synthetic:$work/steep.json" "$work/lse.safetensors" \
    --policy f32 --local --forms --json "$work/forms.json"
contains out "A9 fits one form only: lse-subtracted (not definition, base-2, running-max, lse-gated)."
[ "$(grep -c ' fits ' "$work/out")" = 1 ]
report $? "and of the stages that fit several forms nothing is said"
fits_100
python3 - "$work/forms.json" <<'PY'
import json, sys
assert json.load(open(sys.argv[1]))["results"][0]["forms"] == \
    {"A9.form": "lse-subtracted", "M4.form": None, "M8.form": None}
PY
report $? "and the JSON names it"
exits 0 "the reference's own weights" judge "synthetic:$work/steep.json" "$work/steep.safetensors" \
    --policy f32 --local --forms --all
contains out "A9 fits several forms: definition, base-2, running-max, lse-subtracted, lse-gated."
contains out "M8 fits several forms: sigmoid, tanh."
exits 0 "the same, not asked" judge "synthetic:$work/steep.json" "$work/lse.safetensors" --policy f32 --local
! grep -q ' fits one' "$work/out"
report $? "and no form is named"

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
