# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mutants per equation: small mistakes in the code of each id must fail a test that reports it.

    python3 tests/gates/mutants.py [--changed [--sample N] | --all] [--since COMMIT] [--only ID,...] BUILD   (after make test)

For each id and file, up to --cap mutants of the region are drawn from all that tests/gates/mutants_ops.py
makes, the same ones every time. One is compiled, linked in front of BUILD's archive with each
test that printed the id, and run. It is killed when such a test fails, crashes, or takes four times
as long. What the compiler refuses, and what compiles to the same object, is not counted.

The outcome is the table tests/gates/mutants.lock. Survivors need a line in tests/gates/mutants.reasons:
    FILE:ID:OPERATOR | CHANGE | equivalent: why nothing could tell        (then it is not counted)
    FILE:ID:OPERATOR | CHANGE | survives: why no test here does
What waits for slow tests may have one before these were asked: an equivalent one no longer counts as
waiting then, and --all still asks them.
Fails when an id has no killed mutant, fewer than --least mutants were made, fewer than 95 % killed,
a drawn survivor has no reason, or a reason no mutant. --changed makes only those of the drawn whose
outcome is not known (in the table, or in that of --since COMMIT), and refreshes the table. With --sample N it makes
N of them and no more, one of each region in turn, the same ones every time; the table stays as it is, and what
is stale in it is no fault: only a mutant that survives all tests and has no reason is one.
A test that takes ids (tests/shared/only.h) is first asked of the region's alone, and in whole when that
passes. --all makes every mutant, of the regions and of the helpers that they call (see
tests/gates/mutants_helpers.py): all against the tests that need at most --quick seconds, what is left
against those of eight times as much, and then against the others; those with a reason to live come
last. Where a test changed, what it killed before is asked of it first. It can be stopped at any time,
and goes on where it was.
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict, namedtuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import mutants_helpers  # noqa: E402
import mutants_ops as ops  # noqa: E402
import mutants_table as table  # noqa: E402
from mutants_run import Refused, Workshop  # noqa: E402
from shares import percent  # noqa: E402

PERCENT = 95
SAVED_EVERY = 60  # seconds


