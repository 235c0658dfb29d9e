# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Uses the installed Python package; run by python_package.py in its environment, as
`python_inside.py COUNT`, whose TAP it goes on with after COUNT results."""
import dataclasses
import functools
import gc
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "shared"), str(ROOT / "tests" / "audit")]
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import sinkproof  # noqa: E402
from sinkproof import _library  # noqa: E402
from tap import Tap  # noqa: E402
from python_batches import check_batches  # noqa: E402
from python_traces import check_caches, check_calls, check_gradients, check_later, check_lse, check_packed, check_prefix, check_truth  # noqa: E402

VECTORS = ROOT / "tests" / "vectors" / "openai-torch" / "small"
SINKPROOF = (ROOT / (os.environ.get("SINKPROOF") or "build/release/sinkproof")).resolve()
TINY, TOKENS, POLICY, FAST = "synthetic:tiny", list(range(3, 43)), "f32,exp=4ulp", {"local": True, "hint": False}
PAGES = ("14-judging.md", "19-adapters.md")
SHOWN = re.compile(r"<!-- python ([a-z]+) -->\n```python\n(.*?)```\n\n<!-- prints \1 -->\n```text\n(.*?)```", re.DOTALL)


def raised(kind, act):
    """What act() raises of this kind, as text; None when it does not."""
    try:
        act()
    except kind as error:
        return str(error)
    return None


class Room:
    """What the checks share: the report, an open model, a trace of it, and kernels of the book."""

    def __init__(self, tap):
        self.tap, self.model = tap, sinkproof.Model(TINY)
        self.trace = sinkproof.run(self.model, TOKENS, policy="f32")
        self.shown = {name: (code, prints) for name, code, prints in
                      SHOWN.findall("".join((ROOT / "doc" / page).read_text(encoding="utf-8") for page in PAGES))}
        self.book = {"__name__": "kernel"}
        exec(self.shown["kernel"][0], self.book)  # pylint: disable=exec-used

    def ok(self, good, text, *notes):
        return self.tap.report(bool(good), text, [str(note)[:400] for note in notes])

    def refused(self, text, expected, act, kind=sinkproof.Error):
        said = raised(kind, act)
        self.ok(said is not None and expected in said and "\n" not in said, text, said, f"expected: {expected}")

    def replaced(self, kernel, **options):
        return sinkproof.run(self.model, TOKENS, **{"policy": POLICY, "replace": {"A11": kernel}, **options})


# ------------------------------------------------------------------------------------------
# Judging


@functools.cache
def judged(stem, policy, *options):
    """The judgement of a trace of the vectors; each with its hint takes seconds."""
    return sinkproof.judge(VECTORS, VECTORS / f"trace-{stem}.safetensors", policy, **dict(options))


def check_vectors(room):
    """The same report, to the letter, and the same JSON as the command's."""
    for stem, policy in (("bf16", "auto"), ("bf16", "openai-bf16,M8.alpha=bf16"), ("f32", "auto")):
        path = str(VECTORS / f"trace-{stem}.safetensors")
        judgement = judged(stem, policy)
        said = subprocess.run([SINKPROOF, "judge", VECTORS, path, "--policy", policy], capture_output=True, text=True,
                              check=False)
        room.ok(said.stdout.strip() == str(judgement).strip() and said.returncode == judgement.exit_code,
                f"judge {stem} --policy {policy}: the command's report and exit code {judgement.exit_code}",
                *said.stdout.splitlines()[:3], *str(judgement).splitlines()[:3])
        loaded = sinkproof.judge(VECTORS, sinkproof.Trace.load(path, VECTORS), policy)
        room.ok(loaded == judgement, f"a trace that was read into arrays is judged the same ({stem}, {policy})",
                loaded.verdict, judgement.verdict)
    check_options(room)
    bug = judged("bf16", "auto")
    room.ok((bug.verdict, bug.first, bug.explained_by, bug.policy, bug.ok, bug.exit_code)
            == ("bug", "00.M8", "M8.alpha=bf16", "openai-bf16", False, 1), "the verdict, its first point and its cause",
            bug)
    named = bug.diagnosis[0]
    room.ok(len(bug.diagnosis) == 1 and named.status == "explained" and named.mistakes == ("alpha-bf16",)
            and named.points == ("00.M8", "01.M8", "02.M8", "03.M8") and named.because[0].startswith("alpha is rounded")
            and named.positions is None and named.indistinguishable == () and named.next and named.next_bounds > 0
            and not sinkproof.judge(VECTORS, VECTORS / "trace-bf16.safetensors", "openai-bf16", diagnosis=False, **FAST).diagnosis,
            "the diagnosis names the mistake; and is left out when it is not asked for", named)
    results = json.loads(bug.to_json())
    room.ok([r["id"] for r in results[1:]] == [p.name for p in bug.points]
            and [r["outside"] for r in results[1:]] == [p.outside for p in bug.points],
            "to_json() is the judgement, then its points")
    point = bug["00.M8"]
    low, high = point.worst_set
    room.ok(point.verdict is sinkproof.Verdict.BUG and point.elements == int(np.prod(point.shape)) and low <= high
            and not low <= point.worst_value <= high and point.worst_index == (1, 2, 15)
            and "gate -0x" in point.worst_inputs,
            "a point has its worst element, the set there and the inputs", point)
    norms = [p.worst_inputs for p in bug.points if p.name.split(".")[-1] in ("A1", "M1", "F1")]
    room.ok(norms and all(re.fullmatch("x -?0x.*, mean square 0x.*", text) for text in norms),
            "a norm's inputs are its element and its row", norms)
    room.ok("ambiguous" in (raised(TypeError, lambda: bool(bug)) or ""), "a judgement has no truth value")
    room.ok(raised(KeyError, lambda: bug["00.A99"]) == "'00.A99'", "and no point that the trace has not")


