# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The page of `judge --html`: what it says is what the JSON of the same command says; nothing in it
is run or fetched; a stranger's text stays text; and what cannot be written leaves nothing.
"""
import html.parser
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

VOID = {"meta", "br", "path", "circle", "rect", "polyline"}
TOKENS = "random:40"


class Page(html.parser.HTMLParser):
    """Its headings, tables, elements and whether every element is closed where it was opened."""

    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.tags, self.addresses = [], [], [], []
        self.heads, self.cells, self.row, self.text = [], [], None, ""
        self.feed(text)
        self.wrong += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [v for k, v in attributes if k in ("src", "href", "xlink:href", "srcset", "action")]
        self.wrong += [f"{k} of <{tag}>" for k, _ in attributes if k.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.row = []
            self.cells.append(self.row)
        if tag in ("td", "th") and self.row is not None:
            self.row.append("")
        if tag in ("h1", "h2"):
            self.heads.append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th") and self.row:
            self.row[-1] += data
        if self.open and self.open[-1] in ("h1", "h2"):
            self.heads[-1] += data


def judged(work, trace, *words):
    """(exit, page, JSON results, the terminal's report)"""
    page, result = work / "page.html", work / "page.json"
    status, said, wrong = sinkproof("judge", "synthetic:tiny", str(trace), *words, "--html", str(page), "--json", str(result))
    if not page.is_file():
        return status, None, None, said + wrong
    return status, Page(page.read_text(encoding="utf-8")), json.loads(result.read_text())["results"], said


def traced(work, name, *words, policy="f32"):
    path = work / name
    sinkproof("run", "synthetic:tiny", "--tokens", TOKENS, "--policy", policy, "--trace", str(path), *words)
    return path


def faults(page):
    bad = list(page.wrong)
    bad += [f"<{tag}>" for tag in page.tags if tag in ("script", "link", "img", "iframe", "object", "a", "image", "use")]
    return bad + [f"address {a}" for a in page.addresses]


def told(what, status, page, results, said, in_vain):
    """The page beside the JSON: the sentence, the counts of the map, the report letter for letter."""
    head, points = results[0], results[1:]
    wrong = faults(page)
    bad = next((p for p in points if p["verdict"] == "bug"), None)
    if bad is not None:
        expected = f"A bug at {bad['id']}: {bad['outside']} of {bad['elements']} elements are not what {head['policy']} allows"
    else:
        expected = f"Within what honest rounding can do under {head['policy']}"
    if page.heads[:1] != [expected]:
        wrong.append(f"{page.heads[:1]}, expected {expected!r}")
    cause = head["explained_by"]
    if (f"Every point that fails would be within under {cause}." in page.text) != (cause is not None):
        wrong.append(f"the cause is {cause}")
    if ("No known change of the policy explains it." in page.text) != in_vain:
        wrong.append("whether a cause was looked for in vain")
    first_map = {}
    for row in page.cells:  # the first map comes first
        first_map.setdefault(row[0], row[1:]) if row else None
    for p in points:
        layer, name = (int(p["id"][:2]), p["id"][3:]) if p["id"][0].isdigit() else (0, p["id"])
        cell = first_map[name][layer]
        expected = (str(p["outside"]) if p["outside"] else "?" if p["verdict"] == "undecided" else
                    f"{p['worst']:.2f}" if p["several"] else "=")
        if cell != expected:
            wrong.append(f"{p['id']}: {cell!r} where the JSON says {expected!r}")
    if said.strip() not in page.text:
        wrong.append("the report is not the terminal's")
    report(not wrong, f"report.page {what}: points={len(points)} exit={status} faults={len(wrong)}", wrong)


def pages(work):
    """A bug with a cause, an honest trace, one without a comparison end to end, one that decides little."""
    bug = traced(work, "bug.safetensors", policy="f32,M8.alpha=bf16")
    good = traced(work, "good.safetensors", policy="openai-bf16")
    unknown = traced(work, "unknown.safetensors", policy="f32,A11.term=bf16")
    for what, trace, words, exits in (("of a bug with its cause", bug, ("--policy", "f32"), 1),
                                      ("of a bug without one", unknown, ("--policy", "f32"), 1),
                                      ("of an honest trace", good, ("--policy", "openai-bf16"), 0),
                                      ("of local judgement", bug, ("--policy", "f32", "--local", "--no-hint"), 1)):
        status, page, results, said = judged(work, trace, *words)
        told(what, status, page, results, said, trace == unknown)
        drawn = "Not drawn" not in page.text
        report(status == exits and drawn == ("--local" not in words),
               f"report.page {what}: growth {'drawn' if drawn else 'not drawn, and why'}", [f"exit {status}"])
        report(page.text.count("head ") >= 8 and page.tags.count("svg") > 20,
               f"report.page {what}: pictures={page.tags.count('svg')}", [])
    few = traced(work, "few.safetensors", "--points", "F2")
    status, page, results, said = judged(work, few, "--policy", "f32")
    report(status == 4 and page.heads[0].startswith("Undecided") and not faults(page) and "Attention" not in page.text,
           "report.page of a trace that decides nothing says so, and shows no attention", [str(status), *page.heads])


def histograms(work):
    """What an ulp is: one that a planted step of one ulp shows in the bar of 1 to 2."""
    trace = traced(work, "t.safetensors", "--points", "T0,A13,M12")
    data = bytearray(trace.read_bytes())
    head = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    at = 8 + int.from_bytes(data[:8], "little") + head["T0"]["data_offsets"][0]
    data[at] ^= 1  # the last bit of the first element
    trace.write_bytes(data)
    status, page, results, _ = judged(work, trace, "--policy", "f32")
    text = (work / "page.html").read_text(encoding="utf-8")
    figure = next(f for f in re.findall(r"<figure>.*?</figure>", text, re.S) if "<figcaption>T0<" in f)
    elements = next(p["elements"] for p in results if p["id"] == "T0")
    bars = dict(re.findall(r"<title>(.*?): (.*?) % of the elements", figure))
    report(status == 1 and bars == {"0": f"{100 - 100 / elements:.4g}", "1 to 2 ulp": f"{100 / elements:.4g}"},
           f"report.histogram one element in {elements} off by an ulp: {bars}", [f"exit {status}"])


def strangers(work):
    """Markup in an engine's name, a NaN in a tensor: text stays text, and NaN is no distance of 0."""
    trace = traced(work, "s.safetensors", "--points", "T0,A1")
    data = trace.read_bytes()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8:8 + size])
    head["__metadata__"]["engine"] = "<script>alert(1)</script>&\"'"
    new = json.dumps(head).encode()
    body = bytearray(data[8 + size:])
    at = head["T0"]["data_offsets"][0]
    body[at:at + 4] = b"\x00\x00\xc0\x7f"
    trace.write_bytes(len(new).to_bytes(8, "little") + new + body)
    status, page, results, _ = judged(work, trace, "--policy", "f32")
    text = (work / "page.html").read_text(encoding="utf-8")
    report(status == 1 and not faults(page) and "<script" not in text and "alert(1)" in page.text,
           "report.page an engine called <script>: its name is shown and never run", faults(page) + [f"exit {status}"])
    figure = next(f for f in re.findall(r"<figure>.*?</figure>", text, re.S) if "<figcaption>T0<" in f)
    share = float(re.search(r"<title>0: (.*?) %", figure)[1])
    report(share == 100, f"report.histogram a NaN is in no bar: {share} % of those that are numbers at 0", [])


