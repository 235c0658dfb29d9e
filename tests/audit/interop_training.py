# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The training study's code, run for a few steps: a seed makes the same model whoever is trained beside it, a loss
falls, the process is the kept one, and every design's attention is inside its honest sets (test_trained_heads.c)."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/shared"), str(ROOT / "tests/gates")]
import doc_training  # noqa: E402
import tap  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import training  # noqa: E402
import training_gradients  # noqa: E402
import training_study  # noqa: E402
import training_trace  # noqa: E402

FEW = {"steps": 12, "batch": 8, "sequences": 8, "every": 12, "warmup": 1}


def trained(design, **more):
    config, told = training.Config(design, **{**FEW, **more}), []
    learned = training.train(config, lambda number, learned: told.append(training.measure(config, learned)))
    return config, learned, told


def gradients(test, models):
    """Every gradient of a step of these models, torch's and the reference's, is within the bounds of its stage."""
    judge = pathlib.Path(os.environ["SINKPROOF"]).parent / "tests/proofs/test_training_gradients"
    for design, config, learned, _ in models:
        with tempfile.TemporaryDirectory() as folder:
            training_trace.write(folder, config, learned, 20)
            done = subprocess.run([judge, folder], capture_output=True, text=True)
            command = [os.environ["SINKPROOF"], "judge", folder, f"{folder}/trace.safetensors"]
            judged = subprocess.run(command, capture_output=True, text=True)
        test.report(judged.returncode == 0, f"the whole step of {design}, judged", judged.stdout.splitlines()[-2:])
        test.report(done.returncode == 0, f"grad.rounded every gradient of {design}: {done.stdout.splitlines()[0]}",
                    [line for line in done.stdout.splitlines() if line.startswith("not ok")])


def kinds(test, config, learned):
    """What the kinds of rows give adds up to torch's own gradient of the logits, within float32's roundings."""
    tokens, its = torch.from_numpy(training.draw(config, numpy.random.default_rng(1), 8)[0])[None], {}

    def watch(layer, did, h):
        did["o"].retain_grad()
        its.update(did)

    learned["0.logit"].grad = None
    training.losses(config, learned, tokens, watch).mean().backward()
    total = sum(training_gradients.by_kind(config, tokens[..., :-1], its).values())
    alpha, v, do = (x.detach().double() for x in (its["alpha"], its["v"], its["o"].grad))
    size = (alpha[..., -1] * (alpha[..., :-1] * (do.abs() @ v.abs().transpose(-1, -2))).sum(-1)).sum(dim=(1, 3))
    rows = alpha.shape[1] * alpha.shape[3]
    roundings = (config.dim + alpha.shape[3] + 4 + rows) * 2.0**-24  # <dO, v>, their sum, three products, the rows
    off = ((learned["0.logit"].grad - total).abs() / (roundings / (1 - roundings) * size)).max().item()
    test.report(off <= 1, f"grad.sink the kinds' gradients add up to torch's: worst={off:.3g} bound=1")


def main():
    test, models = tap.Tap(), []
    first, again = (trained("softmax", seeds=(1, 2))[1] for _ in range(2))
    test.report(all(torch.equal(first[name], again[name]) for name in first), "a run made twice is the same to the bit")
    drawn = [training.parameters(training.Config("softmax", seeds=seeds)) for seeds in ((1, 2), (2,))]
    test.report(all(torch.equal(drawn[0][name][1], drawn[1][name][0]) for name in drawn[0]),
                "a seed draws the same parameters whoever is drawn beside it")
    for design in training.DESIGNS:
        config, learned, (before, after) = trained(design, seeds=(1,))
        test.report(after["loss"][0] < before["loss"][0],
                    f"train.sinks {design}: loss {before['loss'][0]:.2f}, after 12 steps {after['loss'][0]:.2f}")
        models.append((design, config, learned, "a few steps"))
    gradients(test, [model for model in models if model[0] in training_trace.SINKS])
    kinds(test, *next(model[1:3] for model in models if model[0] == "score-bias"))
    config = training.Config("softmax")
    told, kept = training.measure(config, training.parameters(config)), doc_training.kept(ROOT)["softmax"]["seen"][0]
    test.report(told["process"] == kept["process"], "the sequences that are measured are those of the kept runs")
    with tempfile.TemporaryDirectory() as folder:
        training_study.write_heads(pathlib.Path(folder), models)
        judge = pathlib.Path(os.environ["SINKPROOF"]).parent / "tests/proofs/test_trained_heads"
        done = subprocess.run([judge, folder], capture_output=True, text=True)
        command = [os.environ["SINKPROOF"], "sinks", "--judge", f"{folder}/heads.safetensors"]
        judged = subprocess.run(command, capture_output=True, text=True)
    notes = [line for line in done.stdout.splitlines() if line.startswith("not ok")]
    test.report(done.returncode == 0, f"train.sinks train.star heads of {len(models)} designs: all inside", notes)
    test.report(judged.returncode == 0, "train.sinks and so says sinkproof sinks --judge", judged.stdout.splitlines())
    return test.done()


if __name__ == "__main__":
    sys.exit(main())
