# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The kill table of doc/21-diagnosis.md, from the output of test_diagnosis: kill_table.py LOG."""
import pathlib
import re
import sys

BOOK = pathlib.Path(__file__).resolve().parents[2] / "doc" / "21-diagnosis.md"


def rows_of(log):
    """The fields of each "# kill | policy | id | at | points | ulp | named | alike | next"."""
    for line in log.splitlines():
        if line.startswith("# kill |"):
            yield [field.strip() for field in line[2:].split("|")][1:]


def power(text):
    """1.1e+05 as the book writes it."""
    return "-" if text in ("inf", "0") else re.sub(r"e\+?(-?)0*(\d+)", r"e\1\2", text)


def table_of(log):
    lines = ["| mistake | first at | points | ulp | diagnosis | alike | next best, bounds |",
             "|---|---|---|---|---|---|---|"]
    for policy, name, at, points, ulp, named, alike, following in rows_of(log):
        if policy == "f32":
            lines.append(f"| `{name}` | {at} | {points} | {power(ulp)} | {named} | {alike} | {power(following)} |")
    return "\n".join(lines) + "\n\n" + "\n".join(f"- {line}" for line in sums_of(log))


def sums_of(log):
    rows = list(rows_of(log))
    for policy in dict.fromkeys(row[0] for row in rows):
        seen = [row for row in rows if row[0] == policy and row[2] != "-"]
        named = [row for row in seen if row[5] == "named"]
        alone = sum(row[6] == "1" for row in named)
        planted = sum(row[0] == policy for row in rows)
        yield f"{policy}: {planted} planted, {len(seen)} seen and convicted, {len(named)} named, {alone} of these alone."
    pairs = re.findall(r"^# pair \|.*\| (named|not named) \|", log, re.M)
    yield f"pairs: {len(pairs)} planted, {pairs.count('named')} named together."


def main():
    log = pathlib.Path(sys.argv[1]).read_text()
    book = BOOK.read_text()
    head, rest = book.split("<!-- kill table -->", 1)
    tail = rest.split("<!-- end -->", 1)[1]
    BOOK.write_text(f"{head}<!-- kill table -->\n{table_of(log)}\n<!-- end -->{tail}")


if __name__ == "__main__":
    main()
