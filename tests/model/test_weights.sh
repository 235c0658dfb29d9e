#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# Weights that an engine keeps narrower than the container does: run and judge agree under weights=f16
# and weights=bf16, a judge that is not told convicts, and a weight that would be infinite is refused
# by name. The container is float32, so that every weight has bits to lose.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh

contains() { # file, text that it must hold
    grep -q -F -e "$2" "$work/$1"
    report $? "and says: $2"
}

widened() { # directory out, the largest weight of one tensor (or nothing): BF16 becomes F32, with more bits
    mkdir -p "$1"
    cp "$work/hf/config.json" "$1"
    python3 - "$work/hf/model.safetensors" "$1/model.safetensors" "${2:-}" <<'PY'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header, body = json.loads(data[8:8 + n]), data[8 + n:]
out, made, at = {}, [], 0
for name, entry in header.items():
    if name == "__metadata__":
        continue
    a, b = entry["data_offsets"]
    raw = body[a:b]
    if entry["dtype"] == "BF16":
        values = [struct.unpack("<f", b"\0\0" + raw[k:k + 2])[0] * (1 + (k // 2 % 13 + 1) * 2.0**-12)
                  for k in range(0, len(raw), 2)]
        if sys.argv[3] and name == "model.layers.1.self_attn.o_proj.weight":
            values[5] = float(sys.argv[3])
        raw = struct.pack("<%df" % len(values), *values)
        entry["dtype"] = "F32"
    out[name] = dict(entry, data_offsets=[at, at + len(raw)])
    made.append(raw)
    at += len(raw)
text = json.dumps(out).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + b"".join(made))
PY
}

exits 0 "a checkpoint to widen" synth synthetic:tiny --layout hf --dequantize --out "$work/hf"
widened "$work/f32"
for format in f16 bf16; do
    exits 0 "run with weights=$format" run "$work/f32" --tokens random:24,seed=3 --policy $format,weights=$format \
        --trace "$work/$format.safetensors"
    exits 0 "judged as it was run" judge "$work/f32" "$work/$format.safetensors" --policy $format,weights=$format
    exits 1 "judged with the weights as they are stored" judge "$work/f32" "$work/$format.safetensors" \
        --policy $format --no-hint
    contains out "First divergence: 00.A"
done
exits 1 "and with the other format's" judge "$work/f32" "$work/f16.safetensors" --policy f16,weights=bf16 --no-hint
exits 0 "MXFP4 experts are decoded and rounded too" run synthetic:tiny --tokens random:9 --policy f16,weights=f16 \
    --trace "$work/mxfp4.safetensors"
exits 0 "and judged so" judge synthetic:tiny "$work/mxfp4.safetensors" --policy f16,weights=f16

widened "$work/large" 70000
exits 0 "a weight of 70000 in float32" run "$work/large" --tokens random:3 --policy f32
exits 3 "and in float16" run "$work/large" --tokens random:3 --policy f16,weights=f16
contains err "model.layers.1.self_attn.o_proj.weight: row 0 holds 70"
contains err "infinite in f16"
exits 3 "refused by the judge too" judge "$work/large" "$work/f16.safetensors" --policy f16,weights=f16 \
    --any-model
contains err "o_proj.weight"
exits 2 "the lane arithmetic has the weights as they are stored" run synthetic:tiny --tokens random:3 --engine lanes \
    --policy f32,weights=f16
contains err "weights=f16"
exits 2 "a running maximum is what it computes" run synthetic:tiny --tokens random:3 --engine lanes \
    --policy f32,A9.form=definition
contains err "A9.form=running-max"
exits 2 "the reference computes the definition" run synthetic:tiny --tokens random:3 --policy f32,A9.form=base-2
contains err "A9.form=definition"

tap_done
