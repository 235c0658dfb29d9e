# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Hugging Face transformers' Llama, Qwen2, Qwen3 and Mistral, judged: honest runs pass, mistakes planted in them are convicted.

    python tests/audit/interop_hf_llama.py

A TAP program beside interop_hf.py, which says what it needs. transformers draws and saves small checkpoints, `sinkproof
synth` writes another one; both are read by transformers and by the judge. FEW=1 asks two lengths of four, and plants
each mistake in one format.
"""
import contextlib
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PYTHON = os.path.join(ROOT, "audit", "python")
sys.path[:0] = [PYTHON, os.path.join(ROOT, "tests", "shared")]
import sinkproof  # noqa: E402
import torch  # noqa: E402
from engines import changed  # noqa: E402
from interop_hf_calls import packed_row, padded  # noqa: E402
from interop_hf_gpt2 import ran  # noqa: E402
from interop_hf_planted import SINKPROOF  # noqa: E402
from sinkproof.adapters import transformers as hf  # noqa: E402
from sinkproof.adapters import transformers_llama as llama  # noqa: E402
from sinkproof.adapters._tokens import random_tokens  # noqa: E402
from tap import Tap  # noqa: E402

POLICIES = {"float32": "f32", "bfloat16": "hf-llama-bf16"}
FEW = bool(os.environ.get("FEW"))
# torch's fused attention: scores and exponentials stay in float32, the weights are divided at the end.
FUSED = {"float32": "", "bfloat16": ",A5=f32?,A6=f32?,A9=real,A9.unnorm=bf16?,A9.form=definition|running-max"}
VOCAB, WITHIN = 211, ("within", "exact")
TOKENS = random_tokens(40, 5, VOCAB)
SIZES = {"vocab_size": VOCAB, "hidden_size": 96, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 6,
         "num_key_value_heads": 2, "max_position_embeddings": 64, "bos_token_id": None, "eos_token_id": None}
MODELS = {"llama": ("Llama", {"rms_norm_eps": 1e-5}),
          "llama, tied": ("Llama", {"rms_norm_eps": 1e-5, "tie_word_embeddings": True, "head_dim": 24}),
          "llama, biased": ("Llama", {"attention_bias": True, "mlp_bias": True, "rope_theta": 50000.0}),
          "llama 3": ("Llama", {"rms_norm_eps": 1e-5, "rope_parameters": {
              "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 32}}),
          "qwen2": ("Qwen2", {"tie_word_embeddings": False, "num_attention_heads": 4}),
          "qwen2, tied": ("Qwen2", {"tie_word_embeddings": True, "rope_theta": 1e6}),
          "qwen3": ("Qwen3", {"head_dim": 24, "rms_norm_eps": 1e-5}),
          "qwen3, tied, windows": ("Qwen3", {"head_dim": 16, "tie_word_embeddings": True, "attention_bias": True,
                                             "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}),
          "mistral": ("Mistral", {"sliding_window": 7, "rms_norm_eps": 1e-5}),
          "mistral, full": ("Mistral", {"sliding_window": None, "head_dim": 24, "tie_word_embeddings": True})}


def made(directory, kind, options, dtype=torch.bfloat16):
    """A checkpoint that transformers draws and saves; embeddings are small, so that the norm's epsilon counts."""
    import transformers
    torch.manual_seed(3)
    model = getattr(transformers, f"{kind}ForCausalLM")(getattr(transformers, f"{kind}Config")(**{**SIZES, **options}))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            size = 0.02 if "embed" in name else 0.5 if parameter.dim() == 1 else 0.15
            parameter.copy_(torch.randn_like(parameter) * size + ("norm" in name))
    model.to(dtype).save_pretrained(directory)
    return directory


def judged(opened, trace, policy, diagnosis=False):
    return sinkproof.judge(opened, trace, policy, local=True, hint=False, diagnosis=diagnosis)


def first_bug(judgement):
    return next((point.name for point in judgement.points if str(point.verdict) == "bug"), None)


def holds(tap, text, opened, trace, policy, points):
    """Every sequence holds, and shows so many points."""
    found = [judged(opened, one, policy) for one in trace.sequences]
    tap.report(all(str(one.verdict) in WITHIN and len(one.points) == points for one in found),
               f"llama.forward transformers {text}: {' '.join(str(one.verdict) for one in found)}",
               [(len(one.points), first_bug(one), one.first) for one in found])


def opened_norms(model):
    """Whether queries and keys go through norms, which two points of a layer show."""
    return hasattr(model.model.layers[0].self_attn, "q_norm")