class Progress:
    """One line on a terminal, rewritten; nothing elsewhere."""

    def __init__(self, regions):
        self.regions, self.done, self.counts = regions, 0, Counter()
        self.lock, self.shown, self.start = threading.Lock(), sys.stderr.isatty(), time.monotonic()

    def add(self, what, done=False):
        with self.lock:
            self.counts[what] += 1
            self.done += done
            if self.shown:
                c = self.counts
                print(f"\r{self.done}/{self.regions} regions, {c['killed'] + c['survived']} mutants, "
                      f"{c['killed']} killed, {c['survived']} survived, {c['waits']} wait for slow tests, "
                      f"{time.monotonic() - self.start:.0f} s \033[K", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.shown:
            print(file=sys.stderr)


class Source:
    def __init__(self, text, points):
        self.text, self.tokens = text, ops.Source(text, points)


class Region:
    """The mutants of one row, what became of each, and the tests that are to notice them. ids: its own, or of
    those that call a helper."""

    def __init__(self, id, file, source, spans, tests, ids):
        self.id, self.file, self.source, self.tests = id, file, source, sorted(tests)[:len(table.LETTERS)]
        self.ids = ids
        self.mutations = source.tokens.mutations(spans)
        changes = [ops.change_of(source.text, m).replace(" | ", " or ") for m in self.mutations]
        self.names = [(f"{file}:{id}:{number}:{m.operator}", change)
                      for number, (m, change) in enumerate(zip(self.mutations, changes))]
        self.order = drawn(id, file, self.mutations)
        self.code = table.code_hash(source.text, spans,
                                    [f"{m.operator} {change}" for m, change in zip(self.mutations, changes)])
        self.outcomes, self.killers = [table.UNMADE] * len(changes), {}
        self.sample = None  # the numbers that may be made, where not all are

    def recall(self, old, before, hashes):
        """Takes from the row `old` of a table what still holds."""
        self.outcomes = list(table.carried(self, old, before, hashes))
        self.killers = table.killers(self, old)

    def counts(self, number, reasons):
        sign = self.outcomes[number]
        return sign in table.LETTERS or sign == table.SURVIVED and not table.reason_of(
            *self.names[number], reasons).startswith("equivalent")

    def said(self, number, reasons):
        """Whether there is a reason why it may live."""
        return table.reason_of(*self.names[number], reasons) != "-"

    def visited(self, cap, reasons):
        """The numbers of the mutants as they are drawn, until `cap` of them counted."""
        counted = 0
        for number in self.order:
            if counted >= cap:
                return
            yield number
            counted += self.counts(number, reasons)

    def due(self, cap, reasons, signs=table.UNMADE + table.WAITS):
        """The numbers of the drawn whose outcome is one of these signs."""
        return [number for number in self.visited(cap, reasons)
                if self.outcomes[number] in signs and (self.sample is None or number in self.sample)]

    def forget(self, cap, reasons):
        for number in list(self.visited(cap, reasons)):
            self.outcomes[number] = table.UNMADE

    def row(self, reasons):
        return table.settled(self, reasons)


def drawn(id, file, mutations):
    """The numbers in the order in which mutants are taken: operators in turn, each time another place."""
    def key(number, mutation):
        return hashlib.sha256(f"{file}:{id}:{number}:{mutation.operator}".encode()).hexdigest()
    queues = defaultdict(list)
    for number, mutation in enumerate(mutations):
        queues[mutation.operator].append((key(number, mutation), number, mutation))
    queues = sorted(sorted(q) for q in queues.values())
    return [queue[turn][1] for turn in range(max(map(len, queues), default=0)) for queue in queues
            if turn < len(queue)]


def questions(first, tests, asked, whole):
    """Each test with the ids that it is asked of, `first` before the order of the others, tests(), is looked
    for; then whole, those that were asked of some alone."""
    if first:
        yield first, asked[first]
    order = tests()
    yield from ((test, asked[test]) for test in order if test != first)
    yield from ((test, ()) for test in order if whole and asked[test])


def make_mutants(shop, region, phase, reasons, progress, log):
    """Makes the drawn ones that are not known: against all tests, or against the quick ones."""
    signs = table.UNMADE + ("" if phase.after is None else table.WAITS)
    due = region.due(phase.cap, reasons, signs)
    if not due or phase.unsaid and all(region.said(number, reasons) for number in due):
        return progress.add("regions", done=True)
    asked = {test: shop.asked(test, region.ids) for test in region.tests}
    tests = [test for test in region.tests
             if phase.seconds is None or shop.is_quick(test, phase.seconds, asked[test])]
    whole = phase.seconds is None or tests == region.tests and not any(asked.values())
    original = shop.compile(region.file, region.source.text)
    if original is None:
        raise Refused(f"{region.file} does not compile with nothing mutated: {shop.said[-400:]}")
    tried, kills = Counter(), Counter()
    for number in due if region.sample is not None else region.visited(phase.cap, reasons):
        if region.outcomes[number] not in signs or phase.unsaid and region.said(number, reasons):
            continue
        object = shop.compile(region.file, ops.apply(region.source.text, region.mutations[number]))
        if object is None or object[0] == original[0]:
            region.outcomes[number] = table.REFUSED if object is None else table.SAME
            progress.add("refused" if object is None else "same")
            continue

        waited = region.outcomes[number] == table.WAITS

        def rank(test):  # what is known to kill; what was not asked; programs; the cheapest kill first
            return (not shop.known_to_kill(test, object), waited and shop.is_quick(test, phase.after, asked[test]),
                    test.endswith((".sh", ".py")),
                    shop.baseline(test, asked[test]) * (tried[test] + 1) / (kills[test] + 1), test)
        killer = region.killers.get(number)
        sign, said = table.SURVIVED if whole else table.WAITS, "passed"
        for test, ids in questions(killer if killer in tests else None, lambda: sorted(tests, key=rank), asked, whole):
            said = shop.notices(test, object, ids)
            tried[test] += 1
            if said != "passed":
                kills[test] += 1
                sign = table.LETTERS[region.tests.index(test)]
                break
        region.outcomes[number] = sign
        name, change = region.names[number]
        became = {table.SURVIVED: "survived", table.WAITS: "waits"}.get(sign, "killed")
        log(f"{name} | {change} | {f'{test}: {said}' if became == 'killed' else became}")
        progress.add(became)
    progress.add("regions", done=True)


def draw_sample(regions, options, reasons):
    """Chooses --sample mutants of those that are due: one of each region in turn, in an order without meaning."""
    due = {key: regions[key].due(options.cap, reasons) for key in regions}
    order = sorted(due, key=lambda key: hashlib.sha256(":".join(key).encode()).hexdigest())
    chosen = [(key, due[key][turn]) for turn in range(options.cap) for key in order if turn < len(due[key])][:options.sample]
    for region in regions.values():
        region.sample = set()
    for key, number in chosen:
        regions[key].sample.add(number)
    return sorted({key for key, _ in chosen})


def check_sample(regions, before, reasons):
    """The survivors without a reason, and how many were killed, survived and wait for slow tests."""
    signs, problems = Counter(), []
    for key, region in sorted(regions.items()):
        for number in sorted(region.sample):
            sign, (name, change) = region.outcomes[number], region.names[number]
            signs["killed" if sign in table.LETTERS else sign] += 1
            if sign == table.SURVIVED and not region.said(number, reasons):
                problems.append(f"{name} survived without a reason: {change}")
    print(f"a sample of {sum(signs.values())} of {before} mutants whose outcome is not known: {signs['killed']} killed, "
          f"{signs[table.SURVIVED]} survived, {signs[table.WAITS]} passed the quick tests and were not asked further, "
          f"{signs[table.REFUSED] + signs[table.SAME]} are no mutants")
    return problems


def run(options, regions, phases, reasons, save):
    shop = Workshop(options.root, options.build, options.cc, options.cflags, options.ldlibs, options.spare)
    progress = Progress(sum(len(phase.keys) for phase in phases))
    writer = open(options.log, "w", encoding="utf-8") if options.log else None
    lock, saved = threading.Lock(), [time.monotonic()]

    def log(line):
        with lock:
            if writer:
                print(line, file=writer, flush=True)
            if time.monotonic() - saved[0] > SAVED_EVERY:
                save()
                saved[0] = time.monotonic()

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        try:
            for phase in phases:
                futures = [pool.submit(make_mutants, shop, regions[key], phase, reasons, progress, log)
                           for key in sorted(phase.keys, key=lambda key: (key[1], key[0]))]
                for future in concurrent.futures.as_completed(futures):
                    future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            shop.stop_all()
            raise
        finally:
            progress.end()
            c = progress.counts
            print(f"{c['killed'] + c['survived']} mutants ran in {time.monotonic() - progress.start:.0f} s; "
                  f"{c['refused']} more did not compile, {c['same']} compiled to the same object")


def check(rows, regions, ran, reasons, options):
    problems = []
    for id, file in sorted(set(table.regions(options.root)) - set(rows)):
        problems.append(f"{file}: {id} is missing in {table.TABLE}"
                        + ("" if ran.get(id) else ", no test reported it"))
    for id, (made, killed) in sorted(table.by_id(rows).items()):
        if killed == 0:
            problems.append(f"{id}: no mutant was killed")
    made, killed = sum(r.made for r in rows.values()), sum(r.killed for r in rows.values())
    if made < options.least:
        problems.append(f"{made} mutants, at least {options.least} are wanted")
    if killed * 100 < made * PERCENT:
        problems.append(f"{killed} of {made} mutants killed, at least {PERCENT} % are wanted")
    for key, region in sorted(regions.items()):
        asked = region.order if options.all else set() if table.is_helper(key[0]) else \
            set(region.visited(options.cap, reasons))
        for number in sorted(asked):
            name, change = region.names[number]
            if region.outcomes[number] == table.SURVIVED and table.reason_of(name, change, reasons) == "-":
                problems.append(f"{name} survived without a reason: {change}")
    return problems + stale_reasons(regions, reasons)


def stale_reasons(regions, reasons):
    """Lines of tests/gates/mutants.reasons without a mutant, or with one that does not survive."""
    signs = defaultdict(set)
    for region in regions.values():
        for name, sign in zip(region.names, region.outcomes):
            signs[table.reason_key(*name)].add(sign)
    return [f"{table.REASONS}: {mutant} is no survivor of {key[1]} (any more): {key[3]}"
            for key, (mutant, _, _) in sorted(reasons.items())
            if not signs[key] & {table.SURVIVED, table.UNMADE, table.WAITS}]


def total(rows, what):
    killed, made, possible = (sum(getattr(r, k) for r in rows) for k in ("killed", "made", "possible"))
    waiting = possible - made - sum(r.outcomes.count(table.UNMADE) for r in rows)
    equivalent = sum(r.equivalent for r in rows)
    unasked = equivalent - sum(s.reason.startswith("equivalent") for r in rows for s in r.survivors)
    share = f"{percent(killed / made, 1)} of those made" if made else "none made"
    if waiting:
        share = f"{waiting} more wait for slow tests; at least {percent(killed / (made + waiting), 1)} of both"
    unexplained = sum(s.reason == "-" for r in rows for s in r.survivors)
    print(f"{what}: {killed} killed of {made} made of {possible} possible ({share}); "
          f"{made - killed} survived, {unexplained} of them without a reason; "
          f"{equivalent} equivalent ones not counted ({unasked} of them not asked of slow tests)")


def summary(rows):
    width = max((len(id) for id in table.by_id(rows)), default=2)
    print(f"{'id':{width}}  made  killed  survived")
    for id, (made, killed) in sorted(table.by_id(rows).items()):
        print(f"{id:{width}}  {made:4}  {killed:6}  {made - killed:8}")
    own = [r for r in rows.values() if not table.is_helper(r.id)]
    helpers = [r for r in rows.values() if table.is_helper(r.id)]
    total(own, f"{len(table.by_id(rows))} ids in {len(own)} regions")
    total(helpers, f"their {len(helpers)} helpers")


def table_of(options, since):
    if since:
        done = subprocess.run(["git", "-C", str(options.root), "show", f"{since}:./{table.TABLE}"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return table.read(done.stdout)
    path = options.root / table.TABLE
    return table.read(path.read_text(encoding="utf-8")) if path.is_file() else ({}, {})


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="with --changed: make N, and leave the table alone")
    parser.add_argument("--since", metavar="COMMIT", default="")
    parser.add_argument("--only", metavar="ID,...", default="")
    parser.add_argument("--cap", type=int, default=3, help="mutants of one region")
    parser.add_argument("--least", type=int, default=400, help="mutants in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", type=float, default=1, metavar="SECONDS", help="what a quick test needs at most")
    parser.add_argument("--spare", type=int, default=5, metavar="SECONDS",
                        help="beyond four times a test's own, before it is stopped")
    parser.add_argument("--log", default="", help="a line for each mutant")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--cc", default=os.environ.get("CC") or "gcc")
    parser.add_argument("--cflags", default=os.environ.get("CFLAGS", "-std=c11 -O2 -I."))
    parser.add_argument("--ldlibs", default=os.environ.get("LDLIBS", "-lm"))
    parser.add_argument("build", type=pathlib.Path)
    return parser.parse_args()


def all_regions(root, ran):
    """{(id, file): Region} of the ids that a test reported, and of their helpers."""
    header = root / "ref/points.h"
    points = ops.points_of(header.read_text()) if header.is_file() else []
    texts = table.texts(root)
    sources = {file: Source(text, points) for file, text in texts.items()}
    spans = {key: value for key, value in table.regions(root).items() if ran.get(key[0])}
    found = {key: Region(*key, sources[key[1]], value, ran[key[0]], [key[0]]) for key, value in spans.items()}
    for key, (value, ids) in mutants_helpers.helpers(texts, spans).items():
        region = Region(*key, sources[key[1]], value, set().union(*(ran[id] for id in ids)), ids)
        if region.mutations:
            found[key] = region
    return found


# The regions, how many mutants of each, and which tests: those of so many seconds, or all (None).
# Mutants that wait have passed those of `after` seconds, which come last (None: they are left alone).
# unsaid: those that have a reason to live are left alone.
Phase = namedtuple("Phase", "keys cap seconds after unsaid")


def phases_of(options, todo):
    own = [key for key in todo if not table.is_helper(key[0])]
    if options.sample:
        return [Phase(own, options.cap, 8 * options.quick, None, False)]
    if not options.all:
        return [Phase(own, options.cap, None, options.quick, False)]
    helpers = [key for key in todo if table.is_helper(key[0])]
    quick = options.quick
    return [Phase(keys, sys.maxsize, *which) for which in [
        (quick, None, True), (8 * quick, quick, True), (None, quick, True), (quick, None, False), (None, quick, False)]
            for keys in (own, helpers)]


def main():
    options, problems = arguments(), []
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both leave nothing behind
    ran = table.reporting(options.build)
    if not table.regions(options.root) or not ran:
        print(f"mutants: no {'region' if ran else f'log in {options.build}/tap: run make test first'}")
        return 1
    reasons = table.read_reasons(options.root, problems)
    regions = all_regions(options.root, ran)
    hashes = {name: table.test_hash(options.root, name) for region in regions.values() for name in region.tests}

    def stale_since(since):
        """Recalls a table's outcomes; the regions of which it lacks some that are drawn."""
        old, before = table_of(options, since)
        for key, region in regions.items():
            region.recall(old.get(key), before, hashes)
        return [key for key, region in regions.items() if not table.is_helper(key[0])
                and region.due(options.cap, reasons)]
    stale = stale_since("")
    changed = stale_since(options.since) if options.since else stale
    only = set(filter(None, options.only.split(",")))
    todo = [key for key in (changed if options.changed else regions) if not only or key[0] in only]
    if not options.changed and not options.all:
        for key in todo:
            regions[key].forget(options.cap, reasons)

    before = sum(len(regions[key].due(options.cap, reasons)) for key in todo)
    if options.sample:
        todo = draw_sample({key: regions[key] for key in todo}, options, reasons)

    def save():
        if options.sample:
            return {}
        rows = {key: region.row(reasons) for key, region in regions.items()}
        path = options.root / table.TABLE
        path.with_suffix(".new").write_text(table.write(rows, hashes), encoding="utf-8")
        path.with_suffix(".new").replace(path)
        return rows
    try:
        if todo:
            run(options, regions, phases_of(options, todo), reasons, save)
    except Refused as refused:
        print(f"mutants: {refused}")
        return 1
    except KeyboardInterrupt:
        print("mutants: stopped; the next run goes on from here")
        problems.append("stopped before the end")
    if options.sample:
        problems += check_sample({key: regions[key] for key in todo}, before, reasons)
        print("\n".join(problems + [f"mutants: {len(problems)} problems"]))
        return 1 if problems else 0
    rows = save()
    summary({key: rows[key] for key in todo} if only else rows)
    if options.changed:
        problems += [f"{file}: {id} was stale in {table.TABLE}; it is refreshed: look, and commit it"
                     for id, file in sorted(stale)]
    problems += [] if only else check(rows, regions, ran, reasons, options)
    print("\n".join(problems + [f"mutants: {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
