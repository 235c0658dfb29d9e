# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof sinks MODEL --perturb, --strategies, --quantise, --window`: each number beside its definition,
computed here by loops from traces of the same runs, to the last bit; text and JSON alike; what is refused.
4 CPU seconds.
"""
import functools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
from checkpoints import read_f64  # noqa: E402
from tap import Tap, largest  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("SINKPROOF", "build/release/sinkproof"))
MODEL, BARE = "synthetic:tiny,sink=off-by-one", "synthetic:tiny,sink=none"  # b = 0 everywhere, and no b
WINDOW, FIRST, RECENT, N = 8, 2, 3, 12
TOKENS = [17 * i % 101 for i in range(N)]
AT, TO = 2, 77
INF = math.inf


def sinkproof(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300, check=False)


def said(*words, model=MODEL):
    ran = sinkproof("sinks", model, "--tokens", ",".join(map(str, TOKENS)), *words, "--json", "-")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["results"]


def trace(work, name, tokens, model=MODEL):
    """{point: (shape, numbers)} of a run over the reals."""
    path = work / name
    ran = sinkproof("run", model, "--tokens", ",".join(map(str, tokens)), "--trace", str(path))
    assert ran.returncode == 0, ran.stderr
    return read_f64(path)


def total(numbers):
    """One addition after the other: sum() of some Pythons compensates."""
    out = 0.0
    for x in numbers:
        out += x
    return out


def off(x, y):
    return math.sqrt(total((a - b) * (a - b) for a, b in zip(x, y)))


def size(x):
    return math.sqrt(total(a * a for a in x))


def rows(tensor):
    (n, *rest), numbers = tensor
    width = math.prod(rest)
    return [numbers[i * width:(i + 1) * width] for i in range(n)]


# ---- mix.perturb ------------------------------------------------------------------------------------------------

def states(t):
    layers = sum(name.endswith(".M12") for name in t)
    return [rows(t["T0"]), *(rows(t[f"{layer:02}.M12"]) for layer in range(layers))]


def check_perturb(tap, work, base, asked):
    changed = [*TOKENS]
    changed[AT] = TO
    results = [r for r in asked if "perturbed" in r]
    tap.report([(r["tokens"], r["attention"]) for r in results] == [
        (n, mode) for n in (7, N) for mode in ("as it is", "without sinks", "sinks raised")],
        "every length with the sinks, without and raised")
    mine = next(r for r in results if r["tokens"] == N and r["attention"] == "as it is")
    x, y = states(base), states(trace(work, "changed", changed))
    want = [[off(a, b) for a, b in zip(p, q)] for p, q in zip(x, y)]
    share = [[0.0 if o == 0 else o / size(a) for o, a in zip(line, p)] for line, p in zip(want, x)]
    tap.report([s["off"] for s in mine["states"]] == want and [s["relative"] for s in mine["states"]] == share,
               f"mix.perturb the norms of {len(want) * N} states' differences, to the last bit")
    earlier = [o for line in want for o in line[:AT]]
    tap.report(not any(earlier) and all(r["earlier_changed"] == 0 for r in results) and all(line[AT] > 0 for line in want),
               "mix.perturb nothing before the changed token moves, and the token does")
    # Without sinks, and from an engine that has none: attention is summed in another order.
    x, y = states(trace(work, "bare", TOKENS, BARE)), states(trace(work, "bare changed", changed, BARE))
    bare = [off(a, b) for p, q in zip(x, y) for a, b in zip(p, q)]
    without = [o for s in next(r for r in results if r["tokens"] == N and r["attention"] == "without sinks")["states"] for o in s["off"]]
    nearer = off(without, bare) / off(sum(want, []), bare)
    tap.report(nearer < 2 ** -30, f"mix.perturb without sinks it is the model without: {nearer:.1e} of the way to the one with")
    raised = next(r for r in results if r["tokens"] == N and r["attention"] == "sinks raised")
    tap.report(off(sum((s["off"] for s in raised["states"]), []), bare) > 0.01, "raised sinks are neither")


def check_paths(tap, base, asked):
    mine = next(r for r in asked if r.get("attention") == "as it is" and r["tokens"] == N)
    one, every = [float(i == AT) for i in range(N)], [1.0] * N
    apart = 0.0
    for layer, state in enumerate(mine["states"][1:]):
        heads, n, keys = base[f"{layer:02}.A9"][0]
        a = base[f"{layer:02}.A9"][1]
        mean = [[math.fsum(a[(h * n + i) * keys + j] for h in range(heads)) / heads for j in range(n)] for i in range(n)]
        one = [p + math.fsum(w * q for w, q in zip(row, one)) for p, row in zip(one, mean)]
        every = [p + math.fsum(w * q for w, q in zip(row, every)) for p, row in zip(every, mean)]
        for i in range(AT, N):
            share = one[i] / every[i]  # 0 where no path leads
            apart = largest(apart, abs(state["paths"][i] / share - 1) if share else state["paths"][i])
    # A weight is off by (n + d + 800) roundings at most, a sum over heads and keys by their number.
    bound = 2 * (layer + 1) * (2 * N + 10 + 8 + 900) * 2 ** -53 * 8
    tap.report(apart <= bound, f"mix.paths shares from the engine's own maps: worst={apart / bound:.3g} bound=1")


# ---- caches -----------------------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def kept(bits, x):
    """(as it is read back, what it may be off)."""
    limit = 2 ** (bits - 1) - 1
    scale = max(map(abs, x)) / limit
    return [scale * round(v / scale) if scale else 0.0 for v in x], scale * (0.5 + 4 * limit * 2 ** -53)


def attend(q, keys, values, b):
    """(output, weights, sink, keys that are there) of one row; a key that is None is gone."""
    d = len(q)
    there = [j for j, k in enumerate(keys) if k is not None]
    s = {j: total(a * c for a, c in zip(q, keys[j])) / math.sqrt(d) for j in there}
    top = max(s.values())
    e = {j: math.exp(s[j] - top) for j in there}
    z = total(e.values())
    key, own = (math.exp(top - b), 1.0) if b > top else (1.0, math.exp(b - top))
    all_ = key * z + own
    each = key / all_
    return [total(e[j] * values[j][c] for j in there) * each for c in range(d)], {j: e[j] * each for j in there}, own / all_


STRATEGIES = {"first-recent": (0, True), "recent": (0, False), "first-gone": (0, None), "int8-first": (8, True), "int8": (8, False),
              "int4-first": (4, True), "int4": (4, False)}


def row_of(strategy, i, first, keys, values):
    """The keys and values of row i as a strategy keeps them, counted from the row's first, and their errors."""
    bits, head = STRATEGIES[strategy]
    out_k, out_v, off_k, off_v = [], [], [], []
    for j in range(first, i + 1):
        k, v, a, b = keys[j], values[j], 0.0, 0.0
        kept_whole = j + RECENT > i or head and j < FIRST or not head and j + RECENT + FIRST > i
        if bits == 0 and not (kept_whole if head is not None else j >= FIRST or i < FIRST + RECENT):
            k = None
        if bits and not (head and j < FIRST):
            (k, a), (v, b) = kept(bits, k), kept(bits, v)
        out_k.append(k), out_v.append(v), off_k.append(a), off_v.append(b)
    return out_k, out_v, off_k, off_v


