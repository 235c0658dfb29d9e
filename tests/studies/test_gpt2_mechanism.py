# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof gpt2 MODEL`: its numbers beside those of the definitions, computed here by loops from a checkpoint that
`sinkproof synth` wrote, to the last bit, as the model is and with interventions; text and JSON alike; what is refused.
10 CPU seconds.
"""
import functools
import json
import math
import operator
import os
import pathlib
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

TINY = "synthetic:tiny-gpt2,layers=2"
TOKENS = [3, 141, 59, 26, 5, 3, 88]
SAID = ",".join(map(str, TOKENS))
TWO = {7: 40.0, 61: -25.0}  # makes EPE_1 massive there
TERMS = ("content", "query", "key", "constant")


def read(folder):
    """{name: (shape, numbers)} of a checkpoint in bfloat16."""
    data = (pathlib.Path(folder) / "model.safetensors").read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, about in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        assert about["dtype"] == "BF16", about
        a, b = about["data_offsets"]
        halves = struct.unpack(f"<{(b - a) // 2}H", data[start + a:start + b])
        out[name] = (about["shape"], struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *(h << 16 for h in halves))))
    return out


# ---- the model, by its formulas: every sum in ascending order ------------------------------------------------------

def total(numbers):
    return functools.reduce(operator.add, numbers, 0.0)


def dot(x, y):
    return total(map(operator.mul, x, y))


def cosine(x, y):
    lengths = math.sqrt(dot(x, x)) * math.sqrt(dot(y, y))
    return dot(x, y) / lengths if lengths != 0 else None


def add(x, y):
    return [a + b for a, b in zip(x, y)]


def apart(x, y):
    return [a - b for a, b in zip(x, y)]


def linear(x, columns, bias=None):
    out = [dot(column, x) for column in columns]
    return add(out, bias) if bias is not None else out


def gelu(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.acos(-1)) * (x + 0.044715 * (x * x * x))))


def normed(x, scale, shift, eps):
    mean = total(x) / len(x)
    inverse = 1.0 / math.sqrt(total((v - mean) * (v - mean) for v in x) / len(x) + eps)
    return [(v - mean) * inverse * s + b for v, s, b in zip(x, scale, shift)]


class Model:
    def __init__(self, folder):
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
        self.tensors = read(folder)
        self.layers, self.heads, self.hidden = config["n_layer"], config["n_head"], config["n_embd"]
        self.eps, self.dim = config["layer_norm_epsilon"], config["n_embd"] // config["n_head"]
        self.parts = [self.layer(l) for l in range(self.layers)]

    def vector(self, name):
        return list(self.tensors[name][1])

    def rows(self, name):
        (_, width), numbers = self.tensors[name]
        return [list(numbers[i:i + width]) for i in range(0, len(numbers), width)]

    def columns(self, name):
        """Of a Conv1D weight [inputs, outputs]: what each output takes."""
        return [list(column) for column in zip(*self.rows(name))]

    def layer(self, l):
        at = f"h.{l}."
        three, bias = self.columns(at + "attn.c_attn.weight"), self.vector(at + "attn.c_attn.bias")
        part = {name: (three[i * self.hidden:(i + 1) * self.hidden], bias[i * self.hidden:(i + 1) * self.hidden])
                for i, name in enumerate("qkv")}
        for name, where in (("o", "attn.c_proj"), ("up", "mlp.c_fc"), ("down", "mlp.c_proj")):
            part[name] = (self.columns(at + where + ".weight"), self.vector(at + where + ".bias"))
        for name in ("ln_1", "ln_2"):
            part[name] = (self.vector(at + name + ".weight"), self.vector(at + name + ".bias"), self.eps)
        return part

    def perceptron(self, x, part):
        return linear([gelu(v) for v in linear(x, *part["up"])], *part["down"])

    def epe(self, p, behind_norm):
        first = self.parts[0]
        return add(self.perceptron(normed(p, *first["ln_2"]) if behind_norm else p, first), p)


# ---- the definitions -----------------------------------------------------------------------------------------------

def spread(x):
    sizes = [abs(v) for v in x]
    mean = total(sizes) / len(sizes)
    return mean, math.sqrt(total((v - mean) * (v - mean) for v in sizes) / len(sizes))


def want_epe(model, behind_norm, tokens):
    place, token = model.rows("wpe.weight"), model.rows("wte.weight")
    epe = [model.epe(place[i], behind_norm) for i in range(len(tokens))]
    check = []
    for i, t in enumerate(tokens):
        r, o = model.epe(add(token[t], place[i]), behind_norm), model.epe(token[t], behind_norm)
        check.append(cosine(epe[i], apart(r, o)))
    mean, deviation = spread(epe[0])
    massive = [{"coordinate": c, "value": v, "deviations": (abs(v) - mean) / deviation}
               for c, v in enumerate(epe[0]) if abs(v) > mean + 3 * deviation]
    return epe, {"mean": mean, "deviation": deviation, "massive": massive, "check": check}


def want_gamma(gamma, at):
    mean, deviation = spread(gamma)
    return {"mean": mean, "deviation": deviation, "massive": [gamma[c] for c in at]}


def gamma_of(b_q, w_k, rows, hidden):
    out = [0.0] * hidden
    for r in rows:
        out = [g + b_q[r] * w for g, w in zip(out, w_k[r])]
    return out


def want_head(model, part, h, states, epe, at):
    """A head of a layer whose normed states these are: its JSON, and its weights by row."""
    n, d = len(states), model.dim
    rows = range(h * d, (h + 1) * d)
    (w_q, b_q), (w_k, b_k) = ((part[x][0], part[x][1]) for x in "qk")
    cut = [[part["q"][1][r] for r in rows], [part["k"][1][r] for r in rows]]
    a, c = ([[dot(w[r], x) for r in rows] for x in states] for w in (w_q, w_k))
    q, k = ([add(v, bias) for v in x] for x, bias in ((a, cut[0]), (c, cut[1])))
    gamma = gamma_of(b_q, w_k, rows, model.hidden)
    lead, worst, weights = dict.fromkeys(TERMS, 0.0), 0.0, []
    for t in range(n):
        first, others = [0.0] * 4, [0.0] * 4
        for j in range(t + 1):
            terms = [dot(a[t], c[j]), dot(a[t], cut[1]), dot(cut[0], c[j]), dot(*cut)]
            off, size = abs(dot(q[t], k[j]) - total(terms)), total(abs(x) for x in terms)
            worst = max(worst, off / size if size != 0 else 0.0)
            first, others = (add(first, terms), others) if j == 0 else (first, add(others, terms))
        for name, x, y in zip(TERMS, first, others):
            lead[name] += 1 / math.sqrt(d) * (x - y / t) if t > 0 else 0
        scores = [dot(q[t], k[j]) * (1 / math.sqrt(d)) for j in range(t + 1)]
        e = [math.exp(s - max(scores)) for s in scores]
        weights.append([x / total(e) for x in e])
    alpha = [total(weights[i][j] for i in range(j, n)) / (n - j) for j in range(n)]
    return {"delta": [dot(gamma, x) for x in states],
            "align": [cosine(cut[0], [dot(w_k[r], x) for r in rows]) for x in epe],
            "gamma": want_gamma(gamma, at), "lead": {name: x / (n - 1) for name, x in lead.items()},
            "apart": worst, "alpha": alpha}, weights


def attention(model, part, states, maps):
    values = [linear(x, *part["v"]) for x in states]
    out = []
    for i in range(len(states)):
        heads = []
        for h, weights in enumerate(maps):
            o = [0.0] * model.dim
            for j, weight in enumerate(weights[i]):
                o = [s + weight * v for s, v in zip(o, values[j][h * model.dim:(h + 1) * model.dim])]
            heads += o
        out.append(linear(heads, *part["o"]))
    return out


def changed(model, did):
    """The layers as they run."""
    out = []
    for part in model.parts:
        part = dict(part)
        if did.get("zero_bq"):
            part["q"] = (part["q"][0], [0.0] * model.hidden)
        gone = did.get("rows", ())
        part["k"] = ([[0.0 if c in gone else w for c, w in enumerate(row)] for row in part["k"][0]], part["k"][1])
        out.append(part)
    return out


def embedded(model, tokens, did):
    place, token = model.rows("wpe.weight"), model.rows("wte.weight")
    x = [add(token[t], place[i]) if not did.get("late") else token[t] for i, t in enumerate(tokens)]
    return [place[0], *x[1:]] if did.get("zero_bos") else x


def after_first(x, epe, did):
    """What is done to the states that the first layer leaves."""
    source = list(range(len(x)))
    for i, j in did.get("gets", ()):
        source[i] = j
    if did.get("late"):
        return [add(epe[source[i]], v) for i, v in enumerate(x)]
    return [add(apart(epe[source[i]], epe[i]), v) if source[i] != i else v for i, v in enumerate(x)]


def want(model, tokens, behind_norm, did):
    epe, said = want_epe(model, behind_norm, tokens)
    at = [m["coordinate"] for m in said["massive"]]
    x, layers = embedded(model, tokens, did), []
    for l, part in enumerate(changed(model, did)):
        states = [normed(v, *part["ln_1"]) for v in x]
        heads, maps = zip(*(want_head(model, part, h, states, epe, at) for h in range(model.heads)))
        b_q, gamma = part["q"][1], gamma_of(part["q"][1], part["k"][0], range(model.hidden), model.hidden)
        alpha = [total(h["alpha"][j] for h in heads) / model.heads for j in range(len(x))]
        layers.append({"layer": l, "heads": list(heads), "alpha": alpha,
                       "sinks": [len([h for h in heads if h["alpha"][j] > 0.3]) for j in range(len(x))],
                       "unsplit": {"delta": [dot(gamma, v) for v in states], "gamma": want_gamma(gamma, at),
                                   "align": [cosine(b_q, linear(v, part["k"][0])) for v in epe]}})
        x = [add(v, o) for v, o in zip(x, attention(model, part, states, maps))]
        x = [add(v, model.perceptron(normed(v, *part["ln_2"]), part)) for v in x]
        if l == 0:
            x = after_first(x, epe, did)
    return {"epe": said, "layers": layers, "zeroed_rows": sorted(did.get("rows", ()))}


def differences(said, wanted, path=""):
    if isinstance(wanted, dict):
        return [d for k in wanted for d in differences(said[k], wanted[k], f"{path}/{k}")]
    if isinstance(wanted, list):
        return [f"{path}: {len(said)} of {len(wanted)}"] * (len(said) != len(wanted)) + [
            d for i, (s, w) in enumerate(zip(said, wanted)) for d in differences(s, w, f"{path}/{i}")]
    return [] if said == wanted else [f"{path}: {said} for {wanted}"]


def gpt2(*words):
    status, said, wrong = sinkproof("gpt2", *words, "--json", "-")
    return json.loads(said)["results"] if status == 0 else (status, wrong)


# ---- the parts -----------------------------------------------------------------------------------------------------

CHANGES = {
    "--zero-bq": {"zero_bq": True},
    "--swap-epe 1:2": {"gets": [(0, 1)]},
    "--move-epe 1:3 --zero-bos": {"gets": [(0, 2), (2, 0)], "zero_bos": True},
    "--late-epe --move-epe 1:2": {"gets": [(0, 1), (1, 0)], "late": True},
    "--zero-wk-rows 5,17,95": {"rows": {5, 17, 95}},
}


def written(work, changes):
    """tiny-gpt2 of two layers with other numbers in the first position's row, which bfloat16 holds."""
    folder = work / "model"
    assert sinkproof("synth", TINY, "--out", str(folder))[0] == 0
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    start = 8 + struct.unpack("<Q", data[:8])[0]
    place = start + json.loads(data[8:start])["wpe.weight"]["data_offsets"][0]
    for c, v in changes.items():
        data[place + 2 * c:place + 2 * c + 2] = struct.pack("<f", v)[2:]
    path.write_bytes(bytes(data))
    return str(folder)


