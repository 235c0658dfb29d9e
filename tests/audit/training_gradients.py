# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Who moves a sink's logit while it is trained, and when (doc/27).

    python3 tests/audit/training_gradients.py     the runs that are not kept yet; part of `make training-study`

The gradient of a logit is a sum over rows, -sum_i alpha_s,i <dO_i, O_i> (eq[grad.sink]). Adam's mean of gradients is
linear in them, so a step of the logit is a sum over rows too, and over three kinds of rows: the first, those that copy
and the others. What the kinds have moved since the start, with what weight decay has, adds up to the logit but for
rounding. The runs are those of the study; what is kept of them is doc/book/data/training-gradients.json.
"""
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/gates"))
import doc_training  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import training  # noqa: E402

KINDS = ("first", "copy", "other")


def kinds_of(config, tokens_sbt):
    """Of which kind each row is: {kind: [s, b, i]}. A row copies when its letter is a trigger and a letter is before."""
    trigger, letter = tokens_sbt < config.triggers, tokens_sbt < config.letters
    copy = torch.zeros_like(trigger)
    copy[..., 1:] = trigger[..., 1:] & letter[..., :-1]
    first = torch.zeros_like(trigger)
    first[..., 0] = True
    return {"first": first, "copy": copy, "other": ~(first | copy)}


def by_kind(config, tokens_sbt, its):
    """The logits' gradient as the sum of what each kind of rows gives: {kind: [s, h]}."""
    o, do = its["o"].detach().double(), its["o"].grad.double()
    each = -(its["alpha"][..., -1].detach().double() * (do * o).sum(-1))  # [s, b, h, i]
    return {kind: (each * rows[:, :, None]).sum(dim=(1, 3)) for kind, rows in kinds_of(config, tokens_sbt).items()}


class Moved:
    """Follows the steps of training.step: what each kind of rows, and weight decay, has moved the logits by."""

    def __init__(self, config, learned):
        self.config, self.logit, self.learned = config, learned["0.logit"], learned
        shape = self.logit.shape
        self.mean = {kind: torch.zeros(shape, dtype=torch.float64) for kind in KINDS}
        self.parts = {name: torch.zeros(shape, dtype=torch.float64) for name in (*KINDS, "decay")}
        self.sums = {kind: torch.zeros(shape, dtype=torch.float64) for kind in KINDS}  # of gradients since the last look
        self.steps, self.grads = 0, {}
        self.hooks = [p.register_hook(lambda g, name=name: self.grads.__setitem__(name, g)) for name, p in learned.items()]

    def step(self, moments, number, rngs):
        seen, real = {}, training.losses

        def losses(config, learned, tokens_sbt):
            def watch(layer, its, h):
                its["o"].retain_grad()
                seen.update(its=its, tokens=tokens_sbt[..., :-1])
            return real(config, learned, tokens_sbt, watch)

        before = self.logit.detach().double()
        training.losses = losses
        try:
            training.step(self.config, self.learned, moments, number, rngs)
        finally:
            training.losses = real
        self.add(by_kind(self.config, seen["tokens"], seen["its"]), moments["0.logit"][1].double(), number, before)

    def add(self, given, second_moment, number, before):
        config, (first, second) = self.config, self.config.betas
        square = sum((g.double()**2).flatten(1).sum(1) for g in self.grads.values())
        shrink = (config.clip / (square.sqrt() + 1e-6)).clamp(max=1)[:, None]
        rate = config.rate * min(1, number / config.warmup)
        per = rate / (1 - first**number) / ((second_moment / (1 - second**number)).sqrt() + 1e-8)
        self.parts["decay"] -= rate * config.decay * before
        for kind, g in given.items():
            self.mean[kind] = first * self.mean[kind] + (1 - first) * shrink * g
            self.parts[kind] -= per * self.mean[kind]
            self.sums[kind] += g
        self.steps += 1

    def told(self, number):
        """What is kept at a step: the logits, their parts, and the mean gradient of the batches since the last look."""
        def rounded(x):
            return [[float(f"{value:.6g}") for value in row] for row in x.tolist()]

        row = {"step": number, "b": rounded(self.logit.detach().double()),
               "moved": {name: rounded(part) for name, part in self.parts.items()},
               "gradient": {kind: rounded(total / max(self.steps, 1)) for kind, total in self.sums.items()},
               "rounding": float(f"{(self.logit.detach() - sum(self.parts.values())).abs().max():.3g}")}
        for total in self.sums.values():
            total.zero_()
        self.steps = 0
        return row


def made(name):
    config, began = training.Config(**doc_training.GRADIENT_RUNS[name]), time.process_time()
    torch.set_num_threads(1)
    learned = training.parameters(config)
    moments = {each: (torch.zeros_like(p), torch.zeros_like(p)) for each, p in learned.items()}
    rngs = [numpy.random.default_rng(seed) for seed in config.seeds]
    moved = Moved(config, learned)
    seen = [moved.told(0)]
    for number in range(1, config.steps + 1):
        moved.step(moments, number, rngs)
        if number % config.every == 0:
            seen.append(moved.told(number))
    end = training.measure(config, learned)
    return {"hash": doc_training.hash_of_gradients(ROOT, name), "seconds": round(time.process_time() - began, 1),
            "torch": torch.__version__, "sink_star": end["sink_star"], "seen": seen}


def main():
    path = ROOT / doc_training.KEPT_GRADIENTS
    told = doc_training.kept_gradients(ROOT)
    for name in doc_training.GRADIENT_RUNS:
        if told.get(name, {}).get("hash") != doc_training.hash_of_gradients(ROOT, name):
            told[name] = made(name)
            rows = [f" {json.dumps(each)}: {json.dumps(told[each])}" for each in doc_training.GRADIENT_RUNS if each in told]
            fresh = path.with_suffix(".new")
            fresh.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
            os.replace(fresh, path)
            print(f"{name}: {told[name]['seconds']} s, rounding {max(row['rounding'] for row in told[name]['seen'])}", flush=True)


if __name__ == "__main__":
    main()
