# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof judge --plugin`: planted mistakes convicted and led back to a small call, other honest
ways acquitted, what breaks told in a sentence, fast/ by the same door, and an engine out of process.
"""
import array
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError:
    numpy = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
import checkpoints  # noqa: E402
from tap import Tap  # noqa: E402

SINKPROOF = os.environ.get("SINKPROOF", "build/release/sinkproof")
CC = shlex.split(os.environ.get("CC") or "gcc")
MODEL = "synthetic:tiny,layers=1"  # its sizes: a tenth of the time that sizes of every kind take
tap = Tap()

# Mistake: the stage, the point that it shows at, and what the smallest call must be like.
MISTAKES = {
    "sink-dropped": ("attention", "A11", r":n=1,.*heads=1,kv=1"),
    "sink-value": ("attention", "A11", r":n=1,.*heads=1,kv=1"),
    "sink-of-next": ("attention", "A11", r":n=1,.*heads=[23],"),
    "sink-per-part": ("attention", "A11", r":n=32,"),
    "nan-without-sink": ("attention", "A11", r":n=1,.*sinks=none"),
    "no-maximum": ("attention", "A11", r"inputs=huge"),
    "tile-edge": ("attention", "A11", r":n=32,"),
    "window-wide": ("attention", "A11", r":n=2,chunk=0,window=1,"),
    "window-always": ("attention", "A11", r"window="),
    "window-never": ("attention", "A11", r":n=2,chunk=0,window=1,"),
    "group-modulus": ("attention", "A11", r":n=1,.*heads=4,kv=2"),
    "future": ("attention", "A11", r":n=2,"),
    "first-forgotten": ("attention", "A11", r":n=2,chunk=1,"),
    "scale": ("attention", "A11", r":n=1,"),
    "swapped": ("swiglu", "M8", r":n=1,"),
    "clamp-one-sided": ("swiglu", "M8", r":n=1,"),
    "clamp-gate": ("swiglu", "M8", r":n=1,"),
    "alpha": ("swiglu", "M8", r":n=1,"),
    "plus-one": ("swiglu", "M8", r":n=1,"),
    "eps": ("rmsnorm", "A1", r":n=1,hidden=2"),
    "eps-outside": ("rmsnorm", "A1", r":n=1,hidden=2"),
    "softmax-first": ("router", "M4", r":n=1,"),
    "bias": ("router", "M2", r":n=1,hidden=2,experts=1,"),
    "narrow-sum": ("unembed", "F2", r":n=1,hidden=2"),
    "last-column": ("unembed", "F2", r":n=1,hidden=17,vocab=1"),
    "inexact": ("unembed", "F2", r"inputs=exact"),
    "cache-unread": ("attention", "A11", r":n=2,chunk=1,"),
    "piece-alone": ("attention", "A11", r":n=2,"),
    "piece-anew": ("attention", "A11", r":n=2,"),
    "sink-log2e": ("attention", "A11", r":n=1,"),
    "window-narrow": ("attention", "A11", r":n=2,chunk=0,window=2,"),
    "lse,lse-next-head": ("attention", "A9.lse", r":n=1,.*heads=[23],"),
}
# What asks for fewer calls than those of every kind of size, and still for one that shows the mistake.
FEW = ["--limit=40"]
SOONER = {"sink-per-part": [MODEL], "tile-edge": [MODEL],
          **dict.fromkeys(("window-wide", "window-narrow", "window-never", "nan-without-sink", "first-forgotten", "cache-unread"), FEW)}
# What the report names as the cause: one mistake, or several that make the same outputs. The others are in no table.
CAUSES = {
    "sink-dropped": ["sink-dropped", "sink-in-max-only", "sink-renormalised"], "sink-value": ["sink-has-value"],
    "sink-of-next": ["sink-next-head"], "window-wide": ["window-wide"], "window-never": ["window-off"],
    "group-modulus": ["heads-by-modulus"], "future": ["mask-late"], "first-forgotten": ["positions-anew"],
    "scale": ["score-scaled-twice"], "swapped": ["pairs-swapped"], "clamp-one-sided": ["up-above"],
    "clamp-gate": ["gate-both"], "alpha": ["alpha-1.7"], "plus-one": ["up-plus-missing"], "eps": ["eps-1e-6"],
    "eps-outside": ["eps-outside"], "softmax-first": ["shares-softmax-before"], "bias": ["bias-dropped-router"],
    "cache-unread": ["cache-unread"], "piece-alone": ["cache-unread-piece"], "piece-anew": ["positions-anew-piece"], "sink-per-part": ["sink-counted=2@position=31"], "window-always": ["window-on=16", "last-key-left-out=16", "from-key=1@position=16",
                                                               "slots-written-anew-left-out@passes=16+1-from-16"],
    "tile-edge": ["last-key-left-out=0@position=31", "key-left-out=31@position=31", "part-lost=last-of-all-32@position=31", "part-kept=first-31@position=31"],
    "sink-log2e": ["sink-log2e"], "window-narrow": ["window-narrow"],
}
HONEST = {"": None, "lse": "attention", "reversed,base-2,sink-last": "attention", "tanh": "swiglu", "last-of-ties,fma": "router",
          "two-sums": "unembed", "older": "rmsnorm"}
# What breaks, and the sentence.
BROKEN = {"crash": "it crashed (Segmentation fault)", "exit": "it ended the process (exit 7)",
          "refuse": "it failed with 5", "input": "it wrote into its input A4.k",
          "beyond": "it wrote beyond the end of A11", "tail": "of A11 unwritten",
          "lse,lse-unwritten": "of A9.lse unwritten", "hang": "no answer in 0.5 seconds"}
# What cannot be loaded, and the sentence.
REFUSED = {"too-small": "expected sinkproof_plugin with its size", "unknown-stage": "stage 'attenti0n' is not one of",
           "cannot-run": "says that it cannot run here", "other-policy": "f33",
           "long-policy": "its policy has more characters than are read",
           "lse-word": "A9.lse: expected with-sink, without-sink or either, found 'natural'"}


def judge(*words, planted=""):
    done = subprocess.run([SINKPROOF, "judge", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env={**os.environ, "PLANTED": planted, "OMP_WAIT_POLICY": "passive"}, check=False)
    return done.returncode, done.stdout, done.stderr


def stage_of(out, name):
    """calls, failing, suspicious, undecided, not served, verdict of a stage's line."""
    line = re.search(rf"^{name} +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)  (.*)$", out, re.M)
    return (*map(int, line.groups()[:5]), line[6]) if line else (0, 0, 0, 0, 0, "absent")


