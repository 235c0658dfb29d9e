# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`judge --truth FILE`: every error is enclosed by what it says, computed here once more in rationals; what arose in a
layer is where a trace was changed; the argmax is the file's; the verdict is the one without the file; a file of
another model, prompt or shape, without radii, of single operations or damaged is refused.
"""
import json
import math
import os
import pathlib
import random
import struct
import sys
import tempfile
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
from checkpoints import changed, numbers_of, read, safetensors, sinkproof  # noqa: E402
from tap import Tap  # noqa: E402

TINY, TOKENS = "synthetic:tiny", "random:6,seed=3"
LAYERS = ["T0", *(f"{layer:02}.{point}" for layer in range(4) for point in ("M3", "M12")), "F1", "F2"]


def judged(trace, truth, *more, model=TINY):
    """(exit, {id: row}, all rows, text) under f32."""
    words = ("judge", model, str(trace), "--policy", "f32", "--no-hint", "--no-diagnosis", *more)
    said = sinkproof(*words, *(("--truth", str(truth)) if truth else ("--local",)), "--json", "-")
    rows = json.loads(said[1])["results"] if said[1].startswith("{") else []
    return said[0], {r["id"]: r for r in rows}, rows, said[2]


def numbers(file, name):
    dtype, shape, raw = file[name]
    return shape, [Fraction(x) for x in numbers_of(dtype, raw)]


def rows_of(truth, name, shape):
    """The elements of each token; of A6, A9 and A10 those of each head's row whose weight is not masked."""
    layer, _, point = name.partition(".")
    if point not in ("A6", "A9", "A10"):
        width = math.prod(shape[1:])
        yield from (range(row * width, (row + 1) * width) for row in range(shape[0]))
        return
    (heads, n, keys), weights = numbers(truth, f"{layer}.A10")
    for row in range(heads * n):
        seen = [j for j in range(keys) if weights[row * keys + j] != 0]
        yield [row * shape[2] + j for j in seen] + ([row * shape[2] + keys] if point == "A9" else [])


def exact(trace, truth, name):
    """Bounds of the squares of what the judge says: (rms lo, hi, worst lo, hi), from every element."""
    shape, v = numbers(trace, name)
    _, m = numbers(truth, name)
    _, r = numbers(truth, name + ".radius")
    rms, worst = [0, 0], [0, 0]
    rows = list(rows_of(truth, name, shape))
    for at in rows:
        width = len(at)
        near = [max(Fraction(0), abs(v[i] - m[i]) - r[i]) for i in at]
        far = [abs(v[i] - m[i]) + r[i] for i in at]
        least = sum(max(Fraction(0), abs(m[i]) - r[i]) ** 2 for i in at)
        most = sum((abs(m[i]) + r[i]) ** 2 for i in at)
        rms[0] += sum(x * x for x in near) / most / len(rows)
        rms[1] += sum(x * x for x in far) / least / len(rows)
        worst[0] = max(worst[0], max(near) ** 2 * width / most)
        worst[1] = max(worst[1], max(far) ** 2 * width / least)
    return rms + worst


def enclosures(tap, trace, whole, layers):
    for file, what in ((whole, "all points"), (layers, "layers")):
        code, rows, _, said = judged(trace, file)
        told = {name.removesuffix(".truth"): r for name, r in rows.items() if name.endswith(".truth")}
        ours, theirs, wrong, wide = read(trace)[0], read(file)[0], [], 0
        held = [n for n in theirs if n + ".radius" in theirs and n in ours]
        for name in held:
            lo2, hi2, worst_lo2, worst_hi2 = exact(ours, theirs, name)
            (lo, hi), (least, most) = told[name]["rms"], told[name]["worst"]
            if not (Fraction(lo) ** 2 <= lo2 <= hi2 <= Fraction(hi) ** 2 and
                    Fraction(least) ** 2 <= worst_lo2 <= worst_hi2 <= Fraction(most) ** 2):
                wrong.append((name, lo, hi, math.sqrt(lo2)))
            wide = max([wide] + [(end - start) / end for start, end in ((lo, hi), (least, most)) if end])
        tap.report(code == 0 and sorted(told) == sorted(held) and not wrong and wide < 1e-7 and
                   all(r["label"] == "enclosed" for r in told.values()),
                   f"{what}: {len(told)} points, each error enclosed within {wide:.1g} of itself", [code, said, *wrong[:3]])
        staged = {n: r for n, r in told.items() if not n.endswith(("M5", "M9"))}
        apart = [n for n, r in staged.items() if not abs(r["arose"]["rms"] - r["came_in"]["rms"]) * 0.999 <= r["rms"][1] + 1e-15 or
                 not r["rms"][0] <= (r["arose"]["rms"] + r["came_in"]["rms"]) * 1.001 + 1e-15]
        apart += [n for n, r in told.items() if (r["arose"]["rms"] is None) != n.endswith(("M5", "M9"))]
        tap.report(not apart, f"{what}: an error is at most what arose and came in together, at least their difference", apart[:3])
    layer = told["02.M12"]
    tap.report(set(told) == {n for n in LAYERS if not n.endswith("M3")} and layer["format"] == "f32" and
               layer["unit_roundoff"] == 2 ** -24 and told["T0"]["worst"] == [0, 0],
               "a file of layers: T0, M12, F1 and F2, in unit roundoffs of float32; the embedding is exact", sorted(told))


