# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Known mistakes, planted in transformers at run time and taken out again; no file is edited.

BUGS[name](model) is a context manager around a loaded GptOssForCausalLM. EXPECTED[name] says
where the judge has to see it first: the layer-less points of which one must be the first divergence.
"""
import contextlib
import sys

EXPECTED = {
    "window-129": ("A9",),
    "no-sink": ("A9",),
    "yarn-truncate": ("A4.q", "A4.k"),
    "alpha-bf16": ("M8",),
    "eps-1e-6": ("A1", "M1"),
    "sink-overflows": ("A9",),
}


@contextlib.contextmanager
def window_129(model):
    """A key at distance `window` is still seen: 129 keys, not 128 (an inclusive comparison)."""
    from transformers import masking_utils

    right = masking_utils.sliding_window_overlay

    def wrong(sliding_window):
        return lambda batch_idx, head_idx, q_idx, kv_idx: kv_idx >= q_idx - sliding_window

    masking_utils.sliding_window_overlay = wrong
    try:
        yield
    finally:
        masking_utils.sliding_window_overlay = right


@contextlib.contextmanager
def no_sink(model):
    """The attention function accepts the sink and leaves it out of the denominator."""
    modeling = sys.modules[type(model).__module__]
    right = modeling.eager_attention_forward

    def wrong(module, *args, **kwargs):
        sinks = module.sinks.data
        module.sinks.data = sinks.new_full(sinks.shape, float("-inf"))
        try:
            return right(module, *args, **kwargs)
        finally:
            module.sinks.data = sinks

    modeling.eager_attention_forward = wrong
    try:
        yield
    finally:
        modeling.eager_attention_forward = right


@contextlib.contextmanager
def yarn_truncate(model):
    """The ends of YaRN's ramp are rounded to whole dimensions although the model says not to."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rotary = model.model.rotary_emb
    parameters = getattr(model.config, "rope_parameters", None) or model.config.rope_scaling
    right, said = rotary.inv_freq, parameters.get("truncate")
    parameters["truncate"] = True
    rotary.inv_freq = ROPE_INIT_FUNCTIONS["yarn"](model.config, right.device)[0]
    parameters["truncate"] = said
    try:
        yield
    finally:
        rotary.inv_freq = right


@contextlib.contextmanager
def alpha_bf16(model):
    """SwiGLU's constant 1.702 was rounded to bfloat16: 1.703125."""
    experts = [layer.mlp.experts for layer in model.model.layers]
    right = [module.alpha for module in experts]
    for module in experts:
        module.alpha = 1.703125
    try:
        yield
    finally:
        for module, alpha in zip(experts, right):
            module.alpha = alpha


@contextlib.contextmanager
def eps_1e_6(model):
    """RMSNorm's eps is the usual default of other models, 1e-6."""
    norms = [module for module in model.modules() if hasattr(module, "variance_epsilon")]
    right = [module.variance_epsilon for module in norms]
    for module in norms:
        module.variance_epsilon = 1e-6
    try:
        yield
    finally:
        for module, eps in zip(norms, right):
            module.variance_epsilon = eps


@contextlib.contextmanager
def sink_overflows(model):
    """A sink logit that overflowed to infinity: inf - inf, and everything behind it is NaN."""
    sinks = [layer.self_attn.sinks for layer in model.model.layers]
    right = [parameter.data[0].item() for parameter in sinks]
    for parameter in sinks:
        parameter.data[0] = float("inf")
    try:
        yield
    finally:
        for parameter, value in zip(sinks, right):
            parameter.data[0] = value


BUGS = {
    "window-129": window_129,
    "no-sink": no_sink,
    "yarn-truncate": yarn_truncate,
    "alpha-bf16": alpha_bf16,
    "eps-1e-6": eps_1e_6,
    "sink-overflows": sink_overflows,
}
