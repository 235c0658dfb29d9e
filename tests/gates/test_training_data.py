# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What is kept of the training study (doc/27): complete, made by the present code, and the two statements of the
chapter hold in it. Trained heads in tests/vectors/training are of those runs. None of it needs torch."""
import copy
import json
import math
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared")]
import doc_training  # noqa: E402
import tap  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def metadata(path):
    data = path.read_bytes()
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])["__metadata__"]


def least(told, run, at):
    return min(doc_training.seen(told, run, "sink_1", at))


def stated(told):
    """Whether eq[train.sinks] and eq[train.star] hold, in every seed."""
    runs = [run for run in doc_training.RUNS if run in told]
    before = max(max(doc_training.seen(told, run, "sink_1", 0)) for run in runs)
    moved = [all(a > b for a, b in zip(doc_training.seen(told, "softmax", "sink_1"),
                                       doc_training.seen(told, design, "sink_1")))
             for design in ("k-bias", "kv-bias", "score-bias")]
    taken = [min(doc_training.seen(told, f"decay 0, 1500 steps, {design}", "sink_star")) > 90 and
             max(doc_training.seen(told, f"decay 0, 1500 steps, {design}", "sink_1")) < 1
             for design in ("k-bias", "score-bias")]
    gone = max(doc_training.seen(told, "1500 steps", "sink_1")) < 10
    return before < 1 and least(told, "softmax", -1) > 30 and gone, all(moved + taken)


def gone_on(told):
    """Whether what the chapter says below eq[train.sinks] of longer runs holds, in every seed."""
    def end(run, quantity):
        return doc_training.seen(told, run, quantity)

    pairs = [("1500 steps", "softmax", "loss"), ("decay 0, 1500 steps", "decay 0", "sink_1")]
    return all(a < b for long, short, quantity in pairs for a, b in zip(end(long, quantity), end(short, quantity))) and \
        min(end("decay 0, 1500 steps", "sink_1")) > 25


def each(row, *keys):
    return doc_training.every_head(row, *keys)


def at(seen, step):
    return next(row for row in seen if row["step"] == step)


def moved(told):
    """What the chapter says of who moves a learned logit, a word for each sentence: whether it holds."""
    holds = {name: True for name in ("sum", "other", "copy", "above", "decay")}
    for run in doc_training.GRADIENT_RUNS:
        seen, decays = told[run]["seen"], doc_training.GRADIENT_RUNS[run].get("decay") != 0
        end = seen[-1]
        parts = {name: each(end, "moved", name) for name in ("first", "copy", "other", "decay")}
        holds["sum"] &= all(row["rounding"] < 1e-5 for row in seen)
        holds["other"] &= all(o > abs(f) + abs(c) + abs(d) for f, c, o, d in zip(*parts.values()))
        holds["copy"] &= all(x < 0 for x in each(at(seen, 100), "moved", "copy"))
        holds["above"] &= all(x > 0 for x in each(end, "b"))
        holds["decay"] &= all(x < 0 if decays else x == 0 for x in parts["decay"])
    longer = told["decay 0, 1500 steps, score-bias"]["seen"]
    pushed = {row["step"]: -statistics.fmean(each(row, "gradient", "other")) for row in longer[1:]}
    logit = {row["step"]: statistics.fmean(each(row, "b")) for row in longer}
    holds["grows"] = all(a < b for a, b in zip(each(at(longer, 1000), "b"), each(at(longer, 1500), "b")))
    holds["early"] = max(pushed, key=pushed.get) == 100
    holds["late"] = all(x < pushed[100] / 10 for step, x in pushed.items() if step >= 750)
    holds["half"] = logit[500] >= logit[1500] / 2
    return holds


def last_digit(x):
    """Half a unit of the last of the six digits that are kept."""
    return 0.5 * 10.0**(math.floor(math.log10(abs(x))) - 5) if x else 0


def follow(test):
    """What is kept of the logits' gradients, and the sentences about it, each false of other data."""
    told, gone = doc_training.kept_gradients(ROOT), doc_training.missing_gradients(ROOT)
    test.report(not gone and set(told) == set(doc_training.GRADIENT_RUNS),
                f"train.star kept gradients of the present code: {len(told)} of {len(doc_training.GRADIENT_RUNS)}", gone)
    same = [run for run in told if told[run]["sink_star"] != doc_training.kept(ROOT)[run]["seen"][-1]["sink_star"]]
    test.report(not same, "train.star the runs that were followed end as those of the study", same)
    apart = [abs(b - sum(parts)) <= row["rounding"] * 1.01 + sum(map(last_digit, (b, *parts)))
             for run in told.values() for row in run["seen"]
             for b, *parts in zip(each(row, "b"), *(each(row, "moved", name) for name in row["moved"]))]
    test.report(all(apart), f"train.star the parts of a logit add up to it but for rounding and the digits kept: {len(apart)}")
    holds = moved(told)
    test.report(all(holds.values()), f"train.star who moves a learned logit: {len(holds)} sentences hold",
                [name for name, good in holds.items() if not good])

    long, heads = "decay 0, 1500 steps, score-bias", range(2)
    for name, run, step, keys, number in (
            ("sum", long, 500, ("rounding",), 1e-4), ("other", "score-bias", 500, ("moved", "other"), 0.1),
            ("copy", long, 100, ("moved", "copy"), 0.01), ("above", "score-bias", 500, ("b",), -0.01),
            ("decay", "score-bias", 500, ("moved", "decay"), 0.01), ("grows", long, 1000, ("b",), 9),
            ("early", long, 250, ("gradient", "other"), -9), ("late", long, 1200, ("gradient", "other"), -1e-3),
            ("half", long, 500, ("b",), 0.1)):
        false = copy.deepcopy(told)
        row = at(false[run]["seen"], step)
        for key in keys[:-1]:
            row = row[key]
        row[keys[-1]] = number if name == "sum" else [[number for _ in heads] for _ in range(3)]
        test.report(not moved(false)[name], f"who moves a learned logit, “{name}”: not with {' '.join(keys)} {number}")


