# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A trace beside another model than the one that its metadata name: one sentence and exit 3, wherever
MODEL and TRACE come together; with --any-model a line of the report, of the JSON and of the page. The
same numbers in another container or format are the same model; no fingerprint contradicts nothing.
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

TINY, OTHER = "synthetic:tiny,layers=1", "synthetic:tiny,layers=1,seed=9"
NOTE = "Another model: the trace's metadata name fingerprint {}, MODEL has {}."


def fingerprint(model):
    return json.loads(sinkproof("info", str(model), "--json", "-")[1])["results"][0]["fingerprint"]


def said(path, **metadata):
    """The trace again, with other metadata; None takes one away."""
    tensors, meta = checkpoints.read(path)
    meta = {key: value for key, value in {**meta, **metadata}.items() if value is not None}
    changed = path.with_name("-".join(["said", *metadata]))
    changed.write_bytes(checkpoints.safetensors(tensors, meta))
    return changed


def refused(trace, work):
    """Every command that takes a MODEL and a TRACE."""
    ours, theirs = fingerprint(OTHER), fingerprint(TINY)
    for model in (OTHER, "synthetic:tiny-gpt2", "synthetic:tiny"):  # of other shapes too: the sentence comes first
        left, own = work / "left", fingerprint(model)
        for words in (["judge", model, trace, "--json", left, "--html", left], ["truth", model, "--local", trace, "--json", left],
                      ["truth", model, "--tokens", "1", "--route", trace], ["sinks", model, trace, "--html", left],
                      ["compare", trace, trace, "--model", model, "--json", left],
                      ["judge", model, "--tokens", "1,2", "--bisect", f"cp {trace} {{out}}"]):
            status, out, told = sinkproof(*map(str, words))
            named = "is a trace of another model" in told and theirs in told and own in told
            report(status == 3 and named and "--any-model" in told and "\n" not in told.strip() and "Verdict" not in out
                   and not left.exists(), f"{words[0]} refuses a trace beside {model}: exit {status}", [told])
    return NOTE.format(theirs, ours)


def allowed(trace, note, work):
    """--any-model: the result says so, everywhere."""
    made, page = work / "made.json", work / "page.html"
    status, out, told = sinkproof("judge", OTHER, str(trace), "--any-model", "--policy", "f32", "--local", "--no-diagnosis",
                                  "--no-hint", "--json", str(made), "--html", str(page))
    notes = json.loads(made.read_text())["results"][0]["notes"]
    html = page.read_text()
    report(status == 1 and out.startswith(f"{note}\n") and notes == [note], f"judge --any-model: exit {status}", [told, out[:300]])
    report(note.replace("'", "&#39;") in html or note in html, "judge --any-model: the page says it", [html[:900]])
    report("--any-model</pre>" in html, "judge --any-model: the command that shows it again has it")
    for words, code in ((["truth", OTHER, "--local", trace, "--bits", "64"], (0, 4)), (["sinks", OTHER, trace, "--html", page], (0,)),
                        (["compare", trace, trace, "--model", OTHER], (0,))):
        status, out, told = sinkproof(*map(str, words), "--any-model", "--json", str(made))
        notes = json.loads(made.read_text()).get("notes", [])
        report(status in code and note in out.splitlines()[0] and notes and all(note in one for one in notes),
               f"{words[0]} --any-model: exit {status}", [told, out[:300], notes])
    report(NOTE.split(":")[0] in page.read_text(), "sinks --any-model: the page says it")
    status, out, _ = sinkproof("judge", TINY, str(trace), "--any-model", "--local", "--policy", "f32")
    report(status == 0 and "Another model" not in out, "the model itself is no other one")