def one_error(tap, trace, layers, folder):
    """The layer that is wrong is the one in which an error arose."""
    shape, v = numbers(read(trace)[0], "01.M12")
    file, metadata = read(trace)
    file["01.M12"] = "F32", shape, struct.pack(f"<{len(v)}f", *(float(x) * 1.01 for x in v))
    planted = folder / "planted"
    planted.write_bytes(safetensors(file, metadata))
    rows = judged(planted, layers)[1]
    arose = [rows[f"{layer:02}.M12.truth"]["arose"]["rms"] for layer in range(4)]
    came = [rows[f"{layer:02}.M12.truth"]["came_in"]["rms"] for layer in range(4)]
    tap.report(arose[0] < 1e-5 and abs(arose[1] - 0.01) < 1e-3 and came[1] < 1e-5 and 1e-3 < came[2] < 0.1 and came[3] < 1e-5,
               "an error of 1 % planted behind layer 1 arose there, and came in to layer 2", [arose, came])


def argmaxes(tap, trace, layers, folder):
    file, _ = read(layers)
    shape, m = numbers(file, "F2")
    best = max(range(shape[1]), key=lambda v: m[v])
    other = (best + 1) % shape[1]
    top = numbers(read(trace)[0], "F2")[1][best]
    said = []
    for value in (float(top) + 1, float(top), float("nan"), float("-inf")):
        code, rows, _, _ = judged(changed(trace, "F2", other, value, folder / "argmax"), layers)
        argmax = rows["truth"]["argmax"]
        said.append([argmax[key] for key in ("tokens", "agrees", "ties", "differs", "nan", "open")])
        if value != value:
            tap.report(rows["F2.truth"]["rms"] == [None, None] and rows["F2.truth"]["worst"] == [None, None] and code == 1 and
                       rows["F2.truth"]["not_finite"] == 1 and rows["F2.truth"]["arose"]["worst"] is None,
                       "a NaN of the engine is an infinite error", [rows["F2.truth"]])
    tap.report(said == [[6, 5, 0, 1, 0, 0], [6, 5, 1, 0, 0, 0], [6, 5, 0, 0, 1, 0], [6, 6, 0, 0, 0, 0]],
               "the argmax: another's, a tie with it, NaN, and the engine's own", said)
    wide = changed(layers, "F2.radius", best, 1e9, folder / "wide")
    code, rows, _, _ = judged(trace, wide)
    text = sinkproof("judge", TINY, str(trace), "--policy", "f32", "--truth", str(wide))[1]
    tap.report(code == 0 and rows["truth"]["argmax"]["open"] == 1 and "For 1 the truth itself is a tie within its radius." in text and
               rows["F2.truth"]["rms"][1] > 1e3 and rows["F2.truth"]["rms"][0] < 1e-5,
               "a truth that is a tie within its radius is open, and widens the bounds", [rows["truth"], rows["F2.truth"]])


def verdicts(tap, trace, layers, folder):
    """What the judge decides without the file it decides with it, and with an engine that is far off. What it
    estimates depends on how many columns OpenBLAS multiplies at a time."""
    far = folder / "far"
    sinkproof("run", TINY, "--tokens", TOKENS, "--policy", "openai-bf16", "--trace", str(far))
    for path, policy in ((trace, "f32"), (far, "openai-bf16")):
        both = [sinkproof("judge", TINY, str(path), "--policy", policy, *more, "--json", "-")
                for more in ((), ("--truth", str(layers)))]
        rows = [[{k: v for k, v in r.items() if k not in ("error", "inherited", "local")}
                 for r in json.loads(said)["results"] if not r["id"].endswith("truth")] for _, said, _ in both]
        error = json.loads(both[1][1])["results"][-1]["rms"][0]
        tap.report(both[0][0] == both[1][0] == 0 and rows[0] == rows[1],
                   f"{policy}: the verdict and its decided numbers are those without a file, at an error of {error:.1e}")


