# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Joins every equation's statement, code, proof and the tests that ran, by id.

    python3 tests/check_doc.py [--write] --log TAP_LOG ROOT

  statement  doc/*.md: a line "eq[sink.mass] Title" (a heading may carry it), then a $$ block; once per id
  code       ref/ and proofs/: regions between lines "//> sink.mass" and "//< sink.mass"
  shown      Markdown: "<!-- code ref/softmax_sink.c sink.mass -->", then a fence that equals the region
  tests      the TAP log of the run: "ok 12 - sink.mass ref worst=0.31 bound=1"

Fails on an id stated twice, without a $$ block, without code, without a passing test or with a
failing one; on an id in code or log that no chapter states; on a malformed or unclosed region; on
shown code or an index that differ; on a stale doc/TRACE.lock; on zero equations and an empty log.
--write refreshes the shown code, doc/INDEX.md and doc/TRACE.lock first, and then checks the rest.
"""
import argparse
import hashlib
import os
import pathlib
import re
import sys
from collections import defaultdict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap_log  # noqa: E402

ID = r"[a-z][a-z0-9]*\.[a-z0-9]+(?:-[a-z0-9]+)*"
STATEMENT = re.compile(rf"^(?:#+ )?eq\[({ID})\] (\S.*)$")
MARKER = re.compile(rf"^\s*//([<>])((?: {ID})+)\s*$")
SHOWN = re.compile(rf"^<!-- code (\S+) ({ID}) -->$")
FILE_NAME = re.compile(r"\.(c|h|json|safetensors|bin|txt|md|sh|py|gguf|npy)$")


class Problems(list):
    def add(self, place, what):
        self.append(f"{place}: {what}")


def read_statements(root, problems):
    """{id: (chapter, title, text)}, in reading order."""
    stated = {}
    for chapter in sorted((root / "doc").glob("*.md")):
        if chapter.name == "INDEX.md":
            continue
        lines, fenced = chapter.read_text(encoding="utf-8").splitlines(), False
        for at, line in enumerate(lines):
            fenced ^= line.startswith("```")
            if fenced or not re.match(r"(#+ )?eq\[", line):
                continue
            place, match = f"doc/{chapter.name}:{at + 1}", STATEMENT.match(line)
            if not match:
                problems.add(place, f"malformed statement: {line!r}, expected eq[family.name] Title")
                continue
            block = [at + 1] + [k for k in range(at + 1, len(lines)) if lines[k].strip()]
            start = block[1] if len(block) > 1 else len(lines)
            if start == len(lines) or lines[start] != "$$" or "$$" not in lines[start + 1:]:
                problems.add(place, f"{match[1]} is not followed by a $$ block")
                continue
            end = lines.index("$$", start + 1)
            if not "".join(lines[start + 1:end]).strip():
                problems.add(place, f"{match[1]} states nothing: its $$ block is empty")
            if match[1] in stated:
                problems.add(place, f"{match[1]} is stated a second time (first in doc/{stated[match[1]][0]})")
                continue
            stated[match[1]] = (chapter.name, match[2], "\n".join([match[2], *lines[start:end + 1]]))
    return stated


def dedent(lines):
    margin = min((len(s) - len(s.lstrip()) for s in lines if s.strip()), default=0)
    return "\n".join(s[margin:].rstrip() for s in lines).strip("\n")


def read_regions(root, problems):
    """{id: {file: text}}: a file's regions of one id are joined by an empty line."""
    regions = defaultdict(lambda: defaultdict(list))
    for room in ("ref", "proofs"):
        for file in sorted((root / room).rglob("*.[ch]")):
            name = str(file.relative_to(root))
            open_at, collected = {}, {}
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                match = MARKER.match(line)
                if not match:
                    if re.match(r"^\s*//[<>]", line):
                        problems.add(f"{name}:{number}", f"malformed region marker: {line.strip()!r}")
                    for text in collected.values():
                        text.append(line)
                    continue
                for id in match[2].split():
                    if match[1] == ">":
                        if id in open_at:
                            problems.add(f"{name}:{number}", f"region {id} is opened inside itself")
                        open_at[id], collected[id] = number, []
                    elif id not in open_at:
                        problems.add(f"{name}:{number}", f"region {id} is closed but was not opened")
                    else:
                        if not "".join(collected[id]).strip():
                            problems.add(f"{name}:{number}", f"region {id} is empty")
                        regions[id][name].append(dedent(collected.pop(id)))
                        del open_at[id]
            for id, number in open_at.items():
                problems.add(f"{name}:{number}", f"region {id} is not closed")
    return {id: {f: "\n\n".join(t) for f, t in files.items()} for id, files in regions.items()}


def read_tests(path, families, problems):
    """{id: {test: worst outcome}} of what ran: the ids that open a result's text are reported.
    A dotted word is an id when its family (what stands before the dot) is one that doc/ states."""
    if not path.is_file() or not path.read_text(encoding="utf-8", errors="replace").strip():
        problems.add(path, "the log is empty or missing: run make test first")
        return {}
    ran = defaultdict(dict)
    for result in tap_log.parse(path.read_text(encoding="utf-8", errors="replace")):
        if result.skip is not None or result.todo:
            continue
        for word in result.text.split():
            id = word.rstrip(":,")
            if not re.fullmatch(ID, id) or FILE_NAME.search(id) or id.split(".")[0] not in families:
                break
            ran[id][result.file] = ran[id].get(result.file, True) and result.ok
    return dict(ran)


