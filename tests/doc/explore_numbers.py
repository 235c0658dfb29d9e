# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The numbers of the pages that compute: their WebAssembly beside the same files compiled here. Prints TAP.

    EXPLORE=FOLDER EXPLORE_NATIVE=PROGRAM python3 tests/doc/explore_numbers.py      FEW=1: 1,000 rows a policy, not 10,000

Under node and on this machine the same rows are drawn and computed. Every number must be equal to the bit, or within
what two exponentials of one ulp each may differ by. Of the laws, an honest row may break none; each wrong form must
break those that it is said to break, wherever its mistake is larger than rounding, and may break no other.
"""

import array
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "doc/explore"))
from explore_tables import PAGES  # noqa: E402
from tap import Tap  # noqa: E402

COUNT = 1000 if os.environ.get("FEW") else 10000
POLICIES = ("real-f64", "f32", "openai-bf16", "f16")
FORMS = ("right", "scaled", "dropped", "max-only", "renormalised", "per-part", "lse-rounded")
LAWS = ("mass", "shift", "key", "softmax1", "gate")
# Which laws a wrong form can break. A scaled sink is right at b = 0; a dropped one leaves weights that sum to 1.
BREAKS = {
    "right": (),
    "scaled": ("shift", "key", "gate"),
    "dropped": ("key", "softmax1", "gate"),
    "max-only": ("key", "softmax1", "gate"),
    "renormalised": ("mass", "key", "softmax1", "gate"),
    "per-part": ("key", "softmax1", "gate"),
    "lse-rounded": ("shift", "key", "softmax1", "gate"),
}
# The fields of row_result in doc/explore/row.h.
KEYS, SHOWN = 16, 2
FIELDS = {
    "first": 1,
    "score": KEYS,
    "sink": 1,
    "alpha": KEYS,
    "alpha_sink": 1,
    "value": KEYS * SHOWN,
    "out": SHOWN,
    "most": 1,
    "divisor": 1,
    "lse": 1,
    "gate": 1,
    "law": 5 * len(LAWS),
}
NODE = """
const fs = require("fs"), stop = () => { throw new Error("a system call"); };
const [wasm, draw, compute, result, size, count, ...asked] = process.argv.slice(1);
const wasi = { fd_close: stop, fd_seek: stop, fd_write: stop };
const { exports } = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(wasm)), { wasi_snapshot_preview1: wasi });
exports._initialize();
const place = exports[result]();
for (let number = 0; number < count; number++) {
  exports[draw](...asked.map(Number), number);
  exports[compute]();
  fs.writeSync(1, new Uint8Array(exports.memory.buffer, place, +size));
}
"""
# sum_result in doc/explore/sum.h, and the mistake before it in what the native program prints.
TERMS, ORDERS, SHUFFLES = 16, 6, 200
LINES = 13  # lines.h
SUM = TERMS + 9 + 4 * TERMS + ORDERS + SHUFFLES
MISTAKES = ("none", "lost", "twice", "cut", "narrower")


def rows(said):
    """The results, each as {field: numbers}."""
    numbers, at = array.array("d", said), 0
    while at < len(numbers):
        row = {}
        for name, count in FIELDS.items():
            row[name], at = numbers[at : at + count], at + count
        yield row


def laws(row):
    return {name: row["law"][5 * k : 5 * k + 5] for k, name in enumerate(LAWS)}


def bounds(row, policy):
    """How far apart each number may be in two libraries. A weight: exponentials that err by one ulp, 2c, each, above and
    below, in both; n + 3 units for sum and quotient, in both; and one ulp of the format, if the two fall on two sides of a
    tie. An output: its weights', n + 1 units for the sum, and one ulp of the format."""
    unit = {"real-f64": 0, "f32": 2.0**-23, "openai-bf16": 2.0**-7, "f16": 2.0**-10}[policy]
    weight = (8 + 2 * (KEYS + 3)) * 2.0**-53 + unit
    alpha = [*row["alpha"], row["alpha_sink"][0]]
    sizes = [sum(a * abs(row["value"][SHOWN * j + d]) for j, a in enumerate(row["alpha"])) for d in range(SHOWN)]
    return [weight * a for a in alpha] + [(weight + 2 * unit + (KEYS + 1) * 2.0**-53) * size for size in sizes]


