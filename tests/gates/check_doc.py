# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Joins every equation's statement, code, proofs and the tests that ran, by id.

    python3 tests/gates/check_doc.py [--write] --log TAP_LOG ROOT

  statement  doc/*.md: a line "eq[sink.mass] Title {C Q B}" (a heading may carry it), then a $$ block;
             once per id. The letters are the evidence that it must have (KINDS below)
  code       the reference and proofs/: regions between lines "//> sink.mass" and "//< sink.mass"
  proof      the same in proofs/; in Coq between "(*> sink.mass *)" and "(*< sink.mass *)"
  shown      Markdown: "<!-- code ref/softmax_sink.c sink.mass -->", then a fence that equals the region;
             "<!-- theorem proofs/formal/F.v sink.mass -->": the region without its proofs
             "<!-- program audit/examples/judge_my_kernel.c -->": the whole file, without its licence
  run        Markdown: "<!-- measured sink.mass -->": what the tests measured, one line;
             "<!-- output NAME -->": a fence with what the program NAME printed (tests/doc/test_exercises.py)
  tests      the TAP log of the run: "ok 12 - sink.mass ref worst=0.31 bound=1",
             "ok 3 - sink.mass exact instances=200 unequal=0", "ok 4 - sink.mass coq theorem=sink_mass"

Fails on an id stated twice, without a $$ block, without code, without a passing test or with a
failing one, without the evidence that its letters ask for; on an id in code, log or prose that no
chapter states, on a dead link, on a citation without an entry in doc/99-bibliography.md and an
entry without a citation; on a malformed or unclosed region; on shown code, measured lines or
an index that differ; on a stale doc/TRACE.lock; on zero equations and an empty log.
--write refreshes what is shown and measured, doc/INDEX.md and doc/TRACE.lock, then checks the rest.
"""
import argparse
import hashlib
import os
import pathlib
import re
import sys
from collections import defaultdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import doc_bibliography  # noqa: E402
import doc_lecture  # noqa: E402
import doc_lines  # noqa: E402
import doc_pages  # noqa: E402
import doc_points  # noqa: E402
import doc_proved  # noqa: E402
import doc_stems  # noqa: E402
import doc_training  # noqa: E402
import doc_variants  # noqa: E402
import mutants_table  # noqa: E402
import tap_log  # noqa: E402
from inventory import (COQ_MARKER, FILE_NAME, ID, KINDS, MARKER, REFERENCE, Problems, evidence,  # noqa: E402,F401
                       read_regions, read_statements)


class Run:
    """What the log of a run reports: the ids that open a result's text. A dotted word is an id when
    its family (what stands before the dot) is one that doc/ states. A skip reports nothing."""

    def __init__(self, path, families, problems):
        self.results = defaultdict(list)  # id: [(test, ok, kind, text)]
        self.output = defaultdict(list)   # name of a shown program: what it printed
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        self.ran = bool(text.strip())
        if not self.ran:
            problems.add(path, "the log is empty or missing: run make test first")
        self.printed(text)
        self.machine = doc_pages.machine_of(text)
        self.files = set(re.findall(r"^# FILE (\S+)", text, re.MULTILINE))
        for result in tap_log.parse(text):
            if result.skip is not None or result.todo:
                continue
            words, ids = result.text.split(), []
            while words and re.fullmatch(ID, words[0].rstrip(":,")) and not FILE_NAME.search(
                    words[0].rstrip(":,")) and words[0].split(".")[0] in families:
                ids.append(words.pop(0).rstrip(":,"))
            match = re.match(r"(exact) instances=|(coq) theorem=|(refuted|verify|broken on purpose)\b", " ".join(words))
            kind = match[match.lastindex] if match else "run"
            for id in ids:
                self.results[id].append((result.file, result.ok, kind, " ".join(words)))

    def printed(self, text):
        for name, line in re.findall(r"^# output (\S+)\| ?(.*)$", text, re.MULTILINE):
            self.output[name].append(line)

    @property
    def formal(self):
        """Whether this run checked formal proofs at all."""
        return any(kind == "coq" for results in self.results.values() for _, _, kind, _ in results)

    def tests(self, id, kinds=None):
        return sorted({t for t, _, k, _ in self.results.get(id, []) if kinds is None or k in kinds})


def digest(files):
    if not files:
        return "-"
    joined = "\0".join(f"{f}\0{t}" for f, t in sorted(files.items()))
    return hashlib.sha256(joined.encode()).hexdigest()[:16]


def lock_row(statement, files):
    return f"{digest({'': statement.text})} {digest(evidence(files, REFERENCE))} {digest(evidence(files, ['proofs/']))}"


def lock_text(stated, regions, run):
    rows = ["# id statement code proof: a change of one without the others shows in review"]
    rows += [f"# MACHINE {run.machine}"] if run.machine else []  # where the pages' figures were measured
    rows += [f"{id} {lock_row(stated[id], regions.get(id, {}))}" for id in sorted(stated)]
    return "\n".join(rows) + "\n"


def lock_rows(text):
    return dict(row.split(" ", 1) for row in text.splitlines() if not row.startswith("#"))


def kept_figures(root, stated, regions):
    """(machine, {id: "Measured: ..."}): what the pages keep of the run behind doc/TRACE.lock, of each statement whose
    text, code and proofs are still those of that run."""
    path = root / "doc/TRACE.lock"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    rows, kept = lock_rows(text), {}
    for page in doc_pages.pages(root):
        for id, said in re.findall(r"^<!-- measured (\S+) -->\n(Measured: .*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            if id in stated and rows.get(id) == lock_row(stated[id], regions.get(id, {})):
                kept[id] = said
    return doc_pages.machine_of(text), kept


def check_lock(path, wanted, problems):
    have, want = lock_rows(path.read_text() if path.is_file() else ""), lock_rows(wanted)
    for id in sorted(set(have) | set(want)):
        if id not in have or id not in want:
            problems.add("doc/TRACE.lock", f"{id} is {'new' if id in want else 'gone'}: run make write-doc")
            continue
        parts = [part for part, a, b in zip(("statement", "code", "proof"), have[id].split(),
                                            want[id].split()) if a != b]
        if parts:
            problems.add("doc/TRACE.lock", f"{id} is stale: its {' and '.join(parts)} changed; "
                         "look at the others, then run make write-doc")


def kill_table(root):
    """{id: "killed of made"} and the survivors with their reasons, as `make mutants` last left them."""
    path = root / mutants_table.TABLE
    rows, _ = mutants_table.read(path.read_text(encoding="utf-8")) if path.is_file() else ({}, {})
    counts = mutants_table.by_id(rows)
    lines = []
    if rows:
        own, helpers = ([sum(getattr(row, count) for row in rows.values() if mutants_table.is_helper(row.id) == of)
                         for count in ("killed", "made", "possible")] for of in (False, True))
        lines = ["", "## Mutants", "",
                 f"Small mistakes in the code of {len(counts)} equations, as the code was when each was last asked (`make "
                 "mutants`, `make mutants-all`; `make mutants-changed` asks a sample of what changed since): "
                 f"{own[0]} killed by a test that reports the equation, of {own[1]} made, of {own[2]} possible. In the "
                 f"helpers that this code calls: {helpers[0]} killed of {helpers[1]} made of {helpers[2]} possible. Not "
                 "counted: mutants that compute the same. The survivors:",
                 "", "| mutant | change | reason |", "|---|---|---|"]
        for survivor in (survivor for row in rows.values() for survivor in row.survivors):
            mutant, change, reason = (cell.replace("|", "\\|") for cell in survivor)
            lines.append(f"| `{mutant}` | `{change}` | {'not explained yet' if reason == '-' else reason} |")
    return {id: f"{killed} of {made}" for id, (made, killed) in counts.items()}, lines


def index_text(root, stated, regions, run):
    kills, survivors = kill_table(root)
    letters = "; ".join(f"**{letter}** {what[0]}" for letter, what in KINDS.items())
    rows = ["<!-- generated by tests/gates/check_doc.py from the log of a run; do not edit -->",
            "# Index: every equation and its evidence", "",
            f"{len(stated)} equations; each is stated once, computed, and reported by a test that ran and passed. "
            f"What a statement must show: {letters}.", "",
            "| id | statement | shows | code | exact | ball, bound | formal | tests that ran | mutants killed |",
            "|---|---|---|---|---|---|---|---|---|"]
    for id, s in stated.items():
        files = regions.get(id, {})
        parts = [evidence(files, p) for p in (REFERENCE, ["proofs/exact/"], ["proofs/truth/", "proofs/bounds/"],
                                              ["proofs/formal/"])]
        cell = [", ".join(f"`{f.removeprefix('proofs/')}`" for f in sorted(part)) or "—" for part in parts]
        tests = ", ".join(f"`{t}`" for t in run.tests(id)) or "—"
        rows.append(f"| `{id}` | [{s.title}]({s.chapter}) | {' '.join(s.kinds)} | {' | '.join(cell)} | {tests} | "
                    f"{kills.get(id, '—')} |")
    stems = ["", *doc_stems.matrix(root)] if doc_stems.serves(root) else []
    return "\n".join(rows + stems + survivors) + "\n"


def check_join(stated, regions, run, problems, strict):
    """strict: a run that checked no formal proof at all, its tools missing, is not excused."""
    if not stated:
        problems.add("doc", "zero equations are stated")
    excused = not strict and not run.formal
    for id, statement in stated.items():
        place, files = f"doc/{statement.chapter}", regions.get(id, {})
        if not evidence(files, [*REFERENCE, "proofs/exact/", "proofs/truth/", "proofs/bounds/"]):
            problems.add(place, f"{id} is stated, but no room has a region of it")
        if not run.tests(id):
            problems.add(place, f"{id} is stated, but no test that ran reported it")
        for kind in statement.kinds:
            what, places, reports = KINDS[kind]
            if not evidence(files, places):
                problems.add(place, f"{id} asks for {kind}, {what}: no region in {' or '.join(places)}")
            elif kind == "C" and not re.search(r"^\s*(Theorem|Lemma|Corollary)\b",
                                               "\n".join(evidence(files, places).values()), re.MULTILINE):
                problems.add(place, f"{id} asks for C, but its Coq region proves nothing")
            elif run.tests(id) and not run.tests(id, reports) and not (kind == "C" and excused):
                problems.add(place, f"{id} asks for {kind}, {what}: no test that ran reported it")
        for test in sorted({t for t, ok, _, _ in run.results.get(id, []) if not ok}):
            problems.add(test, f"{id} failed")
    for id in sorted(set(regions) - set(stated)):
        problems.add(", ".join(regions[id]), f"region {id} is not stated in doc/")
    for id in sorted(set(run.results) - set(stated)):
        problems.add(", ".join(run.tests(id)), f"reports {id}, which is not stated in doc/")
    return excused


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--write", action="store_true")
    arguments.add_argument("--log", type=pathlib.Path, required=True)
    arguments.add_argument("root", type=pathlib.Path)
    options = arguments.parse_args()
    root, problems = options.root, Problems()
    regions = read_regions(root, problems)
    stated = read_statements(root, problems)
    families = {id.split(".")[0] for id in stated}
    run = Run(options.log, families, problems)
    if not run.ran:  # one line: without a run everything else is missing too
        sys.exit(f"check-doc: {problems[-1]}")
    run.printed(doc_pages.exhaustive_log(root, problems))
    doc_pages.check_shown(root, regions, run, options.write, problems)
    doc_pages.check_citations(root, stated, problems)
    doc_bibliography.check(root, problems)
    doc_points.check(root, problems)
    doc_stems.check(root, problems)
    doc_lines.check(root, problems)
    doc_variants.check(root, problems)
    doc_training.check(root, options.write, problems)
    doc_lecture.check(root, options.write, problems)
    doc_proved.check(root, stated, regions, problems)
    excused = check_join(stated, regions, run, problems, os.environ.get("CI") == "true")
    lock, index = lock_text(stated, regions, run), index_text(root, stated, regions, run)
    here = doc_pages.is_here(root, run)
    if options.write:
        (root / "doc/TRACE.lock").write_text(lock)
        (root / "doc/INDEX.md").write_text(index, encoding="utf-8")
    check_lock(root / "doc/TRACE.lock", lock, problems)
    page = root / "doc/INDEX.md"
    have = page.read_text(encoding="utf-8") if page.is_file() else ""
    if excused:
        have = re.sub(r", `test_formal(\.sh)?`", "", have)
    if not here:
        have = "\n".join(doc_pages.without_silent(*lines, run) for lines in zip(have.split("\n"), index.split("\n"))) \
            if have.count("\n") == index.count("\n") else have
    if have != index:
        problems.add("doc/INDEX.md", "differs from what the run shows: run make write-doc")
    notes = ["note: the formal proofs were not checked in this run: Coq is missing"] if excused else []
    joined = sum(bool(run.tests(id)) and id in regions for id in stated)
    print("\n".join(problems + notes + [f"check-doc: {len(stated)} equations, {joined} joined with code and "
                                        f"tests, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
