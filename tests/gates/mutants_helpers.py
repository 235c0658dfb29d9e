# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The helpers of the equations' code: functions that a region reaches, and that lie outside of all.

A helper is no equation's own, so that its mutants are tried against the tests of every id whose
region calls it, directly or through other functions, and of every id that has a region in its file
(which it may prepare, and nothing in the region call). Its row in the table is named NAME().
"""
import re
from collections import defaultdict, namedtuple

Function = namedtuple("Function", "file name start end static")

# As clang-format leaves it: a definition begins and ends in the first column.
DEFINITION = re.compile(r"^(static )?(?:inline )?(?!typedef|struct \w+ \{|enum)[A-Za-z_][\w *]*?(\w+)\([^;{}]*\) \{"
                        r"[ \t]*(?://[^\n]*)?\n", re.M)
NAME = re.compile(r"(?<![.>\w])[A-Za-z_]\w*")
STRIP = re.compile(r"//[^\n]*|\"(?:\\.|[^\"\\\n])*\"")


def functions_of(file, text):
    found = []
    for match in DEFINITION.finditer(text):
        end = text.find("\n}\n", match.end() - 1)
        if end >= 0:
            found.append(Function(file, match[2], match.start(), end + 3, bool(match[1])))
    return found


def outside(function, spans):
    """The parts of a function that no span covers."""
    parts, at = [], function.start
    for start, end in sorted(spans):
        if end <= at or start >= function.end:
            continue
        if start > at:
            parts.append((at, start))
        at = max(at, end)
    return parts + ([(at, function.end)] if at < function.end else [])


def helpers(texts, regions):
    """{(name(), file): (spans, ids)} of texts {file: text} with their regions {(id, file): spans}."""
    own, everywhere, covered = defaultdict(dict), {}, defaultdict(list)
    for file, text in texts.items():
        for function in functions_of(file, text):
            own[file][function.name] = function
            if not function.static:
                everywhere[function.name] = function
    for (_, file), spans in regions.items():
        covered[file] += spans

    def called(file, start, end):
        for name in set(NAME.findall(STRIP.sub("", texts[file][start:end]))):
            function = own[file].get(name) or everywhere.get(name)
            if function:
                yield function
    reached = defaultdict(set)
    for (id, file), spans in regions.items():
        todo = [f for a, b in spans for f in called(file, a, b)]
        todo += [f for f in own[file].values() if any(a < f.end and f.start < b for a, b in spans)]
        while todo:
            function = todo.pop()
            if id not in reached[function]:
                reached[function].add(id)
                todo += called(function.file, function.start, function.end)
    found = {}
    for function, ids in reached.items():
        spans = outside(function, covered[function.file])
        if spans:
            near = {id for id, file in regions if file == function.file}
            found[function.name + "()", function.file] = (spans, frozenset(ids | near))
    return found
