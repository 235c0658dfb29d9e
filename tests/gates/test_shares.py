#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A share of a limit is never shown as the limit beside it: 0.996 is not "1.00", nor is 1.004. One function each
shows shares, base/share.c, tests/shared/shares.py and audit/python/sinkproof/_shares.py; what is written past them is
found here: a percentage of a number that is formatted where it stands, and a share, or a quotient by a limit, among
what a floating conversion prints."""
import ast
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/shared"), str(ROOT / "audit/python/sinkproof")]
import _shares  # noqa: E402
from shares import percent  # noqa: E402
from tap import Tap  # noqa: E402

FLOAT = r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?l?[aefgAEFG]"
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"')
PRINTER = re.compile(r"\b(\w*printf|sinkproof_page_say|part_text|cell|print_folded)\s*\(")
# What is a share of a limit by its name, or is made one there. Not a call that shows it.
SHARE = re.compile(r"\b(?:share|share_worst|share_median|fraction)\b(?!\s*\(|\.text)|/\s*[\w.>-]*(?:limit|bound|most_allowed)\b|"
                   r"\bmeasure\.worst\b|\bball\.share\b")
SHOWN = re.compile(r"\bsinkproof_(?:share_fixed|share_digits|share_percent|share_percent_digits)\s*\(")
# What the patterns meet and is none: {file: {argument: why}}.
ALLOWED = {
    "audit/bench/bench_print.c": {'row_number(row, "median") * row_number(row, "share") / tokens': "a time, for gnuplot"},
    "audit/report/chart.c": {"height": "a length of a drawing"},
    "audit/studies/precision/precision_page.c": {"160 * share": "the length of a bar"},
    "audit/diagnose/composed_ranges.c": {"ceil(percent * pow(10, decimals)) / pow(10, decimals)": "a range, rounded up"},
    "audit/command/command.c": {"floor(100 * share)": "rounded down, and at 1 nothing is printed"},
}
IN_PYTHON = {"tests/gates/doc_planted.py": {"100 * (1 - 0.05 ** (1 / n))": "95 % at the most"},
             "tests/audit/test_single_valued.py": {"found": "held against what is stated"}}


def closing(text, start):
    """Where the bracket that opens at `start` closes, literals left out."""
    depth, i = 0, start
    while i < len(text):
        if text[i] == '"':
            i = LITERAL.match(text, i).end()
            continue
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
        i += 1
    return len(text)


def split(arguments):
    """Arguments at the outer commas."""
    parts, depth, start, i = [], 0, 0, 0
    while i < len(arguments):
        if arguments[i] == '"':
            i = LITERAL.match(arguments, i).end()
            continue
        depth += (arguments[i] in "([{") - (arguments[i] in ")]}")
        if arguments[i] == "," and depth == 0:
            parts.append(arguments[start:i])
            start = i + 1
        i += 1
    return [" ".join(p.split()) for p in [*parts, arguments[start:]]]


def in_c(text, allowed):
    """What a C file writes past the function: (line, what)."""
    text = re.sub(r"//[^\n]*", lambda m: " " * len(m[0]) if text.count('"', text.rfind("\n", 0, m.start()) + 1, m.start()) % 2 == 0
                  else m[0], text)
    for call in PRINTER.finditer(text):
        arguments = split(text[call.end():closing(text, call.end() - 1)])
        literals = "".join("".join(x[1:-1] for x in LITERAL.findall(a)) for a in arguments if a.startswith('"'))
        if not re.search(FLOAT, literals):
            continue
        line = text.count("\n", 0, call.start()) + 1
        values = [a for a in arguments if not a.startswith('"')]
        if re.search(FLOAT + r"\s?%%", literals) and not any(a in allowed for a in values):
            yield line, "a percentage: " + literals
        for a in values:
            if SHARE.search(a) and not SHOWN.search(a) and a not in allowed:
                yield line, "a share: " + a


def in_python(text, allowed):
    """Percentages in f-strings of a Python file: a number with places behind the point, then a per cent sign."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, behind in zip(node.values, [*node.values[1:], None]):
            if not isinstance(value, ast.FormattedValue) or value.format_spec is None:
                continue
            spec = "".join(str(part.value) for part in value.format_spec.values if isinstance(part, ast.Constant))
            said = behind.value if isinstance(behind, ast.Constant) else ""
            if not (re.search(r"%$", spec) or (re.search(r"[efg]$", spec) and re.match(r" ?%| per cent", said))):
                continue
            name = ast.unparse(value.value)
            if name not in allowed:
                yield value.lineno, f"a percentage: {name}"


