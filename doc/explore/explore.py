# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Makes the pages that compute: files of ref/ as WebAssembly, the lines of C that a page shows, its links.

    python3 doc/explore/explore.py ROOT OUT      the pages alone, without the book around them

The book calls `write`. Where clang cannot make WebAssembly the pages say so, name the packages, and have no numbers.
"""

import base64
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from explore_tables import (
    BACK_CODE,
    BACK_FORMS,
    BACK_LAWS,
    BACK_STRIP,
    CODE,
    FORMATS,
    FORMS,
    KEYS,
    LAWS,
    LINES,
    MISTAKES,
    ORDERS,
    PAGES,
    POLICIES,
    RUNS,
    STRIP,
    TITLE,
)

HERE = pathlib.Path(__file__).resolve().parent
OWN = ("row.c", "forms.c", "laws.c", "lines.c", "sum.c", "back.c")
REFERENCE = (
    "ref/softmax_sink.c",
    "ref/scores.c",
    "ref/values.c",
    "ref/mask.c",
    "ref/backward/softmax_sink.c",
    "ref/backward/values.c",
    "ref/policy.c",
    "ref/policy_rounding.c",
    "ref/policy_parse.c",
    "ref/operands.c",
    "ref/scaled.c",
    "ref/tensor_core.c",
    "ref/points.c",
    "model/round.c",
    "base/error.c",
    "base/words.c",
    "proofs/bounds/honest.c",
)
FLAGS = (
    "--target=wasm32-wasi",
    "-mexec-model=reactor",
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O2",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-ffunction-sections",
    "-fdata-sections",
    "-Wl,--gc-sections",
    "-Wl,--strip-all",
)
PACKAGES = "clang, lld, wasi-libc and libclang-rt-dev-wasm32 (in Debian 12: libclang-rt-14-dev-wasm32)"


class Links:
    """Where the page leads when the book is not around it."""

    def statement(self, id):
        return f"../{id}.html"

    def proof(self, id):
        return f"../{id}.html"

    def tests(self, id):
        return f"../tests.html#{id}"

    def source(self, file, line=None):
        return f"../src/{file}.html" + (f"#L-{line}" if line else "")

    def chapter(self, name):
        return f"../{name}.html"

    def formulas(self, texts):
        """Without the book's packages a formula is shown as it is written."""
        bare = [re.sub(r"\\htmlClass\{changed\}", "", text) for text in texts]
        return [f'<code class="tex">{html.escape(text)}</code>' for text in bare]


def compile_wasm(root):
    """The bytes, or None and why there are none."""
    if shutil.which("clang") is None:
        return None, "there is no clang"
    with tempfile.TemporaryDirectory() as folder:
        out, probe = pathlib.Path(folder, "explore.wasm"), pathlib.Path(folder, "probe.c")
        probe.write_text(
            "#include <math.h>\n#include <stdio.h>\nint main(int n, char **w) { return puts(w[0]) + (int)exp(n); }\n"
        )
        if subprocess.run(["clang", FLAGS[0], str(probe), "-o", str(out)], capture_output=True).returncode:
            return None, "clang makes no WebAssembly on this machine"
        sources = [*(f"doc/explore/{name}" for name in OWN), *REFERENCE]
        done = subprocess.run(
            ["clang", *FLAGS, "-I.", *sources, "-o", str(out)], cwd=root, stderr=subprocess.PIPE, text=True
        )
        if done.returncode:
            sys.exit(f"explore: {done.stderr}")
        return out.read_bytes(), None


def radios(name, labels):
    return "".join(
        f'<label><input type="radio" name="{name}" value="{value}"{" checked" if k == 0 else ""}> {label}</label>'
        for k, (value, label) in enumerate(labels.items())
    )


def region(root, file, id):
    """The numbered lines between the markers of a region."""
    lines, inside = [], False
    for number, line in enumerate((root / file).read_text(encoding="utf-8").splitlines(), 1):
        marker = re.match(r"\s*//([<>]) (.*)", line)
        if marker and id in marker[2].split():
            inside = marker[1] == ">"
        elif inside and not marker:
            lines.append((number, line))
    if not lines:
        sys.exit(f"explore: {file} has no region {id}")
    return lines


def code(root, links, regions):
    parts = []
    for file, id, acts in regions:
        lines, rows, used = region(root, file, id), [], set()
        indent = min(len(line) - len(line.lstrip()) for _, line in lines if line.strip())
        for number, line in lines:
            moved = [(pattern, what) for pattern, what in acts.items() if re.search(pattern, line)]
            used |= {pattern for pattern, _ in moved[:1]}
            mark = f' data-acts="{moved[0][1]}"' if moved else ""
            rows.append(
                f'<span class="line"{mark}><span class="at">{number}</span>{html.escape(line[indent:])}\n</span>'
            )
        if used != set(acts):
            sys.exit(f"explore: no line of {id} in {file} matches {set(acts) - used}")
        parts.append(
            f'<p class="path"><a href="{links.source(file, lines[0][0])}">{file}</a> <small>{id}</small></p>'
            f'<div class="code" tabindex="0" role="region" aria-label="{file}, {id}"><code>{"".join(rows)}</code></div>'
        )
    return "".join(parts)