def definitions(work):
    folder, tokens = written(work, TWO), SAID
    model = Model(folder)
    for words in ("", "--epe normed"):
        [said] = gpt2(folder, "--tokens", tokens, *words.split())
        wrong = differences(said, want(model, TOKENS, words != "", {}))
        found = [m["coordinate"] for m in said["epe"]["massive"]]
        report(not wrong and (words != "" or found == [7, 61]) and said["interventions"] == "none",
               f"gpt2.epe gpt2.epe-check gpt2.align gpt2.massive gpt2.table1 gpt2.table2 gpt2.delta gpt2.gamma gpt2.expand"
               f"{words}, as defined, to the last bit: layers=2 heads=6 massive={found}", wrong[:5])
    for words, did in CHANGES.items():
        before, after = gpt2(folder, "--tokens", tokens, *words.split())
        wrong = differences(after, want(model, TOKENS, False, did)) + differences(before, want(model, TOKENS, False, {}))
        report(not wrong and before["layers"] != after["layers"], f"gpt2.align gpt2.delta with {words}, to the last bit", wrong[:5])


def massive_rows(work):
    """The rows that EPE_1 names, and as many others."""
    folder, tokens = written(work, TWO), SAID
    _, rows = gpt2(folder, "--tokens", tokens, "--zero-wk-rows", "auto")
    _, same = gpt2(folder, "--tokens", tokens, "--zero-wk-rows", "7,61")
    _, drawn = gpt2(folder, "--tokens", tokens, "--zero-wk-random", "2,5")
    report(rows["zeroed_rows"] == [7, 61] and rows["layers"] == same["layers"] and len(drawn["zeroed_rows"]) == 2
           and not {7, 61} & set(drawn["zeroed_rows"]) and drawn["layers"] != rows["layers"],
           "gpt2.massive the rows of W_k that it names are those that auto sets to 0", [str(rows["zeroed_rows"]), str(drawn["zeroed_rows"])])


