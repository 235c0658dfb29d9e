# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof sinks --trace` on transformers models of six architectures with drawn weights, observed by sinkproof.observe:
every metric beside one that numpy computes from what transformers itself returns. One table of all six. With
build/models/smollm2.gguf, the same on a trained model, beside the census of its own engine. 10 CPU seconds, 25 with it.

The numbers agree to 1e-5: both are float32 numbers of one model, from two runs.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "audit" / "python"), str(ROOT / "tests" / "shared")]
from sinkproof.observe import main as observe_main  # noqa: E402
from sinkproof.observe import observe  # noqa: E402
from tap import Tap  # noqa: E402

PROGRAM = os.environ.get("SINKPROOF") or str(ROOT / "build/release/sinkproof")
SMOLLM2 = ROOT / "build/models/smollm2.gguf"
AGREE = 1e-5
SIZES = {"vocab_size": 101, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "bos_token_id": None,
         "eos_token_id": None, "pad_token_id": None}
GATED = {**SIZES, "num_key_value_heads": 2, "intermediate_size": 64}
CONFIGS = {
    "GPT-2": transformers.GPT2Config(vocab_size=101, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=None, eos_token_id=None),
    "OPT": transformers.OPTConfig(**SIZES, ffn_dim=64, max_position_embeddings=64, word_embed_proj_dim=32),
    "BLOOM": transformers.BloomConfig(vocab_size=101, hidden_size=32, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None),
    "Llama": transformers.LlamaConfig(**GATED),
    "Qwen2": transformers.Qwen2Config(**GATED),
    "Mistral": transformers.MistralConfig(**GATED, sliding_window=8),
}
N = 20


def sinks(*words):
    ran = subprocess.run([PROGRAM, "sinks", *map(str, words), "--json", "-"], capture_output=True, text=True, check=False)
    return json.loads(ran.stdout)["results"][0] if ran.returncode == 0 else sys.exit(ran.stderr)


def expected(model, ids):
    """Of each layer: alpha_1 by head, norms of first and median value and key, the largest state and its place."""
    with torch.no_grad():
        out = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True, use_cache=True)
    told = []
    for layer, weights in enumerate(out.attentions):
        cache, n = out.past_key_values.layers[layer], len(ids)
        groups = [x[0].double().numpy() for x in (cache.values, cache.keys) if x.shape[2] == n]
        norms = [numpy.linalg.norm(x, axis=-1) for x in groups]
        state = out.hidden_states[layer + 1][0].double().numpy() if layer + 1 < len(out.attentions) else None
        told.append({"alpha_1": weights[0, :, :, 0].double().mean(-1).numpy(),
                     "drains": [(norm[:, 0], numpy.median(norm[:, 1:], axis=-1)) for norm in norms],
                     "largest": None if state is None else (abs(state).max(), *numpy.unravel_index(abs(state).argmax(), state.shape))})
    return told


def apart(census, told):
    """The largest relative difference of the command's numbers from these, and how many there are."""
    off, count = 0.0, 0
    for layer, want in zip(census["layers"], told):
        pairs = [(h["alpha"][0], w) for h, w in zip(layer["heads"], want["alpha_1"])]
        for kind, (first, median) in zip(("values", "keys"), want["drains"]):
            pairs += [(g["first"] / g["median"], a / b) for g, a, b in zip(layer[kind], first, median)]
        if want["largest"] is not None:
            pairs.append((layer["M12"]["largest"], want["largest"][0]))
            pairs.append((layer["M12"]["token"] * 10000 + layer["M12"]["coordinate"], want["largest"][1] * 10000 + want["largest"][2]))
        off = max([off, *(abs(a - b) / max(abs(b), 1e-3) for a, b in pairs)])
        count += len(pairs)
    return off, count


