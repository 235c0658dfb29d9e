# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof sinks MODEL`: its numbers beside those of the published definitions, computed here from the same
drawn maps and states, to the last bit (by numpy where it is there, else by loops in its order); what a trace
lacks; what is refused; text and JSON alike. 2 CPU seconds.
"""
import array
import json
import math
import os
import random
import statistics
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

CONFIG = checkpoints.STATED | checkpoints.SMALL
L, H, G, D, HIDDEN, WINDOW = 2, 4, 2, 8, 32, 4
TINY = "synthetic:tiny"


def whole_numbers(name, shape, numbers):
    """Value biases and W_O of small whole numbers: their products are exact in every order."""
    return [float(round(3 * x / 2)) for x in numbers] if "v_proj.bias" in name else [
        float(round(8 * x)) for x in numbers] if "o_proj.weight" in name else numbers


def read_bf16(tensor):
    _, shape, data = tensor
    return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)], shape


def write_trace(path, tensors, n):
    """A trace of {name: (shape, numbers)} in F64."""
    out = {"tokens": ("I32", [n], array.array("i", [i % 17 for i in range(n)]).tobytes()),
           "positions": ("I32", [n], array.array("i", range(n)).tobytes())}
    out |= {name: ("F64", shape, array.array("d", numbers).tobytes()) for name, (shape, numbers) in tensors.items()}
    path.write_bytes(checkpoints.safetensors(out, {"format": "sinkproof-trace-1"}))
    return str(path)


def seen(layer, i):
    return range(max(0, i + 1 - WINDOW) if layer % 2 == 0 else 0, i + 1)


def map_of(draw, layer, n):
    """Weights of every head, [H, n, n + 1], the sink's last: rows that sum to about 1."""
    out = []
    for _ in range(H):
        sharp = draw.choice([0.5, 3, 6])
        for i in range(n):
            e = {j: math.exp(sharp * draw.uniform(-1, 1) + (j == 0) * draw.choice([0, 3])) for j in [*seen(layer, i), n]}
            z = sum(e.values())
            out += [e.get(j, 0) / z for j in range(n + 1)]
    return out


def drawn(draw, count, whole=False):
    return [float(draw.randint(-9, 9)) if whole else draw.uniform(-2, 2) for _ in range(count)]


def points(seed, n):
    draw = random.Random(seed)
    out = {"T0": ([n, HIDDEN], drawn(draw, n * HIDDEN))}
    for layer in range(L):
        for name, shape in (("A1", [n, HIDDEN]), ("A2.v", [n, G, D]), ("A4.q", [n, H, D]), ("A4.k", [n, G, D]),
                            ("A11", [n, H, D]), ("A13", [n, HIDDEN]), ("M1", [n, HIDDEN]), ("M12", [n, HIDDEN])):
            out[f"{layer:02}.{name}"] = (shape, drawn(draw, math.prod(shape), name == "A11"))
        out[f"{layer:02}.A9"] = ([H, n, n + 1], map_of(draw, layer, n))
    out["F1"] = ([n, HIDDEN], drawn(draw, n * HIDDEN))
    return out


# ---- the definitions --------------------------------------------------------------------------------------------

def total(numbers):
    out = 0.0
    for x in numbers:
        out += x
    return out


def mean(numbers):
    return total(numbers) / len(numbers)


def norm(x):
    return math.sqrt(total(v * v for v in x))


def rows(shape, numbers):
    """[n, heads, D] as rows[i][h], or [n, width] as rows[i]."""
    if len(shape) == 2:
        return [numbers[i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])]
    return [[numbers[(i * shape[1] + h) * shape[2]:(i * shape[1] + h + 1) * shape[2]] for h in range(shape[1])] for i in range(shape[0])]


def columns(head):
    """The published code's: A.sum(axis=-2) / (T - k), of a head's rows without the sink."""
    n = len(head)
    if numpy is None:
        return [total(head[i][k] for i in range(n)) / (n - k) for k in range(n)]
    return (numpy.array([row[:n] for row in head]).sum(axis=-2) / (n - numpy.arange(n))).tolist()