def without_model(tap, trace, whole, folder):
    """The file alone says the same errors, of a trace with every point, and no stage."""
    for file in (trace, changed(trace, "02.M3", 5, -1, folder / "broken")):
        code, rows, _, said = judged(file, whole)
        words = ("judge", TINY, str(file), "--policy", "f32", "--truth", str(whole), "--truth-alone")
        alone = sinkproof(*words, "--json", "-")
        if code == 3:
            tap.report(alone[0] == 3 and alone[2] == said, "an expert that there is not is refused by both", [alone, said])
            continue
        told = {r["id"]: r for r in json.loads(alone[1])["results"]}
        same = [name for name, r in told.items() if name.endswith(".truth") and
                any(r[key] != rows[name][key] for key in r if key not in ("arose", "came_in"))]
        text = sinkproof(*words)[1]
        tap.report(alone[0] == 4 and not same and told["truth"] == rows["truth"] and told["judgement"]["verdict"] == "undecided" and
                   set(told) == {n for n in rows if n.endswith("truth")} | {"judgement"} and "arose" not in text and
                   all(r["arose"]["rms"] is None for n, r in told.items() if n.endswith(".truth")) and "Nothing was judged (exit 4)." in text,
                   f"--truth-alone: the same numbers at {len(told) - 2} points, and no verdict", [alone[0], same[:3], sorted(told)[:4]])


def estimated(tap, trace, layers, folder):
    file, metadata = read(layers)
    for key, value, what in (("routing certified", "23 of 24", "a choice that is not certified"),
                             ("truth", "end to end, with the experts of a trace", "another trace's experts")):
        path = folder / "estimated"
        path.write_bytes(safetensors(file, {**metadata, key: value}))
        code, rows, _, _ = judged(trace, path)
        text = sinkproof("judge", TINY, str(trace), "--policy", "f32", "--truth", str(path))[1]
        tap.report(code == 0 and "enclosed)" not in text and
                   {r["label"] for name, r in rows.items() if name.endswith("truth")} == {"estimated"},
                   f"nothing is enclosed by a file with {what}", [code])