def cosine(trace, layer, head):
    """The mean cosine of the queries after the first with the first key."""
    q, k = trace[f"{layer:02}.A4.q"].astype(float)[1:, head], trace[f"{layer:02}.A4.k"].astype(float)
    key = k[0, head // (trace[f"{layer:02}.A4.q"].shape[1] // k.shape[1])]
    return float((q @ key / numpy.linalg.norm(q, axis=-1) / numpy.linalg.norm(key)).mean())


def one(tap, work, name, model, ids):
    path = work / f"{name}.safetensors"
    trace = observe(model, ids)
    trace.save(path)
    census = sinks("--trace", path)
    off, count = apart(census, expected(model, ids))
    tap.report(off <= AGREE and count > 0, f"metric.sink {name}: {count} numbers as transformers' own outputs have them, worst={off:.1e} bound={AGREE}")
    if "00.A4.q" in trace:
        off = max(abs(layer["heads"][h]["cosine_1"] - cosine(trace, l, h)) for l, layer in enumerate(census["layers"]) for h in range(len(layer["heads"])))
        tap.report(off <= AGREE, f"metric.key-geometry {name}: cosines with the first key, worst={off:.1e} bound={AGREE}")
    else:
        tap.report("A4.q" in census["missing"], f"{name}: no queries are seen, and the census names them: {census['missing']}")
    return census


def main():
    tap = Tap()
    ids, rows = [(37 * i + 11) % 101 for i in range(N)], {}
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for name, config in CONFIGS.items():
            torch.manual_seed(1)
            model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
            rows[name] = one(tap, work, name, model, ids)
        print("# | model | alpha_1 | first value over others | largest over median |")
        for name, census in rows.items():
            last = census["layers"][-1]
            mean = numpy.mean([h["alpha"][0] for h in last["heads"]])
            drains = [g["first"] / g["median"] for g in last["values"]] if last["values"][0]["first"] is not None else [float("nan")]
            print(f"# | {name} | {mean:.4f} | {numpy.mean(drains):.3f} | {last['M12']['ratio']:.2f} |")
        tap.report(len(rows) == 6, "one table of six architectures")
        # A state that is another layer's, or a map that is another head's, is not taken for its own.
        torch.manual_seed(1)
        model = transformers.AutoModelForCausalLM.from_config(CONFIGS["Llama"], attn_implementation="eager").eval()
        wrong = {name: value for name, value in observe(model, ids).items()}
        wrong["00.A9"] = wrong["00.A9"][::-1].copy()
        from sinkproof import Trace
        Trace(wrong, {"format": "sinkproof-trace-1"}).save(work / "wrong.safetensors")
        off, _ = apart(sinks("--trace", work / "wrong.safetensors"), expected(model, ids))
        tap.report(off > AGREE, f"heads in another order are seen: {off:.1e}")
        model.save_pretrained(work / "llama")
        status = observe_main([str(work / "llama"), "--tokens", "random:9", "--out", str(work / "told.safetensors")])
        tap.report(status == 0 and sinks("--trace", work / "told.safetensors")["tokens"] == 9, "and from the command line")
        tap.report(observe_main([str(work / "none"), "--tokens", "1", "--out", "x"]) == 3, "what is no directory is refused")
        if SMOLLM2.exists():
            model = transformers.AutoModelForCausalLM.from_pretrained(str(SMOLLM2.parent), gguf_file=SMOLLM2.name, dtype=torch.float32,
                                                                      attn_implementation="eager")
            ids = [(37 * i + 500) % 40000 for i in range(24)]
            census = one(tap, work, "SmolLM2", model.eval(), ids)
            own = sinks(SMOLLM2, "--engine", "fast", "--tokens", ",".join(map(str, ids)))
            pairs = [(a[key], b[key]) for x, y in zip(census["layers"], own["layers"]) for a, b in zip(x["heads"], y["heads"])
                     for key in ("cosine_1", "cosine_others")]
            pairs += [(a["alpha"][0], b["alpha"][0]) for x, y in zip(census["layers"], own["layers"]) for a, b in zip(x["heads"], y["heads"])]
            off = max(abs(a - b) for a, b in pairs)
            tap.report(off <= AGREE, f"metric.sink SmolLM2: transformers and the fast path, {len(pairs)} weights and cosines, worst={off:.1e} bound={AGREE}")
        else:
            tap.skip("metric.sink SmolLM2", "build/models/smollm2.gguf is not there: make smollm2 brings it")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
