# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Figures: gnuplot draws what the command printed, and nothing else computes a number.

figures/NAME.gp opens with three lines: `# after: ID ...` (the statement below which it stands; the first
that the book states), `# curve: ID` (the argument of `sinkproof curve`) and `# caption: Markdown`. What
another machine would not print again, a measurement of speed, is kept: `# bench: ARGUMENTS` in place of
`# curve:` draws data/NAME.txt, whose first line is what `sinkproof bench ARGUMENTS` begins with. As long
as nobody measured it, the figure is left out, and the build says so. `# study: GOAL` draws what is kept of
the training study, which `make GOAL` makes (tests/gates/doc_training.py).
"""
import html
import re
import subprocess
from dataclasses import dataclass

import doc_training


@dataclass
class Figure:
    name: str
    script: object
    after: list
    curve: str
    caption: str
    bench: str = ""
    study: str = ""
    place: str = None
    svg: str = ""
    source: str = ""


def read(folder):
    found = []
    for script in sorted(folder.glob("*.gp")):
        if script.name != "style.gp":
            said = dict(re.findall(r"^# (after|curve|bench|study|caption): (.+)$",
                                   script.read_text(encoding="utf-8"), re.M))
            figure = Figure(script.stem, script, said.get("after", "").split(), said.get("curve", ""),
                            said.get("caption", ""), said.get("bench", ""), said.get("study", ""))
            if figure.bench and not kept(figure).is_file():
                print(f"book: the figure {figure.name} is left out: sinkproof bench {figure.bench} > "
                      f"doc/book/data/{figure.name}.txt makes what it is drawn from")
                continue
            found.append(figure)
    return found


def kept(figure):
    return figure.script.parent.parent / "data" / f"{figure.name}.txt"


def printed(book, figure, problems):
    """What the figure is drawn from, or None."""
    place = str(figure.script.name)
    if figure.study:
        text = doc_training.drawn(book.root, figure.name)
        if text is None:
            problems.add(place, f"{doc_training.KEPT} or what is kept beside it lacks runs of this code: run make {figure.study}")
        return text
    if figure.bench:
        text = kept(figure).read_text(encoding="utf-8")
        axis = re.search(r"--scaling \S+", figure.bench)
        if axis and text.startswith(f"# sinkproof bench {axis[0]}:"):
            return text
        problems.add(place, f"{kept(figure).name} does not begin as sinkproof bench {figure.bench} does")
        return None
    data = subprocess.run([book.program, "curve", figure.curve], capture_output=True, text=True)
    if data.returncode:
        problems.add(place, f"sinkproof curve {figure.curve}: {data.stderr.strip()}")
        return None
    return data.stdout


def draw(book, chapters, out, problems):
    (out / "data").mkdir(parents=True, exist_ok=True)
    for figure in book.figures:
        place = str(figure.script.name)
        figure.place = next((id for id in figure.after if id in book.numbers), None)
        if figure.place is None:
            problems.add(place, f"a figure after {' '.join(figure.after) or 'nothing'}, which no chapter states")
            continue
        text = printed(book, figure, problems)
        if text is None:
            continue
        columns = out / "data" / f"{figure.curve or figure.name}.txt"
        columns.write_text(text, encoding="utf-8")
        drawn = out / "data" / f"{figure.name}.svg"
        done = subprocess.run(["gnuplot", "-e", f"data = '{columns}'; out = '{drawn}'",
                               str(figure.script.parent / "style.gp"), str(figure.script)],
                              capture_output=True, text=True)
        if done.returncode or done.stderr.strip() or not drawn.is_file():
            problems.add(place, f"gnuplot: {done.stderr.strip() or 'no figure'}")
            continue
        figure.svg = adapted(drawn.read_text(encoding="utf-8"), figure)
        drawn.unlink()
        command = (f"make {figure.study}" if figure.study else
                   f"sinkproof bench {figure.bench}" if figure.bench else f"sinkproof curve {figure.curve}")
        kept_since = ", made once and kept" if figure.study else ", measured once on the machine that it names"
        figure.source = (f'Drawn from <a href="data/{columns.name}"><code>{html.escape(command)}</code></a>'
                         f"{'' if figure.curve else kept_since}.")


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
    words = html.escape(re.sub(r"[$`{}\\\\]", "", figure.caption))
    return re.sub(r"<svg\s+width=\"\d+\" height=\"\d+\"",
                  lambda _: f'<svg class="plot" role="img" aria-label="{words}"', svg, count=1).strip()
