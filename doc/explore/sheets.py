# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Takes the pictures of the pages that compute which the book shows: each page at three widths, light and dark.

    python3 doc/explore/sheets.py EXPLORE OUT [SINKS.html]      EXPLORE is build/explore/explore; needs Chromium

SINKS.html: a page of `sinkproof sinks --html`, in chapter 25 that of SmolLM2 on

    The old keeper wrote a letter to the sea, and the sea did not answer. In the evening the lamp was lit again.
"""

import base64
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/shared"), str(ROOT / "tests/doc")]
import browser  # noqa: E402
from explore_hand import Page  # noqa: E402
from explore_page import SCREENS  # noqa: E402

# What each page shows: a row with a wrong form, a trained head, a mistake's verdict.
STATES = {
    "index": "#p=bf16&f=scaled&w=4&b=2.5&s=1,2,-1,0.5,-2,1.5&v=2:0.5,-1:1.5,-2:-0.5,1:2,0.5:-2,-1.5:1&c=1:-1.5",
    "layer": "#r=trained&l=12&h=2&q=8&m=none",
    "back": "#f=renormalised&w=6&b=1&s=2,-1,0.5,1.5,-2,1&v=2:0.5,-1:1.5,-2:-0.5,1:2,0.5:-2,-1.5:1&d=1:-1&l=0.5",
    "lines": "#p=bf16&f=right&w=6&b=0.75&s=2,-1,0.5,1.5,-2,1&v=2:0.5,-1:1.5,-2:-0.5,1:2,0.5:-2,-1.5:1&c=1:-1.5",
    "sum": "#t=bf16&o=pairwise&x=lost&r=3&s=3,1.5,0.5,2,4.5,1,2.5,0.75,1,2,3,4",
}
SHEET = """<!doctype html><style>body {{ margin: 8px; background: #888; display: grid; gap: 8px; align-items: start;
grid-template-columns: 5.2fr 3.5fr 1.3fr; width: 1384px }} img {{ width: 100%; display: block }}
div {{ overflow: hidden; max-height: 440px }}</style>{}"""


def sheet(engine, show, phone_begins, folder, out):
    """Six pictures in one: `show` opens the page and says what is wrong; a phone begins at an element."""
    shots = []
    for dark in (False, True):
        for name, (width, height, phone) in SCREENS.items():
            engine.screen(width, height, phone, dark)
            wrong = show()
            if wrong:
                sys.exit(f"sheets: {out.stem}: {wrong}")
            if phone:
                engine.value(f"document.querySelector('{phone_begins}').scrollIntoView(); 0")
            shot = folder / f"{name}{dark}.png"
            engine.picture(shot)
            shots.append(f'<div><img src="data:image/png;base64,{base64.b64encode(shot.read_bytes()).decode()}"></div>')
    whole = folder / "sheet.html"
    whole.write_text(SHEET.format("".join(shots)), encoding="utf-8")
    engine.screen(1400, 700)
    engine.open(whole.as_uri())
    height = engine.value("Math.ceil(document.body.getBoundingClientRect().bottom) + 8")
    engine.screen(1400, height)
    options = {"format": "webp", "quality": 60}
    out.write_bytes(base64.b64decode(engine.call("Page.captureScreenshot", options)["data"]))
    print(f"sheets: {out}, {out.stat().st_size} bytes")


def main(explore, out, sinks=None):
    program = browser.find()
    if program is None:
        sys.exit("sheets: no chromium")
    with browser.Browser(program, 60) as engine, tempfile.TemporaryDirectory() as folder:
        for stem in STATES:
            page = Page(engine, pathlib.Path(explore, f"{stem}.html").resolve())
            address = STATES[stem]
            sheet(engine, lambda: page.open(address), ".panels", pathlib.Path(folder), pathlib.Path(out, f"explore-{stem}.webp"))
        if sinks is not None:
            address = pathlib.Path(sinks).resolve().as_uri()
            sheet(engine, lambda: engine.open(address)[0], "figure", pathlib.Path(folder), pathlib.Path(out, "sinks-page.webp"))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
