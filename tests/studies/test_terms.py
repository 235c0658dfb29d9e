# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof sinks MODEL --decompose`: its numbers beside their definitions, computed here by loops from the same
drawn points and from traces of runs, to the last bit; the sum of the terms beside the scores, within the bound of
their roundings; what a trace lacks; what is refused; text, page and JSON alike. 6 CPU seconds.
"""
import json
import math
import pathlib
import random
import struct
import sys

from test_census import CONFIG, D, G, H, L, TINY, differences, drawn, mean, read_bf16, rows, seen, total, write_trace
import checkpoints
from checkpoints import read_f64, report, sinkproof
from tap import largest as worst_of

TERMS = ["content", "query", "key", "constant"]
NUMBERS = ("level", "spread", "lead", "sink", "first", "variation")
U = 2.0 ** -53
ROOT = pathlib.Path(__file__).resolve().parents[2]


def decomposed(*words):
    status, said, wrong = sinkproof("sinks", *words, "--decompose", "--json", "-")
    return [r for r in json.loads(said)["results"] if "decomposed" in r] if status == 0 else (status, wrong)


# ---- the definitions --------------------------------------------------------------------------------------------

def frequencies(c, d):
    """YaRN's, of a head of d coordinates."""
    y, theta = c["rope_scaling"], c["rope_theta"]

    def pair(rotations):
        return d * math.log(y["original_max_position_embeddings"] / (rotations * 6.283185307179586)) / (2 * math.log(theta))
    low, high = max(pair(y["beta_fast"]), 0), min(pair(y["beta_slow"]), d - 1)
    out = []
    for e in range(d // 2):
        period = math.pow(theta, 2 * e / d)
        keep = 1 - min(max((e - low) / (high - low), 0), 1)
        out.append(1 / (y["factor"] * period) * (1 - keep) + 1 / period * keep)
    return out, 0.1 * math.log(y["factor"]) + 1


def tables(c, d, n):
    """[(cosines, sines)] of the positions 0 to n - 1."""
    freq, grown = frequencies(c, d)
    return [([math.cos(t * f) * grown for f in freq], [math.sin(t * f) * grown for f in freq]) for t in range(n)]


def turned(x, table):
    if table is None:
        return x
    half, (c, s) = len(x) // 2, table
    return [x[e] * c[e] - x[e + half] * s[e] for e in range(half)] + [x[e + half] * c[e] + x[e] * s[e] for e in range(half)]


def dot(x, y):
    return total(a * b for a, b in zip(x, y))


def softmax(s, b):
    top = max(*s, b)
    e = [math.exp(x - top) for x in s]
    own = math.exp(b - top)
    z = own
    for x in e:
        z += x
    return [x / z for x in e] + [own / z]


def spread(u):
    if len(u) < 2:
        return None
    off = total(x - u[0] for x in u) / len(u)
    return math.sqrt(total((x - u[0] - off) ** 2 for x in u) / len(u))


def changed(alpha, without, m):
    return {"sink": without[-1] - alpha[-1], "first": without[0] - alpha[0],
            "variation": total(abs(x - y) for x, y in zip(without, alpha)) / 2}[m]


def some(numbers):
    return mean(numbers) if numbers else None


def terms_of(q, k, b_q, b_k, table, visible):
    """[row][term][key]: the four terms of the keys that each row sees."""
    scale, out = 1.0 / math.sqrt(len(b_q)), []
    a, c = ([turned([x - y for x, y in zip(row, b)], table and table[i]) for i, row in enumerate(side)] for side, b in ((q, b_q), (k, b_k)))
    for i, row in enumerate(a):
        beta = turned(b_q, table and table[i])
        kappa = [turned(b_k, table and table[j]) for j in visible(i)]
        out.append([[dot(x, y) * scale for y in ys] for x, ys in (
            (row, [c[j] for j in visible(i)]), (row, kappa), (beta, [c[j] for j in visible(i)]), (beta, kappa))])
    return out


def head_terms(given, layer, h, biases, table, visible):
    """terms_of head h of a layer, and its part of the biases."""
    at = f"{layer:02}."
    (_, heads, d), groups = given[at + "A2.q"][0], given[at + "A2.k"][0][1]
    g = h // (heads // groups)
    b_q, b_k = biases[0][h * d:(h + 1) * d], biases[1][g * d:(g + 1) * d]
    q, k = ([row[x] for row in rows(*given[at + p])] for p, x in (("A2.q", h), ("A2.k", g)))
    return terms_of(q, k, b_q, b_k, table, visible), (q, b_q), (k, b_k)


def sums(u, without=None):
    return [total(u[m][j] for m in range(4) if m != without) for j in range(len(u[0]))]


def want_head(u, b, visible):
    n = len(u)
    alpha = [softmax(sums(row), b[i]) for i, row in enumerate(u)]
    first = [i for i in range(n) if visible(i)[0] == 0]
    out = []
    for m, name in enumerate(TERMS):
        less = [softmax(sums(row, m), b[i]) for i, row in enumerate(u)]
        out.append({"term": name, "level": mean([total(row[m]) / len(row[m]) for row in u]),
                    "spread": some([spread(row[m]) for row in u if len(row[m]) > 1]),
                    "lead": some([total(u[i][m][0] - x for x in u[i][m][1:]) / (len(u[i][m]) - 1) for i in first if i > 0]),
                    "sink": mean([changed(alpha[i], less[i], "sink") for i in range(n)]),
                    "first": some([changed(alpha[i], less[i], "first") for i in first]),
                    "variation": mean([changed(alpha[i], less[i], "variation") for i in range(n)])})
    logit = mean(b)
    return {"logit": logit if math.isfinite(logit) else None, "terms": out}


def largest(pairs):
    """(largest |sum - score|, largest |score|)."""
    return max(abs(x - y) for x, y in pairs), max(abs(y) for _, y in pairs)


def want_layer(layer, given, n, biases, sink, table, visible, scores):
    """A layer as the JSON has it; sink(h, q) is the logit of a row with the rotated query q; scores: of which point."""
    at = f"{layer:02}."
    (_, heads, d), groups = given[at + "A2.q"][0], given[at + "A2.k"][0][1]
    out, pairs = [], []
    for h in range(heads):
        g = h // (heads // groups)
        u, (mine, b_q), _ = head_terms(given, layer, h, biases, table, visible)
        whole = [[x + y for x, y in zip(turned([p - r for p, r in zip(row, b_q)], table and table[i]), turned(b_q, table and table[i]))]
                 for i, row in enumerate(mine)]
        out.append(want_head(u, [sink(h, row) for row in whole], visible))
        for i in range(n):
            for j, s in zip(visible(i), sums(u[i])):
                if scores == "A6":
                    pairs.append((s, given[at + "A6"][1][(h * n + i) * n + j]))
                elif scores != "unknown":
                    pairs.append((s, dot(rows(*given[at + scores + ".q"])[i][h], rows(*given[at + scores + ".k"])[j][g]) * (1.0 / math.sqrt(d))))
    apart, most = largest(pairs) if pairs else (None, None)
    return {"layer": layer, "scores": scores, "apart": apart, "largest": most, "heads": out}


# ---- models and traces ------------------------------------------------------------------------------------------

def gpt_oss(work, kind=None):
    """(path, biases of each layer, sinks of each layer) of a small checkpoint, its sinks of another kind or not."""
    config = CONFIG | ({"attention_sink": kind} if kind else {})
    tensors = checkpoints.weights(config, 3)
    for layer in range(L):
        name = f"model.layers.{layer}.self_attn.sinks"
        if kind == "key":
            draw = random.Random(layer)
            data = struct.pack(f"<{H * D}f", *drawn(draw, H * D))
            tensors[name] = "BF16", [H, D], b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))
        elif kind in ("none", "off-by-one"):
            del tensors[name]

    def read(layer, name):
        found = tensors.get(f"model.layers.{layer}.self_attn.{name}")
        return read_bf16(found)[0] if found else None
    return (checkpoints.write(work / f"model-{kind}", tensors, config), [[read(layer, f"{p}_proj.bias") for p in "qk"] for layer in range(L)],
            [read(layer, "sinks") for layer in range(L)])