def cause_of(out):
    """The mistakes that the report names, and its sentence; None: it says nothing of a cause."""
    line = re.search(r"^    Cause: (.*)$", out, re.M)
    return (re.findall(r"\[([^]]+)\]", line[1]), line[1]) if line else None


def caused(name, out):
    names, sentence = cause_of(out) or (None, "no cause")
    good = names == CAUSES.get(name, []) and sentence.startswith("undecided: ") == (len(names) > 1)
    good = good and (names or re.fullmatch(r"no known mistake explains it \(\d+ failing calls? asked\)", sentence))
    tap.report(good, f"plug-in {name}: {sentence}", out)


def convicted(plugin):
    for name, (stage, point, small) in sorted(MISTAKES.items(), key=lambda m: m[1][0]):
        status, out, told = judge("--plugin", plugin, "--stages", stage, "--first", *SOONER.get(name, []), planted=name)
        case = re.search(r"the smallest call that fails: (\S+)", out)
        good = status == 1 and stage_of(out, stage)[1] > 0 and f"\n{stage}: {point}[" in out
        good = good and case is not None and re.search(small, case[1]) is not None
        tap.report(good, f"plug-in {name}: convicted at {point}, {case[1] if case else 'no call'}", [out, told])
        caused(name, out)
    again = re.search(r"again: sinkproof (judge .*)$", out, re.M)
    words = shlex.split(again[1])[1:] if again else []
    status, out, told = judge(*words, planted=name)
    tap.report(status == 1 and stage_of(out, "unembed")[:2] == (1, 1), "plug-in: the command that is printed shows it again",
               [words, out, told])
    status, out, told = judge(*words)
    tap.report(status == 0 and stage_of(out, "unembed")[:2] == (1, 0), "plug-in: and holds without the mistake", [out, told])


