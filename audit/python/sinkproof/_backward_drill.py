# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A kernel of a stage that goes back, as torch's autograd differentiates the forward kernel."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sinkproof._library import Error

Kernel = Callable[..., Any]
WEIGHTS = {"dsink": "sinks", "dW.o": "w_o", "db.o": "b_o", "dW.final_norm": "final_norm"}  # of each gradient


def is_differentiated(outputs: Sequence[str], given: Iterable[str]) -> bool:
    """Whether a kernel goes forward where gradients are asked: it is given none."""
    return outputs[0].startswith("d") and not any(name.startswith("d") for name in given)


def differentiated(kernel: Kernel, arguments: Mapping[str, Any], words: Mapping[str, str], outputs: Sequence[str],
                   back: Mapping[str, Any], with_lse: bool) -> list[Any]:
    """The gradients of a forward kernel's result, and with `with_lse` of its log-sum-exp, with respect to `outputs`."""
    try:
        import torch
    except ImportError:
        raise Error("a kernel that is given no gradient is differentiated by torch, which is not installed") from None
    leaves: dict[str, Any] = {}
    for word, value in arguments.items():
        name = words.get(word, "")
        if f"d{name}" in outputs or name in WEIGHTS.values():
            if not isinstance(value, torch.Tensor):
                raise Error(f"{word}: expected a tensor of torch, which differentiates the kernel (like=\"torch\"), or a "
                            f"parameter for {', '.join(back)}, found {type(value).__name__}")
            leaves[name] = value.requires_grad_()
    results = kernel(**arguments)
    results = results if isinstance(results, (tuple, list)) else (results,)
    given = [gradient for name, gradient in back.items() if with_lse or name != "dA9.lse"]
    if len(results) != len(given):
        raise ValueError(f"expected {len(given)} results of the kernel, found {len(results)}")
    if with_lse and results[1].shape != given[1].shape:  # the tokens first
        given[1] = given[1].T
    used = [(leaves.get(WEIGHTS.get(name, name[1:])), name) for name in outputs]
    missing = [name for leaf, name in used if leaf is None]
    if missing:
        raise Error(f"the kernel has no parameter whose gradient is {', '.join(missing)}")
    found = torch.autograd.grad([one for one in results], [leaf for leaf, _ in used],
                                [gradient.to(one.dtype) for one, gradient in zip(results, given)], allow_unused=True)
    return [torch.zeros_like(leaf) if gradient is None else gradient for gradient, (leaf, _) in zip(found, used)]