def past(root):
    found = []
    for path in sorted([*root.glob("audit/**/*.c"), *root.glob("audit/**/*.h")]):
        name = str(path.relative_to(root))
        found += [f"{name}:{line}: {what}" for line, what in in_c(path.read_text(encoding="utf-8"), ALLOWED.get(name, ()))]
    for path in sorted([*root.glob("audit/python/**/*.py"), *root.glob("doc/book/*.py"), *root.glob("tests/gates/*.py"),
                        *root.glob("tests/audit/*.py"), *root.glob("tests/shared/*.py")]):
        name = str(path.relative_to(root))
        found += [f"{name}:{line}: {what}" for line, what in in_python(path.read_text(encoding="utf-8"), IN_PYTHON.get(name, ()))]
    return found


FAULTS_C = ['printf("%.2f", share);', 'snprintf(to, 9, "%.1f %%", 100 * x);', 'fprintf(out, "%*.1f%%\\n", 5, x);',
            'printf("%s %.3g", name, fabs(r->gain) / r->limit);', 'fprintf(page, "%.2f", r->share_worst);',
            'cell(page, "%.1f", p->share);', 'printf("%-7.2g %s",\n       r->measure.worst, name);',
            'sinkproof_page_say(page, "%s: %.4g %% of it", range, 100 * x);']
FINE_C = ['printf("%s", sinkproof_share_fixed(x / limit, 2).text);', 'printf("%zu %% of %zu", share, n);', 'printf("%.3g", x); // %.1f %%',
          'printf("100 %% of %s and %.3g", share.text, x);', 'printf("%.2f", shared);']
FAULTS_PYTHON = ['f"{100 * x:.1f} %"', 'f"{x:.0%} of it"', 'f"{a} {100 * k / n:.2f}% of"', 'f"{x:.0f} per cent"']
FINE_PYTHON = ['f"{percent(x, 1)} of it"', 'f"{n:d} %"', 'f"{x:.3f} of it"', 'f"{100} %"']


def main():
    tap = Tap()
    found = past(ROOT)
    for allowed in (ALLOWED, IN_PYTHON):
        found += [f"{file} has no {value} any more" for file, values in allowed.items() for value in values
                  if value not in " ".join((ROOT / file).read_text(encoding="utf-8").split())]
    tap.report(not found, "every share of a limit is shown by the function that never rounds it to the limit", found)
    seen = [c for c in FAULTS_C if list(in_c(c, ()))]
    tap.report(seen == FAULTS_C, f"of {len(FAULTS_C)} ways past it in C all are seen", [c for c in FAULTS_C if c not in seen])
    wrong = [c for c in FINE_C if list(in_c(c, ()))]
    tap.report(not wrong, f"of {len(FINE_C)} that are none, none", wrong)
    seen = [c for c in FAULTS_PYTHON if list(in_python(c, ()))]
    tap.report(seen == FAULTS_PYTHON, f"of {len(FAULTS_PYTHON)} in Python all are seen", [c for c in FAULTS_PYTHON if c not in seen])
    wrong = [c for c in FINE_PYTHON if list(in_python(c, ()))]
    tap.report(not wrong, f"of {len(FINE_PYTHON)} that are none, none", wrong)
    sizes = [(0.5, "50.0 %"), (0.9949, "99.5 %"), (0.996, "99.6 %"), (0.99999, "99.9 %"), (1 - 2**-53, "99.9 %"), (1, "100.0 %"),
             (1 + 2**-52, "100.1 %"), (1.004, "100.4 %"), (math.inf, "inf %"), (math.nan, "nan %")]
    wrong = [f"{x!r}: {percent(x, 1)}" for x, text in sizes if percent(x, 1) != text]
    tap.report(not wrong and percent(0.996, 0) == "99 %" and percent(1.004, 0) == "101 %",
               "percentages of the book and the gates, beside 100 too", wrong)
    counts = [(3839, 3840, "99.9%"), (9999999, 10000000, "99.9%"), (3840, 3840, "100.0%"), (0, 7, "0.0%"), (0, 0, "0.0%")]
    wrong = [f"{part} of {whole}: {_shares.percent(part, whole)}" for part, whole, text in counts
             if _shares.percent(part, whole) != text]
    pairs = [(2.96e-8, 2.76e-8), (-2.7601e-8, 2.7599e-8), (1 + 2**-52, 1.0)]
    wrong += [_shares.beside_limit(x, limit) for x, limit in pairs
              if not abs(float((said := _shares.beside_limit(x, limit).split(", where chance allows "))[0])) > float(said[1])]
    tap.report(not wrong and _shares.beside_limit(1.0, 1.0) == "1, where chance allows 1",
               "the package's counts, and a drift beside its limit", wrong)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