def traits(plugin):
    """All calls, and what the failing ones have that the others have not."""
    status, out, told = judge("--plugin", plugin, "--stages", "attention", *FEW, "--no-diagnosis", planted="first-forgotten")
    tap.report(status == 1 and re.search(r"all \d+ failing calls come in passes over a cache(; so do \d+ of|, and no)", out),
               "plug-in: what the failing calls have in common", [out, told])


def acquitted(plugin):
    """As it is at sizes of every kind, 60 calls of each stage; of other ways of attention and SwiGLU, which take seconds, 40."""
    for name, stage in HONEST.items():
        words, least = (["--stages", stage], 100) if stage else (["--limit=60"], 50)
        if stage in ("attention", "swiglu"):
            words, least = [*words, *FEW], 39
        status, out, told = judge("--plugin", plugin, *words, planted=name)
        found = [stage_of(out, s) for s in ([stage] if stage else ["attention", "swiglu", "rmsnorm", "router", "unembed"])]
        good = status == 0 and cause_of(out) is None and all(f[0] > least and f[1:3] == (0, 0) and f[5] == "within" for f in found)
        good = good and ("\nA9.lse fits with the sink, and not without it (" in out) == (name == "lse")
        tap.report(good, f"plug-in {name or 'as it is'}: acquitted, {sum(f[0] for f in found)} calls", [out, told])


def broken(plugin):
    for name, sentence in BROKEN.items():
        seconds = ["--seconds", "0.5"] if name == "hang" else []
        status, out, told = judge("--plugin", plugin, "--stages", "attention", "--first", *seconds, planted=name)
        tap.report(status == 1 and f"\nattention: {sentence}" in out or status == 1 and sentence in out,
                   f"plug-in {name}: {sentence}", [status, out, told])
    for name, sentence in REFUSED.items():
        status, out, told = judge("--plugin", plugin, planted=name)
        tap.report(status == 3 and sentence in told and not out, f"plug-in {name}: refused, {sentence}", [status, out, told])
    for model, name in (("synthetic:tiny-gpt2", "GPT-2"), ("synthetic:tiny-llama", "Llama")):
        status, out, told = judge("--plugin", plugin, model)
        tap.report(status == 3 and f"are GPT-OSS's, found {name}" in told and not out, f"plug-in: a MODEL of {name} is refused",
                   [status, out, told])
    status, out, told = judge("--plugin", plugin, "--stages", "attention", planted="serves-nothing")
    tap.report(status == 4 and stage_of(out, "attention")[5] == "not served", "plug-in that serves nothing: exit 4", [out, told])
    with tempfile.TemporaryDirectory() as folder:
        empty = pathlib.Path(folder) / "empty.so"
        subprocess.run([*CC, "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", str(empty)], check=True)
        crash = pathlib.Path(folder) / "crash.so"
        source = "__attribute__((constructor)) static void f(void) { __builtin_trap(); }"
        subprocess.run([*CC, "-shared", "-fPIC", "-x", "c", "-", "-o", str(crash)], input=source, text=True, check=True)
        for path, sentence in ((empty, "sinkproof_plugin_get"), (crash, "when it was loaded: it crashed"),
                               (pathlib.Path(folder) / "none.so", "none.so"), ("builtin:slow", "builtin:fast")):
            status, out, told = judge("--plugin", path)
            tap.report(status == 3 and sentence in told and not out, f"plug-in that is none: {sentence}", [status, out, told])
    for words, sentence in ((["--plugin", plugin, "--stages", "attenti0n"], "no stage 'attenti0n'"),
                            (["--plugin", plugin, "--case", "attention:m=3"], "'m=3' says nothing"),
                            (["--plugin", plugin, "--case", "rmsnorm:n=3,inputs=limits"], "'inputs=limits' says nothing"),
                            (["--plugin", plugin, "a", "b"], "no TRACE"), (["--case", "rmsnorm:n=3", "a", "b"], "--plugin")):
        status, out, told = judge(*words)
        tap.report(status == 2 and sentence in told, f"plug-in, words that mean nothing: {sentence}", [status, out, told])
    status, out, told = judge("--plugin", plugin, "--stages", "rope")
    tap.report(status == 3 and "has no stage rope" in told, "plug-in without a stage that is asked for", [status, told])


