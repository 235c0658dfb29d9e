# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mistakes of the rotation, planted in the rotated queries and keys of an honest run: the diagnosis names each. The
rotation here is of its own, in binary64.

    WHOLE=1 python3 tests/audit/test_rotation_causes.py [SEED]   of all mistakes; a landing takes a sample
    ONLY=ramp python3 tests/audit/test_rotation_causes.py        of those whose name has it
"""
import json
import math
import os
import pathlib
import random
import re
import struct
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared")]
from checkpoints import numbers_of, read, report, run, safetensors, sinkproof  # noqa: E402

MODEL, N, DIM, HALF = "synthetic:tiny,layers=2", 40, 16, 8
THETA, FACTOR, CONTEXT, FAST, SLOW = 150000.0, 32.0, 4096.0, 32.0, 1.0
CONCENTRATION = 0.1 * math.log(FACTOR) + 1


def end_of_ramp(turns, context=CONTEXT, theta=THETA):
    return DIM * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(theta))


LOW, HIGH = end_of_ramp(FAST), end_of_ramp(SLOW)


def frequencies(low=LOW, high=HIGH, mixed=lambda f, w: f * (1 - w) + f / FACTOR * w):
    trained = [THETA ** (-p / HALF) for p in range(HALF)]
    shares = [float(p > low) if low == high else min(max((p - low) / (high - low), 0), 1) for p in range(HALF)]
    return [mixed(f, w) for f, w in zip(trained, shares)]


class Turned:
    """A rotation: frequencies, positions by row, and what coordinate k of a row meets."""

    def __init__(self, frequency=None, position=lambda i: i, entries=None, neighbours=False):
        self.frequency, self.position, self.neighbours = frequency or frequencies(), position, neighbours
        self.entries = entries or (lambda c, s, k: (c[k % HALF], s[k % HALF]))

    def row(self, i, x):
        angles = [self.position(i) * f for f in self.frequency]
        c, s = ([CONCENTRATION * of(a) for a in angles] for of in (math.cos, math.sin))
        x = [x[k % HALF * 2 + k // HALF] for k in range(DIM)] if self.neighbours else x
        y = []
        for k in range(DIM):
            cosine, sine = self.entries(c, s, k)
            y.append(x[k] * cosine + (-x[k + HALF] if k < HALF else x[k - HALF]) * sine)
        return [y[k % 2 * HALF + k // 2] for k in range(DIM)] if self.neighbours else y


def traced(path, tensors, metadata, turned):
    kept = {name: tensor for name, tensor in tensors.items() if re.match(r"tokens|positions|00\.A2", name)}
    for point in "qk":
        dtype, shape, raw = tensors[f"00.A4.{point}"]
        x = numbers_of(dtype, tensors[f"00.A2.{point}"][2])
        each = len(x) // N
        y = [v for i in range(N) for at in range(i * each, (i + 1) * each, DIM) for v in turned.row(i, x[at:at + DIM])]
        kept[f"00.A4.{point}"] = (dtype, shape, struct.pack(f"<{len(y)}f", *y))
    path.write_bytes(safetensors(kept, metadata))


def causes(path):
    status, _, told = sinkproof("judge", MODEL, str(path), "--policy", "f32", "--local", "--no-hint", "--json", str(path) + ".json")
    found = json.loads(pathlib.Path(str(path) + ".json").read_text())["results"][0]["diagnosis"]
    return status, [["+".join(ids) for ids in [f["mistakes"], *f["indistinguishable"]] if ids] for f in found]


# ---- mistakes: (rotation, what must be in the name)

def ramp(low, high, name):
    return lambda draw: (Turned(frequencies(low, high)), f"^frequencies-ramp-{name}$")


def mixed(rule, name):
    return lambda draw: (Turned(frequencies(mixed=rule)), f"^frequencies-{name}$")


def stretches(draw):
    """Passes that are counted with their padding."""
    unit, first, second = draw.choice((4, 8)), draw.randrange(9, 16), draw.randrange(21, 31)
    a = -first % unit or unit
    b = a + (-(second + a) % unit or unit)
    return Turned(position=lambda i: i + (a if i >= first else 0) + (b - a if i >= second else 0)), \
        rf"^positions-in-stretches={first}\+{a},{second}\+{b}$"


def stretches_with_a_right_one(draw):
    first, second, third, by = draw.randrange(5, 10), draw.randrange(14, 19), draw.randrange(25, 33), draw.choice((-3, 5))
    return Turned(position=lambda i: i + (by if first <= i < second else 2 if i >= third else 0)), \
        rf"^positions-in-stretches={first}\{by:+d},{second}\+0,{third}\+2$"


def entries(rule, name, neighbours=False):
    return lambda draw: (Turned(entries=rule, neighbours=neighbours), f"^{name}$")


def permuted(draw):
    order = list(range(HALF))
    a, b = draw.sample(range(4), 2)
    order[a], order[b] = order[b], order[a]
    return Turned(entries=lambda c, s, k: (c[order[k % HALF]], s[order[k % HALF]])), "^rope-entries"


def table_of_pairs(c, s):
    return [x for p in range(HALF) for x in (c[p], s[p])]


MISTAKES = {
    "ramp_twice": ramp(2 * LOW, 2 * HIGH, "twice"),
    "ramp_half": ramp(LOW / 2, HIGH / 2, "half"),
    "ramp_of_other_betas": ramp(end_of_ramp(96), end_of_ramp(0.5), "betas"),
    "ramp_without_2pi": ramp(end_of_ramp(FAST / 2 / math.pi), end_of_ramp(SLOW / 2 / math.pi), "without-2pi"),
    "ramp_base": ramp(end_of_ramp(FAST, theta=10000), end_of_ramp(SLOW, theta=10000), "base-10000"),
    "ramp_log2": ramp(LOW / math.log(2), HIGH / math.log(2), "log2"),
    "ramp_floors": ramp(math.floor(LOW), math.floor(HIGH), "floors"),
    "ramp_ceilings": ramp(math.ceil(LOW), math.ceil(HIGH), "ceilings"),
    "ramp_over_all": ramp(0, HALF - 1, "over-all"),
    "ramp_step": ramp((LOW + HIGH) / 2, (LOW + HIGH) / 2, "(step|narrowed)"),
    "ramp_other": ramp(1.3, 5.2, "other-ends"),
    "multiplied": mixed(lambda f, w: f * (1 - w) + f * FACTOR * w, "ramp-multiplied"),
    "by_root": mixed(lambda f, w: f * (1 - w) + f / math.sqrt(FACTOR) * w, "ramp-by-root"),
    "wavelengths": mixed(lambda f, w: 1 / ((1 - w) / f + w * FACTOR / f), "ramp-wavelengths"),
    "geometric": mixed(lambda f, w: f * FACTOR ** -w, "ramp-geometric"),
    "llama3": lambda draw: (Turned([f / FACTOR + (f - f / FACTOR) * min(max((CONTEXT * f / 2 / math.pi - 1) / 3, 0), 1)
                                    for f in frequencies(99, 100)]), "^frequencies-llama3$"),
    "stretches": stretches,
    "stretches_with_a_right_one": stretches_with_a_right_one,
    "halves_as_pairs": entries(lambda c, s, k: ([*c, *s][2 * (k % HALF)], [*c, *s][2 * (k % HALF) + 1]), "rope-table-halves-as-pairs"),
    "pairs_as_halves": entries(lambda c, s, k: (table_of_pairs(c, s)[k % HALF], table_of_pairs(c, s)[HALF + k % HALF]),
                               "rope-table-pairs-as-halves"),
    "repeated_as_halves": entries(lambda c, s, k: (c[k // 2], s[k // 2]), "rope-table-repeated-as-halves"),
    "halves_as_repeated": entries(lambda c, s, k: (c[(2 * (k % HALF) + k // HALF) % HALF], s[(2 * (k % HALF) + k // HALF) % HALF]),
                                  "rope-table-halves-as-repeated-neighbours", True),
    "cosines_alone": entries(lambda c, s, k: (c[k % HALF], 0), "rope-table-cosines-alone"),
    "permuted": permuted,
}


def planted(work):
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    draw, honest, path = random.Random(seed), work / "honest.safetensors", work / "t.safetensors"
    status, _, told = sinkproof("run", MODEL, "--policy", "f32", "--tokens", f"random:{N},seed=3", "--trace", str(honest))
    assert status == 0, told
    tensors, metadata = read(honest)
    traced(path, tensors, metadata, Turned())
    status, told = causes(path)
    report(status != 1 and told == [], f"an honest rotation has no cause: exit {status}, {told}")
    chosen = os.environ.get("ONLY")
    for name in MISTAKES if chosen or "WHOLE" in os.environ else sorted(draw.sample(sorted(MISTAKES), 8)):
        if chosen and not re.search(chosen, name):
            continue
        turned, wanted = MISTAKES[name](draw)
        traced(path, tensors, metadata, turned)
        status, told = causes(path)
        right = status == 1 and len(told) == 1 and any(re.search(wanted, one) for one in told[0])
        report(right, f"{name}: {wanted}, named {told}")


if __name__ == "__main__":
    sys.exit(run(planted))
