# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The pictures of chapter 13: what the sets and the limits are, each drawn from runs that are made here."""
import array
import json
import math

from canvas import WIDTH, Canvas
from runs import TINY, header, run, tensor, traced
from shares import percent

RUN = ["--tokens", "random:36", "--policy", "f32", "--points", "A11,A12"]
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(base, exponent):
    return f"{base}{str(exponent).translate(SUPERSCRIPT)}"


def sum_set(text):
    """Bound, likely set and what sums of four kinds reached, against the number of terms (`sinkproof curve bound.dot`)."""
    block = text.split("\n\n")[0]
    rows = [list(map(float, line.split())) for line in block.splitlines() if line and not line.startswith("#")]
    lengths = [row[0] for row in rows]
    left, right, top, bottom = 62, WIDTH - 12, 84, 318
    most, least = math.log10(rows[-1][5]), -1
    c = Canvas(392, f"The error of a float32 sum against its number of terms, from {lengths[0]:.0f} to {lengths[-1]:,.0f}, in units of u "
               f"times the sizes. The worst case rises like the number of terms and sums that were built for it reach it; the "
               f"likely set rises like its root, to {rows[-1][6]:,.0f}; sums of positive terms reached {rows[-1][3]:,.0f} and sums "
               f"of terms of both signs {rows[-1][1]:.1f}.")

    def at(n, v):
        return (left + math.log2(n) * (right - left) / math.log2(lengths[-1]),
                bottom - (math.log10(max(v, 0.1)) - least) / (most - least) * (bottom - top))
    for exponent in range(0, int(most) + 1):
        _, y = at(1, 10.0 ** exponent)
        c.line((left, y), (right, y), colour="line", width=0.7)
        c.text(left - 8, y + 5, power("10", exponent), "faint", "end", "small")
    for exponent in range(0, 17, 4):
        x, _ = at(2 ** exponent, 1)
        c.line((x, top), (x, bottom), colour="line", width=0.7)
        c.text(x, bottom + 22, power("2", exponent), "faint", "middle", "small")
    for column, colour, dash in ((5, "bad", None), (6, "b", None), (3, "a", "5 3"), (1, "c", "5 3")):
        c.line(*(at(row[0], row[column]) for row in rows), colour=colour, width=2, dash=dash)
    for row in rows[1:]:
        c.dot(*at(row[0], row[4]), 3, "ink")
    for k, (words, colour, dash) in enumerate((("worst case", "bad", None), ("likely, odds 10⁻⁹", "b", None),
                                               ("positive terms", "a", "5 3"), ("both signs", "c", "5 3"))):
        x, y = 10 + 260 * (k % 2), 20 + 22 * (k // 2)
        c.line((x, y - 5), (x + 30, y - 5), colour=colour, width=2, dash=dash)
        c.text(x + 40, y, words, colour, kind="small")
    c.dot(25, 59, 3, "ink")
    c.text(50, 64, "terms built so that every rounding errs one way", kind="small")
    c.text(left, bottom + 50, "number of terms; worst of 32 draws, in _u_ Σ|_ab_|", "faint", kind="small")
    return c


def maxima(row):
    """The running maximum of a row of scores, and where it moved."""
    running, moves = [], []
    for j, score in enumerate(row):
        if not running or score > running[-1]:
            moves.append(j)
        running.append(max(score, running[-1]) if running else score)
    return running, moves


def running_max(scores):
    """The last query of the head whose maximum moves most often: its scores as a kernel meets them."""
    rows = [[s for s in head[-1]] for head in scores]
    row = max(rows, key=lambda r: len(maxima(r)[1]))
    running, moves = maxima(row)
    low, high = min(row), max(row)
    rescaled = len(moves) - 1
    c = Canvas(344, f"The scores of one query with {len(row)} keys, in the order in which a kernel meets them, and the running maximum "
               f"above them, a staircase. It moves {rescaled} times after the first key; each time what was summed so far is "
               f"rescaled, with one exponential and one product more. The first key's term meets all {rescaled} rescalings, the "
               f"last key's none.")
    step = (WIDTH - 40) / len(row)

    def at(j, s):
        return 20 + j * step, 262 - (s - low) / (high - low) * 190
    for j, score in enumerate(row):
        x, y = at(j + 0.5, score)
        c.dot(x, y, 3.2, "b" if j in moves else "a")
    points = [p for j, m in enumerate(running) for p in (at(j, m), at(j + 1, m))]
    c.line(*points, colour="b", width=1.8)
    for j in moves[1:]:
        x, _ = at(j, low)
        c.line((x, 276), (x, 58), colour="b", width=0.9, dash="3 3")
    c.text(10, 22, "scores of one query, key after key", "a", weight="bold")
    c.text(10, 44, "the running maximum", "b")
    for j in moves:
        left = rescaled - sum(m <= j for m in moves[1:])
        c.text(at(j + 0.5, low)[0], 294, str(left), "b", "middle", "small")
    c.text(10, 318, "rescalings that a term still meets when it joins the sum", "b", kind="small")
    c.text(10, 338, f"{rescaled} in all; each is one exponential and one product", "faint", kind="small")
    return c


# ---- drift -------------------------------------------------------------------------------------------

def cut(data, bits, layers):
    """A trace whose output projections lost their last bits, all towards zero."""
    entries, start = header(data)
    out = bytearray(data)
    for l in range(layers):
        first, last = entries[f"{l:02d}.A12"]["data_offsets"]
        words = array.array("I", bytes(out[start + first:start + last]))
        out[start + first:start + last] = array.array("I", [w & ~((1 << bits) - 1) for w in words]).tobytes()
    return bytes(out)


def projections(program, root, path):
    report = json.loads(run(program, root, "judge", "synthetic:tiny", path, "--policy", "f32", "--local", "--no-hint",
                            "--json", "-", exits=(0, 4)))
    return [r for r in report["results"][1:] if r["id"].endswith(".A12")]


def drift(honest, leaning):
    """Shares of the worst case and of drift's limit: an honest engine, and one that cuts off two bits."""
    share = [[(r["id"], r["worst"], abs(r["drift"]) / r["drift_limit"]) for r in rs] for rs in (honest, leaning)]
    worst = max(w for rows in share for _, w, _ in rows)
    least = min(d for _, _, d in share[1])
    c = Canvas(398, f"The output projections of four layers, twice: of an honest engine and of one that cuts off the last two bits. Of "
               f"the worst case both use at most {percent(worst, 1, '')} per cent. Of the limit of drift the honest engine uses at most "
               f"{max(d for _, _, d in share[0]):.2f}, the other {least:.2f} or more in every layer.")
    most = max(d for rows in share for _, _, d in rows) * 1.04
    wide = (WIDTH - 150) / most
    edge = 70 + wide
    y = 24
    for title, rows in zip(("an honest engine", "the last two bits cut off"), share):
        c.text(10, y, title, weight="bold")
        for k, (id, w, d) in enumerate(rows):
            top = y + 14 + 34 * k
            c.text(10, top + 18, id, kind="code")
            c.rect(70, top, max(wide * w, 1), 10, None, "a", round=1)
            c.rect(70, top + 13, max(wide * d, 1), 10, None, "bad" if d > 1 else "c", round=1)
            c.text(76 + wide * max(d, w) + (10 if abs(wide * max(d, w) + 40 - wide) < 50 else 0), top + 20,
                   f"{d:.2f}", "bad" if d > 1 else "c", kind="small")
        y += 178
    for top in (34, 212):
        c.line((edge, top), (edge, top + 138), width=1.6, dash="4 3")
    c.text(edge, 24, "limit", anchor="middle", kind="small")
    c.text(10, 372, "of the worst case", "a", kind="small")
    c.text(160, 372, "of drift's limit, below it and", "c", kind="small")
    c.text(372, 372, "above", "bad", kind="small")
    c.text(10, 392, "each bar as a share of its limit, layer by layer", "faint", kind="small")
    return c


def pictures(program, root, scratch):
    scores = tensor(traced(program, root, scratch, "synthetic:tiny", *TINY), "01.A6")
    exact = traced(program, root, scratch, "synthetic:tiny", *RUN)
    honest, leaning = scratch / "lanes.safetensors", scratch / "cut.safetensors"
    run(program, root, "run", "synthetic:tiny", *RUN, "--engine", "lanes", "--trace", honest)
    leaning.write_bytes(cut(exact, 2, 4))
    return {"sum-set": sum_set(run(program, root, "curve", "bound.dot")), "running-max": running_max(scores),
            "drift": drift(projections(program, root, honest), projections(program, root, leaning))}