def refused(work):
    """What cannot be written: exit 3, a sentence, no file; a refused trace writes none either."""
    trace = traced(work, "t.safetensors", "--points", "T0")
    for what, page, words in (("a folder that is not there", work / "no" / "page.html", [str(trace)]),
                              ("a trace that is none", work / "page.html", [str(work / "none")])):
        status, _, wrong = sinkproof("judge", "synthetic:tiny", *words, "--html", str(page), "--policy", "f32")
        left = [p.name for p in work.iterdir() if "page" in p.name]
        report(status == 3 and wrong.count("\n") == 0 and not left, f"report.refused {what}: exit 3, nothing left",
               [f"exit {status}", wrong, *left])
    other = traced(work, "u.safetensors", "--points", "T0,F2")
    page = work / "two.html"
    status, _, _ = sinkproof("judge", "synthetic:tiny", str(trace), str(other), "--html", str(page), "--policy", "f32")
    two = Page(page.read_text(encoding="utf-8"))
    report(status == 0 and not faults(two) and two.text.count("Provenance") == 2 and two.tags.count("html") == 1,
           "report.page two traces: a part each in one page", [f"exit {status}", *faults(two)])


if __name__ == "__main__":
    sys.exit(checkpoints.run(pages, histograms, strangers, refused))
