# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Records what the page "One layer, replayed" shows: scores, values and states of runs, verdicts of the judge.

    python3 doc/explore/record.py SINKPROOF OUT.json [SMOLLM2.gguf]

Without the trained model its part stays what OUT holds. The mistakes are planted in copies of the tiny model's
checkpoint: one weight or one line of its configuration is changed, `run` runs the copy, and `judge` judges the trace
as one of the model itself.
"""

import array
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/shared"))
import checkpoints  # noqa: E402

DIGITS = 4  # of a score after the point: what an address of the page keeps
TEXT = "The old keeper wrote a letter to the sea"
TINY, TINY_TOKENS = "synthetic:tiny", ",".join(str(17 * k % 211) for k in range(3, 15))


def run(sinkproof, *words, allowed=(0,)):
    done = subprocess.run([sinkproof, *words], capture_output=True, text=True)
    if done.returncode not in allowed:
        sys.exit(f"record: {' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def tensors_of(path):
    """{name: (shape, numbers)} of a file of F64, I32 or BF16; BF16 as the 16 bits."""
    codes = {"F64": "d", "I32": "i", "BF16": "H"}
    return {name: (shape, array.array(codes[dtype], raw))
            for name, (dtype, shape, raw) in checkpoints.read(path)[0].items() if dtype in codes}


def rounded(x):
    return float(f"{x:.{DIGITS}f}")


def lower(shape, scores, weights, head):
    """The rows of a head's scores, each up to its own position; null where the weight is 0: a window hides the key."""
    n = shape[1]
    columns = len(weights) // (shape[0] * n)  # n keys, and the sink where there is one
    rows = []
    for i in range(n):
        own = scores[(head * n + i) * n :][: i + 1]
        given = weights[(head * n + i) * columns :][: i + 1]
        rows.append([rounded(s) if w > 0 else None for s, w in zip(own, given)])
        # What the page will compute from the recorded numbers is what the run computed.
        most = max(s for s, w in zip(own, given) if w > 0)
        total = sum(math.exp(s - most) for s, w in zip(own, given) if w > 0)
        if not all(abs(math.exp(s - most) / total * sum(given) - w) <= 1e-9 for s, w in zip(own, given) if w > 0):
            sys.exit(f"record: row {i} of head {head}: the weights are not the softmax of the scores")
    return rows


def plane(shape, numbers, head):
    """Of the values of a key/value head the two coordinates that vary most, and the power of two that divides them."""
    n, heads, dim = shape
    column = [[numbers[(j * heads + head) * dim + d] for j in range(n)] for d in range(dim)]
    spread = [max(c) - min(c) for c in column]
    first, second = sorted(range(dim), key=lambda d: -spread[d])[:2]
    most = max(abs(x) for d in (first, second) for x in column[d])
    shift = max(0, math.ceil(math.log2(most / 3))) if most > 0 else 0
    points = [[rounded(column[d][j] / 2**shift) for d in (first, second)] for j in range(n)]
    return {"coordinates": [first, second], "divided": 2**shift, "points": points}


def states(tensors, layers):
    """Norms of the residual stream before the first layer and after each, and its largest coordinate anywhere."""
    names = ["T0", *(f"{l:02}.M12" for l in range(layers))]
    n, width = tensors["T0"][0]
    rows = [[tensors[name][1][i * width : (i + 1) * width] for i in range(n)] for name in names]
    largest = max(range(width), key=lambda d: max(abs(row[d]) for place in rows for row in place))
    return {
        "coordinate": largest,
        "massive": [[rounded(row[largest]) for row in place] for place in rows],
        "norm": [[rounded(math.sqrt(sum(x * x for x in row))) for row in place] for place in rows],
    }


def replay(sinkproof, model, tokens, trace):
    """A run, traced: its scores, values and states."""
    run(sinkproof, "run", model, f"--tokens={tokens}", "--trace", str(trace))
    tensors = tensors_of(trace)
    layers = sum(1 for name in tensors if name.endswith(".A6"))
    heads, kv = tensors["00.A6"][0][0], tensors["00.A2.v"][0][1]
    return {
        "ids": list(tensors["tokens"][1]),
        "score": [
            [lower(*tensors[f"{l:02}.A6"], tensors[f"{l:02}.A9"][1], h) for h in range(heads)] for l in range(layers)
        ],
        "value": [[plane(*tensors[f"{l:02}.A2.v"], g) for g in range(kv)] for l in range(layers)],
        "states": states(tensors, layers),
    }


def bf16(x):
    return struct.unpack("<I", struct.pack("<f", x))[0] >> 16