def want_head(layer, h, given, n, bias, w_o):
    flat = given[f"{layer:02}.A9"][1]
    head = [flat[(h * n + i) * (n + 1):(h * n + i + 1) * (n + 1)] for i in range(n)]
    sink, mass = [row[n] for row in head], [total(row[j] for j in range(i + 1)) for i, row in enumerate(head)]
    sees = [i for i in range(n) if 0 in seen(layer, i)]
    part = [w_o[c][h * D:(h + 1) * D] for c in range(HIDDEN)]

    def through(x):
        return math.sqrt(sum(sum(w * v for w, v in zip(row, x)) ** 2 for row in part))
    g = h // (H // G)
    out = [through(o[h]) for o in rows(*given[f"{layer:02}.A11"])]
    length = through(bias[g * D:(g + 1) * D])
    left = [(1 - a) * length for a in sink]
    return {"group": g, "alpha": columns(head)[:10], "alpha_1_seen": total(head[i][0] for i in sees) / len(sees),
            "sink": {"mean": mean(sink), "least": min(sink), "most": max(sink)},
            "mass": {"mean": mean(mass), "least": min(mass), "most": max(mass)},
            "alpha_star": mean(sink), "alpha_star_published": total([1, *sink]) / (n + 1),
            "bias": length, "intensity": mean(left), "output": mean(out), "share": mean([a / b for a, b in zip(left, out)]),
            **want_cosines(layer, [q[h] for q in rows(*given[f"{layer:02}.A4.q"])], [k[g] for k in rows(*given[f"{layer:02}.A4.k"])])}


def want_cosines(layer, q, k):
    """Running sums of the keys' directions; a row's part of them times the query's."""
    sums = [[0.0] * D]
    for key in k:
        length = norm(key)
        sums.append([s + x / length for s, x in zip(sums[-1], key)])
    first, others, firsts, pairs = 0.0, 0.0, 0, 0
    for i in range(1, len(q)):
        low = seen(layer, i)[0]
        length = norm(q[i])
        if low == 0:
            first, firsts = first + total(x * (b - a) for x, a, b in zip(q[i], sums[0], sums[1])) / length, firsts + 1
        start = max(low, 1)
        others += total(x * (b - a) for x, a, b in zip(q[i], sums[start], sums[i + 1])) / length
        pairs += i + 1 - start
    return {"cosine_1": first / firsts, "cosine_others": others / pairs}


def want_drain(x):
    lengths = [norm(v) for v in x]
    return {"first": lengths[0], "mean": mean(lengths[1:]), "median": statistics.median(lengths[1:])}


def want_massive(shape, numbers):
    sizes, lengths = [abs(x) for x in numbers], [norm(x) for x in rows(shape, numbers)]
    largest, middle = max(sizes), statistics.median(sizes)
    at = sizes.index(largest)
    return {"largest": largest, "token": at // shape[1], "coordinate": at % shape[1], "median": middle, "ratio": largest / middle,
            "first_norm": lengths[0], "other_norm": mean(lengths[1:])}


def want_spikes(state, normed):
    token = want_massive(*state)["token"]
    x, y = rows(*state)[token], rows(*normed)[token]
    spikes = sorted(range(HIDDEN), key=lambda c: (-abs(x[c]), c))[:3]
    return {"before": total(x[c] * x[c] for c in spikes) / total(v * v for v in x),
            "after": total(y[c] * y[c] for c in spikes) / total(v * v for v in y)}


def differences(said, want, path=""):
    if isinstance(want, dict):
        return [d for k in want for d in differences(said[k], want[k], f"{path}/{k}")]
    if isinstance(want, list):
        return [f"{path}: {len(said)} of {len(want)}"] * (len(said) != len(want)) + [
            d for i, (s, w) in enumerate(zip(said, want)) for d in differences(s, w, f"{path}/{i}")]
    return [] if said == want else [f"{path}: {said} for {want}"]


def census(*words):
    status, said, wrong = sinkproof("sinks", *words, "--json", "-")
    return json.loads(said)["results"] if status == 0 else (status, wrong)


# ---- the parts --------------------------------------------------------------------------------------------------

