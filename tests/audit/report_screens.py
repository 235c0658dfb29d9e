# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Looks at the pages of `judge --html`, `sinks --html` and `gpt2 --html` in a real browser: a phone, a laptop, a large
screen, light and dark; prints TAP. Without Chromium it is skipped, by name.

    python3 tests/audit/report_screens.py [PICTURES]       the pages are kept there as PNG
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "shared"), str(ROOT / "tests" / "doc")]
import book_screenshots  # noqa: E402
import browser  # noqa: E402
from tap import Tap  # noqa: E402

PROGRAM = os.environ.get("SINKPROOF", "build/release/sinkproof")
# Text against what is behind it: the contrast that WCAG 2 asks of text of this size, 4.5.
CONTRAST = """(() => {
  const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(Number).map(x => c.startsWith("color(") ? x : x / 255)
    .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!/rgba\\(0, 0, 0, 0\\)|transparent/.test(c)) return c; } return "rgb(255, 255, 255)"; };
  return [...document.querySelectorAll("h1, h2, p, td, th, pre, summary, figcaption")].filter(e => e.textContent.trim()).map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 90)]; }).filter(x => !(x[0] >= 4.5)).slice(0, 5).map(String);
})()"""


# What a cell says, without the focus of the keyboard and with it.
FOCUSED = """(() => { const cell = document.querySelector(".tip"), seen = () => getComputedStyle(cell.querySelector("text")).visibility;
  const before = seen(); cell.focus(); const after = seen(); cell.blur(); return [before, after]; })()"""


def make(folder):
    """Pages of a bug, of a run with many layers, of a census and of GPT-2's mechanism, and their names."""
    for name, model, policy, words in (("bug", "synthetic:tiny", "f32,M8.alpha=bf16", ("--policy", "f32")),
                                       ("wide", "synthetic:tiny,layers=24", "f32", ("--policy", "f32", "--local"))):
        trace = folder / f"{name}.safetensors"
        subprocess.run([PROGRAM, "run", model, "--tokens", "random:30", "--policy", policy, "--trace", str(trace)],
                       check=True, capture_output=True)
        subprocess.run([PROGRAM, "judge", model, str(trace), *words, "--html", str(folder / f"{name}.html")],
                       capture_output=True)
    subprocess.run([PROGRAM, "sinks", "synthetic:tiny,layers=24", "--tokens", "random:100", "--tokens", "repeat:30",
                    "--html", str(folder / "sinks.html")], check=True, capture_output=True)
    subprocess.run([PROGRAM, "gpt2", "synthetic:gpt2", "--published", "--panel", "--html", str(folder / "gpt2.html")],
                   check=True, capture_output=True)
    return "bug.html", "wide.html", "sinks.html", "gpt2.html"


def main(words):
    tap = Tap()
    if browser.find() is None:
        print("1..0 # SKIP no chromium: the pages of judge --html, sinks --html and gpt2 --html are not looked at")
        return 0
    with tempfile.TemporaryDirectory() as work, browser.Browser(browser.find()) as engine:
        folder = pathlib.Path(work)
        pages = make(folder)
        for name, (width, height, phone) in book_screenshots.SCREENS.items():
            for dark in (False, True):
                bad = []
                for page in pages:
                    engine.screen(width, height, phone, dark)
                    bad += [f"{page}: {what}" for what in book_screenshots.look(engine, folder, page)]
                    engine.value("document.querySelectorAll('details').forEach(d => { d.open = true; })")
                    bad += [f"{page}: opened: {what}" for what in engine.value(book_screenshots.LOOK)]
                    bad += [f"{page}: faint: {what}" for what in engine.value(CONTRAST)]
                    if page == "sinks.html":
                        shown = engine.value(FOCUSED)
                        bad += [] if shown == ["hidden", "visible"] else [f"{page}: a cell with the keyboard's focus: {shown}"]
                    if words:
                        engine.screen(width, engine.value("document.documentElement.scrollHeight"), phone, dark)
                        engine.picture(pathlib.Path(words[0]) / f"{page[:-5]}-{name}{'-dark' if dark else ''}.png")
                tap.report(not bad, f"report.screen {name}{' dark' if dark else ''}: pages={len(pages)} width={width} faults={len(bad)}", bad)
        wound = folder / "wound.html"
        wound.write_text((folder / "bug.html").read_text(encoding="utf-8")
                         .replace("</main>", '<p style="width:2000px;color:#eee">x</p><script>document.title = "ran"</script></main>'))
        engine.screen(390, 844, True)
        found = book_screenshots.look(engine, folder, wound.name) + engine.value(CONTRAST)
        tap.report(any("wider" in f for f in found) and any("<p style" in f for f in found[1:]) and engine.value("document.title") != "ran",
                   "report.screen what is too wide or too faint is found, and a script is not run", found)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
