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
    summary = [line[2:] for line in log.splitlines() if re.match(r"# (f32|openai-bf16|pairs): ", line)]
    return "\n".join(lines) + "\n\n" + "\n".join(f"- {line}." for line in summary)


def main():
    log = pathlib.Path(sys.argv[1]).read_text()
    book = BOOK.read_text()
    head, rest = book.split("<!-- kill table -->", 1)
    tail = rest.split("<!-- end -->", 1)[1]
    BOOK.write_text(f"{head}<!-- kill table -->\n{table_of(log)}\n<!-- end -->{tail}")


if __name__ == "__main__":
    main()
