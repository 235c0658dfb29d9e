# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The page "One row, backwards" in a browser: every handle and control, and what it shows. Prints TAP.

    EXPLORE=FOLDER NODE=PACKAGES python3 tests/doc/explore_back.py [PICTURES]

Its numbers are compared in explore_numbers.py.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import browser  # noqa: E402
from explore_hand import Page  # noqa: E402
from explore_numbers import BACK_BREAKS  # noqa: E402
from explore_page import SCREENS, check_handles, check_screens  # noqa: E402
from tap import Tap  # noqa: E402

def check_backward(page, report):
    """The backward page: each form by mouse and by keys, dLSE, and the numbers that it shows beside the engine's."""
    bad = page.open("#l=0.5")
    for k, (form, broken) in enumerate(BACK_BREAKS.items()):
        page.click("input[name=form]", k)
        now = page.state()
        if tuple(now["broken"]) != broken or tuple(now["glance"]) != broken or (k and f"f={form}&" not in now["hash"]):
            bad.append(f"{form}: broken {now['broken']}, {now['hash']}")
    bad += page.open()
    page.focus("#lse")
    page.key("ArrowRight")
    bad += [] if "l=0.25" in page.state()["hash"] else ["the arrow key does not move dLSE"]
    page.click("#undo")
    bad += [] if page.state()["hash"] == page.value("toAddress(START)") else ["not undone"]
    for address in ("#f=right&w=3&b=-0.5&s=1,2.25,-3&v=1:2,-1:0.5,0:-2&d=0.5:0.25&l=-1", "#f=__proto__&d=:&l=NaN&s=1e9"):
        bad += page.open(address)
        bad += page.value("""(async () => {
          const state = fromAddress(location.hash), r = (await startBackward(exploreWasm))(state), wrong = [];
          const cells = [...document.querySelectorAll("#rows tr")].map((tr) => tr.children[3].textContent);
          const wanted = [...r.dScore.slice(0, state.keys), r.dSink].map(exact);
          if (String(cells) !== String(wanted)) wrong.push(`shown ${cells}, expected ${wanted}`);
          const bars = [...document.querySelectorAll("#gradients .bar")];
          const heights = bars.map((bar) => +bar.getAttribute("height")), most = Math.max(...heights);
          const sizes = [...r.dScore.slice(0, state.keys), r.dSink].map(Math.abs), top = Math.max(...sizes);
          heights.forEach((h, k) => { if (Math.abs(h - Math.max(1, sizes[k] * most / top)) > 0.01) wrong.push(`bar ${k}: ${h}`); });
          const [line] = document.querySelectorAll("#loss .tangent");
          const slope = -(line.getAttribute("y2") - line.getAttribute("y1")) / (line.getAttribute("x2") - line.getAttribute("x1"));
          const span = Math.max(Math.max(...r.curve, r.loss) - Math.min(...r.curve, r.loss), 0.1);
          if (!(Math.abs(slope - r.dSink * 220 / span / 19) < 1e-6 * (1 + Math.abs(slope)))) wrong.push(`slope ${slope}`);
          return wrong; })()""")
    report(not bad, f"explore.backward by hand: faults={len(bad)}", bad)


def main(words):
    file, tap = pathlib.Path(os.environ.get("EXPLORE", "build/explore/explore"), "back.html").resolve(), Tap()
    program = browser.find()
    if program is None or not (file.parent / "wasm.js").is_file():
        why = "no chromium" if program is None else "no WebAssembly: its packages are missing"
        print(f"1..0 # SKIP {why}: the page that computes is not used")
        return 0
    with browser.Browser(program, 60) as engine:
        page = Page(engine, file)
        engine.screen(*SCREENS["wide"])
        check_handles(page, tap.report)
        check_backward(page, tap.report)
        check_screens(page, tap.report, pathlib.Path(words[0]) if words else None)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
