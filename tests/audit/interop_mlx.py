# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""mlx-lm, judged again as doc/engines/mlx.json says; and what it does in half precision, to the bit."""
import os
import sys

import engines


def in_half(tap, python, work):
    """The steps of mlx_half.py give every element of a trace in bfloat16 and in float16."""
    model = os.path.join(work, "half")
    engines.command([engines.SINKPROOF, "synth", "synthetic:tiny", "--out", model, "--layout", "hf"])
    for dtype in ("checkpoint", "float16"):
        trace = os.path.join(work, "half.safetensors")
        engines.command([python, "-m", "sinkproof.trace", "mlx", model, "--tokens", "random:40,seed=1",
                         "--out", trace, "--dtype", dtype])
        said = engines.command([python, "tests/audit/mlx_half.py", model, trace])
        tap.report(said.returncode == 0 and "M8" in said.stdout, f"mlx-lm {dtype}: its operations are known to the bit: "
                   + ", ".join(said.stdout.splitlines()), said.stderr.splitlines())


if __name__ == "__main__":
    sys.exit(engines.interop("mlx", None if engines.FEW else in_half))
