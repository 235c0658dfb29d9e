# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What every command writes with --json is what doc/schema.json says, and the schema refuses what is not.

    python3 tests/audit/python_schema.py       SINKPROOF names the command; needs the package jsonschema

FEW=1 verifies statements of each kind of evidence alone.
"""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "shared"), str(ROOT / "tests")]
from fuzz import design_seeds  # noqa: E402
from tap import Tap  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("SINKPROOF", "build/release/sinkproof"))
SMALL = "tests/vectors/openai-torch/small"
TRACE = f"{SMALL}/trace-bf16.safetensors"
TINY = "synthetic:tiny"
TEXT = "tests/vectors/text"
# Defined, by experiment, exact, measured, enclosed and formal: each alone or beside others.
EVIDENCE = ("model.config", "gpt2.bq-zero", "bf16.round", "rope.rotate", "sink.mass", "attn.qkv", "law.permute")


def said(*words):
    ran = subprocess.run([PROGRAM, *words, "--json", "-"], capture_output=True, text=True, cwd=ROOT, timeout=900, check=False)
    return json.loads(ran.stdout)


def samples(work):
    """{name: JSON}: each command with each kind of result."""
    a, b = str(work / "a"), str(work / "b")
    alpha = str(work / "alpha")
    for policy, path in (("f32", a), ("openai-bf16", b), ("f32,M8.alpha=bf16", alpha)):
        subprocess.run([PROGRAM, "run", TINY, "--tokens", "random:9", "--policy", policy, "--trace", path], check=True, capture_output=True)
    back = str(work / "back")
    subprocess.run([PROGRAM, "run", TINY, "--tokens", "random:5", "--backward", "--trace", back], check=True, capture_output=True)
    truth = str(work / "truth")
    subprocess.run([PROGRAM, "truth", TINY, "--tokens", "random:9", "--trace", truth, "--points", "layers"], check=True, capture_output=True)
    prompts = work / "prompts.jsonl"
    prompts.write_text('{"tokens": [1, 2]}\n{"tokens": []}\n', encoding="utf-8")
    steps = work / "steps"  # zeros throughout, which are scores and results, but no weights
    steps.write_bytes(dict(design_seeds())["design-kv-bias"])
    return {
        "judge a bug": said("judge", SMALL, TRACE),
        "judge a bug that is named": said("judge", TINY, alpha, "--policy", "f32", "--local"),
        "judge, another model": said("judge", f"{TINY},seed=9", a, "--policy", "bf16", "--local", "--any-model", "--no-hint",
                                     "--no-diagnosis"),
        "judge several": said("judge", TINY, a, str(work / "none"), "--policy", "f32", "--local"),
        "judge layers apart": said("judge", TINY, a, "--policy", "f32", "--layers-apart", "2"), "judge --plan": said("judge", TINY, a, "--plan"),
        "judge --truth": said("judge", TINY, a, "--policy", "f32", "--truth", truth),
        "judge gradients": said("judge", TINY, back, "--policy", "real-f64", "--local"),
        "judge forms": said("judge", SMALL, f"{SMALL}/trace-f32.safetensors", "--policy", "f32", "--forms", "--local"),
        "run": said("run", TINY, "--tokens", "random:5"),
        "run, backward": said("run", TINY, "--tokens", "random:5", "--backward"),
        "run fast, generating": said("run", TINY, "--tokens", "random:5", "--engine", "fast", "--generate", "3", "--temperature", "0.5"),
        "run, with text": said("run", TINY, "--tokens", "random:5", "--generate", "3", "--tokenizer", TEXT),
        "info": said("info", TINY), "info --cpu": said("info", "--cpu"), "info of a directory": said("info", SMALL),
        "truth": said("truth", TINY, "--tokens", "1,2,3", "--check", "2"), "truth --plan": said("truth", TINY, "--plan", "--tokens", "1,2"), "truth of prompts": said("truth", TINY, "--prompts", str(prompts)), "truth --local": said("truth", SMALL, "--local", TRACE),
        "verify": said("verify", *(EVIDENCE if os.environ.get("FEW") else ())),
        "curve": said("curve", "sink.alpha-sink"),
        "gpt2": said("gpt2", "synthetic:tiny-gpt2", "--tokens", "random:5"),
        "gpt2, one token": said("gpt2", "synthetic:tiny-gpt2", "--tokens", "1", "--epe", "normed"),
        "gpt2, interventions": said("gpt2", "synthetic:tiny-gpt2", "--tokens", "random:5", "--zero-bq", "--move-epe", "1:2",
                                    "--zero-wk-random", "3"),
        "gpt2 --panel": said("gpt2", "synthetic:tiny-gpt2", "--tokens", "1", "--panel"),
        "gpt2 --sentences": said("gpt2", "--sentences"), "gpt2 --published": said("gpt2", "synthetic:gpt2", "--published"),
        "sinks": said("sinks", "--list"), "sinks --edges": said("sinks", "--edges"),
        "sinks --judge": said("sinks", "--judge", str(steps)),
        "sinks of a model": said("sinks", TINY, "--tokens", "random:5", "--tokens", "random:5,seed=2", "--tokens", "1"),
        "sinks, experiments": said("sinks", TINY, "--tokens", "random:10", "--perturb", "drawn,lengths=6+10,raise=1", "--strategies", "1,3",
                                   "--quantise", "--window"),
        "sinks, of a model without": said("sinks", f"{TINY},sink=none", "--tokens", "random:10", "--perturb", "2:6", "--strategies", "1,3", "--quantise"),
        "sinks, hidden keys": said("sinks", TINY, "--tokens", "5+random:9", "--tokens", "5+random:9,seed=2", "--hide", "1@2"),
        "sinks of a trace alone": said("sinks", "--trace", TRACE),
        "sinks, terms": said("sinks", TINY, "--tokens", "random:10", "--tokens", "1", "--decompose"),
        "sinks of a trace": said("sinks", SMALL, TRACE),
        "sinks of a trace, another model": said("sinks", f"{TINY},seed=9", a, "--any-model"),
        "audit": said("audit", TINY, "--tokens", "random:6", "--policy", "openai-bf16"),
        "next": said("next", TINY, "--tokens", "random:3", "--draws", "1"),
        "next of prompts": said("next", TINY, "--prompts", str(prompts), "--draws", "0", "--no-steering", "--no-derivative"),
        "audit of prompts": said("audit", TINY, "--prompts", str(prompts), "--no-budget"),
        "audit without a budget": said("audit", TINY, "--tokens", "random:6", "--no-budget"),
        "compare": said("compare", a, b, "--model", TINY),
        "tokens": said("tokens", TEXT), "tokens --text": said("tokens", TEXT, "--text", "hello", "--pieces"),
        "tokens --decode": said("tokens", TEXT, "--decode", "1,2,3"),
        "bench": said("bench", "--quick"),
    }


def faults(checker, instance):
    found = []
    for error in checker.iter_errors(instance):
        found.append(f"{'/'.join(map(str, error.absolute_path))}: {error.message[:160]}")
    return found[:5]


def wounds(judged):
    """The same JSON with one thing wrong."""
    def changed(change):
        wounded = copy.deepcopy(judged)
        change(wounded)
        return wounded
    point = judged["results"][1]
    assert "worst_index" in point
    return {
        "another number of the schema": changed(lambda j: j.update(schema=2)),
        "no machine": changed(lambda j: j.pop("machine")),
        "a command that is not known": changed(lambda j: j.update(command="weigh")),
        "an exit code beyond the last": changed(lambda j: j.update(exit=5)),
        "a count that is no whole number": changed(lambda j: j["results"][1].update(outside=0.5)),
        "a verdict that there is not": changed(lambda j: j["results"][1].update(verdict="fine")),
        "a field that is missing": changed(lambda j: j["results"][1].pop("nan")),
        "a field that nobody wrote down": changed(lambda j: j["results"][1].update(mood="good")),
        "a number in decimal where hex is meant": changed(lambda j: j["results"][1].update(engine="1.5")),
    }


def main():
    tap = Tap()
    schema = json.loads((ROOT / "doc" / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    checker = jsonschema.Draft202012Validator(schema)
    with tempfile.TemporaryDirectory() as work:
        taken = samples(pathlib.Path(work))
    for name, instance in taken.items():
        wrong = faults(checker, instance)
        tap.report(not wrong, f"schema.{name}: results={len(instance['results'])}", wrong)
    commands = {instance["command"] for instance in taken.values()}
    tap.report(commands == set(schema["properties"]["command"]["enum"]), f"schema has the commands that were asked: {len(commands)}", [str(commands)])
    parts = [part for instance in taken.values() for r in instance["results"] for part in (r, *r.get("diagnosis", []))]
    kinds = {d: jsonschema.Draft202012Validator({"$defs": schema["$defs"], "$ref": f"#/$defs/{d}"}) for d in schema["$defs"]}
    used = {d for d, kind in kinds.items() if any(map(kind.is_valid, parts))}
    within = set(re.findall(r"#/\$defs/(\w+)", json.dumps(schema["$defs"])))  # parts of other parts
    unused = set(schema["$defs"]) - used - within - {"stage"}  # judge --plugin has its own test
    tap.report(not unused, f"schema has no part that nothing uses: {len(used)}", sorted(unused))
    for what, wounded in wounds(taken["judge a bug"]).items():
        tap.report(not checker.is_valid(wounded), f"schema refuses {what}", [])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
