# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof next`: text and JSON say the same, the counts are those of the rows, the truth's token and margin are those
of `sinkproof truth`, and the exit codes.
"""
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "shared"), os.path.join(TESTS, "audit")]
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

FATES = ("certified", "changed", "open", "unknown")


def study(model, *words):
    status, said, wrong = sinkproof("next", model, *words, "--json", "-")
    assert status in (0, 4), wrong
    return status, json.loads(said)["results"][0]


def rows(_):
    words = ("--tokens", "random:5", "--policy", "bf16", "--draws", "6")
    _, j = study("synthetic:tiny,layers=2", *words)
    text = sinkproof("next", "synthetic:tiny,layers=2", *words)[1]
    counts = {f: sum(p["fate"] == f for p in j["positions"]) for f in FATES}
    report(all(j[f] == counts[f] for f in FATES) and sum(counts.values()) == j["tokens"] == 5,
           f"next counts its rows: {counts}", [j])
    said = {f: int(re.search(rf"^ +(\d+) {f}: ", text, re.M)[1]) for f in FATES[:3]}
    report(all(said[f] == counts[f] for f in said), "the text counts the same", [said])
    found = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\S+) .* (\d+) \| (\w+)", text, re.M)
    report([(int(a), int(t), int(s), float(m), int(o), f) for a, t, s, m, o, f in found] ==
           [(p["position"], p["token"], p["argmax"], float(f"{p['margin']:.3g}"), p["changed"], p["fate"])
            for p in j["positions"]], f"the text has the same {len(found)} rows", [found])
    beyond = [sum(p["fate"] != "changed" and p[way] < p["margin"] for p in j["positions"]) for way in ("first_order", "likely")]
    report([j["beyond_first_order"], j["beyond_likely"]] == beyond and
           f"the margin of {beyond[0]} of {counts['certified'] + counts['open']} positions" in text and f"independent and centred, of {beyond[1]}." in text,
           f"how many margins exceed the estimates: {beyond}", [text])
    report(j["engines"] == 11 and j["steered"] == 5 and "11 engines ran" in text and "5 of them each steered" in text and
           f"of their {j['choices'] * 11} choices of experts {j['flips']} differ" in text, "it says how many engines ran, and their flips", [text])


def truth(_):
    """The last position's token and gap are those that the truth prints."""
    model = "synthetic:tiny-qwen3,layers=2"
    _, j = study(model, "--tokens", "random:4", "--draws", "0", "--no-steering", "--no-derivative")
    results = json.loads(sinkproof("truth", model, "--tokens", "random:4", "--json", "-")[1])["results"]
    last = next(r for r in results if r.get("what") == "argmax of the last token")
    p, gap = j["positions"][-1], last["gap"]
    report(p["argmax"] == last["argmax"] and abs(p["margin"] / float(gap["midpoint"]) - 1) < 1e-9,
           f"token and margin of the truth: {p['argmax']}, {p['margin']:.6g}", [gap])
    report(p["least"] is None and p["first_order"] is None and j["engines"] == 0, "what is not asked for is null", [p])


def precision(_):
    """More precision certifies more; fewer layers too."""
    def certified(model, policy):
        return study(model, "--policy", policy, "--tokens", "random:4", "--draws", "0", "--branches", "0", "--no-steering",
                     "--no-derivative")[1]["certified"]
    found = {policy: [certified(f"synthetic:{model},layers={layers}", policy) for model in ("tiny", "tiny-llama") for layers in (1, 2, 3)]
             for policy in ("bf16", "openai-bf16", "f32", "f32,inside=f64", "real-f64")}
    chapter = (ROOT / "doc" / "22-precision.md").read_text(encoding="utf-8")
    lines = chapter.split("<!-- prints next-certified -->")[1].strip().splitlines()[2:7]
    told = {policy: [int(x) for x in counts.split("|")[:6]]
            for policy, counts in (re.match(r"\| `(.*?)` \|(.*)", line).groups() for line in lines)}
    report(found == told, "certified of four positions, by layers and policy, as chapter 22 has it", [found, told])
    report(all(a >= b for counts in found.values() for part in (counts[:3], counts[3:]) for a, b in zip(part, part[1:])) and
           found["real-f64"] > found["f32"] and found["openai-bf16"] > found["bf16"],
           "fewer layers certify more, and more precision does", [found])