def laws(links, stated):
    def card(name, title, formula, id):
        return (
            f'<article id="law-{name}" class="law"><h3>{title}</h3><p class="verdict"></p><p class="formula-of">{formula}</p>'
            '<dl><dt>left</dt><dd class="left"></dd><dt>right</dt><dd class="right"></dd><dt>residue</dt><dd class="residue"></dd>'
            f'<dt>bound</dt><dd class="bound"></dd></dl><p class="links"><a href="{links.statement(id)}">statement</a> '
            f'<a href="{links.proof(id)}">proof</a> <a href="{links.tests(id)}">tests</a></p></article>'
        )

    return "".join(card(name, *law) for name, law in stated.items())


SPLITS = {"per-part": ", since the model’s splits have 16 keys; here they are the two halves of the keys"}


def stage_of(point):
    """What a point's name says: 00.A9."""
    layer, _, stage = point.partition(".")
    return f"layer {int(layer)}, " + {"A9": "the weights", "A11": "the output of attention"}[stage]


def judged(root, links):
    """What the judge said of each mistake when it was planted: from the table of chapter 21."""
    chapter, said = (root / "doc/21-diagnosis.md").read_text(encoding="utf-8"), []
    for form, (_, mistake) in FORMS.items():
        if mistake is None:
            continue
        row = re.search(rf"^\| `{mistake}` \| (\S+) \| \d+ \| \S+ \| named \| (\d+) \|", chapter, re.MULTILINE)
        if row is None:
            sys.exit(f"explore: doc/21-diagnosis.md does not say that {mistake} was named")
        others = {"1": "", "2": " or another that gives the same weights"}[row[2]]
        said.append(
            f'<p class="judged" data-form="{form}" hidden>This mistake was planted in a model. The judge, which reads what '
            f"a run recorded of each stage, found it first at <code>{row[1]}</code> ({stage_of(row[1])}) and named it "
            f'<code>{mistake}</code>{others}{SPLITS.get(form, "")}. '
            f'<a href="{links.chapter("21-diagnosis")}">Chapter 21</a> has the table.</p>'
        )
    return "".join(said)


def underlined(tex, changed):
    """The changed summands in a class of their own; a narrow screen may still break the formula at the operators."""
    if tex.count(changed) != 1:
        sys.exit(f"explore: {changed!r} stands {tex.count(changed)} times in {tex!r}")
    parts, depth, last = [""], 0, 0
    for match in re.finditer(r"[{}]| [+-] ", changed):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 and match[0] in (" + ", " - "):
            parts[-1] = changed[last : match.start()]
            parts += [match[0], ""]
            last = match.end()
    parts[-1] = changed[last:]
    return tex.replace(
        changed, "".join(part if k % 2 else r"\htmlClass{changed}{%s}" % part for k, part in enumerate(parts))
    )


def derivation(root, links):
    chapter, found = (root / "doc/15-derivation.md").read_text(encoding="utf-8"), []
    for name, changed in LINES.items():
        stated = re.search(
            rf"^### eq\[sink\.attn-{name}\] (.*?) \{{.*?\n\n\$\$\n(.*?)\n\$\$", chapter, re.MULTILINE | re.DOTALL
        )
        if stated is None:
            sys.exit(f"explore: doc/15-derivation.md does not state sink.attn-{name}")
        found.append((name, stated[1], underlined(stated[2], changed) if changed else stated[2]))
    shown = links.formulas([tex for _, _, tex in found])
    return "".join(
        f'<li><h3><a href="{links.statement(f"sink.attn-{name}")}">{title}</a></h3><div class="line"><div>{formula}</div>'
        '<div><p class="numbers"></p><p class="distance"></p></div></div></li>'
        for (name, title, _), formula in zip(found, shown)
    )


def strip(laws):
    return "".join(f'<a href="#law-{law}" data-law="{law}">{short}</a>' for law, short in laws.items())


def mistakes():
    """Those that record.py planted in the tiny model."""
    runs = json.loads((HERE / "layers.json").read_text(encoding="utf-8"))["runs"]
    return next(run["mistakes"] for run in runs if run["name"] == "tiny")


