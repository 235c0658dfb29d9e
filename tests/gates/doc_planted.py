# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The tables of the chapter on diagnosis, from what is kept of runs in doc/engines; for doc_pages.py.

`<!-- planted rows -->` shows doc/engines/planted/*.json, a row for each mistake; `<!-- planted all -->` a row for
each engine and policy, the reference's from its own table in that chapter; `<!-- honest all -->` shows
doc/engines/honest/*.json. tests/audit/planted.py and honest.py say what the files hold.
"""
import collections
import json
import re

MARKER = re.compile(r"^<!-- (planted|honest) (all|rows) -->$")
BOOK = "doc/21-diagnosis.md"
OF_REFERENCE = re.compile(r"^- (\S+): (\d+) planted, (\d+) seen and convicted, (\d+) named, (\d+) of these alone\.$", re.MULTILINE)
PAIRS_OF_REFERENCE = re.compile(r"^- pairs: (\d+) planted, (\d+) named together\.$", re.MULTILINE)
SEEN, UNSEEN, ALARMS = ("bug",), ("exact", "within"), ("bug", "suspicious", "refused")


def kept(root, kind):
    files = sorted((root / f"doc/engines/{kind}").glob("*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in files]


def short(number):
    """1.1e5, as the chapter writes it."""
    if number is None or number == 0:
        return "—"
    return f"{number:.2g}" if abs(number) < 1000 else re.sub(r"e\+?(-?)0*(\d+)", r"e\1\2", f"{number:.1e}")


def called(row):
    """What the diagnosis said."""
    names = " or ".join(f"`{name}`" for name in row.get("as", "").split(" or ") if name)
    return {None: "not asked", "exactly": "named", "among equals": f"named: {names}", "described": "described",
            "otherwise": f"**not named**: {names}"}[row["named"]]


def row_of(engine, row):
    kind = {"equivalent": " (equivalent)"}.get(row["kind"], "")
    seen = row["verdict"] in SEEN
    cells = [engine, f"`{row['mistake']}`{kind}", f"`{row['policy']}`", f"{row['changed']:,}",
             row["first"] or "—" if seen else f"*{row['verdict']}* {row['first'] or ''}".strip(), str(row["points"]) if seen else "—", short(row["ulp"]),
             called(row) if seen else "—", short(row.get("bounds")) if seen else "—"]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def rows(root):
    head = ["", "| engine | mistake | policy | elements changed | first at | points | ulp | diagnosis | next best, bounds |",
            "|---|---|---|---|---|---|---|---|---|"]
    return [*head, *(row_of(told["engine"], row) for told in kept(root, "planted") for row in told["rows"])]


def counts(found):
    """planted, inside, doubted, convicted, then of the convicted: named alone, among equals, described, otherwise, not asked"""
    seen = [row for row in found if row["verdict"] in SEEN]
    inside = sum(row["verdict"] in UNSEEN for row in found)
    return [len(found), inside, len(found) - len(seen) - inside, len(seen),
            *(sum(row["named"] == how for row in seen) for how in ("exactly", "among equals", "described", "otherwise", None))]


def of_reference(root):
    """(engine, policy, counts) of the reference: the lines below its own table."""
    book = (root / BOOK).read_text(encoding="utf-8")
    for policy, *numbers in OF_REFERENCE.findall(book):
        planted, seen, named, alone = map(int, numbers)
        yield "the reference", policy, [planted, planted - seen, 0, seen, alone, named - alone, 0, seen - named, 0]
    for numbers in PAIRS_OF_REFERENCE.findall(book):
        planted, named = map(int, numbers)
        yield "the reference, pairs", "f32", [planted, 0, 0, planted, named, 0, 0, planted - named, 0]


def of_others(root):
    for told in kept(root, "planted"):
        for kind, text in (("mistake", ""), ("pair", ", pairs"), ("equivalent", ", equivalents")):
            of_kind = [row for row in told["rows"] if row["kind"] == kind]
            for policy in dict.fromkeys(row["policy"] for row in of_kind):
                yield told["engine"] + text, policy, counts([row for row in of_kind if row["policy"] == policy])


def summary(root):
    lines = ["", "| engine | policy | planted | inside | doubted | convicted | named alone | named among equals | described "
             "| named otherwise | not asked |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    sums = [0] * 9
    for engine, policy, numbers in [*of_reference(root), *of_others(root)]:
        lines.append(f"| {engine} | `{policy}` | " + " | ".join(map(str, numbers)) + " |")
        if not engine.endswith("equivalents"):
            sums = [a + b for a, b in zip(sums, numbers)]
    return [*lines, "| all but equivalents | | " + " | ".join(map(str, sums)) + " |"]


def upper(n):
    """The highest rate of alarms under which none in n runs is seen once in twenty times."""
    return f"{100 * (1 - 0.05 ** (1 / n)):.2g} %" if n else "—"


def honest(root):
    lines = ["", "| engine | version | runs | policies | alarms | nothing decided | at most, with 95 % |", "|---|---|---|---|---|---|---|"]
    found = [(one.get("engine", told["engine"]), told["version"], one) for told in kept(root, "honest") for one in told["runs"]]
    for engine in dict.fromkeys(engine for engine, _, _ in found):
        lines.append(honest_row(engine, [(version, one) for name, version, one in found if name == engine]))
    return [*lines, honest_row("all", [("", one) for _, _, one in found])]


def honest_row(engine, found):
    """A run in which nothing was decided could raise no alarm, and bounds nothing."""
    runs = [one for _, one in found]
    alarms, silent = (sum(one["verdict"] in verdicts for one in runs) for verdicts in (ALARMS, ("undecided",)))
    return (f"| {engine} | {found[0][0]} | {len(runs)} | {len({one['policy'] for one in runs})} | {alarms} | {silent} | "
            f"{'—' if alarms else upper(len(runs) - silent)} |")


def broken(root):
    """What the chapter says in words and the files deny."""
    for told in kept(root, "planted"):
        for row in told["rows"]:
            text = f"{told['engine']} {row['mistake']} {row['policy']}"
            if row["kind"] == "equivalent" and row["verdict"] not in UNSEEN:
                yield f"{text}: computes the same and is called {row['verdict']}"
            if row["kind"] != "equivalent" and not row["changed"]:
                yield f"{text}: changed nothing in the trace"
            if row["named"] is None and row["verdict"] in SEEN and "f32" in row["policy"]:
                yield f"{text}: convicted and not asked for its cause"
    runs = [(one.get("engine", told["engine"]), one["run"], one["policy"]) for told in kept(root, "honest") for one in told["runs"]]
    for run, times in collections.Counter(runs).items():
        if times > 1:
            yield f"{' '.join(run)}: counted {times} times"


def table(root, kind, which):
    """The lines below a marker, or None when nothing is kept."""
    if not kept(root, kind):
        return None
    return honest(root) if kind == "honest" else rows(root) if which == "rows" else summary(root)
