# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Looks at the pictures of doc/ in a real browser: no word runs off the canvas or over another. TAP.

    python3 tests/doc/book_pictures.py

Then two pictures with a fault must be refused. Skipped, by name, without Chromium.
"""
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import browser  # noqa: E402
from tap import Tap  # noqa: E402

FIGURES = pathlib.Path(__file__).resolve().parents[2] / "doc/book/figures"
LOOK = """(() => {
  const frame = document.documentElement.viewBox.baseVal, wrong = [];
  const whole = document.documentElement.getBoundingClientRect(), scale = frame.width / whole.width;
  const box = (r) => ({ x: (r.x - whole.x) * scale, y: (r.y - whole.y) * scale, width: r.width * scale, height: r.height * scale });
  const words = [...document.querySelectorAll("text")].map(e => [e.textContent, box(e.getBoundingClientRect())]); // as turned
  for (const [word, b] of words)
    if (b.x < 0 || b.y < 0 || b.x + b.width > frame.width || b.y + b.height > frame.height)
      wrong.push(`off the canvas: ${word}`);
  for (const [k, [word, a]] of words.entries())
    for (const [other, b] of words.slice(k + 1)) {
      const across = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
      const down = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
      if (across > 0 && down > 5) wrong.push(`${word} over ${other}`);
    }
  const colours = new Set([...document.querySelectorAll("text")].map(e => getComputedStyle(e).fill));
  return [wrong, [...colours].sort().join()];
})()"""


def look(engine, path):
    """What is wrong with a picture, in both schemes."""
    found = []
    for dark in (False, True):
        engine.screen(560, 900, dark=dark)
        wrong, _ = engine.open(path.as_uri())
        found.append(engine.value(LOOK))
        if wrong:
            found[-1][0].extend(wrong)
    return found[0][0] + found[1][0] + (["the same colours in the dark"] if found[0][1] == found[1][1] else [])


def main():
    program, tap = browser.find(), Tap()
    if program is None:
        print("1..0 # SKIP no Chromium")
        return 0
    with browser.Browser(program) as engine, tempfile.TemporaryDirectory() as folder:
        pictures = sorted(FIGURES.glob("*.svg"))
        for path in pictures:
            wrong = look(engine, path)
            tap.report(not wrong, f"picture {path.stem}: every word in its place, light and dark", wrong)
        tap.report(len(pictures) > 0, f"pictures={len(pictures)}")
        text, broken = (FIGURES / "model.svg").read_text(encoding="utf-8"), pathlib.Path(folder) / "broken.svg"
        for what, pattern, other in (("a word off the canvas", r'<text x="50" y="22"', '<text x="5" y="22"'),
                                     ("a word over another", r">unembedding<", ">unembedding, and what follows it<"),
                                     ("no colours for the dark", r"prefers-color-scheme:dark", "prefers-color-scheme:no")):
            changed = re.sub(pattern, other, text)
            broken.write_text(changed, encoding="utf-8")
            tap.report(changed != text and bool(look(engine, broken)), f"{what} is seen")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