def copied(folder):
    """A tree with what the study keeps and its code."""
    for name in (doc_training.KEPT, doc_training.CODE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def main():
    test, told = tap.Tap(), doc_training.kept(ROOT)
    gone = doc_training.missing(ROOT)
    test.report(not gone and set(told) == set(doc_training.RUNS),
                f"train.sinks train.star kept runs of the present code: {len(told)} of {len(doc_training.RUNS)}", gone)
    sinks, star = stated(told)
    test.report(sinks, f"train.sinks softmax: Sink_1 least={least(told, 'softmax', -1):g} of three seeds, before "
                f"training {least(told, 'softmax', 0):g}, after 1500 steps "
                f"most={max(doc_training.seen(told, '1500 steps', 'sink_1')):g}")
    test.report(gone_on(told), "train.sinks a longer run: a lower loss, and less of a sink without weight decay too")
    test.report(star, "train.star a learned key, with a value or without, and a learned score: less on the first token;"
                " after 1500 steps without weight decay key and score have it")

    test.report((ROOT / doc_training.RECORD).read_text(encoding="utf-8") == doc_training.record(ROOT),
                f"train.sinks train.star what `verify` has on record is what is kept: {doc_training.RECORD}")

    false = copy.deepcopy(told)
    false["softmax"]["seen"][-1]["sink_1"][1] = 0
    test.report(stated(false) == (False, False), "a seed without a sink: neither statement holds")
    false = copy.deepcopy(told)
    false["k-bias"]["seen"][0]["sink_1"][2] = 2
    test.report(stated(false) == (False, True), "a sink before training: the first does not hold")
    for run, quantity, number in (("1500 steps", "loss", 9), ("decay 0, 1500 steps", "sink_1", 99),
                                  ("decay 0, 1500 steps", "sink_1", 25)):
        false = copy.deepcopy(told)
        false[run]["seen"][-1][quantity][1] = number
        test.report(not gone_on(false), f"{run}: not with {quantity} {number} in a seed")
    false = copy.deepcopy(told)
    false["1500 steps"]["seen"][-1]["sink_1"][0] = 10
    test.report(stated(false) == (False, True), "a sink that is left after 1500 steps: the first does not hold")
    false = copy.deepcopy(told)
    false["decay 0, 1500 steps, k-bias"]["seen"][-1]["sink_star"][0] = 90
    test.report(stated(false) == (True, False), "a key without a sink: the second does not hold")
    false = copy.deepcopy(told)
    false["decay 0, 1500 steps, score-bias"]["seen"][-1]["sink_1"][2] = 1
    test.report(stated(false) == (True, False), "a sink beside a learned score: nor then")

    with tempfile.TemporaryDirectory() as scratch:
        tree = copied(pathlib.Path(scratch))
        code = tree / doc_training.CODE
        code.write_text(code.read_text() + "# a comment\n")
        test.report(doc_training.missing(tree) == gone, "a comment leaves the runs valid")
        code.write_text(code.read_text().replace("clip: float = 1.0", "clip: float = 2.0"))
        test.report(doc_training.missing(tree) == list(doc_training.RUNS), "other code: every run is to be made again")
        test.report(doc_training.table(tree, "training-designs") is None, "and no table is made of them")
        (tree / doc_training.KEPT).write_text(json.dumps({k: v for k, v in told.items() if k != "gated"}))
        shutil.copy(ROOT / doc_training.CODE, code)
        test.report(doc_training.missing(tree) == ["gated"], "a run that is not kept is named")

    follow(test)
    heads, inputs = (metadata(ROOT / f"tests/vectors/training/{name}.safetensors") for name in ("heads", "inputs"))
    layers = sorted(key.split(".")[0] for key in heads if key.endswith(".design"))
    wrong = [heads[f"{layer}.design"] for layer in layers
             if inputs[f"{layer}.run"] != told[heads[f"{layer}.design"]]["hash"]]
    test.report(layers and not wrong, f"train.sinks trained heads of the kept runs: {len(layers)}", wrong)
    data = metadata(ROOT / "tests/vectors/training/step/trace.safetensors")
    test.report(data["run"] == told["score-bias"]["hash"], "train.star the step of training that is kept is of the kept run")
    return test.done()


if __name__ == "__main__":
    sys.exit(main())
