# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof run --backward`: which gradients a trace has, what a loss from a file does, what is refused; and the judge
of such a trace: honest under every policy, in parts too, and each gradient alone is convicted when it is changed."""
import collections
import json
import math
import pathlib
import struct
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
import checkpoints  # noqa: E402
from checkpoints import report  # noqa: E402

N = 9
TOKENS = f"random:{N},seed=4"


def numbers(trace, name):
    dtype, _, data = trace[name]
    return list(checkpoints.numbers_of(dtype, data))


Ran = collections.namedtuple("Ran", "returncode stdout stderr")


def sinkproof(*words):
    return Ran(*checkpoints.sinkproof(*map(str, words)))


def doubles(shape, values):
    return "F64", shape, struct.pack(f"<{len(values)}d", *values)


def run(work, model, *words, gradient=None, name="t"):
    """(the outcome, the trace or None)"""
    path = work / f"{name}.safetensors"
    if gradient is not None:
        (work / f"{name}-given.safetensors").write_bytes(checkpoints.safetensors(gradient))
        words = (*words, "--gradient", work / f"{name}-given.safetensors")
    words = words if "--tokens" in words else ("--tokens", TOKENS, *words)
    done = sinkproof("run", model, "--backward", "--trace", path, *words)
    return done, checkpoints.read(path)[0] if path.exists() else None


def gradients_of(trace):
    return {name: value for name, value in trace.items() if name.split(".", 1)[-1 if name[0].isdigit() else 0].startswith("d")}


def names(work):
    done, trace = run(work, "synthetic:tiny")
    report(done.returncode == 0 and trace is not None, "grad.chain run --backward ends with 0 and a trace", [done.stderr])
    of_points = {"dA13", "dA11", "dA10", "dA6", "dA4.q", "dA4.k", "dA2.q", "dA2.k", "dA2.v", "dA1", "dM12", "dM10", "dM8",
                 "dM6", "dM4", "dM2", "dM1"}
    of_weights = {"dsink", *(f"d{kind}.{x}" for x in ("q", "k", "v", "o", "router", "up", "down") for kind in "Wb"),
                  "dW.attn_norm", "dW.mlp_norm"}
    ends = {"dF2", "dF1", "dT0", "dW.embedding", "dW.final_norm", "dW.unembedding"}
    want = {f"{layer:02d}.{name}" for layer in range(4) for name in of_points | of_weights} | ends
    have = gradients_of(trace)
    report(set(have) == want, "grad.chain a trace has the gradient of every point and every weight",
           [f"missing {sorted(want - set(have))}", f"more {sorted(set(have) - want)}"])
    shaped = all(value[1] == trace[name.replace("d", "", 1)][1] for name, value in have.items()
                 if name.replace("d", "", 1) in trace)
    report(shaped and have["00.dsink"][1] == [10] and have["02.dW.up"][1] == [7, 256, 96],
           "grad.chain a gradient has the shape of its point or weight")
    report(all(math.isfinite(x) for name in have for x in numbers(have, name)), "grad.chain every gradient is a number")
    judged = sinkproof("judge", "synthetic:tiny", work / "t.safetensors")
    report(judged.returncode == 0 and "The loss is the mean cross-entropy of the next tokens." in judged.stdout
           and "undecided (exit" not in judged.stdout, "grad.rounded the judge decides every gradient, and none is outside",
           judged.stdout.splitlines()[-12:])
    return trace


def loss_is_stated(work, trace):
    """The loss by its definition, in the reference's order of sums: the same bits."""
    done = sinkproof("run", "synthetic:tiny", "--tokens", TOKENS, "--backward", "--json", "-")
    said = json.loads(done.stdout)["results"][0]["loss"]
    logits, tokens = numbers(trace, "F2"), numbers(trace, "tokens")
    vocab, total = len(logits) // N, 0.0
    for t in range(N - 1):
        row = logits[t * vocab:(t + 1) * vocab]
        most, z = max(row), 0.0
        for x in row:
            z += math.exp(x - most)
        total += math.log(z) - (row[tokens[t + 1]] - most)
    report(said == total / (N - 1), f"grad.cross-entropy the loss is the mean over {N - 1} next tokens: {said!r}",
           [f"expected {total / (N - 1)!r}"])
    dlogits = numbers(trace, "dF2")
    report(all(x == 0 for x in dlogits[(N - 1) * vocab:]), "grad.cross-entropy the last token has no target: its row is 0")


