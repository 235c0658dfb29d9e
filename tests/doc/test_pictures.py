# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The pictures in the Markdown: each is what its program makes today, is shown with words, names what exists.

    python3 tests/doc/test_pictures.py       TAP; SINKPROOF names the program
"""
import json
import os
import pathlib
import re
import sys
import tempfile
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("doc/book", "tests/gates", "tests/shared")]
import check_doc  # noqa: E402
import doc_pages  # noqa: E402
import pictures  # noqa: E402
import runs  # noqa: E402
from tap import Tap  # noqa: E402

PROGRAM = os.environ.get("SINKPROOF", str(ROOT / "build/release/sinkproof"))
FIGURES = ROOT / "doc/book/figures"
SHOWN = re.compile(r"^!\[([^\]]*)\]\(([^)\s]+)\)$", re.MULTILINE)


def shown():
    """{file: words} of every picture in the pages; what is no file is its own fault."""
    found = {}
    for page in doc_pages.pages(ROOT):
        for words, target in SHOWN.findall(page.read_text(encoding="utf-8")):
            found[(page.parent / target).resolve()] = words
    return found


LINK = re.compile(r"(?:\.\./\.\./[\w-]+\.md|lattice-refuted\.svg)#[a-z][\w.-]*")
SVG = "{http://www.w3.org/2000/svg}"


def undrawn(texts, results, stated):
    """What is wrong with the pictures of the lattice: each edge that the command tells is drawn once, with a
    link to where its statement is, or, of a refuted one, to a place where both values of its instance stand."""
    links, places = {}, {}
    for name in ("lattice-sinks.svg", "lattice-others.svg", "lattice-refuted.svg"):
        picture = tree.fromstring(texts[name])
        places |= {f"{name}#{g.get('id')}": "".join(g.itertext()) for g in picture.iter(f"{SVG}g")}
        if name != "lattice-refuted.svg":
            for a in picture.iter(f"{SVG}a"):
                links.setdefault(a.find(f"{SVG}title").text, []).append(a.get("href"))
    wrong = []
    for edge in results:
        holds, id = edge["verdict"] == "overlap", edge["statement"]
        said = f"{edge['from']} {'is' if holds else 'is not'} {edge['to']}: {edge['when']} ({id})"
        to = links.pop(said, [])
        if len(to) != 1:
            wrong.append(f"drawn {len(to)} times: {said}")
        elif holds and to[0] != f"../../{stated[id][0]}#{id}":
            wrong.append(f"{to[0]} of {said}")
        elif not holds and not all(f"{edge['instance'][end]:.6g}" in places.get(to[0], "") for end in ("from", "to")):
            wrong.append(f"no instance at {to[0]} of {said}")
    return wrong + [f"in no table: {said}" for said in links]


def lattice(tap, texts, stated):
    results = json.loads(runs.run(PROGRAM, ROOT, "sinks", "--edges", "--json", "-"))["results"]
    wrong = undrawn(texts, results, stated)
    tap.report(not wrong, f"lattice.edges drawn={len(results)}, each with a link that leads somewhere", wrong)
    for what, name, pattern, other in (("an edge that is not drawn", "lattice-sinks.svg", r"(?s)<a .*?</a>", ""),
                                       ("a link to another statement", "lattice-others.svg", r'#mask\.\w+"|#lattice\.edges"', '#norm.power"'),
                                       ("an instance that is not there", "lattice-refuted.svg", r'id="refuted-packed-softmax"', 'id="x"'),
                                       ("a value of another run", "lattice-refuted.svg", r"4\.84503", "4.84504")):
        wounded = re.sub(pattern, other, texts[name], count=1)
        tap.report(wounded != texts[name] and bool(undrawn({**texts, name: wounded}, results, stated)), f"{what} is seen")


def main():
    kept, there, tap = shown(), set(FIGURES.glob("*.svg")), Tap()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        made = pictures.make(PROGRAM, ROOT, out)
        for name in sorted(made):
            path = FIGURES / f"{name}.svg"
            same = path.is_file() and path.read_bytes() == (out / path.name).read_bytes()
            tap.report(same, f"picture {name} is what a run of today draws", [] if same else ["make pictures draws it anew"])
    strangers = [p.name for p in there if p.stem not in made]
    tap.report(not strangers, "every picture has its program", strangers)
    tap.report(bool(kept) and set(kept) == there | set(FIGURES.glob("*.webp")), "every picture is shown, and every one that is shown is there",
           sorted(str(p) for p in set(kept) ^ there))
    wordless = [p.name for p, words in kept.items() if len(words) < 20]
    tap.report(not wordless, "every picture has words for those who do not see it", wordless)
    texts = {p.name: p.read_text(encoding="utf-8") for p in there}
    strange = [name for name, text in texts.items()
               if "prefers-color-scheme:dark" not in text or not re.search(r'aria-label="[^"]{40,}"', text)
               or any(int(size) < 14 for size in re.findall(r"font(?:-size)?:(\d+)px", text))
               or re.search(r"(?:src=|url\()", text) or not all(map(LINK.fullmatch, re.findall(r'href="([^"]*)"', text)))]
    tap.report(not strange, "light and dark, words of 14 and more, nothing from elsewhere", strange)
    convicted = [r for r in runs.judged(PROGRAM, ROOT)[1] if r["id"].endswith(".M8")]
    sentence = "{:,} of the {:,} elements of `M8`".format(*(sum(r[k] for r in convicted) for k in ("outside", "elements")))
    tap.report(sentence in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split()), f"the README says: {sentence}")
    problems = check_doc.Problems()
    stated = check_doc.read_statements(ROOT, problems)
    families = {id.split(".")[0] for id in stated}
    unknown = [f"{name}: {id}" for name, text in texts.items()
               for id in re.findall(rf'class="code">({check_doc.ID})<', text) if id.split(".")[0] in families and id not in stated]
    tap.report(not unknown, "every statement that a picture names is stated", unknown)
    lattice(tap, texts, stated)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
