# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What the pages of doc/ show of the code and of a run, and what they cite; for check_doc.py."""
import re

ID = r"[a-z][a-z0-9]*\.[a-z0-9]+(?:-[a-z0-9]+)*"
SHOWN = re.compile(rf"^<!-- (code|theorem) (\S+) ({ID}) -->$")
MEASURED = re.compile(rf"^<!-- measured ({ID}) -->$")
OUTPUT = re.compile(r"^<!-- output ([a-z0-9-]+) -->$")
EXERCISE = re.compile(r"^<!-- exercise ([a-z0-9-]+) -->$")
NAMES = re.compile(r"^<!-- (code|theorem|measured|output|exercise)\b")
FILE_NAME = re.compile(r"\.(c|h|v|json|safetensors|bin|txt|md|sh|py|gguf|npy|html)$")


def pages(root):
    found = [root / "README.md", *sorted((root / "doc").glob("*.md"))]
    return [p for p in found if p.is_file() and p.name != "INDEX.md"]


def without_proofs(text):
    """A Coq region's definitions and theorems, each proof left out."""
    kept = re.sub(r"[ \t]*Proof\b.*?\b(?:Qed|Defined)\.", "", text, flags=re.DOTALL)
    return re.sub(r"\n\s*\n+", "\n\n", re.sub(r"[ \t]+$", "", kept, flags=re.MULTILINE)).strip("\n")


def measured(run, id):
    """One sentence: how many checks of each kind passed, and the worst share of a bound."""
    results, parts, shares = run.results.get(id, []), [], []
    for kind in ("run", "exact", "coq", "refuted"):
        here = [r for r in results if r[2] == kind]
        if not here:
            continue
        tests = ", ".join(f"`{t}`" for t in sorted({r[0] for r in here}))
        counted = {"exact": "instances", "coq": "theorems"}.get(kind)
        n = len(here) if not counted else sum(
            int(m[1]) for r in here for m in [re.search(rf"\b{counted}=(\d+)", r[3])] if m) or len(here)
        what = {"run": "check", "exact": "exact instance", "coq": "theorem", "refuted": "refuted wrong form"}[kind]
        count = f"{n} {what}{'s' if n > 1 else ''}"
        parts.append(f"{count} ({tests})")
    for _, _, kind, text in results:
        if kind == "verify":  # the command's own run repeats the others, and breaks them on purpose
            continue
        worst, bound = (re.search(rf"\b{w}=((?:2\^)?)([-+]?[.0-9][-+.0-9e]*)", text) for w in ("worst", "bound"))
        if not worst or not bound or worst[1] != bound[1]:
            continue
        a, b = float(worst[2]), float(bound[2])
        if worst[1] or b > 0:  # 2^a and 2^b may be far below the smallest double
            where = text.split(" worst=")[0].rstrip(" ,:")
            shares.append((2 ** (a - b) if worst[1] else a / b, "".join(worst.groups()), "".join(bound.groups()), where))
    if shares:
        _, worst, bound, where = max(shares, key=lambda s: s[0])
        parts.append(f"worst {worst} of bound {bound}, at “{where}”")
    return "Measured: " + "; ".join(parts) + "." if parts else ""


def fence_end(lines, at, language):
    """The line after the fence that opens at `at`, or None."""
    if at >= len(lines) or lines[at] != "```" + language or "```" not in lines[at + 1:]:
        return None
    return lines.index("```", at + 1) + 1


def same(kind, have, want, run):
    """Shown code is equal to the letter; figures of another machine may differ in their digits, and
    one without Coq checks no theorem."""
    if kind != "measured":
        return have, want
    if not run.formal:
        have = [re.sub(r"; \d+ theorems? \([^)]*\)", "", line) for line in have]
    return [re.sub(r"worst \S+ of bound .*|[0-9]+", "N", "\n".join(t)) for t in (have, want)]


def check_page(page, name, regions, run, write, problems):
    lines, out, at = page.read_text(encoding="utf-8").splitlines(), [], 0
    while at < len(lines):
        line = lines[at]
        at += 1
        out.append(line)
        place = f"{name}:{at}"
        if not run.ran and (MEASURED.match(line) or OUTPUT.match(line)):
            continue  # the book of a tree that nobody tested: its pages say so
        shown, figure, output = SHOWN.match(line), MEASURED.match(line), OUTPUT.match(line)
        if shown:
            kind, language = shown[1], "coq" if shown[2].endswith(".v") else "c"
            text, what = regions.get(shown[3], {}).get(shown[2]), f"{shown[2]} {shown[3]}"
            if text is None:
                problems.add(place, f"{shown[2]} has no region {shown[3]}")
                continue
            text = without_proofs(text) if kind == "theorem" else text
            end, want = fence_end(lines, at, language), ["```" + language, *text.split("\n"), "```"]
        elif output:
            kind, what, text = "output", output[1], run.output.get(output[1])
            if text is None:
                problems.add(place, f"no program {output[1]} ran")
                continue
            end, want = fence_end(lines, at, "text"), ["```text", *text, "```"]
        elif figure:
            kind, what, text = "measured", figure[1], measured(run, figure[1])
            if not text:
                problems.add(place, f"no test that ran reported {figure[1]}, which the page shows")
                continue
            end, want = at + (at < len(lines) and lines[at].startswith("Measured: ")), [text]
        else:
            if NAMES.match(line) and not EXERCISE.match(line):
                problems.add(place, f"malformed marker of shown code: {line!r}")
            elif line.startswith(("```c", "```coq")) and not EXERCISE.match(lines[at - 2] if at > 1 else ""):
                problems.add(place, "a fence of C or Coq without <!-- code FILE ID --> before it")
            continue
        if end is None and not write:
            problems.add(place, f"a marker of shown {kind} without its fence")
            continue
        have = lines[at:end] if end is not None else []
        old, new = same(kind, have, want, run)
        if old != new and not write:
            problems.add(place, f"shown {kind} differs from {what}: run make write-doc")
        out += want
        at = end if end is not None else at
    if write and out != lines:
        page.write_text("\n".join(out) + "\n", encoding="utf-8")


def check_shown(root, regions, run, write, problems):
    for page in pages(root):
        check_page(page, str(page.relative_to(root)), regions, run, write, problems)


def check_citations(root, stated, problems):
    """eq[ID] in prose, `family.name` in backticks, and links to files and to statements exist."""
    families = {id.split(".")[0] for id in stated}
    for page in pages(root):
        name, fenced = str(page.relative_to(root)), False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            fenced ^= line.startswith("```")
            if fenced or re.match(r"(#+ )?eq\[", line):
                continue
            place = f"{name}:{number}"
            cited = re.findall(r"eq\[([^\]]*)\]", line)
            cited += [w for w in re.findall(rf"`({ID})`", line)
                      if w.split(".")[0] in families and not FILE_NAME.search(w)]
            for id in cited:
                if id not in stated:
                    problems.add(place, f"cites {id}, which is not stated in doc/")
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                if path and not (page.parent / path).exists():
                    problems.add(place, f"a dead link: {target}")
                if re.fullmatch(ID, anchor) and anchor not in stated:
                    problems.add(place, f"links to {anchor}, which is not stated in doc/")