def sink_of(kind, numbers):
    if kind == "key":
        return lambda h, q: dot(q, numbers[h * D:(h + 1) * D]) * (1.0 / math.sqrt(D))
    return lambda h, q: -math.inf if kind == "none" else 0.0 if kind == "off-by-one" else numbers[h]


def points(seed, n):
    draw = random.Random(seed)
    out = {}
    for layer in range(L):
        for name, shape in (("A2.q", [n, H, D]), ("A2.k", [n, G, D]), ("A4.q", [n, H, D]), ("A4.k", [n, G, D]), ("A6", [H, n, n])):
            out[f"{layer:02}.{name}"] = (shape, drawn(draw, math.prod(shape)))
    return out


def found(said, want):
    return [d for got, layer in zip(said["layers"], want) for d in differences(got, layer, f"/layer {layer['layer']}")] + (
        [] if len(said["layers"]) == len(want) else ["layers"])


# ---- the parts --------------------------------------------------------------------------------------------------

IDS = "terms.split terms.spread terms.lead terms.removed"


def definitions(work):
    """Drawn queries, keys and scores; windows; each kind of sink."""
    wrong, heads = [], 0
    for kind, n in ((None, 12), (None, 17), ("none", 7), ("off-by-one", 6), ("key", 9), (None, 1)):
        model, biases, sinks = gpt_oss(work, kind)
        given = points(n, n)
        [said] = decomposed(model, write_trace(work / "trace", given, n))
        want = [want_layer(layer, given, n, biases[layer], sink_of(kind, sinks[layer]), tables(CONFIG, D, n),
                           lambda i, layer=layer: seen(layer, i), "A6") for layer in range(L)]
        wrong += [f"{kind} {n} {w}" for w in found(said, want)]
        wrong += [] if [x["window"] for x in said["layers"]] == [4, None] and said["rotated"] and said["tokens"] == n else ["windows"]
        heads += L * H
    report(not wrong, f"{IDS} as defined, to the last bit: heads={heads}, of four kinds of sinks", wrong)