def honest(tap, name, directory):
    opened = sinkproof.Model(directory)
    for dtype, policy in POLICIES.items():
        model = llama.load_model(directory, dtype)
        points = (16 + 2 * opened_norms(model)) * model.config.num_hidden_layers + 3
        for n, piece in ((1, 0), (33, 7)) if FEW else ((1, 0), (40, 0), (33, 7), (9, 1)):
            text = f"{name} {dtype}, {n} tokens{f' in pieces of {piece}' if piece else ''}"
            holds(tap, text, opened, ran(model, random_tokens(n, n, VOCAB), piece), policy, points)
        with torch.no_grad(), sinkproof.trace(model) as trace:
            model(**padded([random_tokens(n, n, VOCAB) for n in (20, 3, 9)], "left"))
        holds(tap, f"{name} {dtype}, a padded batch", opened, trace, policy, points)
        with torch.no_grad(), sinkproof.trace(model) as trace:
            model(**packed_row(), use_cache=False)
        holds(tap, f"{name} {dtype}, a packed row of {len(trace['cu_seqlens']) - 1}", opened, trace, policy, points)
        model = llama.load_model(directory, dtype, "sdpa")  # without A6 and A10
        holds(tap, f"{name} {dtype}, sdpa", opened, ran(model, random_tokens(20, 1, VOCAB)), policy + FUSED[dtype], points - 4)


# -- mistakes: each a context in which the model has it


def replaced(name, make):
    """A function of the model's own module, by make(it, the module)."""
    def plant(model, layer):
        modeling = sys.modules[type(layer).__module__]
        return changed(modeling, name, make(getattr(modeling, name), modeling))
    return plant


def eager(change):
    """Eager attention of change(arguments by name, module)."""
    def make(forward, modeling):
        def wrong(module, query, key, value, attention_mask, **more):
            given = {"query": query, "key": key, "value": value, "attention_mask": attention_mask, **more}
            return forward(module, **{**given, **change(given)})
        return wrong
    return replaced("eager_attention_forward", make)


def theta(base):
    def plant(model, layer):
        d = model.model.layers[0].self_attn.head_dim
        return changed(model.model.rotary_emb, "inv_freq", 1.0 / base ** (torch.arange(0, d, 2).float() / d))
    return plant


def neighbours(forward, modeling):
    """Pairs of neighbours, as the published Llama turns them, on rows that are stored for halves."""
    def turned(x, cos, sin):
        half = x.shape[-1] // 2
        cos, sin = cos[:, None, :, :half], sin[:, None, :, :half]
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
    return lambda q, k, cos, sin, *more: (turned(q, cos, sin), turned(k, cos, sin))


def part(path, name, make):
    """An attribute of a part of the first layer, by make(it, the layer)."""
    def plant(model, layer):
        thing = layer.get_submodule(path)
        return changed(thing, name, make(getattr(thing, name), layer))
    return plant


def norms(name, make):
    """An attribute of every norm, by make(the norm)."""
    def plant(model, layer):
        stack = contextlib.ExitStack()
        for norm in model.modules():
            if hasattr(norm, "variance_epsilon"):
                stack.enter_context(changed(norm, name, make(norm)))
        return stack
    return plant


def weight(path, make, name="weight"):
    return part(path, name, lambda old, layer: torch.nn.Parameter(make(old.detach(), layer)))


def interleaved(rows, layer):
    """The rows of a head as GGUF's converter stores them: halves become neighbours."""
    d = layer.self_attn.head_dim
    return rows.view(-1, 2, d // 2, rows.shape[1]).transpose(1, 2).reshape(rows.shape)


def off_by_one(forward, modeling):
    """A softmax with one more logit, 0, that has no value."""
    def wrong(module, query, key, value, attention_mask, scaling, **more):
        keys, values = (modeling.repeat_kv(x, module.num_key_value_groups) for x in (key, value))
        scores = torch.matmul(query, keys.transpose(2, 3)) * scaling + attention_mask
        weights = torch.softmax(torch.nn.functional.pad(scores, (0, 1)).float(), -1)[..., :-1].to(query.dtype)
        return torch.matmul(weights, values).transpose(1, 2).contiguous(), weights
    return wrong


def layer_forward(model, layer):
    """The residual is taken behind the norm."""
    def wrong(hidden_states, **more):
        normed = layer.input_layernorm(hidden_states)
        middle = normed + layer.self_attn(hidden_states=normed, **more)[0]
        return middle + layer.mlp(layer.post_attention_layernorm(middle))
    return changed(layer, "forward", wrong)


def exchanged(model, layer):
    mlp = layer.mlp
    return changed(mlp, "forward", lambda x: mlp.down_proj(mlp.act_fn(mlp.up_proj(x)) * mlp.gate_proj(x)))


def exchanged_weights(model, layer):
    gate, up = layer.mlp.gate_proj, layer.mlp.up_proj
    stack = contextlib.ExitStack()
    for thing, other in ((gate, up), (up, gate)):
        stack.enter_context(changed(thing, "weight", other.weight))
    return stack


def centred(norm):
    """The variance in place of the mean square."""
    return lambda x: norm.weight * (x.float() * torch.rsqrt(x.float().var(-1, keepdim=True)
                                                            + norm.variance_epsilon)).to(x.dtype)


def uncast(norm):
    """The norm of GPT-OSS: the weight multiplies before the cast."""
    return lambda x: (norm.weight.float() * x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True)
                                                                    + norm.variance_epsilon)).to(x.dtype)