def last(_):
    """One engine is steered, one position estimated."""
    _, whole = study("synthetic:tiny,layers=1", "--tokens", "random:3", "--draws", "2")
    _, j = study("synthetic:tiny,layers=1", "--tokens", "random:3", "--draws", "2", "--last")
    estimates = [[p["first_order"] for p in s["positions"]] for s in (whole, j)]
    report(j["engines"] == 3 and j["steered"] == 1 and j["estimated"] == 1 and estimates[1] == [None, None, estimates[0][2]],
           "the last position alone: its estimate, one steered engine", [j])


def branches(_):
    """In bfloat16 with a stated order of sums the honest runs are few, and all of them are followed."""
    def runs(*words):
        return study("synthetic:tiny,layers=2", "--policy", "openai-bf16,acc=f32,M11.sum=f32", "--tokens", "random:4,seed=1",
                     "--draws", "2", "--no-steering", "--no-derivative", *words)[1]
    j, fewer = runs(), runs("--branches", "1")
    kept = all(0 < p["kept"] <= p["least"] for p in j["positions"])
    report(j["branches"] == 2 and j["certified"] == 4 and kept, "two honest runs, four positions certified, and kept by engines", [j])
    report(fewer["branches"] is None and fewer["certified"] < 4, f"with one run allowed: {fewer['certified']} certified", [fewer])
    _, order = study("synthetic:tiny-llama,layers=1", "--policy", "openai-bf16", "--tokens", "random:4", "--draws", "0", "--no-steering",
                     "--no-derivative")
    report(order["branches"] is None, "where the order of sums is open they are not few", [order])


def opened(_):
    """Where the sets first leave a choice of experts open: nowhere in binary64 in one layer, at once in bfloat16."""
    words = ("--tokens", "random:4", "--draws", "0", "--no-steering", "--no-derivative")
    _, exact = study("synthetic:tiny,layers=1", "--policy", "real-f64", *words)
    _, j = study("synthetic:tiny", "--policy", "bf16", *words)
    text = sinkproof("next", "synthetic:tiny", "--policy", "bf16", *words)[1]
    report(exact["open_layer"] is None and exact["open_tokens"] == 0 and j["open_layer"] == 0 and j["open_tokens"] == 4 and
           "In layer 0 they leave the choice of experts of 4 tokens open." in text and
           "At the end of layer 0 none has: nothing is certified by them alone." in text, "the first open choice of experts is named", [text])


def small(_):
    """What chapter 22 says of four layers in float32."""
    at = study("synthetic:tiny", "--policy", "f32", "--tokens", "random:8")[1]["positions"]
    margins, taken = [p["margin"] for p in at], [p["margin"] - p["least"] for p in at]
    report(0.02 < min(margins) < 0.021 and 2.75 < max(margins) < 2.8 and max(p["first_order"] for p in at) < 0.035 and
           all(p["first_order"] < p["margin"] for p in at) and max(taken) < 1e-4,
           f"f32, four layers: engines take {max(taken):.2g} at most, to first order {max(p['first_order'] for p in at):.2g}", [at])


def exits(_):
    tiny = "synthetic:tiny"
    status, j = study(tiny, "--tokens", "1,2", "--bits", "32", "--draws", "0", "--no-steering")
    report(status == 4 and j["unknown"] == 2 and j["certified"] == 0, f"the truth is unknown: exit {status}", [j])
    for words, code in ((("--draws", "-1"), 2), (("--policy", "none"), 2), (("--tokens", "999999"), 3)):
        report(sinkproof("next", tiny, *words)[0] == code, f"next {' '.join(words)}: exit {code}")


if __name__ == "__main__":
    sys.exit(checkpoints.run(rows, truth, precision, last, branches, opened, small, exits))
