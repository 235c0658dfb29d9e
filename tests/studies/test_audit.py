# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof audit`: its figures beside those that Python computes from traces of the same runs; the
budget where the answer is known; text, JSON and page alike; what is refused.
"""
import json
import math
import os
import re
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "shared"), os.path.join(TESTS, "audit")]
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402
from shares import percent  # noqa: E402
from test_report import Page, faults  # noqa: E402

MODEL, TOKENS = "synthetic:tiny", "random:24"


def read(path):
    """{name: [numbers]} of a trace in F64, F32 and I32."""
    return {name: checkpoints.numbers_of(dtype, raw) for name, (dtype, _, raw) in checkpoints.read(path)[0].items()}


def audit(*words, **variables):
    status, said, wrong = sinkproof("audit", MODEL, "--tokens", TOKENS, *words, "--json", "-", **variables)
    return json.loads(said)["results"] if status == 0 else (status, wrong)


def relative(engine, truth):
    finite = [(e, t) for e, t in zip(engine, truth) if e != t]
    return math.sqrt(sum((e - t) ** 2 for e, t in finite) / sum(t * t for t in truth if math.isfinite(t)))


def close(a, b, rounding=1e-9):
    """Two orders of the same sums in binary64."""
    return abs(a - b) <= rounding * abs(b)


def named(point):
    return point["point"] if point["point"][0] in "TF" else f"{point['layer']:02}.{point['point']}"


def traces(work):
    """f32 flips no expert here: its errors are those of two traces, point by point."""
    real, f32 = work / "real.safetensors", work / "f32.safetensors"
    for policy, path in (("real-f64", real), ("f32", f32)):
        sinkproof("run", MODEL, "--tokens", TOKENS, "--policy", policy, "--trace", str(path))
    truth, engine = read(real), read(f32)
    model, result = audit("--policy", "f32", "--no-budget")
    off = [(named(p), p["error"], relative(engine[named(p)], truth[named(p)])) for p in result["points"]]
    wrong = [x for x in off if not close(x[1], x[2])]
    report(result["flips"] == 0 and not wrong and len(off) > 90,
           f"audit.error f32 as from two traces: points={len(off)} wrong={len(wrong)}", wrong)
    report(close(result["final"], relative(engine["F1"], truth["F1"])) and
           close(result["logits"], relative(engine["F2"], truth["F2"])) and result["budget"] is None,
           f"audit.error F1 {result['final']:.3g}, F2 {result['logits']:.3g}, and no budget unasked", [])
    most = {"f32": 2 ** 128 * (1 - 2 ** -24)}
    wrong = [named(p) for p in result["points"] if not close(p["largest"], max(abs(x) for x in truth[named(p)] if math.isfinite(x)))
             or not close(p["headroom_bits"], math.log2(most["f32"] / p["largest"]))]
    report(not wrong, f"audit.headroom of float32, from the largest value of each point: wrong={len(wrong)}", wrong)
    n = len(truth["tokens"])
    bad = []
    for layer, said in enumerate(model["layers"]):
        a9 = truth[f"{layer:02}.A9"]
        mass = sorted(sum(a9[r:r + n]) for r in range(0, len(a9), n + 1))
        bad += [] if close(said["mass_least"], mass[0]) and close(said["mass_median"], mass[len(mass) // 2]) else [layer]
    report(not bad, f"audit.mass least and median of 1 - alpha_s, from A9: layers={len(model['layers'])}", bad)
    margins = []
    for layer in range(len(model["layers"])):
        m2, m3 = truth[f"{layer:02}.M2"], truth[f"{layer:02}.M3"]
        experts, k = len(m2) // n, len(m3) // n
        for i in range(n):
            chosen, row = set(m3[i * k:(i + 1) * k]), m2[i * experts:(i + 1) * experts]
            margins.append((min(row[e] for e in chosen) - max(x for e, x in enumerate(row) if e not in chosen), layer, i))
    thinnest = [(t["margin"], t["layer"], t["token"]) for t in model["thinnest"]]
    report(thinnest == sorted(margins)[:5], f"audit.thinnest choices of experts: {thinnest[0]}", [str(thinnest), str(sorted(margins)[:5])])


def budget(work):
    """One rounding is the whole; parts of squares; and no matter how many threads."""
    _, one = audit("--policy", "real-f64,M8.alpha=bf16")
    parts = one["budget"]["parts"]
    report([p["point"] for p in parts] == ["M8.alpha"] and parts[0]["error"] == one["final"] == one["budget"]["quadrature"]
           and parts[0]["share"] == 1 and close(one["budget"]["correlation"], 1),
           f"audit.budget one rounding is the whole error: {one['final']:.3g}", [str(one["budget"])])
    _, none = audit("--policy", "real-f64")
    report(none["final"] == 0 and none["flips"] == 0 and none["budget"] is None, "audit.budget over the reals there is no error", [])
    results = audit("--policy", "openai-bf16,f16,M2=real", OMP_NUM_THREADS="2")
    report(results == audit("--policy", "openai-bf16,f16,M2=real", OMP_NUM_THREADS="1"),
           "audit.threads the same with one thread and two", [])
    for r in results[1:]:
        b = r["budget"]
        total = math.sqrt(sum(p["error"] ** 2 for p in b["parts"]))
        shares = all(close(p["share"], (p["error"] / total) ** 2) for p in b["parts"] if p["error"] > 0)
        ordered = [p["error"] for p in b["parts"]] == sorted((p["error"] for p in b["parts"]), reverse=True)
        report(close(total, b["quadrature"]) and shares and ordered and abs(b["correlation"]) <= 1,
               f"audit.budget {r['policy']}: parts={len(b['parts'])} in quadrature {b['quadrature']:.3g}, together {r['final']:.3g}", [])
    report([r["policy"] for r in results[1:]] == ["openai-bf16", "f16,M2=real"]
           and not any(p["point"] in ("F2", "M2") for p in results[2]["budget"]["parts"]),
           "audit.policy commas part policies, an override stays with its own", [])
    alone = audit("--policy", "real-f64,A13=bf16", "--no-budget")[1]["final"]
    part = next(p["error"] for p in results[1]["budget"]["parts"] if p["point"] == "A13")
    report(alone == part, f"audit.budget a part is the run with that rounding alone: A13 {part:.3g}", [str(alone)])
    growth = [layer["growth"] for layer in results[0]["layers"]]
    report(all(0.1 < g < 100 for g in growth), f"audit.growth of a perturbation, layer by layer: {growth}", [])


def shown(work):
    """The text and the page hold the JSON's figures; the text fits 100 columns."""
    page = work / "page.html"
    status, said, _ = sinkproof("audit", MODEL, "--tokens", TOKENS, "--policy", "f32,bf16", "--html", str(page), "--json", str(work / "j"))
    results = json.loads((work / "j").read_text())["results"]
    looked = Page(page.read_text(encoding="utf-8"))
    wrong = faults(looked) + [line for line in said.splitlines() if len(line) > 100]
    for r in results[1:]:
        for number in (r["final"], r["logits"], r["budget"]["quadrature"], r["budget"]["parts"][0]["error"]):
            wrong += [f"{number:.3g} is not in the {what}" for what, text in (("text", said), ("page", looked.text)) if f"{number:.3g}" not in text]
        for p in r["budget"]["parts"]:
            row = [p["point"], f"{p['error']:.3g}", "", percent(p["share"], 1)]
            wrong += [] if row in [c[:4] for c in looked.cells] else [f"{p['point']} of {r['policy']}: {row}"]
    for layer, m in enumerate(results[0]["layers"]):
        lost = f"{-math.log2(m['mass_least']):.1f}"
        wrong += [] if [str(layer), f"{m['mass_least']:.3g}", f"{m['mass_median']:.3g}", lost, f"{m['growth']:.3g}"] in looked.cells else [f"layer {layer}"]
        line = rf"^{layer} +{m['mass_least']:.3g} \(med {m['mass_median']:.2g}\) +{lost} +{m['growth']:.3g}$"
        wrong += [] if re.search(line, said, re.M) else [f"layer {layer} of the text"]
    report(status == 0 and not wrong and looked.tags.count("svg") > 40, f"audit.page and text say what the JSON says: faults={len(wrong)}", wrong)


def refused(work):
    for what, exits, words in (("a policy that is not known", 2, ("--policy", "f33")), ("no policy", 2, ("--policy", "")),
                               ("an override without a policy", 2, ("--policy", "M2=bf16")),
                               ("a token beyond the vocabulary", 3, ("--tokens", "1,999999")),
                               ("a page that cannot be written", 3, ("--html", str(work / "no" / "p.html"), "--no-budget"))):
        status, said, wrong = sinkproof("audit", MODEL, *words)
        report(status == exits and wrong.startswith("sinkproof audit:"), f"audit.refused {what}: exit {status}, {wrong.splitlines()[:1]}",
               [said[:200]])
    status, _, wrong = sinkproof("audit")
    report(status == 2, "audit.refused no MODEL: exit 2", [wrong])


if __name__ == "__main__":
    sys.exit(checkpoints.run(traces, budget, shown, refused))