def definitions(work):
    tensors = checkpoints.weights(CONFIG, 3, whole_numbers)
    model = checkpoints.write(work / "model", tensors, CONFIG)
    wrong, passing, maps = {}, [], 0
    for seed, n in ((1, 12), (2, 17)):
        given = points(seed, n)
        [said] = census(model, write_trace(work / f"{seed}", given, n), "--epsilon", "0.2")
        for layer in range(L):
            bias, _ = read_bf16(tensors[f"model.layers.{layer}.self_attn.v_proj.bias"])
            w_o = rows(*reversed(read_bf16(tensors[f"model.layers.{layer}.self_attn.o_proj.weight"])))
            got, at = said["layers"][layer], f"{layer:02}."
            for h in range(H):
                want = want_head(layer, h, given, n, bias, w_o)
                passing.append((want["alpha"], want["alpha_star"], want["alpha_star_published"], want["alpha_1_seen"]))
                for found in differences(got["heads"][h], want, f"/layer {layer}/head {h}"):
                    wrong.setdefault(found.split("/")[3].split(":")[0], []).append(found)
                maps += 1
            for name, point in (("values", "A2.v"), ("keys", "A4.k")):
                want = [want_drain([x[g] for x in rows(*given[at + point])]) for g in range(G)]
                wrong.setdefault(name, []).extend(differences(got[name], want))
            before = given["T0"] if layer == 0 else given[f"{layer - 1:02}.M12"]
            wrong.setdefault("states", []).extend(differences(got, {
                "A13": want_massive(*given[at + "A13"]), "M12": want_massive(*given[at + "M12"]),
                "A1": want_spikes(before, given[at + "A1"]), "M1": want_spikes(given[at + "A13"], given[at + "M1"])}))
        wrong["states"] += differences(said, {"T0": want_massive(*given["T0"]), "F1": want_spikes(given[f"{L - 1:02}.M12"], given["F1"])})
        heads = passing[-L * H:]
        want = {"sink": [sum(a[0][k] > 0.2 for a in heads) / len(heads) for k in range(10)], "heads": L * H, "missing": "",
                "sink_1_seen": sum(a[3] > 0.2 for a in heads) / len(heads), "sink_star": sum(a[1] > 0.2 for a in heads) / len(heads), "sink_star_published": sum(a[2] > 0.2 for a in heads) / len(heads)}
        wrong.setdefault("Sink", []).extend(differences(said, want))
    spread = {sum(a[0][k] > 0.2 for a in passing) for k in range(3)}
    by = f"{'numpy' if numpy else 'loops'}: maps={maps}"
    for id, names in (("metric.sink", ("alpha", "alpha_1_seen", "mass", "sink", "Sink", "group")), ("metric.sink-star", ("alpha_star", "alpha_star_published")),
                      ("metric.value-bias", ("bias", "intensity", "output", "share")), ("metric.massive", ("states",)),
                      ("metric.value-drain", ("values", "keys")), ("metric.key-geometry", ("cosine_1", "cosine_others"))):
        found = [w for name in names for w in wrong.get(name, [])]
        report(not found and 0 < max(spread) < maps, f"{id} as defined, to the last bit, by {by}", found)


def computed(work):
    """Weights that are computed from A4 are the reference's own where it rounds nothing; heads need not be shown."""
    whole, some = str(work / "whole"), str(work / "some")
    for path, more in ((whole, []), (some, ["--points", "T0,A1,A2,A4,A11,A13,M1,M12,F1"])):
        sinkproof("run", TINY, "--tokens", "random:40", "--trace", path, *more)
    [a], [b], [c] = census(TINY, whole), census(TINY, some), census(TINY, "--tokens", "random:40")
    sources = [x["weights"] for y in (a, b, c) for x in y["layers"]]
    for x in (a, b, c):
        x["input"] = ""
        for layer in x["layers"]:
            layer["weights"] = ""
    report(a == b == c and sources == 4 * ["A9"] + 4 * ["A4"] + 4 * ["A9"] and a["missing"] == "",
           "metric.sink weights from queries, keys and sink are the shown ones; a run is its trace", [str(sources)])
    [fast], [lanes] = (census(TINY, "--tokens", "random:40", "--engine", e) for e in ("fast", "lanes"))
    [one] = census(TINY, "--tokens", "random:40", "--engine", "fast", "--threads", "1")
    report(fast == lanes == one and fast["layers"][0]["weights"] == "A4" and fast["sink"] == a["sink"],
           "metric.sink of fast, which holds no weights: as of lanes, for any number of threads", [])


