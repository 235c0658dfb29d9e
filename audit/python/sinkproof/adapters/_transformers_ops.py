# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The operations inside transformers' attention, router and experts, as a watcher sees them."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from sinkproof._trace import TraceError
from sinkproof.adapters._torch import ADDITIONS, PRODUCTS, SCALINGS, Module, Tensor, same_storage, watch


class AttentionOps:
    """Watches one call of eager attention: A6 is the first product, scaled; A9 the softmax.

    `scores` is a copy of A6; follow(point, tensor) is told which tensor of the pass is A6 itself.
    """

    def __init__(self, follow: Callable[[str, Tensor], None]) -> None:
        self.follow = follow
        self.product: Tensor = None
        self.scores: Tensor = None
        self.weights: Tensor = None

    def __call__(self, name: str, args: Any, result: Any) -> None:
        if name in PRODUCTS and self.product is None:
            self.product = result
        elif name in SCALINGS and self.scores is None and args and args[0] is self.product:
            self.scores = result.detach().clone()
            self.follow("A6", result)
        elif name == "softmax":
            self.weights = result


class RouterOps:
    """Watches one call of the router: M2 is its linear map, M3 the top k, M4 their softmax."""

    def __init__(self) -> None:
        self.logits: Tensor = None
        self.chosen: Tensor = None
        self.weights: Tensor = None

    def __call__(self, name: str, args: Any, result: Any) -> None:
        if name == "linear":
            self.logits = result
        elif name == "topk":
            self.chosen = result[1]
        elif name == "softmax" and self.chosen is not None:
            self.weights = result


# What each point is of the products: of the first or the second of a pair, and what of it.
EXPERT_POINTS = {"M5": (0, "product"), "M6": (0, "biased"), "M8": (1, "input"), "M9": (1, "product"), "M10": (1, "biased")}