def layer_errors(t, layer, strategy, b):
    """(relative error, the largest error over its lesser bound, numbers that the values' errors alone do not cover,
    vacuous rows, the lesser bounds' relative size)."""
    _, heads, d = t[f"{layer:02}.A4.q"][0]
    groups = t[f"{layer:02}.A4.k"][0][1]
    q, k, v = (rows(t[f"{layer:02}.{p}"]) for p in ("A4.q", "A4.k", "A2.v"))
    error = truth = worst = lesser_square = 0.0
    uncovered = vacuous = 0
    for h in range(heads):
        g = h // (heads // groups)
        keys, values = ([tuple(r[g * d:(g + 1) * d]) for r in x] for x in (k, v))
        for i in range(N):
            first = max(0, i + 1 - WINDOW) if layer % 2 == 0 else 0
            row = q[i][h * d:(h + 1) * d]
            full, alpha, sink_full = attend(row, keys[first:i + 1], values[first:i + 1], b)
            few_k, few_v, off_k, off_v = row_of(strategy, i, first, keys, values)
            mine, few_alpha, sink = attend(row, few_k, few_v, b)
            most = max(abs(x) for x in sum((list(x) for x in values[first:i + 1]), []))
            most_k = max(abs(x) for x in sum((list(x) for x in keys[first:i + 1]), []))
            length = total(map(abs, row)) / math.sqrt(d)
            gone = math.fsum(alpha[j] for j in alpha if few_k[j] is None)
            values_off = math.fsum(few_alpha[j] * off_v[j] for j in few_alpha)
            moved = math.fsum(few_alpha[j] * math.expm1(length * off_k[j]) for j in few_alpha)
            bound = gone * (2 - sink) * most if STRATEGIES[strategy][0] == 0 else values_off + (2 - sink_full) * most * moved
            vacuous += bound > (2 - sink - sink_full) * most
            row_wise = values_off + 2 * most * math.tanh(max(length * off_k[j] for j in few_alpha) / 2)
            lesser = min(bound, row_wise) if STRATEGIES[strategy][0] else bound
            rounding = 2 * (2 * N + 800 + 2 * (d + 2) * length * most_k) * 2 ** -53 * most
            for a, c in zip(full, mine):
                error += abs(c - a) * abs(c - a)
                truth += a * a
                worst = largest(worst, abs(c - a) / (lesser + rounding))
                lesser_square += (lesser + rounding) ** 2
                uncovered += STRATEGIES[strategy][0] > 0 and abs(c - a) > values_off + rounding
    return math.sqrt(error / truth), worst, uncovered, vacuous / (heads * N), math.sqrt(lesser_square / truth)