def subsets(work):
    """What a trace lacks is null, a dash, and named; a part of a layer is measured by itself."""
    model = checkpoints.write(work / "model", checkpoints.weights(CONFIG, 3), CONFIG)
    given = points(5, 12)
    [whole] = census(model, write_trace(work / "whole", given, 12))
    path = write_trace(work / "map", {"01.A9": given["01.A9"]}, 12)
    _, text, _ = sinkproof("sinks", model, path, "--json", str(work / "j"))
    [one] = json.loads((work / "j").read_text())["results"]
    same = all(one["layers"][1]["heads"][h][k] == whole["layers"][1]["heads"][h][k] for h in range(H) for k in ("alpha", "sink", "mass", "bias", "intensity"))
    none = [one["layers"][0]["heads"][0]["alpha"], one["layers"][1]["heads"][0]["share"], one["layers"][1]["heads"][0]["cosine_1"], one["T0"], one["layers"][1]["M12"]]
    report(same and none == 5 * [None] and one["heads"] == H and one["missing"] == "T0, A1, A2.v, A4.q, A4.k, A11, A13, M1, M12, F1",
           "metric.sink of one layer's map alone: the rest is not known", [str(none), one["missing"]])
    report("No layer shows T0, A1, A2.v" in text and "of 1 of the layers as the engine holds them (A9)" in text
           and "not trained" not in text and ["0", "4", *9 * ["-"]] in [line.split() for line in text.splitlines()],
           "metric.sink the table has dashes and names what is missing", [text])
    path = write_trace(work / "states", {name: given[name] for name in ("T0", "00.M1", "01.A1", "01.M12", "F1")}, 12)
    [some] = census(model, path)
    [pair] = census(model, write_trace(work / "pair", {name: given[name] for name in ("00.M12", "01.A1")}, 12))
    report(some["layers"][0]["M1"] == some["layers"][1]["A1"] == {"before": None, "after": None} and some["F1"] == whole["F1"]
           and pair["layers"][1]["A1"] == whole["layers"][1]["A1"] and some["heads"] == 0 and some["sink"] == 10 * [None],
           "metric.massive a norm without its own state is not measured", [str(some["layers"][0]["M1"]), str(pair["layers"][1]["A1"])])
    _, text, _ = sinkproof("sinks", model, path)
    report("Weights: in no layer, for want of A9, and of A4.q and A4.k." in text, "metric.sink says where there are no weights", [text])


def traps(work):
    """Uniform rows pass 0.3 up to T = 9; a weight of exactly epsilon does not."""
    model = checkpoints.write(work / "model", checkpoints.weights(CONFIG, 3), CONFIG)

    def uniform(n):
        flat = [1 / (i + 1) if j <= i else 0 for _ in range(H) for i in range(n) for j in range(n + 1)]
        return write_trace(work / f"uniform{n}", {"01.A9": ([H, n, n + 1], flat)}, n)
    found = []
    for n in (2, 8, 9, 10, 64):
        _, text, _ = sinkproof("sinks", model, uniform(n), "--json", str(work / "j"))
        [said] = json.loads((work / "j").read_text())["results"]
        harmonic = total(1 / t for t in range(1, n + 1)) / n
        good = said["sink"][0] == (1 if n <= 9 else 0) and said["uniform"] == harmonic == said["layers"][1]["heads"][0]["alpha"][0]
        found += [] if good and ("counts as a sink there" in text) == (n <= 9) and f"T = {n} " in text else [f"T = {n}: {said['sink']}"]
    report(not found, "metric.sink equal weights pass 0.3 for T <= 9, and the text says so", found)
    flat = [0.25 if j == 0 else 0.5 if j == 12 else 0.125 if j <= i else 0 for _ in range(H) for i in range(12) for j in range(13)]
    path = write_trace(work / "quarter", {"01.A9": ([H, 12, 13], flat)}, 12)
    shares = [census(model, path, "--epsilon", e)[0] for e in ("0.25", "0.24999999999999997")]
    report([s["sink"][0] for s in shares] == [0, 1] and census(model, path, "--epsilon", "0.5")[0]["sink_star"] == 0
           and census(model, path, "--epsilon", "0.51")[0]["sink_star_published"] == 1,
           "metric.sink-star metric.sink a mean of exactly epsilon is no sink", [str(s["sink"]) for s in shares])