def of_a_run(work):
    """A run is its trace; the terms' sum is the score, within the roundings of both."""
    model, biases, sinks = gpt_oss(work)
    n, path = 14, str(work / "trace")
    words = ["--tokens", ",".join(str(3 * i % 17) for i in range(n))]
    sinkproof("run", model, *words, "--trace", path)
    given, table = read_f64(path), tables(CONFIG, D, n)
    [run], [trace] = decomposed(model, *words), decomposed(model, path)
    want = [want_layer(layer, given, n, biases[layer], sink_of(None, sinks[layer]), table, lambda i, layer=layer: seen(layer, i), "A6")
            for layer in range(L)]
    report(run["layers"] == trace["layers"] and not found(run, want), f"{IDS} of a run as of its trace, to the last bit", found(run, want))
    worst = 0.0
    for layer in range(L):
        bound = 0.0
        for h in range(H):
            u, *sides = head_terms(given, layer, h, biases[layer], table, lambda i: range(i + 1))
            sizes = [[turned_sizes(x, b, table[i]) for i, x in enumerate(side)] for side, b in sides]
            for i in range(n):
                for j, s in enumerate(sums(u[i])):
                    rounds = (2 * D + 17) * U
                    own = rounds / (1 - rounds) * dot(sizes[0][i], sizes[1][j]) / math.sqrt(D)
                    worst = worst_of(worst, abs(s - given[f"{layer:02}.A6"][1][(h * n + i) * n + j]) / own)
                    bound = max(bound, own)
        worst = max(worst, run["layers"][layer]["apart"] / bound)
    report(0 < worst <= 1, f"terms.split the sum of the terms is the score of a run that rounds nothing: worst={worst:.3g} bound=1")


def turned_sizes(x, b, table):
    """|R| (|x| + |b| + |b|), by coordinate."""
    half, c, s = len(x) // 2, [abs(v) for v in table[0]], [abs(v) for v in table[1]]
    y = [abs(v) + 2 * abs(w) for v, w in zip(x, b)]
    return [y[e] * c[e] + y[e + half] * s[e] for e in range(half)] + [y[e + half] * c[e] + y[e] * s[e] for e in range(half)]


