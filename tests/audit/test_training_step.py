# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""One step of the training study (tests/vectors/training/step), judged: the trained model is read as a GPT-OSS of one
expert, and all that torch computed of it in float32, forward and back, is within its honest sets."""
import os
import pathlib
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared")]
import tap  # noqa: E402

STEP = pathlib.Path(__file__).resolve().parents[1] / "vectors/training/step"


def main():
    test = tap.Tap()
    command = [os.environ["SINKPROOF"], "judge", str(STEP), str(STEP / "trace.safetensors")]
    judged = subprocess.run(command, capture_output=True, text=True)
    lines = judged.stdout.splitlines()
    test.report(judged.returncode == 0 and lines and lines[-1].startswith("Verdict under f32: within"),
                "train.star a step of training, judged: within", lines)
    gradients = {line.split()[0]: line.split()[-1] for line in lines if line.startswith("d")}
    open_ones = {name for name, verdict in gradients.items() if verdict not in ("within", "exact")}
    # The gradient of a router over one expert is 0, and its set is all rounding.
    test.report(len(gradients) == 32 and open_ones <= {"dM2"},
                f"train.star grad.chain the gradients of a step of training, judged: {len(gradients)}", sorted(open_ones))
    return test.done()


if __name__ == "__main__":
    sys.exit(main())
