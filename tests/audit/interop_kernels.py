# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Drivers of published attention kernels (sinkproof.kernels, sinkproof.gpu), as far as a processor runs them.

A TAP program of `make interop-hf`. transformers' eager attention runs without a GPU, and so does the emulation of a
matrix unit; kernels in Triton need one, and chapter 33 judges what they computed there.
"""
import fractions
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "shared"), str(ROOT / "audit" / "python")]
from tap import Tap  # noqa: E402

tap = Tap()


def said(*words):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "audit/python"), "SINKPROOF": os.environ["SINKPROOF"]}
    got = subprocess.run([sys.executable, "-m", "sinkproof.gpu", *words], capture_output=True, text=True, env=env,
                         check=False)
    return got.returncode, got.stdout, got.stderr.strip()


def table(out):
    """{pieces: the numbers of calls, failing, suspicious, undecided} of the rows of `judge`."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("| eager")]
    return {row[1]: [int(number) for number in row[4:8]] for row in cells}


def eager_attention(work):
    status, out, told = said("run", str(work), "--kernels", "eager", "--formats", "bf16", "--every", "9", "--device", "cpu")
    tap.report(status == 0 and out.count("32 of 32 calls, 0 not served") == 3, "eager attention serves every call", [out, told])
    status, out, told = said("judge", str(work), "--policy", "bf16")
    found = table(out)
    tap.report(status == 0 and set(found) == {"prompt", "chunks", "decode"} and all(row[:3] == [32, 0, 0]
               for row in found.values()), f"it is honest in one piece, in two, and row by row: {found}", [out, told])
    # The last element of a row's first head is one that no honest kernel can have.
    from safetensors import safe_open
    from safetensors.torch import save_file
    path = work / "bf16-eager-decode.safetensors"
    with safe_open(str(path), framework="pt") as file:
        values, meta = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()
    for x in values.values():
        x[-1, 0, -1] = 99
    save_file(values, str(path), metadata=meta)
    found = table(said("judge", str(work), "--policy", "bf16")[1])
    tap.report(found["decode"][1] > 20 and found["chunks"][1] == 0,  # where a row may be anything, so may the element
               f"a wrong element of each call is found: {found}")


def slow_sum(a, b, bits, block):
    """The unit's sum of products in whole numbers: a second writing of gpu.emulated."""
    total = fractions.Fraction(0)

    def exponent(x):
        at, size = 0, abs(x)
        while size >= 2:
            size, at = size / 2, at + 1
        while 0 < size < 1:
            size, at = size * 2, at - 1
        return at if x else -10 ** 6

    def cut(x, step):
        return int(x / step) * step

    for at in range(0, len(a), block):
        pairs = [(fractions.Fraction(x), fractions.Fraction(y)) for x, y in zip(a[at:at + block], b[at:at + block])]
        top = max([exponent(total), *(exponent(x) + exponent(y) for x, y in pairs if x * y)])
        step = fractions.Fraction(2) ** (top - bits)
        total = cut(total, step) + sum(cut(x * y, step) for x, y in pairs)
        total = cut(total, fractions.Fraction(2) ** (exponent(total) - min(bits, 23)))
    return float(total)


def matrix_unit():
    import numpy as np
    from sinkproof import gpu
    made = np.random.default_rng(7)
    for bits, block in ((25, 16), (25, 8), (24, 8), (13, 32)):
        a, b = (np.round(made.normal(size=size) * 2.0 ** made.integers(-9, 9, size), 3) for size in ((4, 40), (40, 3)))
        a, b = (np.float64(np.float32(np.float16(x))) for x in (a, b))
        fast = gpu.emulated(a, b, bits, block)
        slow = [[slow_sum(a[i], b[:, j], bits, block) for j in range(3)] for i in range(4)]
        tap.report(bool((fast == np.array(slow)).all()),
                   f"bound.tensor-core tensor-core({bits},{block}) by the tool is the sum in whole numbers")
    status, out, told = said("unit", "--device", "cpu")
    tap.report(status == 0 and "tensor-core" not in out and out.count("not cut") == 3,
               "a processor that rounds to nearest is not taken for a matrix unit", [out, told])


def refused(work):
    empty = work / "empty"
    empty.mkdir()
    for words, expected in ((("run", str(work), "--kernels", "fa9", "--device", "cpu"), 'no kernel "fa9": known are eager,'),
                            (("judge", str(empty)), "expected outputs FORMAT-KERNEL-PIECES.safetensors, found none"),
                            (("run", str(work)), "no GPU that torch can use")):
        status, _, told = said(*words)
        tap.report(status == 3 and expected in told and "\n" not in told, f"refused: {' '.join(words[:1])}: {expected}", [told])
    status, out, _ = said("list")
    tap.report(status == 0 and "cascade" in out and "not installed" in out, "the list says which are not installed", [out])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        refused(pathlib.Path(folder))
        eager_attention(pathlib.Path(folder))
        matrix_unit()
    sys.exit(tap.done())