def check_options(room):
    """Each is the command's option of its name, and changes what the command's changes; costly ones are left out."""
    local, hint, diagnosis = (("local", True), "--local"), (("hint", False), "--no-hint"), (("diagnosis", False), "--no-diagnosis")
    for stem, policy, *asked in (
            ("bf16", "openai-bf16", local, hint, diagnosis),
            ("bf16", "openai-bf16", hint, local, diagnosis),
            ("bf16", "openai-bf16", diagnosis, local, hint),
            ("bf16", "openai-bf16", (("all_layers", True), "--all"), local, hint, diagnosis),
            ("f32", "f32", (("forms", True), "--forms"), (("all_layers", True), "--all"), local),
            ("f32", "f32", (("rate", 0.9), "--rate=0.9"), local)):
        options, words = zip(*asked)
        path = str(VECTORS / f"trace-{stem}.safetensors")
        said = subprocess.run([SINKPROOF, "judge", VECTORS, path, "--policy", policy, *words], capture_output=True,
                              text=True, check=False)
        judgement, without = (judged(stem, policy, *given) for given in (options, options[1:]))
        room.ok(str(judgement).strip() == said.stdout.strip() and judgement.exit_code == said.returncode
                and str(judgement) != str(without),
                f"judge --policy {policy} {' '.join(words)}: what the command says, and another thing than without",
                said.stderr, said.stdout[-300:], str(judgement)[-300:])


