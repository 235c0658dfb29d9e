# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A prompt of one token over and over, in an engine that rounds exponentials before it divides them: those of a
row are nearly equal, and all fall to the same side of a step. That is no drift. A mistake is found all the same."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "shared"), str(pathlib.Path(__file__).resolve().parent)]
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402
from false_alarms import SHAPES, far_sinks  # noqa: E402

POLICY, TOKENS = "f32,A9.unnorm=f16", ",".join(["10"] * 64)


def judged(work, seed, mistake=""):
    """The exit code of the judge, and the points that it does not find in order."""
    folder = work / f"{seed}{mistake}"
    config = checkpoints.STATED | checkpoints.SMALL | SHAPES[seed % len(SHAPES)] | {
        "vocab_size": 61, "sliding_window": 16, "num_hidden_layers": 2}
    checkpoints.write(folder, checkpoints.weights(config, seed, far_sinks), config)
    status, _, told = sinkproof("run", str(folder), "--policy", POLICY + mistake, "--tokens", TOKENS,
                                "--trace", f"{folder}/trace")
    assert status == 0, told
    status, out, _ = sinkproof("judge", str(folder), f"{folder}/trace", "--policy", POLICY, "--local")
    return status, [line.split()[0] for line in out.splitlines() if line.endswith((" suspicious", " bug"))]


def acquitted(work):
    got = [judged(work, seed) for seed in range(6)]
    report(all(g == (0, []) for g in got), f"one token 64 times, sinks of +-30, {POLICY}: {got}")


def convicted(work):
    got = [judged(work, seed, ",M8.alpha=bf16") for seed in range(6)]
    report(all(status == 1 and "M8" in points for status, points in got), f"with 1.702 rounded to bf16: {got}")


if __name__ == "__main__":
    sys.exit(checkpoints.run(acquitted, convicted))