def example(work):
    """The program in the book, as it stands and with its mistake, and what the book says that is printed."""
    shown = (ROOT / "doc/14-judging.md").read_text(encoding="utf-8").split("<!-- prints plug-in -->\n```text\n")[1]
    command = [*CC, "-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC", f"-I{ROOT}/audit",
               str(ROOT / "audit/examples/my_plugin.c"), "-o", str(work / "my_plugin.so"), "-lm"]
    subprocess.run(command, check=True)
    status, out, told = judge("--plugin", work / "my_plugin.so", "--limit=60")
    tap.report(status == 0 and stage_of(out, "attention")[5] == "within", "plug-in of the book: acquitted", [out, told])
    subprocess.run([*command, "-DMISTAKE"], check=True)
    status, out, told = judge("--plugin", work / "my_plugin.so")
    out = out.replace(str(work / "my_plugin.so"), "my_plugin.so")
    tap.report(status == 1 and out == shown.split("```")[0],
               "plug-in of the book with its mistake: convicted, in the words and numbers of the book", [out, told])


def as_json(plugin):
    status, out, told = judge("--plugin", plugin, "--stages", "swiglu,rmsnorm", "--first", "--json", "-", planted="alpha")
    results = {r["id"]: r for r in json.loads(out)["results"]} if out.startswith("{") else {}
    swiglu, norm = results.get("swiglu", {}), results.get("rmsnorm", {})
    good = status == 1 and swiglu.get("verdict") == "bug" and swiglu["failing"] > 0 and norm.get("ok") is True
    tap.report(good and swiglu["case"] in swiglu["command"] and swiglu["why"].startswith("M8["),
               "plug-in: the same as JSON", [status, out[:2000], told])
    cause = swiglu.get("cause") or {}
    named = [(m["id"], m["explained"], m["against"], m["piece"]) for m in cause.get("mistakes", [])]
    tap.report(cause.get("status") == "named" and cause["asked"] > 1 and "cause" not in norm and
               named == [("alpha-1.7", cause["asked"], 0, None)], "plug-in: the cause as JSON", [cause])
    status, out, told = judge("--plugin", plugin, "--stages", "swiglu", "--first", "--no-diagnosis", planted="alpha")
    tap.report(status == 1 and cause_of(out) is None, "plug-in: no cause with --no-diagnosis", [out, told])


def fast():
    """All stages at a model's sizes, some at sizes of every kind."""
    for words, stages, least in (([MODEL, "--seed", "5", "--limit=30"], 10, 10),
                                 (["--stages", "attention,rmsnorm,mixture", "--limit=60"], 3, 50)):
        status, out, told = judge("--plugin", "builtin:fast", *words)
        lines = re.findall(r"^(\w+) +(\d+) +(\d+) +(\d+) +\d+ +(\d+)  (\w+)$", out, re.M)
        good = status == 0 and len(lines) == stages
        good = good and all(int(x[1]) > least and x[2:5] == ("0", "0", "0") for x in lines)
        calls = sum(int(x[1]) for x in lines)
        tap.report(good, f"plug-in builtin:fast, {words[0]}: {calls} calls of {len(lines)} stages within", [out, told])


# ---- out of process ------------------------------------------------------------------------------

def plain_engine(case, tensors, mistake):
    """The stage softmax_sink of short calls, where there is no numpy."""
    n, window, heads = case["n"], case["window"], case["heads"]
    if case["stage"] != "softmax_sink" or n > 33:
        return None
    scores, sinks, weights = array.array("f", tensors["A6"][2]), array.array("f", tensors["sinks"][2]), array.array("f")
    for row in range(heads * n):
        head, i = divmod(row, n)
        z = [scores[row * n + j] if j <= i and (window == 0 or j + window > i) else -math.inf for j in range(n)]
        top = max([*z, sinks[head]])
        e = [math.exp(x - top) for x in (*z, sinks[head])]
        weights.extend(x / (sum(e[:-1] if mistake else e) or math.nan) for x in e)
    return {"A9": ("F32", [heads, n, n + 1], weights.tobytes())}


