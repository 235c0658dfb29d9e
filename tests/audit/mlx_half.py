# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What mlx-lm does in bfloat16 or float16 on a CPU, operation by operation, against a trace of it.

    python tests/audit/mlx_half.py MODEL TRACE

Each line says how many elements of a point of layer 0 these steps give to the bit, and of how many; the exit
is 1 when one is missing. r() rounds to the trace's format T:

  A1   r(r(x s) w), the reciprocal root s in float32
  A4   x' = r(x r(c)) first, c the concentration; then r(r(x'1 cos) - r(x'2 sin)), cos and sin in T without it
  M6   each block of 32: g = r(g + r(x_k w_k)), w_k of MXFP4 without its scale; then a = r(a + r(scale g)); last
       r(a + bias)
  M8   a = r(r(1.702) gate), e = r(exp |a|), y = 1 / (1 + e) not rounded, sigmoid r(y) or r(1 - y), then products
"""
import json
import struct
import sys

import ml_dtypes
import numpy as np

F32 = np.float32
FP4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], F32)
DTYPES = {"BF16": ml_dtypes.bfloat16, "F16": np.float16, "F32": F32, "U8": np.uint8, "I32": np.int32}


def tensors(path):
    """{name: array} of a safetensors file."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head, data = json.loads(file.read(size)), file.read()
    return {name: np.frombuffer(data[slice(*told["data_offsets"])], DTYPES[told["dtype"]]).reshape(told["shape"])
            for name, told in head.items() if name != "__metadata__"}


def rounder(dtype):
    return lambda x: np.asarray(x, F32).astype(dtype).astype(F32)


def norm(r, x, w):
    mean = np.mean(x.astype(np.float64) ** 2, axis=-1, keepdims=True)
    return r(r(x * (1 / np.sqrt(mean + 1e-5)).astype(F32)) * r(w))


def frequencies(scaling, theta, dim):
    """As mlx-lm makes them: periods in float32, the ends of the ramp rounded to whole dimensions."""
    def end(turns):
        return dim * np.log(scaling["original_max_position_embeddings"] / (turns * 2 * np.pi)) / (2 * np.log(theta))
    low, high = max(np.floor(end(scaling["beta_fast"])), 0), min(np.ceil(end(scaling["beta_slow"])), dim - 1)
    own = (theta ** (np.arange(0, dim, 2, dtype=F32) / F32(dim))).astype(F32)
    longer = (F32(scaling["factor"]) * own).astype(F32)
    keep = (1 - np.clip((np.arange(dim // 2, dtype=F32) - F32(low)) / F32(high - low), 0, 1)).astype(F32)
    return (1 / ((longer * own) / (longer * keep + own * (1 - keep)))).astype(F32)


def rotated(r, x, scaling, theta):
    angle = np.arange(len(x), dtype=F32)[:, None] * frequencies(scaling, theta, x.shape[-1])[None]
    cos, sin = r(np.cos(angle))[:, None], r(np.sin(angle))[:, None]
    x = r(x * r(0.1 * np.log(scaling["factor"]) + 1))
    one, two = np.split(x, 2, axis=-1)
    return np.concatenate([r(r(one * cos) - r(two * sin)), r(r(one * sin) + r(two * cos))], axis=-1)


def packed_product(r, x, blocks, scales, bias):
    """One expert's rows times one token."""
    w = np.stack([FP4[blocks & 15], FP4[blocks >> 4]], axis=-1).reshape(*blocks.shape[:-1], 32)
    scale, total = np.exp2(scales.astype(F32) - 127), np.zeros(len(blocks), F32)
    for block in range(w.shape[1]):
        own = np.zeros(len(blocks), F32)
        for k in range(32):
            own = r(own + r(x[32 * block + k] * w[:, block, k]))
        total = r(total + r(scale[:, block] * own))
    return r(total + r(bias))


def activation(r, m6):
    gate, up = np.minimum(m6[..., ::2], 7), np.clip(m6[..., 1::2], -7, 7)
    a = r(r(1.702) * gate)
    y = (1 / (1 + r(np.exp(np.abs(a))))).astype(F32)
    return r(r(up + 1) * r(gate * r(np.where(a < 0, y, 1 - y))))


def main(model, trace):
    held, found = tensors(f"{model}/model.safetensors"), tensors(trace)
    with open(f"{model}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    r, layer = rounder(found["00.A1"].dtype), "model.layers.0."
    point = {name: array.astype(F32) for name, array in found.items()}
    experts = [held[f"{layer}mlp.experts.gate_up_proj_{part}"] for part in ("blocks", "scales", "bias")]
    rows = [(i, j) for i in range(0, len(point["T0"]), 4) for j in range(config["num_experts_per_tok"])]
    steps = {
        "A1": norm(r, point["T0"], held[f"{layer}input_layernorm.weight"].astype(F32)),
        "A4.q": rotated(r, point["00.A2.q"], config["rope_scaling"], config["rope_theta"]),
        "A4.k": rotated(r, point["00.A2.k"], config["rope_scaling"], config["rope_theta"]),
        "M6": np.stack([packed_product(r, point["00.M1"][i], *(part[found["00.M3"][i, j]] for part in experts))
                        for i, j in rows]),
        "M8": activation(r, point["00.M6"])}
    missed = 0
    for name, array in steps.items():
        seen = point[f"00.{name}"] if name != "M6" else np.stack([point["00.M6"][i, j] for i, j in rows])
        same = int((seen == array).sum())
        missed += same != seen.size
        print(f"{name} {same} of {seen.size}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
