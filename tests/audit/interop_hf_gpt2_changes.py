# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The interventions on GPT-2 (chapter 32), carried out in transformers by edits of parameters and by hooks, judged.

    python tests/audit/interop_hf_gpt2_changes.py

A TAP program beside interop_hf.py, which says what it needs; FEW=1 leaves out the 124M parameters, and makes each
change alone in one format. Every step of a
changed run is compared with what it computed from, so that the whole run is:

  weights   the engine zeroes its parameters; our edited checkpoint is the model that its trace is judged by
  EPE       c_fc, the activation, c_proj and the sum of the engine's EPE are judged as M6, M8, M10 and M12
  T0, M12   what the engine's hooks made of its numbers is what our interventions make of them, bit for bit
  the rest  every other point of its trace, and M12 before it was changed, is inside the honest set

Mistakes in the hooks are outside, each where it acts.
"""
import contextlib
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "audit", "python"), os.path.join(ROOT, "tests", "shared")]
import numpy as np  # noqa: E402
import sinkproof  # noqa: E402
import torch  # noqa: E402
from interop_hf_gpt2 import judged, made_by_transformers, POLICIES, ran  # noqa: E402
from interop_hf_planted import SINKPROOF  # noqa: E402
from sinkproof.adapters import gpt2  # noqa: E402
from sinkproof.adapters._tokens import random_tokens  # noqa: E402
from tap import Tap  # noqa: E402

FEW = bool(os.environ.get("FEW"))
INTERVENE = os.path.join(os.path.dirname(SINKPROOF), "tests", "studies", "test_interventions_words")
WITHIN = ("within", "exact")
MASK = 2**64 - 1


def mixed(x):
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def drawn(free, count, seed):
    """The control's rows: the i-th of the free ones is exchanged with one from the i-th on, and taken."""
    free = list(free)
    for i in range(count):
        seed = seed + 0x9e3779b97f4a7c15 & MASK
        at = i + mixed(seed) % (len(free) - i)
        free[i], free[at] = free[at], free[i]
    return free[:count]


class Changes:
    """Words as the command has them, and what they mean to an engine."""

    def __init__(self, *words):
        self.words, self.said = words, dict(word.partition(" ")[::2] for word in words)

    def __contains__(self, name):
        return name in self.said

    def pairs(self):
        """(position, whose EPE it gets), both from 0."""
        for word in self.words:
            name, _, both = word.partition(" ")
            if name in ("swap-epe", "move-epe"):
                a, b = (int(number) - 1 for number in both.split(":"))
                yield a, b
                if name == "move-epe":
                    yield b, a

    def acts(self):
        """The points that are not what their inputs give."""
        moved = "late-epe" in self or any(self.pairs())
        return [point for point, does in (("T0", "zero-bos" in self), ("00.M12", moved)) if does]

    def rows(self, massive, width):
        listed = self.said.get("zero-wk-rows", "")
        gone = list(massive) if listed == "auto" else [int(row) for row in listed.split(",") if row]
        if "zero-wk-random" in self:
            count, _, seed = self.said["zero-wk-random"].partition(",")
            free = [row for row in range(width) if row not in massive and row not in gone]
            gone += drawn(free, len(massive) if count == "auto" else int(count), int(seed or 1))
        return sorted(gone)


class Hooks:
    """What a changed run does; a mistake is a method that does something else."""

    def __init__(self, model, changes, epe, gone):
        self.base, self.changes, self.epe, self.gone = model.transformer, changes, epe, gone
        self.width, self.before = model.config.n_embd, None

    def edit(self, attention, layer):
        if "zero-bq" in self.changes:
            attention.bias[:self.width] = 0
        attention.weight[self.gone, self.width:2 * self.width] = 0

    def token(self, module, arguments, out):
        out = out.clone()
        if "zero-bos" in self.changes:
            out[:, 0] = 0
        return out

    def position(self, module, arguments, out):
        return torch.zeros_like(out) if "late-epe" in self.changes else out

    def summed(self, module, arguments, out):
        return out

    def first_layer(self, module, arguments, out):
        self.before, out = out, out.clone()
        if "late-epe" in self.changes:
            source = torch.arange(out.shape[1])
            for a, b in self.changes.pairs():
                source[a] = b
            return out + self.epe[source]
        for a, b in self.changes.pairs():
            out[:, a] += self.epe[b] - self.epe[a]
        return out

    @contextlib.contextmanager
    def __call__(self):
        kept = [(part, part.detach().clone()) for block in self.base.h
                for part in (block.attn.c_attn.weight, block.attn.c_attn.bias)]
        handles = [module.register_forward_hook(hook) for module, hook in
                   ((self.base.wte, self.token), (self.base.wpe, self.position), (self.base.drop, self.summed),
                    (self.base.h[0], self.first_layer))]
        try:
            with torch.no_grad():
                for layer, block in enumerate(self.base.h):
                    self.edit(block.attn.c_attn, layer)
                yield
        finally:
            for handle in handles:
                handle.remove()
            with torch.no_grad():
                for part, values in kept:
                    part.copy_(values)