def mean_loss(t):
    """Mean of -ln p(next token) of the rows whose caches differ."""
    lines = rows(t["F2"])[FIRST + RECENT:N - 1]
    each = [max(line) + math.log(math.fsum(math.exp(x - max(line)) for x in line)) - line[TOKENS[i]]
            for i, line in enumerate(lines, FIRST + RECENT + 1)]
    return math.fsum(each) / len(each)


def check_strategies(tap, base, asked):
    results = [r for r in asked if "strategy" in r]
    tap.report(len(results) == 14, "seven caches, with sinks and without")
    uncovered = 0
    for strategy, (bits, _) in STRATEGIES.items():
        id = "bound.quantized-cache" if bits else "bound.evict"
        same, over, worst = 0, 0, 0.0
        for layer, sinks in enumerate((False, True)):
            row = next(r for r in results if r["strategy"] == strategy and r["sinks"] == sinks)
            mine = row["layers"][layer]
            relative, most, rows_off, vacuous, lesser = layer_errors(base, layer, strategy, 0.0 if sinks else -INF)
            # The bits of a worst share hang on fsum here and on plain sums there; of the error they do not.
            same += mine["relative"] == relative and mine["vacuous"] == vacuous
            over += abs(mine["worst"] - most) > most * 2 ** -40 or abs(mine["row_bound"] - lesser) > lesser * 2 ** -40
            over += not mine["relative"] <= mine["row_bound"] <= mine["bound"]
            worst = largest(worst, most)
            uncovered += rows_off
        tap.report(same == 2 and over == 0 and worst <= 1 and row["id"] == id,
                   f"{id} {strategy}: errors of two layers to the last bit, worst={worst:.3f} bound=1", [f"same {same}, over {over}"])
    tap.report(uncovered > 0, f"bound.quantized-cache refuted without what the keys move: {uncovered} numbers are farther off")
    whole = {r["strategy"]: r["whole"] for r in results if r["sinks"]}
    tap.report(all(w["state"] > 0 for w in whole.values()) and whole["int8"]["state"] < whole["recent"]["state"],
               "a whole run goes on from each cache")
    want = mean_loss(base)
    tap.report(all(abs(w["full_loss"] - want) < want * 2 ** -30 for w in whole.values())
               and len({w["loss"] for w in whole.values()}) == 7, f"the loss of the full cache from its logits, {want:.4f}, and one for each other")
    full = [r for r in said("--strategies", f"0,{N}") if r.get("strategy") in ("first-recent", "recent")]
    tap.report(all(r["attention"]["relative"] == 0 and r["whole"]["state"] == 0 and r["whole"]["same_token"] for r in full),
               "a cache that evicts nothing is the full one, every bit")


