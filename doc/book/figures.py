# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Figures: gnuplot draws what `sinkproof curve` printed, and nothing else computes a number.

figures/NAME.gp opens with three lines: `# after: ID ...` (the statement below which it stands; the first
that the book states), `# curve: ID` (the argument of `sinkproof curve`) and `# caption: Markdown`.
"""
import html
import re
import subprocess
from dataclasses import dataclass


@dataclass
class Figure:
    name: str
    script: object
    after: list
    curve: str
    caption: str
    place: str = None
    svg: str = ""
    source: str = ""


def read(folder):
    found = []
    for script in sorted(folder.glob("*.gp")):
        if script.name != "style.gp":
            said = dict(re.findall(r"^# (after|curve|caption): (.+)$", script.read_text(encoding="utf-8"), re.M))
            found.append(Figure(script.stem, script, said.get("after", "").split(), said.get("curve", ""),
                                said.get("caption", "")))
    return found


def draw(book, chapters, out, problems):
    (out / "data").mkdir(parents=True, exist_ok=True)
    for figure in book.figures:
        place = str(figure.script.name)
        figure.place = next((id for id in figure.after if id in book.numbers), None)
        if figure.place is None:
            problems.add(place, f"a figure after {' '.join(figure.after) or 'nothing'}, which no chapter states")
            continue
        data = subprocess.run([book.program, "curve", figure.curve], capture_output=True, text=True)
        if data.returncode:
            problems.add(place, f"sinkproof curve {figure.curve}: {data.stderr.strip()}")
            continue
        columns = out / "data" / f"{figure.curve}.txt"
        columns.write_text(data.stdout)
        drawn = out / "data" / f"{figure.name}.svg"
        done = subprocess.run(["gnuplot", "-e", f"data = '{columns}'; out = '{drawn}'",
                               str(figure.script.parent / "style.gp"), str(figure.script)],
                              capture_output=True, text=True)
        if done.returncode or done.stderr.strip() or not drawn.is_file():
            problems.add(place, f"gnuplot: {done.stderr.strip() or 'no figure'}")
            continue
        figure.svg = adapted(drawn.read_text(encoding="utf-8"), figure)
        drawn.unlink()
        figure.source = (f'Drawn from <a href="data/{figure.curve}.txt"><code>sinkproof curve '
                         f"{html.escape(figure.curve)}</code></a>.")


def adapted(svg, figure):
    """Inline in a page: ids of its own, the page's text colour, any width."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<title>.*?</title>\s*<desc>.*?</desc>", "", svg, flags=re.S)
    svg = re.sub(r"\bid=(['\"])", rf"id=\1{figure.name}-", svg)
    svg = re.sub(r"xlink:href=(['\"])#", rf"href=\1#{figure.name}-", svg)
    svg = re.sub(r"url\((['\"]?)#", rf"url(\1#{figure.name}-", svg)
    svg = re.sub(r"rgb\(\s*1,\s*1,\s*1\)", "currentColor", svg)
    svg = re.sub(r"\scolor=\"(?:black|white|gray)\"", "", svg)
    svg = re.sub(r"<filter .*?</filter>", "", svg, flags=re.S)
    return re.sub(r"<svg\s+width=\"\d+\" height=\"\d+\"",
                  f'<svg role="img" aria-label="{html.escape(figure.name)}"', svg, count=1).strip()