def embedding(work, trace):
    """A word's row is the sum of dT0 over its positions, in their order; of other words 0."""
    done, again = run(work, "synthetic:tiny", "--tokens", "7,3,7,9,3,7", name="words")
    rows, dx, tokens = numbers(again, "dW.embedding"), numbers(again, "dT0"), numbers(again, "tokens")
    width = len(dx) // len(tokens)
    want = [0.0] * len(rows)
    for t, word in enumerate(tokens):
        for c in range(width):
            want[word * width + c] += dx[t * width + c]
    report(done.returncode == 0 and tokens == [7, 3, 7, 9, 3, 7] and rows == want,
           "grad.embedding each word's row collects from the word's positions")


def given(work, trace):
    """A loss from a file: that of the logits again; twice it; one that reads a log-sum-exp alone."""
    vocab = trace["F2"][1][1]
    again = run(work, "synthetic:tiny", gradient={"dF2": trace["dF2"]}, name="again")[1]
    report(gradients_of(again) == gradients_of(trace), "grad.chain --gradient with the loss's own dF2: the same bits")
    twice = run(work, "synthetic:tiny", gradient={"dF2": doubles([N, vocab], [2 * x for x in numbers(trace, "dF2")])},
                name="twice")[1]
    report(all([2 * x for x in numbers(trace, name)] == numbers(twice, name) for name in gradients_of(trace)),
           "grad.chain twice the loss: twice every gradient, to the bit")
    heads = trace["00.dsink"][1][0]
    dlse = [(1 + i % 5) / 8 for i in range(heads * N)]
    alone = {kind: run(work, "synthetic:tiny", gradient={f"01.dA9.{kind}": doubles([heads, N], dlse)}, name=kind)[1]
             for kind in ("lse", "lse-keys")}
    weights, keys = numbers(trace, "01.A9"), trace["01.A9"][1][2]
    sums = []
    for h in range(heads):
        total = 0.0
        for i in range(N):
            total += -0.0 + weights[(h * N + i) * keys + keys - 1] * dlse[h * N + i]
        sums.append(total)
    report(numbers(alone["lse"], "01.dsink") == sums, "grad.lse with the sink inside: dsink is the sum of alpha_s dLSE")
    report(all(x == 0 for x in numbers(alone["lse-keys"], "01.dsink")) and any(numbers(alone["lse-keys"], "01.dA6")),
           "grad.lse of the keys alone: nothing for the sink, something for the scores")
    # log-sum-exps grow by 1 when all scores do: the gradients of a row's scores (and sink) add up to dLSE
    for kind in alone:
        ds, worst = numbers(alone[kind], "01.dA6"), 0.0
        for h in range(heads):
            for i in range(N):
                row = sum(ds[(h * N + i) * N:(h * N + i + 1) * N])
                sink = weights[(h * N + i) * keys + keys - 1] if kind == "lse" else 0
                worst = max(worst, abs(row / dlse[h * N + i] + sink - 1))
        bound = 4 * (N + 4) * 2.0 ** -53  # sums of N + 1 positive terms, their exponentials and quotients, twice
        report(worst <= bound, f"grad.lse {kind}: a row's gradients add up to dLSE: worst={worst:.2g} bound={bound:.2g}")
    report(all(x == 0 for layer in (2, 3) for x in numbers(alone["lse"], f"{layer:02d}.dA6"))
           and any(numbers(alone["lse"], "00.dA6")), "grad.chain a loss of layer 1 reaches the layers below, not those above")


