# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mutants per equation: small mistakes in the code of each id must fail a test that reports it.

    python3 tests/mutants.py [--changed] [--since COMMIT] [--only ID,...] BUILD   (after make test)

For each id and file, up to --cap mutants of the region are drawn from all that tests/mutants_ops.py
makes, the same ones every time. One is compiled, linked in front of BUILD's archive with each
test that printed the id, and run. It is killed when such a test fails, crashes, or takes four times
as long. What the compiler refuses, and what compiles to the same object, is not counted.

The outcome is the table tests/mutants.lock. Survivors need a line in tests/mutants.reasons:
    FILE:ID:OPERATOR | CHANGE | equivalent: why nothing could tell        (then it is not counted)
    FILE:ID:OPERATOR | CHANGE | survives: why no test here does
Fails when an id has no killed mutant, fewer than --least mutants were made, fewer than 95 % killed,
or a survivor has no reason. --changed runs what changed since the table was made (or since the
table of --since COMMIT), refreshes it, and fails when it had been stale.
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
from collections import Counter, defaultdict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mutants_ops as ops  # noqa: E402
import mutants_table as table  # noqa: E402
from mutants_run import Refused, Workshop  # noqa: E402

PERCENT = 95
OPERATORS = hashlib.sha256(pathlib.Path(ops.__file__).read_bytes()).hexdigest()[:16]


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
                      f"{c['killed']} killed, {c['survived']} survived, "
                      f"{time.monotonic() - self.start:.0f} s \033[K", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.shown:
            print(file=sys.stderr)


class Source:
    def __init__(self, root, file, points):
        self.text = (root / file).read_text(encoding="utf-8")
        self.tokens = ops.Source(self.text, points)


def drawn(id, file, mutations):
    """The order in which mutants are taken: operators in turn, each time another place."""
    def key(number, mutation):
        return hashlib.sha256(f"{file}:{id}:{number}:{mutation.operator}".encode()).hexdigest()
    queues = defaultdict(list)
    for number, mutation in enumerate(mutations):
        queues[mutation.operator].append((key(number, mutation), number, mutation))
    queues = sorted(sorted(q) for q in queues.values())
    for turn in range(max(map(len, queues), default=0)):
        for queue in queues:
            if turn < len(queue):
                yield queue[turn][1], queue[turn][2]


def mutate_region(shop, source, id, file, spans, tests, reasons, cap, progress, log):
    """The Row of one region."""
    original = shop.compile(file, source.text)
    if original is None:
        raise Refused(f"{file} does not compile with nothing mutated: {shop.said[-400:]}")
    killed = equivalent = 0
    survivors = []
    mutations = source.tokens.mutations(spans)
    for number, mutation in drawn(id, file, mutations):
        if killed + len(survivors) - equivalent >= cap:
            break
        name = f"{file}:{id}:{number}:{mutation.operator}"
        object = shop.compile(file, ops.apply(source.text, mutation))
        if object is None or object[0] == original[0]:
            progress.add("refused" if object is None else "same")
            continue
        change = ops.change_of(source.text, mutation).replace(" | ", " or ")
        said = "passed"
        for test in tests:
            said = shop.notices(test, object)
            if said != "passed":
                break
        log(f"{name} | {change} | {'survived' if said == 'passed' else f'{test}: {said}'}")
        progress.add("survived" if said == "passed" else "killed")
        if said != "passed":
            killed += 1
            continue
        survivors.append(table.Survivor(name, change, table.reason_of(name, change, reasons)))
        equivalent += survivors[-1].reason.startswith("equivalent")
    progress.add("regions", done=True)
    row = table.Row(id, file, table.region_hash(source.text, spans), table.test_hash(shop.root, tests),
                    0, killed, 0, 0, survivors)
    return table.settled(row, reasons)


