# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Measures engines against certified truth: doc/book/data/truth-engines.json, all 24 layers of the released 20b shape
with drawn weights, and truth-smollm2.json, a trained model.

    python3 tests/audit/truth_of_engines.py WORK SUBJECT [ENGINE...]     `make truth-engines`

WORK holds the truth (212 MB), a GGUF file of the model (14 GB) and the traces; what is there is not made again. Each
engine reads the same numbers: MXFP4 experts and bfloat16 weights, or those of the GGUF file. The fast path and
transformers, which computes with its own GptOssForCausalLM, have one layer's weights at a time in memory. What a
graphics card computed is a trace that was made there: WORK/20b/h200.st, if it is there.
"""
import gc
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SINKPROOF = os.environ.get("SINKPROOF", "build/release/sinkproof")
POINTS = "T0,M3,M12,F1,F2"
TOKENS = ("52441,175679,45520,152027,108433,120247,167501,155020,160737,123847,93522,28760,93165,154204,45104,21885,28768,26605,"
          "137068,67581,173508,184162,17868,157249,89162,18853,49461,5607,41620,87441,53915,9496,176440,23185,182723,114950,"
          "187243,127794,28210,15296,192509,62031,65888,54807,150939,166918,30425,13611")
# Engine: (title, the policy that says the formats of its points).
ENGINES = {
    "fast": ("fast path, float32", "f32"),
    "fast-bf16": ("fast path, bfloat16 operands", "bf16-operands"),
    "transformers-f32": ("transformers, float32", "f32"),
    "transformers-bf16": ("transformers, bfloat16", "hf-bf16"),
    "llama": ("llama.cpp", "llama-cpp"),
    "h200": ("transformers on an H200, bfloat16", "bf16"),
}
# Subject: its model, tokens (None: those of LICENSE's first words), bits of the truth (None: as it finds), engines, and what is kept.
SUBJECTS = {
    "20b": ("synthetic:gpt-oss-20b", TOKENS, 768, tuple(ENGINES), "truth-engines.json"),
    "smollm2": ("build/models/smollm2.gguf", None, None, ("fast", "fast-bf16", "transformers-f32", "llama"), "truth-smollm2.json"),
}
LLAMA = "build/engines/llama/bin/python"


def run(*words, **more):
    print("+", *words[:9], flush=True)
    subprocess.run([str(w) for w in words], check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": "audit/python", **more})


# ---- transformers, a layer at a time


def layer_weights(model, layer, dtype):
    """The weights of a layer under transformers' names; experts [experts, columns, rows]."""
    import torch

    def matrix(name, expert=0):
        return torch.from_numpy(model.weight(name, layer, expert)).to(dtype)

    def stack(name, turned):
        each = (matrix(name, e) for e in range(int(model.number("n_experts"))))
        return torch.stack([x.T if turned else x[0] for x in each])
    made = {f"self_attn.{x}_proj.{kind}": matrix(name) if kind == "weight" else matrix(name)[0]
            for x in "qkvo" for kind, name in (("weight", f"w_{x}"), ("bias", f"b_{x}"))}
    return made | {"input_layernorm.weight": matrix("attn_norm")[0], "self_attn.sinks": matrix("sinks")[0],
                   "post_attention_layernorm.weight": matrix("mlp_norm")[0], "mlp.router.weight": matrix("w_router"),
                   "mlp.router.bias": matrix("b_router")[0], "mlp.experts.gate_up_proj": stack("w_up", True),
                   "mlp.experts.gate_up_proj_bias": stack("b_up", False), "mlp.experts.down_proj": stack("w_down", True),
                   "mlp.experts.down_proj_bias": stack("b_down", False)}


def fill(module, weights):
    module.load_state_dict(weights(), strict=True, assign=True)


def empty(module):
    module.to("meta")
    gc.collect()


def lazily(module, weights):
    """The module has its weights from the beginning of a call to its end."""
    module.register_forward_pre_hook(lambda *_: fill(module, weights))
    module.register_forward_hook(lambda *_: empty(module))


def transformers_model(model, dtype):
    """transformers' own class over the model's weights, which come when they are needed."""
    import torch
    import transformers
    transformers.utils.logging.set_verbosity_error()
    c = {name: model.number(name) for name in (
        "n_layers", "n_experts", "n_chosen", "vocab", "hidden", "inter", "n_heads", "n_kv_heads", "head_dim", "window", "rms_eps",
        "rope_theta", "yarn_factor", "yarn_beta_fast", "yarn_beta_slow", "yarn_original_context", "yarn_truncate", "max_context")}
    whole = {name: int(x) for name, x in c.items()}
    config = transformers.GptOssConfig(
        num_hidden_layers=whole["n_layers"], num_local_experts=whole["n_experts"], num_experts_per_tok=whole["n_chosen"],
        vocab_size=whole["vocab"], hidden_size=whole["hidden"], intermediate_size=whole["inter"], num_attention_heads=whole["n_heads"],
        num_key_value_heads=whole["n_kv_heads"], head_dim=whole["head_dim"], sliding_window=whole["window"], rms_norm_eps=c["rms_eps"],
        layer_types=["sliding_attention" if model.slides(l) else "full_attention" for l in range(whole["n_layers"])],
        max_position_embeddings=whole["max_context"], rope_parameters={
            "rope_type": "yarn", "rope_theta": c["rope_theta"], "factor": c["yarn_factor"], "beta_fast": c["yarn_beta_fast"],
            "beta_slow": c["yarn_beta_slow"], "original_max_position_embeddings": whole["yarn_original_context"],
            "truncate": bool(whole["yarn_truncate"])})
    config._attn_implementation = "eager"
    with torch.device("meta"):
        made = transformers.GptOssForCausalLM(config).to(dtype).eval()
    made.model.rotary_emb = type(made.model.rotary_emb)(config)
    for index, layer in enumerate(made.model.layers):
        lazily(layer, lambda index=index: layer_weights(model, index, dtype))

    def outside(name, row=False):
        return lambda: {"weight": torch.from_numpy(model.weight(name)).to(dtype)[0 if row else slice(None)]}
    lazily(made.model.embed_tokens, outside("embedding"))
    lazily(made.model.norm, outside("final_norm", True))
    lazily(made.lm_head, outside("unembedding"))
    return made


