# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The gradients of one block: autograd passes them to hooks on tensors, which read them and return nothing."""
from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from sinkproof._trace import TraceError
from sinkproof.adapters._torch import Module, Tensor

# The gradients of transformers' parameters in a trace. Those of the experts' matrices are transposed there.
ENDS = {"model.embed_tokens.weight": "dW.embedding", "model.norm.weight": "dW.final_norm", "lm_head.weight": "dW.unembedding"}
KINDS = (("weight", "W"), ("bias", "b"))
IN_LAYER = {"input_layernorm.weight": "dW.attn_norm", "post_attention_layernorm.weight": "dW.mlp_norm",
            "self_attn.sinks": "dsink", "self_attn.q_norm.weight": "dW.q_norm", "self_attn.k_norm.weight": "dW.k_norm",
            "mlp.router.weight": "dW.router", "mlp.router.bias": "db.router",
            "mlp.experts.gate_up_proj": "dW.up", "mlp.experts.gate_up_proj_bias": "db.up",
            "mlp.experts.down_proj": "dW.down", "mlp.experts.down_proj_bias": "db.down",
            **{f"mlp.{half}_proj.{kind}": f"d{letter}.{half}" for half in ("gate", "up", "down") for kind, letter in KINDS},
            **{f"self_attn.{of}_proj.{kind}": f"d{letter}.{of}" for of in "qkvo" for kind, letter in KINDS}}
TRANSPOSED = ("mlp.experts.gate_up_proj", "mlp.experts.down_proj")

TWICE = "a gradient came twice: expected one backward pass of each call in the block"


class Backward:
    """Collects the gradients of a block."""

    def __init__(self) -> None:
        self.weights: dict[str, Tensor] = {}       # by the names of parameters, of the last backward pass
        self.again = False                         # there was a backward pass before it
        self.padded = False                        # padding has gradients, which the weights' are of too
        self.later: list[Callable[[], None]] = []  # what is kept when the pass is over
        self.came = False                          # a gradient of some point

    def enter(self, model: Module, undo: contextlib.ExitStack) -> None:
        """Hooks every parameter that a trace has a name for."""
        if any(getattr(part, "gradient_checkpointing", False) for part in model.modules()):
            raise TraceError("expected a model without gradient checkpointing, which runs the forward pass a second time")
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and named(name) is not None:
                undo.callback(parameter.register_hook(self.keeping(name)).remove)

    def keeping(self, name: str) -> Callable[[Tensor], None]:
        def keep(gradient: Tensor) -> None:
            self.again = self.again or name in self.weights
            self.weights[name] = gradient.detach().clone()
        return keep

    def follow(self, values: Tensor, keep: Callable[[Tensor], None]) -> None:
        """Passes the gradient of a tensor to `keep` when it comes."""
        came = False

        def arrived(gradient: Tensor) -> None:
            nonlocal came
            if came:
                raise TraceError(TWICE)
            came = self.came = True
            keep(gradient)
        if values.requires_grad:
            values.register_hook(arrived)

    def finish(self) -> None:
        """After the block."""
        if not self.came:
            raise TraceError("no gradient came: expected backward() on a loss inside the block, and a call of the model "
                             "that is not under torch.no_grad()")
        for keep in self.later:
            keep()

    def of_weights(self) -> dict[str, Tensor] | None:
        """The weights' gradients by their names in a trace; None: they are not those of the traced tokens alone."""
        return None if self.again or self.padded else named_gradients(self.weights)


def named(parameter: str) -> str | None:
    """The name of a parameter's gradient in a trace, or None."""
    if not parameter.startswith("model.layers."):
        return ENDS.get(parameter)
    layer, rest = parameter.removeprefix("model.layers.").split(".", 1)
    return f"{int(layer):02d}.{IN_LAYER[rest]}" if rest in IN_LAYER else None


def named_gradients(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The gradients of parameters under their names in a trace, in its shapes. A dense layer's gate and up are one
    weight there, whose even rows are the gate's; one without the other is left out."""
    import torch
    found, halves = {}, {}
    for parameter, gradient in weights.items():
        name = str(named(parameter))
        if "gate_proj." in parameter or "up_proj." in parameter:
            halves[name] = gradient
        else:
            found[name] = gradient.transpose(-1, -2) if parameter.endswith(TRANSPOSED) else gradient
    for up, gradient in halves.items():
        gate = halves.get(up.removesuffix("up") + "gate")
        if up.endswith(".up") and gate is not None:
            found[up] = torch.stack((gate, gradient), dim=1).flatten(0, 1)
    return found
