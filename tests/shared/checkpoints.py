# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Checkpoints of any shape for the tests: Hugging Face's layout, experts in bfloat16, random weights; and helpers of
those tests: running the command, a folder for each part.
"""
import array
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import tempfile

from tap import Tap

TAP = Tap()
report = TAP.report
PROGRAM = os.environ.get("SINKPROOF", "build/release/sinkproof")
SMALL = {"num_hidden_layers": 2, "num_local_experts": 3, "num_experts_per_tok": 2, "vocab_size": 17,
         "hidden_size": 32, "intermediate_size": 32, "head_dim": 8, "num_attention_heads": 4,
         "num_key_value_heads": 2, "sliding_window": 4, "max_position_embeddings": 131072}
STATED = {"model_type": "gpt_oss", "hidden_act": "silu", "attention_bias": True,
          "tie_word_embeddings": False, "rms_norm_eps": 1e-5, "swiglu_alpha": 1.702,
          "swiglu_limit": 7.0, "rope_theta": 150000.0,
          "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                           "original_max_position_embeddings": 4096, "truncate": False}}


def safetensors(tensors, metadata=None):
    """A file of {name: (dtype, shape, bytes)}."""
    header, offset = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def read(path):
    """({name: (dtype, shape, bytes)}, the metadata or None) of a safetensors file."""
    raw = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:start])
    metadata = header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], raw[start + t["data_offsets"][0]:start + t["data_offsets"][1]])
            for name, t in header.items()}, metadata


CODES = {"F64": "d", "F32": "f", "F16": "e", "I32": "i", "I64": "q"}


def as_float32(raw):
    """Bytes of bfloat16 as the bytes of the float32 numbers whose upper halves they are."""
    return b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2))


def numbers_of(dtype, raw):
    """The numbers in a tensor's bytes."""
    if dtype == "BF16":
        dtype, raw = "F32", as_float32(raw)
    code = CODES[dtype]
    return struct.unpack(f"<{len(raw) // struct.calcsize(code)}{code}", raw)


def read_f64(path):
    """{name: (shape, numbers)} of a file's binary64 tensors: a trace over the reals."""
    return {name: (shape, numbers_of(dtype, raw)) for name, (dtype, shape, raw) in read(path)[0].items()
            if dtype == "F64"}


def changed(path, name, at, value, out):
    """Copies a file with one number of a tensor replaced."""
    tensors, metadata = read(path)
    dtype, shape, raw = tensors[name]
    number = struct.pack(f"<{CODES[dtype]}", value)
    start = at * len(number)
    tensors[name] = dtype, shape, raw[:start] + number + raw[start + len(number):]
    out.write_bytes(safetensors(tensors, metadata))
    return out


def widened(path, wider):
    """Saves a file's numbers in a wider format, F32 or F64, as .float().numpy() and numpy's default do."""
    tensors, metadata = read(path)
    for name, (dtype, shape, raw) in tensors.items():
        if dtype in ("BF16", "F16") or dtype == "F32" != wider:
            values = numbers_of(dtype, raw)
            tensors[name] = wider, shape, struct.pack(f"<{len(values)}{CODES[wider]}", *values)
    path.write_bytes(safetensors(tensors, metadata))


def shapes(c):
    """{name: (shape, spread)}, with spreads for which every sum has size 1."""
    hidden, inter, experts, dim = c["hidden_size"], c["intermediate_size"], c["num_local_experts"], c["head_dim"]
    q, kv, vocab = c["num_attention_heads"] * dim, c["num_key_value_heads"] * dim, c["vocab_size"]
    yield "model.embed_tokens.weight", [vocab, hidden], 1
    for layer in range(c["num_hidden_layers"]):
        for name, shape, cols in (
                ("input_layernorm.weight", [hidden], 1),
                ("self_attn.q_proj.weight", [q, hidden], hidden), ("self_attn.q_proj.bias", [q], 4),
                ("self_attn.k_proj.weight", [kv, hidden], hidden), ("self_attn.k_proj.bias", [kv], 4),
                ("self_attn.v_proj.weight", [kv, hidden], hidden), ("self_attn.v_proj.bias", [kv], 4),
                ("self_attn.sinks", [c["num_attention_heads"]], 1),
                ("self_attn.o_proj.weight", [hidden, q], q), ("self_attn.o_proj.bias", [hidden], 4),
                ("post_attention_layernorm.weight", [hidden], 1),
                ("mlp.router.weight", [experts, hidden], hidden), ("mlp.router.bias", [experts], 4),
                ("mlp.experts.gate_up_proj", [experts, hidden, 2 * inter], hidden),
                ("mlp.experts.gate_up_proj_bias", [experts, 2 * inter], 4),
                ("mlp.experts.down_proj", [experts, inter, hidden], inter),
                ("mlp.experts.down_proj_bias", [experts, hidden], 4)):
            yield f"model.layers.{layer}.{name}", shape, 1 / math.sqrt(cols)
    yield "model.norm.weight", [hidden], 1
    yield "lm_head.weight", [vocab, hidden], 1 / math.sqrt(hidden)


def weights(config, seed=1, change=lambda name, shape, numbers: numbers):
    """{name: ("BF16", shape, bytes)}: uniform numbers, changed by `change`, cut to bfloat16."""
    draw, out = random.Random(seed).random, {}
    for name, shape, spread in shapes(config):
        count = math.prod(shape)
        drawn = [spread * (3.4 * draw() - 1.7) for _ in range(count)]
        halves = array.array("H", struct.pack(f"<{count}f", *change(name, shape, drawn)))
        out[name] = ("BF16", shape, halves[1::2].tobytes())
    return out


def write(folder, tensors, config):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(safetensors(tensors))
    return str(folder)


def sinkproof(*words, **variables):
    ran = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=600,
                         env=os.environ | variables)
    return ran.returncode, ran.stdout, ran.stderr.strip()


def run(*parts):
    """Runs each part with a folder of its own; returns the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            work = pathlib.Path(folder) / part.__name__
            work.mkdir()
            part(work)
    return TAP.done()
