# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The page "One layer, replayed": its recordings beside runs made now, and every control in a browser. Prints TAP.

    SINKPROOF=PROGRAM EXPLORE=FOLDER NODE=PACKAGES python3 tests/doc/explore_layer.py [PICTURES]

The tiny model is run again, with each mistake; SmolLM2 only where build/models/smollm2.gguf is, else that part is
skipped by name. A recorded number may differ by one unit of its last decimal, since another exponential may round it to
the other side; what the judge calls the first divergence and the cause may not differ.
"""

import json
import os
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/shared"), str(ROOT / "doc/explore")]
import browser  # noqa: E402
import record  # noqa: E402
from explore_hand import Page  # noqa: E402
from explore_page import SCREENS, check_screens  # noqa: E402
from tap import Tap  # noqa: E402

LAST = 1.01 * 10**-record.DIGITS
TRAINED = ROOT / "build/models/smollm2.gguf"


def numbers(part):
    """All numbers of a recording, in their order; None where a key is hidden."""
    if isinstance(part, dict):
        return [x for key in sorted(part) for x in numbers(part[key])]
    return [x for each in part for x in numbers(each)] if isinstance(part, list) else [part]


def differences(kept, made):
    faults = []
    for key in ("score", "value", "states", "sink"):
        old, new = numbers(kept.get(key, [])), numbers(made.get(key, []))
        if len(old) != len(new):
            faults.append(f"{key}: {len(old)} numbers, {len(new)} now")
        far = [(a, b) for a, b in zip(old, new) if (a is None) != (b is None) or (a is not None and not abs(a - b) <= LAST)]
        faults += [f"{key}: {a}, {b} now" for a, b in far[:2]]
    return faults


def causes(said):
    """What a verdict must not change in: where it diverges, how it ends, and the causes that are named."""
    return re.findall(r"^First divergence: \S+|^Verdict .*|^    (?:by|or) .*(?:\n      .*)?", said, re.MULTILINE)


def check_recordings(program, runs, report):
    with tempfile.TemporaryDirectory() as folder:
        made = record.tiny(program, folder)
        faults = differences(runs["tiny"], made)
        report(not faults, f"explore.recorded tiny: differences={len(faults)}", faults)
        for kept, now in zip(runs["tiny"]["mistakes"], made["mistakes"], strict=True):
            faults = differences(kept, now)
            named = causes(kept["said"])
            faults += [] if named == causes(now["said"]) else [f"the judge says {causes(now['said'])}", f"not {named}"]
            faults += [] if "(exit 1)" in kept["said"] and len(named) > 2 else ["no cause is named"]
            report(not faults, f"explore.recorded {kept['name']}: differences={len(faults)}", faults)
        if not TRAINED.is_file():
            why = "there is no build/models/smollm2.gguf: make smollm2"
            if os.environ.get("CI"):  # a landing fetches no model, and counts a skip as a failure
                print(f"# explore.recorded trained: not asked, {why}")
            else:
                report(True, f"explore.recorded trained # SKIP {why}")
            return
        made = record.trained(program, str(TRAINED), "trained", f"text:{record.TEXT}", folder)
        faults = differences(runs["trained"], made) + ([] if made["words"] == runs["trained"]["words"] else ["words"])
        report(not faults, f"explore.recorded trained: differences={len(faults)}", faults)


def hash_of(page):
    page.state()
    return page.value("location.hash")


def check_controls(page, report):
    """Each control by mouse, by touch and by the keyboard."""
    page.engine.screen(*SCREENS["wide"])
    for way in ("mouse", "touch", "keyboard"):
        bad = page.open()
        page.engine.call("Emulation.setTouchEmulationEnabled", {"enabled": way == "touch", "maxTouchPoints": 1})
        choose = page.touch if way == "touch" else page.click

        def expect(what, pattern):
            now = hash_of(page)
            bad.extend([] if re.search(pattern, now) else [f"{what}: {now}, expected {pattern}"])

        if way == "keyboard":
            for name, key, pattern in (("layer", "ArrowRight", "l=13"), ("head", "Home", "h=0&"), ("layer", "End", "l=29")):
                page.focus(f"#{name}")
                page.key(key)
                expect(f"{key} on {name}", pattern)
            page.focus("#map button", 8)
            page.key("ArrowUp")
            expect("ArrowUp on a row", "q=7")
            page.key("ArrowUp")
            expect("ArrowUp on the row that has the focus", "q=6")
            page.focus("input[name=run]:checked")
            page.key("ArrowRight")
            expect("ArrowRight on the run", "r=repeated")
            page.focus("input[name=mistake]:checked")
            page.key("ArrowRight")
            expect("ArrowRight on the mistake", "r=tiny.*m=dropped")
            for _ in range(20):
                page.key("z", 2)
        else:
            x, y = page.place("#layer")
            choose("#layer")
            expect("the middle of the layers", "l=1[45]")
            choose("#head")
            expect("the middle of the heads", "h=4")
            choose("#map button", 3)
            expect("a row", "q=3")
            choose("#heads .share", 9 * 20 + 5)
            expect("a head of the picture", "l=20&h=5")
            choose("input[name=run]", 1)
            expect("a run", "r=repeated&l=20&h=5&q=3&m=none")
            choose("input[name=mistake]", 5)
            expect("a mistake", "r=tiny&l=3&h=5&q=3&m=wide")
            choose("#undo")
            expect("undo", "r=repeated&l=20")
            choose("#redo")
            expect("redo", "m=wide")
            choose("#again")
        expect("the start again", re.escape(page.value("toAddress(START)")) if way != "keyboard" else "")
        if way == "keyboard":
            bad.extend([] if page.value("toAddress(fromAddress(location.hash)) === toAddress(START)") else ["not undone"])
        report(not bad, f"explore.layer by {way}: faults={len(bad)}", bad)
    page.engine.call("Emulation.setTouchEmulationEnabled", {"enabled": False})
    bad = []
    for nonsense in ("#r=__proto__&l=NaN&h=x&q=-1e99&m=constructor", "#l=1e9&h=1e9&q=1e9", "#r=&m=&l=&h=&q="):
        bad += page.open(nonsense)
        bad += page.value("""(() => { const s = fromAddress(location.hash), run = RUNS[s.run];
          return s.layer in run.score && s.head in run.score[0] && s.row in run.words ? [] : [location.hash]; })()""")
    report(not bad, f"explore.layer address: faults={len(bad)}", bad)


# The weights that the page shows beside the softmax of the recorded scores, made here in plain arithmetic; the row that
# it opens beside the row that it shows.
SHOWN = """(async () => {
  const state = fromAddress(location.hash), run = shownRun(state), wrong = [];
  const scores = run.score[state.layer][state.head][state.row].filter((s) => s !== null);
  const sink = run.sink ? run.sink[state.layer][state.head] : null;
  const all_ = sink === null ? scores : [sink, ...scores];
  const most = Math.max(...all_), z = all_.reduce((sum, s) => sum + Math.exp(s - most), 0);
  const wanted = (run.sink && sink === null ? [0] : []).concat(all_.map((s) => Math.exp(s - most) / z));
  const got = [...document.querySelectorAll("#row dd")].map((e) => Number(e.textContent.replace("−", "-")));
  if (got.length !== wanted.length) wrong.push(`${got.length} weights, expected ${wanted.length}`);
  got.forEach((w, k) => { if (!(Math.abs(w - wanted[k]) <= 1e-6 * wanted[k])) wrong.push(`weight ${k}: ${w}, expected ${wanted[k]}`); });
  const cells = [...document.querySelectorAll("#map tr.chosen td:not(.hidden)")].map((e) => e.textContent);
  const inMap = wanted.map((w) => String(Math.round(100 * w)));
  if (String(cells) !== String(inMap)) wrong.push(`the map has ${cells}, expected ${inMap}`);
  const link = document.getElementById("to-row");
  return { wrong, wanted, open: link.hidden ? null : link.getAttribute("href"), said: document.getElementById("to-row-said").textContent };
})()"""
OPENED = """(async () => { const s = fromAddress(location.hash), r = (await startEngine(exploreWasm))(s);
  return [r.alphaSink, ...r.alpha.slice(0, s.keys)]; })()"""


def check_rows(page, file, report):
    bad, count = [], 0
    other = Page(page.engine, file.with_name("index.html"))
    for address, opens in (
        ("#r=trained&l=12&h=2&q=8&m=none", True),
        ("#r=trained&l=0&h=0&q=0&m=none", False),
        ("#r=trained&l=29&h=8&q=4&m=none", True),
        ("#r=repeated&l=20&h=5&q=8&m=none", True),
        ("#r=tiny&l=0&h=3&q=11&m=none", True),
        ("#r=tiny&l=1&h=3&q=11&m=none", False),
        ("#r=tiny&l=0&h=3&q=11&m=wide", False),
        ("#r=tiny&l=2&h=9&q=5&m=doubled", True),
        ("#r=tiny&l=2&h=9&q=5&m=dropped", False),
    ):
        bad += page.open(address)
        shown = page.value(SHOWN)
        bad += [f"{address}: {fault}" for fault in shown["wrong"]]
        if (shown["open"] is not None) is not opens or (not opens and not shown["said"]):
            bad.append(f"{address}: opens {shown['open']}, says {shown['said']}")
        if shown["open"]:
            count += 1
            bad += other.open(shown["open"].removeprefix("index.html"))
            weights = other.value(OPENED)
            # What that page's grid of four decimals and its range leave of a weight.
            far = [(a, b) for a, b in zip(weights, shown["wanted"], strict=True) if not abs(a - b) <= 3e-4 * b + 2e-7]
            bad += [f"{address}: opened, {a} is not {b}" for a, b in far]
    report(not bad and count == 5, f"explore.layer rows: opened={count} faults={len(bad)}", bad)


def main(words):
    file, tap = pathlib.Path(os.environ.get("EXPLORE", "build/explore/explore"), "layer.html").resolve(), Tap()
    runs = {run["name"]: run for run in json.loads((ROOT / "doc/explore/layers.json").read_text("utf-8"))["runs"]}
    check_recordings(os.environ.get("SINKPROOF", "build/release/sinkproof"), runs, tap.report)
    program = browser.find()
    if program is None or not (file.parent / "wasm.js").is_file():
        why = "no chromium" if program is None else "no WebAssembly: its packages are missing"
        tap.report(True, f"explore.layer in a browser # SKIP {why}")
        return tap.done()
    with browser.Browser(program, 60) as engine:
        page = Page(engine, file)
        check_controls(page, tap.report)
        check_rows(page, file, tap.report)
        check_screens(page, tap.report, pathlib.Path(words[0]) if words else None)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