def split(work):
    """What a head's scores have of Delta, summed over the heads, is Delta before the split, but for rounding."""
    folder, tokens = written(work, TWO), SAID
    [said] = gpt2(folder, "--tokens", tokens)
    wrong, worst, most = [], 0.0, 0.0
    for layer in said["layers"]:
        for j, whole in enumerate(layer["unsplit"]["delta"]):
            parts = [h["delta"][j] for h in layer["heads"]]
            # gamma's sums over 96 or 16 rows, the product over 96 coordinates, the sum of 6: each below 200 roundings
            # of terms whose sizes sum to at most |b_Q| |W_k| |x|, which the model's own numbers say.
            worst = max(worst, abs(whole - total(parts)))
            most = max(most, abs(whole))
    bound = 2 * 200 * 2.0**-53 * size_of(folder, said)
    wrong += [] if worst <= bound else [f"{worst} of {most}"]
    report(not wrong, f"gpt2.delta of the heads sums to that before the split: worst={worst:.3g} bound={bound:.3g}", wrong)


def size_of(folder, said):
    """The largest sum_rc |b_r| |W_rc| |x_c| that a normed state allows: sum_c x_c^2 of ln_1 is at most its scale's."""
    model, most = Model(folder), 0.0
    for part in model.parts:
        scale, shift, _ = part["ln_1"]
        state = [math.sqrt(model.hidden) * abs(s) + abs(b) for s, b in zip(scale, shift)]
        most = max(most, total(abs(b) * dot(map(abs, row), state) for row, b in zip(*part["k"][:1], part["q"][1])))
    return most