def check_shown(root, regions, write, problems):
    """The code shown in Markdown equals its region; every fence of C names its region."""
    for page in [root / "README.md", *sorted((root / "doc").glob("*.md"))]:
        if not page.is_file():
            continue
        name, lines = str(page.relative_to(root)), page.read_text(encoding="utf-8").splitlines()
        out, at, changed = [], 0, False
        while at < len(lines):
            line, match = lines[at], SHOWN.match(lines[at])
            out.append(line)
            at += 1
            if not match:
                if line.startswith("<!-- code"):
                    problems.add(f"{name}:{at}", f"malformed marker of shown code: {line!r}")
                elif line.startswith("```c") and not SHOWN.match(lines[at - 2] if at > 1 else ""):
                    problems.add(f"{name}:{at}", "a fence of C without <!-- code FILE ID --> before it")
                continue
            text = regions.get(match[2], {}).get(match[1])
            if text is None:
                problems.add(f"{name}:{at}", f"{match[1]} has no region {match[2]}")
                continue
            if at == len(lines) or lines[at] != "```c" or "```" not in lines[at + 1:]:
                problems.add(f"{name}:{at}", "a marker of shown code without its ```c fence")
                continue
            end = lines.index("```", at + 1)
            if "\n".join(lines[at + 1:end]) != text:
                changed = True
                if not write:
                    problems.add(f"{name}:{at}", f"shown code differs from {match[1]} {match[2]}: run make write-doc")
            out += ["```c", *text.split("\n"), "```"]
            at = end + 1
        if write and changed:
            page.write_text("\n".join(out) + "\n", encoding="utf-8")


def split(files):
    """A region's files: the code in ref/, the evidence in proofs/."""
    return ({f: t for f, t in files.items() if f.startswith("ref/")},
            {f: t for f, t in files.items() if f.startswith("proofs/")})


def digest(files):
    if not files:
        return "-"
    joined = "\0".join(f"{f}\0{t}" for f, t in sorted(files.items()))
    return hashlib.sha256(joined.encode()).hexdigest()[:16]


def lock_text(stated, regions):
    rows = ["# id statement code proof: a change of one without the others shows in review"]
    for id in sorted(stated):
        code, proof = split(regions.get(id, {}))
        rows.append(f"{id} {digest({'': stated[id][2]})} {digest(code)} {digest(proof)}")
    return "\n".join(rows) + "\n"


def check_lock(path, wanted, problems):
    have = dict(r.split(" ", 1) for r in path.read_text().splitlines()[1:]) if path.is_file() else {}
    want = dict(r.split(" ", 1) for r in wanted.splitlines()[1:])
    for id in sorted(set(have) | set(want)):
        if id not in have or id not in want:
            problems.add("doc/TRACE.lock", f"{id} is {'new' if id in want else 'gone'}: run make write-doc")
            continue
        parts = [part for part, a, b in zip(("statement", "code", "proof"), have[id].split(),
                                            want[id].split()) if a != b]
        if parts:
            problems.add("doc/TRACE.lock", f"{id} is stale: its {' and '.join(parts)} changed; "
                         "look at the others, then run make write-doc")


def index_text(stated, regions, ran):
    rows = ["<!-- generated by tests/check_doc.py from the log of a run; do not edit -->",
            "# Index: every equation and its evidence", "",
            f"{len(stated)} equations; each is stated once, computed, and reported by a test that ran and passed.",
            "", "| id | statement | code | proof | tests that ran |", "|---|---|---|---|---|"]
    for id, (chapter, title, _) in stated.items():
        code, proof = split(regions.get(id, {}))
        cell = [", ".join(f"`{f}`" for f in sorted(part)) or "—" for part in (code, proof)]
        tests = ", ".join(f"`{t}`" for t in sorted(ran.get(id, {}))) or "—"
        rows.append(f"| `{id}` | [{title}]({chapter}) | {cell[0]} | {cell[1]} | {tests} |")
    return "\n".join(rows) + "\n"


def check_join(stated, regions, ran, problems):
    if not stated:
        problems.add("doc", "zero equations are stated")
    for id, (chapter, _, _) in stated.items():
        if id not in regions:
            problems.add(f"doc/{chapter}", f"{id} is stated, but ref/ and proofs/ have no region of it")
        if id not in ran:
            problems.add(f"doc/{chapter}", f"{id} is stated, but no test that ran reported it")
        for test, passed in ran.get(id, {}).items():
            if not passed:
                problems.add(test, f"{id} failed")
    for id in sorted(set(regions) - set(stated)):
        problems.add(", ".join(regions[id]), f"region {id} is not stated in doc/")
    for id in sorted(set(ran) - set(stated)):
        problems.add(", ".join(ran[id]), f"reports {id}, which is not stated in doc/")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--write", action="store_true")
    arguments.add_argument("--log", type=pathlib.Path, required=True)
    arguments.add_argument("root", type=pathlib.Path)
    options = arguments.parse_args()
    root, problems = options.root, Problems()
    regions = read_regions(root, problems)
    check_shown(root, regions, options.write, problems)
    stated = read_statements(root, problems)
    ran = read_tests(options.log, {id.split(".")[0] for id in stated}, problems)
    check_join(stated, regions, ran, problems)
    lock, index = lock_text(stated, regions), index_text(stated, regions, ran)
    if options.write:
        (root / "doc/TRACE.lock").write_text(lock)
        (root / "doc/INDEX.md").write_text(index, encoding="utf-8")
    check_lock(root / "doc/TRACE.lock", lock, problems)
    page = root / "doc/INDEX.md"
    if not page.is_file() or page.read_text(encoding="utf-8") != index:
        problems.add("doc/INDEX.md", "differs from what the run shows: run make write-doc")
    print("\n".join(problems + [f"check-doc: {len(stated)} equations, {len(regions)} with code, "
                                f"{len(ran)} reported by tests, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