def kinds(work):
    done, trace = run(work, "synthetic:tiny-llama", name="llama")
    report(done.returncode == 0 and "dW.embedding" in trace and "dW.unembedding" not in trace and "00.dsink" not in trace,
           "grad.embedding a tied model has one gradient for both of its ends, and no sink none")
    done, trace = run(work, "synthetic:tiny,sink=key", name="key")
    report(done.returncode == 0 and trace["00.dsink"][1] == [10, 16], "a sink that is a key has a gradient of its width")
    plain = sinkproof("run", "synthetic:tiny", "--tokens", TOKENS)
    both = sinkproof("run", "synthetic:tiny", "--tokens", TOKENS, "--backward")
    report(both.stdout.startswith(plain.stdout) and both.stdout.count("\n") == plain.stdout.count("\n") + 1,
           "--backward adds one line to the result: the loss")


def refused(work, trace):
    vocab = trace["F2"][1][1]
    path = work / "none.safetensors"
    whole = doubles([N, vocab], [0.5] * (N * vocab))
    wrong = {"a name": ({"dF3": whole}, "dF3"), "a point no loss reads here": ({"00.dM6": doubles([1], [0])}, "00.dM6"),
             "a layer": ({"04.dA11": whole}, "04.dA11"), "a shape": ({"dF2": doubles([N], [0] * N)}, "shape"),
             "a NaN": ({"dF2": doubles([N, vocab], [math.nan] + [0] * (N * vocab - 1))}, "element 0"),
             "an infinity": ({"dF2": doubles([N, vocab], [0, math.inf] + [0] * (N * vocab - 2))}, "element 1"),
             "whole numbers": ({"dF2": ("I32", [1], b"\0\0\0\0")}, "dtype"), "nothing": ({}, "none")}
    for what, (tensors, word) in wrong.items():
        given_path = work / "wrong.safetensors"
        given_path.write_bytes(checkpoints.safetensors(tensors))
        done = sinkproof("run", "synthetic:tiny", "--tokens", TOKENS, "--backward", "--trace", path, "--gradient", given_path)
        report(done.returncode == 3 and word in done.stderr and not path.exists(),
               f"--gradient with {what} is refused, and leaves no trace: {done.stderr.strip()[:90]}", [done.stderr])
    for words, code, word in (
            (["synthetic:tiny", "--tokens", "5", "--backward"], 3, "two tokens"),
            (["synthetic:tiny-gpt2", "--tokens", TOKENS, "--backward"], 3, "LayerNorm"),
            (["synthetic:tiny", "--tokens", TOKENS, "--backward", "--engine", "fast"], 2, "ref"),
            (["synthetic:tiny", "--tokens", TOKENS, "--backward", "--chunk", "2"], 2, "--chunk"),
            (["synthetic:tiny", "--tokens", TOKENS, "--backward", "--generate", "2"], 2, "--generate"),
            (["synthetic:tiny", "--tokens", TOKENS, "--gradient", "x"], 2, "--backward"),
            (["synthetic:tiny", "--tokens", TOKENS, "--backward", "--gradient", work / "absent"], 3, "absent")):
        done = sinkproof("run", *words)
        report(done.returncode == code and word in done.stderr, f"run {' '.join(map(str, words[2:]))}: exit {code}", [done.stderr])
    bad = dict(trace)
    dtype, shape, data = bad["00.dsink"]
    bad["00.dsink"] = dtype, [5, 2], data
    path.write_bytes(checkpoints.safetensors(bad, {"format": "sinkproof-trace-1"}))
    done = sinkproof("judge", "synthetic:tiny", path)
    report(done.returncode == 3 and "00.dsink" in done.stderr and "[10]" in done.stderr,
           "a trace whose gradient has another shape is refused", [done.stderr])


HEAD = {"format": "sinkproof-trace-1", "loss": "cross-entropy"}