def shown(work):
    """The text holds the JSON's figures, in 100 columns; layers, heads and positions from 1."""
    folder, tokens = written(work, TWO), SAID
    words = [folder, "--tokens", tokens, "--heads", "--move-epe", "1:2"]
    status, text, _ = sinkproof("gpt2", *words, "--json", str(work / "j"))
    said, after = json.loads((work / "j").read_text())["results"]
    wrong = [line for line in text.splitlines() if len(line) > 100 or line != line.rstrip()]
    lines = [line.split() for line in text.splitlines()]

    def fixed(x):
        return f"{0 if abs(x) < 0.0005 else x:.3f}"

    def delta(name, x, heads, lead):
        unit, rest = 1 / 4 / heads, total(x["delta"][1:]) / 6
        return [name, f"{x['delta'][0]:.4g}", f"{rest:.4g}", f"{max(x['delta'][1:]):.4g}", f"{unit * x['delta'][0]:.4g}",
                f"{unit * rest:.4g}", f"{lead:.4g}", fixed(x["align"][0]), fixed(total(x["align"][1:]) / 6), fixed(max(x["align"][1:]))]

    def gamma(name, x):
        return [name, f"{x['gamma']['mean']:.4g}", f"{2 * x['gamma']['deviation']:.4g}", *(f"{abs(g):.4g}" for g in x["gamma"]["massive"])]
    rows = [["coordinate", "7", f"{said['epe']['massive'][0]['value']:.5g}", f"{said['epe']['massive'][0]['deviations']:.2f}", "deviations"]]
    for l, layer in enumerate(said["layers"]):
        heads = layer["heads"]
        leads = {k: total(h["lead"][k] for h in heads) / 6 for k in TERMS}
        rows += [delta(str(l + 1), layer["unsplit"], 6, leads["key"]), gamma(str(l + 1), layer["unsplit"]),
                 [str(l + 1), *(fixed(leads[k]) for k in TERMS), f"{max(h['apart'] for h in heads):.2g}", f"{layer['alpha'][0]:.4f}",
                  f"{max(h['alpha'][0] for h in heads):.4f}", str(layer["sinks"][0])]]
        for i, h in enumerate(heads):
            rows += [delta(f".{i + 1}", h, 1, h["lead"]["key"]), gamma(f".{i + 1}", h),
                     [f".{i + 1}", *(fixed(h["lead"][k]) for k in TERMS), f"{h['apart']:.2g}", f"{h['alpha'][0]:.4f}"]]
        for j in (0, 1):
            new = after["layers"][l]
            rows.append([str(l + 1), f"{layer['alpha'][j]:.4f}", f"{new['alpha'][j]:.4f}", str(layer["sinks"][j]), str(new["sinks"][j]),
                         f"{layer['unsplit']['delta'][j]:.4g}", f"{new['unsplit']['delta'][j]:.4g}"])
    wrong += [" ".join(row) for row in rows if row not in lines]
    check = said["epe"]["check"]
    for part in ("7 tokens; the reference, policy real-f64", "Every number is estimated", "sum of", "Intervention: positions 1 and 2",
                 f"cos(EPE_i, R_i - O_i): {min(check):.4f} to {max(check):.4f}", "counts as a sink there.", "above it: 2 of 96\n"):
        wrong += [] if part in text else [f"no '{part}'"]
    report(status == 0 and not wrong, f"gpt2.table1 gpt2.table2 gpt2.delta the text says what the JSON says: rows={len(rows)}", wrong[:5])
    [one] = gpt2(TINY, "--tokens", "7")
    status, text, _ = sinkproof("gpt2", TINY, "--tokens", "7", "--zero-bq")
    report(one["layers"][0]["heads"][0]["lead"]["key"] is None and status == 0 and "nan" not in text and " - " in text
           and "Its weights are no trained ones" in text, "gpt2.delta of one token, and of no direction, there is a dash", [text])


