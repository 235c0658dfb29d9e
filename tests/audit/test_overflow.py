# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Overflow, judged: the reference under each policy on models one of whose weights is so large that numbers
leave their format, as activations of GPT-OSS do in float16. What is computed from infinities is NaN in every
honest engine: no point may be called a bug or suspicious, NaN must leave the verdict undecided, and the report
must say where infinities and NaN begin, as a reading of the trace has it. A mistake beside them is found."""
import concurrent.futures
import itertools
import json
import math
import os
import re
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared")]
import checkpoints  # noqa: E402
from checkpoints import changed, report, sinkproof  # noqa: E402

CONFIG = checkpoints.STATED | checkpoints.SMALL | {"hidden_size": 64, "intermediate_size": 64, "head_dim": 16,
                                                   "vocab_size": 61}
LARGE = ("q_proj", "k_proj", "v_proj", "o_proj", "sinks", "router", "gate_up", "down", "embed", "norm", "lm_head")
# Each policy, and what the weights are multiplied by: float16 ends at 65504, the others at 3.4e38.
POLICIES = {"f16": 1e5, "f16,A9=real,A9.unnorm=f16": 1e5, "onnxruntime": 1e5, "llama-cpp": 1e5, "f32": 1e39,
            "bf16": 1e39, "openai-bf16": 1e39, "mlx,A4.form=any": 1e39}
KEPT = ((), ("--points", "A13,M3,M12"), ("--points", "A2.v,A4,A11,A12,A13,M1,M3,M8,M12,F1,F2"))
TOKENS = ("--tokens", "random:20,seed=3")
QUIET = ("--no-diagnosis", "--no-hint")


def multiplied(part, factor):
    """Zeros too: a bias that is none would stay one."""
    def change(name, _, numbers):
        return [max(-3e38, min(3e38, factor * (x or 0.01))) for x in numbers] if part in name else numbers
    return change


def model(folder, part, factor):
    checkpoints.write(folder, checkpoints.weights(CONFIG, 7, multiplied(part, factor)), CONFIG)
    return folder


def position(index, shape):
    """(3, 1, 17) of the index into the whole tensor."""
    place = []
    for extent in reversed(shape):
        place.insert(0, index % extent)
        index //= extent
    return f"({', '.join(map(str, place))})"


def counted(path):
    """{point: (NaN, infinities, where the first NaN is, the first infinity)} of a trace."""
    found = {}
    for name, (dtype, shape, raw) in checkpoints.read(path)[0].items():
        x = checkpoints.numbers_of(dtype, raw)
        where = [i for i, v in enumerate(x) if math.isnan(v)], [i for i, v in enumerate(x) if math.isinf(v)]
        found[name] = *map(len, where), *(position(w[0], shape) if w else None for w in where)
    return found


def sentence(out, word):
    """What the report says of the first point: its name, how many, of how many, where."""
    said = re.search(rf"^{word}: (\S+) is the first point, (\d+) of (\d+) elements, the first at (\(.*?\))", out, re.M)
    return said.groups() if said else None


def wrong(trace, out, points):
    """What of the report a reading of the trace contradicts. The mask hides elements of A6: not read."""
    told, counts = [], counted(trace)
    known = [p for p in points if not p["id"].endswith(".A6")]
    told += [f"{p['id']}: {p['nan']} NaN, {p['infinite']} infinite" for p in known
             if (p["nan"], p["infinite"]) != counts[p["id"]][:2]]
    for word, of in (("NaN", 0), ("Infinite", 1)):
        first = next((p["id"] for p in points if p["nan" if of == 0 else "infinite"]), None)
        said = sentence(out, word)
        if (said[0] if said else None) != first:
            told.append(f"{word}: {said}, expected {first}")
        elif first and not first.endswith(".A6") and (int(said[1]), said[3]) != counts[first][of::2]:
            told.append(f"{word}: {said}, found {counts[first]}")
    return told


def judged(model, trace, policy, *words):
    """Exit, report, the judgement, its points."""
    words += ("--policy", policy, "--json", f"{trace}.json")
    status, out, told = sinkproof("judge", str(model), str(trace), *words)
    whole, *points = json.loads((trace.parent / f"{trace.name}.json").read_text(encoding="utf-8"))["results"]
    return status, out + told, whole, points


def overflowing(work):
    """All models under all policies."""
    for part in LARGE:
        for factor in sorted(set(POLICIES.values())):
            model(work / f"{part}{factor:g}", part, factor)

    def one(case):
        part, policy, kept = case
        large = work / f"{part}{POLICIES[policy]:g}"
        trace = work / f"{part}-{list(POLICIES).index(policy)}-{KEPT.index(kept)}.trace"
        status, _, told = sinkproof("run", str(large), "--policy", policy, *TOKENS, *kept, "--trace", str(trace))
        if status:
            return case, [f"run exits with {status}: {told}"], 0
        status, out, whole, points = judged(large, trace, policy, *QUIET)
        nans = sum(p["nan"] for p in points)
        bad = [f"{p['id']} {p['verdict']}" for p in points if p["verdict"] in ("bug", "suspicious")]
        expected = ("undecided",) if nans or all(p["verdict"] == "undecided" for p in points) else ("exact", "within")
        if whole["verdict"] not in expected or status != (4 if "undecided" in expected else 0):
            bad.append(f"{whole['verdict']}, exit {status}, with {nans} NaN")
        bad += wrong(trace, out, points)
        if nans and f"\n{nans} elements are NaN where nothing bounds what an honest engine has." not in out:
            bad.append("the verdict does not say how many")
        return case, bad, nans + sum(p["infinite"] for p in points)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        cases = itertools.product(enumerate(LARGE), enumerate(POLICIES))
        results = list(pool.map(one, [(part, policy, KEPT[(i + j) % 3]) for (i, part), (j, policy) in cases]))
    for part in LARGE:
        alarms = [f"{case}: {', '.join(bad)}" for case, bad, _ in results if case[0] == part and bad]
        runs = sum(case[0] == part for case, _, _ in results)
        beyond = sum(n > 0 for case, _, n in results if case[0] == part)
        report(not alarms and beyond > 0,
               f"{part} so large that numbers overflow: {runs} runs, {beyond} with infinities or NaN, none convicted",
               alarms)


def mistakes(work):
    """Beside infinities, and before them, what is wrong is found."""
    large, trace = model(work / "model", "v_proj", 1e5), work / "trace"
    sinkproof("run", str(large), "--policy", "f16", *TOKENS, "--trace", str(trace))
    values = checkpoints.numbers_of("F16", checkpoints.read(trace)[0]["00.A2.v"][2])
    first = next(i for i, v in enumerate(values) if math.isinf(v))
    for point, index, value, words in (
            ("00.A1", 5, 9.0, "First divergence: 00.A1."),
            ("00.A2.q", 7, math.nan, "1 NaN; the set is bounded at (0, 0, 7)"),
            ("00.A2.v", first, math.nan, "First divergence: 00.A2.v."),
            ("00.A2.v", first, 60000.0, "First divergence: 00.A2.v."),
            ("00.A10", 0, math.inf, "First divergence: 00.A10.")):
        wrong = changed(trace, point, index, value, work / "changed.trace")
        status, out, whole, _ = judged(large, wrong, "f16", *QUIET)
        report(status == 1 and words in out and whole["first_divergence"] == point,
               f"{value} in {point} of a trace that overflows: a bug, '{words}'", [out])
    _, out, _, _ = judged(large, changed(trace, "00.A2.v", first, 6e4, work / "changed.trace"), "f16", "--no-hint")
    report("\n  A2.v of layer 0: not looked into; the honest set of its worst element is not finite\n" in out,
           "overflow: no mistake is supposed where the set is infinite", [out])
    _, out, _, _ = judged(large, trace, "f16", *QUIET)
    report("f16 ends at 65504." in out and ": behind what is no finite number\n" in out,
           "overflow: the report says where the format ends, and what is behind it", [out])


def audited(work):
    """`audit`: the roundings that overflow stand first; the first point is that of a trace."""
    large = model(work / "model", "v_proj", 1e5)
    trace, page, found = (work / name for name in ("trace", "page.html", "json"))
    sinkproof("run", str(large), "--policy", "f16", *TOKENS, "--trace", str(trace))
    status, out, told = sinkproof("audit", str(large), "--policy", "f16,openai-bf16", *TOKENS, "--html", str(page),
                                  "--json", str(found))
    _, f16, bf16 = json.loads(found.read_text(encoding="utf-8"))["results"]
    counts, parts = counted(trace), f16["budget"]["parts"]
    finite = not any(sum(counts[name][:2]) for name in ("T0", "00.A1", "00.A2.q", "00.A2.k"))
    report(status == 0 and finite and counts["00.A2.v"][1] > 0 and f16["overflow"] == "00.A2.v" and f16["final"] is None
           and bf16["overflow"] is None and "\nThe first point that overflows: 00.A2.v.\n" in out,
           "audit.overflow the first point is 00.A2.v", [out, told])
    beyond = [p["point"] for p in parts if p["error"] is None]
    shares = math.fsum(p["share"] for p in parts if p["error"] is not None)
    sentence_of_them = f"\n{len(beyond)} of {len(parts)} overflow alone; the shares are of the others.\n"
    report("A2" in beyond and "T0" not in beyond and [p["point"] for p in parts[:len(beyond)]] == beyond
           and abs(shares - 1) <= (len(parts) + 2) * 2 ** -52 and sentence_of_them in out,
           f"audit.overflow {len(beyond)} roundings overflow alone, and stand first: {', '.join(beyond)}", [out])
    shown = page.read_text(encoding="utf-8")
    report("nan" not in out.lower() and "nan" not in re.sub(r"<[^>]*>", " ", shown).lower().split()
           and "The first point that overflows: 00.A2.v." in shown and shown.count("&infin;") > 20,
           "audit.overflow is a word in text and page, never NaN", [out])


sys.exit(checkpoints.run(overflowing, mistakes, audited))