def check_no_sinks(tap):
    """A model without sinks is measured once, and its first key is hidden from some rows."""
    words = ["--perturb", f"{AT}:{TO}", "--strategies", f"{FIRST},{RECENT}", "--quantise"]
    results = said(*words, model=BARE)
    tap.report([(r["attention"], r.get("hidden"), r.get("hidden_from")) for r in results if "perturbed" in r]
               == [("as it is", None, None), ("first hidden", 1, 2)], "without sinks: as it is, and the first key hidden")
    tap.report([r["strategy"] for r in results if "strategy" in r] == [*STRATEGIES] and not any(r.get("sinks") for r in results),
               "each cache once")
    both = [(r["sinks"], r["hidden"]) for r in results if "outliers" in r]
    tap.report(both.count((False, False)) == both.count((False, True)) == len(both) / 2, "outliers as it is, and with the first key hidden")
    text = sinkproof("sinks", BARE, "--tokens", ",".join(map(str, TOKENS)), *words).stdout
    labels = {line.split()[1] for line in text.splitlines() if len(line.split()) > 5}
    tap.report(text.count("has a sink of its own") == 3 and not labels & {"without", "sinks"} and "hidden" in labels,
               "and the text says why")
    # Hidden from every other row, it leaves the text without it: positions are relative.
    mine = next(r for r in said("--perturb", f"{AT}:{TO},hide=1@1", model=BARE) if r.get("attention") == "first hidden")
    ran = sinkproof("sinks", BARE, "--tokens", ",".join(map(str, TOKENS[1:])), "--perturb", f"{AT - 1}:{TO}", "--json", "-")
    alone = next(r for r in json.loads(ran.stdout)["results"] if r.get("attention") == "as it is")
    pairs = [(a, b) for x, y in zip(mine["states"], alone["states"]) for a, b in zip(x["off"][1:], y["off"])]
    apart = max(abs(a - b) for a, b in pairs) / max(b for _, b in pairs)
    tap.report(apart < 2 ** -30, f"hidden from all other rows it only makes the next token the first: {apart:.1e}")
    told = [sinkproof("sinks", BARE, "--tokens", ",".join(map(str, TOKENS)), "--perturb", f"{AT}:{TO},hide={h}").stdout for h in ("1@1", "1@2")]
    tap.report(["only makes the next token the first" in text for text in told] == [True, False], "which the text says, of it alone")
    later = next(r for r in said("--perturb", f"{AT}:{TO},hide=1@2", model=BARE) if r.get("attention") == "first hidden")
    tap.report(later["states"][-1]["off"] != mine["states"][-1]["off"], "hidden from a later row on it is another run")
    # A census of a run with masked padding is the census of the text without it.
    for engine, limit in (("ref", 2 ** -40), ("fast", 2 ** -12)):
        padded = said("--hide", "4@4", "--engine", engine, model=BARE)[0]
        alone = json.loads(sinkproof("sinks", BARE, "--tokens", ",".join(map(str, TOKENS[4:])), "--engine", engine, "--json", "-").stdout)["results"][0]
        pairs = [(a, b) for x, y in zip(padded["layers"], alone["layers"]) for h, g in zip(x["heads"], y["heads"])
                 for a, b in zip(h["alpha"][4:], g["alpha"])]
        apart = max(abs(a - b) for a, b in pairs)
        tap.report(apart < limit and len(pairs) == 4 * 10 * 6 and padded["hidden"] == padded["hidden_from"] == 4,
                   f"masked padding, {engine}: the weights of the text alone, {apart:.1e}")
    tap.report(any(h["alpha"][0] == 0 for h in said("--hide", "1@1", model=BARE)[0]["layers"][0]["heads"]) is False
               and all(h["alpha"][0] < 1 / 4 for x in said("--hide", "1@2", model=BARE)[0]["layers"] for h in x["heads"]),
               "hidden, the first key keeps the weight of the rows that see it alone")


