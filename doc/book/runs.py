# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Pictures of data: each is drawn from a run of the command that is made here."""
import functools
import json
import math
import os
import re
import struct
import subprocess

from canvas import WIDTH, Canvas
from shares import percent

VECTORS = "tests/vectors/openai-torch/small"
TINY = ["--tokens", "random:24", "--policy", "f32"]


def run(program, root, *arguments, exits=(0,)):
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")
    done = subprocess.run([os.path.abspath(program), *map(str, arguments)], cwd=root, capture_output=True, text=True,
                          env=environment)
    if done.returncode not in exits:
        raise SystemExit(f"pictures: sinkproof {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


# ---- traces ------------------------------------------------------------------------------------------

def header(data):
    (length,) = struct.unpack_from("<Q", data)
    return json.loads(data[8:8 + length]), 8 + length


def tensor(data, name):
    """A tensor of a trace in float32 or int32, as nested lists."""
    entries, start = header(data)
    entry = entries[name]
    first, last = entry["data_offsets"]
    kind = {"F32": "f", "I32": "i"}[entry["dtype"]]
    flat = struct.unpack(f"<{(last - first) // 4}{kind}", data[start + first:start + last])
    return nested(flat, entry["shape"])


def nested(flat, shape):
    if len(shape) == 1:
        return list(flat)
    size = len(flat) // shape[0]
    return [nested(flat[k * size:(k + 1) * size], shape[1:]) for k in range(shape[0])]


def traced(program, root, scratch, model, *arguments):
    path = scratch / "trace.safetensors"
    run(program, root, "run", model, *arguments, "--trace", path)
    return path.read_bytes()


def without_sinks(program, root, scratch, layer):
    """The tiny model with the sinks of one layer at minus infinity: heads without a sink."""
    folder = scratch / "tiny"
    run(program, root, "synth", "synthetic:tiny", "--out", folder, "--layout", "hf")
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    entries, start = header(bytes(data))
    first, last = entries[f"model.layers.{layer}.self_attn.sinks"]["data_offsets"]
    data[start + first:start + last] = b"\x80\xff" * ((last - first) // 2)  # bfloat16 -inf
    path.write_bytes(data)
    return folder


# ---- attention ---------------------------------------------------------------------------------------

def widest(weights):
    """The head whose sink differs most from row to row: the one that has most to show."""
    spread = [max(row[-1] for row in head) - min(row[-1] for row in head) for head in weights]
    return spread.index(max(spread))


def cells(c, x, y, size, rows, sink):
    """A lower triangle of weights, and the sink's column beside it."""
    n = len(rows)
    for i, row in enumerate(rows):
        for j in range(i + 1):
            c.rect(x + j * size, y + i * size, size, size, None, "a", math.sqrt(row[j]), 0)
        if sink:
            c.rect(x + (n + 0.7) * size, y + i * size, size, size, None, "b", math.sqrt(row[n]), 0)
    c.line((x, y), (x + n * size, y + n * size), (x, y + n * size), (x, y), colour="line", width=1)
    if sink:
        c.rect(x + (n + 0.7) * size, y, size, n * size, "b", round=0, width=1)


def attention(with_sink, without):
    """The same head of the same layer, twice: rows are queries, columns keys."""
    h = widest(with_sink)
    taken = [row[-1] for row in with_sink[h]]
    c = Canvas(340, f"Two heat maps of the attention of one head, 24 tokens of a run. With a sink the rows keep from "
               f"{percent(1 - max(taken), 0, '')} to {percent(1 - min(taken), 0, '')} per cent for the keys and the sink's column holds "
               f"the rest; without it the same scores are spread over the keys, and every row sums to one.")
    for x, rows, sink, title in ((10, with_sink[h], True, "with the sink"), (300, without[h], False, "without")):
        c.text(x, 24, title, weight="bold")
        cells(c, x, 40, 8.75, rows, sink)
    c.text(226, 24, "_b_", "b", "middle")
    c.text(10, 276, "a row for each query, a column for each key; the more weight,", kind="small")
    c.text(10, 294, "the more colour (by its root, so that small weights show)", kind="small")
    c.text(10, 322, f"the sink takes {min(taken):.3f} to {max(taken):.3f} of a row", "b", kind="small")
    return c


def head(weights):
    """The shapes of one head: five queries of the run above."""
    h, n, size = widest(weights), 5, 26
    rows = [row[:n] + [row[-1]] for row in weights[h][:n]]
    c = Canvas(252, "The matrices of one head. The scores of five queries, a triangle, get one more column that holds the sink's "
               "logit in every row. After the softmax of each row that column is dropped; what is left, whose rows sum to "
               "less than one, is multiplied with the values.")
    y = 60
    for x, title, filled in ((10, "scores", False), (196, "weights", True)):
        c.text(x, 26, title, weight="bold")
        for i in range(n):
            for j in range(i + 1):
                c.rect(x + j * size, y + i * size, size, size, "line", "a" if filled else None,
                       math.sqrt(rows[i][j]) if filled else None, 0)
            c.rect(x + n * size, y + i * size, size, size, "b", "b" if filled else None,
                   math.sqrt(rows[i][n]) if filled else None, 0)
            if not filled:
                c.text(x + (n + 0.5) * size, y + (i + 0.7) * size, "_b_", "b", "middle")
    c.arrow((172, y + 65), (191, y + 65))
    c.line((326, y - 6), (352, y + 5 * size + 6), colour="bad", width=2)
    c.line((352, y - 6), (326, y + 5 * size + 6), colour="bad", width=2)
    c.text(372, y + 70, "·", anchor="middle", weight="bold")
    for x, title in ((388, "values"), (464, "out")):
        c.text(x, 26, title, weight="bold")
        for i in range(n):
            c.rect(x, y + i * size, 46, size, "line", "c" if x < 400 else "d", 0.16, 0)
    c.text(450, y + 70, "=", anchor="middle")
    c.text(10, 214, "softmax of each row, the sink's logit _b_ among the scores;", kind="small")
    c.text(10, 236, "then its column is dropped: no value belongs to it", "b", kind="small")
    return c


def layers(data):
    """Which weights are zero, layer by layer, and what each layer's row keeps for the keys."""
    c = Canvas(188, "Who sees whom in the four layers of a run of 24 tokens: layers 0 and 2 see the last eight keys, a band; layers "
               "1 and 3 see every key before them, a triangle.")
    for l in range(4):
        x, rows = 10 + 128 * l, tensor(data, f"{l:02d}.A9")[0]
        c.text(x, 24, f"layer {l}", weight="bold")
        for i, row in enumerate(rows):
            seen = [j for j in range(24) if row[j] > 0]
            c.rect(x + seen[0] * 4.6, 38 + i * 4.6, (seen[-1] - seen[0] + 1) * 4.6, 4.6, None, "ac"[l % 2], 0.75, 0)
        c.rect(x, 38, 110.4, 110.4, "line", round=0)
        c.line((x, 38), (x + 110.4, 148.4), colour="line", width=1)
        c.text(x, 172, "window of 8" if l % 2 == 0 else "all before", "ac"[l % 2], kind="small")
    return c


# ---- router and activation ---------------------------------------------------------------------------

def router(data):
    logits, chosen = tensor(data, "00.M2")[0], tensor(data, "00.M3")[0]
    weights = tensor(data, "00.M4")[0]
    order = sorted(range(len(logits)), key=lambda e: -logits[e])
    low, high = min(logits), max(logits)
    c = Canvas(330, f"The router's logits of one token over 32 experts, from the largest to the smallest. The first four are chosen; "
               f"the fourth is {logits[order[3]] - logits[order[4]]:.3f} above the fifth. A softmax over the four alone gives "
               f"their weights, {', '.join(f'{w:.3f}' for w in weights)}.")
    y0, step = 250, (WIDTH - 20) / len(order)
    scale = 200 / (high - low)
    for k, e in enumerate(order):
        tall = (logits[e] - low) * scale + 6
        taken = e in chosen
        c.rect(10 + k * step + 1.5, y0 - tall, step - 3, tall, None, "a" if taken else "line", 0.9, 1)
    cut = 10 + 4 * step
    c.line((cut, 60), (cut, y0 + 6), colour="bad", width=1.6, dash="4 3")
    c.text(250, 56, "four are chosen", "a")
    c.text(250, 80, f"margin to the fifth: {logits[order[3]] - logits[order[4]]:.3f}", "bad")
    c.text(10, 24, "logits of 32 experts, in order", weight="bold")
    c.text(10, 278, "weights: " + " · ".join(f"{w:.3f}" for w in weights), "a")
    c.text(10, 302, f"they sum to {sum(weights):.3f}: a softmax over the four, no sink", "faint", kind="small")
    return c


def activation(data):
    """Every pair (gate, z / (up + 1)) of a run: the curve g sigmoid(1.702 g), cut at 7."""
    up, out = tensor(data, "00.M6"), tensor(data, "00.M8")
    points = []
    for n, token in enumerate(up):
        for k, slot in enumerate(token):
            for f, z in enumerate(out[n][k]):
                gate, lift = slot[2 * f], max(-7, min(7, slot[2 * f + 1])) + 1
                if abs(lift) > 0.5:
                    points.append((gate, z / lift))
    left, right = -12, 12
    c = Canvas(330, "The activation in a run: for every gate value, the output divided by up plus one, where that is above one half in "
               "size. The points lie on one curve, near zero for negative gates, a small dip below it, then nearly the gate itself, and flat from 7 on, where "
               "the gate is clamped.")
    def at(g, z):
        return 30 + (g - left) * (WIDTH - 50) / (right - left), 262 - z * 28
    for g in range(-10, 11, 5):
        x, y = at(g, 0)
        c.line((x, 20), (x, 286), colour="line", width=0.7)
        c.text(x, 306, str(g), "faint", "middle", "small")
    for z in (0, 3.5, 7):
        x, y = at(left, z)
        c.line((x, y), (WIDTH - 20, y), colour="line", width=0.7)
        c.text(x - 6, y + 5, f"{z:g}", "faint", "end", "small")
    drawn = set()
    for g, z in points:
        if left <= g <= right:
            x, y = (round(v, 0) for v in at(g, z))
            if (x, y) not in drawn:
                drawn.add((x, y))
                c.dot(x, y, 1.6, "a")
    c.text(40, 40, "z / (u + 1)", "a")
    c.text(at(7, 0)[0], 326, "gate", anchor="middle")
    c.text(at(7, 7)[0] - 4, at(0, 7)[1] - 8, "clamped at 7", "faint", "end", "small")
    return c


# ---- verdicts ----------------------------------------------------------------------------------------

@functools.cache
def judged(program, root, policy=None, trace="bf16"):
    arguments = ["judge", VECTORS, f"{VECTORS}/trace-{trace}.safetensors", "--json", "-"]
    report = json.loads(run(program, root, *arguments, *(["--policy", policy] if policy else []), exits=(0, 1, 4)))
    return report["results"][0], report["results"][1:]


def verdict(summary, results):
    points = []
    for r in results:
        name = r["id"][3:] if r["id"][:2].isdigit() else r["id"]
        if name not in points and name not in ("T0", "F1", "F2"):
            points.append(name)
    found = {r["id"]: r for r in results}
    outside = sum(r["outside"] for r in results)
    elements = sum(r["elements"] for r in results)
    bad = sorted({r["id"][3:] for r in results if r["outside"]})
    c = Canvas(len(points) * 22 + 158, f"A verdict: {len(found)} tensors of an engine, a row for each point and a column for each "
               f"layer. All are inside their honest sets but {', '.join(bad)}, in every layer: {outside:,} of {elements:,} elements "
               f"are outside. One change of the policy explains them all: {summary['explained_by']}.")
    for l in range(4):
        c.text(140 + 92 * l + 42, 24, f"layer {l}", anchor="middle")
    for k, point in enumerate(points):
        y = 36 + 22 * k
        c.text(10, y + 15, point, kind="code")
        for l in range(4):
            r = found[f"{l:02d}.{point}"]
            colour = "bad" if r["outside"] else "c"
            c.rect(140 + 92 * l, y, 84, 19, "bad" if r["outside"] else None, colour, 0.18, 2, 2)
            c.text(140 + 92 * l + 42, y + 15, f"{r['outside']:,} out" if r["outside"] else "✓", colour, "middle", "small",
                   "bold" if r["outside"] else None)
    y = 36 + 22 * len(points) + 30
    c.line((10, y - 22), (WIDTH - 12, y - 22), colour="line", width=1)
    c.text(10, y, f"a bug: {', '.join(bad)}, first at layer {int(summary['first_divergence'][:2])}", "bad", weight="bold")
    c.text(10, y + 26, "one change explains all of it:")
    c.text(10, y + 48, f"{summary['policy']},{summary['explained_by']}", "a", kind="code")
    c.text(10, y + 76, f"{elements:,} elements judged, {outside:,} outside, no tolerance", "faint", kind="small")
    return c


def hexadecimal(text):
    return float.fromhex(text)


def honest(bf16, f32):
    """The sets around two elements: one of bfloat16, convicted; one of float32, inside."""
    worst = next(r for r in bf16[1] if r["id"] == bf16[0]["first_divergence"])
    inside = max((r for r in f32[1] if r["id"].endswith(".M6")), key=lambda r: r["worst"])
    c = Canvas(330, f"Two honest sets. Above, an element of {worst['id']} in bfloat16: the set is one number, and the engine's value is "
               f"{worst['excess_ulp']:.0f} steps away from it, a bug. Below, an element of {inside['id']} in float32: the set is an "
               f"interval, and the engine's value is inside.")
    lo, value = hexadecimal(worst["honest_lo"]), hexadecimal(worst["engine"])
    ulp = abs(value - lo) / worst["excess_ulp"]
    c.text(10, 24, f"{worst['id']}, bfloat16", weight="bold")
    def at(v):
        return 60 + (v - min(lo, value)) / abs(value - lo) * 400
    for k in range(-1, int(worst["excess_ulp"]) + 2):
        x = at(min(lo, value) + k * ulp)
        c.line((x, 84), (x, 96), colour="faint", width=1)
    c.line((20, 90), (WIDTH - 20, 90), colour="faint", width=1)
    c.rect(at(lo) - 5, 76, 10, 28, "c", "c", 0.5, 2)
    c.dot(at(value), 90, 6, "bad")
    c.text(at(lo), 66, "honest: one number", "c", "start" if at(lo) < 260 else "end", "small")
    c.text(at(value), 124, f"engine: {worst['excess_ulp']:.0f} steps outside", "bad", "start" if at(value) < 260 else "end", "small")
    c.text(10, 124 if at(value) > 260 else 66, "ticks: bfloat16 numbers", "faint", kind="small")
    lo, hi, value, middle = (hexadecimal(inside[k]) for k in ("honest_lo", "honest_hi", "engine", "emulation"))
    def on(v):
        return 60 + (v - lo) / (hi - lo) * 400
    c.text(10, 182, f"{inside['id']}, float32", weight="bold")
    c.line((20, 240), (WIDTH - 20, 240), colour="faint", width=1)
    c.rect(on(lo), 226, on(hi) - on(lo), 28, "c", "c", 0.18, 2)
    c.line((on(middle), 222), (on(middle), 258), colour="ink", width=1.6)
    c.dot(on(value), 240, 6, "a")
    c.text(on(middle), 214, "emulation", anchor="middle", kind="small")
    c.text(10, 280, f"engine: inside, {percent(inside['worst'], 0)} of the way from the emulation to an end", "a", kind="small")
    c.text(10, 308, f"ends {inside['honest_lo']} and {inside['honest_hi']}", "faint", kind="small")
    return c


def depth(results):
    """How far each tensor is from the truth, and what its own operation added: an honest run."""
    traced = [r for r in results if r["error"] > 0]
    c = Canvas(360, "Error along depth, of an honest run in bfloat16: the distance of each tensor from the truth grows from layer to "
               "layer, while what each operation adds of its own stays where it is.")
    low = math.floor(math.log10(min(max(r["local"], 1e-9) for r in traced if r["local"] > 0)))
    high = math.ceil(math.log10(max(r["error"] for r in traced)))
    def at(k, v):
        return 62 + k * (WIDTH - 80) / (len(traced) - 1), 300 - (math.log10(v) - low) / (high - low) * 250
    for power in range(low, high + 1):
        x, y = at(0, 10.0 ** power)
        c.line((x, y), (WIDTH - 18, y), colour="line", width=0.7)
        c.text(x - 8, y + 5, f"10{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}", "faint", "end", "small")
    for l in range(4):
        first = next(k for k, r in enumerate(traced) if r["id"].startswith(f"{l:02d}."))
        x, _ = at(first, 1)
        c.line((x, 50), (x, 306), colour="line", width=0.7, dash="3 3")
        c.text(x + 2, 324, f"layer {l}", "faint", kind="small")
    c.line(*(at(k, r["error"]) for k, r in enumerate(traced)), colour="b", width=2)
    for k, r in enumerate(traced):
        if r["local"] > 0:
            c.dot(*at(k, r["local"]), 3.2, "a")
    c.line((62, 20), (90, 20), colour="b", width=2)
    c.text(98, 25, "from the truth, with what was inherited", "b", kind="small")
    c.dot(76, 40, 3.2, "a")
    c.text(98, 45, "arose in this operation", "a", kind="small")
    c.text(62, 350, "operations, in their order; distance relative in the 2-norm", "faint", kind="small")
    return c


def budget(program, root):
    """Each rounding of a policy alone at the model's end, the largest of them, and all together."""
    said = run(program, root, "audit", "synthetic:tiny", "--policy", "openai-bf16", "--tokens", "random:24", "--json", "-")
    result = json.loads(said)["results"][1]
    parts = [p for p in result["budget"]["parts"] if p["error"] > 1e-4][:12]
    c = Canvas(60 + 24 * (len(parts) + 2), "Error budget: " + ", ".join(f"{p['point']} {p['error']:.2g}" for p in parts)
               + f"; in quadrature {result['budget']['quadrature']:.3g}, all together {result['final']:.3g}.")
    wide = (WIDTH - 190) / result["final"]
    c.text(10, 24, "each rounding of openai-bf16 alone", weight="bold")
    for k, part in enumerate(parts):
        c.text(10, 54 + 24 * k, part["point"], kind="code")
        c.rect(110, 41 + 24 * k, wide * part["error"], 15, None, "a", round=2)
        c.text(118 + wide * part["error"], 54 + 24 * k, f"{part['error']:.2g}", "faint", kind="small")
    for k, (name, error) in enumerate((("quadrature", result["budget"]["quadrature"]), ("together", result["final"]))):
        y = 54 + 24 * (len(parts) + k)
        c.text(10, y, name, "b", kind="small")
        c.rect(110, y - 13, wide * error, 15, None, "b", round=2)
        c.text(118 + wide * error, y, f"{error:.3g}", "b", kind="small")
    return c


def next_token(program, root):
    """What rounding takes of a margin, in units of binary64's last bit, by the layers of the model."""
    depths, ways = (1, 2, 3, 4, 6, 8), {}
    for layers in depths:
        said = run(program, root, "next", f"synthetic:tiny,layers={layers}", "--policy", "real-f64", "--tokens", "random:4",
                   "--draws", "4", "--json", "-")
        at = json.loads(said)["results"][0]["positions"]
        for way, taken in (("sets", [p["margin"] - p["kept"] for p in at if p["kept"] is not None]),
                           ("at most", [p["first_order"] for p in at]), ("likely", [p["likely"] for p in at]),
                           ("engines", [p["margin"] - p["least"] for p in at])):
            if len(taken) == len(at):
                taken = math.log2(max(taken)) + 53
                # An estimate's further digits depend on the order in which OpenBLAS adds up.
                ways.setdefault(way, []).append((layers, round(2 * taken) / 2 if way in ("at most", "likely") else taken))
    shown = (("sets", "b", "by the honest sets, certified"), ("at most", "a", "to first order, at most"),
             ("likely", "d", "to first order, likely"), ("engines", "c", "by the engines that ran"))
    c = Canvas(390, "What rounding in binary64 takes of the next token's margin, the most of four positions, in bits above the last one: "
               + "; ".join(f"{words} {ways[way][0][1]:.0f} with {ways[way][0][0]} layer and {ways[way][-1][1]:.0f} with {ways[way][-1][0]}"
                           for way, _, words in shown) + ".")
    def at(layers, bits):
        return 62 + (layers - 1) * (WIDTH - 80) / (depths[-1] - 1), 300 - bits * 3.5
    for bits in range(0, 81, 20):
        c.line((62, 300 - bits * 3.5), (WIDTH - 18, 300 - bits * 3.5), colour="line", width=0.7)
        c.text(54, 305 - bits * 3.5, f"{bits}", "faint", "end", "small")
    for layers in range(1, depths[-1] + 1):
        c.text(at(layers, 0)[0], 322, f"{layers}", "faint", "middle", "small")
    for k, (way, colour, words) in enumerate(shown):
        points = [at(*point) for point in ways[way]]
        c.line(*points, colour=colour, width=2)
        for point in points:
            c.dot(*point, 3.2, colour)
        c.line((244, 34 + 24 * k), (272, 34 + 24 * k), colour=colour, width=2)
        c.text(280, 39 + 24 * k, words, colour, kind="small")
    c.text(62, 346, "layers; log₂ of units of 2⁻⁵³, first order to ½", "faint", kind="small")
    c.text(62, 370, f"the sets have no bound from {ways['sets'][-1][0] + 1} layers on", "b", kind="small")
    return c


def bits(program, root):
    """The largest radius of each point of the truth, by layers: radii grow, so the last layer has the largest of a run."""
    order, radii = ("A1", "A2.q", "A4.q", "A6", "A9", "A11", "A12", "A13", "M1", "M5", "M6", "M8", "M10", "M11", "M12"), []
    for layer in range(4):
        said = run(program, root, "truth", f"synthetic:tiny,layers={layer + 1}", "--tokens", "random:8", "--bits", 256, "--json", "-")
        largest = {r["point"]: r["radius_log2"] for r in json.loads(said)["results"] if "radius_log2" in r}
        radii += [(layer, point, largest[point]) for point in order]
    ends = [r for _, point, r in radii if point == "M12"]
    c = Canvas(360, "The largest radius of the truth, by operation through four layers of the tiny model at 256 bits, as a power of two: "
               + ", ".join(f"{r:.0f} after layer {l}" for l, r in enumerate(ends)) + ".")
    low, high = 20 * math.floor(min(r for *_, r in radii) / 20), 20 * math.ceil(max(ends) / 20)
    def at(k, r):
        return 62 + k * (WIDTH - 80) / (len(radii) - 1), 290 - (r - low) / (high - low) * 250
    for power in range(low, high + 1, 20):
        c.line((62, at(0, power)[1]), (WIDTH - 18, at(0, power)[1]), colour="line", width=0.7)
        c.text(54, at(0, power)[1] + 5, f"{power}".replace("-", "−"), "faint", "end", "small")
    for layer in range(4):
        x = at(layer * len(order), low)[0]
        c.line((x, 40), (x, 296), colour="line", width=0.7, dash="3 3")
        c.text(x + 2, 314, f"layer {layer}", "faint", kind="small")
    c.line(*(at(k, r) for k, (*_, r) in enumerate(radii)), colour="b", width=2)
    kinds = ((72, "A1 M1", "a", "norms"), (152, "A6 A9", "d", "scores, softmax"), (290, "M8", "c", "activation"),
             (396, "M12", "ink", "layer's end"))
    for _, points, colour, _ in kinds:
        for k, (_, point, r) in enumerate(radii):
            if point in points.split():
                c.dot(*at(k, r), 3.6, colour)
    for x, _, colour, words in kinds:
        c.dot(x, 20, 3.6, colour)
        c.text(x + 8, 25, words, colour, kind="small")
    c.text(62, 342, "operations, in their order; largest radius, binary logarithm", "faint", kind="small")
    return c


def split(root):
    """What the program errata-split of chapter 17 printed, which the gate holds against the run."""
    text = (root / "doc/17-errata.md").read_text(encoding="utf-8")
    rows = re.findall(r"^ *(\d+) parts: mass of the keys ([\d.]+), of the row ([\d.]+)$", text, re.M)
    c = Canvas(56 + 40 * len(rows), "The mass of the keys when the sink is counted once per part: "
               + ", ".join(f"{float(mass):.2f} with {parts}" for parts, mass, _ in rows) + f". Right is {float(rows[0][2]):.2f}, for any number.")
    right = 110 + float(rows[0][2]) * 380
    for k, (parts, mass, _) in enumerate(rows):
        y = 14 + 40 * k
        c.text(96, y + 20, f"{parts} part{'s' if parts != '1' else ''}", anchor="end")
        c.rect(110, y, float(mass) * 380, 28, None, "c" if k == 0 else "bad", 0.6, 2)
        c.text(118 if float(mass) > 0.25 else 118 + float(mass) * 380, y + 20, mass)
    c.line((right, 4), (right, 20 + 40 * len(rows)), width=1.6, dash="4 3")
    c.text(right, 42 + 40 * len(rows), "the mass of the row", anchor="middle", kind="small")
    return c


def one_word(scratch):
    """gpt-oss-20b's first layer with a vocabulary of token 0 alone: 201,088 logits take three seconds, none is drawn."""
    path = scratch / "one-word.json"
    path.write_text(json.dumps({
        "model_type": "gpt_oss", "attention_bias": True, "hidden_act": "silu", "tie_word_embeddings": False,
        "vocab_size": 1, "num_hidden_layers": 1, "num_local_experts": 32, "num_experts_per_tok": 4, "hidden_size": 2880,
        "intermediate_size": 2880, "head_dim": 64, "num_attention_heads": 64, "num_key_value_heads": 8,
        "sliding_window": 128, "max_position_embeddings": 131072, "layer_types": ["sliding_attention"],
        "rms_norm_eps": 1e-5, "swiglu_alpha": 1.702, "swiglu_limit": 7.0, "rope_theta": 150000.0,
        "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                         "original_max_position_embeddings": 4096, "truncate": False}}), encoding="utf-8")
    return f"synthetic:{path}"


def pictures(program, root, scratch):
    tiny = traced(program, root, scratch, "synthetic:tiny", *TINY)
    bare = traced(program, root, scratch, without_sinks(program, root, scratch, 1), *TINY)
    large = traced(program, root, scratch, one_word(scratch), "--tokens", "0", "--policy", "f32",
                   "--points", "M2,M3,M4")
    bug, fair = judged(program, root), judged(program, root, "openai-bf16,M8.alpha=bf16")
    weights = tensor(tiny, "01.A9")
    return {"attention": attention(weights, tensor(bare, "01.A9")), "head": head(weights), "layers": layers(tiny),
            "router": router(large), "activation": activation(tiny), "verdict": verdict(*bug),
            "honest": honest(bug, judged(program, root, "f32", "f32")), "depth": depth(fair[1]),
            "budget": budget(program, root), "split": split(root), "next": next_token(program, root),
            "bits": bits(program, root)}
