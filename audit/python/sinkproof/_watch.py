# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Watches a torch module during a `with` block: each sequence that it processes becomes a trace."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sinkproof._library import Error
from sinkproof._model import Model, opened
from sinkproof._points import kinds, of_gradient, without_layer
from sinkproof._trace import Array, Trace, TraceError
from sinkproof.adapters import Record, gpt2, gpt_oss, module, ranks, transformers, transformers_llama, versions
from sinkproof.adapters._adapted import base_of, beside
from sinkproof.adapters._backward import Backward
from sinkproof.adapters._batches import Batches
from sinkproof.adapters._map import Map
from sinkproof.adapters._torch import Module


class Watched(Trace):
    """The sequences of a block: `sequences`, each a Trace, in the order in which they began.

    With one sequence, this is its trace; with several, the caller takes one of `sequences`. Of several whose gradients
    came in one backward pass it is the trace of all of them, end to end, with the weights' gradients.
    """

    def __init__(self) -> None:
        super().__init__({})
        self.sequences: list[Trace] = []

    def take(self, records: Sequence[Record], metadata: Mapping[str, str], weights: Mapping[str, Any] | None = None) -> None:
        """`weights`: their gradients, which are those of all sequences; None: they are not known."""
        self.sequences = [record.trace(metadata) for record in records if record.tokens]
        if not self.sequences:
            raise TraceError("the model was not called: there is nothing to trace")
        if not any(record.pieces for record in records):
            raise TraceError("the model's calls showed none of the points that were asked for: were they compiled "
                             "before?")
        if len(self.sequences) == 1:
            self.sequences[0] = Trace({**self.sequences[0], **(weights or {})}, metadata)
            self.fill(self.sequences[0], metadata)
        elif weights is not None:
            self.fill({**end_to_end(self.sequences), **weights}, metadata)

    @property
    def _arrays(self) -> dict[str, Array]:
        if len(self.sequences) > 1 and not self._one:
            raise Error(f"{len(self.sequences)} sequences were traced: take one of .sequences")
        return self._one

    @_arrays.setter
    def _arrays(self, arrays: dict[str, Array]) -> None:
        self._one = arrays


def end_to_end(traces: Sequence[Trace]) -> dict[str, Array]:
    """The arrays of several sequences in one trace, of the points that all of them have."""
    ends = np.cumsum([0, *(len(trace["tokens"]) for trace in traces)])
    found: dict[str, Array] = {}
    for name in traces[0]:
        arrays = [trace[name] for trace in traces if name in trace]
        kind = kinds().get(of_gradient(name) or without_layer(name))
        if len(arrays) < len(traces):
            continue
        if kind is None or not kind.by_head:
            found[name] = np.concatenate(arrays, axis=int(kind is not None and kind.a_number))
            continue
        whole = np.zeros((len(arrays[0]), ends[-1], ends[-1] + int(kind.sink)), arrays[0].dtype)
        for array, first, end in zip(arrays, ends, ends[1:]):
            whole[:, first:end, first:end] = array[..., :end - first]
            if kind.sink:
                whole[:, first:end, -1] = array[..., -1]
        found[name] = whole
    return {**found, "cu_seqlens": ends.astype(np.int32)}


def engine_of(model: Module) -> Any:
    """The adapter that can watch the model."""
    for adapter in (transformers, gpt2, transformers_llama, gpt_oss):
        if adapter.watches(model):
            return adapter
    raise TraceError("expected transformers' GptOssForCausalLM, GPT2LMHeadModel, LlamaForCausalLM, "
                     "Qwen2ForCausalLM, Qwen3ForCausalLM or MistralForCausalLM, OpenAI's gpt_oss.torch Transformer, "
                     f"or a map beside any other module, found {type(model).__name__}")


@contextlib.contextmanager
def trace(model: Module, points: Iterable[str] | None = None, *, map: str | os.PathLike[str] | None = None,
          checkpoint: Model | str | os.PathLike[str] | None = None, backward: bool | str = False) -> Iterator[Watched]:
    """Watches a model during a `with` block: transformers' GptOssForCausalLM, GPT2LMHeadModel,
    LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM or MistralForCausalLM, OpenAI's Transformer.

    Any other torch module needs a `map`, a file that names its modules as points (chapter 19 of the
    book); `checkpoint` is then the model that the module computes. The adapter of a
    PeftModel is merged, or beside the weights: `judge` must then be told its directory.

    Yields a trace that is empty until the block ends, and then holds every point of the calls of
    `model` in the block, any number of them: prompts at once, in pieces or a token at a time through a
    cache, batches with padding, packed rows, `generate`. `.sequences` has a trace for each sequence; with one
    sequence, the yielded trace is that one. `points` restricts the trace, {"A9", "A13"}. Shapes are
    checked against `checkpoint` if it is given, and always when the trace is judged.

    With `backward`, which transformers' models but GPT-2 have, the block holds a call of backward() on a loss too,
    and the trace the gradient of each of its points, "03.dA11", and of each weight, "03.dsink", "03.dW.q" (chapter
    34). They are read where autograd passes them on, and no number of the pass is changed. Of several sequences in
    one backward pass the trace is that of all, end to end, since a weight's gradient is their sum; with more passes
    each of `.sequences` has the gradients of its points alone. A text says what the loss reads,
    `backward="cross-entropy"` the mean of the next tokens', and the judge then asks for the logits' gradient too.

    Raises TraceError, from the model's call, on anything that cannot be traced. If the block raises,
    the trace stays empty; afterwards nothing of the watcher remains in the model.
    """
    adapted = {"adapter": "beside"} if beside(model) is not None else {}
    model = base_of(model)
    if adapted and backward:
        raise TraceError("gradients are not traced through an adapter that is not merged into the weights")
    held = None if checkpoint is None else opened(checkpoint)
    words = None if points is None else tuple(points)

    def new_record() -> Record:
        return Record(held, words)

    found = Watched()
    if map is None:
        engine = engine_of(model)
        batches = Batches(new_record)
        if backward and engine not in (transformers, transformers_llama):
            raise TraceError(f"the gradients of {type(model).__name__} are not traced")
        gradients = (Backward(),) if backward else ()
        with engine.Watcher(model, batches, *gradients):
            yield found
        found.take(batches.records, {"engine": engine.Engine.title, **versions(engine.Engine.packages),
                                     **ranks(), **engine.metadata_of(model), **adapted,
                                     **({"loss": backward} if isinstance(backward, str) else {})}, gradients[0].of_weights() if gradients else None)
        return
    if backward:
        raise TraceError("gradients are not traced by a map")
    if held is None:
        raise TraceError("expected a checkpoint beside the map: its sizes cut the tensors")
    with module.Watcher(model, Map(os.fspath(map), held), new_record) as watcher:
        yield found
    found.take(watcher.records, {"engine": type(model).__name__, **versions(("torch",)), **ranks(), **adapted})