def transformers_of_file(path):
    import torch
    from transformers import AutoModelForCausalLM
    return AutoModelForCausalLM.from_pretrained(os.path.dirname(path), gguf_file=os.path.basename(path), dtype=torch.float32,
                                                attn_implementation="eager")


def trace_transformers(spec, tokens, dtype, out):
    import torch

    import sinkproof
    from sinkproof._model import Model
    made = transformers_of_file(spec) if spec.endswith(".gguf") else transformers_model(Model(spec), getattr(torch, dtype))
    with sinkproof.trace(made, points=POINTS.split(",")) as trace, torch.no_grad():
        made(input_ids=torch.tensor([tokens]), use_cache=False)
    trace.save(out)


# ---- making and comparing


def make(model, tokens, engine, work):
    """The engine's trace, or None where nothing can make it here."""
    out = work / f"{engine}.st"
    if out.exists() or engine == "h200":
        return out if out.exists() else None
    if engine.startswith("fast"):
        run(SINKPROOF, "run", model, "--engine", "fast", "--streamed", "--policy", ENGINES[engine][1], "--tokens", tokens,
            "--trace", out, "--points", POINTS)
    elif engine == "llama":
        file = ROOT / model if model.endswith(".gguf") else work / "model.gguf"
        if not file.exists():
            run(SINKPROOF, "synth", model, "--layout", "gguf", "--out", file)
        run(LLAMA, "-m", "sinkproof.trace", "llama", file, "--tokens", tokens, "--out", out, "--points", POINTS, "--no-repack",
            "--threads", "2", "--policy", "llama-cpp")
    else:
        dtype = {"bf16": "bfloat16", "f32": "float32"}[engine.rpartition("-")[2]]
        run(sys.executable, __file__, "--transformers", model, tokens, dtype, out)
    return out


def compared(model, engine, trace, truth):
    """What judge --truth-alone says, a row for each layer."""
    said = subprocess.run([SINKPROOF, "judge", model, str(trace), "--policy", ENGINES[engine][1], "--truth", str(truth), "--truth-alone",
                           "--json", "-"], capture_output=True, text=True, cwd=ROOT, check=False)
    if said.returncode != 4:
        raise SystemExit(f"{engine}: exit {said.returncode}: {said.stderr}")
    rows = {r["id"]: r for r in json.loads(said.stdout)["results"]}
    points = [{key: r[key] for key in ("point", "layer", "label", "format", "unit_roundoff", "rows", "rms", "worst")}
              for r in rows.values() if r["id"].endswith(".truth")]
    return {"engine": engine, "title": ENGINES[engine][0], "policy": ENGINES[engine][1], "metadata": metadata_of(trace),
            **{key: rows["truth"][key] for key in ("label", "bits", "argmax_certified", "routing_certified", "experts", "argmax")},
            "points": points}


def metadata_of(trace):
    raw = open(trace, "rb")
    with raw:
        header = json.loads(raw.read(int.from_bytes(raw.read(8), "little")))
    return {key: value for key, value in header["__metadata__"].items() if key not in ("format", "model")}


def tokens_of_license(model):
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")[:600]
    said = subprocess.run([SINKPROOF, "tokens", model, "--text", text], capture_output=True, text=True, cwd=ROOT, check=True)
    return ",".join(said.stdout.strip().split(",")[:48])


def main(words):
    work = pathlib.Path(words[0]).resolve() / words[1]
    model, tokens, bits, engines, name = SUBJECTS[words[1]]
    tokens, path = tokens or tokens_of_license(model), ROOT / "doc/book/data" / name
    work.mkdir(parents=True, exist_ok=True)
    truth = work / "truth.st"
    if not truth.exists():
        run(SINKPROOF, "truth", model, *(("--bits", bits) if bits else ()), "--tokens", tokens, "--trace", truth, "--points", "layers")
    told = {each["engine"]: each for each in json.loads(path.read_text(encoding="utf-8"))["engines"]} if path.exists() else {}
    for engine in words[2:] or engines:
        trace = make(model, tokens, engine, work)
        if trace is not None:
            told[engine] = compared(model, engine, trace, truth)
    kept = {"model": model, "tokens": tokens, "engines": [told[engine] for engine in engines if engine in told]}
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--transformers":
        trace_transformers(sys.argv[2], [int(t) for t in sys.argv[3].split(",")], sys.argv[4], sys.argv[5])
    else:
        main(sys.argv[1:])