def numpy_engine(case, tensors, mistake):
    values = {name: numpy.frombuffer(data, "<i4" if dtype == "I32" else "<f4").reshape(shape)
              for name, (dtype, shape, data) in tensors.items()}
    with numpy.errstate(all="ignore"):
        made = {name: x.astype("<f4") for name, x in in_numpy(case, values, mistake).items()}
    return {name: ("F32", list(x.shape), x.tobytes()) for name, x in made.items()}


def in_numpy(case, values, mistake):
    """The stages softmax_sink, scores, values and mixture, in float32."""
    n, window, heads = case["n"], case["window"], case["heads"]
    i, j = numpy.arange(n)[:, None], numpy.arange(n)[None, :]
    seen = (j <= i) & ((window == 0) | (j + window > i))
    stage, group = case["stage"], heads // case["kv_heads"]
    if stage == "scores":
        k = numpy.repeat(values["A4.k"], group, axis=1)
        return {"A6": numpy.einsum("ihd,jhd->hij", values["A4.q"], k) / numpy.sqrt(numpy.float32(case["head_dim"]))}
    if stage == "softmax_sink":
        sinks = numpy.broadcast_to(values["sinks"][:, None, None], (heads, n, 1))
        z = numpy.concatenate([numpy.where(seen, values["A6"], -numpy.inf), sinks], axis=2)
        weights = numpy.exp(z - z.max(axis=2, keepdims=True))
        total = weights[:, :, :-1].sum(axis=2, keepdims=True) if mistake else weights.sum(axis=2, keepdims=True)
        return {"A9": weights / total}
    if stage == "values":
        v = numpy.repeat(values["A2.v"], group, axis=1)
        return {"A11": numpy.einsum("hij,jhd->ihd", values["A9"][:, :, :-1], v)}
    return {"M11": (values["M10"] * values["M4"][:, :, None]).sum(axis=1, dtype=numpy.float32)}


def out_of_process(engine, stages, language, mistake):
    """The mistake at sizes of every kind, an honest engine at a model's."""
    model = ["--limit=60"] if mistake else [MODEL, "--limit=30"]
    with tempfile.TemporaryDirectory() as folder:
        where = pathlib.Path(folder) / "drills"
        status, out, told = judge("--emit", where, "--stages", stages, *model)
        manifest = json.loads((where / "manifest.json").read_text())
        tap.report(status == 0 and len(manifest["cases"]) >= 30 and f"{len(manifest['cases'])} calls" in out,
                   f"emit: {len(manifest['cases'])} calls of {stages}", [out, told])
        status, out, told = judge("--emit", where, "--stages", stages, *model)
        tap.report(status == 3 and "without a manifest" in told, "emit: not twice into one directory", [status, told])
        status, out, told = judge("--collect", where)
        tap.report(status == 3 and "found none" in told, "collect: no outputs at all", [status, told])
        for case in manifest["cases"]:
            made = engine(case, checkpoints.read(where / case["inputs"])[0], mistake)
            if made is not None and {name: x[1] for name, x in made.items()} != case["expected"]:
                tap.report(False, f"emit: {case['case']} expects {case['expected']}")
            if made is not None:
                (where / case["outputs"]).write_bytes(checkpoints.safetensors(made))
        status, out, told = judge("--collect", where)
        found = {stage: stage_of(out, stage) for stage in stages.split(",")}
        bad = "softmax_sink" if mistake else None
        good = status == (1 if mistake else 0)
        good = good and all((f[1] > 0) == (stage == bad) and f[0] > 15 for stage, f in found.items())
        what = f"{language} that leaves the sink out of the sum is convicted" if mistake else f"an honest engine in {language}"
        tap.report(good, f"collect: {what}, {sum(f[0] for f in found.values())} calls", [out, told])
        some = manifest["cases"][::-7]
        (where / "manifest.json").write_text(json.dumps({**manifest, "cases": some}))
        again, out, told = judge("--collect", where)
        few = {stage: stage_of(out, stage) for stage in stages.split(",")}
        tap.report(again == status and sum(f[0] + f[4] for f in few.values()) == len(some) and
                   all((f[1] > 0) == (stage == bad) for stage, f in few.items()),
                   f"collect: {len(some)} of the calls, in another order, are judged by the names of their files", [out, told])
        if mistake:
            return
        for name in ("../00000.out.safetensors", "0.out.safetensors", "000001.out.safetensors", ""):
            (where / "manifest.json").write_text(json.dumps({**manifest, "cases": [{**some[0], "outputs": name}]}))
            status, out, told = judge("--collect", where)
            tap.report(status == 3 and f"found '{name}'" in told, f"collect: no file is called '{name}'", [status, told])
        (where / "manifest.json").write_text(json.dumps(manifest))
        wrong, point = where / manifest["cases"][0]["outputs"], next(iter(manifest["cases"][0]["expected"]))
        wrong.write_bytes(checkpoints.safetensors({point: ("F32", [1], struct.pack("<f", 0))}))
        status, out, told = judge("--collect", where)
        tap.report(status == 3 and wrong.name in told and f"{point} has not the shape" in told, "collect: another shape",
                   [status, told])
        wrong.write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
        status, out, told = judge("--collect", where)
        tap.report(status == 3 and wrong.name in told and f"expected a tensor {point}" in told,
                   "collect: a tensor that is not there", [status, told])
        (where / "manifest.json").write_text(json.dumps({**manifest, "policy": "f32" + ",A8=f32" * 400}))
        status, out, told = judge("--collect", where)
        tap.report(status == 3 and "expected at most 2047 characters, found 2803" in told,
                   "collect: a policy that is too long is not cut", [status, told])