def norm_of_all_heads(forward, layer):
    """The mean square is that of all heads."""
    norm = layer.self_attn.q_norm

    def wrong(x):
        square = x.float().pow(2).mean((-2, -1), keepdim=True)
        return norm.weight * (x.float() * torch.rsqrt(square + norm.variance_epsilon)).to(x.dtype)
    return wrong


def wider(given):
    """Each query sees one key more, before its window."""
    mask = given["attention_mask"]
    return {"attention_mask": torch.cat((mask[:, :, :, 1:], mask[:, :, :, -1:]), 3).maximum(mask)}


def past_the_edge(given):
    """Each query sees one key more, the next."""
    mask = given["attention_mask"]
    return {"attention_mask": torch.cat((mask[:, :, 1:], torch.zeros_like(mask[:, :, :1])), 2)}


def short_of_itself(given):
    """Each query but the first sees one key less, its own."""
    mask = given["attention_mask"]
    return {"attention_mask": torch.cat((mask[:, :, :1], mask[:, :, :-1]), 2)}


ANY, F32, BF16 = ("float32", "bfloat16"), ("float32",), ("bfloat16",)
MISTAKES = {  # where it is convicted first, in which formats, of which model
    "theta 9999": (theta(9999.0), "00.A4.q", F32, "llama"),
    "theta 50000": (theta(50000.0), "00.A4.q", ANY, "llama"),
    "rotation by neighbours": (replaced("apply_rotary_pos_emb", neighbours), "00.A4.q", ANY, "llama"),
    "Llama 3's rotation not scaled": (theta(500.0), "00.A4.q", ANY, "llama 3"),
    "scores not scaled": (part("self_attn", "scaling", lambda *_: 1.0), "00.A6", ANY, "llama"),
    "scores scaled by the width": (part("self_attn", "scaling", lambda *_: 96 ** -0.5), "00.A6", ANY, "llama"),
    "the next key is seen": (eager(past_the_edge), "00.A10", ANY, "llama"),
    "a token does not see itself": (eager(short_of_itself), "00.A10", ANY, "llama"),
    "heads by modulus": (replaced("repeat_kv", lambda *_: lambda x, n: x.repeat(1, n, 1, 1)), "00.A6", ANY, "llama"),
    "gate and up exchanged": (exchanged, "00.M8", ANY, "llama"),
    "weights of gate and up exchanged": (exchanged_weights, "00.M6", ANY, "llama"),
    "GELU": (part("mlp", "act_fn", lambda *_: torch.nn.GELU()), "00.M8", ANY, "llama"),
    "ReLU": (part("mlp", "act_fn", lambda *_: torch.nn.ReLU()), "00.M8", ANY, "llama"),
    "epsilon 1e-6": (norms("variance_epsilon", lambda _: 1e-6), "00.A1", ANY, "llama"),
    "no epsilon": (norms("variance_epsilon", lambda _: 0.0), "00.A1", ANY, "llama"),
    "a norm with a mean": (norms("forward", centred), "00.A1", ANY, "llama"),
    "a norm of weight plus one": (norms("weight", lambda norm: torch.nn.Parameter(norm.weight + 1)), "00.A1", ANY, "llama"),
    "a norm cast behind its weight": (norms("forward", uncast), "00.A1", BF16, "llama"),
    "the residual behind the norm": (layer_forward, "00.A13", ANY, "llama"),
    "a sink of 0": (replaced("eager_attention_forward", off_by_one), "00.A10", ANY, "llama"),
    "values in float16": (eager(lambda given: {"value": given["value"].half().to(given["value"].dtype)}), "00.A11", F32,
                          "llama"),
    "an untied head": (lambda model, layer: changed(model.lm_head, "weight", torch.nn.Parameter(
        model.lm_head.weight.roll(1, 0))), "F2", ANY, "llama, tied"),
    "query rows as GGUF has them": (weight("self_attn.q_proj", interleaved), "00.A2.q", ANY, "llama"),
    "key rows as GGUF has them": (weight("self_attn.k_proj", interleaved), "00.A2.k", ANY, "llama"),
    "no bias of the output": (weight("self_attn.o_proj", lambda b, _: 0 * b, "bias"), "00.A12", ANY, "llama, biased"),
    "no bias of the gate": (weight("mlp.gate_proj", lambda b, _: 0 * b, "bias"), "00.M6", ANY, "llama, biased"),
    "no bias of the query": (weight("self_attn.q_proj", lambda b, _: 0 * b, "bias"), "00.A2.q", ANY, "qwen2"),
    "no bias of the value": (weight("self_attn.v_proj", lambda b, _: 0 * b, "bias"), "00.A2.v", ANY, "qwen2, tied"),
    "no norm of the key": (part("self_attn.k_norm", "forward", lambda *_: lambda x: x), "00.A3.k", ANY, "qwen3"),
    "the key's norm for the query": (weight("self_attn.q_norm", lambda _, layer: layer.self_attn.k_norm.weight.detach()), "00.A3.q",
                                     ANY, "qwen3"),
    "a norm of all heads together": (part("self_attn.q_norm", "forward", norm_of_all_heads), "00.A3.q", ANY, "qwen3"),
    "a window of one key more": (eager(wider), "00.A10", ANY, "mistral"),
    "no window": (eager(lambda given: {"attention_mask": torch.triu(torch.full_like(
        given["attention_mask"], torch.finfo(given["attention_mask"].dtype).min), 1)}), "00.A10", ANY, "mistral"),
}


