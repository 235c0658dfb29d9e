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

# A kernel for single tokens that leaves out the sink, behind a prompt of nine: A11 over the weights' sum.
exits 0 "a run with weights" run synthetic:tiny --policy f32 --tokens random:12,seed=3 --points 00.A2.v,00.A4.q,00.A4.k,00.A9,00.A11 \
    --trace "$work/weights.safetensors"
cat >"$work/forget.py" <<'END'
# The trace without A9, and A11 without the sink at the positions [first, end).
import json, struct, sys
source, out, first, end = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
data = open(source, "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header, kept, body = json.loads(data[8:8 + size]), {}, bytearray()
values = {name: bytearray(data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
          for name, t in header.items() if name != "__metadata__"}
for name, t in header.items():
    if name.endswith(".A11"):
        n, heads, dim = t["shape"]
        for i, h in ((i, h) for i in range(first, end) for h in range(heads)):
            total = sum(struct.unpack_from(f"<{n}f", values[name.replace("A11", "A9")], 4 * (h * n + i) * (n + 1)))
            row = f"<{dim}f", 4 * (i * heads + h) * dim
            struct.pack_into(row[0], values[name], row[1],
                             *(x / total for x in struct.unpack_from(row[0], values[name], row[1])))
for name, t in header.items():
    if name == "__metadata__" or not name.endswith(".A9"):
        kept[name] = t
    if name in values and name in kept:
        t["data_offsets"] = [len(body), len(body) + len(values[name])]
        body += values[name]
text = json.dumps(kept).encode()
open(out, "wb").write(struct.pack("<Q", len(text)) + text + body)
END
for rows in "9 12,from position 9 on" "0 9,at positions 0-8 alone" "4 5,at position 4 alone"; do
    python3 "$work/forget.py" "$work/weights.safetensors" "$work/decode.safetensors" ${rows%%,*}
    exits 1 "the sink left out ${rows#*,}" judge synthetic:tiny "$work/decode.safetensors" --policy f32 --local --no-hint
    contains out "A11 of layer 0: explained ${rows#*,}, every element is inside"
    contains out "the sink is left out [sink-dropped]"
done

# An engine whose window is one key too wide shows it with nine tokens.
exits 0 "the tiny model as files" synth synthetic:tiny --out "$work/right"
cp -r "$work/right" "$work/wide"
sed -i 's/"sliding_window": 8/"sliding_window": 9/' "$work/wide/config.json"
exits 3 "an engine of another model" judge "$work/right" --policy f32 --tokens random:30,seed=1 \
    --bisect "$sinkproof run $work/wide --policy f32 --tokens {tokens} --trace {out} >/dev/null 2>&1"
contains err "is a trace of another model"
exits 1 "a bisection" judge "$work/right" --policy f32 --tokens random:30,seed=1 --any-model \
    --bisect "$sinkproof run $work/wide --policy f32 --tokens {tokens} --trace {out} >/dev/null 2>&1"
contains out "30 tokens: fails"
contains out "The mistake shows with 9 tokens and not with the first 8 of them."
contains out "the window is one key too wide [window-wide]"
contains out "--trace trace.safetensors"
contains out "trace.safetensors --policy f32 --any-model"
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