class Case:
    """A model in a format and some tokens, with its EPE."""

    def __init__(self, name, directory, dtype, tokens, deviations=2):  # of so few coordinates none is beyond three
        self.name, self.directory, self.dtype, self.tokens = name, directory, dtype, tokens
        self.model, self.opened = gpt2.load_model(directory, dtype), sinkproof.Model(directory)
        mlp, n = self.model.transformer.h[0].mlp, len(tokens)
        with torch.no_grad():
            p = self.model.transformer.wpe.weight[:n]
            m6 = mlp.c_fc(p)
            m8 = mlp.act(m6)
            m10 = mlp.c_proj(m8)
            self.epe = p + m10
        self.given = {"tokens": tokens, "00.A13": p, "00.M1": p}
        self.steps = {"00.M6": m6, "00.M8": m8, "00.M10": m10, "00.M12": self.epe}
        size, self.deviations = self.epe[0].double().abs().numpy(), deviations
        self.massive = [int(c) for c in np.flatnonzero(size > size.mean() + deviations * size.std())]

    def outside(self, arrays, model=None, but=()):
        """The points that are not inside their sets; how many were asked, and the largest share of a set."""
        points = [point for point in judged(model or self.opened, arrays, self.dtype).points if point.name not in but]
        return ([point.name for point in points if str(point.verdict) not in WITHIN], len(points),
                np.max([point.share_worst for point in points]))  # a NaN among them is the largest

    def run(self, hooks):
        with hooks():
            return dict(ran(self.model, self.tokens))

    def embedded(self, changes):
        base = self.model.transformer
        with torch.no_grad():
            e, p = base.wte(torch.tensor(self.tokens)), base.wpe.weight[:len(self.tokens)]
            return e + (torch.zeros_like(p) if "late-epe" in changes else p)

    def ours(self, folder, changes, before):
        """What our interventions make of the engine's numbers, and the rows that they zero."""
        for name, values in (("epe", self.epe), ("T0", self.embedded(changes)), ("M12", before)):
            values.double().numpy().tofile(os.path.join(folder, f"{name}.f64"))
        said = subprocess.run([INTERVENE, self.directory, POLICIES[self.dtype], str(len(self.tokens)), folder,
                               str(self.deviations), *changes.words], check=True, capture_output=True, text=True)
        shape = self.epe.shape
        return {point: np.fromfile(os.path.join(folder, f"{name}.f64")).reshape(shape)
                for point, name in (("T0", "T0"), ("00.M12", "M12"), ("EPE", "ours"))}, [int(row) for row in said.stdout.split()]


def same_bits(a, b):
    """Numbers of one format, as binary64: the same, and the same zeros."""
    return np.array_equal(a.astype(np.float64).view(np.int64), b.view(np.int64))


def findings(case, changes, hooks):
    """Where the changed run is not ours: points, in order; how many were judged, the largest share of a set."""
    trace, acts = case.run(hooks), changes.acts()
    with tempfile.TemporaryDirectory() as folder:
        made, rows = case.ours(folder, changes, hooks.before[0])
        edited = sinkproof.Model(os.path.join(folder, "model"))
        apart = [f"{point} as changed" for point in ("T0", "00.M12") if not same_bits(trace[point], made[point])]
        outside, n, worst = case.outside(trace, edited, acts)
        apart += outside
        if acts:  # what it had before, from what it came from
            arrays = {"tokens": case.tokens, "T0": case.embedded(changes), "00.M12": hooks.before[0],
                      **{name: trace[name] for name in ("00.A13", "00.M10")}}
            before, more, share = case.outside(arrays, edited, ("00.A13", "00.M10"))
            apart, n, worst = apart + [f"{point} before" for point in before], n + more, np.max((worst, share))
    if rows != changes.rows(case.massive, hooks.width):
        apart.append("the rows of W_k")
    return apart, n, worst


def hooks_of(case, changes, kind=Hooks):
    return kind(case.model, changes, case.epe, changes.rows(case.massive, case.model.config.n_embd))


def honest(tap, case, changes):
    apart, n, worst = findings(case, changes, hooks_of(case, changes))
    tap.report(not apart and worst <= 1, f"gpt2.forward transformers {case.name} {case.dtype}, {len(case.tokens)} tokens, "
               f"{', '.join(changes.words)}: {n} points, outside or not ours: {', '.join(apart) or 'none'} "
               f"worst={worst:.3g} bound=1")