def compare(tap, policy, here, there):
    numbers = differ = 0
    worst = largest = 0.0
    for a, b in zip(rows(here), rows(there)):
        given = all(a[name] == b[name] for name in ("first", "score", "sink", "value"))  # no exponential before these
        differ += 0 if given else math.inf
        pairs = zip(
            [*a["alpha"], *a["alpha_sink"], *a["out"]], [*b["alpha"], *b["alpha_sink"], *b["out"]], bounds(a, policy)
        )
        for x, y, bound in pairs:
            numbers += x != 0 or y != 0
            if x != y:
                differ += 1
                worst = max(worst, abs(x - y) / bound if bound else math.inf)
                largest = max(largest, abs(x - y) / math.ulp(max(abs(x), abs(y))))
    tap.report(
        worst <= 1 and differ < math.inf and len(here) == len(there) > 0,
        f"explore.bits {policy}: numbers={numbers} "
        f"differ={differ} worst={worst:.3g} bound=1 largest={largest:.0f} ulp of binary64",
    )


def broken(said):
    counts, total = dict.fromkeys(LAWS, 0), 0
    worst = dict.fromkeys(LAWS, 0.0)
    for row in rows(said):
        total += 1
        for name, (_, _, residue, limit, holds) in laws(row).items():
            counts[name] += not holds
            if residue != 0:
                worst[name] = max(worst[name], residue / limit if limit else math.inf)
    return total, counts, worst


def sums(tap, native, wasm):
    """Sums are equal to the bit: they need no exponential. Honest ones are inside their sets, in any order; a lost or
    doubled term that is three bounds large is outside; a cut sum mostly is not."""
    for f, form in enumerate(("f32", "f16", "bf16")):
        here = array.array(
            "d", subprocess.run([native, "sum", str(f), str(COUNT)], stdout=subprocess.PIPE, check=True).stdout
        )
        there = array.array(
            "d",
            subprocess.run(
                ["node", "-e", NODE, wasm, "sum_draw", "sum_compute", "sum_result", str(8 * SUM), str(COUNT), str(f)],
                stdout=subprocess.PIPE,
                check=True,
            ).stdout,
        )
        differ, escaped, hidden, worst = 0, 0, 0, 0.0
        counts = {name: [0, 0] for name in MISTAKES}
        for number in range(COUNT):
            mistake, row = (
                MISTAKES[int(here[number * (SUM + 1)])],
                here[number * (SUM + 1) + 1 : (number + 1) * (SUM + 1)],
            )
            differ += row != there[number * SUM : (number + 1) * SUM]
            term, (truth, _, _, _, got, _, largest, this_order, steps) = row[:TERMS], row[TERMS : TERMS + 9]
            for honest in row[-ORDERS - SHUFFLES :]:
                worst = max(worst, abs(honest - truth) / largest if largest else math.inf)
            inside = abs(got - truth) <= largest
            counts[mistake][0] += 1
            counts[mistake][1] += not inside
            escaped += mistake == "none" and not abs(got - truth) <= this_order
            last = {"lost": int(steps) + 1, "twice": int(steps) - 1}.get(mistake)
            hidden += last is not None and inside and abs(term[last]) > 3 * largest
        tap.report(
            differ == 0
            and escaped == 0
            and worst <= 1
            and hidden == 0
            and 0 < 2 * counts["cut"][1] < counts["cut"][0]
            and counts["narrower"][1]
            and counts["none"][1] == 0,
            f"explore.sums {form}: sums={COUNT} differ={differ} worst={worst:.3g} bound=1 outside: "
            + " ".join(f"{name}={out}/{of}" for name, (of, out) in counts.items()),
            [f"beyond their order {escaped}, hidden {hidden}"],
        )