def judge(work, tensors, *words, head=HEAD, name="judged"):
    """(exit code, the rows of the result by their names, the report)"""
    path, told = work / f"{name}.safetensors", work / f"{name}.json"
    path.write_bytes(checkpoints.safetensors(tensors, head))
    done = sinkproof("judge", "synthetic:tiny", path, "--local", "--json", told, *words)
    rows = json.loads(told.read_text(encoding="utf-8"))["results"] if done.returncode in (0, 1, 4) else []
    return done.returncode, {row["id"]: row for row in rows}, done.stdout


def judged_under_policies(work):
    """Of one layer with a window and one without."""
    model = "synthetic:tiny,layers=2"
    for policy in ("f32", "bf16-operands", "openai-bf16", "hf-bf16", "hf-llama-bf16", "bf16", "f16", "flash-bf16", "vllm-bf16"):
        done, trace = run(work, model, "--policy", policy, name="policy")
        judged = sinkproof("judge", model, work / "policy.safetensors", "--local", "--policy", policy)
        said = [line for line in judged.stdout.splitlines() if line.startswith("Gradients under")]
        report(done.returncode == 0 and judged.returncode == 0 and len(said) == 1 and policy in said[0],
               f"grad.rounded run --backward --policy {policy} is within", judged.stdout.splitlines()[-6:])
        if policy == "openai-bf16":
            narrow = all(struct.unpack("<I", struct.pack("<f", x))[0] & 0xffff == 0 and struct.unpack("<f", struct.pack("<f", x))[0] == x
                         for name in ("00.dA11", "01.dA6", "00.dM8", "01.dA4.k") for x in numbers(trace, name))
            report(narrow, "grad.chain the gradient of a point that the policy holds in bfloat16 is a bfloat16 number")
    done, trace = run(work, model, "--policy", "llama-cpp", name="policy")
    judged = sinkproof("judge", model, work / "policy.safetensors", "--local", "--policy", "llama-cpp")
    report(judged.returncode == 4 and "is none that they are stated for" in judged.stdout,
           "grad.rounded under a policy that reads operands in blocks gradients are undecided", judged.stdout.splitlines()[-6:])


def judged_in_parts(work, trace):
    """Whatever an honest trace keeps, nothing is a bug."""
    seed, codes, lacking = 5, collections.Counter(), 0
    for _ in range(16):
        kept = {}
        for name in trace:
            seed = (seed * 6364136223846793005 + 1442695040888963407) % 2 ** 64
            if name in ("tokens", "positions") or seed >> 62:
                kept[name] = trace[name]
        code, rows, _ = judge(work, kept, "--policy", "real-f64")
        codes[code] += 1
        lacking += sum(row.get("missing") is not None for row in rows.values())
    report(set(codes) <= {0, 4} and lacking > 0,
           f"grad.rounded parts of an honest trace: exits {dict(codes)}, gradients that lack an input: {lacking}")
    kept = {name: value for name, value in trace.items() if name != "01.M8"}
    _, rows, said = judge(work, kept, "--policy", "real-f64")
    row = rows["01.dW.down"]
    report(row["verdict"] == "undecided" and row["missing"] == "01.M8", "grad.linear dW.down without M8 is undecided, and M8 is named")
    report("Undecided, and what the trace lacks for it:" in said and "01.dW.down: 01.M8" in said, "the report names what is missing",
           said.splitlines()[-8:])
    code, rows, said = judge(work, trace, "--policy", "real-f64", head={"format": "sinkproof-trace-1"})
    report("The metadata do not say what the loss reads" in said, "the report says that the loss is not said", said.splitlines()[-8:])
    report(code == 0 and rows["dF2"]["verdict"] == "undecided" and "cross-entropy" in rows["dF2"]["missing"],
           "grad.cross-entropy dF2 of a loss that the metadata do not name is undecided")
    balanced = {name: doubles(trace[name][1], [x + 0.25 for x in numbers(trace, name)]) if name == "01.dM2" else value
                for name, value in trace.items() if name not in ("01.dM1", "01.dW.router", "01.db.router")}
    code, rows, _ = judge(work, balanced, "--policy", "real-f64", head={"format": "sinkproof-trace-1"})
    report(code == 0 and rows["01.dM2"]["verdict"] == "undecided" and "01.dM2" not in rows["01.dM2"]["missing"],
           "grad.router a loss that may read the router, and is not said: dM2 is undecided", [code, rows["01.dM2"]])
    code, rows, _ = judge(work, balanced, "--policy", "real-f64", head={"format": "sinkproof-trace-1", "loss": "F2,M2"})
    report(code == 0 and rows["01.dM2"]["missing"] == "what the loss has there", "grad.router a loss that is said to read it: so too")
    code, rows, _ = judge(work, balanced, "--policy", "real-f64")
    report(code == 1 and rows["01.dM2"]["verdict"] == "bug", "grad.router a loss that is said not to read it: dM2 is a bug")


