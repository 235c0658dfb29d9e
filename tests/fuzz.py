# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Runs libFuzzer targets side by side from a corpus of small honest files; TAP on stdout.

    python3 tests/fuzz.py BUILD SECONDS FUZZER...

Seeds: every small file below tests/vectors, and what seeds() makes (a
safetensors file, a sharded index, a trace, configurations, GGUF files). A crash, a leak, a hang of ten seconds
or 2 GiB of memory is a failure; the input that did it stays in BUILD/fuzz.
"""
import concurrent.futures
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LARGEST = 1 << 16


def safetensors(tensors, metadata=None, values=b""):
    """A file with the given {name: (dtype, shape, bytes per element)}: the given bytes, then zeros."""
    header, offset = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, width) in tensors.items():
        size = width
        for extent in shape:
            size *= extent
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + values + bytes(offset - len(values))


def gguf(keys, tensors, alignment=32):
    """A file of the {key: (type, bytes)} and of zeros for the {name: (ggml's type, dimensions, bytes)}."""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()
    out, offset = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys)), 0
    for key, (kind, value) in keys.items():
        out += text(key) + struct.pack("<I", kind) + value
    for name, (kind, dims, size) in tensors.items():
        out += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
        offset += -(-size // alignment) * alignment
    return out + bytes(-len(out) % alignment) + bytes(offset)


def gguf_seeds():
    word = struct.pack("<Q", 4) + b"yarn"
    numbers = {f"k{kind}": (kind, bytes(size)) for kind, size in
               ((0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (7, 1), (10, 8), (11, 8), (12, 8))}
    yield "gguf-values", gguf(numbers | {"text": (8, word)}, {})
    yield "gguf-arrays", gguf({"numbers": (9, struct.pack("<IQ3I", 4, 3, 1, 2, 3)),
                               "words": (9, struct.pack("<IQ", 8, 2) + word + word),
                               "nested": (9, struct.pack("<IQ", 9, 2) + struct.pack("<IQI", 4, 1, 7)
                                          + struct.pack("<IQ", 8, 1) + word)}, {})
    yield "gguf-tensors", gguf({}, {"f32": (0, [4, 2], 32), "f16": (1, [3], 6), "bf16": (30, [2, 2], 8),
                                    "q8_0": (8, [32, 2], 68), "mxfp4": (39, [64, 1, 2], 68), "one": (0, [], 4)})
    yield "gguf-aligned", gguf({"general.alignment": (4, struct.pack("<I", 64))},
                               {"a": (0, [1], 4), "b": (0, [17], 68)}, 64)
    yield "gguf-empty", gguf({}, {})
    yield "gguf-tokenizer", gguf_tokenizer()
    yield "gguf-model", gguf_model()
    yield "gguf-fused", gguf_model(fused=True)
    yield "gguf-llama", gguf_llama("llama")
    yield "gguf-qwen2", gguf_llama("qwen2", biased=True)
    yield "gguf-qwen3", gguf_llama("qwen3", normed=True)
    for kind, (block, size) in {2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 12: (256, 144), 13: (256, 176), 14: (256, 210)}.items():
        yield f"gguf-llama-{kind}", gguf_llama("llama", few_bits=(kind, size, block), hidden=block)


TEMPLATE = ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nhe<|im_end|>\n' }}"
            "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def gguf_tokenizer():
    """The bytes of "hello", two merges and a special token, as llama.cpp keeps GPT-2's tokenizer."""
    def word(text):
        return struct.pack("<Q", len(text)) + text.encode()

    def words(*texts):
        return struct.pack("<IQ", 8, len(texts)) + b"".join(map(word, texts))
    tokens = ("h", "e", "l", "o", "he", "ll", "<|end|>")
    return gguf({"tokenizer.ggml.model": (8, word("gpt2")), "tokenizer.ggml.pre": (8, word("gpt-2")),
                 "tokenizer.ggml.tokens": (9, words(*tokens)), "tokenizer.ggml.merges": (9, words("h e", "l l")),
                 "tokenizer.ggml.token_type": (9, struct.pack("<IQ7i", 5, 7, *(1, 1, 1, 1, 1, 1, 3))),
                 "tokenizer.ggml.eos_token_id": (4, struct.pack("<I", 6)), "tokenizer.chat_template": (8, word(TEMPLATE))}, {})


def two_files(one, two):
    return struct.pack("<H", len(one)) + one + two


def rank_seeds():
    """Two ranks of the tiny model: heads, coordinates and partial sums; experts; positions."""
    ids = {"tokens": ("I32", [2], 4)}
    for split, points in (("A11=heads,A4.k=heads,A12=partial,F2=coordinates",
                           {"00.A11": ("BF16", [2, 5, 16], 2), "00.A4.k": ("F16", [2, 1, 16], 2), "01.A12": ("F32", [2, 96], 4)}),
                          ("M10=experts", {"00.M3": ("I32", [2, 3], 4), "00.M10": ("BF16", [2, 3, 96], 2)}),
                          ("*=positions", {"positions": ("I32", [2], 4), "00.A1": ("BF16", [2, 96], 2)})):
        made = [safetensors(ids | points, {"format": "sinkproof-trace-1", "rank": str(rank), "ranks": "2", "split": split,
                                           "experts": f"{4 * rank}-{4 * rank + 3}", "model": "0" * 16}) for rank in (0, 1)]
        yield "ranks-" + split.split("=")[0].strip("*"), two_files(*made)


def drill_seeds():
    """A manifest of two calls, and the outputs of the first, with its log-sum-exp."""
    cases = [{"stage": "attention", "case": "attention:n=2,chunk=1,window=0,heads=2,kv=1,dim=4,sinks=none,inputs=random,seed=3",
              "outputs": "00000.out.safetensors"},
             {"stage": "router", "case": "router:n=1,hidden=4,experts=2,chosen=1,inputs=ties,seed=1", "outputs": "00001.out.safetensors"}]
    manifest = json.dumps({"format": "sinkproof-drills-1", "policy": "f32", "model": None, "cases": cases}).encode()
    for layout, shape in (("heads,tokens", [2, 2]), ("tokens,heads", [2, 2])):
        yield "drills-" + layout[0], two_files(manifest, safetensors(
            {"A11": ("F32", [2, 2, 4], 4), "A9.lse": ("F32", shape, 4)}, {"lse": "with-sink", "lse_layout": layout}))


def adapter_seeds():
    """Adapters of the tiny model's attention and of the tiny Llama's perceptron and unembedding."""
    says = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "use_rslora": False, "bias": "none", "rank_pattern": {},
            "init_lora_weights": True, "target_modules": ["q_proj"], "use_dora": False, "modules_to_save": None}
    for name, more, modules in (
            ("q-o", {}, {"model.layers.0.self_attn.q_proj": (96, 160), "model.layers.3.self_attn.o_proj": (160, 96)}),
            ("k-v", {"use_rslora": True, "lora_alpha": 0.5},
             {"model.layers.1.self_attn.k_proj": (96, 32), "model.layers.1.self_attn.v_proj": (96, 32)}),
            ("dense", {"rank_pattern": {"up_proj": 1}}, {"model.layers.2.mlp.gate_proj": (96, 128),
                                                         "model.layers.2.mlp.up_proj": (96, 128),
                                                         "model.layers.2.mlp.down_proj": (128, 96)}),
            ("head", {"init_lora_weights": "gaussian"}, {"lm_head": (96, 211)})):
        tensors = {}
        for module, (cols, rows) in modules.items():
            rank = 1 if more.get("rank_pattern") and "up" in module else 2
            dtype, width = ("F32", 4) if "head" in module else ("BF16", 2)
            tensors[f"base_model.model.{module}.lora_A.weight"] = (dtype, [rank, cols], width)
            tensors[f"base_model.model.{module}.lora_B.weight"] = (dtype, [rows, rank], width)
        yield "adapter-" + name, two_files(json.dumps(says | more).encode(), safetensors(tensors))


def gguf_model(fused=False):
    """A whole model of one layer: 2 heads of 4 on 1, 2 experts, every width 32; weights of each type."""
    def named(name):
        return "gpt-oss." + name
    sizes = {"block_count": 1, "context_length": 64, "vocab_size": 3, "embedding_length": 32,
             "expert_feed_forward_length": 32, "expert_count": 2, "expert_used_count": 1,
             "attention.head_count": 2, "attention.head_count_kv": 1, "attention.key_length": 4,
             "attention.sliding_window": 2, "rope.scaling.original_context_length": 64}
    reals = {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e4, "rope.scaling.factor": 1.0}
    keys = {"general.architecture": (8, struct.pack("<Q", 7) + b"gpt-oss")}
    keys |= {named(key): (4, struct.pack("<I", value)) for key, value in sizes.items()}
    keys |= {named(key): (6, struct.pack("<f", value)) for key, value in reals.items()}
    keys[named("rope.scaling.type")] = (8, struct.pack("<Q", 4) + b"yarn")
    f32, f16, q8, bf16, codes = (0, 4, 1), (1, 2, 1), (8, 34, 32), (30, 2, 1), (39, 17, 32)
    layer = {"attn_norm.weight": (f32, [32]), "attn_q.weight": (q8, [32, 8]), "attn_q.bias": (f32, [8]),
             "attn_k.weight": (f16, [32, 4]), "attn_k.bias": (f32, [4]), "attn_v.weight": (bf16, [32, 4]),
             "attn_v.bias": (f32, [4]), "attn_sinks.weight": (f32, [2]), "attn_output.weight": (f32, [8, 32]),
             "attn_output.bias": (f32, [32]), "post_attention_norm.weight": (f32, [32]),
             "ffn_gate_inp.weight": (f32, [32, 2]), "ffn_gate_inp.bias": (f32, [2]),
             "ffn_down_exps.weight": (codes, [32, 32, 2]), "ffn_down_exps.bias": (f32, [32, 2])}
    if fused:
        layer |= {"ffn_gate_up_exps.weight": (codes, [32, 64, 2]), "ffn_gate_up_exps.bias": (f32, [64, 2])}
    else:
        for part in ("gate", "up"):
            layer |= {f"ffn_{part}_exps.weight": (codes, [32, 32, 2]), f"ffn_{part}_exps.bias": (f32, [32, 2])}
    tensors = {f"blk.0.{name}": what for name, what in layer.items()}
    tensors |= {"token_embd.weight": (q8, [32, 3]), "output_norm.weight": (f32, [32]), "output.weight": (bf16, [32, 3])}
    return gguf(keys, {name: (kind, dims, math.prod(dims) // block * size)
                       for name, ((kind, size, block), dims) in tensors.items()})


def gguf_llama(kind, biased=False, normed=False, few_bits=(8, 34, 32), hidden=32):
    """A whole dense model of one layer: 2 heads of 4 on 1, 32 channels, tied; rows of queries and keys turned or not.

    few_bits: the number of a type, the bytes of its block and its elements.
    """
    sizes = {"block_count": 1, "context_length": 64, "embedding_length": hidden, "feed_forward_length": 32,
             "attention.head_count": 2, "attention.head_count_kv": 1, "attention.key_length": 4}
    keys = {"general.architecture": (8, struct.pack("<Q", len(kind)) + kind.encode())}
    keys |= {f"{kind}.{key}": (4, struct.pack("<I", value)) for key, value in sizes.items()}
    keys |= {f"{kind}.{key}": (6, struct.pack("<f", value)) for key, value in
             {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e4}.items()}
    f32, f16, q8, bf16 = (0, 4, 1), (1, 2, 1), few_bits, (30, 2, 1)
    layer = {"attn_norm.weight": (f32, [hidden]), "attn_q.weight": (q8, [hidden, 8]), "attn_k.weight": (f16, [hidden, 4]),
             "attn_v.weight": (bf16, [hidden, 4]), "attn_output.weight": (f32, [8, hidden]), "ffn_norm.weight": (f32, [hidden]),
             "ffn_gate.weight": (q8, [hidden, 32]), "ffn_up.weight": (q8, [hidden, 32]), "ffn_down.weight": (bf16, [32, hidden])}
    if biased:
        layer |= {f"attn_{name}.bias": (f32, [size]) for name, size in (("q", 8), ("k", 4), ("v", 4))}
    if normed:
        layer |= {f"attn_{name}_norm.weight": (f32, [4]) for name in "qk"}
    tensors = {f"blk.0.{name}": what for name, what in layer.items()}
    tensors |= {"token_embd.weight": (q8, [hidden, 3]), "output_norm.weight": (f32, [hidden])}
    return gguf(keys, {name: (kind, dims, math.prod(dims) // block * size)
                       for name, ((kind, size, block), dims) in tensors.items()})


def design_seeds():
    """What an engine of a design left behind: two heads of four numbers on one, three rows."""
    n, h, d = 3, 2, 4
    common = {"q": ("F32", [n, h, d], 4), "k": ("BF16", [n, 1, d], 2), "v": ("F16", [n, 1, d], 2),
              "alpha": ("F32", [h, n, n], 4), "o": ("F64", [n, h, d], 8)}
    more = {"softmax,window=2": {"s": ("F32", [h, n, n], 4)},
            "score-bias": {"s": ("F32", [h, n, n + 1], 4), "star.logit": ("F32", [h], 4)},
            "kv-bias": {"star.key": ("F32", [1, d], 4), "star.value": ("F32", [h, d], 4)},
            "mlp-max": {"f.q": ("F32", [n, h, d], 4), "f.k": ("F32", [n, 1, d], 4), "mlp.1": ("F32", [1, d, d], 4),
                        "mlp.2": ("F32", [1, d, d], 4)},
            "alibi": {"slope": ("F32", [h], 4), "bias": ("F32", [h, 1, n], 4)},
            "relative": {"buckets": ("F32", [1, 32], 4), "bias": ("F32", [h, n, n], 4)},
            "packed,star=zero": {"documents": ("I64", [n], 8)}, "power-2,star=key,dims=2": {"star.key": ("F32", [1, d], 4)},
            "score-bias,star=none": {"unturned.q": ("F32", [n, h, d], 4), "unturned.k": ("F32", [n, 1, d], 4),
                                     "cos": ("F32", [n, 2], 4), "sin": ("BF16", [n, 2], 2), "rotary.base": ("F32", [1], 4)},
            "gated": {"g": ("F32", [n, h, d], 4), "gate": ("F32", [n, h, d], 4), "gated": ("F32", [n, h, d], 4)}}
    for words, own in more.items():
        yield "design-" + words.replace(",", "-"), safetensors({f"00.{name}": what for name, what in (common | own).items()},
                                                           {"format": "sinkproof-design-1", "design": words})
    yield "design-words", b"softmax,star=key,star-value=even,times=-3,dims=4,places=alibi,by=2.5,seen=window,window=9"


def truth_work():
    """The words of a work file behind layer 0 of the tiny model with one token, of width 96."""
    table = (ROOT / "ref/points.h").read_text(encoding="utf-8").split("define SINKPROOF_TRACED_POINTS")[1].split("\n\n")[0]
    points, zero = len(re.findall(r"^ +P\(", table, re.M)), [0, 0]
    number = [1 | 1 << 3, (1 << 60) + 3, 1 << 63 | 1, 1 << 29, (1 << 60) - 40]
    words = [64, 0, 0, 7, 1] + 6 * [0] + zero + [0, 0] + zero + 4 * [0] + 12 * points * [0] + [0, 0, 0] + number + 95 * zero
    return struct.pack(f"<{len(words)}Q", *words)


def seeds():
    yield "truth-work", truth_work()
    yield from gguf_seeds()
    yield "two-tensors", safetensors({"a": ("BF16", [2, 3], 2), "b": ("F32", [4], 4)}, {"k": "v"})
    yield "scalar-and-empty", safetensors({"a": ("F32", [], 4), "b": ("U8", [0, 3], 1)})
    yield "no-tensor", safetensors({})
    yield "blocks", safetensors({"w_blocks": ("U8", [1, 2, 1, 16], 1), "w_scales": ("U8", [1, 2, 1], 1)})
    n, k = 1, 3  # the tiny model: 10 heads of 16 on 2 key/value heads, 7 experts of width 128
    ends = {"tokens": ("I32", [n], 4), "positions": ("I32", [n], 4), "T0": ("F32", [n, 96], 4)}
    yield "trace-start", safetensors(ends, {"format": "sinkproof-trace-1", "engine": "seed"})
    yield "trace-i64", safetensors(
        {"tokens": ("I64", [n], 8), "positions": ("I64", [n], 8), "01.M3": ("I64", [n, 1], 8)},
        {"format": "sinkproof-trace-1"})
    yield "trace-attention", safetensors(
        {"00.A1": ("BF16", [n, 96], 2), "00.A2.q": ("F16", [n, 10, 16], 2),
         "00.A2.k": ("BF16", [n, 2, 16], 2), "03.A9": ("F32", [10, n, n + 1], 4),
         "03.A11": ("BF16", [n, 10, 16], 2)} | ends, {"format": "sinkproof-trace-1"})
    yield "trace-experts", safetensors(
        {"01.M2": ("F32", [n, 7], 4), "01.M3": ("I32", [n, k], 4), "01.M4": ("BF16", [n, k], 2),
         "01.M8": ("BF16", [n, k, 128], 2), "F1": ("F64", [n, 96], 8)} | ends,
        {"format": "sinkproof-trace-1"})
    yield "trace-later", safetensors(
        {"positions": ("I32", [n], 4), "tokens": ("I32", [n], 4), "00.A4.k": ("BF16", [5, 2, 16], 2),
         "00.A2.v": ("BF16", [3, 2, 16], 2), "01.A9": ("F16", [10, n, 6], 2)}, {"format": "sinkproof-trace-1"},
        struct.pack("<i", 4))
    yield "trace-packed", safetensors(
        {"cu_seqlens": ("I32", [3], 4), "positions": ("I32", [3], 4), "tokens": ("I32", [3], 4),
         "01.A10": ("BF16", [10, 3, 3], 2)}, {"format": "sinkproof-trace-1"}, struct.pack("<6i", 0, 2, 3, 0, 1, 0))
    yield "trace-caches", safetensors(
        {"cu_seqlens": ("I32", [3], 4), "cu_seqlens_k": ("I32", [3], 4), "positions": ("I32", [3], 4), "tokens": ("I32", [3], 4),
         "01.A4.k": ("BF16", [7, 2, 16], 2), "01.A9": ("F16", [10, 3, 8], 2)},
        {"format": "sinkproof-trace-1"}, struct.pack("<9i", 0, 2, 3, 0, 5, 7, 3, 4, 1))
    yield "trace-padded", safetensors(
        {"tokens": ("I32", [2, 2], 4), "attention_mask": ("I32", [2, 2], 4), "positions": ("I64", [2, 2], 8),
         "00.A9": ("F16", [2, 10, 2, 3], 2), "01.A9.lse": ("F32", [2, 10, 2], 4), "01.M3": ("I32", [2, 2, 1], 4)},
        {"format": "sinkproof-trace-1"}, struct.pack("<8i4q", 1, 2, 3, 4, 0, 1, 1, 1, 0, 0, 0, 1))
    yield "trace-named", safetensors(  # behind prefixes that are named, with the calls
        {"cu_seqlens": ("I32", [3], 4), "cu_seqlens_prefix": ("I32", [3], 4), "prefix": ("I32", [3], 4), "positions": ("I32", [3], 4),
         "tokens": ("I32", [3], 4), "00.A4.k": ("BF16", [6, 2, 16], 2), "01.A9": ("F16", [10, 3, 7], 2), "01.A11": ("F16", [3, 10, 16], 2),
         "02.A9.lse": ("F32", [3, 10], 4)},
        {"format": "sinkproof-trace-1", "calls": "2x1;1"}, struct.pack("<12i", 0, 2, 3, 0, 1, 3, 5, 6, 7, 1, 2, 2))
    yield "trace-padded-caches", safetensors(
        {"tokens": ("I32", [2, 2], 4), "attention_mask": ("I32", [2, 4], 4), "prefix": ("I32", [2, 2], 4),
         "00.A4.k": ("BF16", [2, 4, 2, 16], 2), "00.A6": ("F16", [2, 10, 2, 4], 2), "01.A11": ("F16", [2, 2, 10, 16], 2)},
        {"format": "sinkproof-trace-1", "calls": "1;1,1"}, struct.pack("<16i", 1, 2, 3, 4, 0, 1, 0, 1, 1, 1, 1, 1, 5, 6, 7, 8))
    yield "trace-lse", safetensors(
        {"tokens": ("I32", [2], 4), "positions": ("I32", [2], 4), "00.A9.lse": ("F32", [2, 10], 4),
         "01.A9.lse-keys": ("F16", [10, 2], 2)}, {"format": "sinkproof-trace-1", "lse": "without-sink",
                                                "lse_layout": "tokens,heads"}, struct.pack("<4i", 1, 2, 0, 1))
    yield from design_seeds()
    yield "interventions", (b"zero-bq\nswap-epe 1:2\nmove-epe 3:4\nlate-epe\nzero-bos\nzero-wk-rows 0,17,95\n"
                            b"zero-wk-random auto,18446744073709551615")
    yield "interventions-massive", b"zero-wk-rows auto\nzero-wk-random 3,4"
    yield "list", b'trace\n\n{"trace": "t"}\n{"tokens": [1, 2], "name": "n"}\n{"text": "t"}\n'
    unit = {"name": "t", "said": "t", "layers": [0, 1], "file": None}
    yield "run", json.dumps({"kept": 1, "how": {"command": "judge"}, "of": "trace", "title": "t", "units": [unit]}).encode()
    yield "kept", json.dumps({"kept": 1, "how": {"command": "judge"}, "unit": unit, "result":
                              {"exit": 1, "said": "s", "results": [{"id": "judgement"}], "text": "t\n", "page": ""}}).encode()
    yield "shard", b"2/4"
    ids = {"tokens": ("I32", [2], 4), "positions": ("I32", [2], 4)}
    one, two = safetensors({"a": ("F32", [2], 4)} | ids, {"engine": "e"}), safetensors({"b": ("F32", [2], 4)} | ids, {"engine": "e"})
    yield "two-files", two_files(one, two)
    yield from rank_seeds()
    yield from drill_seeds()
    yield from adapter_seeds()
    yield "index", json.dumps({"metadata": {"total_size": 4},
                               "weight_map": {"a": "model-1.safetensors"}}).encode()
    base = {"num_hidden_layers": 2, "num_experts": 5, "experts_per_token": 2, "vocab_size": 64,
            "hidden_size": 24, "intermediate_size": 32, "swiglu_limit": 7.0, "head_dim": 8,
            "num_attention_heads": 6, "num_key_value_heads": 2, "sliding_window": 4}
    yield "config-openai", json.dumps(base | {
        "initial_context_length": 4096, "rope_theta": 150000.0, "rope_scaling_factor": 32.0,
        "rope_ntk_alpha": 1.0, "rope_ntk_beta": 32.0}).encode()
    yarn = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
            "original_max_position_embeddings": 4096, "truncate": False}
    hf = base | {"model_type": "gpt_oss", "num_local_experts": 5, "num_experts_per_tok": 2,
                 "max_position_embeddings": 131072, "rms_norm_eps": 1e-05,
                 "layer_types": ["sliding_attention", "full_attention"]}
    yield "config-hf", json.dumps(hf | {"rope_theta": 150000, "rope_scaling": yarn}).encode()
    yield "config-hf-5", json.dumps(hf | {"rope_parameters": yarn | {"rope_theta": 150000}}).encode()
    yield "config-hf-unstated", json.dumps(base | {"num_local_experts": 5, "num_experts_per_tok": 2}).encode()
    llama = {"model_type": "llama", "num_hidden_layers": 2, "vocab_size": 9, "hidden_size": 32, "intermediate_size": 64,
             "num_attention_heads": 4, "max_position_embeddings": 64, "rms_norm_eps": 1e-5}
    yield "config-llama", json.dumps(llama | {"num_key_value_heads": 2, "head_dim": 8, "tie_word_embeddings": True,
                                              "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}).encode()
    yield "config-qwen2", json.dumps(llama | {"model_type": "qwen2", "rope_theta": 1e6, "rope_scaling": None,
                                              "layer_types": ["full_attention"] * 2}).encode()
    yield "config-qwen3", json.dumps(llama | {"model_type": "qwen3", "head_dim": 8, "use_sliding_window": True,
                                              "sliding_window": 4, "max_window_layers": 1}).encode()
    yield "config-llama3", json.dumps(llama | {"rope_parameters": {
        "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32}}).encode()
    yield "config-mistral", json.dumps(llama | {"model_type": "mistral", "sliding_window": 4}).encode()
    yield "config-hf-mxfp4", json.dumps(hf | {"quantization_config": {"quant_method": "mxfp4"}}).encode()
    for path in sorted((ROOT / "tests/vectors").rglob("*")):
        if path.is_file() and path.stat().st_size <= LARGEST:
            yield path.name + "-" + path.parent.name, path.read_bytes()


def fuzz(fuzzer, folder, corpus, seconds):
    name = "-".join(pathlib.Path(fuzzer).parts[-2:])  # its room, its name
    found = folder / f"{name}.corpus"
    found.mkdir(exist_ok=True)
    command = [fuzzer, f"-max_total_time={seconds}", f"-max_len={LARGEST}", "-timeout=10",
               "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={folder}/{name}-",
               str(found), str(corpus)]
    with open(folder / f"{name}.log", "w", encoding="utf-8") as log:
        status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, check=False).returncode
    text = (folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
    runs = re.search(r"number_of_executed_units:\s*(\d+)", text)
    return name, status, int(runs[1]) if runs else 0, text


def main(build, seconds, fuzzers):
    folder = pathlib.Path(build) / "fuzz"
    corpus = folder / "seeds"
    corpus.mkdir(parents=True, exist_ok=True)
    for name, data in seeds():
        (corpus / name).write_bytes(data)
    lines, failed = [], not fuzzers
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = pool.map(lambda f: fuzz(f, folder, corpus, seconds), fuzzers)
        for number, (name, status, runs, text) in enumerate(results, 1):
            passed = status == 0 and runs > 0
            failed |= not passed
            lines.append(f"{'ok' if passed else 'not ok'} {number} - {name}: {runs} inputs in "
                         f"{seconds} s, exit {status}")
            print(lines[-1], flush=True)
            if not passed:
                print("".join(f"# {line}\n" for line in text.splitlines()[-40:]), end="")
    lines.append(f"1..{len(fuzzers)}")
    print(lines[-1])
    (folder / "tap.log").write_text("# FILE fuzz\n" + "\n".join(lines) + "\n")  # BUILD/tap.log is that of tests
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
