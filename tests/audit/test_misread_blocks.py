# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mistakes of programs that read ggml's blocks are convicted at the product that reads the weight, and named.

The engine runs a model whose file has what such a program reads: other bytes of a block, written here from the layout of
each format. The judge reads the right file. A mistake that is none of these is convicted and not called by their names.
"""
import json
import random
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402
from gguf_file import Gguf  # noqa: E402

CONFIG = {"model_type": "llama", "hidden_act": "silu", "num_hidden_layers": 1, "vocab_size": 61, "hidden_size": 512,
          "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
          "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False}
TYPES = {"Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176),
         "Q6_K": (14, 256, 210)}
SCALE = {"Q6_K": 208}  # elsewhere 0, and the minimum at 2
ROWS = {"attn_v": 16, "attn_q": 32}


def drawn(name, blocks, draw):
    """Blocks of drawn codes whose weights are of an ordinary size."""
    kind, _, size = TYPES[name]
    out, at = bytearray(draw.randbytes(blocks * size)), SCALE.get(name, 0)
    by = 1 / 64 if name.endswith("K") else 1
    for b in range(0, len(out), size):
        out[b + at:b + at + 2] = struct.pack("<e", by * draw.uniform(0.005, 0.02))
        if name[3] == "1" or name in ("Q4_K", "Q5_K"):
            out[b + 2:b + 4] = struct.pack("<e", by * draw.uniform(0.05, 0.1) * (1 if "K" in name else -1))
    return bytes(out)


# ---- what a program reads in the place of the blocks of a matrix: (name, bytes, rows) -> bytes

def each(change):
    """change(the blocks of a row, which) -> the bytes of one block."""
    def read(name, data, rows):
        size, row = TYPES[name][2], len(data) // rows
        out = b""
        for r in range(rows):
            blocks = [data[r * row + at:r * row + at + size] for at in range(0, row, size)]
            out += b"".join(bytes(change(name, blocks, b)) for b in range(len(blocks)))
        return out
    return read


def put(block, at, more):
    return block[:at] + more + block[at + len(more):]


def without_minimum(name, blocks, b):
    return put(blocks[b], 2, b"\0\0")


def negated(name, blocks, b):
    return put(blocks[b], 3, bytes([blocks[b][3] ^ 128]))


def exchanged(name, blocks, b):
    return blocks[b][2:4] + blocks[b][:2] + blocks[b][4:]


def next_scale(name, blocks, b):
    at = SCALE.get(name, 0)
    return put(blocks[b], at, blocks[(b + 1) % len(blocks)][at:at + 2])


def first_scale(name, blocks, b):
    return put(blocks[b], 0, blocks[0][:2])


def both_before(name, blocks, b):
    return put(blocks[b], 0, blocks[b - 1][:4])


def parts_of_next(name, blocks, b):
    at, n = (192, 16) if name == "Q6_K" else (4, 12)
    return put(blocks[b], at, blocks[(b + 1) % len(blocks)][at:at + n])


def in_turn(name, blocks, b):
    """Bytes whose lower halves then upper halves give, in turn, the lower and the upper half of each byte."""
    at = {"Q4_0": 2, "Q4_1": 4, "Q5_0": 6, "Q5_1": 8, "Q4_K": 16, "Q5_K": 48, "Q6_K": 0}[name]
    run, count = {"Q4_K": (32, 4), "Q5_K": (32, 4), "Q6_K": (64, 2)}.get(name, (16, 1))
    block = bytearray(blocks[b])
    for _ in range(count):
        codes = [half for byte in block[at:at + run] for half in (byte & 15, byte >> 4)]
        block[at:at + run] = bytes(codes[i] | codes[i + run] << 4 for i in range(run))
        at += run
    return block


def upper_first(name, blocks, b):
    return blocks[b][:2] + bytes(byte >> 4 | (byte & 15) << 4 for byte in blocks[b][2:])


def no_fifth(name, blocks, b):
    return put(blocks[b], {"Q5_0": 2, "Q5_1": 4, "Q5_K": 16}[name], bytes(32 if name == "Q5_K" else 4))


def third_without_minimum(name, blocks, b):
    return without_minimum(name, blocks, b) if b == 3 else blocks[b]


def one_code(name, blocks, b):
    """No mistake of the list: the first code of every block is 5."""
    return put(blocks[b], 4, bytes([blocks[b][4] & 240 | 5]))


def scale_stored_next(name, data, rows):
    size = TYPES[name][2]
    blocks = [data[at:at + size] for at in range(0, len(data), size)]
    return b"".join(next_scale(name, blocks, b) for b in range(len(blocks)))


def from_zero(name, data, rows):
    """Q4_0's codes are 0 to 15, not -8 to 7: as float32 numbers."""
    numbers = []
    for at in range(0, len(data), 18):
        d, = struct.unpack_from("<e", data, at)
        numbers += [d * (byte & 15) for byte in data[at + 2:at + 18]] + [d * (byte >> 4) for byte in data[at + 2:at + 18]]
    return struct.pack(f"<{len(numbers)}f", *numbers)


