# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Llama and Qwen2: one model in both of its containers, every engine's trace judged in each, rows of queries and keys
where llama.cpp puts them, ten mistakes convicted at their points, and what is not served refused by name.
"""
import json
import os
import pathlib
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402
from gguf_file import Gguf  # noqa: E402

TINY = "synthetic:tiny-llama,layers=2,seed=3"
TOKENS = "1,2,3,40,5,66,7,8,9,10,11,200"
HEADS, GROUPS, DIM, HIDDEN, INTER = 12, 2, 16, 96, 128


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


def edited(folder, to, tensors=None, **keys):
    """A copy of a checkpoint with other tensors ({name: None to drop, or (dtype, shape, bytes)}) and other keys."""
    to.mkdir()
    held, metadata = checkpoints.read(folder / "model.safetensors")
    held.update(tensors or {})
    held = {name: one for name, one in held.items() if one is not None}
    (to / "model.safetensors").write_bytes(checkpoints.safetensors(held, metadata))
    config = {**config_of(folder), **keys}
    (to / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))
    return to


def numbers(tensor):
    return checkpoints.numbers_of(tensor[0], tensor[2])


def fingerprint(model):
    return json.loads(sinkproof("info", str(model), "--json", "-")[1])["results"][0]["fingerprint"]


def rows_of(folder, name):
    dtype, shape, raw = checkpoints.read(folder / "model.safetensors")[0][name]
    size = len(raw) // shape[0]
    return [raw[i * size:(i + 1) * size] for i in range(shape[0])]


def containers(work):
    """Hugging Face's directory and GGUF hold the same numbers, there and back."""
    hf, gguf, back = work / "hf", work / "m.gguf", work / "back"
    sinkproof("synth", TINY, "--layout", "hf", "--out", str(hf))
    sinkproof("synth", str(hf), "--layout", "gguf", "--out", str(gguf))
    sinkproof("synth", str(gguf), "--layout", "hf", "--out", str(back))
    report(len({fingerprint(m) for m in (TINY, hf, gguf, back)}) == 1, "model.config llama: one fingerprint in every container")
    status, _, told = sinkproof("synth", TINY, "--layout", "openai", "--out", str(work / "openai"))
    report(status == 3 and "openai: expected GPT-OSS, whose weights alone the original layout holds, found Llama" in told
           and not (work / "openai").exists(), f"model.config llama refused: {told.strip()}")
    report("tied        the unembedding is the embedding\n" in sinkproof("info", str(hf))[1],
           "model.config llama: info says that the unembedding is the embedding")
    there, again = (checkpoints.read(folder / "model.safetensors")[0] for folder in (hf, back))
    apart = [n for n in there if numbers(there[n]) != numbers(again[n])]  # GGUF has vectors in float32
    report(not apart and config_of(hf)["model_type"] == "llama" and "lm_head.weight" not in
           checkpoints.read(hf / "model.safetensors")[0], "model.config llama: hf, gguf and hf again: every number as it was", apart)
    # llama.cpp's converter: reshape(heads, 2, dim / 2, columns), the middle two axes exchanged.
    file, wrong = Gguf(gguf), []
    for name, heads in (("q", HEADS), ("k", GROUPS)):
        _, _, data = file.tensors[f"blk.1.attn_{name}.weight"]
        rows = rows_of(hf, f"model.layers.1.self_attn.{name}_proj.weight")
        size = len(data) // len(rows)
        for head in range(heads):
            for pair in range(DIM // 2):
                for half in range(2):
                    at = head * DIM + 2 * pair + half
                    if data[at * size:(at + 1) * size] != rows[head * DIM + half * (DIM // 2) + pair]:
                        wrong.append((name, head, pair, half))
    report(not wrong, "model.config llama: GGUF has the two rows of a rotated pair side by side", wrong)
    return hf, gguf


def qwen2(work, hf):
    """Biases on queries, keys and values alone: Qwen2, in both containers."""
    biases = {}
    for layer in range(2):
        for name, size in (("q", HEADS * DIM), ("k", GROUPS * DIM), ("v", GROUPS * DIM)):
            biases[f"model.layers.{layer}.self_attn.{name}_proj.bias"] = \
                ("F32", [size], struct.pack(f"<{size}f", *(0.125 * (i % 7 - 3) for i in range(size))))
    model = edited(hf, work / "qwen2", biases, model_type="qwen2", attention_bias=..., mlp_bias=..., use_sliding_window=False)
    gguf, trace = work / "qwen2.gguf", str(work / "qwen2.trace")
    sinkproof("synth", str(model), "--layout", "gguf", "--out", str(gguf))
    report(fingerprint(model) == fingerprint(gguf) != fingerprint(hf)
           and Gguf(gguf).keys["general.architecture"][1] == "qwen2",
           "model.config qwen2: one fingerprint in both containers, another one than without its biases")
    for engine in ("ref", "fast"):
        sinkproof("run", str(model), "--tokens", TOKENS, "--engine", engine, "--policy", "f32", "--trace", trace)
        status, out, told = sinkproof("judge", str(gguf), trace, "--policy", "f32")
        report(status == 0, f"model.forward qwen2: {engine} from the directory, judged from GGUF {told}", [out])
        os.unlink(trace)
    without = edited(model, work / "none", {f"model.layers.{i}.self_attn.{n}_proj.bias": None for i in range(2) for n in "qkv"})
    status, _, told = sinkproof("info", str(without))
    report(status == 3 and "expected a tensor model.layers.0.self_attn.q_proj.bias, found none" in told,
           f"model.config qwen2 without a bias is refused: {told}")


def held(work, what, model, other):
    """Every engine runs a model, and the judge, which reads it from another place, says within."""
    for engine in ("ref", "lanes", "fast"):
        trace = str(work / "held")
        sinkproof("run", str(model), "--tokens", TOKENS, "--engine", engine, "--policy", "f32", "--trace", trace)
        status, out, told = sinkproof("judge", str(other), trace, "--policy", "f32")
        os.unlink(trace)
        report(status == 0, f"model.forward {what}: {engine} {told}", [out[-300:]])


def qwen3(work):
    """Norms of each head: one model in both containers, whose points A3 the judge asks."""
    hf, gguf = work / "qwen3", work / "qwen3.gguf"
    sinkproof("synth", "synthetic:tiny-qwen3,layers=2", "--layout", "hf", "--out", str(hf))
    sinkproof("synth", str(hf), "--layout", "gguf", "--out", str(gguf))
    report(fingerprint(hf) == fingerprint(gguf) == fingerprint("synthetic:tiny-qwen3,layers=2")
           and config_of(hf)["model_type"] == "qwen3" and Gguf(gguf).keys["general.architecture"][1] == "qwen3",
           "model.config qwen3: one fingerprint in both containers")
    _, out, _ = sinkproof("info", str(hf))
    report("on 2 key/value heads, a norm of each query and key" in out and "q_norm" in out, "model.config info tells of the norms", [out])
    held(work, "qwen3", hf, gguf)
    status, _, told = sinkproof("sinks", str(hf), "--tokens", TOKENS, "--decompose")
    report(status == 3 and "norms of each query and key between (A3)" in told, f"sinks --decompose refuses qwen3: {told.strip()}")
    tensors = checkpoints.read(hf / "model.safetensors")[0]
    key = tensors["model.layers.0.self_attn.k_norm.weight"]
    wrong = edited(hf, work / "qwen3-wrong", {"model.layers.0.self_attn.q_norm.weight": key})
    trace = str(work / "t")
    sinkproof("run", str(wrong), "--tokens", TOKENS, "--policy", "f32", "--trace", trace)
    status, out, _ = sinkproof("judge", str(hf), trace, "--policy", "f32", "--any-model", "--json", "-")
    os.unlink(trace)
    found = json.loads(out)["results"][0]["first_divergence"]
    report(status == 1 and found == "00.A3.q", f"bound.rmsnorm qwen3: the key's norm for the query is a bug at {found}")
    windows = edited(hf, work / "qwen3-windows", use_sliding_window=True, sliding_window=3, max_window_layers=1)
    again = work / "qwen3-again"
    sinkproof("synth", str(windows), "--layout", "hf", "--out", str(again))
    report(fingerprint(again) == fingerprint(windows) != fingerprint(hf)
           and config_of(again)["layer_types"] == ["full_attention", "sliding_attention"],
           "model.config qwen3: windows from a layer on are written as the name of each layer")
    held(work, "qwen3 with windows", windows, again)
    status, _, told = sinkproof("synth", str(windows), "--layout", "gguf", "--out", str(work / "w.gguf"))
    report(status == 3 and "expected full attention in every layer" in told, f"model.config a window is refused in GGUF: {told.strip()}")


def llama3(work, hf):
    """The rotation of Llama 3: read, written again, run by every engine."""
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 32}
    model, again = edited(hf, work / "llama3", rope_scaling=scaling), work / "llama3-again"
    sinkproof("synth", str(model), "--layout", "hf", "--out", str(again))
    report(fingerprint(again) == fingerprint(model) != fingerprint(hf), "model.config llama3: written again it is the same model")
    told = sinkproof("info", str(model))[1]
    report("pairs that turn up to 1 times in 32 positions turn 8 times slower, from 4 times on as trained" in told,
           "rope.llama3 info tells of the scaling", [told])
    held(work, "rope.llama3 llama3", model, again)
    status, _, told = sinkproof("synth", str(model), "--layout", "gguf", "--out", str(work / "l3.gguf"))
    report(status == 3 and "expected a rotation that is not scaled" in told, f"model.config Llama 3's rotation is refused in GGUF: {told.strip()}")


def mistral(work, hf):
    """A window in every layer, in none, and the published default of 4096."""
    plain = {"attention_bias": ..., "mlp_bias": ...}
    model = edited(hf, work / "mistral", model_type="mistral", sliding_window=4, **plain)
    full = edited(hf, work / "mistral-full", model_type="mistral", sliding_window=None, **plain)
    wide = edited(hf, work / "mistral-wide", model_type="mistral", **plain)
    again = work / "mistral-again"
    sinkproof("synth", str(model), "--layout", "hf", "--out", str(again))
    told = sinkproof("info", str(model))[1] + sinkproof("info", str(wide))[1]
    report(fingerprint(again) == fingerprint(model) != fingerprint(hf) == fingerprint(full)
           and config_of(again)["model_type"] == "mistral" and "2 sliding with window 4, 0 full" in told
           and "not stated  sliding_window 4096" in told,
           "model.config mistral: written again it is the same model, and without its window it is Llama's", [told])
    held(work, "mistral", model, again)
    trace = str(work / "t")
    sinkproof("run", str(full), "--tokens", TOKENS, "--policy", "f32", "--trace", trace)
    status, out, _ = sinkproof("judge", str(model), trace, "--policy", "f32", "--any-model", "--json", "-")
    os.unlink(trace)
    found = json.loads(out)["results"][0]["first_divergence"]
    report(status == 1 and found == "00.A9", f"mask.window mistral: a run without the window is a bug at {found}", [out[:300]])


def engines(work, hf, gguf):
    """Every engine and policy: inside, in whichever container the judge reads."""
    for engine, policy in (("ref", "f32"), ("ref", "bf16"), ("ref", "hf-bf16"), ("ref", "f16"),
                           ("lanes", "f32"), ("fast", "f32"), ("fast", "bf16-operands")):
        trace = str(work / "t")
        sinkproof("run", str(hf), "--tokens", TOKENS, "--engine", engine, "--policy", policy, "--trace", trace)
        status, out, told = sinkproof("judge", str(gguf), trace, "--policy", policy)
        os.unlink(trace)
        report(status == 0 and "within what honest rounding can do" in out or "exact" in out.splitlines()[-1],
               f"model.forward llama: {engine} under {policy} is honest: {told}", out.splitlines()[-3:])
    wanted = sinkproof("run", str(hf), "--tokens", TOKENS, "--policy", "f32", "--engine", "lanes")[1]
    report(all(sinkproof("run", str(m), "--tokens", TOKENS, "--policy", "f32", "--engine", "fast")[1] == wanted
               for m in (hf, gguf)), "model.forward llama: fast gives the bits of lanes, from both containers")
    trace = str(work / "t")
    status, out, _ = sinkproof("truth", str(hf), "--tokens", TOKENS)
    report(status == 0 and "certified" in out, "model.forward llama: the truth certifies the last token's largest logit")
    sinkproof("run", str(hf), "--tokens", TOKENS, "--engine", "fast", "--trace", trace)
    status, out, told = sinkproof("truth", str(hf), "--local", trace)
    report(status == 0, f"model.forward llama: the truth of each operation on the engine's own inputs {told}", [out])


def turned(rows):
    """Rows of each head as GGUF has them."""
    out = []
    for head in range(len(rows) // DIM):
        for pair in range(DIM // 2):
            out += [rows[head * DIM + pair], rows[head * DIM + DIM // 2 + pair]]
    return b"".join(out)


def mistakes(work, hf):
    """The engine runs another model than the one that is judged: each difference is convicted at its point."""
    held = checkpoints.read(hf / "model.safetensors")[0]

    def other(name, change):
        dtype, shape, _ = held[name]
        return {name: (dtype, shape, change(rows_of(hf, name)))}

    layer = "model.layers.0."
    gate, up = (held[f"{layer}mlp.{name}_proj.weight"] for name in ("gate", "up"))
    norm = f"{layer}input_layernorm.weight"
    planted = [
        ("rows of queries side by side", "00.A2.q", other(f"{layer}self_attn.q_proj.weight", turned), {}),
        ("rows of keys side by side", "00.A2.k", other(f"{layer}self_attn.k_proj.weight", turned), {}),
        ("gate and up exchanged", "00.M6", {f"{layer}mlp.gate_proj.weight": up, f"{layer}mlp.up_proj.weight": gate}, {}),
        ("another base of the rotation", "00.A4.q", {}, {"rope_theta": 10001.0}),
        ("another epsilon", "00.A1", {}, {"rms_norm_eps": 1e-3}),
        ("the norm's weight left out", "00.A1", other(norm, lambda rows: b"\x80\x3f" * HIDDEN), {}),
        ("keys of the two groups exchanged", "00.A2.k", other(
            f"{layer}self_attn.k_proj.weight", lambda rows: b"".join(rows[DIM:] + rows[:DIM])), {}),
        ("a head's values dropped", "00.A2.v", other(
            f"{layer}self_attn.v_proj.weight", lambda rows: bytes(DIM * len(rows[0])) + b"".join(rows[DIM:])), {}),
        ("one row of the down-projection", "00.M10", other(
            f"{layer}mlp.down_proj.weight", lambda rows: rows[1] + b"".join(rows[1:])), {}),
        ("an unembedding of its own", "F2", {"lm_head.weight": (
            "BF16", held["model.embed_tokens.weight"][1], held["model.norm.weight"][2] * 211)}, {"tie_word_embeddings": False}),
    ]
    for number, (what, point, tensors, keys) in enumerate(planted):
        model, trace = edited(hf, work / f"planted{number}", tensors, **keys), str(work / "t")
        sinkproof("run", str(model), "--tokens", TOKENS, "--policy", "f32", "--trace", trace)
        status, out, told = sinkproof("judge", str(hf), trace, "--policy", "f32", "--any-model", "--json", "-")
        os.unlink(trace)
        found = json.loads(out)["results"][0]["first_divergence"]
        report(status == 1 and found == point,
               f"bound.swiglu bound.rope bound.rmsnorm llama: {what} is a bug at {point}: exit {status} {told}", [found])


def refused(work, hf):
    """What would change the mathematics, one key at a time."""
    for number, (keys, sentence) in enumerate((
            ({"rope_scaling": {"rope_type": "linear", "factor": 8.0}}, 'expected "rope_type" to be "default" or "llama3", found "linear"'),
            ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}},
             'expected "rope_type" to be without "llama3", or with its factor, low_freq_factor and high_freq_factor'),
            ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}},
             'expected "original_max_position_embeddings" to be a whole number from 1 to 2^30, found nothing'),
            ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0,
                               "original_max_position_embeddings": 32}}, 'expected high_freq_factor above low_freq_factor 4, found 4'),
            ({"rope_parameters": {"rope_type": "default", "rope_theta": 5.0}}, 'expected "rope_theta" to be equal to the one inside'),
            ({"hidden_act": "gelu"}, 'expected "hidden_act" to be "silu", found "gelu"'),
            ({"quantization_config": {"quant_method": "fp8"}}, 'expected "quantization_config" to be absent, since it is read for GPT-OSS alone, found {"quant_method":"fp8"}'),
            ({"partial_rotary_factor": 0.5}, 'expected "partial_rotary_factor" to be absent or 1, found 0.5'),
            ({"model_type": "mistral", "sliding_window": "7"}, 'expected "sliding_window" to be a whole number from 1 to 2^30'),
            ({"model_type": "qwen3", "use_sliding_window": True, "max_window_layers": "0"},
             'expected "max_window_layers" to be a whole number from 1 to 2^30, found "0"'),
            ({"model_type": "qwen3", "use_sliding_window": True, "layer_types": ["full_attention", "linear"]},
             'expected "layer_types" to be made of sliding_attention and full_attention'),
            ({"model_type": "qwen3", "use_sliding_window": True, "layer_types": ["full_attention"]},
             'expected "layer_types" to be a list of num_hidden_layers names'),
            ({"layer_types": ["full_attention", "sliding_attention"]}, 'expected "layer_types" to be full_attention in every layer'),
            ({"num_key_value_heads": 5}, "expected num_key_value_heads to divide 12 heads, found 5"),
            ({"attention_bias": True}, "expected a tensor model.layers.0.self_attn.q_proj.bias, found none"),
            ({"tie_word_embeddings": False}, "expected a tensor lm_head.weight, found none"),
            ({"intermediate_size": 64}, "tensor model.layers.0.mlp.gate_proj.weight: expected shape [64, 96]"))):
        status, _, told = sinkproof("info", str(edited(hf, work / f"refused{number}", **keys)))
        report(status == 3 and sentence in told, f"model.config llama refused: {told.strip()}")
    held = checkpoints.read(hf / "model.safetensors")[0]["model.embed_tokens.weight"]
    stored = edited(hf, work / "stored", {"lm_head.weight": held})
    report(fingerprint(stored) == fingerprint(hf), "model.config llama: a tied unembedding may be stored too")
    stored = edited(hf, work / "another", {"lm_head.weight": (*held[:2], held[2][2:] + held[2][:2])})
    status, _, told = sinkproof("info", str(stored))
    report(status == 3 and "lm_head.weight: expected the numbers of model.embed_tokens.weight" in told,
           f"model.config llama refused: {told.strip()}")
    file = Gguf(str(work / "m.gguf"))
    file.tensors["rope_freqs.weight"] = (0, [8], struct.pack("<8f", *[1.0] * 8))
    status, _, told = sinkproof("info", file.write(work / "scaled.gguf"))
    report(status == 3 and "expected no tensor rope_freqs.weight" in told, f"model.config llama refused: {told.strip()}")
    del file.tensors["rope_freqs.weight"]
    file.keys["llama.rope.scaling.type"] = (8, "linear")
    status, _, told = sinkproof("info", file.write(work / "linear.gguf"))
    report(status == 3 and "llama.rope.scaling.type to be absent" in told, f"model.config llama refused: {told.strip()}")


def main():
    with checkpoints.tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        hf, gguf = containers(work)
        engines(work, hf, gguf)
        qwen2(work, hf)
        qwen3(work)
        mistral(work, hf)
        llama3(work, hf)
        mistakes(work, hf)
        refused(work, hf)
    return checkpoints.TAP.done()


if __name__ == "__main__":
    sys.exit(main())