def check_arrays(room):
    """Arrays by name, in the dtypes that engines have."""
    arrays = dict(room.trace)
    judgement = sinkproof.judge(room.model, arrays, "f32", **FAST)
    room.ok(judgement.ok and len(judgement.points) == len(arrays) - 2, "a dict of arrays is judged",
            judgement.verdict)
    del arrays["positions"], arrays["00.A11"]
    arrays["00.A9"] = np.asfortranarray(arrays["00.A9"])
    room.ok(sinkproof.judge(room.model, arrays, "f32", **FAST).ok,
            "without positions or a point, in any order of memory")
    halves = sinkproof.run(room.model, TOKENS, policy="bf16")
    room.ok(halves["03.A11"].dtype == ml_dtypes.bfloat16
            and sinkproof.judge(room.model, dict(halves), "bf16", **FAST).ok,
            "bfloat16 arrays", halves["03.A11"].dtype)
    wide = {name: value if value.dtype.kind == "i" else value.astype(np.float64) for name, value in room.trace.items()}
    wide["00.M3"] = wide["00.M3"].astype(np.int64)
    room.ok(sinkproof.judge(room.model, wide, "f32", **FAST).ok, "float64 and int64 arrays")
    wide["02.A12"] = wide["02.A12"].astype(">f8")
    room.ok(sinkproof.judge(room.model, wide, "f32", **FAST).ok, "an array of the other byte order")
    nan = {**room.trace, "01.A12": room.trace["01.A12"].copy()}
    nan["01.A12"][3, 5] = np.nan
    found = sinkproof.judge(room.model, nan, "f32", **FAST)
    room.ok(found.first == "01.A12" and found["01.A12"].nans == 1 and found["01.A12"].worst_index == (3, 5),
            "a NaN is a bug at its point", found["01.A12"])


def check_refusals(room):
    """Each in a sentence that names what was found."""
    good = dict(room.trace)

    def judged(**changes):
        return lambda: sinkproof.judge(room.model, {**good, **changes}, "f32", **FAST)

    room.refused("a wrong dtype", "00.A9: expected an array of bfloat16", judged(**{"00.A9": good["00.A9"] + 0j}))
    room.refused("integers at a point", "00.A1: expected dtype BF16, F16, F32 or F64, found I32",
                 judged(**{"00.A1": good["00.A1"].astype(np.int32)}))
    room.refused("a wrong shape", "00.A11: expected shape [40, 10, 16], found [40, 160]",
                 judged(**{"00.A11": good["00.A11"].reshape(40, 160)}))
    room.refused("an unknown name", "unknown point '00.A99'", judged(**{"00.A99": good["00.A11"]}))
    room.refused("a layer that the model has not", "unknown point '09.A11'", judged(**{"09.A11": good["00.A11"]}))
    room.refused("no tokens", "expected an array tokens", lambda: sinkproof.judge(room.model, {"T0": good["T0"]}))
    room.refused("tokens that are no whole numbers", "tokens: expected whole numbers", judged(tokens=np.ones(40)))
    room.refused("tokens outside the vocabulary", "token", judged(tokens=np.full(40, 99999)))
    room.refused("positions with a gap", "positions: expected 40 that follow each other",
                 judged(positions=[*range(1, 40), 41]))
    room.refused("an unknown policy", "f31", lambda: sinkproof.judge(room.model, good, "f31"))
    room.refused("a rate that is none", "expected a rate between 0 and 1",
                 lambda: sinkproof.judge(room.model, good, rate=2.0))
    room.refused("no such file", "/nowhere/t.safetensors",
                 lambda: sinkproof.judge(room.model, "/nowhere/t.safetensors"))
    room.refused("no such model", "/nowhere", lambda: sinkproof.Model("/nowhere"))
    room.refused("no trace at all", "expected a Trace, a path or arrays by name, found int",
                 lambda: sinkproof.judge(room.model, 7))
    room.refused("no such number", "known are n_layers", lambda: room.model.number("heads"))
    room.refused("no such place to save", "/nowhere/t.safetensors: No such file",
                 lambda: room.trace.save("/nowhere/t.safetensors"))
    room.refused("an unknown engine", "known are ref, lanes and fast",
                 lambda: sinkproof.run(room.model, TOKENS, "slow"))
    room.refused("no tokens to run", "tokens: expected whole numbers [n]", lambda: sinkproof.run(room.model, []))


