# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The pictures and the tables of engines against certified truth follow from what `make truth-engines` kept, and what
is kept is what `judge --truth-alone` says, asked here of a small model.
"""
import json
import math
import os
import pathlib
import re
import sys
import tempfile
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("doc/book", "tests/audit", "tests/gates", "tests/shared")]
import doc_truth_engines  # noqa: E402
import truth_of_engines as made  # noqa: E402
from checkpoints import sinkproof  # noqa: E402
from tap import Tap  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
LAYERS = {"truth-engines": 24, "truth-smollm2": 30}
CHOICES = {"truth-engines": [1152, 1152], "truth-smollm2": [0, 0]}


def kept(tap, name, told):
    """What is kept: enclosed, of all layers, as narrow as three digits ask, of a truth that is certified whole."""
    for engine in told["engines"]:
        layers = sorted(p["layer"] for p in engine["points"] if p["point"] == "M12")
        wide = [p for p in engine["points"] for lo, hi in (p["rms"], p["worst"]) if not (0 <= lo <= hi and hi - lo <= 1e-8 * hi)]
        tap.report(engine["label"] == "enclosed" and {p["label"] for p in engine["points"]} == {"enclosed"} and not wide and
                   engine["argmax_certified"] == [48, 48] and engine["routing_certified"] == CHOICES[name] and
                   (layers == list(range(LAYERS[name])) or engine["engine"] == "h200" and layers == [0, 11, 23]),
                   f"{name}, {engine['engine']}: {len(layers)} layers enclosed to eight digits", [layers, wide[:2]])


def drawn(tap, name, told):
    """Every line of the picture has the error of every layer where its axis says it."""
    picture = tree.fromstring((ROOT / f"doc/book/figures/{name}.svg").read_text(encoding="utf-8"))
    texts = [(float(t.get("x")), float(t.get("y")), "".join(t.itertext())) for t in picture.iter(f"{SVG}text")]
    power = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    ticks = sorted((int(words[2:].translate(power)), y - 5) for _, y, words in texts if re.match("10[⁻⁰-⁹]", words))
    (low, bottom), (high, top) = ticks[0], ticks[-1]
    names = {words: y for _, y, words in texts}
    paths = [[float(x) for x in re.findall(r"-?[\d.]+", p.get("d"))] for p in picture.iter(f"{SVG}path")]
    lines = [list(zip(p[::2], p[1::2])) for p in paths if len(p) == 2 * LAYERS[name]]
    dots = [(float(d.get("cx")), float(d.get("cy"))) for d in picture.iter(f"{SVG}circle")]
    for engine in told["engines"]:
        errors = doc_truth_engines.by_layer(engine)
        want = [bottom + (math.log10(errors[layer]) - low) / (high - low) * (top - bottom) for layer in sorted(errors)]
        places = dots[:len(want)] if engine["engine"] == "h200" else lines.pop(0)
        off = max(abs(y - w) for (_, y), w in zip(places, want))
        tap.report(len(places) == len(want) and off <= 0.11 and engine["title"] in names,
                   f"{name}.svg has the {len(want)} errors of {engine['title']}, within {off:.2f} of its 270 units")
    tap.report(not lines, f"{name}.svg has no other line")


def shown(tap, name):
    page = (ROOT / "doc/20-engines-judged.md").read_text(encoding="utf-8")
    table = page[page.index(f"<!-- table {name} -->"):].split("\n\n")[1].splitlines()
    tap.report(["", *table] == doc_truth_engines.table(ROOT, name), f"chapter 20 shows the {len(table) - 2} engines of {name}", table)


def said(tap, told):
    """The numbers in the chapter's sentences."""
    page = " ".join((ROOT / "doc/20-engines-judged.md").read_text(encoding="utf-8").split())
    drawn, trained = ([each for each in told[name]["engines"]] for name in doc_truth_engines.NAMES)
    rounded = [each for each in drawn if each["policy"] != "f32"]
    ends = [doc_truth_engines.by_layer(each)[23] for each in rounded]
    others = [100 * each["experts"]["otherwise"] / each["experts"]["choices"] for each in rounded]
    exact = [each for each in drawn + trained if each["policy"] == "f32"]
    words = [f"ends {min(ends):.3g} to {max(ends):.3g} away, and makes {min(others):.0f} % to {max(others):.0f} % of the choices"]
    of = {each["engine"]: each for each in trained}
    for engine in ("fast-bf16", "llama"):
        agrees = of[engine]["argmax"]["agrees"]
        words.append(f"{doc_truth_engines.logits(of[engine]):.2g} off at the logits and agrees in {agrees} of 48 argmaxes")
    lost = [sentence for sentence in words if sentence not in page]
    wrong = [each["engine"] for each in exact if each["argmax"]["agrees"] != 48 or each["experts"]["otherwise"]]
    tap.report(len(exact) == 4 and not lost and not wrong, f"chapter 20 says in words: {'; '.join(words)}", lost + wrong)


def asked_again(tap):
    """One engine on a small model: kept is what the command says."""
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        model, tokens = "synthetic:tiny", "5,3,1,200,17"
        trace = made.make(model, tokens, "fast", folder)
        sinkproof("truth", model, "--tokens", tokens, "--trace", str(folder / "truth.st"), "--points", "layers")
        told = made.compared(model, "fast", trace, folder / "truth.st")
        code, text, _ = sinkproof("judge", model, str(trace), "--policy", "f32", "--truth", str(folder / "truth.st"), "--json", "-")
        rows = {r["id"]: r for r in json.loads(text)["results"]}
        same = all(p["rms"] == rows[f"{p['layer']:02}.M12.truth"]["rms"] for p in told["points"] if p["point"] == "M12")
        tap.report(code == 0 and same and len(doc_truth_engines.by_layer(told)) == 4 and told["argmax"] == rows["truth"]["argmax"] and
                   told["metadata"]["engine"] == "sinkproof fast", "of a small model is kept what the judge says", [code, told])


def main():
    tap, told = Tap(), {name: doc_truth_engines.kept(ROOT, name) for name in doc_truth_engines.NAMES}
    os.environ["OMP_NUM_THREADS"] = "1"
    for name, each in told.items():
        kept(tap, name, each)
        drawn(tap, name, each)
        shown(tap, name)
    said(tap, told)
    asked_again(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