def by_command(tap, folder, directory):
    """What a user types: the adapter's word, and the exit codes of the judge."""
    def codes(*words, policies):
        out = os.path.join(folder, "trace.safetensors")
        subprocess.run([sys.executable, "-m", "sinkproof.trace", "transformers-llama", directory, "--tokens",
                        "random:40,seed=2", *words, "--out", out], check=True, env={**os.environ, "PYTHONPATH": PYTHON})
        return [subprocess.run([SINKPROOF, "judge", directory, out, "--policy", policy], capture_output=True).returncode
                for policy in policies]
    found = codes("--dtype", "float32", "--chunk", "7", "--cache", "static", policies=["f32"])
    found += codes("--dtype", "bfloat16", policies=["hf-llama-bf16", "auto", "bf16", "hf-bf16",
                                                       "hf-llama-bf16,A1.norm=real"])
    tap.report(found == [0, 0, 0, 0, 1, 1], "llama.forward transformers by command: holds in a static cache, and in bfloat16 by "
               "name, by auto and under bf16; outside hf-bf16", found)


def planted(tap, places):
    opened = {name: sinkproof.Model(directory) for name, directory in places.items()}
    for dtype, policy in POLICIES.items():
        models = {name: llama.load_model(directory, dtype) for name, directory in places.items()}
        for n, (what, (plant, at, dtypes, name)) in enumerate(MISTAKES.items()):
            model = models[name]
            if dtype in dtypes and not (FEW and len(dtypes) > 1 and dtype != dtypes[n % len(dtypes)]):
                with plant(model, model.model.layers[0]):
                    trace = ran(model, TOKENS)
                first = first_bug(judged(opened[name], trace, policy))
                why = [] if first == at else judged(opened[name], trace, policy, diagnosis=True).diagnosis
                tap.report(first == at, f"llama.forward transformers {name} {dtype}, {what}: a bug at {first}",
                           [f"expected at {at}", *map(str, why)])


def main():
    tap = Tap()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        places = {name: made(os.path.join(folder, name.replace(", ", "-")), *how) for name, how in MODELS.items()}
        for name, directory in places.items():
            honest(tap, name, directory)
        ours = os.path.join(folder, "ours")
        subprocess.run([SINKPROOF, "synth", "synthetic:tiny-llama,layers=2", "--layout", "hf", "--out", ours], check=True)
        honest(tap, "synth's checkpoint", ours)
        wide = made(os.path.join(folder, "float32"), *MODELS["llama, biased"], torch.float32)
        holds(tap, "a checkpoint in float32", sinkproof.Model(wide), ran(llama.load_model(wide, "float32"), TOKENS), "f32", 35)
        by_command(tap, folder, places["llama"])
        planted(tap, places)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
