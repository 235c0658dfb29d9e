# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""One step of the training study (doc/27) as a trace: every point of the forward pass and every gradient of it, as torch's
autograd has them in float32; and the model in the layout of GPT-OSS, as which it is read: one expert, no YaRN, SwiGLU
without limit and offset, the sink that the design has. For tests/proofs/test_training_gradients.c.

A design without a value of its own star can be written so: softmax, off-by-one, score-bias, k-bias.
"""
import json
import pathlib

import numpy
import safetensors.torch
import torch
import training

SINKS = {"softmax": "none", "off-by-one": "off-by-one", "score-bias": "logit", "k-bias": "key"}


def config_of(config):
    return {"model_type": "gpt_oss", "num_hidden_layers": 1, "num_local_experts": 1, "num_experts_per_tok": 1,
            "vocab_size": config.letters + 1, "hidden_size": config.width, "intermediate_size": 2 * config.width,
            "head_dim": config.dim, "num_attention_heads": config.heads, "num_key_value_heads": config.heads,
            "sliding_window": 64, "layer_types": ["full_attention"], "max_position_embeddings": 64, "hidden_act": "silu",
            "attention_bias": True, "tie_word_embeddings": False, "rms_norm_eps": 1e-5, "swiglu_limit": 1e30,
            "swiglu_alpha": 1.0, "swiglu_offset": 0.0, "attention_sink": SINKS[config.design], "rope_theta": 10000.0,
            "rope_scaling": {"rope_type": "yarn", "factor": 1.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
                             "original_max_position_embeddings": 64}}


def interleaved(x):
    """[..., 2 f] of up and then gate, as the study has them: a gate, its up, the next gate."""
    up, gate = x.chunk(2, dim=-1)
    return torch.stack([gate, up], dim=-1).flatten(-2)


def shaped(config, learned):
    """{slot: tensor of rows and columns} of what a model has learned, or of its gradients."""
    own = {name[2:]: p for name, p in learned.items() if name.startswith("0.")}
    made = {f"W.{x}": own[x].transpose(1, 2).flatten(0, 1) for x in "qkv"}
    made |= {"W.o": own["o"].flatten(0, 1).T, "W.attn_norm": own["norm"], "W.mlp_norm": own["mlp.norm"],
             "W.up": interleaved(own["mlp.up"]).T, "W.down": own["mlp.down"].T,
             "W.embedding": learned["embed"], "W.unembedding": learned["unembed"].T, "W.final_norm": learned["norm"]}
    if config.choices["star"] in ("score", "key"):
        made["sink"] = own["logit" if "logit" in own else "key"]
    return {name: tensor.contiguous() for name, tensor in made.items()}


def checkpoint(config, learned):
    own, c, layer = shaped(config, learned), config.width, "model.layers.0."
    made = {f"{layer}self_attn.{x}_proj.weight": own[f"W.{x}"] for x in "qkvo"}
    made |= {f"{layer}self_attn.{x}_proj.bias": torch.zeros(own[f"W.{x}"].shape[0]) for x in "qkvo"}
    made |= {f"{layer}input_layernorm.weight": own["W.attn_norm"], f"{layer}post_attention_layernorm.weight": own["W.mlp_norm"],
             f"{layer}mlp.router.weight": torch.zeros(1, c), f"{layer}mlp.router.bias": torch.zeros(1),
             f"{layer}mlp.experts.gate_up_proj": own["W.up"].T[None], f"{layer}mlp.experts.down_proj": own["W.down"].T[None],
             f"{layer}mlp.experts.gate_up_proj_bias": torch.zeros(1, own["W.up"].shape[0]),
             f"{layer}mlp.experts.down_proj_bias": torch.zeros(1, c), "model.embed_tokens.weight": own["W.embedding"],
             "model.norm.weight": own["W.final_norm"], "lm_head.weight": own["W.unembedding"]}
    if "sink" in own:
        made[f"{layer}self_attn.sinks"] = own["sink"]
    return {name: tensor.contiguous() for name, tensor in made.items()}


class Recorded:
    """torch, whose einsum keeps its operands and results."""

    def __init__(self):
        self.sums = []

    def __getattr__(self, name):
        return getattr(torch, name)

    def einsum(self, equation, *operands):
        result = torch.einsum(equation, *operands)
        self.sums.append((equation, operands, result))
        return result


def recorded(config, learned, tokens_t):
    """The forward and the backward pass of one text: the tensors of interest, each with its gradient."""
    kept, its, seen = Recorded(), {}, {"normed": [], "turned": []}
    real = {name: getattr(training, name) for name in seen}

    def keeping(name):
        def call(x, *more):
            result = real[name](x, *more)
            seen[name].append((x, result))
            return result
        return call

    training.torch = kept
    for name in seen:
        setattr(training, name, keeping(name))
    try:
        tokens = torch.tensor(tokens_t)[None, None]
        losses = training.losses(config, learned, tokens, lambda layer, did, h: its.update(did))
    finally:
        training.torch = torch
        for name in seen:
            setattr(training, name, real[name])
    (t0, a1), (a13, m1), (m12, f1) = seen["normed"]
    (q, _), (k, _) = seen["turned"]
    (_, up), ((m8, _), m10) = [(operands, result) for equation, operands, result in kept.sums if equation == "sbtc,scd->sbtd"]
    logits = kept.sums[-1][2]
    points = {"T0": t0, "00.A1": a1, "00.A2.q": q, "00.A2.k": k, "00.A2.v": its["v"], "00.A4.q": its["q"], "00.A4.k": its["k"],
              "00.A6": its["s"], "00.A9": its["alpha"], "00.A11": its["o"], "00.A13": a13, "00.M1": m1, "00.M6": up, "00.M8": m8,
              "00.M10": m10, "00.M12": m12, "F1": f1, "F2": logits}
    for tensor in points.values():
        tensor.retain_grad()
    losses[..., :-1].mean().backward()  # the last token of a trace has no next one
    return points


def trace(config, learned, tokens_t):
    points, made = recorded(config, learned, tokens_t), {}
    n = len(tokens_t) - 1
    hidden = ~torch.ones(n, n).tril().bool()

    def flat(name, x):
        x = x.detach()[0, 0]
        if name[3:] in ("A2.q", "A2.k", "A2.v", "A4.q", "A4.k", "A11"):
            return x.transpose(0, 1)  # a row for each token, head after head
        x = interleaved(x) if name[3:] == "M6" else x
        return x[:, None] if name[3:] in ("M6", "M8", "M10") else x  # of one expert

    for name, tensor in points.items():
        value, gradient = flat(name, tensor), flat(name, tensor.grad)
        place, point = (name[:3], name[3:]) if name[2:3] == "." else ("", name)
        if point == "A9":  # the gradient of a hidden key's weight of 0 is read by nothing
            if value.shape[-1] == n:
                value = torch.cat([value, torch.zeros(config.heads, n, 1)], dim=-1)
            point, gradient = "A10", gradient[..., :n].masked_fill(hidden, 0)
        elif point == "A6":
            value, gradient = value[..., :n], gradient[..., :n]
        made |= {name: value, f"{place}d{point}": gradient}
    down = points["00.M10"].detach()[0, 0] * points["00.M10"].grad[0, 0]
    made |= {"00.M3": torch.zeros(n, 1, dtype=torch.int32), "00.M4": torch.ones(n, 1), "00.dM4": down.sum(-1)[:, None],
             "00.dM2": torch.zeros(n, 1)}  # one expert
    gradients = {name: p.grad[0] for name, p in learned.items()}
    for name, tensor in shaped(config, gradients).items():
        ends = name in ("W.embedding", "W.unembedding", "W.final_norm")
        made[f"{'' if ends else '00.'}d{name}"] = tensor[None] if name in ("W.up", "W.down") else tensor
    made["tokens"] = torch.tensor(tokens_t[:-1], dtype=torch.int32)
    made["positions"] = torch.arange(n, dtype=torch.int32)
    return {name: tensor.contiguous() for name, tensor in made.items()}


def write(folder, config, learned, length, run=""):
    """The model and the trace of the first seed on the beginning of the first text that is measured; run: what says which
    run the model is of."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    alone = training.dataclasses.replace(config, seeds=config.seeds[:1])
    own = {name: p.detach()[:1].clone().requires_grad_() for name, p in learned.items()}
    tokens = training.draw(config, numpy.random.default_rng(0), 1)[0][0, :length + 1].tolist()
    (folder / "config.json").write_text(json.dumps(config_of(config)) + "\n", encoding="utf-8")
    cos, sin = training.angles_of(config, length)
    said = {"format": "sinkproof-trace-1", "engine": f"torch {torch.__version__}", "policy": "f32", "loss": "cross-entropy", "run": run}
    for name, tensors in (("trace", trace(alone, own, tokens)), ("angles", {"cos": cos, "sin": sin}),
                          ("model", checkpoint(config, {key: p.detach()[0] for key, p in own.items()}))):
        (folder / f"{name}.safetensors").write_bytes(safetensors.torch.save(tensors, said if name == "trace" else None))
