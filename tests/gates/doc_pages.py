# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What the pages of doc/ show of the code and of a run, and what they cite; for check_doc.py.

    python3 tests/gates/doc_pages.py exhaustive ROOT     the line that ties tests/fast/exhaustive.log to its code
"""
import hashlib
import pathlib
import re
import sys

import doc_engines
import doc_lecture
import doc_planted
import doc_training
import doc_truth_engines
import doc_variants

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from shares import percent  # noqa: E402

ID = r"[a-z][a-z0-9]*\.[a-z0-9]+(?:-[a-z0-9]+)*"
SHOWN = re.compile(rf"^<!-- (code|theorem) (\S+) ({ID}) -->$")
MEASURED = re.compile(rf"^<!-- measured ({ID}) -->$")
OUTPUT = re.compile(r"^<!-- output ([a-z0-9-]+) -->$")
EXERCISE = re.compile(r"^<!-- (?:exercise|asked) ([a-z0-9-]+) -->$")  # asked: the file of Coq without its proof
TABLE = re.compile(r"^<!-- table ([a-z0-9-]+) -->$")
PROGRAM = re.compile(r"^<!-- program (\S+) -->$")
SPEED = re.compile(r"^\|.*\d (?:tok/s|[GM]B/s|[GT]FLOP/s|ms|µs)(?= |,|$)")  # in a row of a table
NAMES = re.compile(r"^<!-- (code|theorem|measured|output|exercise|asked|table|program|engines|planted|honest)\b")
FILE_NAME = re.compile(r"\.(c|h|v|json|safetensors|bin|txt|md|sh|py|gguf|npy|html)$")


# What `make exhaustive` runs: minutes, and so its log is kept, and holds as long as these do.
EXHAUSTIVE = ["fast/lanes/exp.h", "fast/lanes/exp.c", "tests/shared/exp_floats.h", "tests/fast/exhaustive_exp.c"]


def exhaustive_code(root):
    """A hash of that code, comments and spaces left out."""
    texts = [(root / file).read_text(encoding="utf-8") if (root / file).is_file() else "" for file in EXHAUSTIVE]
    code = ["".join(re.sub(r"//[^\n]*", "", text).split()) for text in texts]
    return f"# CODE {hashlib.sha256(chr(0).join(code).encode()).hexdigest()[:16]}"


def exhaustive_log(root, problems):
    """What the kept log printed; a problem when its code has changed since."""
    path = root / "tests/fast/exhaustive.log"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text and exhaustive_code(root) not in text.splitlines():
        problems.add("tests/fast/exhaustive.log", f"is of other code than {', '.join(EXHAUSTIVE)}: run make exhaustive")
    return text


def pages(root):
    found = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "doc").glob("*.md"))]
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


def speeds(root, name):
    """The table of kept speeds doc/book/data/NAME.txt, or None: what was reached, its limit, their ratio."""
    path = root / f"doc/book/data/{name}.txt"
    if not path.is_file():
        return None
    lines = path.read_text(encoding="utf-8").splitlines()
    if any(line.startswith("# work | before | now |") for line in lines):
        return changes(lines)
    rows = ["", "| work | reached | limit in that run | share | ik_llama.cpp |", "|---|---|---|---|---|"]
    for line in lines:
        if line.startswith("#"):
            continue
        work, reached, limit, unit, roof, peer = (cell.strip() for cell in line.split("|"))
        share = float(reached) / float(limit) if unit.endswith("/s") else float(limit) / float(reached)
        rows.append(f"| {work} | {reached} {unit} | {limit}{f' ({roof})' if roof else ''} | "
                    f"{percent(share, 0)} | {peer or '—'} |")
    return rows


def changes(lines):
    """The same where a file says what was reached before and now, their ratio, and the share that was printed."""
    rows = ["", "| work | before | now | times | share in that run |", "|---|---|---|---|---|"]
    for line in lines:
        if line.startswith("#"):
            continue
        work, before, now, unit, share, of = (cell.strip() for cell in line.split("|"))
        faster = float(now) / float(before) if unit.endswith("/s") else float(before) / float(now)
        said = f"{share} % of {of}" if share else "—"
        rows.append(f"| {work} | {before} {unit} | {now} {unit} | {faster:.2f} | {said} |")
    return rows


def fence_end(lines, at, language):
    """The line after the fence that opens at `at`, or None."""
    if at >= len(lines) or lines[at] != "```" + language or "```" not in lines[at + 1:]:
        return None
    return lines.index("```", at + 1) + 1


def machine_of(text):
    """What the figures of a log, or of the pages (doc/TRACE.lock), were measured on."""
    found = re.search(r"^# MACHINE (.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def same(kind, have, want, run, here):
    """What is shown is equal to the letter, figures too; only what was measured on another machine
    (`here` is false) may differ in its digits and name a test that ran here too and found nothing
    to ask of the processor, and a run without Coq checks no theorem."""
    if kind == "measured" and not run.formal:
        have = [re.sub(r"; \d+ theorems? \([^)]*\)", "", line) for line in have]
    if kind != "measured" or here:
        return have, want
    have = without_silent("\n".join(have), "\n".join(want), run)
    return [re.sub(r"worst \S+ of bound .*|[0-9]+( check)s?\b|[0-9]+", r"N\1", t) for t in (have, "\n".join(want))]


def without_silent(have, want, run):
    """A line without the tests that it names and `want` does not, if they are of those that ran."""
    for test in set(re.findall(r"`((?:\w+/)?test_\w+(?:\.\w+)?)`", have)) & run.files:
        if f"`{test}`" not in want:
            have = have.replace(f"`{test}`, ", "").replace(f", `{test}`", "")
    return have


def program(root, name):
    """The language of a whole program and its lines, without the lines of the licence; or None."""
    if not (root / name).is_file():
        return None
    lines = (root / name).read_text(encoding="utf-8").rstrip("\n").split("\n")
    language = {".cpp": "cpp", ".py": "python", ".map": "text"}.get(pathlib.Path(name).suffix, "c")
    bare = 0 if language == "text" else 3 if lines[2] == "//" else 2
    return language, lines[bare:]


def made_table(root, table, judged, planted):
    """(where it is made from, its lines or None) of a table that a marker announces."""
    if judged:
        return f"doc/engines/{judged[1]}.json", doc_engines.table(root, judged[1])
    if planted:
        return f"doc/engines/{planted[1]}", doc_planted.table(root, *planted.groups())
    if table[1] in doc_variants.FILES:
        return doc_variants.FILES[table[1]], doc_variants.table(root, table[1])
    if table[1].startswith("lecture-"):
        return doc_lecture.KEPT, doc_lecture.table(root, table[1])
    if table[1] in doc_truth_engines.NAMES:
        return doc_truth_engines.place(table[1]), doc_truth_engines.table(root, table[1])
    if table[1].startswith("training-"):
        return doc_training.KEPT, doc_training.table(root, table[1])
    return f"doc/book/data/{table[1]}.txt", speeds(root, table[1])


def check_page(page, name, regions, run, here, write, problems):
    lines, out, at = page.read_text(encoding="utf-8").splitlines(), [], 0
    while at < len(lines):
        line = lines[at]
        at += 1
        out.append(line)
        place = f"{name}:{at}"
        shown, figure, output, table, whole = (k.match(line) for k in (SHOWN, MEASURED, OUTPUT, TABLE, PROGRAM))
        judged, planted = doc_engines.MARKER.match(line), doc_planted.MARKER.match(line)
        if not run.ran and (output or figure):
            continue  # the book of a tree that nobody tested: its pages say so
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
        elif whole:
            kind, what, text = "program", whole[1], program(page.parent.parent, whole[1])
            if text is None:
                problems.add(place, f"{what} is no file")
                continue
            end, want = fence_end(lines, at, text[0]), ["```" + text[0], *text[1], "```"]
        elif table or judged or planted:
            kind, what, want = "table", *made_table(page.parent.parent, table, judged, planted)
            if want is None:
                problems.add(place, f"{what} is missing")
                continue
            end = next((k for k in range(at + 1, len(lines)) if not lines[k].startswith("|")), len(lines))
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
            elif SPEED.match(line):
                problems.add(place, "a speed that was typed: keep it in doc/book/data, <!-- table NAME --> before it")
            continue
        if end is None and not write:
            problems.add(place, f"a marker of shown {kind} without its fence")
            continue
        have = lines[at:end] if end is not None else []
        old, new = same(kind, have, want, run, here)
        if old != new and not write:
            problems.add(place, f"shown {kind} differs from {what}: run make write-doc")
        out += want
        at = end if end is not None else at
    if write and out != lines:
        page.write_text("\n".join(out) + "\n", encoding="utf-8")


def is_here(root, run):
    """Whether the pages' figures are of the machine of this run."""
    lock = root / "doc/TRACE.lock"
    return machine_of(lock.read_text() if lock.is_file() else "") == run.machine


def check_shown(root, regions, run, write, problems):
    for problem in doc_planted.broken(root):
        problems.add("doc/engines", problem)
    here = is_here(root, run)
    for page in pages(root):
        check_page(page, str(page.relative_to(root)), regions, run, here, write, problems)


def check_citations(root, stated, problems):
    """eq[ID] in prose, `family.name` and `room/file` in backticks, and links to files and statements exist."""
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
            for path in re.findall(r"`((?:base|model|ref|fast|proofs|audit|doc|tests)/[\w./-]*)`", line):
                if not re.search("NAME|ROOM|STEM", path) and not (root / path).exists():
                    problems.add(place, f"names {path}, which is not there")
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                if path and not (page.parent / path).exists():
                    problems.add(place, f"a dead link: {target}")
                if re.fullmatch(ID, anchor) and anchor not in stated:
                    problems.add(place, f"links to {anchor}, which is not stated in doc/")


if __name__ == "__main__":
    print(exhaustive_code(pathlib.Path(sys.argv[2])))