def kinds(work):
    """Each sequence meets the threshold by itself; the kinds stand apart."""
    words = [w for t in ("random:24", "random:24,seed=2", "random:24,seed=3", "repeat:24", "repeat:24,seed=9", "random:9", "1,2,3")
             for w in ("--tokens", t)]
    _, text, _ = sinkproof("sinks", TINY, *words, "--epsilon", "0.15", "--json", str(work / "j"))
    said = json.loads((work / "j").read_text())["results"]
    inputs, groups = [s for s in said if "input" in s], [s for s in said if "kind" in s]
    want = [("random", 24, 3, mean([s["sink_star"] for s in inputs[:3]])), ("repeat", 24, 2, mean([s["sink_star"] for s in inputs[3:5]]))]
    good = [(g["kind"], g["tokens"], g["sequences"]) for g in groups] == [w[:3] for w in want]
    counts = [round(s["sink_star"] * s["heads"]) for s in inputs]
    good = good and [g["sink_star"] for g in groups] == [sum(counts[:3]) / 120, sum(counts[3:5]) / 80] and len(inputs) == 7
    report(good and "all of random " in text and "Shares at different T do not compare." in text,
           "table.inputs sequences of a kind are counted together", [str(groups)])
    _, once, _ = sinkproof("run", TINY, "--tokens", "random:1,seed=9", "--trace", str(work / "a"))
    sinkproof("run", TINY, "--tokens", "repeat:3,seed=9", "--trace", str(work / "b"))
    data = (work / "b").read_bytes()
    head = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    start = 8 + struct.unpack("<Q", data[:8])[0] + head["tokens"]["data_offsets"][0]
    first = (work / "a").read_bytes()
    head = json.loads(first[8:8 + struct.unpack("<Q", first[:8])[0]])
    token = first[8 + struct.unpack("<Q", first[:8])[0] + head["tokens"]["data_offsets"][0]:][:4]
    report(data[start:start + 12] == 3 * token,
           "table.inputs repeat:3 is the first token of random, three times", [once])


def shown(work):
    """The text holds the JSON's figures, in 100 columns."""
    status, text, _ = sinkproof("sinks", TINY, "--tokens", "random:33", "--heads", "--json", str(work / "j"))
    [said] = json.loads((work / "j").read_text())["results"]
    wrong = [line for line in text.splitlines() if len(line) > 100]
    lines = [line.split() for line in text.splitlines()]
    for layer in said["layers"]:
        heads = layer["heads"]
        window = str(layer["window"]) if layer["window"] else "all"
        row = [str(layer["layer"]), window, f"{mean([h['sink']['mean'] for h in heads]):.4f}", f"{min(h['sink']['least'] for h in heads):.4f}",
               f"{max(h['sink']['most'] for h in heads):.4f}", f"{mean([h['mass']['mean'] for h in heads]):.4f}",
               f"{mean([h['alpha'][0] for h in heads]):.4f}", f"{max(h['alpha'][0] for h in heads):.4f}",
               f"{mean([h['alpha_1_seen'] for h in heads]):.4f}", f"{mean([h['intensity'] for h in heads]):.3g}", f"{mean([h['share'] for h in heads]):.3g}"]
        wrong += [] if row in lines else [" ".join(row)]
        for i, h in enumerate(heads):
            row = [f".{i}", *(f"{h['sink'][k]:.4f}" for k in ("mean", "least", "most")), f"{h['mass']['mean']:.4f}", f"{h['alpha'][0]:.4f}",
                   f"{h['alpha'][0]:.4f}", f"{h['alpha_1_seen']:.4f}", f"{h['intensity']:.3g}", f"{h['share']:.3g}"]
            wrong += [] if row in lines else [" ".join(row)]
        m, after = layer["M12"], said["layers"][layer["layer"] + 1]["A1"] if layer["layer"] < 3 else said["F1"]
        row = [str(layer["layer"]), f"{mean([v['first'] / v['median'] for v in layer['values']]):.3f}",
               f"{mean([v['first'] / v['median'] for v in layer['keys']]):.3f}", f"{mean([h['cosine_1'] for h in heads]):.4f}",
               f"{mean([h['cosine_others'] for h in heads]):.4f}", f"{m['largest']:.4g}", f"{m['token']},", str(m["coordinate"]),
               f"{m['ratio']:.1f}", f"{m['first_norm'] / m['other_norm']:.3f}", f"{after['before']:.4f}", f"{after['after']:.4f}"]
        wrong += [] if row in lines else [" ".join(row)]
    share = [f"{100 * said[k]:.2f}" for k in ("sink_1_seen", "sink_star", "sink_star_published")]
    wrong += [] if ["random:33", "33", "1", f"{100 * said['sink'][0]:.2f}", "%", share[0], "%", share[1], "%", share[2], "%"] in lines else [str(share)]
    drawn_weights = "Its weights are drawn, not trained" in text
    report(status == 0 and not wrong and drawn_weights, f"metric.sink the table says what the JSON says: lines={len(lines)}", wrong)


