# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`truth --plan` says of the weights what this script measures of them itself; `truth --certified` raises the
precision until each logit has its bits; a precision that is stated is not raised.
"""
import json
import math
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
from checkpoints import numbers_of, read, sinkproof  # noqa: E402
from tap import Tap  # noqa: E402

ROWS, LAYERS, GUARD = 64, 4, 30
TENSORS = {"A2.q": "self_attn.q_proj.weight", "A2.k": "self_attn.k_proj.weight", "A12": "self_attn.o_proj.weight",
           "M2": "mlp.router.weight"}


def bits_of(x, top):
    """From the binary digit that weighs 2^(top - 1) to the last one of x."""
    if x == 0:
        return 0
    numerator, denominator = abs(x).as_integer_ratio()
    lowest = (numerator & -numerator).bit_length() - denominator.bit_length()
    return top - lowest


def spread(row):
    top = max(math.frexp(x)[1] for x in row if x)
    return [bits_of(x, top) for x in row]


def measured(tensor):
    """(for 99 of 100 weights, for all) of at most ROWS rows at even distances."""
    dtype, (rows, cols), raw = tensor
    numbers, m = numbers_of(dtype, raw), min(ROWS, rows)
    starts = [k * (rows - 1) // (m - 1) * cols for k in range(m)]
    bits = sorted(b for start in starts for b in spread(numbers[start:start + cols]))
    return bits[math.ceil(0.99 * len(bits)) - 1], bits[-1]


def plan(tap, folder):
    sinkproof("synth", "synthetic:tiny", "--out", str(folder / "hf"))
    files = [read(path)[0] for path in sorted((folder / "hf").glob("*.safetensors"))]
    stored = {name: tensor for file in files for name, tensor in file.items()}
    code, out, _ = sinkproof("truth", "synthetic:tiny", "--plan", "--bits", "300", "--json", "-")
    rows = {r["point"]: r for r in json.loads(out)["results"]}
    tap.report(code == 0 and sorted(rows) == sorted(["A2.q", "A2.k", "A2.v", "A12", "M2", "M5", "M9", "F2"]),
               "slices.exact a plan has a row for every product", sorted(rows))
    for point, name in TENSORS.items():
        seen = [measured(stored[f"model.layers.{layer}.{name}"]) for layer in range(LAYERS)]
        most, every = max(s[0] for s in seen), max(s[1] for s in seen)
        row = rows[point]
        tap.report((row["bits_99"], row["bits_all"]) == (most, every),
                   f"slices.exact {point}: 99 % of the weights within {most} bits, all within {every}", [row])
    wrong = [r for r in rows.values() if r["digits"][1] > (300 + GUARD + 1) // r["digit_bits"][0] + 1 or r["slices"] < 1 or
             not r["multiply_adds_per_token"] >= r["digits"][0] * r["weights_per_token"]]
    tap.report(not wrong, "slices.exact no more digits than the precision has, a slice or more", wrong)
    text = sinkproof("truth", "synthetic:tiny", "--plan", "--bits", "300")[1]
    shown = {m[0]: (int(m[1]), int(m[2]), m[3]) for m in
             re.findall(r"^(\w+(?:\.\w)?) +\w+ +\[\d+, \d+\] +(\d+) +(\d+) .* (\d+\.\d)$", text, re.M)}
    told = {p: (r["bits_99"], r["bits_all"], f"{r['multiply_adds_per_token'] / r['weights_per_token']:.1f}") for p, r in rows.items()}
    tap.report(shown == told, "slices.exact the table shows the numbers of the JSON", [text, told])
    for words in (("--prompts", "x"), ("--trace", "x"), ("--local", "x"), ("--work", "x")):
        code = sinkproof("truth", "synthetic:tiny", "--plan", *words)[0]
        tap.report(code == 2, f"--plan {words[0]}: a wrong command line", [code])


def certified(tap):
    """Of 40 tokens some logit is near 0: it has fewer bits than the largest radius leaves."""
    words = ("truth", "synthetic:tiny", "--tokens", "random:40")
    text = sinkproof(*words, "--certified", "236")[1]
    worst = re.search(r"worst relative radius of a logit: 2\^-([\d.]+)", text)
    tap.report("320 bits leave fewer than 236 of a logit, or a choice open: repeated with 384" in text and
               worst is not None and float(worst[1]) >= 236, "236 bits of every logit: repeated with 64 more", [text])
    kept = json.loads(sinkproof(*words, "--bits", "320", "--json", "-")[1])["results"]
    lost = next(r for r in kept if r.get("what") == "bits lost on the way")
    least = next(r for r in kept if r.get("what") == "argmax of the last token")["worst_relative_radius_log2"]
    tap.report(lost["bits"] == 320 and -236 < least < -64, "a stated precision is not raised", [lost, least])
    tap.report(sinkproof(*words, "--bits", "320", "--certified", "9")[0] == 2, "--bits and --certified: one of them")
    tap.report(sinkproof(*words, "--certified", "0")[0] == 2, "--certified 0: a wrong command line")


def checked(tap):
    """7 results of each of the 29 products of the small model: 7 in each of 4 layers, and the logits."""
    words = ("truth", "synthetic:tiny", "--tokens", "1,2,3", "--check", "7")
    with tempfile.TemporaryDirectory() as folder:
        code, text, _ = sinkproof(*words, "--trace", f"{folder}/trace.safetensors")
        said = read(f"{folder}/trace.safetensors")[1]
    row = next(r for r in json.loads(sinkproof(*words, "--json", "-")[1])["results"] if "checked" in r)
    tap.report(code == 0 and "checked with GMP: 203 results of 29 products, all enclosed" in text.splitlines() and
               (row["products"], row["checked"], row["broken"], row["unchecked"], row["ok"]) == (29, 203, 0, 0, True) and
               said["enclosed by GMP"] == "203 of 203",
               "slices.exact 203 results of 29 products are checked", [text, row, said])
    tap.report(sinkproof("truth", "synthetic:tiny", "--tokens", "1", "--check", "0")[0] == 2, "--check 0: a wrong command line")


def every_token(tap):
    """The gaps of all tokens, from the midpoints and radii of the trace; too few bits leave some open."""
    with tempfile.TemporaryDirectory() as folder:
        for bits in (256, 84):
            path = pathlib.Path(folder) / f"{bits}.safetensors"
            words = ("truth", "synthetic:tiny", "--tokens", "random:40", "--bits", str(bits))
            text = sinkproof(*words, "--trace", str(path))[1]
            rows = json.loads(sinkproof(*words, "--json", "-")[1])["results"]
            row = next(r for r in rows if r.get("what") == "argmax of every token")
            stored, said = read(path)
            mid, radius = (numbers_of(*stored[name][::2]) for name in ("F2", "F2.radius"))
            n, vocab, gaps = 40, len(mid) // 40, []
            for i in range(n):
                order = sorted(range(i * vocab, (i + 1) * vocab), key=lambda k: -mid[k])
                gaps.append(mid[order[0]] - radius[order[0]] - max(mid[k] + radius[k] for k in order[1:]))
            last = next(r for r in rows if r.get("what") == "argmax of the last token")
            routing = next(r for r in rows if r["id"] == "router.topk")
            tap.report(said["argmax certified"] == f"{row['certified']} of 40" and said["bits"] == str(bits) and
                       said["routing certified"] == f"{routing['choices'] - routing['ambiguous']} of {routing['choices']}" and
                       (last["worst_relative_radius_log2"] is None or
                        float(said["largest log2 of a logit's relative radius"]) == last["worst_relative_radius_log2"]) and
                       "enclosed by GMP" not in said, f"{bits} bits: the trace says what was certified", [said, row, routing])
            certain = sum(g > 1e-9 for g in gaps)
            thinnest = min(range(n), key=lambda i: gaps[i])
            tap.report(row["certified"] == certain == sum(g > 0 for g in gaps) and row["tokens"] == n and row["ok"] == (certain == n) and
                       row["first_ambiguous"] == next((i for i in range(n) if gaps[i] <= 0), None) and
                       (not math.isfinite(gaps[thinnest]) or (row["thinnest_token"] == thinnest and abs(row["thinnest_gap"] - gaps[thinnest]) < 1e-9)),
                       f"model.forward {bits} bits: the argmax of {certain} of {n} tokens is certified", [row, gaps])
            shown = re.search(r"^argmax of every token: (\d+) of 40 certified(?:, first AMBIGUOUS at token (\d+))?; thinnest gap (\S+) or more, at token (\d+)$", text, re.M)
            tap.report(shown and int(shown[1]) == certain and (shown[2] is None) == (certain == n) and
                       (row["thinnest_gap"] is None or float(shown[3]) <= row["thinnest_gap"] <= float(shown[3]) + abs(float(shown[3])) * 1e-4),
                       f"{bits} bits: the text says so", [text])


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        plan(tap, pathlib.Path(folder))
    certified(tap)
    checked(tap)
    every_token(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
