# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""KerasHub, judged again as doc/engines/keras_hub.json says; and its rotation in bfloat16, to the bit."""
import os
import sys

import engines

# In the engine's environment: how many elements of a trace's A4 are the rotation as KerasHub rounds it, and of how many.
ROTATION = """
import math, sys
import torch
from safetensors.torch import load_file
seen = load_file(sys.argv[1])
bf16 = lambda x: x.to(torch.bfloat16).float()
factor = bf16(bf16(torch.tensor(0.1)) * bf16(torch.log(torch.tensor(32.0)))) + 1
def frequencies(d, base=150000.0):
    low, high = (d * math.log(4096 / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32.0, 1.0))
    ramp = ((torch.arange(d // 2) - low) / (high - low)).clip(0, 1)
    own = base ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
    return own / 32 * ramp + own * (1 - ramp)
same = all_of = 0
for name, x in seen.items():
    if ".A2." in name and name[-1] in "qk":
        angle = seen["positions"][:, None, None] * frequencies(x.shape[-1])
        cosine, sine = (bf16(bf16(of.float()) * bf16(factor)) for of in (angle.cos(), angle.sin()))
        a, b = x.float().chunk(2, -1)
        turned = torch.cat([bf16(bf16(a * cosine) + bf16(-b * sine)), bf16(bf16(b * cosine) + bf16(a * sine))], -1)
        found = seen[name.replace("A2", "A4")].float()
        same, all_of = same + int((turned == found).sum()), all_of + found.numel()
print(f"factor {bf16(factor).item()}", same, all_of)
"""


def rotation(tap, python, work):
    """The cosine is rounded, multiplied by a concentration of 1.34375, and rounded again."""
    model, trace = os.path.join(work, "turned"), os.path.join(work, "turned.safetensors")
    engines.command([engines.SINKPROOF, "synth", "synthetic:doc/engines/mid.json", "--out", model])
    engines.command([python, "-m", "sinkproof.trace", "keras-hub", model, "--tokens", "random:40,seed=1", "--out", trace,
                     "--dtype", "bfloat16", "--points", "A2,A4"])
    said = engines.command([python, "-c", ROTATION, trace])
    words = said.stdout.split()
    tap.report(len(words) == 4 and words[1] == "1.34375" and int(words[2]) == int(words[3]) > 0,
               f"KerasHub in bfloat16: its rotation is known to the bit, {' of '.join(words[2:])} elements",
               [said.stdout, said.stderr[-300:]])


if __name__ == "__main__":
    sys.exit(engines.interop("keras_hub", None if engines.FEW else rotation))