def policies(work):
    """What rounds is in the numbers, and the sum of the terms is off by it."""
    [exact], [rounded] = (gpt2(TINY, "--tokens", "random:9", "--policy", p) for p in ("real-f64", "bf16"))
    far = [max(h["apart"] for layer in x["layers"] for h in layer["heads"]) for x in (exact, rounded)]
    report(far[0] < far[1] and rounded["policy"] == "bf16" and rounded["layers"] != exact["layers"]
           and rounded["epe"] != exact["epe"], f"gpt2.expand under bf16 the score is apart: {far[1]:.3g} beside {far[0]:.3g}", [])


def refused(work):
    wrong = []

    def expect(status, sentence, *words):
        got = sinkproof("gpt2", *words)
        wrong.extend([] if got[0] == status and sentence in got[2] and got[1] == "" else [f"{words}: {got}"])
    expect(3, "expected a model with learned positions and one perceptron without a gate, as GPT-2 is, found GPT-OSS: its "
              "queries and keys are rotated, a router chooses experts", "synthetic:tiny", "--tokens", "1")
    expect(3, "token id 211: expected 0 to 210", TINY, "--tokens", "1,211")
    expect(3, "exceed the model's context of", TINY, "--tokens", "random:100000")
    expect(3, "has no tokenizer beside it", TINY, "--text", "hello")
    expect(3, "none: No such file or directory", str(work / "none"), "--tokens", "1")
    expect(3, "expected positions of EPE from 1 to 2, found 3", TINY, "--tokens", "1,2", "--swap-epe", "1:3")
    expect(2, "expected one of --text, --tokens and --sentence", TINY)
    expect(2, "expected one of --text, --tokens and --sentence", TINY, "--text", "a", "--tokens", "1")
    expect(2, "expected a MODEL", "--tokens", "1")
    expect(2, "one MODEL, not also", TINY, TINY, "--tokens", "1")
    expect(2, "--epe cooked: expected raw or normed", TINY, "--tokens", "1", "--epe", "cooked")
    expect(2, "--epsilon 1: expected a number from 0 to less than 1", TINY, "--tokens", "1", "--epsilon", "1")
    expect(2, "policy", TINY, "--tokens", "1", "--policy", "none-such")
    report(not wrong, "gpt2.epe what is refused, with a sentence", wrong)
    folder = written(work, {0: 2.0**120})
    got = sinkproof("gpt2", folder, "--tokens", "1", "--policy", "f16", "--json", str(work / "none"))
    report(got[0] == 3 and "EPE_1: expected finite numbers, found nan at coordinate 0" in got[2] and not (work / "none").exists(), "gpt2.epe of what the policy cannot hold is an error, and nothing is written", [str(got)])


if __name__ == "__main__":
    sys.exit(checkpoints.run(definitions, massive_rows, split, shown, policies, refused))
