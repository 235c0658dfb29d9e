# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""ggml's formats, decoded by model/ and by the package gguf: every number of a block by every other that it meets.

    build/venv/bin/python tests/model/interop_blocks.py             one scale in 64, a part of `make interop-hf`
    WHOLE=1 build/venv/bin/python tests/model/interop_blocks.py     every scale: 1.9 billion weights, two minutes

A weight without a minimum is a function of a float16 scale, of a whole number, and in Q6_K of a second scale: all are
tried. One with a minimum depends on a second float16 number: each of the two is tried in full beside eight of the other
one, and pairs are drawn. The decoders are compiled here, alone.
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
from tap import Tap  # noqa: E402

WHOLE = bool(os.environ.get("WHOLE"))
DTYPES = ("BF16", "F16", "F32", "F64", "MXFP4", "U8", "I32", "I64", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
SOME = np.array([0x0001, 0x03ff, 0x0400, 0x2e66, 0x3c00, 0x7bff, 0xb555, 0xfbff], np.uint16)  # subnormal to largest, two signs


def halves():
    """Every finite float16 number as its bits; or one in 64, with its neighbours of a power of two."""
    every = np.arange(1 << 16, dtype=np.uint16)
    every = every[every & 0x7c00 != 0x7c00]
    return every if WHOLE else every[(every % 64 == 21) | np.isin(every & 0x3ff, (0, 1, 0x3ff)) & (every >> 10 & 1 == 1)]


def library(work):
    path = work / "decoders.so"
    subprocess.run([*os.environ.get("CC", "cc").split(), "-std=c11", "-D_GNU_SOURCE", "-O2", "-ffp-contract=off", "-shared", "-fPIC",
                    f"-I{ROOT}", *[str(path) for room in ("base", "model") for path in sorted((ROOT / room).glob("*.c"))], "-ljansson", "-lm", "-o", str(path)], check=True)
    return ctypes.CDLL(str(path))


def ours(code, name, blocks, elements):
    out = np.empty(len(blocks) * elements)
    blocks = np.ascontiguousarray(blocks)
    code.ggml_blocks_decode(DTYPES.index(name), blocks.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(blocks)),
                            out.ctypes.data_as(ctypes.c_void_p))
    return out.reshape(len(blocks), elements)


def put(block, at, half_bits):
    block[:, at], block[:, at + 1] = half_bits & 255, half_bits >> 8


def blocks_of_32(name, scale, minimum, shift):
    """A block for each scale; of its 32 places each has another whole number, moved on by `shift` places."""
    places = np.arange(32)
    if name == "Q8_0":
        block = np.zeros((len(scale), 34), np.uint8)
        block[:, 2:] = (32 * shift + places) & 255
        put(block, 0, scale)
        return block
    q = (places + shift) % (32 if name[1] == "5" else 16)
    head = (4 if name[3] == "1" else 2) + (4 if name[1] == "5" else 0)
    block = np.zeros((len(scale), head + 16), np.uint8)
    block[:, head:] = (q[:16] & 15) | (q[16:] & 15) << 4
    if name[1] == "5":
        block[:, head - 4:head] = np.packbits((q >> 4).astype(np.uint8), bitorder="little")
    put(block, 0, scale)
    if name[3] == "1":
        put(block, 2, minimum)
    return block


def blocks_of_256(name, scale, minimum, shift):
    """A block for each scale, with some of the second scales: 8 shifts show all of Q4_K and Q5_K, 64 all of Q6_K, each
    beside every whole number."""
    size = {"Q4_K": 144, "Q5_K": 176, "Q6_K": 210}[name]
    one, i = np.zeros(size, np.uint8), np.arange(256)
    if name == "Q6_K":
        q, half, within = i // 16 % 4 * 16 + (i + shift) % 16, i // 128, i % 128
        np.bitwise_or.at(one, 64 * half + within % 64, ((q & 15) << 4 * (within // 64)).astype(np.uint8))
        np.bitwise_or.at(one, 128 + 32 * half + within % 32, (q >> 4 << 2 * (within // 32)).astype(np.uint8))
        one[192:208] = 4 * shift + np.arange(16) // 4
    else:
        part, q = i // 32, (i + shift) % (32 if name == "Q5_K" else 16)
        np.bitwise_or.at(one, size - 128 + part // 2 * 32 + i % 32, ((q & 15) << 4 * (part % 2)).astype(np.uint8))
        if name == "Q5_K":
            np.bitwise_or.at(one, 16 + i % 32, (q >> 4 << part).astype(np.uint8))
        scales = 8 * shift + np.arange(8)
        minima = 63 - scales[::-1]
        one[4:8], one[8:12] = scales[:4] | scales[4:] >> 4 << 6, minima[:4] | minima[4:] >> 4 << 6
        one[12:16] = scales[4:] & 15 | (minima[4:] & 15) << 4
    block = np.tile(one, (len(scale), 1))
    put(block, 208 if name == "Q6_K" else 0, scale)
    if name != "Q6_K":
        put(block, 2, minimum)
    return block


def same(code, name, blocks):
    """(weights, those that differ)."""
    import gguf
    kind = gguf.GGMLQuantizationType[name]
    wanted = gguf.quants.dequantize(blocks, kind)
    found = ours(code, name, blocks, wanted.shape[-1])
    narrow = found.astype(np.float32)
    wrong = (narrow != wanted) | (narrow.astype(np.float64) != found)
    return wanted.size, int(wrong.sum())


SHIFTS = {"Q4_0": 1, "Q5_0": 1, "Q8_0": 8, "Q6_K": 64}  # of a format without minima: they show every whole number and scale


def check(tap, code, name):
    d, weights, wrong, draw = halves(), 0, 0, np.random.default_rng(3)
    make = blocks_of_256 if name.endswith("K") else blocks_of_32
    calls = [(d, d, shift) for shift in range(SHIFTS.get(name, 0))]
    for shift, other in enumerate(SOME if name not in SHIFTS else ()):
        beside = np.full(len(d), other)
        calls += [(d, beside, shift), (beside, d, shift), (d, draw.permutation(d), shift)]
    for scale, minimum, shift in calls:
        for at in range(0, len(scale), 1 << 14):
            more = same(code, name, make(name, scale[at:at + (1 << 14)], minimum[at:at + (1 << 14)], shift))
            weights, wrong = weights + more[0], wrong + more[1]
    tap.report(wrong == 0, f"ggml.blocks {name}: the float32 numbers of the package gguf, {weights} weights, worst={wrong} bound=0")


def narrow_numbers(tap, code):
    """Every bit pattern of float16 and bfloat16."""
    every = np.arange(1 << 16, dtype=np.uint16)
    for name, theirs in (("f16", every.view(np.float16).astype(np.float32)), ("bf16", (every.astype(np.uint32) << 16).view(np.float32))):
        read = getattr(code, f"sinkproof_{name}_value")
        read.restype, read.argtypes = ctypes.c_double, [ctypes.c_uint16]
        found = np.array([read(int(bits)) for bits in every])
        wrong = int(((found != theirs) & ~(np.isnan(found) & np.isnan(theirs))).sum() + (np.signbit(found) != np.signbit(theirs))[~np.isnan(theirs)].sum())
        tap.report(wrong == 0, f"{name}.decode every bit pattern as numpy has it, worst={wrong} bound=0")


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        code = library(pathlib.Path(folder))
        for name in DTYPES[8:]:
            check(tap, code, name)
        narrow_numbers(tap, code)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