class ExpertOps:
    """Watches one call of the experts. Products alternate: up, down, up, down, ...

    `products` collects {input, product, biased} for each matrix product; `where` and `sort` hold the
    index tensors that assign the rows of a product to (token, slot). With `backward` their gradients are
    collected when they come, in `gradients`.
    """

    def __init__(self, backward: bool = False) -> None:
        self.backward = backward
        self.gradients: list[dict[str, Tensor]] = []  # of each product
        self.slots: list[Tensor] = []                 # of each pair's rows, when they are gathered
        self.chosen_nk: Tensor = None
        self.products: list[dict[str, Tensor]] = []
        self.rows: list[tuple[Tensor, Tensor]] = []
        self.order: Tensor = None

    def __call__(self, name: str, args: Any, result: Any) -> None:
        if name in PRODUCTS:
            # The product is copied: the bias may be added to it in place.
            self.products.append({"input": args[0], "raw": result, "product": result.detach().clone(),
                                  "biased": None})
            self.gradients.append({})
            self.follow("input", args[0])
            self.follow("product", result)
        elif name in ADDITIONS and self.products and self.products[-1]["biased"] is None:
            if same_storage(self.products[-1]["raw"], args[0]):
                self.products[-1]["biased"] = result
                self.follow("biased", result)
        elif name == "where" and len(args) == 1:
            self.rows.append(result)  # (slot, token) of the rows of one expert
        elif name in ("sort", "argsort"):
            self.order = result[1] if name == "sort" else result

    def follow(self, what: str, values: Tensor) -> None:
        found = self.gradients[-1]

        def arrived(gradient: Tensor) -> None:
            found[what] = gradient.clone()
        if self.backward and values.requires_grad:
            values.register_hook(arrived)

    def slots_by_product(self, chosen_nk: Tensor, implementation: str) -> list[Tensor]:
        """For each up-product, the flat slot, token * k + slot, of each row; None: dense [E, n, .]."""
        import torch
        n, k = chosen_nk.shape
        n_pairs = len(self.products) // 2
        if not self.products or len(self.products) % 2:
            raise TraceError("the experts' matrix products do not come in pairs of up and down")
        if implementation == "batched_mm":
            return [torch.arange(n * k, device=chosen_nk.device)]
        if n_pairs == 1 and self.products[0]["product"].dim() == 3:
            return [None]
        if n_pairs == 1 and self.order is not None:
            return [self.order.reshape(-1)]
        if len(self.rows) != n_pairs:
            raise TraceError("the experts' rows were not selected once per up-projection")
        return [token * k + slot for slot, token in self.rows]

    def gather(self, chosen_nk: Tensor, tokens_nh: Tensor, implementation: str) -> dict[str, Tensor]:
        """{"M5": [n, k, 2 inter], "M6", "M8": [n, k, inter], "M9": [n, k, hidden], "M10"}."""
        import torch
        self.chosen_nk, self.slots = chosen_nk, self.slots_by_product(chosen_nk, implementation)
        if any(product["biased"] is None for product in self.products):
            raise TraceError("the experts' bias was not seen being added")
        k = chosen_nk.shape[1]
        written = torch.zeros(chosen_nk.numel(), dtype=torch.int64, device=chosen_nk.device)
        for at, slots in enumerate(self.slots):
            given, slots = self.chosen_rows(self.products[2 * at]["input"], slots)
            rows, tokens = given.contiguous(), tokens_nh[slots // k].contiguous()
            if not torch.equal(rows.view(torch.uint8), tokens.view(torch.uint8)):  # bits: NaN != NaN
                raise TraceError("the experts' rows are not the tokens that were expected there")
            written.index_add_(0, slots, torch.ones_like(slots))
        if not torch.equal(written, torch.ones_like(written)):
            raise TraceError("the experts did not compute each chosen (token, expert) pair once")
        return self.by_slots(self.products)

    def chosen_rows(self, values: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of the chosen (token, expert) pairs, [rows, width], and the slot of each."""
        import torch
        if slots is None:  # every expert computed every token
            token_nk = torch.arange(len(self.chosen_nk), device=self.chosen_nk.device)[:, None].expand(self.chosen_nk.shape)
            values = values[self.chosen_nk, token_nk]
            slots = torch.arange(self.chosen_nk.numel(), device=self.chosen_nk.device)
        return values.detach().reshape(len(slots), -1), slots

    def by_slots(self, products: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        """The points of these products, [n, k, width]; without those that some product lacks."""
        n, k = self.chosen_nk.shape
        gathered: dict[str, Tensor] = {}
        for point, (odd, what) in EXPERT_POINTS.items():
            found = [products[2 * at + odd].get(what) for at in range(len(self.slots))]
            for values, slots in zip(found, self.slots if all(one is not None for one in found) else ()):
                rows, slots = self.chosen_rows(values, slots)
                if point not in gathered:
                    gathered[point] = rows.new_empty(n * k, rows.shape[-1])
                gathered[point][slots] = rows
        return {point: value.reshape(n, k, -1) for point, value in gathered.items()}

    def gathered_gradients(self) -> dict[str, Tensor]:
        """The gradients of the points, after a backward pass; without those that did not come."""
        return self.by_slots(self.gradients)


# ------------------------------------------------------------------------------------------
# Attention, wrapped


CACHED = ("cached keys", "cached values")
Seers = list[dict[str, Callable[[Tensor], None]]]


def show(seen: dict[str, Callable[[Tensor], None]], values: dict[str, Tensor]) -> None:
    """To each point that is asked for its values."""
    for point, see in seen.items():
        if point in values:
            see(values[point])


def cached(key: Tensor, value: Tensor) -> dict[str, Tensor]:
    """All keys and values that attention reads, of which the trace may lack the first."""
    return dict(zip(CACHED, (key, value)))


def compiling() -> bool:
    import torch
    return bool(torch.compiler.is_compiling())


def eager_forward(eager: Callable[..., Any], see: Seers, follow: Callable[[int, str, Tensor], None]) -> Callable[..., Any]:
    """Eager attention that shows its arguments and results, and its operations if they are not compiled."""
    def traced(module: Module, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Any:
        seen = see[module.layer_idx]
        if compiling():
            output, weights = eager(module, query, key, value, *args, **kwargs)
        else:
            ops = AttentionOps(functools.partial(follow, module.layer_idx))
            with watch(ops):
                output, weights = eager(module, query, key, value, *args, **kwargs)
            if ops.scores is None or "A9" in seen and ops.weights is None:
                raise TraceError("scaled scores or softmax were not seen in the attention")
            show(seen, {"A6": ops.scores, "A9": ops.weights})
        show(seen, {"A4.q": query, "A4.k": key, "A10": weights, "A11": output, **cached(key, value)})
        return output, weights
    return traced


def other_forward(forward: Callable[..., Any], see: Seers) -> Callable[..., Any]:
    """Attention that shows no weights."""
    def traced(module: Module, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = forward(module, query, key, value, *args, **kwargs)
        show(see[module.layer_idx], {"A4.q": query, "A4.k": key, "A11": result[0], **cached(key, value)})
        return result
    return traced