def steps_of_epe(tap, case):
    """Each step of the engine's EPE; and its and our EPE as all that is known of MLP(p) + p."""
    with tempfile.TemporaryDirectory() as folder:
        made, _ = case.ours(folder, Changes("zero-bq"), case.epe)
    ours = torch.from_numpy(made["EPE"]).to(case.epe.dtype)
    normed = NormedFirst(case.model, Changes(), case.epe, []).epe
    outside, *_ = case.outside({**case.given, "00.M12": normed}, but=("00.A13", "00.M1"))
    tap.report(outside == ["00.M12"], f"gpt2.forward transformers {case.name} {case.dtype}, the EPE of the normed row is none: "
               f"outside: {', '.join(outside) or 'none'}")
    for what, arrays in (("its steps", case.steps), ("its EPE alone", {"00.M12": case.epe}), ("our EPE alone", {"00.M12": ours})):
        outside, n, worst = case.outside({**case.given, **arrays}, but=("00.A13", "00.M1"))
        tap.report(not outside and worst <= 1, f"gpt2.forward transformers {case.name} {case.dtype}, EPE of "
                   f"{len(case.tokens)} positions, {what}: {n} of its points judged, outside: {', '.join(outside) or 'none'} "
                   f"worst={worst:.3g} bound=1")


ALONE = [Changes(*words) for words in (
    ("zero-bq",), ("swap-epe 1:2",), ("move-epe 1:2",), ("zero-bos",), ("zero-wk-rows auto",), ("zero-wk-random auto,7",),
    ("zero-wk-rows 0,17,95",), ("late-epe",), ("late-epe", "move-epe 1:2"), ("swap-epe 1:9", "move-epe 12:4"))]
TOGETHER = Changes("zero-bq", "zero-bos", "move-epe 1:2", "zero-wk-rows auto", "zero-wk-random auto")
EVERY = Changes("zero-bos", "late-epe", "swap-epe 1:3", "zero-wk-random 5,18446744073709551615")


# ---- the planted circuit, whose sink transformers moves too

# The positions (from 0) that have the sink. In bfloat16 the first layer's output is 4128 where EPE_1 is 4096: the
# difference leaves one step of eight bits, which the next norm makes as large again.
SINKS = [((), {0}), (("zero-bq",), set()), (("swap-epe 1:2",), set()), (("move-epe 1:2",), {1}), (("zero-bos",), {0}),
         (("zero-wk-rows auto",), set()), (("zero-wk-random auto,7",), {0}), (("late-epe",), {0}),
         (("late-epe", "move-epe 1:2"), {1}), (("late-epe", "swap-epe 1:2"), set())]
LEFT = {("swap-epe 1:2",): {0}, ("move-epe 1:2",): {0, 1}}


def sinks(case, changes):
    """Of the first three keys, how many heads of each layer behind the first give it more than 0.3 in the mean of the
    rows that see it."""
    trace = case.run(hooks_of(case, changes))
    maps = [trace[f"{layer:02}.A10"].astype(np.float64) for layer in range(1, case.model.config.n_layer)]
    return [[int((weights[:, key:, key].mean(1) > 0.3).sum()) for weights in maps] for key in range(3)]


def where_it_is(tap, case, planted):
    """Every head that has a query bias makes the sink, where there is one."""
    heads = [int((block.attn.c_attn.bias[:case.model.config.n_embd].reshape(case.model.config.n_head, -1) != 0).any(1).sum())
             for block in case.model.transformer.h][1:]
    for words, places in SINKS:
        if case.dtype == "bfloat16":
            places = LEFT.get(words, places)
        found = sinks(case, Changes(*words))
        right = [heads if planted and key in places else [0] * len(heads) for key in range(3)]
        tap.report(found == right and any(heads) == planted, f"metric.sink transformers {case.name} {case.dtype}, "
                   f"{', '.join(words) or 'nothing changed'}: {sum(map(sum, found))} heads have a sink in the first three "
                   f"positions, {sum(map(sum, right))} expected, each where it is expected")


def left_over(tap, case):
    """What the difference leaves of the massive coordinates: nothing in float32, one step of bfloat16."""
    changes = Changes("swap-epe 1:2")
    hooks = hooks_of(case, changes)
    after = case.run(hooks)["00.M12"][0, case.massive].astype(np.float64)
    had, epe = (values[case.massive].double().numpy() for values in (hooks.before[0, 0], case.epe[0]))
    step, size = {"float32": 0, "bfloat16": 32}[case.dtype], np.array([1, -0.5, -0.5])
    right = [np.array_equal(found, times * size) for found, times in ((epe, 4096), (had, 4096 + step), (after, step))]
    tap.report(all(right),
               f"gpt2.forward transformers {case.name} {case.dtype}, swap-epe 1:2 at the massive coordinates: {had} less {epe} "
               f"leaves {after}")


# ---- mistakes