def constants():
    """What the page says of its numbers: they stand in row.h, and in the test that measures the difference."""
    head = (HERE / "row.h").read_text(encoding="utf-8")
    keys, dim = (int(re.search(rf"{name} = (\d+)", head)[1]) for name in ("ROW_KEYS", "ROW_DIM"))
    return {"dim": str(dim), "libm": f"{8 + 2 * (keys + 3)} · 2<sup>−53</sup>"}


def is_in(root):
    """Whether a book has the page; the small ones of the tests have not."""
    return (root / "doc/explore").is_dir()


def said_of(why):
    return f"{TITLE}: {why}; it needs the packages {PACKAGES}"


def body(root, links, name, why):
    _, file, scripts = PAGES[name]
    missing = (
        ""
        if why is None
        else f'<p class="bad" id="missing">This page has no numbers: {why}. It needs the packages {PACKAGES}.</p>'
    )
    parts = {
        "missing": missing,
        "keys": KEYS,
        "scripts": "" if why else "\n".join(f'<script src="{script}"></script>' for script in scripts),
    }
    if name == "sum":
        parts |= {
            "formats": radios("format", FORMATS),
            "orders": radios("order", ORDERS),
            "mistakes": radios("mistake", MISTAKES),
            "bounds": links.chapter("13-bounds"),
            "statement": links.statement("bound.dot"),
            "proof": links.proof("bound.dot"),
            "tests": links.tests("bound.dot"),
            "drift": links.statement("stat.drift"),
        }
    elif name == "back":
        parts |= {
            "ref": links.source("ref/backward/softmax_sink.c"),
            "chapter": links.chapter("34-backward"),
            "laws-source": links.source("doc/explore/back.c"),
            "forms": radios("form", BACK_FORMS),
            "strip": strip(BACK_STRIP),
            "laws": laws(links, BACK_LAWS),
            "code": code(root, links, BACK_CODE),
        }
    elif name == "layer":
        parts |= {
            "ref": links.source("ref/softmax_sink.c"),
            "measured": links.chapter("28-lecture"),
            "runs": radios("run", RUNS),
            "planted": radios("mistake", {"none": "none"} | {m["name"]: m["what"] for m in mistakes()}),
        }
    elif name == "lines":
        parts |= {
            "chapter": links.chapter("15-derivation"),
            "policies": radios("policy", POLICIES),
            "lines": derivation(root, links),
        }
    else:
        parts |= {
            "ref": links.source("ref/softmax_sink.c"),
            "chapter": links.chapter("06-softmax-sink"),
            "laws-source": links.source("doc/explore/laws.c"),
            "policies": radios("policy", POLICIES),
            "forms": radios("form", {form: label for form, (label, _) in FORMS.items()}),
            "judged": judged(root, links),
            "strip": strip(STRIP),
            "laws": laws(links, LAWS),
            "code": code(root, links, CODE),
            **constants(),
        }
    page = (HERE / file).read_text(encoding="utf-8")
    if why:
        page = re.sub(r'<script src="(wasm|layers).js"></script>\n', "", page)
    return re.sub(r"\{\{([a-z-]+)\}\}", lambda match: parts[match[1]], page)


def write(root, out, links):
    """Writes what the pages load; returns {name: (title, body)}, and why they have no numbers, if so."""
    out.mkdir(parents=True, exist_ok=True)
    wasm, why = compile_wasm(root)
    for name in {"explore.css"}.union(*(scripts for _, _, scripts in PAGES.values())):
        shutil.copy(HERE / name, out)
    layers = (HERE / "layers.json").read_text(encoding="utf-8").rstrip()
    (out / "layers.js").write_text(f"window.exploreLayers = {layers};\n", encoding="utf-8")
    if wasm is not None:
        (out / "explore.wasm").write_bytes(wasm)  # for the tests; the pages have it in wasm.js
        (out / "wasm.js").write_text(f'window.exploreWasm = "{base64.b64encode(wasm).decode()}";\n', encoding="utf-8")
    return {name: (PAGES[name][0], body(root, links, name, why)) for name in PAGES}, why


def main(root, out):
    root, out = pathlib.Path(root).resolve(), pathlib.Path(out).resolve()
    pages, why = write(root, out / "explore", Links())
    template = (root / "doc/book/template.html").read_text(encoding="utf-8")
    template = re.sub(r".*(?:faces|katex)\.css.*\n|.*book\.js.*\n", "", template)
    for name, (title, page) in pages.items():
        whole = template
        for key, value in {
            "title": title,
            "body": page,
            "nav": "",
            "steps": "",
            "root": "../",
            "kind": "explore",
        }.items():
            whole = whole.replace("{{%s}}" % key, value)
        (out / f"explore/{name}.html").write_text(whole, encoding="utf-8")
    shutil.copy(root / "doc/book/book.css", out)
    print(f"explore: {len(pages)} pages skipped, {said_of(why)}" if why else f"explore: open {out}/explore/index.html")
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(*sys.argv[1:]))