def attention_in_passes(case, values, forgets):
    """The stage attention in float32, chunk after chunk over a growing cache, which it may forget."""
    n, group, window = case["n"], case["heads"] // case["kv_heads"], case["window"] or case["n"]
    k, v = (numpy.repeat(values[name], group, axis=1) for name in ("A4.k", "A2.v"))
    i, j, out = numpy.arange(n)[:, None], numpy.arange(n)[None, :], numpy.zeros(values["A4.q"].shape, numpy.float32)
    begin = i // (case["chunk"] or n) * (case["chunk"] or n) if forgets else 0
    seen = (j <= i) & (j + window > i) & (j >= begin)
    scores = numpy.einsum("ihd,jhd->hij", values["A4.q"], k) / numpy.sqrt(numpy.float32(case["head_dim"]))
    sinks = numpy.broadcast_to(values["sinks"][:, None, None], (*scores.shape[:2], 1))
    z = numpy.concatenate([numpy.where(seen, scores, -numpy.inf), sinks], axis=2)
    weights = numpy.exp(z - z.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    out[...] = numpy.einsum("hij,jhd->ihd", weights[:, :, :-1], v)
    return {"A11": ("F32", list(out.shape), out.astype("<f4").tobytes())}


def emitted_passes(forgets):
    """Calls in passes through files: the manifest says how many rows come at a time."""
    with tempfile.TemporaryDirectory() as folder:
        where = pathlib.Path(folder) / "drills"
        status, out, told = judge("--emit", where, "--stages", "attention", "--limit=30", MODEL)
        manifest = json.loads((where / "manifest.json").read_text())
        passes = [case for case in manifest["cases"] if 0 < case["chunk"] < case["n"]]
        tap.report(status == 0 and len(passes) >= 8 and all(f",chunk={case['chunk']}," in case["case"] for case in passes),
                   f"emit: {len(passes)} calls in passes", [out, told])
        for case in manifest["cases"]:
            tensors = checkpoints.read(where / case["inputs"])[0]
            values = {name: numpy.frombuffer(data, "<f4").reshape(shape) for name, (_, shape, data) in tensors.items()}
            with numpy.errstate(all="ignore"):
                (where / case["outputs"]).write_bytes(checkpoints.safetensors(attention_in_passes(case, values, forgets)))
        status, out, told = judge("--collect", where)
        names = (cause_of(out) or ([],))[0]
        good = (status, names) == ((1, ["cache-unread"]) if forgets else (0, []))
        tap.report(good and stage_of(out, "attention")[1] == (len(passes) if forgets else 0),
                   f"collect: {'a cache that is not read, named' if forgets else 'an honest engine in passes'}", [out, told])


def lse_in_numpy(case, values, with_sink):
    """[heads, n]"""
    n, window = case["n"], case["window"] or case["n"]
    k = numpy.repeat(values["A4.k"], case["heads"] // case["kv_heads"], axis=1)
    i, j = numpy.arange(n)[:, None], numpy.arange(n)[None, :]
    scores = numpy.einsum("ihd,jhd->hij", values["A4.q"], k) / numpy.sqrt(numpy.float32(case["head_dim"]))
    scores = numpy.where((j <= i) & (j + window > i), scores, -numpy.inf)
    sinks = numpy.broadcast_to(values["sinks"][:, None, None], (*scores.shape[:2], 1)) if with_sink else scores[..., :0]
    scores = numpy.concatenate([scores, sinks], axis=2)
    top = scores.max(axis=2, keepdims=True)
    return (top + numpy.log(numpy.exp(scores - top).sum(axis=2, keepdims=True)))[..., 0]


def emitted_lse():
    """A9.lse beside the outputs: in either layout, of either kind, said or found; of another kind than is said."""
    with tempfile.TemporaryDirectory() as folder:
        where = pathlib.Path(folder) / "drills"
        judge("--emit", where, "--stages", "attention", "--limit", "12", MODEL)
        manifest = json.loads((where / "manifest.json").read_text())
        offered = [case["offered"] == {"A9.lse": [case["heads"], case["n"]]} for case in manifest["cases"]]
        tap.report(all(offered) and manifest["stages"]["attention"]["outputs"]["A9.lse"] == {"dtype": "F32", "layout": "[heads, n]"} and
                   "with-sink" in manifest["meaning"]["offered"], "emit: A9.lse is offered", [manifest])

        def collect(with_sink, said, every=1, by_token=False, differs=False):
            for at, case in enumerate(manifest["cases"]):
                tensors = checkpoints.read(where / case["inputs"])[0]
                values = {name: numpy.frombuffer(data, "<f4").reshape(shape) for name, (_, shape, data) in tensors.items()}
                made = attention_in_passes(case, values, False)
                lse = lse_in_numpy(case, values, with_sink).astype("<f4")
                lse = numpy.ascontiguousarray(lse.T) if by_token else lse
                if at % every == 0:
                    made["A9.lse"] = ("F32", list(lse.shape), lse.tobytes())
                words = {"lse": "without-sink" if differs and at else said} if said else {}
                words["lse_layout"] = "tokens,heads" if by_token else "heads,tokens"
                (where / case["outputs"]).write_bytes(checkpoints.safetensors(made, words))
            return judge("--collect", where)

        for with_sink, said, more, expected, says in (
                (True, None, {}, 0, "A9.lse fits with the sink, and not without it"),
                (False, None, {"every": 5}, 0, "A9.lse fits without the sink, and not with it"),
                (False, "without-sink", {"by_token": True}, 0, "A9.lse is judged without the sink, as is said of it."),
                (False, "with-sink", {}, 1, "attention: A9.lse["),
                (True, "with-sink", {"differs": True}, 3, "its metadata say something else of A9.lse than those of the outputs before it"),
                (True, "natural", {}, 3, "metadata lse: A9.lse: expected with-sink, without-sink or either, found 'natural'")):
            with numpy.errstate(all="ignore"):
                status, out, told = collect(with_sink, said, **more)
            tap.report(status == expected and says in out + told, f"collect: exit {expected}: {says}", [status, out, told])


def emitted_formats():
    """A limited number of calls in the policy's own formats: their size is said first, and their meaning."""
    for policy, point, weight in (("bf16", "BF16", "BF16"), ("f16", "F16", "F32"), ("f32", "F32", "F32"), ("hf-bf16", "BF16", "BF16")):
        with tempfile.TemporaryDirectory() as folder:
            where = pathlib.Path(folder) / "drills"
            status, out, told = judge("--emit", where, "--stages", "attention,mixture", "--policy", policy, "--limit", "12")
            said = re.fullmatch(r"Writing 24 calls, at most (\d+) bytes\n24 calls in .*\n", out)
            size = sum(path.stat().st_size for path in where.iterdir())
            tap.report(status == 0 and said is not None and size <= int(said[1]) < 1.5 * size + 10000 and len(list(where.iterdir())) == 25,
                       f"emit: --limit 12 writes 24 calls of two stages in {policy}, {size} bytes", [out, told, size])
            manifest = json.loads((where / "manifest.json").read_text())
            good, chunked = True, 0
            for case in manifest["cases"]:
                good = good and {"attention": case["scale"] == case["head_dim"] ** -0.5, "mixture": True}[case["stage"]]
                chunked += case["chunk"] > 0
                for name, (dtype, shape, _) in checkpoints.read(where / case["inputs"])[0].items():
                    told = manifest["stages"][case["stage"]]["inputs"][name]
                    sizes = {"n": case["n"], "heads": case["heads"], "kv_heads": case["kv_heads"], "head_dim": case["head_dim"],
                             "hidden": case["hidden"], "chosen": case["chosen"]}
                    good = good and dtype == told["dtype"] == {"M3": "I32", "sinks": weight}.get(name, point)
                    good = good and [sizes[word] for word in told["layout"][1:-1].split(", ")] == shape
            tap.report(good and chunked >= 4, f"emit: dtypes and layouts of {policy} are those of the manifest, {chunked} in passes", [manifest])
            words = manifest["meaning"]
            tap.report("own position included" in words["window"] and "natural logarithm" in words["sinks"] and
                       manifest["stages"]["attention"]["outputs"]["A11"] == {"dtype": point, "layout": "[n, heads, head_dim]"},
                       "emit: the manifest says what a window, a sink and an output are", [words])
            for key in ("meaning", "stages"):  # as manifests were before
                del manifest[key]
            (where / "manifest.json").write_text(json.dumps({**manifest, "cases": [
                {key: value for key, value in case.items() if key != "scale"} for case in manifest["cases"]]}))
            status, _, told = judge("--collect", where)
            tap.report(status == 3 and "found none" in told, "collect: a manifest that explains nothing is read", [status, told])
    for words, says in ((("--emit", "/proc/drills", "--stages", "rope"), "and 0 are free there: --limit N writes fewer"),
                        (("--emit", "/proc/drills", "--limit", "0"), "--limit is a number of calls from 1 on, not '0'"),
                        (("--limit", "3", "--collect", "/proc"), "--limit asks for --plugin or --emit")):
        status, _, told = judge(*words)
        tap.report(status == (3 if "free" in says else 2) and says in told, f"refused: {says}", [status, told])
    with tempfile.TemporaryDirectory() as folder:
        status, out, told = judge("--emit", f"{folder}/large", "--stages", "unembed", "--limit", "4", "synthetic:gpt-oss-20b")
        tap.report(status == 0 and "; without 4 calls of more than half a GiB\n0 calls in " in out, "calls of more than half a GiB are left out",
                   [status, out, told])


def main():
    work = pathlib.Path(tempfile.mkdtemp())
    try:
        plugin = work / "planted.so"
        subprocess.run([*CC, "-std=c11", "-D_GNU_SOURCE", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror",
                        "-shared", "-fPIC", f"-I{ROOT}", str(ROOT / "tests/audit/planted_plugin.c"), "-o", str(plugin),
                        "-lm"], check=True)
        acquitted(plugin)
        convicted(plugin)
        traits(plugin)
        example(work)
        broken(plugin)
        as_json(plugin)
        fast()
        emitted_formats()
        if numpy is not None:
            emitted_lse()
        for mistake in (False, True):
            if numpy is not None:
                others = "mixture" if mistake else "scores,values,mixture"
                out_of_process(numpy_engine, f"softmax_sink,{others}", "numpy", mistake)
                emitted_passes(mistake)
            else:
                out_of_process(plain_engine, "softmax_sink", "Python", mistake)
    finally:
        shutil.rmtree(work)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
