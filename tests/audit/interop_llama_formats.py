# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""llama.cpp on Llama in ggml's formats, each judged by llama-cpp; and on SmolLM2, where `make smollm2` brought it.

    python tests/audit/interop_llama_formats.py --quantise FORMAT FROM.gguf TO.gguf     in the engine's environment

A part of interop_llama.py. ggml's own encoder writes the weights of a drawn model, whose rows are long enough for blocks
of 256. A run that holds is also judged as if its products read float32: then each projection must be outside.
"""
import ctypes
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "audit", "python"), os.path.join(ROOT, "tests", "shared")]

FORMATS = {"Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14}
MODEL = {"model_type": "llama", "hidden_act": "silu", "num_hidden_layers": 2, "vocab_size": 211, "hidden_size": 256,
         "intermediate_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
         "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False}
SMOLLM2 = os.path.join(ROOT, "build/models/smollm2.gguf")
PRODUCTS = {"A2.q", "A2.k", "A2.v", "A12", "M6", "M10"}


def quantise(name, source, path):
    import numpy as np
    from gguf_file import Gguf
    from sinkproof.adapters import _llama_c
    encode = _llama_c.Library().c.ggml_quantize_chunk
    encode.restype, encode.argtypes = ctypes.c_size_t, [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3,
                                                        ctypes.c_void_p]
    file = Gguf(source)
    for tensor, (kind, dims, data) in file.tensors.items():
        if len(dims) == 2 and kind == 0:
            numbers = np.frombuffer(data, "<f4").copy()
            room = np.zeros(2 * len(data), np.uint8)
            used = encode(FORMATS[name], numbers.ctypes.data, room.ctypes.data, 0, dims[1], dims[0], None)
            file.tensors[tensor] = (FORMATS[name], dims, room[:used].tobytes())
    file.write(path)


def run(python, work, model, tokens, options):
    import engines
    trace = os.path.join(work, "format.safetensors")
    ran = engines.command([python, "-m", "sinkproof.trace", "llama", model, "--tokens", tokens, "--out", trace, *options])
    if ran.returncode:
        raise ValueError(ran.stderr[-300:])
    return trace


def judged(tap, text, model, trace, policy):
    """The run holds; without the rounding of its operands every projection of it is outside."""
    import engines
    code, report = engines.judged(model, trace, policy)
    bare, other = engines.judged(model, trace, "f32,A5.q=f16,A5.k=f16,A11.v=f16,A11.weights=f16")
    outside = set(engines.points_of(other))
    tap.report(code == 0 and bare == 1 and PRODUCTS <= outside, f"llama.cpp {text}: exit {code} under {policy}; read as "
               f"float32 {len(outside & PRODUCTS)} of {len(PRODUCTS)} projections are outside",
               [str(engines.points_of(report)), str(sorted(outside))])


def formats(tap, python, work):
    import engines
    config, source = os.path.join(work, "llama.json"), os.path.join(work, "llama.gguf")
    with open(config, "w", encoding="utf-8") as out:
        json.dump(MODEL, out)
    engines.command([engines.SINKPROOF, "synth", f"synthetic:{config}", "--layout", "gguf", "--dense", "f32", "--out", source])
    for name in FORMATS:
        path = os.path.join(work, f"{name}.gguf")
        made = engines.command([python, os.path.abspath(__file__), "--quantise", name, source, path])
        if not tap.report(made.returncode == 0, f"ggml writes {name}", [made.stderr[-300:]]):
            continue
        for options in ([], ["--no-repack", "--prefill", "20"]):
            trace = run(python, work, path, "random:40,seed=3", options)
            judged(tap, f"{name} {' '.join(options)}".strip(), path, trace, "llama-cpp")
    if not os.path.exists(SMOLLM2):
        tap.skip("llama.cpp on smollm2", "build/models/smollm2.gguf is not there: make smollm2 brings it")
        return
    for options in ([], ["--no-repack", "--prefill", "9"], ["--flash", "--threads", "2"]):
        trace = run(python, work, SMOLLM2, "random:24,seed=5", options)
        judged(tap, f"smollm2 {' '.join(options)}".strip(), SMOLLM2, trace, "llama-cpp-flash" if "--flash" in options else "llama-cpp")


if __name__ == "__main__":
    quantise(*sys.argv[2:])