# ---- outliers, window -------------------------------------------------------------------------------------------

def check_outliers(tap, base, asked):
    results = {(r["layer"], r["point"]): r for r in asked if "outliers" in r and r["sinks"]}
    same = 0
    for (layer, point), r in results.items():
        x = rows(base[point if layer is None else f"{layer:02}.{point}"])
        ratios = [max(map(abs, row)) / math.sqrt(total(v * v for v in row) / len(row)) for row in x]
        flat = sum((tuple(row) for row in x), ())
        by_row, by_tensor, w = sum((kept(8, tuple(row))[0] for row in x), []), kept(8, flat)[0], len(x[0])
        want = (max(ratios), total(q / N for q in ratios), off(flat, by_tensor) / size(flat), off(flat, by_row) / size(flat),
                off(flat[w:], by_tensor[w:]) / size(flat[w:]), off(flat[w:], by_row[w:]) / size(flat[w:]))
        same += want == tuple(r[k] for k in ("most", "mean", "per_tensor", "per_token", "rest_per_tensor", "rest_per_token"))
    tap.report(same == len(results) == 5 * 4 + 2, f"outliers and eight bits of {same} tensors, to the last bit", [f"{len(results)}"])


def check_window(tap, base, asked, text):
    mine = next(r for r in asked if "handover" in r)
    apart, layers = 0.0, len(mine["layers"])
    holds = takes = decided = 0
    for layer, r in enumerate(mine["layers"]):
        heads, n, keys = base[f"{layer:02}.A9"][0]
        a = base[f"{layer:02}.A9"][1]

        def mean(column, lines):
            return math.fsum(a[(h * n + i) * keys + column] for h in range(heads) for i in lines) / (heads * len(lines))
        want = {"first_before": mean(0, range(1, WINDOW)), "first_after": mean(0, range(WINDOW, n)),
                "sink_before": mean(n, range(1, WINDOW)), "sink_after": mean(n, range(WINDOW, n))}
        apart = largest(apart, *(abs(r[k] - want[k]) for k in want))
        if layer % 2 == 0:
            decided += 1
            holds += want["sink_after"] >= want["first_before"]
            takes += want["sink_after"] - want["sink_before"] >= want["first_before"]
    bound = 2 * (2 * N + 10 + 900 + 10 * N) * 2 ** -53 * 8  # weights and means below 1, as of the paths
    tap.report(apart <= bound and all(r["first_after"] == 0 for r in mine["layers"][::2]),
               f"the window's means from the engine's own maps: worst={apart / bound:.3g} bound=1")

    def verdict(k):
        return "true" if k == decided else "false" if k == 0 else "undecided"
    tap.report((mine["decided"], mine["holds"], mine["takes"]) == (decided, holds, takes) and layers == 4
               and (mine["stands_in"], mine["takes_over"]) == (verdict(holds), verdict(takes)), f"its answer follows: {holds}, {takes} of {decided}")
    tap.report(f"or more, in {holds}:" in text and f"takes over is {verdict(takes)}." in text
               and "These weights are drawn, not trained" in text, "in words as in JSON")
    learned = next(r for r in said("--window", model="synthetic:tiny") if "handover" in r)
    slid = learned["layers"][::2]
    holds, takes = (sum(gain(r) >= r["first_before"] for r in slid) for gain in
                    (lambda r: r["sink_after"], lambda r: r["sink_after"] - r["sink_before"]))
    tap.report((learned["holds"], learned["takes"]) == (holds, takes) and holds > takes, f"beside larger sinks, too: {holds}, {takes} of {len(slid)}")
    short = sinkproof("sinks", MODEL, "--tokens", "1,2,3,4,5,6,7,8", "--window")
    tap.report("undecided, no row of a window has left it" in short.stdout and "true" not in short.stdout, "undecided while no row has left the first token")


