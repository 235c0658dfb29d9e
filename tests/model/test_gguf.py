# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""GGUF from the outside: what synth writes holds the model in every type, opens everywhere and runs
alike on every engine; gate and up in one tensor are the same model as in two; one thing wrong at a
time is refused with exit 3 and a sentence that names it. The file is read and made here once more,
in Python, from llama.cpp's description of the format.
"""
import json
import os
import pathlib
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402
from gguf_file import ARRAY, F32, TEXT, TYPES, U32, Gguf, text  # noqa: E402

TINY = "synthetic:tiny,layers=2,seed=3"
TOKENS = "1,2,3,4,5,6,7,8,9,10,11"
def tensors_of(folder):
    """{name: the bits of each number as float32, or the bytes} of a safetensors checkpoint."""
    tensors, _ = checkpoints.read(pathlib.Path(folder) / "model.safetensors")
    return {name: checkpoints.as_float32(raw) if dtype == "BF16" else raw for name, (dtype, _, raw) in tensors.items()}


def fingerprint(model):
    return json.loads(sinkproof("info", str(model), "--json", "-")[1])["results"][0]["fingerprint"]


def logits(model, engine, *words):
    return sinkproof("run", str(model), "--engine", engine, "--tokens", TOKENS, "--policy", "f32", *words)


def round_trip(work):
    """Hugging Face's layout, GGUF and back: every number as it was; MXFP4 with its minus zeros."""
    hf, back = str(work / "hf"), str(work / "back")
    sinkproof("synth", TINY, "--layout", "hf", "--out", hf)
    for dense in (None, "bf16", "f32"):
        path = str(work / f"{dense}.gguf")
        words = ["--dense", dense] if dense else []
        status, _, told = sinkproof("synth", hf, "--layout", "gguf", "--out", path, *words)
        sinkproof("synth", path, "--layout", "hf", "--out", back)
        source, copy = tensors_of(hf), tensors_of(back)
        apart = [name for name in source if source[name] != copy.get(name)]
        report(status == 0 and not apart and len(source) == len(copy),
               f"mxfp4.ggml hf, gguf in {dense or 'what is stored'} and hf again: every number as it was {told}", apart)
        for name in ("config.json", "model.safetensors"):
            os.unlink(os.path.join(back, name))
    report(fingerprint(work / "bf16.gguf") == fingerprint(work / "None.gguf"), "model.config the default is what is stored")
    path = str(work / "experts.gguf")
    sinkproof("synth", hf, "--layout", "gguf", "--dequantize", "--dense", "f32", "--out", path)
    status, out, told = sinkproof("info", path)
    report(status == 0 and "the experts are F32, GPT-OSS's are MXFP4" in out, f"model.config experts in F32: exit {status} {told}")
    wanted, found = logits(hf, "ref")[1], logits(path, "ref")[1]
    report(wanted == found and wanted != "", "model.forward experts in F32 give the bits of those in MXFP4")
    again = str(work / "again.gguf")
    sinkproof("synth", str(work / "None.gguf"), "--layout", "gguf", "--out", again)
    report(pathlib.Path(again).read_bytes() == (work / "None.gguf").read_bytes(), "model.config gguf from gguf is the same file")


