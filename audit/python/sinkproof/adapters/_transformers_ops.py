# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The operations inside transformers' attention, router and experts, as a watcher sees them."""
from __future__ import annotations

from typing import Any

from sinkproof._trace import TraceError
from sinkproof.adapters._torch import ADDITIONS, PRODUCTS, SCALINGS, Tensor, same_storage


class AttentionOps:
    """Watches one call of eager attention: A6 is the first product, scaled; A9 the softmax."""

    def __init__(self) -> None:
        self.product: Tensor = None
        self.scores: Tensor = None
        self.weights: Tensor = None

    def __call__(self, name: str, args: Any, result: Any) -> None:
        if name in PRODUCTS and self.product is None:
            self.product = result
        elif name in SCALINGS and self.scores is None and args and args[0] is self.product:
            self.scores = result.clone()
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


class ExpertOps:
    """Watches one call of the experts. Products alternate: up, down, up, down, ...

    `products` collects {input, product, biased} for each matrix product; `where` and `sort` hold the
    index tensors that assign the rows of a product to (token, slot).
    """

    def __init__(self) -> None:
        self.products: list[dict[str, Tensor]] = []
        self.rows: list[tuple[Tensor, Tensor]] = []
        self.order: Tensor = None

    def __call__(self, name: str, args: Any, result: Any) -> None:
        if name in PRODUCTS:
            # The product is copied: the bias may be added to it in place.
            self.products.append({"input": args[0], "raw": result, "product": result.clone(),
                                  "biased": None})
        elif name in ADDITIONS and self.products and self.products[-1]["biased"] is None:
            if same_storage(self.products[-1]["raw"], args[0]):
                self.products[-1]["biased"] = result
        elif name == "where" and len(args) == 1:
            self.rows.append(result)  # (slot, token) of the rows of one expert
        elif name in ("sort", "argsort"):
            self.order = result[1] if name == "sort" else result

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
        n, k = chosen_nk.shape
        gathered: dict[str, Tensor] = {}
        written = torch.zeros(n * k, dtype=torch.int64, device=chosen_nk.device)
        for at, slots in enumerate(self.slots_by_product(chosen_nk, implementation)):
            up, down = self.products[2 * at], self.products[2 * at + 1]
            if up["biased"] is None or down["biased"] is None:
                raise TraceError("the experts' bias was not seen being added")
            found = {"input": up["input"], "M5": up["product"], "M6": up["biased"],
                     "M8": down["input"], "M9": down["product"], "M10": down["biased"]}
            if slots is None:  # every expert computed every token: pick the chosen ones
                token_nk = torch.arange(n, device=chosen_nk.device)[:, None].expand(n, k)
                found = {point: value[chosen_nk, token_nk] for point, value in found.items()}
                slots = torch.arange(n * k, device=chosen_nk.device)
            found = {point: value.reshape(len(slots), -1) for point, value in found.items()}
            rows, tokens = found.pop("input").contiguous(), tokens_nh[slots // k].contiguous()
            if not torch.equal(rows.view(torch.uint8), tokens.view(torch.uint8)):  # bits: NaN != NaN
                raise TraceError("the experts' rows are not the tokens that were expected there")
            written.index_add_(0, slots, torch.ones_like(slots))
            for point, value in found.items():
                if point not in gathered:
                    gathered[point] = value.new_empty(n * k, value.shape[-1])
                gathered[point][slots] = value
        if not torch.equal(written, torch.ones_like(written)):
            raise TraceError("the experts did not compute each chosen (token, expert) pair once")
        return {point: value.reshape(n, k, -1) for point, value in gathered.items()}