def check_refusals(tap):
    for words, sentence in ((("--perturb", "12:1"), "expected POS:ID with POS below 12"),
                            (("--perturb", f"{AT}:{TOKENS[AT]}"), "is 34 already"),
                            (("--perturb", "drawn,lengths=13"), "expected 1 to 12"),
                            (("--perturb", "9:3,lengths=4"), "token 9 is not in the first 4"),
                            (("--perturb", "drawn,raise=much"), '"raise=much"'),
                            (("--perturb", "drawn,hide=2@1"), "K from 1 to R, R below 12"),
                            (("--perturb", "3:1,lengths=5,hide=1@5"), "from row 5 on, expected a row of the first 5"),
                            (("--strategies", "4"), "expected FIRST,RECENT"), (("--strategies", "4,0"), "expected FIRST,RECENT")):
        ran = sinkproof("sinks", MODEL, "--tokens", ",".join(map(str, TOKENS)), *words)
        tap.report(ran.returncode == 3 and sentence in ran.stderr and not ran.stdout, f"{' '.join(words)} is refused", [ran.stderr])
    for words, sentence in ((("--hide", "2@1"), "K from 1 to R"), (("--hide", "1@2", "--quantise"), "expected no --quantise")):
        ran = sinkproof("sinks", BARE, "--tokens", "1,2,3", *words)
        tap.report(ran.returncode == 2 and sentence in ran.stderr, f"{' '.join(words)} is refused", [ran.stderr])
    raised = sinkproof("sinks", BARE, "--tokens", "1,2,3,4", "--perturb", "1:9,raise=1")
    tap.report(raised.returncode == 3 and "expected a model with sinks, found none" in raised.stderr, "no sinks, none to raise", [raised.stderr])
    drawn = [next(r for r in said("--perturb", f"drawn,lengths=3,seed={s}") if "perturbed" in r) for s in (1, 1, 2)]
    tap.report(drawn[0] == drawn[1] and (drawn[0]["position"], drawn[0]["to"]) != (drawn[2]["position"], drawn[2]["to"]), "a seed draws the token")
    fast = sinkproof("sinks", MODEL, "--tokens", "1,2,3,4,5", "--engine", "fast", "--perturb", "1:9")
    tap.report(fast.returncode == 0 and "every one the same in both runs" in fast.stdout, "the fast path too", [fast.stderr])


def main():
    tap = Tap()
    words = ["--perturb", f"{AT}:{TO},lengths=7+{N},raise=2", "--strategies", f"{FIRST},{RECENT}", "--quantise", "--window"]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        ran = sinkproof("sinks", MODEL, "--tokens", ",".join(map(str, TOKENS)), *words, "--json", str(work / "json"))
        assert ran.returncode == 0, ran.stderr
        asked = json.loads((work / "json").read_text(encoding="utf-8"))["results"]
        base = trace(work, "base", TOKENS)
        check_perturb(tap, work, base, asked)
    check_paths(tap, base, asked)
    check_strategies(tap, base, asked)
    check_no_sinks(tap)
    check_outliers(tap, base, asked)
    check_window(tap, base, asked, ran.stdout)
    check_refusals(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