def engines(work):
    """fast as lanes, for any number of threads; what an engine rounds is seen; biases are those that it keeps."""
    words = [TINY, "--tokens", "random:20"]
    [ref], [fast], [lanes] = (decomposed(*words, "--engine", e) for e in ("ref", "fast", "lanes"))
    [one] = decomposed(*words, "--engine", "fast", "--threads", "1")
    [bf16], [named] = decomposed(*words, "--policy", "openai-bf16"), decomposed(*words, "--policy", "f32")
    apart = [max(x["apart"] for x in r["layers"]) for r in (ref, fast, bf16)]
    report(fast == lanes == one and apart[0] < 1e-13 < apart[1] < 1e-4 < apart[2] and named != ref,
           f"terms.split of fast as of lanes; beside the scores of ref, fast and bfloat16 {apart[0]:.2g}, {apart[1]:.2g} and {apart[2]:.2g}")
    moved = [[t["variation"] for x in r["layers"] for h in x["heads"] for t in h["terms"]] for r in (ref, fast)]
    report(max(abs(x - y) for x, y in zip(*moved)) < max(moved[0]) * 2 ** -10, "terms.removed the engines tell the same")


def gpt2(work):
    """Without rotation two terms are constant in the key: they spread by 0, exactly; without a sink they move nothing."""
    model, path, n, worst, sizes = str(work / "model"), str(work / "trace"), 9, 0.0, 0.0
    sinkproof("synth", "synthetic:tiny-gpt2", "--out", model)
    sinkproof("run", model, "--tokens", f"random:{n}", "--trace", path)
    given = read_f64(path)
    [said], [run] = decomposed(model, path), decomposed(model, "--tokens", f"random:{n}")
    raw = (work / "model" / "model.safetensors").read_bytes()
    size, = struct.unpack("<Q", raw[:8])
    header, wrong, still = json.loads(raw[8:8 + size]), [], True
    for layer in range(len(said["layers"])):
        [name] = [x for x in header if x.endswith(f"h.{layer}.attn.c_attn.bias")]
        a, b = (8 + size + x for x in header[name]["data_offsets"])
        bias = struct.unpack(f"<{(b - a) // 4}f", raw[a:b]) if header[name]["dtype"] == "F32" else read_bf16((None, None, raw[a:b]))[0]
        third = len(bias) // 3
        biases = bias[:third], bias[third:2 * third]
        want = want_layer(layer, given, n, biases, lambda h, q: -math.inf, None, lambda i: range(i + 1), "A6")
        wrong += differences(said["layers"][layer], want, f"/layer {layer}")
        for h, head in enumerate(said["layers"][layer]["heads"]):
            u, _, _ = head_terms(given, layer, h, biases, None, lambda i: range(i + 1))
            sizes = max([sizes, *(total(abs(u[i][m][j]) for m in range(4)) for i in range(n) for j in range(i + 1))])
            constant = [head["terms"][1], head["terms"][3]]
            still = still and all(t["spread"] == 0 == t["lead"] == t["sink"] for t in constant) and head["logit"] is None
            still = still and all(t["sink"] == 0 for t in head["terms"]) and all(head["terms"][m]["spread"] > 0 for m in (0, 2))
            worst = max([worst, *(t["variation"] for t in constant)])
    report(not wrong and not said["rotated"] and run["layers"] == said["layers"], f"{IDS} on GPT-2, to the last bit", wrong)
    # With T the sizes of a score's terms: a score is off by 3 T u, its distance from the row's largest by 2 T u more, an
    # exponential by 2 u more; a weight by twice that and n + 1 roundings. 2: what is of second order.
    bound = 2 * (2 * (3 * sizes + 2 * sizes + 2) + n + 1) * U
    report(still and worst <= bound, f"terms.spread terms.removed what is constant in the key: spread and lead are 0, worst variation={worst / bound:.3g} bound=1")


def unbiased(_):
    """Llama has no biases: the terms that a bias makes are 0, and so are the value biases."""
    [said] = decomposed("synthetic:tiny-llama", "--tokens", "random:9,seed=3")
    sizes = [t["variation"] for x in said["layers"] for h in x["heads"] for t in h["terms"]]
    of_biases = [size for i, size in enumerate(sizes) if i % 4 > 0]
    status, text, _ = sinkproof("sinks", "synthetic:tiny-llama", "--tokens", "random:9,seed=3")
    report(status == 0 and "The value biases are 0 in every layer" in text and min(sizes[0::4]) > 0 and set(of_biases) == {0},
           f"terms.split Llama: of {len(sizes)} terms the {len(of_biases)} of biases are 0", [status, set(of_biases)])


