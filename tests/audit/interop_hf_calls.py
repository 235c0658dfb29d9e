# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Every way of calling transformers' GPT-OSS, judged: batches, padding, caches, decoding, generation, compiled.

    python tests/audit/interop_hf_calls.py [--only batches,packed,decoding,generation,mistakes,attention,compiled]

A TAP program beside interop_hf.py, which says what it needs; FEW=1 compiles nothing, and gives mistakes and each
implementation of the experts one format. Each sequence of each call is a trace;
honest ones hold, a mistake is convicted in the sequences that it touches and in no other.
"""
import argparse
import contextlib
import os
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "audit", "python"), os.path.join(ROOT, "tests", "shared")]
import interop_hf_models as models  # noqa: E402
import sinkproof  # noqa: E402
import torch  # noqa: E402
from engines import changed  # noqa: E402
from sinkproof.adapters import transformers as hf  # noqa: E402
from sinkproof.adapters._tokens import random_tokens  # noqa: E402
from tap import Tap  # noqa: E402

DTYPES = ("float32", "bfloat16")
EXPERTS = ("grouped_mm", "batched_mm", "eager")
FEW = bool(os.environ.get("FEW"))
WINDOW = 8
LENGTHS = (20, 3, 9)


class Room:
    """A checkpoint with a narrow window, and the report."""

    def __init__(self, tap, directory, layers=2):
        self.tap = tap
        self.directory = models.make(directory, "tiny", num_hidden_layers=layers, sliding_window=WINDOW)
        self.opened = sinkproof.Model(self.directory)

    def policy(self, model):
        if model.dtype == torch.float32:
            return "f32"
        experts = hf.experts_implementation(model)
        return "hf-bf16,M11.sum=" + ("bf16" if experts == "eager" else "real")

    def judged(self, trace, policy):
        return [sinkproof.judge(self.opened, one, policy, local=True, hint=False, diagnosis=False)
                for one in trace.sequences]

    def honest(self, text, model, trace, count, points, policy=None):
        """So many sequences, each with so many points (2 layers of 23, T0, F1, F2), and all hold."""
        found = self.judged(trace, policy or self.policy(model))
        good = len(found) == count and all(one.ok and len(one.points) == points for one in found)
        self.tap.report(good, text, [f"{len(one.points)} points, {one.verdict} {one.first}" for one in found])

    def convicted(self, text, model, trace, firsts, policy=None):
        """The first point outside its set of each sequence; None where it holds."""
        found = [one.first if one.verdict == "bug" else None for one in self.judged(trace, policy or self.policy(model))]
        good = len(found) == len(firsts) and all(one in first if isinstance(first, tuple) else one == first
                                                 for one, first in zip(found, firsts))
        self.tap.report(good, f"{text}: {found}", [f"expected {firsts}"])


def prompts(lengths=LENGTHS):
    return [random_tokens(n, seed, 211) for seed, n in enumerate(lengths)]


def padded(sequences, side, positions=True):
    """Arguments of a call: sequences of several lengths as one batch."""
    n = max(map(len, sequences))
    ids, mask, places = [], [], []
    for tokens in sequences:
        pads, ones = [0] * (n - len(tokens)), [1] * len(tokens)
        counted = list(range(len(tokens)))
        ids.append(pads + tokens if side == "left" else tokens + pads)
        mask.append(pads + ones if side == "left" else ones + pads)
        places.append(pads + counted if side == "left" else counted + pads)
    found = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
    return {**found, "position_ids": torch.tensor(places)} if positions else found


def decoded(model, call, steps, cache):
    """A prefill and so many greedy steps."""
    output = model(**call, use_cache=True, **{hf.cache_word(model): cache})
    mask, place = call["attention_mask"], call["position_ids"].max(dim=1, keepdim=True).values
    for _ in range(steps):
        mask, place = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1), place + 1
        output = model(input_ids=output.logits[:, -1:].argmax(-1), attention_mask=mask, position_ids=place,
                       use_cache=True, **{hf.cache_word(model): cache})


def fed(model, sizes, cache):
    tokens, at = random_tokens(sum(sizes), 4, 211), 0
    for size in sizes:
        model(input_ids=torch.tensor([tokens[at:at + size]]), use_cache=True, **{hf.cache_word(model): cache})
        at += size


# ------------------------------------------------------------------------------------------
# Honest calls


def batches(room):
    """Padding on either side, each implementation of the experts."""
    for at, dtype in enumerate(DTYPES):
        for experts in EXPERTS[at:2 * at + 1] if FEW else EXPERTS:
            model = hf.load_model(room.directory, dtype, experts)
            for side in ("left", "right"):
                with torch.no_grad(), sinkproof.trace(model) as trace:
                    model(**padded(prompts(), side))
                room.honest(f"{dtype} experts={experts}: lengths {LENGTHS} padded on the {side} are three sequences",
                            model, trace, 3, 49)
    model = hf.load_model(room.directory, "float32")
    try:
        with torch.no_grad(), sinkproof.trace(model):
            model(**padded(prompts(), "left", positions=False))
        said = ""
    except sinkproof.TraceError as error:
        said = str(error)
    room.tap.report("row 1 of the batch" in said and "padding on the left needs position_ids" in said,
                    "positions that count padding are refused in a sentence", [said])
    with torch.no_grad(), sinkproof.trace(model) as trace:
        model(**padded(prompts(), "right"))
        model(input_ids=torch.tensor([prompts()[2]]))
    try:
        said = str(trace["00.A11"].shape)
    except sinkproof.Error as error:
        said = str(error)
    room.tap.report(len(trace.sequences) == 4 and said == "4 sequences were traced: take one of .sequences",
                    "any number of calls are traced; of several sequences one must be taken", [said])


def packed_row(bounds=False):
    """Arguments of a call: sequences end to end in one row, their positions restart."""
    lengths = [len(tokens) for tokens in prompts()]
    call = {"input_ids": torch.tensor([sum(prompts(), [])]), "position_ids": torch.tensor([[i for n in lengths for i in range(n)]])}
    ends = torch.tensor([0, *(sum(lengths[:i + 1]) for i in range(len(lengths)))], dtype=torch.int32)
    return {**call, "cu_seq_lens_q": ends, "cu_seq_lens_k": ends, "max_length_q": max(lengths), "max_length_k": max(lengths)} if bounds else call


def masks(modeling, told, **more):
    """The makers of masks are given `more`; told: what they are given by the model."""
    stack = contextlib.ExitStack()
    for name in ("create_causal_mask", "create_sliding_window_causal_mask"):
        def make(right=getattr(modeling, name), **kwargs):
            told.update(kwargs)
            return right(**{**kwargs, **more})
        stack.enter_context(changed(modeling, name, make))
    return stack


def packed(room):
    """Several sequences in one row, as batches without padding have them: one trace, with their bounds. The model of
    transformers 5.23 does not tell the makers of its masks the positions, from which they know the bounds: its attention
    crosses them, and is convicted. Told, it is honest."""
    for dtype in DTYPES[1:] if FEW else DTYPES:
        model, told = hf.load_model(room.directory, dtype), {}
        modeling = sys.modules[type(model).__module__]
        for bounds in (False, True):
            call = packed_row(bounds)
            with masks(modeling, told, position_ids=call["position_ids"]), torch.no_grad(), sinkproof.trace(model) as trace:
                model(**call, use_cache=False)
            room.honest(f"{dtype} a packed row{' with bounds for a kernel' if bounds else ''} is one trace of three sequences", model,
                        trace, 1, 49)
            room.tap.report(trace["cu_seqlens"].tolist() == [0, 20, 23, 32], "the trace has the bounds", [trace["cu_seqlens"]])
        with masks(modeling, {}, position_ids=None), torch.no_grad(), sinkproof.trace(model) as trace:
            model(**packed_row(), use_cache=False)
        room.convicted(f"{dtype} attention across the bounds of a packed row", model, trace, ("00.A9",))
        with torch.no_grad(), sinkproof.trace(model) as trace:
            model(**packed_row(), use_cache=False)
        room.convicted(f"{dtype} a packed row of transformers as it stands", model, trace,
                       (None if told.get("position_ids") is not None else "00.A9",))
    for act, says in ((lambda: model(**packed_row(), cu_seq_lens_q=torch.tensor([0, 21, 32]), use_cache=False),
                       "expected cu_seq_lens_q [0, 20, 23, 32], where the positions restart, found [0, 21, 32]"),
                      (lambda: model(**{**packed_row(), "position_ids": torch.tensor([[*range(20), *range(5, 17)]])}, use_cache=False),
                       "expected position 20 of token 20 in row 0 of the batch, found 5"),
                      (lambda: fed_packed(model), "a row that was packed goes on in a cache")):
        try:
            with torch.no_grad(), sinkproof.trace(model):
                act()
            said = ""
        except sinkproof.TraceError as error:
            said = str(error)
        room.tap.report(says in said, f"refused: {says}", [said])


def fed_packed(model):
    cache = hf.new_cache(model.config)
    model(**packed_row(), use_cache=True, **{hf.cache_word(model): cache})
    model(input_ids=torch.tensor([[3]]), use_cache=True, **{hf.cache_word(model): cache})


def decoding(room):
    """Steps after a padded batch, pieces of odd sizes around the window, single tokens: both caches."""
    for dtype in DTYPES:
        model = hf.load_model(room.directory, dtype)
        for kind in ("dynamic", "static"):
            def cache():
                return hf.new_cache(model.config, kind, 30)
            with torch.no_grad(), sinkproof.trace(model) as trace:
                decoded(model, padded(prompts(), "left"), 4, cache())
            room.honest(f"{dtype} {kind} cache: three sequences decode four tokens each", model, trace, 3, 49)
            for sizes in ((WINDOW - 1, 1, 1, 9), (3, WINDOW + 1, 1, 5), (1,) * 12):
                with torch.no_grad(), sinkproof.trace(model) as trace:
                    fed(model, sizes, cache())
                room.honest(f"{dtype} {kind} cache: pieces of {sizes}", model, trace, 1, 49)


def generation(room):
    for dtype in DTYPES:
        model = hf.load_model(room.directory, dtype)
        call = {**padded(prompts((11, 4)), "left", positions=False), "pad_token_id": 0, "max_new_tokens": 5}
        for text, count, options in (("greedy", 2, {}), ("static cache", 2, {"cache_implementation": "static"}),
                                     ("three samples", 6, {"do_sample": True, "num_return_sequences": 3})):
            with sinkproof.trace(model) as trace:
                model.generate(**call, **{"do_sample": False, "disable_compile": True, **options})
            room.honest(f"{dtype} generate, {text}: each sequence a trace, without logits that nobody asked for", model,
                        trace, count, 48)
    try:
        with sinkproof.trace(model):
            model.generate(**call, do_sample=False, num_beams=2)
        said = ""
    except sinkproof.TraceError as error:
        said = str(error)
    room.tap.report("the cache was asked to reorder_cache" in said, "a search by beams is refused", [said])


# ------------------------------------------------------------------------------------------
# Mistakes


def sinks_gone(modeling, steps_alone):
    """Eager attention without sinks, always or for single queries alone."""
    right = modeling.eager_attention_forward

    def wrong(module, query, *rest, **kwargs):
        sinks = module.sinks.data
        if not steps_alone or query.shape[2] == 1:
            module.sinks.data = torch.full_like(sinks, -1e30)
        try:
            return right(module, query, *rest, **kwargs)
        finally:
            module.sinks.data = sinks
    return changed(modeling, "eager_attention_forward", wrong)


def padding_seen(modeling):
    """The mask of padding is lost: queries see the padded slots."""
    right = modeling.create_causal_mask
    slides = modeling.create_sliding_window_causal_mask
    stack = contextlib.ExitStack()
    for name, make in (("create_causal_mask", right), ("create_sliding_window_causal_mask", slides)):
        stack.enter_context(changed(modeling, name, lambda make=make, **kwargs: make(**{**kwargs, "attention_mask": None})))
    return stack


def steps_one_late(model):
    """The rotation of a single query is told the next position."""
    rotary = model.model.rotary_emb
    right = rotary.forward
    return changed(rotary, "forward", lambda x, places: right(x, places + (places.shape[1] == 1)))


def rows_swapped(cache):
    """Keys are stored in another row of the batch."""
    right = cache.update
    return changed(cache, "update", lambda keys, values, *rest, **kwargs: right(keys.roll(1, 0), values, *rest, **kwargs))


def mistakes(room):
    for dtype in DTYPES[1:] if FEW else DTYPES:
        model = hf.load_model(room.directory, dtype)
        modeling = sys.modules[type(model).__module__]
        left, outside = padded(prompts(), "left"), ("00.A9",)
        with sinks_gone(modeling, True), torch.no_grad(), sinkproof.trace(model) as trace:
            decoded(model, left, 2, hf.new_cache(model.config))
            model(**left)
        room.convicted(f"{dtype} sinks gone in steps, where there are steps", model, trace, (outside,) * 3 + (None,) * 3)
        with padding_seen(modeling), torch.no_grad(), sinkproof.trace(model) as trace:
            model(**left)
        room.convicted(f"{dtype} padding seen, where there is some", model, trace, (None, outside, outside))
        with steps_one_late(model), torch.no_grad(), sinkproof.trace(model) as trace:
            decoded(model, left, 2, hf.new_cache(model.config))
        room.convicted(f"{dtype} positions of steps one late", model, trace, (("00.A4.q", "00.A4.k"),) * 3)
        cache = hf.new_cache(model.config)
        with rows_swapped(cache), torch.no_grad(), sinkproof.trace(model) as trace:
            decoded(model, left, 2, cache)
        room.convicted(f"{dtype} keys in another row of the batch", model, trace, (("00.A4.k", "00.A6"),) * 3)
        with torch.no_grad(), sinkproof.trace(model) as trace:
            decoded(model, left, 2, hf.new_cache(model.config))
        room.convicted(f"{dtype} nothing of them remains", model, trace, (None,) * 3)


# ------------------------------------------------------------------------------------------
# Other attention, compiled models


class Elsewhere:
    """A query as flex_attention_forward reads it, which gives up sinks on the CPU: on another device."""

    def __init__(self, query):
        self.query, self.shape, self.dtype, self.device = query, query.shape, query.dtype, types.SimpleNamespace(type="cuda")


def flex_kernel(query, key, value, scale, mask, kept):
    """What torch's flex_attention gives back: the output in the values' format, the LSE in float32."""
    key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
    scores = query.float() @ key.float().transpose(2, 3) * scale + mask.float()
    output, lse = torch.softmax(scores, dim=-1) @ value.float(), torch.logsumexp(scores, dim=-1)
    held = types.SimpleNamespace(to=lambda dtype: lse)  # stays in float32 where transformers would round it
    return (output if "output" in kept else output.to(value.dtype),
            types.SimpleNamespace(lse=held if "LSE" in kept else lse))


def flex_lines(kept):
    """flex_attention_forward of transformers, with that kernel."""
    from transformers.integrations import flex_attention as flex

    def forward(module, query, key, value, mask, scaling, s_aux=None, **kwargs):
        def kernel(elsewhere, key, value, scale, **options):
            return flex_kernel(elsewhere.query, key, value, scale, mask, kept)
        with changed(flex, "compile_friendly_flex_attention", kernel), changed(flex, "_TORCH_FLEX_USE_AUX", True):
            return flex.flex_attention_forward(module, Elsewhere(query), key, value, None, scaling=scaling, s_aux=s_aux)
    return forward


def attention(room):
    """transformers' own lines behind flex_attention, which put the sink into a finished softmax.

    They need a device that is not the CPU for the kernel alone: it is computed here in float32.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    for dtype, policy, kept, first in (("float32", "f32", (), None), ("bfloat16", "bf16", (), ("00.A11",)),
                                       ("bfloat16", "bf16", ("LSE",), ("00.A11",)),
                                       ("bfloat16", "bf16", ("LSE", "output"), None)):
        name = "_".join(["flex_lines", *kept])
        AttentionInterface.register(name, flex_lines(kept))
        AttentionMaskInterface.register(name, eager_mask)
        model = hf.load_model(room.directory, dtype, attention=name)
        with torch.no_grad(), sinkproof.trace(model) as trace:
            model(input_ids=torch.tensor([random_tokens(40, 1, 211)]))
        said = f"{dtype}: the sink put behind flex_attention, {' and '.join(kept) or 'nothing'} kept in float32"
        room.convicted(said, model, trace, (first,), policy)
        one = sinkproof.judge(room.opened, trace, policy, local=True, hint=False, diagnosis=False)["00.A11"]
        least, most = (0, 0) if first is None else (1, 1) if kept else (4, 300)
        room.tap.report(least <= one.excess_ulp <= most, f"  A11 is outside by {least} to {most} ulp",
                        [f"{one.outside} of {one.elements} outside, up to {one.excess_ulp:.3g} ulp"])
        print(f"# 00.A11: {one.outside} of {one.elements} outside, up to {one.excess_ulp:.3g} ulp")
    for name, part in (("sdpa", "does not support"), ("flex_attention", "Attention sinks cannot be run on CPU")):
        try:
            model = hf.load_model(room.directory, "float32", attention=name)
            model(input_ids=torch.tensor([[1, 2]]))
            said = ""
        except ValueError as error:
            said = str(error)
        room.tap.report(part in said, f"transformers itself refuses {name} on the CPU", [said[:300]])


