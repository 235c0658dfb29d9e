# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""transformers with a layer's weights at a time (truth_of_engines.py) computes what it computes with all of them, to
the bit.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("audit/python", "tests/shared", "tests/audit")]
import truth_of_engines as made  # noqa: E402
from checkpoints import sinkproof  # noqa: E402
from tap import Tap  # noqa: E402

TINY, TOKENS = "synthetic:tiny", [1, 2, 3, 4, 5]


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        sinkproof("synth", TINY, "--out", str(folder / "hf"))
        for dtype in ("float32", "bfloat16"):
            whole, lazy = folder / f"{dtype}-whole", folder / f"{dtype}-lazy"
            subprocess.run([sys.executable, "-m", "sinkproof.trace", "transformers", folder / "hf", "--tokens", "1,2,3,4,5", "--dtype", dtype,
                            "--out", whole, "--points", made.POINTS], check=True, cwd=ROOT,
                           env={**os.environ, "PYTHONPATH": "audit/python"})
            made.trace_transformers(TINY, TOKENS, dtype, str(lazy))
            code, said, wrong = sinkproof("compare", str(whole), str(lazy))
            tap.report(code == 0 and "Equal at all 11 points." in said, f"{dtype}: layer by layer, the same bits", [said, wrong])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