def subsets(work):
    """What the points do not say: layers, scores; what A4 alone says."""
    model, biases, sinks = gpt_oss(work)
    n, given = 11, points(5, 11)
    few = {k: v for k, v in given.items() if k not in ("00.A2.k", "01.A6")}
    [said] = decomposed(model, write_trace(work / "few", few, n))
    want = want_layer(1, given, n, biases[1], sink_of(None, sinks[1]), tables(CONFIG, D, n), lambda i: seen(1, i), "A4")
    none = said["layers"][0]
    wrong = differences(said["layers"][1], want) + ([] if none["heads"] == [] and none["apart"] is None and none["scores"] == "unknown" else [str(none)])
    bare = {k: v for k, v in given.items() if "A2" in k}
    [said] = decomposed(model, write_trace(work / "bare", bare, n))
    want = [want_layer(layer, given, n, biases[layer], sink_of(None, sinks[layer]), tables(CONFIG, D, n),
                       lambda i, layer=layer: seen(layer, i), "unknown") for layer in range(L)]
    wrong += found(said, want)
    _, text, _ = sinkproof("sinks", model, str(work / "few"), "--decompose")
    wrong += [] if "Of 1 of the layers A2.q and A2.k are not both there." in text and "the products of A4.q and A4.k" in text else [text]
    report(not wrong, "terms.split scores from A4 where there are no others; a layer without A2 is not known", wrong)


def shown(work):
    """The text holds the JSON's figures, in 100 columns; the page a grid for each term."""
    words = ["sinks", TINY, "--tokens", "random:21", "--heads", "--decompose"]
    _, text, _ = sinkproof(*words, "--json", str(work / "j"), "--html", str(work / "page"))
    [said] = [r for r in json.loads((work / "j").read_text(encoding="utf-8"))["results"] if "decomposed" in r]
    text = text[text.index("random:21: the terms of q k^T / sqrt(16)"):]
    lines, wrong = [line.split() for line in text.splitlines()], [line for line in text.splitlines() if len(line) > 100]
    products = ["a c", "a b_K", "b_Q c", "b_Q b_K"]

    def row(m, t):
        return [*products[m].split(), *(f"{t[k]:.3g}" for k in ("level", "spread", "lead")), f"{t['sink']:+.3g}", f"{t['first']:+.3g}", f"{t['variation']:.3g}"]
    for layer in said["layers"]:
        for m in range(4):
            each = [h["terms"][m] for h in layer["heads"]]
            over = {k: total(t[k] / len(each) for t in each) for k in NUMBERS}
            most = max(range(len(each)), key=lambda h: each[h]["variation"])
            want = [row(m, over) + [f"{each[most]['variation']:.3g}", "in", str(most)], *(row(m, t) for t in each)]
            wrong += [" ".join(w) for w in want if not any(line[-len(w):] == w for line in lines)]
        wrong += [] if ["the", "sink", f"{total(h['logit'] / len(layer['heads']) for h in layer['heads']):.3g}"] in lines else ["a sink"]
    worst = max(said["layers"], key=lambda x: x["apart"])
    wrong += [] if f"{worst['apart']:.3g} apart,\nin layer {worst['layer']}, where the largest score is {worst['largest']:.4g}." in text else ["apart"]
    page = (work / "page").read_text(encoding="utf-8")
    parts = page[page.index("The four terms of the scores: random:21"):]
    wrong += [] if parts.count("<svg") == 4 == parts.count("Defined by <code>terms.removed</code>") and "Without b_Q b_K^T" in parts else ["page"]
    least = min((h["terms"][0]["variation"], f"{x['layer']}.{i}") for x in said["layers"] for i, h in enumerate(x["heads"]))
    wrong += [] if f"From {least[0]:.4g} in head {least[1]} (layer, head)" in parts else ["least"]
    report(not wrong, f"terms.removed the table says what the JSON says: lines={len(lines)}; the page has a grid for each term", wrong)