CASES = [("Q4_1", each(without_minimum), "without the minima"), ("Q4_K", each(without_minimum), "without the minima"),
         ("Q5_1", each(negated), "opposite sign of the minima"), ("Q4_1", each(exchanged), "the scale of each block for its minimum"),
         ("Q5_0", each(next_scale), "the scale of the next block"), ("Q6_K", each(next_scale), "the scale of the next block"),
         ("Q4_0", each(first_scale), "scale of the first block"), ("Q4_1", each(both_before), "scale and minimum of the block before"),
         ("Q6_K", each(parts_of_next), "scales of the parts of the next block"),
         ("Q4_1", scale_stored_next, "in the last one of a row with those of the next row's first"),
         ("Q4_1", each(in_turn), "side by side"), ("Q5_K", each(in_turn), "side by side"), ("Q6_K", each(in_turn), "side by side"),
         ("Q4_0", each(upper_first), "upper nibble"), ("Q5_0", each(no_fifth), "above the fourth"),
         ("Q5_K", each(no_fifth), "above the fourth"), ("Q4_0", from_zero, "codes from 0 on"),
         ("Q4_1", each(third_without_minimum), "without the minima of their blocks, in block 3 of each row")]


def told(work, name, matrix, read, policy="f32"):
    """(verdict, first point, what the diagnosis says)."""
    draw, source = random.Random(name), Gguf(work / "f32.gguf")
    tensor = f"blk.0.{matrix}.weight"
    dims = source.tensors[tensor][1]
    right = drawn(name, dims[0] * dims[1] // TYPES[name][1], draw)
    wrong = read(name, right, dims[1])
    source.tensors[tensor] = (TYPES[name][0], dims, right)
    honest = source.write(work / "right.gguf")
    source.tensors[tensor] = (0 if len(wrong) == 4 * dims[0] * dims[1] else TYPES[name][0], dims, wrong)
    other, trace = source.write(work / "wrong.gguf"), str(work / "trace")
    status, _, error = sinkproof("run", other, "--tokens", "random:9,seed=4", "--policy", policy, "--trace", trace)
    assert status == 0, error
    _, out, _ = sinkproof("judge", honest, trace, "--policy", policy, "--any-model", "--local", "--no-hint", "--json", "-")
    Path(trace).unlink()
    result = json.loads(out)["results"][0]
    return result["verdict"], result["first_divergence"], json.dumps(result["diagnosis"])


def named(work):
    (work / "config.json").write_text(json.dumps(CONFIG))
    status, _, error = sinkproof("synth", f"synthetic:{work / 'config.json'}", "--layout", "gguf", "--dense", "f32", "--out", str(work / "f32.gguf"))
    assert status == 0, error
    for number, (name, read, words) in enumerate(CASES):
        matrix, point = (("attn_v", "00.A2.v"), ("attn_q", "00.A2.q"))[number % 2]  # the rows of queries are turned
        verdict, first, said = told(work, name, matrix, read)
        report(verdict == "bug" and first == point and "are read " in said and words in said, f"ggml.blocks {name}, {words}: {verdict} at {first}", [said[:600]])
    verdict, first, said = told(work, "Q4_1", "attn_v", each(without_minimum), "llama-cpp")  # which meet sums of the activations
    report(verdict == "bug" and "without the minima" in said, f"ggml.blocks bound.q8-minima minima lost under llama-cpp: {verdict} at {first}", [said[:600]])
    verdict, first, said = told(work, "Q4_1", "attn_v", each(one_code))
    report(verdict == "bug" and first == "00.A2.v" and "of the values are read " not in said, f"ggml.blocks a changed code is no mistake of the list: {verdict}", [said[:600]])


if __name__ == "__main__":
    sys.exit(checkpoints.run(named))