def refusals(tap, trace, layers, folder):
    file, metadata = read(layers)

    def made(name, tensors=file, said=metadata):
        path = folder / name
        path.write_bytes(safetensors(tensors, said))
        return path

    def truth(name, *words):
        sinkproof("truth", *words, "--trace", str(folder / name))
        return folder / name
    dtype, shape, raw = file["01.M12.radius"]
    short = {**file, "01.M12.radius": (dtype, [shape[0], shape[1] - 1], raw[:-8 * shape[0]])}
    table = {
        "another model": (truth("seed", TINY + ",seed=2", "--tokens", TOKENS), "another model"),
        "another prompt": (truth("prompt", TINY, "--tokens", "random:6,seed=4"), "the truth of another prompt: token 0: expected"),
        "fewer tokens": (truth("fewer", TINY, "--tokens", "1,2"), "another prompt: expected 6 tokens as in"),
        "single operations": (truth("local", TINY, "--local", str(trace)), "expected end to end, found operation by operation"),
        "an engine's trace": (trace, "metadata label: expected enclosed"),
        "no radius": (made("none", {k: v for k, v in file.items() if k != "01.M12.radius"}), "expected a tensor 01.M12.radius, found none"),
        "a radius of another shape": (made("short", short), "01.M12.radius: expected shape"),
        "a negative radius": (changed(layers, "01.M12.radius", 9, -1e-9, folder / "negative"), "01.M12.radius: expected radii from 0 on, found -1e-09 at (0, 9)"),
        "NaN as a radius": (changed(layers, "F2.radius", 3, float("nan"), folder / "nan"), "F2.radius: expected radii from 0 on, found nan"),
        "an infinite midpoint": (changed(layers, "F1", 3, float("inf"), folder / "infinite"), "F1: expected finite midpoints of finite radii, found inf"),
        "midpoints in float32": (made("narrow", {**file, "T0": ("F32", file["T0"][1], b"\0" * (len(file["T0"][2]) // 2))}), "T0: expected F64, found F32"),
        "no model": (made("nobody", said={k: v for k, v in metadata.items() if k != "model"}), "metadata model: expected a fingerprint"),
        "no certificate": (made("bare", said={k: v for k, v in metadata.items() if k != "routing certified"}), '"routing certified": expected a part of a whole'),
        "more than a whole": (made("more", said={**metadata, "argmax certified": "7 of 6"}), '"argmax certified": expected a part of a whole'),
        "a file that is cut off": (folder / "cut", "cut"), "no file": (folder / "absent", "absent"),
    }
    (folder / "cut").write_bytes(layers.read_bytes()[:-100])
    for what, (path, sentence) in table.items():
        code, _, _, said = judged(trace, path)
        tap.report(code == 3 and sentence in said and str(path) in said and "\n" not in said, f"refused with exit 3: {what}", [code, said])
    code, _, said = sinkproof("judge", TINY, str(trace), "--truth-alone")
    tap.report(code == 2 and "--truth-alone asks for --truth" in said, "usage: --truth-alone without a file", [code, said])
    for words in (("--local",), ("--layers", "0-1"), ("--plan",)):
        code, _, said = sinkproof("judge", TINY, str(trace), "--truth", str(layers), *words)
        tap.report(code == 2 and "--truth compares whole traces end to end" in said, f"usage: --truth beside {words[0]}", [code, said])


def damaged(tap, trace, layers, folder):
    """Whatever a byte of the file says, the judge ends with a sentence or with a result."""
    draw, raw, codes = random.Random(5), layers.read_bytes(), []
    head = 8 + struct.unpack("<Q", raw[:8])[0]
    path = folder / "damaged"
    for i in range(24):
        wounded = bytearray(raw)
        for _ in range(1 + i % 3):
            wounded[draw.randrange(8 if i % 8 == 0 else head if i % 2 else len(raw))] = draw.randrange(256)
        path.write_bytes(wounded)
        code, _, said = sinkproof("judge", TINY, str(trace), "--policy", "f32", "--truth", str(path))
        codes.append(code if code != 3 or "\n" not in said else said)
    tap.report(set(codes) == {0, 3}, f"of 24 damaged files {codes.count(3)} are refused in one sentence, the others compared", codes)


def written(tap, layers):
    code, said, wrong = sinkproof("truth", TINY, "--tokens", TOKENS, "--trace", str(layers), "--points", "layers")
    file, _ = read(layers)
    midpoints = [name for name in file if not name.endswith(".radius")]
    size = sum(len(raw) for name, (_, _, raw) in file.items() if name not in ("tokens", "positions"))
    tap.report(code == 0 and sorted(midpoints) == sorted(["tokens", "positions", *LAYERS]) and
               f"{layers}: 11 tensors with midpoints and radii, {size / 2 ** 20:.3g} MiB" in said,
               "truth --points layers writes T0, M3, M12, F1 and F2, and says how much", [code, wrong, midpoints, said[-90:], size])
    code, _, said = sinkproof("truth", TINY, "--tokens", "1", "--trace", str(layers) + "x", "--points", "M13")
    tap.report(code == 3 and "nearest known is" in said and not os.path.exists(str(layers) + "x"), "a point that no trace has is refused", [code, said])


def shown(tap, folder):
    """Chapter 14 shows what the command prints: to the last digit where it is enclosed."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "doc/14-judging.md").read_text(encoding="utf-8")
    shows = page[page.index("## Against certified truth"):].split("```text\n")[1].split("```")[0].splitlines()
    truth, fast = folder / "shown", folder / "fast"
    sinkproof("truth", TINY, "--tokens", "1,2,3", "--trace", str(truth), "--points", "layers")
    sinkproof("run", TINY, "--engine", "fast", "--tokens", "1,2,3", "--trace", str(fast))
    said = [line.split("|")[0].rstrip() for line in sinkproof("judge", TINY, str(fast), "--truth", str(truth))[1].splitlines()]
    lost = [line for line in shows if line.split("|")[0].rstrip() not in said]
    tap.report(len(shows) == 13 and not lost, f"{len(shows)} lines of chapter 14 are printed", lost)


def main():
    tap = Tap()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        trace, whole, layers = folder / "trace", folder / "whole", folder / "layers"
        sinkproof("run", TINY, "--engine", "ref", "--policy", "f32", "--tokens", TOKENS, "--trace", str(trace))
        sinkproof("truth", TINY, "--tokens", TOKENS, "--trace", str(whole))
        written(tap, layers)
        enclosures(tap, trace, whole, layers)
        one_error(tap, trace, layers, folder)
        argmaxes(tap, trace, layers, folder)
        verdicts(tap, trace, layers, folder)
        without_model(tap, trace, whole, folder)
        estimated(tap, trace, layers, folder)
        refusals(tap, trace, layers, folder)
        damaged(tap, trace, layers, folder)
        shown(tap, folder)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