def contradictions(trace, work):
    """What names no fingerprint contradicts nothing; a policy is told, and no reason to refuse."""
    for what, meta in (("no fingerprint", {"model": None}), ("a name", {"model": "openai/gpt-oss-20b"}),
                       ("capitals", {"model": fingerprint(TINY).upper()}),
                       ("the fingerprint of before, which told formats", {"model": "3f52a2e23de065e8"})):
        status, out, told = sinkproof("judge", TINY, str(said(trace, **meta)), "--policy", "f32", "--local")
        report(status == 0 and "nother model" not in out + told, f"{what} under `model`: exit {status}", [told])
    status, out, told = sinkproof("judge", OTHER, str(said(trace, model=None)), "--policy", "f32", "--local", "--no-diagnosis",
                                  "--no-hint")
    report(status == 1 and "nother model" not in out + told, "other weights without a fingerprint are judged")
    status, out, _ = sinkproof("judge", TINY, str(trace), "--policy", "bf16", "--local", "--no-diagnosis",
                                  "--no-hint")
    report("The metadata declare f32; it is judged under bf16." in out, "another policy than the declared one is told")
    for policy in ("f32", "f32,A9=f32", "auto"):
        _, out, _ = sinkproof("judge", TINY, str(trace), "--policy", policy, "--local")
        report("metadata declare" not in out, f"{policy} is what the metadata declare")
    other = work / "other"
    sinkproof("run", OTHER, "--tokens", "random:5", "--policy", "f32", "--trace", str(other))
    status, out, _ = sinkproof("compare", str(trace), str(other))
    expected = f"Two models: by its metadata A is of the fingerprint {fingerprint(TINY)}, B of {fingerprint(OTHER)}."
    report(status == 1 and out.startswith(expected), "compare says that its traces are of two models", [out[:200]])
    report("Two models" not in sinkproof("compare", str(trace), str(trace))[1], "and nothing of two traces of one")


def converted(trace, work):
    """One model in every container and format that holds its numbers."""
    for name, words in (("hf", ["--layout", "hf"]), ("bf16", ["--layout", "hf", "--dequantize"]),
                        ("openai", ["--layout", "openai"]), ("as.gguf", ["--layout", "gguf"]),
                        ("f32.gguf", ["--layout", "gguf", "--dense", "f32", "--dequantize"])):
        sinkproof("synth", TINY, *words, "--out", str(work / name))
        status, out, told = sinkproof("judge", str(work / name), str(trace), "--policy", "f32", "--local")
        report(status == 0 and fingerprint(work / name) == fingerprint(TINY) and "nother model" not in out,
               f"model.config {name} holds the same numbers: exit {status}", [told])
    sinkproof("synth", TINY, "--layout", "gguf", "--dense", "q8_0", "--out", str(work / "q8_0.gguf"))
    status, _, told = sinkproof("judge", str(work / "q8_0.gguf"), str(trace), "--policy", "f32", "--local")
    report(status == 3 and "another model" in told, "q8.decode rounded weights are another model", [told])


def plug_in(work):
    """--collect makes the inputs again: of another model's sizes they would be others."""
    drills = work / "drills"
    sinkproof("judge", "--emit", str(drills), "--stages", "rmsnorm")
    status, _, told = sinkproof("judge", "--collect", str(drills), TINY)
    report(status == 3 and "its inputs were made for small sizes, without a MODEL" in told and "--any-model" in told,
           "collect beside a MODEL that --emit had not", [told])
    status, _, told = sinkproof("judge", "--collect", str(drills), TINY, "--any-model")
    report(status == 3 and "found none" in told, "and goes on to the outputs if any will do", [told])


def main(work):
    trace = work / "trace"
    sinkproof("run", TINY, "--tokens", "random:5", "--policy", "f32", "--trace", str(trace))
    written = checkpoints.read(trace)[1]["model"]
    report(re.fullmatch("[0-9a-f]{16}", written) is not None and written == fingerprint(TINY), "run writes the fingerprint")
    note = refused(trace, work)
    allowed(trace, note, work)
    contradictions(trace, work)
    converted(trace, work)
    plug_in(work)


if __name__ == "__main__":
    sys.exit(checkpoints.run(main))
