# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""ONNX Runtime GenAI, judged again as doc/engines/onnx.json says; and the graphs that its builder writes."""
import os
import sys

import engines


def graphs(tap, python, work):
    """The float16 graphs for the CPU and for DirectML, left in `work` for the chapter's reproducers."""
    model = os.path.join(work, "reproduced")
    engines.command([engines.SINKPROOF, "synth", "synthetic:doc/engines/mid.json", "--out", model, "--dequantize"])
    for target in ("cpu", "dml"):
        folder = os.path.join(work, f"graph-{target}")
        engines.command([python, "-m", "sinkproof.trace", "onnx", model, "--tokens", "1,2,3", "--dtype", "float16",
                         "--build-for", target, "--graph", folder, "--out", os.path.join(work, "trace.safetensors")])
        written = os.path.isfile(os.path.join(folder, "model.onnx"))
        tap.report(written, f"the builder writes a float16 graph for {target}")


if __name__ == "__main__":
    sys.exit(engines.interop("onnx", graphs))