def check_another_model(room):
    """A trace whose metadata name another model: by its path, loaded, and as arrays that say so."""
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "another.safetensors")
    sinkproof.run("synthetic:tiny,seed=9", TOKENS[:6], policy="f32").save(path)
    said, note = "is a trace of another model: its metadata name the fingerprint ", "Another model: the trace's metadata name"
    loaded = sinkproof.Trace.load(path, "synthetic:tiny,seed=9")
    for what, trace in (("a file", path), ("a trace that was loaded", loaded)):
        room.refused(f"{what} of another model", said, lambda trace=trace: sinkproof.judge(room.model, trace, "f32", **FAST))
        room.refused(f"{what} of another model, asserted", said,
                     lambda trace=trace: sinkproof.testing.assert_honest(room.model, trace, "f32", **FAST))
        found = sinkproof.judge(room.model, trace, "f32", any_model=True, diagnosis=False, **FAST)
        notes = json.loads(found.to_json())[0]["notes"]
        room.ok(found.first == "T0" and found.report.startswith(note) and notes[0].startswith(note),
                f"{what} of another model, if any will do", found.report[:200], notes)
    room.refused("a file of another model, loaded", said, lambda: sinkproof.Trace.load(path, room.model))
    room.ok(sinkproof.Trace.load(path, room.model, any_model=True).metadata["model"] == loaded.metadata["model"],
            "and if any will do")
    shutil.rmtree(folder)
    room.refused("tokens of a batch", "found int64 [1, 40]: a trace holds one sequence",
                 lambda: sinkproof.judge(room.model, {"tokens": np.array([TOKENS])}))
    room.refused("a point of a batch", "found [1, 40, 96]: it has the dimension of a batch in front",
                 lambda: sinkproof.judge(room.model, {**room.trace, "T0": room.trace["T0"][None]}))


def check_output(room):
    """What is shown: HTML without anything of the trace's unescaped."""
    trace = sinkproof.Trace({**room.trace, "00.A1": room.trace["00.A1"] * 2}, {"engine": "<script>alert(1)</script>"})
    judgement = sinkproof.judge(room.model, trace, "f32", name="<b>name</b>", **FAST)
    shown = judgement._repr_html_()
    room.ok("<script" not in shown and "<b>name" not in shown and "&lt;script" in shown,
            "the table for notebooks is escaped", shown)
    marked = dataclasses.replace(judgement, points=(dataclasses.replace(judgement["00.A1"], worst_inputs="<i>"),))
    room.ok("&lt;i&gt;" in marked._repr_html_() and "<i>" not in marked._repr_html_(), "in its cells too")
    room.ok("<td>00.A1</td><td>bug</td>" in shown and "color" not in shown and "background" not in shown,
            "it has a row for the bug, and no colours of its own", shown)
    room.ok(set(sinkproof.engines()) == {"ref", "lanes", "fast"} and "openai-bf16" in sinkproof.policies()
            and sinkproof.points()[0] == "T0", "engines, policies and points are listed")
    calls = []
    sinkproof.judge(room.model, room.trace, "f32", progress=lambda what, share: calls.append((what, share)), **FAST)
    room.ok(calls and calls[-1] == ("f32", 1.0), "progress is told", calls[-3:])


# ------------------------------------------------------------------------------------------
# Running