def run(options, todo, regions, ran, reasons):
    """{(id, file): Row} for the regions to do."""
    shop = Workshop(options.root, options.build, options.cc, options.cflags, options.ldlibs)
    points = ops.points_of((options.root / "ref/policy.h").read_text()) \
        if (options.root / "ref/policy.h").is_file() else []
    sources = {file: Source(options.root, file, points) for _, file in todo}
    wanted = sorted({test for id, _ in todo for test in ran[id]})
    progress, rows = Progress(len(todo)), {}
    writer = open(options.log, "w", encoding="utf-8") if options.log else None
    lock = threading.Lock()

    def log(line):
        if writer:
            with lock:
                print(line, file=writer, flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        seconds = dict(zip(wanted, pool.map(shop.baseline, wanted)))

        def cost(key):
            return sum(seconds[t] for t in ran[key[0]])

        def one(key):
            # Programs before scripts, the quick before the slow.
            tests = sorted(ran[key[0]], key=lambda t: (t.endswith((".sh", ".py")), round(seconds[t], 1), t))
            return mutate_region(shop, sources[key[1]], *key, regions[key], tests, reasons, options.cap,
                                 progress, log)
        futures = {pool.submit(one, key): key for key in sorted(todo, key=cost, reverse=True)}
        try:
            for future in concurrent.futures.as_completed(futures):
                rows[futures[future]] = future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            shop.stop_all()
            raise
    progress.end()
    c = progress.counts
    print(f"{c['killed'] + c['survived']} mutants ran in {time.monotonic() - progress.start:.0f} s; "
          f"{c['refused']} more did not compile, {c['same']} compiled to the same object")
    return rows


def check(rows, regions, ran, reasons, least):
    problems = []
    for key in sorted(regions):
        if key not in rows:
            problems.append(f"{key[1]}: {key[0]} is missing in {table.TABLE}"
                            + ("" if ran.get(key[0]) else ", no test reported it"))
    for id, (made, killed) in sorted(table.by_id(rows).items()):
        if killed == 0:
            problems.append(f"{id}: no mutant was killed")
    made, killed = sum(r.made for r in rows.values()), sum(r.killed for r in rows.values())
    if made < least:
        problems.append(f"{made} mutants, at least {least} are wanted")
    if killed * 100 < made * PERCENT:
        problems.append(f"{killed} of {made} mutants killed, at least {PERCENT} % are wanted")
    known = {table.reason_key(s.mutant, s.change) for r in rows.values() for s in r.survivors}
    for row in rows.values():
        for survivor in row.survivors:
            if survivor.reason == "-":
                problems.append(f"{survivor.mutant} survived without a reason: {survivor.change}")
    for key, (mutant, kind, _) in sorted(reasons.items()):
        if kind == "survives" and key not in known:
            problems.append(f"{table.REASONS}: {mutant} is no survivor of {key[1]} (any more): {key[3]}")
    return problems


def summary(rows):
    width = max((len(id) for id in table.by_id(rows)), default=2)
    print(f"{'id':{width}}  made  killed  survived")
    for id, (made, killed) in sorted(table.by_id(rows).items()):
        print(f"{id:{width}}  {made:4}  {killed:6}  {made - killed:8}")
    made, killed = sum(r.made for r in rows.values()), sum(r.killed for r in rows.values())
    share = 100 * killed / made if made else 0
    print(f"{len(table.by_id(rows))} ids in {len(rows)} regions: {made} mutants, {killed} killed ({share:.1f} %), "
          f"{made - killed} survived; {sum(r.equivalent for r in rows.values())} equivalent ones not counted")


def old_table(options):
    if options.since:
        done = subprocess.run(["git", "-C", str(options.root), "show", f"{options.since}:./{table.TABLE}"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return table.read(done.stdout)
    path = options.root / table.TABLE
    return table.read(path.read_text(encoding="utf-8")) if path.is_file() else {}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--since", metavar="COMMIT", default="")
    parser.add_argument("--only", metavar="ID,...", default="")
    parser.add_argument("--cap", type=int, default=6, help="mutants of one region")
    parser.add_argument("--least", type=int, default=400, help="mutants in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--log", default="", help="a line for each mutant")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--cc", default=os.environ.get("CC") or "gcc")
    parser.add_argument("--cflags", default=os.environ.get("CFLAGS", "-std=c11 -O2 -I."))
    parser.add_argument("--ldlibs", default=os.environ.get("LDLIBS", "-lm"))
    parser.add_argument("build", type=pathlib.Path)
    return parser.parse_args()


def main():
    options, problems = arguments(), []
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both leave nothing behind
    regions, ran = table.regions(options.root), table.reporting(options.build)
    if not regions or not ran:
        print(f"mutants: no {'region' if not regions else f'log in {options.build}/tap: run make test first'}")
        return 1
    reasons = table.read_reasons(options.root, problems)
    path = options.root / table.TABLE
    have = table.read(path.read_text(encoding="utf-8")) if path.is_file() else {}
    before, sources = old_table(options), {}
    now = {}
    for id, file in regions:
        text = sources.setdefault(file, (options.root / file).read_text(encoding="utf-8"))
        now[id, file] = (table.region_hash(text, regions[id, file]), table.test_hash(options.root, ran.get(id, ())))

    def same(row, key):
        return row is not None and (row.region, row.tests) == now[key]
    only = set(filter(None, options.only.split(",")))
    stale = sorted(k for k in regions if not same(have.get(k), k)) + sorted(set(have) - set(regions))
    todo = [k for k in regions if ran.get(k[0]) and (not only or k[0] in only)
            and not (options.changed and same(before.get(k), k))]
    try:
        fresh = run(options, todo, regions, ran, reasons) if todo else {}
    except Refused as refused:
        print(f"mutants: {refused}")
        return 1
    rows = {k: table.settled(fresh.get(k, have.get(k)), reasons) for k in regions if k in fresh or k in have}
    path.write_text(table.write(rows), encoding="utf-8")
    summary(fresh if only else rows)
    if options.changed:
        problems += [f"{file}: {id} was stale in {table.TABLE}; it is refreshed: look, and commit it"
                     for id, file in stale]
    problems += [] if only else check(rows, regions, ran, reasons, options.least)
    print("\n".join(problems + [f"mutants: {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