# back_result in doc/explore/back.h: its numbers before the laws, and where the size of each number is taken from.
BACK_LAWS = ("sum", "delta", "bias", "slope")
BACK_BREAKS = {
    "right": (),
    "sign": ("sum", "slope"),
    "per-part": ("sum", "slope"),
    "renormalised": ("sum", "delta", "slope"),
    "sinkless": ("sum", "bias", "slope"),
    "lse-lost": ("sum", "slope"),
}
BACK_NUMBERS = 1 + KEYS + 1 + SHOWN + 2 + KEYS + 1 + KEYS + 1 + KEYS * SHOWN + 65
BACK_SIZE = BACK_NUMBERS + 5 * len(BACK_LAWS)


def backward(tap, native, wasm):
    """Gradients: an honest row breaks no law, a wrong one those it is said to break; WebAssembly beside this machine."""
    for f, (form, breaks) in enumerate(BACK_BREAKS.items()):
        count = COUNT if f == 0 else COUNT // 10
        said = subprocess.run([native, "back", str(f), str(count)], stdout=subprocess.PIPE, check=True).stdout
        here = array.array("d", said)
        counts, worst, largest = dict.fromkeys(BACK_LAWS, 0), 0.0, 0.0
        for number in range(count):
            row = here[number * BACK_SIZE : (number + 1) * BACK_SIZE]
            for k, name in enumerate(BACK_LAWS):
                _, _, residue, limit, holds = row[BACK_NUMBERS + 5 * k :][:5]
                counts[name] += not holds
                if residue != 0:
                    worst = max(worst, residue / limit if limit else math.inf)
        bad = [name for name in BACK_LAWS if bool(counts[name]) != (name in breaks)]
        good = not bad and len(here) == count * BACK_SIZE and (worst <= 1) == (f == 0)
        shown = " ".join(f"{name}={counts[name]}" for name in BACK_LAWS)
        tap.report(good, f"explore.backward {form}: rows={count} worst={worst:.3g} bound=1 broken: {shown}", bad)
        if f == 0:
            asked = ["back_draw", "back_compute", "back_result", str(8 * BACK_SIZE), str(count), "0"]
            done = subprocess.run(["node", "-e", NODE, wasm, *asked], stdout=subprocess.PIPE, check=True)
            there, differ = array.array("d", done.stdout), 0
            for at in range(0, len(here), BACK_SIZE):
                pairs = list(zip(here[at : at + BACK_NUMBERS], there[at : at + BACK_NUMBERS]))
                # dO and the values are at most 3 and 6, so every number is a sum of sizes of 60 or less; weights differ
                # by (8 + 2 (n + 3)) 2^-53 of themselves, and a number has at most 60 roundings after them.
                differ += sum(a != b for a, b in pairs)
                largest = max(largest, *(abs(a - b) / ((8 + 2 * (KEYS + 3) + 60) * 2.0**-53 * 60) for a, b in pairs))
            good = len(here) == len(there) and largest <= 1
            tap.report(good, f"explore.backward bits: differ={differ} worst={largest:.3g} bound=1")