def each_changed(work, trace):
    """The largest element of one gradient, off by 2^-28 of itself: that gradient is outside, of layer 1 or of the ends."""
    names = [name for name in gradients_of(trace) if name[:3] in ("01.", "dT0", "dF1", "dF2", "dW.")]
    names = [name for name in names if name not in ("dW.unembedding", "dW.embedding", "01.dW.up", "01.dW.down")]  # slow to read
    small = {name: value for name, value in trace.items() if not name.endswith((".dW.up", ".dW.down", "embedding"))}
    missed = []
    for name in names:
        values = numbers(trace, name)
        at = max(range(len(values)), key=lambda i: abs(values[i]))
        values[at] *= 1 + 2.0 ** -28
        tensors = dict(small)
        tensors[name] = doubles(trace[name][1], values)
        layers = ("--layers", "1") if name[0] == "0" else ()
        code, rows, _ = judge(work, tensors, "--policy", "real-f64", "--no-diagnosis", "--no-hint", *layers)
        if code != 1 or rows[name]["verdict"] != "bug" or rows[name]["outside"] != 1:
            missed.append((name, code, rows.get(name, {}).get("verdict")))
    report(not missed and len(names) > 30, f"grad.rounded one element off by 2^-28 in each of {len(names)} gradients: each is outside",
           missed)


def shown(work, trace):
    """What the report, the page and the plan say."""
    changed = dict(trace)
    changed["02.dsink"] = doubles([10], [-x for x in numbers(trace, "02.dsink")])
    path, page = work / "shown.safetensors", work / "page.html"
    path.write_bytes(checkpoints.safetensors(changed, HEAD))
    done = sinkproof("judge", "synthetic:tiny", path, "--local", "--policy", "real-f64", "--html", page)
    report(done.returncode == 1 and "First divergence going back: 02.dsink (grad.sink)." in done.stdout
           and "cause of 02.dsink: the sign is wrong" in done.stdout, "grad.sink the report names the gradient and the cause",
           done.stdout.splitlines()[-12:])
    said = page.read_text()
    report("A bug at 02.dsink: 10 of 10 elements are not what real-f64 allows" in said and "cause: the sign is wrong" in said,
           "the page shows the gradients, and the verdict on them")
    plan = sinkproof("judge", "synthetic:tiny", path, "--plan")
    report(plan.returncode == 0 and f"gradients: {len(gradients_of(trace))} tensors more" in plan.stdout,
           "the plan says that the trace has gradients", plan.stdout.splitlines())


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        trace = names(work)
        loss_is_stated(work, trace)
        embedding(work, trace)
        given(work, trace)
        kinds(work)
        refused(work, trace)
        judged_under_policies(work)
        judged_in_parts(work, trace)
        each_changed(work, trace)
        shown(work, trace)
    return checkpoints.TAP.done()


if __name__ == "__main__":
    sys.exit(main())