def types(work):
    """Each type of dense weights: as it says, the numbers of its format, alike on every engine, judged."""
    exact = written(work, "f32")
    for dense in ("f32", "f16", "bf16", "q8_0"):
        model, trace = work / f"{dense}.gguf", str(work / "trace")
        file = exact if dense == "f32" else written(work, dense)
        kinds = {name: TYPES[kind][0] for name, (kind, _, _) in file.tensors.items()}
        weights = [kinds[f"blk.1.{n}.weight"] for n in ("attn_q", "attn_k", "attn_v", "attn_output")]
        report(set(weights + [kinds["token_embd.weight"], kinds["output.weight"]]) == {dense.upper()}
               and kinds["blk.0.ffn_gate_exps.weight"] == "MXFP4"
               and {kinds[f"blk.0.{n}"] for n in ("attn_q.bias", "attn_sinks.weight", "attn_norm.weight",
                                                  "ffn_gate_inp.weight", "ffn_up_exps.bias")} == {"F32"},
               f"model.config {dense}: matrices in it, experts in MXFP4, vectors and routers in F32")
        seen = [logits(model, engine, "--trace", trace)[1].splitlines() for engine in ("lanes", "fast")]
        report(seen[0] == seen[1] and len(seen[0]) > 4, f"lanes.linear {dense}: fast gives the bits of lanes", seen)
        status, out, told = sinkproof("judge", str(model), trace, "--policy", "f32")
        report(status == 0, f"bound.linear {dense}: judged within: exit {status} {told}", out.splitlines())
        status, out, told = sinkproof("truth", str(model), "--tokens", "1,2,3", "--bits", "128")
        report(status == 0, f"model.forward {dense}: has a truth: exit {status} {told}")
    wrong = 0
    for name, (kind, _, data) in Gguf(work / "q8_0.gguf").tensors.items():
        if kind != 8:
            continue
        numbers = struct.unpack(f"<{len(exact.tensors[name][2]) // 4}f", exact.tensors[name][2])
        for b in range(len(data) // 34):
            d, *bytes_of = struct.unpack("<e32b", data[34 * b:34 * b + 34])
            most = max(map(abs, numbers[32 * b:32 * b + 32])) / 127
            wrong += sum(not abs(x - d * q) <= most * 9 / 16 for x, q in zip(numbers[32 * b:], bytes_of))
    report(wrong == 0, f"q8.encode every weight within 9/16 of its scale, worst={wrong} bound=0")
    honest, trace = str(work / "q8_0.gguf"), str(work / "other")
    logits(work / "f32.gguf", "ref", "--trace", trace)
    status, out, _ = sinkproof("judge", honest, trace, "--policy", "f32", "--any-model")
    report(status == 1, f"q8.decode the trace of other weights is convicted: exit {status}")


def written(work, dense):
    path = str(work / f"{dense}.gguf")
    sinkproof("synth", TINY, "--layout", "gguf", "--dense", dense, "--out", path)
    return Gguf(path)


def fused(work):
    """All gates in front of all ups in one tensor: the same model as in two."""
    file = written(work, "bf16")
    for layer in range(2):
        for kind in ("weight", "bias"):
            gate = file.tensors.pop(f"blk.{layer}.ffn_gate_exps.{kind}")
            up = file.tensors.pop(f"blk.{layer}.ffn_up_exps.{kind}")
            experts, each = gate[1][-1], len(gate[2]) // gate[1][-1]
            parts = [t[2][e * each:(e + 1) * each] for e in range(experts) for t in (gate, up)]
            dims = gate[1][:-2] + [2 * gate[1][-2], experts]
            file.tensors[f"blk.{layer}.ffn_gate_up_exps.{kind}"] = (gate[0], dims, b"".join(parts))
    path = file.write(work / "fused.gguf")
    report(fingerprint(path) == fingerprint(work / "bf16.gguf"), "model.config fused gate and up are the same model")
    for engine in ("ref", "fast"):
        report(logits(path, engine)[1] == logits(work / "bf16.gguf", engine)[1],
               f"model.forward {engine}: the bits of the model in two tensors")
    tensor = file.tensors["blk.1.ffn_gate_up_exps.weight"]
    file.tensors["blk.1.ffn_gate_up_exps.weight"] = (tensor[0], [tensor[1][0], tensor[1][1] // 2, 2 * tensor[1][2]], tensor[2])
    status, _, told = sinkproof("info", file.write(work / "bad.gguf"))
    report(status == 3 and "expected shape [7, 256, 96]" in told, f"model.config refused: exit {status}, {told}")


def departures(work):
    """What info says of a file, and what a file may say."""
    file = written(work, "q8_0")
    status, out, _ = sinkproof("info", str(work / "q8_0.gguf"))
    for said in ("no key of GGUF says that YaRN's range is not truncated", "judge that engine with yarn=truncate",
                 "w_q, w_k, w_v, w_o, embedding, unembedding: Q8_0, another set of weights",
                 "RMSNorm epsilon is 9.99999974738e-06", "no tokenizer",
                 "not stated  beta_fast 32, beta_slow 1, truncate false, swiglu_alpha 1.702, swiglu_limit 7, layers"):
        report(status == 0 and said in out, f"model.config info says: {said}")
    file.keys["gpt-oss.rope.scaling.yarn_beta_fast"] = (F32, 16.0)
    file.keys["tokenizer.ggml.model"] = (TEXT, "gpt2")
    strings = b"".join(text(f"word {i}") for i in range(211))
    file.keys["tokenizer.ggml.tokens"] = (ARRAY, struct.pack("<IQ", TEXT, 211) + strings)
    del file.keys["gpt-oss.vocab_size"]
    status, out, told = sinkproof("info", file.write(work / "said.gguf"))
    report(status == 0 and "vocabulary 211" in out and "YaRN beta_fast 16" in out and "llama.cpp does not read" in out
           and "no tokenizer" not in out, f"model.config a tokenizer, betas, no vocab_size: exit {status} {told}", out.splitlines())
    file.tensors["blk.0.extra.weight"] = (0, [1], bytes(4))
    status, out, _ = sinkproof("info", file.write(work / "said.gguf"))
    report(status == 0 and "tensor blk.0.extra.weight: no part of this model" in out, "model.config an unknown tensor is named")


def key(name, kind, value):
    def change(file):
        file.keys[name] = (kind, value)
    return change


def both(one, other):
    def change(file):
        one(file)
        other(file)
    return change


def without(name):
    def change(file):
        file.keys.pop(name, None)
        file.tensors.pop(name, None)
    return change


def tensor(name, change_of):
    def change(file):
        file.tensors[name] = change_of(*file.tensors[name])
    return change


def byte(at, value):
    return lambda kind, dims, data: (kind, dims, data[:at] + bytes([value]) + data[at + 1:])


def refused(work):
    written(work, "q8_0")
    for told, change in (
            ('key general.architecture: expected "gpt-oss", "llama", "qwen2" or "qwen3", which are all that is read, found "phi3"', key("general.architecture", TEXT, "phi3")),
            ('expected general.architecture to be "gpt-oss", "llama", "qwen2" or "qwen3", found nothing', without("general.architecture")),
            ("gpt-oss.block_count to be a whole number from 1 to 2^30, found nothing", without("gpt-oss.block_count")),
            ("gpt-oss.block_count to be a whole number from 1 to 2^30, found 0", key("gpt-oss.block_count", U32, 0)),
            ('gpt-oss.expert_count to be a whole number from 1 to 2^30, found "7"', key("gpt-oss.expert_count", TEXT, "7")),
            ("expected gpt-oss.attention.head_count_kv to be a whole number from 1 to 2^30, found array of 1 uint32",
             key("gpt-oss.attention.head_count_kv", ARRAY, struct.pack("<IQI", U32, 1, 2))),
            ("gpt-oss.rope.freq_base to be a positive number, found nan", key("gpt-oss.rope.freq_base", F32, float("nan"))),
            ("gpt-oss.attention.value_length to be equal to", key("gpt-oss.attention.value_length", U32, 8)),
            ('expected gpt-oss.rope.scaling.type to be "yarn", found "linear"', key("gpt-oss.rope.scaling.type", TEXT, "linear")),
            ("gpt-oss.rope.scaling.attn_factor to be absent, since what it changes is not known",
             key("gpt-oss.rope.scaling.attn_factor", F32, 2.0)),
            ("expected split.count to be 1: a model in one file", key("split.count", U32, 2)),
            ("expected an even head_dim, found 15", both(key("gpt-oss.attention.key_length", U32, 15),
                                                         key("gpt-oss.attention.value_length", U32, 15))),
            ("blk.1.attn_k.bias: expected 1 layer from the configuration, found one beyond them", key("gpt-oss.block_count", U32, 1)),
            ("expected a tensor blk.2.attn_norm.weight, found none", key("gpt-oss.block_count", U32, 3)),
            ("expected a tensor blk.1.attn_sinks.weight, found none", without("blk.1.attn_sinks.weight")),
            ("expected a tensor blk.0.ffn_up_exps.weight, found none", without("blk.0.ffn_up_exps.weight")),
            ("tensor blk.0.attn_q.weight: expected shape [160, 96] from the configuration, found [96, 160]",
             tensor("blk.0.attn_q.weight", lambda kind, dims, data: (kind, dims[::-1], data))),
            ("tensor blk.0.attn_q.weight: expected dtype Q4_0 to Q8_0, BF16, F16 or F32, found MXFP4",
             tensor("blk.0.attn_q.weight", lambda kind, dims, data: (39, dims, data[:len(data) // 2]))),
            ("tensor blk.0.ffn_up_exps.bias: expected dtype BF16, F16 or F32, found Q8_0",
             tensor("blk.0.ffn_up_exps.bias", lambda kind, dims, data: (8, dims, data[:len(data) // 128 * 34]))),
            ("tensor blk.0.ffn_up_exps.weight: expected dtype MXFP4, as blk.0.ffn_gate_exps.weight has, found BF16",
             tensor("blk.0.ffn_up_exps.weight", lambda kind, dims, data: (30, dims, bytes(dims[0] * dims[1] * dims[2] * 2)))),
            ("tensor blk.0.attn_k.weight: expected finite numbers, found NaN at (1, 32) (1 in all)",
             tensor("blk.0.attn_k.weight", byte(4 * 34 + 1, 0x7e))),
            ("tensor blk.1.attn_output.weight: expected finite numbers, found -infinity at (0, 0) (1 in all)",
             tensor("blk.1.attn_output.weight", lambda kind, dims, data: (kind, dims, b"\0\xfc" + data[2:]))),
            ("tensor blk.1.ffn_down_exps.weight: expected scale bytes up to 254, found 255 (NaN) at (0, 0, 64) (1 in all)",
             tensor("blk.1.ffn_down_exps.weight", byte(2 * 17, 255))),
            ("tensor blk.1.attn_sinks.weight: expected finite numbers or -infinity, found infinity at (0)",
             tensor("blk.1.attn_sinks.weight", lambda kind, dims, data: (kind, dims, b"\0\0\x80\x7f" + data[4:])))):
        file = Gguf(work / "q8_0.gguf")
        change(file)
        path = file.write(work / "bad.gguf")
        status, _, said = sinkproof("run", path, "--tokens", "1,2")
        report(status == 3 and f"{path}: " in said and told in said and "\n" not in said,
               f"model.config refused: exit {status}, {said[-220:]}")
    whole = (work / "q8_0.gguf").read_bytes()
    for what, data in (("cut short", whole[:-64]), ("longer", whole + bytes(64)), ("empty", b""), ("text", b"model: tiny\n" * 9)):
        (work / "bad.gguf").write_bytes(data)
        status, _, said = sinkproof("info", str(work / "bad.gguf"))
        report(status == 3 and "bad.gguf: expected" in said and "\n" not in said, f"model.config {what}: exit {status}, {said}")
    (work / "folder.gguf").mkdir()
    for name in ("folder.gguf", "missing.gguf"):
        status, _, said = sinkproof("info", str(work / name))
        report(status == 3 and name in said and "\n" not in said, f"model.config {name}: exit {status}, {said}")


def not_written(work):
    """What GGUF cannot say or synth does not do: one sentence, and no file."""
    out = work / "out.gguf"
    config = checkpoints.STATED | {"num_hidden_layers": 1, "num_local_experts": 3, "num_experts_per_tok": 2,
                                   "vocab_size": 17, "hidden_size": 32, "intermediate_size": 32, "head_dim": 8,
                                   "num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 4}

    def synthetic(**changes):
        path = work / f"{len(list(work.iterdir()))}.json"
        path.write_text(json.dumps(config | changes), encoding="utf-8")
        return f"synthetic:{path}"

    truncated = config["rope_scaling"] | {"truncate": True}
    for told, model, words in (
            ("whose weights alone are written as GGUF, found GPT-2", "synthetic:tiny-gpt2", []),
            ("found the attention sink of another kind", "synthetic:tiny,sink=key", []),
            ("an untruncated range, for which GGUF has no key", synthetic(rope_scaling=truncated), []),
            ("expected alpha 1.702, limit 7", synthetic(swiglu_limit=6.0), []),
            ("alternating layers", synthetic(layer_types=["full_attention"]), []),
            ("expected rope_theta in float32", synthetic(rope_theta=150000.001), []),
            ("expected a row of blocks of 32 for Q8_0, found 24 numbers",
             synthetic(head_dim=6, num_attention_heads=4), ["--dense", "q8_0"])):
        status, _, said = sinkproof("synth", model, "--layout", "gguf", "--out", str(out), *words)
        report(status == 3 and told in said and "\n" not in said and list(work.glob("out*")) == [],
               f"model.config not written: exit {status}, {said[-200:]}")
    status, _, said = sinkproof("synth", TINY, "--layout", "gguf", "--out", str(work / "name"))
    report(status == 3 and "expected a file NAME.gguf" in said, f"model.config not written: exit {status}, {said[-120:]}")
    file = written(work, "f32")
    status, _, said = sinkproof("synth", TINY, "--layout", "gguf", "--out", str(work / "f32.gguf"))
    report(status == 3 and "expected a new file, found one" in said, f"model.config not written over: exit {status}, {said[-120:]}")
    name = "blk.1.attn_v.weight"
    for huge, dense in ((1e6, "f16"), (1e7, "q8_0")):
        kind, dims, data = Gguf(work / "f32.gguf").tensors[name]
        file.tensors[name] = (kind, dims, data[:-4] + struct.pack("<f", huge))
        status, _, said = sinkproof("synth", file.write(work / "huge.gguf"), "--layout", "gguf", "--dense", dense, "--out", str(out))
        report(status == 3 and f"tensor {name}: row 31: expected numbers that {dense.upper()} keeps finite" in said
               and list(work.glob("out*")) == [], f"q8.encode not written: exit {status}, {said[-160:]}")
    for told, words in (("--dense needs --layout gguf", ["--layout", "hf", "--dense", "f16"]),
                        ('found "q4_0"', ["--layout", "gguf", "--dense", "q4_0"]),
                        ("expected layout hf or gguf or openai", ["--layout", "onnx"])):
        status, _, said = sinkproof("synth", TINY, "--out", str(out), *words)
        report(status == 2 and told in said, f"model.config usage: exit {status}, {said.splitlines()[:1]}")


if __name__ == "__main__":
    sys.exit(checkpoints.run(round_trip, types, fused, departures, refused, not_written))
