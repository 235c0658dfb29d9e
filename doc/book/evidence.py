# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What stands behind a statement: where its regions are, which tests reported it and what they said."""
import functools
import html
import pathlib
import re
from collections import defaultdict, namedtuple

import check_doc
import mutants_table
import tap_log

ROOMS = {"truth": "enclosure", "bounds": "bound", "exact": "exact", "formal": "formal"}
NONE = '<strong class="bad">none in this run</strong>'
Results = namedtuple("Results", "tests passed failed skipped")


def read_spans(root):
    """{id: {file: [(first, last)]}}: the lines between the markers of each region."""
    spans = defaultdict(lambda: defaultdict(list))
    for room in ("base", "model", "ref", "fast", "proofs"):
        for file in sorted((root / room).rglob("*")):
            if file.suffix not in (".c", ".h", ".inc", ".v"):
                continue
            opened = {}
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                match = check_doc.MARKER.match(line) or check_doc.COQ_MARKER.match(line)
                for id in match[2].split() if match else ():
                    if match[1] == ">":
                        opened[id] = number + 1
                    elif id in opened:
                        spans[id][str(file.relative_to(root))].append((opened.pop(id), number - 1))
    return {id: dict(files) for id, files in spans.items()}


def read_results(log):
    """Every result of the run, by test."""
    tests = defaultdict(list)
    results = tap_log.parse(pathlib.Path(log).read_text(encoding="utf-8", errors="replace")) \
        if pathlib.Path(log).is_file() else []
    for result in results:
        tests[result.file].append(result)
    passed, failed, skipped = tap_log.count(results)
    return Results(dict(tests), passed, len(failed), len(skipped))


@functools.cache
def test_source(book, test):
    name = mutants_table.source_of(book.root, test)
    return name if book.is_source(name) else None


def kept_words(book):
    """Which figures a book without a run shows instead."""
    if not book.kept:
        return "No figures of an earlier run are kept."
    return (f"The figures of {len(book.kept)} statements, marked <em>kept</em>, are those of an earlier run"
            + (f" on {html.escape(book.kept_on)}" if book.kept_on else "")
            + "; the text, code and proofs of each are the same as in that run.")


def kept_tests(book, id):
    """What the chapter keeps of the tests that reported a statement."""
    if id not in book.kept:
        return "not run"
    said = book.kept[id].removeprefix("Measured: ").rstrip(".")
    return "kept: " + re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(said, quote=False))


def counts(book):
    results = book.results
    if not book.run.ran:
        return (f'<p class="counts">{len(book.numbers)} numbered statements. Not run: this copy was made without the '
                f"log of a run, which <code>make test</code> writes. {kept_words(book)}</p>")
    return (f'<p class="counts">{len(book.numbers)} numbered statements. The run behind this copy: '
            f"{results.passed} results passed, {results.failed} failed, {results.skipped} skipped, from "
            f"{len(results.tests)} test programs.</p>")


def span_text(span):
    return f"{span[0]}–{span[1]}" if span[0] != span[1] else str(span[0])


def lines_text(spans):
    return ", ".join(map(span_text, spans))


def file_link(book, file, spans):
    return (f'<a href="{book.source_link(file, spans[0][0])}"><code>{file}</code></a> '
            f"<small>{lines_text(spans)}</small>")


def box(book, id):
    """The line under a formula: code, proof, tests."""
    rows, files = [], book.spans.get(id, {})
    code = [file_link(book, f, s) for f, s in files.items() if not f.startswith("proofs/")]
    proof = [f"{ROOMS.get(f.split('/')[1], 'proof')} {file_link(book, f, s)}" for f, s in files.items()
             if f.startswith("proofs/")]
    if code:
        rows.append(("code", ", ".join(code)))
    if proof:
        rows.append(("proof", ", ".join(proof)))
    by_test = defaultdict(list)
    for test, ok, _, _ in book.run.results.get(id, []):
        by_test[test].append(ok)
    said = [f'<a href="tests.html#{id}"><code>{html.escape(test)}</code></a> '
            + (f"<small>{len(oks)} passed</small>" if all(oks)
               else f'<strong class="bad">{oks.count(False)} of {len(oks)} failed</strong>')
            for test, oks in sorted(by_test.items())]
    rows.append(("tests", ", ".join(said) or (NONE if book.run.ran else kept_tests(book, id))))
    return '<dl class="evidence">' + "".join(f"<dt>{k}</dt><dd>{v}</dd>" for k, v in rows) + "</dl>"


def letters(book, id):
    """The evidence that the statement must have, as its letters."""
    kinds = book.stated[id][2]
    what = ", ".join(check_doc.KINDS[kind][0] for kind in kinds)
    return f' <span class="kinds" title="{what}">{" ".join(kinds)}</span>'


def snippet_caption(book, file, id, spans, anchor):
    word = "line" if lines_text(spans).isdigit() else "lines"
    return (f'<p class="path"><a href="{book.source_link(file, spans[0][0])}">{file}</a> '
            f'<small>{word} {lines_text(spans)}</small> '
            f'<a class="id" href="#{anchor}"><code>{id}</code></a></p>')


def source_header(book, file):
    """Above the lines of a file: its equations, each with a link back."""
    rows = []
    for id in book.numbers:
        spans = book.spans.get(id, {}).get(file)
        if spans:
            where = ", ".join(f'<a href="#L-{s[0]}">{span_text(s)}</a>' for s in spans)
            rows.append(f'<li><a href="{book.statement_link(id, "ROOT")}">{book.numbers[id]} <code>{id}</code></a>, '
                        f"at {where}</li>")
    for test, results in book.results.tests.items():
        if test_source(book, test) == file:
            rows.append(f'<li><a href="ROOT/tests.html#{test}">{len(results)} results of the last run</a></li>')
    return f"<h1><code>{file}</code></h1>" + (f'<ul class="regions">{"".join(rows)}</ul>' if rows else "")


def result_row(result):
    test, ok, kind, text = result
    verdict, css = ("passed", "good") if ok else ("failed", "bad")
    return (f'<tr><td><code>{html.escape(test)}</code></td><td class="{css}">{verdict}</td>'
            f"<td>{kind}</td><td>{html.escape(text)}</td></tr>")


def tests_page(book):
    """Every result of the run that reports a statement, in the order of the book."""
    out = ["<h1>What the tests reported</h1>", counts(book),
           '<p>A test reports a statement by its id. Here is each line of the log, as the test printed it.</p>',
           '<div class="scroll"><table><thead><tr><th>test</th><th>passed</th><th>failed</th><th>skipped</th></tr>'
           '</thead><tbody>']
    for test, results in sorted(book.results.tests.items()):
        passed, failed, skipped = tap_log.count(results)
        source, name = test_source(book, test), f"<code>{html.escape(test)}</code>"
        if source:
            name = f'<a href="{book.source_link(source)}">{name}</a>'
        out.append(f'<tr id="{html.escape(test)}"><td>{name}</td><td>{passed}</td>'
                   f'<td{" class=bad" if failed else ""}>{len(failed)}</td><td>{len(skipped)}</td></tr>')
    out.append("</tbody></table></div>")
    for id, number in book.numbers.items():
        rows = book.run.results.get(id, [])
        out.append(f'<h2 id="{id}"><a href="{book.statement_link(id)}">{number} <code>{id}</code></a></h2>')
        out.append('<div class="scroll"><table class="results">' + "".join(map(result_row, rows)) + "</table></div>"
                   if rows else '<p class="bad">No test reported it in this run.</p>' if book.run.ran else
                   f"<p>{kept_tests(book, id).capitalize()}.</p>")
    return "\n".join(out)