def refused(work):
    model = checkpoints.write(work / "model", checkpoints.weights(CONFIG, 3), CONFIG)
    given = points(6, 12)
    wrong = []

    def expect(status, sentence, *words):
        got = sinkproof("sinks", *words)
        wrong.extend([] if got[0] == status and sentence in got[2] and got[1] == "" else [f"{words}: {got}"])
    for value, name in ((math.nan, "nan"), (math.inf, "inf")):
        for point, at, index in (("01.A9", 2 * 12 * 13 + 5 * 13 + 1, "2, 5, 1"), ("00.M12", 3 * HIDDEN + 7, "3, 7"), ("00.A4.q", 33, "1, 0, 1")):
            shape, numbers = given[point]
            bad = write_trace(work / "bad", given | {point: (shape, [*numbers[:at], value, *numbers[at + 1:]])}, 12)
            expect(3, f"bad: tensor {point}: expected finite numbers, found {name} at ({index})", model, bad)
    good = write_trace(work / "good", given, 12)
    expect(3, "cannot open", model, str(work / "none"))
    expect(3, "'repeat:0': expected repeat:N[,seed=S], N from 1 to", TINY, "--tokens", "repeat:0")
    expect(3, "exceed the model's context of", TINY, "--tokens", "repeat:200000")
    expect(2, "expected --tokens, or a TRACE after MODEL", TINY)
    expect(2, "expected a MODEL to measure", "--tokens", "1")
    expect(2, "expected one of MODEL, --trace, --list, --edges and --judge", TINY, "--tokens", "1", "--list")
    expect(2, "expected no --tokens", model, good, "--tokens", "1")
    expect(2, "expected no --tokens", model, good, "--engine", "fast")
    expect(2, "and one TRACE", model, good, good)
    for bad in ("1", "-0.1", "nan", "", "0.3x"):
        expect(2, f"--epsilon {bad}: expected a number from 0 to less than 1", TINY, "--tokens", "1", "--epsilon", bad)
    expect(2, "unknown engine 'slow'", TINY, "--tokens", "1", "--engine", "slow")
    expect(2, "--threads needs --engine fast", TINY, "--tokens", "1", "--threads", "2")
    report(not wrong, "metric.sink what is refused, with a sentence", wrong)


def unnamed(work):
    """Without --engine: ref, and fast where ref would take long. 4 layers of 4 experts, 50 million weights a token."""
    wide = dict(CONFIG, num_hidden_layers=4, hidden_size=256, intermediate_size=4096, num_local_experts=4,
                num_experts_per_tok=4, layer_types=["sliding_attention", "full_attention"] * 2)
    (work / "wide.json").write_text(json.dumps(wide), encoding="utf-8")
    model, wrong = f"synthetic:{work / 'wide.json'}", []
    for n, said in ((8, "Engine ref, policy real-f64;"), (700, "Engine fast, policy f32;")):
        got = sinkproof("sinks", model, "--tokens", f"repeat:{n}")
        wrong.extend([] if got[0] == 0 and said in got[1] else [f"{n} tokens: {got}"])
    report(not wrong, "metric.sink an engine that nobody named is the one that ends soon, and is said", wrong)


if __name__ == "__main__":
    sys.exit(checkpoints.run(definitions, computed, subsets, traps, kinds, shown, refused, unnamed))