def survive(_):
    """The book's table of what each term moves, of the tiny models: a sink brings back what cancels, and so does rotation."""
    book, wrong, seen_rows = (ROOT / "doc" / "31-score-terms.md").read_text(encoding="utf-8"), [], 0
    for name in ("tiny-gpt2", "tiny-gpt2,sink=logit", "tiny,sink=none", "tiny"):
        [said] = decomposed(f"synthetic:{name}", "--tokens", "random:64")
        heads = [h["terms"] for x in said["layers"] for h in x["heads"]]
        moved, wide = ([mean([h[m][k] for h in heads]) for m in range(4)] for k in ("variation", "spread"))
        [line] = [x for x in book.splitlines() if x.startswith(f"| `{name}` |")]
        _, rotates, sink, *cells = [x.strip() for x in line.strip("|").split("|")]
        constant, lone = not said["rotated"], all(h["logit"] is None for x in said["layers"] for h in x["heads"])
        good = (rotates, sink) == ("no" if constant else "yes", "no" if lone else "yes")
        for cell, x in zip(cells, [*moved, wide[1], wide[3]]):
            good = good and (float(cell) < 1e-15 and x < 1e-15 if constant and lone and float(cell) < 1e-3 else abs(x - float(cell)) <= 0.06 * x)
        good = good and (wide[1] == wide[3] == 0) == constant and (min(moved) < 1e-15) == (constant and lone)
        wrong += [] if good else [f"{line}: {moved} {wide}"]
        seen_rows += 1
    report(not wrong, f"terms.removed terms.spread a term that is the same at every key cancels without a sink alone: models={seen_rows}", wrong)


def refused(work):
    model, _, _ = gpt_oss(work)
    n, given, wrong = 12, points(6, 12), []

    def expect(status, sentence, *words):
        got = sinkproof("sinks", *words, "--decompose", "--html", str(work / "page"))
        wrong.extend([] if got[0] == status and sentence in got[2] and got[1] == "" and not (work / "page").exists() else [f"{words}: {got}"])

    def changed_at(point, at, value):
        shape, numbers = given[point]
        return write_trace(work / "bad", given | {point: (shape, [*numbers[:at], value, *numbers[at + 1:]])}, n)
    for value, name in ((math.nan, "nan"), (-math.inf, "-inf")):
        for point, at, index in (("00.A2.q", 33, "1, 0, 1"), ("01.A2.k", 8, "0, 1, 0"), ("01.A6", n * n + 3 * n + 1, "1, 3, 1"),
                                 ("00.A6", 5 * n + 2, "0, 5, 2")):
            expect(3, f"bad: tensor {point}: expected finite numbers, found {name} at ({index})", model, changed_at(point, at, value))
    [good] = decomposed(model, write_trace(work / "good", given, n))
    for at in (3 * n + 5, 9 * n + 2):  # after the query; before the window
        [said] = decomposed(model, changed_at("00.A6", at, math.nan))
        wrong += [] if said["layers"] == good["layers"] else [f"hidden {at}"]
    expect(3, "expected tensors A2.q and A2.k in some layer, found none with both", model,
           write_trace(work / "none", {k: given[k] for k in ("00.A2.q", "01.A2.k", "00.A6")}, n))
    shape, numbers = given["00.A2.k"]
    expect(3, "00.A2.k", model, write_trace(work / "shape", given | {"00.A2.k": ([n, G, D - 1], numbers[:n * G * (D - 1)])}, n))
    raw, draw, ended = (work / "good").read_bytes(), random.Random(8), set()
    for _ in range(60):  # a byte of the header or of a number is another one, or the file is cut
        at = draw.randrange(9, len(raw)) if draw.random() < 0.5 else draw.randrange(9, 1200)
        cut = raw[:at] if draw.random() < 0.2 else raw[:at] + bytes([draw.randrange(256)]) + raw[at + 1:]
        (work / "odd").write_bytes(cut)
        status, text, _ = sinkproof("sinks", model, str(work / "odd"), "--decompose")
        ended.add(status)
        wrong += [] if status in (0, 3) and (text == "") == (status == 3) else [f"byte {at}: {status}"]
    wrong += [] if ended == {0, 3} else [str(ended)]
    huge = write_trace(work / "huge", {k: (s, [1e200 * x for x in v]) for k, (s, v) in given.items()}, n)
    [said] = decomposed(model, huge)
    wrong += [] if all(t["variation"] is None for x in said["layers"] for h in x["heads"] for t in h["terms"][:1]) else ["huge"]
    expect(2, "", "--list")
    report(not wrong, "terms.split what is refused, with a sentence, or read; what the mask hides may be anything; overflow is no number", wrong)


if __name__ == "__main__":
    sys.exit(checkpoints.run(definitions, of_a_run, engines, gpt2, unbiased, subsets, shown, survive, refused))
