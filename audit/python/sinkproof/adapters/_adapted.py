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


# The linear layers for which the judge has sets with an adapter beside the weights.
BOUNDED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head")


def base_of(model: Module) -> Module:
    """The model in PEFT's wrapper, or the model itself."""
    base: Module = model.get_base_model() if hasattr(model, "get_base_model") else model
    return base


def beside(model: Module) -> str | None:
    """The adapter of PEFT that is beside the weights, not merged; None where there is none. One that the judge has no
    set for, or a second one, raises a TraceError."""
    base, names = base_of(model), set[str]()
    for name, module in base.named_modules() if hasattr(base, "named_modules") else ():
        found = unmerged(module)
        if found and name.rpartition(".")[2] not in BOUNDED:
            raise TraceError(f"{name}: the adapter {found[0]} is not merged into the weights: what it adds there is rounded "
                             "apart, which no set bounds. Trace and save model.merge_and_unload(), and judge it against what "
                             "was saved")
        if found and getattr(module, "merged_adapters", None):
            raise TraceError(f"{name}: the adapter {found[0]} is beside weights into which {module.merged_adapters[0]} is merged: "
                             "expected one of the two")
        names.update(found)
    if len(names) > 1:
        raise TraceError(f"expected one adapter beside the weights, found {', '.join(sorted(names))}")
    return names.pop() if names else None


def without_adapter(model: Module) -> Module:
    """The model in PEFT's wrapper, or the model itself, whose adapters are merged; else a TraceError."""
    name = beside(model)
    if name is not None:
        raise TraceError(f"the adapter {name} is not merged into the weights: trace it from Python, with sinkproof.trace")
    return base_of(model)