def check_stages(room):
    honest, forgetful = room.book["attention"], room.book["forgetful"]
    trace = room.replaced(honest)
    judgement = sinkproof.judge(room.model, trace, POLICY, **FAST)
    room.ok(judgement.ok and "00.A9" not in trace and trace.metadata["engine"] == "sinkproof ref with A11 replaced",
            "a stage in Python is judged honest", judgement)
    judgement = sinkproof.judge(room.model, room.replaced(forgetful), POLICY, **FAST)
    wrong = {point.point for point in judgement.points if point.verdict == "bug"}
    room.ok(judgement.first == "00.A11" and wrong == {"A11"}, "without the sink it is convicted at A11 alone", wrong)
    for engine in ("ref", "lanes", "fast"):
        trace = room.replaced(honest, engine=engine, chunk=7, replace={"01.A11": honest})
        judgement = sinkproof.judge(room.model, trace, POLICY, **FAST)
        room.ok(judgement.ok and not (engine == "ref" and "00.A9" not in trace),
                f"one layer's stage in engine {engine}, in chunks of 7", judgement.verdict, list(trace)[:8])
    seen = []

    def values(A9, A2_v, call):
        seen.append((A9.shape, A2_v.shape, call.n, call.first, call.keys, list(call.tokens)))
        v = A2_v.repeat(A9.shape[0] // A2_v.shape[1], axis=1)
        return np.einsum("hij,jhd->ihd", A9[:, :, :-1], v).astype(np.float32)

    judgement = sinkproof.judge(room.model, room.replaced(values, chunk=16, policy="f32"), "f32", **FAST)
    room.ok(judgement.ok and seen[4] == ((10, 16, 33), (32, 2, 16), 16, 16, 32, TOKENS[16:32]),
            "the inputs have the shapes of their pass", judgement.verdict, seen[4])
    own = room.replaced(lambda A4_q, A4_k, A2_v, call: call.values, policy="f32")
    room.ok(all(np.array_equal(own[name], room.trace[name]) for name in own),
            "a stage that gives back the engine's own changes no bit")


def check_exceptions(room):
    """What a function of the caller's raises comes out, the same object."""
    for exception in (ValueError("mine"), KeyboardInterrupt()):
        def stage(A4_q, A4_k, A2_v, exception=exception):
            raise exception
        caught = None
        try:
            room.replaced(stage)
        except BaseException as error:  # pylint: disable=broad-exception-caught
            caught = error
        room.ok(caught is exception, f"{type(exception).__name__} of a stage is raised after the run", repr(caught))

    def stop(what, share):
        raise LookupError("enough")
    said = raised(LookupError, lambda: sinkproof.judge(room.model, room.trace, "f32", progress=stop, **FAST))
    room.ok(said is not None, "so is one of progress", said)
    room.refused("a stage's wrong shape", "00.A11: expected numbers [40, 10, 16] of the stage, found float64 [40]",
                 lambda: room.replaced(lambda A4_q, A4_k, A2_v: np.zeros(40)))
    room.refused("a stage's text", "00.A11: expected numbers", lambda: room.replaced(lambda A4_q, A4_k, A2_v: "abc"))
    room.refused("numbers that the policy does not round to", "which is no f32 number",
                 lambda: room.replaced(lambda A4_q, A4_k, A2_v: np.full((40, 10, 16), 0.1)))
    room.refused("parameters that name no points", "found <lambda>(*points)",
                 lambda: room.replaced(lambda *points: 0))
    room.refused("parameters that are no points", "found 'query'", lambda: room.replaced(lambda query: 0))
    room.refused("inputs that do not suffice", "A11 cannot be computed from these points",
                 lambda: room.replaced(lambda A4_q: 0))


def resident():
    """Bytes of this process in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def check_handles(room):
    """Everything goes back to the library, whatever is closed first."""
    with sinkproof.Model(TINY) as model:
        sinkproof.judge(model, sinkproof.run(model, TOKENS[:4], policy="f32"), "f32", **FAST)
    room.refused("a model that is closed", "the model is closed", lambda: model.spec)
    raised(ValueError, lambda: room.replaced(lambda A4_q, A4_k, A2_v: int("x")))
    gc.collect()
    alive = [thing for thing in gc.get_objects() if isinstance(thing, _library.Handle)]
    room.ok(alive == [room.model.handle], "no handle is left but the open model's", len(alive))
    model = sinkproof.Model(TINY)

    def closing(A4_q, A4_k, A2_v, call):
        model.close()
        return call.values

    sinkproof.run(model, TOKENS[:4], policy="f32", replace={"A11": closing})
    room.ok(raised(sinkproof.Error, lambda: model.spec),
            "a model that is closed in the midst of a run lives until its end")
    sinkproof.run(TINY, TOKENS, "fast")  # what the library's own libraries keep
    before = resident()
    bytes_of_trace = sum(array.nbytes for array in room.trace.values())
    for _ in range(20):
        sinkproof.run(TINY, TOKENS, "fast")
    grown = resident() - before
    room.ok(grown < 10 * bytes_of_trace, f"20 runs leave {grown >> 10} KiB, where a trace has {bytes_of_trace >> 10}")


# ------------------------------------------------------------------------------------------
# Asserting


MESSAGE = re.compile(r"""Weighted values \(00\.A11\) are not honest!

Mismatched elements: \d+ / 6400 \(\d+\.\d%\)
Greatest distance outside of the honest set: \S+ ulp at index \(\d+, \d+, \d+\) \(\S+, set \[\S+, \S+\]\)
Policy: f32,exp=4ulp
Diagnosis: explained: the sink is left out \[sink-dropped\]; this trace does not tell it from \S.*""")
NEAREST = re.compile(r"Diagnosis: u[a-z]+: .*; nearest, (\S+ bounds|infinitely far) away: (.+)")


def check_assertion(room):
    from sinkproof.testing import assert_honest
    forgetful = room.replaced(room.book["forgetful"])

    def asserting(trace, **options):
        return lambda: assert_honest(room.model, trace, **{"policy": POLICY, **FAST, **options})

    room.ok(asserting(room.trace)().ok, "assert_honest returns the judgement of an honest trace")
    said = raised(AssertionError, asserting(forgetful)) or ""
    room.ok(MESSAGE.fullmatch(said), "it says of a bug what torch.testing would, and ends with the cause", *said.splitlines())
    check_causes(room, forgetful)
    room.ok(asserting(forgetful, points=["A12", "03.A13"])().first == "00.A11"
            and raised(AssertionError, asserting(forgetful, points="02.A11")),
            "points restrict it")
    room.refused("a point that the trace has not", "the trace has no point A9", asserting(forgetful, points=["A9"]))
    nan = {**room.trace, "F1": np.full_like(room.trace["F1"], np.nan)}
    said = raised(AssertionError, asserting(nan)) or ""
    room.ok("Final RMSNorm (F1) is not honest!" in said and "Not a number: 3840 / 3840 (100.0%)" in said,
            "it counts what is no number", said)
    ends = {name: room.trace[name] for name in ("tokens", "F2")}
    said = raised(AssertionError, asserting(ends)) or ""
    room.ok(said.startswith("The trace cannot decide 1 of 1 points:") and "Logits (F2) are undecided" in said
            and asserting(ends, allow_undecided=True)().verdict == "undecided", "undecided is a sentence of its own",
            said)
    drifting = {**room.trace, "03.A12": (room.trace["03.A12"] * np.float32(1 + 4e-7)).astype(np.float32)}
    judgement = sinkproof.judge(room.model, drifting, POLICY, **FAST)
    alone = {name: drifting[name] for name in ("tokens", "03.A11", "03.A12")}
    codes = [sinkproof.judge(room.model, alone, POLICY, strict=strict, **FAST).exit_code for strict in (False, True)]
    room.ok(codes == [4, 1], "alone it exits 4, and 1 when it is strict", codes)
    said = raised(AssertionError, asserting(drifting, points="A12")) or ""
    if room.ok(judgement["03.A12"].verdict == "suspicious", "a factor of 4e-7 on A12 is suspicious",
               judgement["03.A12"]):
        room.ok(said.startswith("Output projection with bias (03.A12) is suspicious")
                and asserting(drifting, points="A12", allow_suspicious=True)().first == "03.A13",
                "suspicious is a sentence of its own", said)


def check_causes(room, forgetful):
    """Whatever is shown of a bug has its diagnosis: the named cause, or the nearest."""
    from sinkproof.testing import assert_honest
    known = sinkproof.judge(room.model, forgetful, POLICY, **FAST)
    cause = known.diagnosis_of("03.A11")
    others = " or ".join(" and ".join(also) for also in cause.indistinguishable)
    room.ok(others and str(cause) == "explained: the sink is left out [sink-dropped]; this trace does not tell it from " + others
            and known.diagnosis_of("00.A12") is None, "a diagnosis in words has every cause that it names", cause)
    shown = {"repr()": repr(known), "the table for notebooks": known._repr_html_().split("<details>")[0], "str()": str(known)}
    room.ok(all("the sink is left out [sink-dropped]" in text for text in shown.values()) and len(shown["repr()"]) < 500,
            "so have what a failed assert prints, the table and the report", shown["repr()"])
    for place, words in (((37, 39), "at positions 37 to 39"), ((7, 7), "at position 7")):
        said = str(dataclasses.replace(cause, positions=place))
        room.ok(said.startswith(f"explained {words}: "), f"and where it acts: {words}", said)
    wrong = {name: room.trace[name] for name in ("tokens", "00.M11", "00.A13")}
    for times, off in ((1, 1e-2), (2, 1e-4)):
        noise = np.random.default_rng(5).uniform(1 - off, 1 + off, wrong["00.A13"].shape)
        wrong["00.M12"] = ((wrong["00.A13"] + times * wrong["00.M11"]) * noise).astype("f4")
        cause = (judgement := sinkproof.judge(room.model, wrong, "f32", **FAST)).diagnosis_of("00.M12")
        room.ok(bool(cause.next) == (times == 2), "what is as far away as the definition is not the nearest", cause)
    said = raised(AssertionError, lambda: assert_honest(room.model, wrong, "f32", **FAST)) or ""
    room.ok((found := NEAREST.fullmatch(said.splitlines()[-1])) and found[2] == " and ".join(cause.next) and str(cause) in repr(judgement),
            "of what nothing explains the message ends with the nearest", *said.splitlines())
    far = str(dataclasses.replace(cause, next_bounds=float("inf"), status="undecided", searched=3, suppositions=9))
    room.ok(re.match("undecided: searched 3 of 9 suppositions, none explains it; .*nearest, infinitely far away: ", far), "infinitely far is a word", far)
    apart = str(dataclasses.replace(cause, status="not looked into", next=(), pattern=""))
    room.ok(apart == "not looked into", "and what was not looked into says no more", apart)
    said = raised(AssertionError, lambda: assert_honest(room.model, wrong, "f32", diagnosis=False, **FAST)) or ""
    room.ok(said and "Diagnosis" not in said, "without a diagnosis it claims none", *said.splitlines())


# ------------------------------------------------------------------------------------------
# The book's programs


TWICE = """

def test_again(sinkproof_honest):
    opened = sinkproof_honest.models["synthetic:tiny"]
    test_attention(sinkproof_honest)
    assert sinkproof_honest.models["synthetic:tiny"] is opened
"""


def execute(folder, *words, **env):
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, **env})


def check_book(room, folder):
    for name, file in (("kernel", "kernel.py"), ("test", "test_kernel.py")):
        (folder / file).write_text(room.shown[name][0], encoding="utf-8")
    done = execute(folder, "kernel.py")
    room.ok(done.returncode == 0 and done.stdout == room.shown["kernel"][1], "the book's kernel prints what is shown",
            done.stdout, done.stderr)
    done = execute(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kernel.py")
    room.ok(done.returncode == 1 and room.shown["test"][1] in done.stdout and "1 failed" in done.stdout
            and "Diagnosis: explained: the sink is left out [sink-dropped]" in done.stdout,
            "pytest has the fixture, and its failure is the sentence", *done.stdout.splitlines()[-20:], done.stderr)
    (folder / "test_kernel.py").write_text(room.shown["test"][0].replace("forgetful", "attention")
                                           .replace('"f32"', '"f32,exp=4ulp"') + TWICE, encoding="utf-8")
    done = execute(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kernel.py")
    room.ok(done.returncode == 0 and "2 passed" in done.stdout, "and the honest kernel passes, twice with one model",
            *done.stdout.splitlines()[-20:])


def check_torch(room, folder):
    """A torch module watched: beside the environment's own packages, torch from build/venv."""
    found = sorted((ROOT / "build" / "venv" / "lib").glob("python*/site-packages/transformers"))
    if not found:
        room.tap.skip("a torch module is traced", "no torch in build/venv: make interop-hf makes it")
        return
    path = os.pathsep.join([str(found[0].parent), str(ROOT / "tests" / "audit")])
    done = execute(folder, "-c", "import interop_hf_models as m; m.make('checkpoint', 'tiny')", PYTHONPATH=path)
    room.ok(done.returncode == 0, "transformers saves a checkpoint", *done.stderr.splitlines()[-5:])
    done = execute(folder, "-c", room.shown["transformers"][0], PYTHONPATH=path)
    room.ok(done.returncode == 0 and done.stdout == room.shown["transformers"][1],
            "the book's transformers example prints what is shown",
            done.stdout, *done.stderr.splitlines()[-5:])
    shutil.copy(ROOT / "audit" / "examples" / "fused_engine.map", folder)
    done = execute(folder, "-c", room.shown["desk"][0],
                   PYTHONPATH=os.pathsep.join([path, str(ROOT / "audit" / "examples")]))
    room.ok(done.returncode == 0 and done.stdout == room.shown["desk"][1], "the book's desk prints what is shown",
            done.stdout, *done.stderr.splitlines()[-5:])
    for file in () if os.environ.get("FEW") else ("python_torch.py", "python_map.py", "python_drill.py", "python_drill_backward.py"):
        done = execute(folder, str(ROOT / "tests" / "audit" / file), PYTHONPATH=path)
        lines = done.stdout.splitlines()
        for line in [line for line in lines if re.match("(not )?ok ", line)]:
            room.ok(line.startswith("ok "), f"torch: {line.split(' - ', 1)[-1]}", *lines[-8:])
        room.ok(done.returncode == 0 and lines, f"{file} ends", *done.stderr.splitlines()[-5:])


def check_adapters(room, folder):
    """Adapters of engines that are not here, on stand-ins for them; and kernels in numpy, drilled."""
    for file, what in (("python_adapters.py", "adapters"), ("python_drill.py", "drill"), ("python_drill_backward.py", "drill back"),
                       ("python_lse.py", "lse"), ("python_devices.py", "devices")):
        done = execute(folder, str(ROOT / "tests" / "audit" / file))
        for line in [line for line in done.stdout.splitlines() if re.match("(not )?ok ", line)]:
            room.ok(line.startswith("ok "), f"{what}: {line.split(' - ', 1)[-1]}", *done.stdout.splitlines()[-8:])
        room.ok(done.returncode == 0 and done.stdout, f"{file} ends", *done.stderr.splitlines()[-5:])


def main(count):
    tap = Tap()
    tap.count, room = count, Room(tap)
    for check in (check_vectors, check_arrays, check_later, check_packed, check_prefix, check_caches, check_calls, check_batches, check_lse, check_gradients,
                  check_refusals, check_another_model, check_truth, check_output, check_stages, check_exceptions, check_handles, check_assertion):
        check(room)
    with tempfile.TemporaryDirectory() as folder:
        check_book(room, pathlib.Path(folder))
        check_adapters(room, pathlib.Path(folder))
        check_torch(room, pathlib.Path(folder))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