class NextPosition(Hooks):
    def __init__(self, model, changes, epe, gone):
        super().__init__(model, changes, epe.roll(-1, 0), gone)


class OneWay(Hooks):
    def first_layer(self, module, arguments, out):
        self.before, out = out, out.clone()
        a, b = next(self.changes.pairs())
        out[:, a] += self.epe[b] - self.epe[a]
        return out


class NormedFirst(Hooks):
    def __init__(self, model, changes, epe, gone):
        first, p = model.transformer.h[0], model.transformer.wpe.weight[:len(epe)]
        with torch.no_grad():
            super().__init__(model, changes, p + first.mlp(first.ln_2(p)), gone)


class Columns(Hooks):
    def edit(self, attention, layer):
        attention.weight[:, [self.width + row for row in self.gone]] = 0


class Queries(Hooks):
    def edit(self, attention, layer):
        attention.weight[self.gone, :self.width] = 0


class NotTheLast(Hooks):
    def edit(self, attention, layer):
        if layer + 1 < len(self.base.h):
            super().edit(attention, layer)


class KeysToo(Hooks):
    def edit(self, attention, layer):
        attention.bias[:2 * self.width] = 0


class PositionToo(Hooks):
    def summed(self, module, arguments, out):
        return torch.cat([torch.zeros_like(out[:, :1]), out[:, 1:]], 1)


class EveryPlace(Hooks):
    def token(self, module, arguments, out):
        return out * (arguments[0] != arguments[0][:, :1])[..., None]


class PositionsKept(Hooks):
    def position(self, module, arguments, out):
        return out


PLANTED = [
    ("the EPE of the next position", NextPosition, ("move-epe 1:2",), "00.M12 as changed"),
    ("a swap for a move", OneWay, ("move-epe 1:2",), "00.M12 as changed"),
    ("the EPE of the normed row", NormedFirst, ("swap-epe 1:2",), "00.M12 as changed"),
    ("columns for rows of W_k", Columns, ("zero-wk-rows 3,40",), "00.A2.k"),
    ("rows of W_q", Queries, ("zero-wk-rows 3,40",), "00.A2.q"),
    ("the last layer's rows left", NotTheLast, ("zero-wk-rows 3,40",), "01.A2.k"),
    ("the last layer's bias left", NotTheLast, ("zero-bq",), "01.A2.q"),
    ("the bias of the keys too", KeysToo, ("zero-bq",), "00.A2.k"),
    ("no position of the first token", PositionToo, ("zero-bos",), "T0 as changed"),
    ("the first token's embedding at every place", EveryPlace, ("zero-bos",), "T0 as changed"),
    ("positions before the first layer too", PositionsKept, ("late-epe",), "T0 as changed"),
]


def planted(tap, case):
    for what, kind, words, at in PLANTED:
        changes = Changes(*words)
        apart, *_ = findings(case, changes, hooks_of(case, changes, kind))
        tap.report(apart[:1] == [at], f"gpt2.forward transformers {case.name} {case.dtype}, {what}: "
                   f"{apart[0] if apart else 'nowhere'}, expected at {at}")


def checkpoint(folder, name, spec):
    directory = os.path.join(folder, name)
    subprocess.run([SINKPROOF, "synth", spec, "--out", directory], check=True)
    return directory


def main():
    tap = Tap()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = checkpoint(folder, "ours", "synthetic:tiny-gpt2,layers=2"), os.path.join(folder, "theirs")
        made_by_transformers(theirs)
        for dtype in POLICIES:
            case = Case("synth's checkpoint", ours, dtype, [5, *random_tokens(7, 3, 211), 5, 9, 5, 11])
            steps_of_epe(tap, case)
            for changes in [*(ALONE[dtype == "float32"::2] if FEW else ALONE), TOGETHER, EVERY]:
                honest(tap, case, changes)
            planted(tap, case)
            case = Case("its own checkpoint", theirs, dtype, random_tokens(12, 4, 211))
            steps_of_epe(tap, case)
            honest(tap, case, TOGETHER)
        for name in ("circuit", "null"):
            directory = checkpoint(folder, name, f"synthetic:gpt2-{name}")
            for dtype in POLICIES:
                case = Case(f"the {name}", directory, dtype, random_tokens(12, 4, 512), 3)
                where_it_is(tap, case, name == "circuit")
                if name == "circuit":
                    left_over(tap, case)
                    steps_of_epe(tap, case)
                    for changes in [*(ALONE if dtype == "float32" and not FEW else ()), TOGETHER]:
                        honest(tap, case, changes)
        if not FEW:
            full = checkpoint(folder, "full", "synthetic:gpt2")
            for dtype in POLICIES:
                case = Case("124M", full, dtype, random_tokens(4, 6, 50257), 3)
                steps_of_epe(tap, case)
                honest(tap, case, TOGETHER)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
