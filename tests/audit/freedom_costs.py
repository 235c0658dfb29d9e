# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What each freedom costs the judge's sight: the rows of chapter 33's table, as `judge --json` says them of layer 0.

    make build/release/sinkproof && python3 tests/audit/freedom_costs.py [TOKENS]

Before: a run under the policy without the freedom, judged under it. After: a run that takes the freedom, judged under
the policy that says so. The same model and tokens; A11 without the weights of attention where a kernel shows none.
"""
import json
import os
import pathlib
import re
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared")]
from checkpoints import sinkproof  # noqa: E402
from shares import percent  # noqa: E402

MODELS = {"tiny": "synthetic:tiny", "mid": "synthetic:doc/engines/mid.json"}
HIDDEN = "T0,A1,A2,A4,A11"
MIXED = "T0,M1,M2,M3,M4,M8,M11"  # no rank has a whole M9 or M10
# before, after, the point, the points that are shown
ROWS = [("bf16", "bf16,acc=hopper", "A2.q", None),
        ("bf16", "bf16,acc=hopper", "A12", None),
        ("f32", "f32,acc=hopper", "A2.q", None),
        ("bf16", "bf16,A12.acc=ranks(2,bf16)", "A12", None),
        ("bf16", "bf16,ranks=2", "A12", None),
        ("bf16", "bf16,ranks=2", "M11", None),
        ("bf16", "bf16,slices=2", "M11", None),
        ("bf16", "bf16,slices=2", "M11", MIXED),
        ("bf16", "bf16,ranks=2", "M11", MIXED),
        ("bf16", "bf16,ranks=8", "A12", None),
        ("bf16", "bf16,ranks=8", "M11", None),
        ("bf16", "bf16,slices=8", "M11", MIXED),
        ("bf16", "bf16,F2.acc=blocks(8,bf16)", "F2", None),
        ("bf16", "bf16,A5.k=e4m3,A11.v=e4m3", "A11", HIDDEN),
        ("bf16", "bf16,A5.k=e4m3(token-head),A11.v=e4m3(token-head)", "A11", HIDDEN),
        ("f32", "f32,A2.in=tf32", "A2.q", None),
        ("f32", "f32,A2.in=tf32?", "A2.q", None),
        ("bf16,A9.unnorm=real,A11.part=real", "bf16,A11.part=real", "A11", HIDDEN),
        ("bf16,A11.part=real", "bf16", "A11", HIDDEN),
        ("bf16", "bf16,A11.part=levels(3,bf16)?", "A11", HIDDEN),
        ("bf16,A1.norm=real", "bf16,A1.norm=bf16?", "A1", None),
        ("f32", "f32,div=2ulp,rcp=1ulp", "A9", None),
        ("f32", "f32,div=2ulp,rcp=1ulp", "M8", None),
        ("bf16,div=0.5ulp,rcp=0.5ulp", "bf16", "A1", None),
        ("bf16,div=0.5ulp,rcp=0.5ulp", "bf16", "A11", HIDDEN)]


def figures(model, policy, point, shown, tokens, trace):
    """(share of single-valued sets, smallest change of one element in ulp, smallest common factor), the verdict."""
    words = ["--points", shown] if shown else []
    status, _, told = sinkproof("run", MODELS[model], "--policy", policy, "--tokens", f"random:{tokens},seed=1",
                                "--trace", trace, *words)
    if status:
        sys.exit(f"run {policy}: {told}")
    _, out, _ = sinkproof("judge", MODELS[model], trace, "--policy", policy, "--local", "--no-diagnosis", "--json", "-")
    result = next(r for r in json.loads(out)["results"] if r["id"] in (point, f"00.{point}"))
    one, factor = result["power_single_ulp"], result["power_factor"]
    more = ">" if result["power_single_or_more"] else ""
    return (percent(1 - result["several"] / result["elements"], 2), f"{more}{one:.4g}",
            "–" if factor is None else f"{factor:.2g}"), result["verdict"]


def words(policy):
    """A policy whose words a page may put on lines of their own."""
    return ", ".join(f"`{word}`" for word in re.split(r",(?![^(]*\))", policy))


def main():
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 48
    print("| before | after | point | model | single-valued | one element, ulp | common factor |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        trace = str(pathlib.Path(folder) / "trace")
        for before, after, point, shown in ROWS:
            for model in MODELS:
                found = [figures(model, policy, point, shown, tokens, trace) for policy in (before, after)]
                for policy, (_, verdict) in zip((before, after), found):
                    if verdict not in ("within", "exact", "undecided"):
                        sys.exit(f"{point} of {model} under {policy} is {verdict}")
                cells = [" → ".join((a, b)) for a, b in zip(found[0][0], found[1][0])]
                seen = f"{point}, M9 and M10 hidden" if shown == MIXED else point
                print(f"| {words(before)} | {words(after)} | {seen} | {model} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