def compiled(room):
    """One graph without breaks; in bfloat16 a norm reads the residual before it is rounded."""
    cases = ((Room(room.tap, f"{room.directory}-4", 4), "bfloat16", "bf16", ("00.M1",)), (room, "float32", "f32", None))
    for here, dtype, policy, first in cases:
        model = hf.load_model(here.directory, dtype)
        fast = torch.compile(model, fullgraph=True)
        with torch.no_grad(), sinkproof.trace(fast) as trace:
            fast(input_ids=torch.tensor([random_tokens(20, 1, 211)]))
        room.tap.report(trace.metadata.get("compiled") == "torch.compile" and "00.A10" in trace and "00.A9" not in trace,
                        f"{dtype} compiled: one graph is watched, without what only eager code shows", [trace])
        layers = len(model.model.layers)
        if first is None:
            here.honest(f"{dtype} compiled, {layers} layers, {policy}", model, trace, 1, 16 * layers + 3, policy)
            continue
        here.convicted(f"{dtype} compiled, {layers} layers, {policy}", model, trace, (first,), policy)
        policy += ",unrounded=A13"
        here.honest(f"and under {policy} it is cleared", model, trace, 1, 16 * layers + 3, policy)


SECTIONS = {"batches": batches, "packed": packed, "decoding": decoding, "generation": generation, "mistakes": mistakes,
            "attention": attention, "compiled": compiled}
ASKED = [name for name in SECTIONS if name != "compiled" or not FEW]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", metavar="SECTION,...", default=",".join(ASKED), help=f"of {', '.join(SECTIONS)}")
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        room = Room(tap, os.path.join(folder, "checkpoint"))
        for name in parser.parse_args().only.split(","):
            SECTIONS[name](room)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