def lines(tap, native):
    """The derivation's lines are equal as far as binary64 goes; with rounded weights those from sink.attn-mass on are not."""
    size, mass, count = 2 * (KEYS + 1) + 1 + 11 * LINES, 8, COUNT // 5
    for p, policy in enumerate(POLICIES):
        said = array.array(
            "d", subprocess.run([native, "lines", str(p), str(count)], stdout=subprocess.PIPE, check=True).stdout
        )
        worst, away = 0.0, [0] * LINES
        for number in range(count):
            row = said[number * size : (number + 1) * size]
            limit, residues = row[2 * (KEYS + 1)], row[2 * (KEYS + 1) + 11 :: 11]
            away = [a + (not residue <= limit) for a, residue in zip(away, residues)]
            worst = max(worst, *(residue / limit for residue in residues[: LINES if p == 0 else mass]))
        good = worst <= 1 and (not any(away) if p == 0 else not any(away[:mass]) and all(away[mass:]))
        tap.report(
            good,
            f"explore.lines {policy}: rows={count} lines={LINES} worst={worst:.3g} bound=1 away="
            + ",".join(map(str, away)),
        )


def without(tap):
    """Where clang is missing or makes no WebAssembly the page names the packages and is counted as skipped; a mistake in
    the page's own C is no such case."""
    root = pathlib.Path(__file__).resolve().parents[2]
    for what, clang, status in (
        ("no clang", None, 0),
        ("no target", "exit 1", 0),
        ("our mistake", "case $* in *row.c*) exit 1;; esac", 1),
    ):
        with tempfile.TemporaryDirectory() as folder:
            if clang:
                path = pathlib.Path(folder, "clang")
                path.write_text(f"#!/bin/sh\n{clang}\n")
                path.chmod(0o755)
            done = subprocess.run(
                [sys.executable, root / "doc/explore/explore.py", root, f"{folder}/book"],
                env={"PATH": f"{folder}:/nowhere"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            page = pathlib.Path(folder, "book/explore/index.html")
            shown = page.read_text(encoding="utf-8") if page.is_file() else ""
            good = done.returncode == status and (
                status
                or (
                    f"{len(PAGES)} pages skipped" in done.stdout
                    and "libclang-rt-14-dev-wasm32" in shown
                    and 'id="missing"' in shown
                    and "wasm.js" not in shown
                    and "page.js" not in shown
                )
            )
            tap.report(good, f"explore.without: {what}", [done.stdout])


def main(native, wasm):
    tap = Tap()
    without(tap)
    lacking = (
        "no WebAssembly: its packages are missing"
        if not os.path.isfile(wasm)
        else "no node" if not shutil.which("node") else ""
    )
    if lacking:
        tap.skip("explore.bits: the numbers of the page are not compared", lacking)
        return tap.done()
    size = 8 * sum(FIELDS.values())
    backward(tap, native, wasm)
    for p, policy in enumerate(POLICIES):
        for f, form in enumerate(FORMS):
            asked = [str(p), str(f), str(COUNT if f == 0 else COUNT // 10)]
            here = subprocess.run([native, *asked], stdout=subprocess.PIPE, check=True).stdout
            if f == 0:
                there = subprocess.run(
                    ["node", "-e", NODE, wasm, "draw", "compute", "result", str(size), asked[2], *asked[:2]],
                    stdout=subprocess.PIPE,
                    check=True,
                ).stdout
                compare(tap, policy, here, there)
            total, counts, worst = broken(here)
            said = " ".join(f"{name}={counts[name]}" for name in LAWS)
            # In bfloat16 the rounding of the log-sum-exp to bfloat16 can hide; elsewhere a mistake shows in most rows.
            may = [name for name in LAWS if counts[name] and name not in BREAKS[form]]
            lack = [name for name in BREAKS[form] if not counts[name]]
            tap.report(
                not may and not lack and total == int(asked[2]),
                f"explore.laws {policy} {form}: rows={total} broken: {said}",
                [f"breaks {may}, which it cannot; never breaks {lack}", str(worst)],
            )
            if form == "right":
                print(
                    f"# {policy}: worst residue of its bound:",
                    ", ".join(f"{name} {x:.3g}" for name, x in worst.items()),
                )
    sums(tap, native, wasm)
    lines(tap, native)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(os.environ["EXPLORE_NATIVE"], os.path.join(os.environ["EXPLORE"], "explore.wasm")))