def weights(change):
    """A mistake of the weights: `change(name, bits)` alters the BF16 numbers of a tensor in place."""

    def plant(folder):
        path = folder / "model.safetensors"
        tensors, metadata = checkpoints.read(path)
        for name, (dtype, shape, raw) in tensors.items():
            if dtype == "BF16":
                bits = array.array("H", raw)
                change(name, bits)
                tensors[name] = dtype, shape, bits.tobytes()
        path.write_bytes(checkpoints.safetensors(tensors, metadata))

    return plant


def settings(**changes):
    """A mistake of the configuration."""

    def plant(folder):
        path = folder / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        config.update(changes)
        path.write_text(json.dumps(config), encoding="utf-8")

    return plant


def of_sinks(number):
    def change(name, bits):
        if name.endswith(".sinks"):
            bits[:] = array.array("H", [number(bits, h) for h in range(len(bits))])

    return weights(change)


def one_group(name, bits):
    """Every query head reads the keys and values of the first key/value head."""
    if re.search(r"\.[kv]_proj\.(weight|bias)$", name):
        half = len(bits) // 2
        bits[half:] = bits[:half]


MISTAKES = {
    "dropped": ("the sinks are left out", of_sinks(lambda bits, h: bf16(-math.inf))),
    "zero": ("the sinks are zero: softmax off by one", of_sinks(lambda bits, h: 0)),
    "neighbour": ("each head has the next head's sink", of_sinks(lambda bits, h: bits[(h + 1) % len(bits)])),
    "doubled": ("the sinks are doubled", of_sinks(lambda bits, h: bits[h] + 0x80 if bits[h] & 0x7F80 else bits[h])),
    "wide": ("the window is one key too wide", settings(sliding_window=9)),
    "exchanged": (
        "the window is on the other layers",
        settings(layer_types=["full_attention", "sliding_attention"] * 2),
    ),
    "base": ("the rotation's base is 10,000", settings(rope_theta=10000.0)),
    "group": ("all heads read the first key/value head", weights(one_group)),
}


def sinks_of(checkpoint, layers):
    """The sinks of each layer, null for one that is left out."""
    tensors, found = tensors_of(checkpoint / "model.safetensors"), []
    for l in range(layers):
        _, bits = tensors[f"model.layers.{l}.self_attn.sinks"]
        wide = [struct.unpack("<f", struct.pack("<I", b << 16))[0] for b in bits]
        found.append([rounded(x) if math.isfinite(x) else None for x in wide])
    return found


def verdict(said):
    """What the judge says from its first divergence on."""
    return said[said.index("First divergence") :].rstrip() if "First divergence" in said else said.splitlines()[-1]


def tiny(sinkproof, folder):
    """The tiny model, and with each mistake planted."""
    checkpoint, trace = pathlib.Path(folder, "tiny"), pathlib.Path(folder, "tiny.safetensors")
    run(sinkproof, "synth", TINY, "--out", str(checkpoint))
    shown = replay(sinkproof, str(checkpoint), TINY_TOKENS, trace)
    layers = len(shown["score"])
    shown |= {"name": "tiny", "words": [str(id) for id in shown["ids"]], "sink": sinks_of(checkpoint, layers)}
    mistakes = []
    for name, (what, plant) in MISTAKES.items():
        copy, trace = pathlib.Path(folder, name), pathlib.Path(folder, f"{name}.safetensors")
        run(sinkproof, "synth", TINY, "--out", str(copy))
        plant(copy)
        wrong = replay(sinkproof, str(copy), TINY_TOKENS, trace)
        said = run(sinkproof, "judge", "--any-model", "--policy=real-f64", TINY, str(trace), allowed=(0, 1, 4))
        mistakes.append(
            {"name": name, "what": what, "said": verdict(said), "score": wrong["score"], "value": wrong["value"],
             "sink": sinks_of(copy, layers)}
        )
    return shown | {"mistakes": mistakes}


def trained(sinkproof, model, name, tokens, folder):
    shown = replay(sinkproof, model, tokens, pathlib.Path(folder, f"{name}.safetensors"))
    words = [json.loads(run(sinkproof, "tokens", model, f"--decode={id}")) for id in shown["ids"]]
    return shown | {"name": name, "words": words}


def main(sinkproof, out, model=None):
    out = pathlib.Path(out)
    kept = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"runs": []}
    with tempfile.TemporaryDirectory() as folder:
        runs = [tiny(sinkproof, folder)]
        if model is None:
            runs += [shown for shown in kept["runs"] if shown["name"] != "tiny"]
        else:
            runs.append(trained(sinkproof, model, "trained", f"text:{TEXT}", folder))
            again = ",".join([str(runs[-1]["ids"][-1])] * len(runs[-1]["ids"]))
            runs.append(trained(sinkproof, model, "repeated", again, folder))
    out.write_text(json.dumps({"runs": runs}, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"record: {out}: {', '.join(shown['name'] for shown in runs)}, {out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
