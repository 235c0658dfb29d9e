# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The numbers of the page "One row, one sink": its WebAssembly beside the same files compiled here. Prints TAP.

    python3 tests/doc/explore_numbers.py NATIVE WASM       FEW=1: 1,000 drawn rows a policy instead of 10,000

Under node and on this machine the same rows are drawn and computed. Every number must be equal to the bit, or within
what two exponentials of one ulp each may differ by. Of the laws, an honest row may break none; each wrong form must
break those that it is said to break, wherever its mistake is larger than rounding, and may break no other.
"""
import array
import math
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from tap import Tap  # noqa: E402

COUNT = 1000 if os.environ.get("FEW") else 10000
POLICIES = ("real-f64", "f32", "openai-bf16", "f16")
FORMS = ("right", "scaled", "dropped", "max-only", "renormalised", "per-part", "lse-rounded")
LAWS = ("mass", "shift", "key", "softmax1", "gate")
# Which laws a wrong form can break. A scaled sink is right at b = 0; a dropped one leaves weights that sum to 1.
BREAKS = {"right": (), "scaled": ("shift", "key", "gate"), "dropped": ("key", "softmax1", "gate"),
          "max-only": ("key", "softmax1", "gate"), "renormalised": ("mass", "key", "softmax1", "gate"),
          "per-part": ("key", "softmax1", "gate"), "lse-rounded": ("shift", "key", "softmax1", "gate")}
# The fields of row_result in doc/explore/row.h.
KEYS, SHOWN = 16, 2
FIELDS = {"first": 1, "score": KEYS, "sink": 1, "alpha": KEYS, "alpha_sink": 1, "value": KEYS * SHOWN, "out": SHOWN,
          "most": 1, "divisor": 1, "lse": 1, "gate": 1, "law": 5 * len(LAWS)}
NODE = """
const fs = require("fs"), stop = () => { throw new Error("a system call"); };
const [wasm, policy, form, count] = process.argv.slice(1);
const wasi = { fd_close: stop, fd_seek: stop, fd_write: stop };
const { exports } = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(wasm)), { wasi_snapshot_preview1: wasi });
exports._initialize();
for (let number = 0; number < count; number++) {
  exports.draw(+policy, +form, number);
  exports.compute();
  fs.writeSync(1, new Uint8Array(exports.memory.buffer, exports.result(), %d));
}
"""


def rows(said):
    """The results, each as {field: numbers}."""
    numbers, at = array.array("d", said), 0
    while at < len(numbers):
        row = {}
        for name, count in FIELDS.items():
            row[name], at = numbers[at:at + count], at + count
        yield row


def laws(row):
    return {name: row["law"][5 * k:5 * k + 5] for k, name in enumerate(LAWS)}


def bound(row, policy):
    """How far apart a weight may be in two libraries: exponentials that err by one ulp, 2c, each, above and below, in
    both; n + 3 units for sum and quotient; then one ulp of the format, if the two fall on two sides of a tie."""
    unit = {"real-f64": 0, "f32": 2.0 ** -23, "openai-bf16": 2.0 ** -7, "f16": 2.0 ** -10}[policy]
    return (8 + 2 * (KEYS + 3)) * 2.0 ** -53 + unit


def compare(tap, policy, here, there):
    numbers = differ = 0
    worst = largest = 0.0
    for a, b in zip(rows(here), rows(there)):
        for k, (x, y) in enumerate(zip([*a["alpha"], a["alpha_sink"][0]], [*b["alpha"], b["alpha_sink"][0]])):
            numbers += 1
            if x != y:
                differ += 1
                away = abs(x - y) / max(abs(x), abs(y)) / bound(a, policy)
                worst, largest = max(worst, away), max(largest, abs(x - y) / math.ulp(max(x, y)))
    tap.report(worst <= 1 and len(here) == len(there) > 0, f"explore.bits {policy}: weights={numbers} differ={differ} "
               f"worst={worst:.3g} bound=1 largest={largest:.0f} ulp of binary64")


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


def main(native, wasm):
    tap = Tap()
    size = 8 * sum(FIELDS.values())
    for p, policy in enumerate(POLICIES):
        for f, form in enumerate(FORMS):
            asked = [str(p), str(f), str(COUNT if f == 0 else COUNT // 10)]
            here = subprocess.run([native, *asked], stdout=subprocess.PIPE, check=True).stdout
            if f == 0:
                there = subprocess.run(["node", "-e", NODE % size, wasm, *asked], stdout=subprocess.PIPE, check=True).stdout
                compare(tap, policy, here, there)
            total, counts, worst = broken(here)
            said = " ".join(f"{name}={counts[name]}" for name in LAWS)
            # In bfloat16 the rounding of the log-sum-exp to bfloat16 can hide; elsewhere a mistake shows in most rows.
            may = [name for name in LAWS if counts[name] and name not in BREAKS[form]]
            lack = [name for name in BREAKS[form] if not counts[name]]
            tap.report(not may and not lack and total == int(asked[2]), f"explore.laws {policy} {form}: rows={total} broken: {said}",
                       [f"breaks {may}, which it cannot; never breaks {lack}", str(worst)])
            if form == "right":
                print("#", policy, {name: f"{x:.3g}" for name, x in worst.items()})
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
