# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Low-rank adapters of PEFT in a torch module: merged into the weights, or a product of their own."""
from __future__ import annotations

from sinkproof._trace import TraceError
from sinkproof.adapters._torch import Module


def unmerged(module: Module) -> list[str]:
    """The adapters that a layer of PEFT adds beside its weights."""
    if not hasattr(module, "base_layer") or not hasattr(module, "merged_adapters"):
        return []
    if getattr(module, "disable_adapters", False):
        return []
    return [str(name) for name in module.active_adapters if name not in module.merged_adapters]


def without_adapter(model: Module) -> Module:
    """The model in PEFT's wrapper, or the model itself. An adapter that is not merged raises a TraceError: its product is
    rounded apart from that of the weights, and no set bounds this sum."""
    base: Module = model.get_base_model() if hasattr(model, "get_base_model") else model
    for name, module in base.named_modules() if hasattr(base, "named_modules") else ():
        found = unmerged(module)
        if found:
            raise TraceError(f"{name}: the adapter {found[0]} is not merged into the weights: what it adds is rounded apart, "
                             "which no set bounds. Trace and save model.merge_and_unload(), and judge it against what was "
                             "saved")
    return base
