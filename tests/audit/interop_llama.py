# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""llama.cpp, judged as doc/engines/llama.json says; mistakes planted in its graph; its binary interface.

    python tests/audit/interop_llama.py
    RUNS=100 SEED=1 python tests/audit/interop_llama.py     so many honest runs, drawn (12; of FEW=1 2)
    WRITE=1 python tests/audit/interop_llama.py             keep what is found in doc/engines/{honest,planted}

A TAP program. Each planted mistake must be convicted where it acts, what is equivalent acquitted. Facts
that no trace shows are asked of the library: the sums of its flash attention, and what context shifts
do to keys that they do not move.
"""
import json
import os
import random
import re
import sys

import engines
import honest
import planted
from interop_llama_formats import formats

HERE = os.path.dirname(os.path.abspath(__file__))
POLICY = "f32,yarn=truncate"


def written(work, model):
    """A GGUF file of a model, everything in it float32."""
    path = os.path.join(work, f"{os.path.basename(model)}.gguf")
    made = engines.command([engines.SINKPROOF, "synth", model, "--out", path, "--layout", "gguf", "--dense", "f32",
                            "--dequantize"])
    if made.returncode:
        raise ValueError(made.stderr)
    return path


def planted_row(model, folder, name, bug, asks):
    """What the judge says of one trace."""
    words = engines.judge_words(model, os.path.join(folder, f"{name}.safetensors"), POLICY)
    said = engines.command([*words, "--no-hint", "--json", "-", *([] if asks else ["--no-diagnosis"])])
    kind = "equivalent" if bug["equivalent"] else "mistake"
    return planted.row(name, POLICY, json.loads(said.stdout)["results"], [bug["named"]] if bug["named"] else [],
                       bug["changed"], kind=kind)


def plant(tap, python, work, model):
    """Each mistake is convicted where it acts; one in six is asked for its cause too (WHOLE=1: all)."""
    made = engines.command([python, os.path.join(HERE, "interop_llama_bugs.py"), model, work])
    if not tap.report(made.returncode == 0, "mistakes are planted in the graph", made.stderr.splitlines()[-4:]):
        return
    whole, writes, rows = os.environ.get("WHOLE"), os.environ.get("WRITE"), []
    for i, (name, bug) in enumerate(json.loads(made.stdout.splitlines()[-1]).items()):
        asks = bool(whole or writes or i % 6 == 0)
        found = planted_row(model, work, name, bug, asks)
        good = found["verdict"] in ("within", "exact") if bug["equivalent"] else planted.is_right(found, bug["points"])
        tap.report(good, f"llama.cpp {found['kind']}: {name}: {found['verdict']} {found['first']}, {found['named']}",
                   [f"expected {bug['points']}"])
        rows += [found] if asks else []
    if writes:
        planted.write("llama", "llama.cpp", engines.version(os.path.join(work, "untouched.safetensors")), rows,
                      model="synthetic:tiny", tokens="random:50,seed=7")
    wrong = planted.differences("llama", rows)
    tap.report(not wrong, f"{len(rows)} of them are named as the book's kill table says", wrong)


def facts(tap, python, *models):
    ran = engines.command([python, os.path.join(HERE, "interop_llama_bugs.py"), "--facts", *models])
    if not tap.report(ran.returncode == 0, "llama.cpp is asked for facts", ran.stderr.splitlines()[-4:]):
        return
    found = json.loads(ran.stdout.splitlines()[-1])
    tap.report(found["same logits"], "watching every node leaves the logits the same bits")
    ratio = found["keys after shifts"]
    size = 1.3465735902799727  # 0.1 ln 32 + 1
    # A shift rounds to float32 a logarithm, its product with 0.1, a sum, that sum's factors and the key's product.
    most = 9 * 2.0**-24
    tap.report(all(abs(r / size ** (i + 1) - 1) <= most * (i + 1) for i, r in enumerate(ratio)),
               "each context shift multiplies keys that it does not move by the concentration", [str(ratio)])
    means = found["means"]
    narrow = {n: 2048 / n for n in (2048, 4096, 8192, 32768)}
    tap.report(all(means[f"{n} keys, {q} queries, 1 threads, f16"] == narrow[n] for n in narrow for q in (1, 8)),
               "flash attention of few queries: the mean of n ones is 2048 / n", [str(means)])
    tap.report(all(means[f"{n} keys, {what}"] == 1 for n in narrow for what in (
        "64 queries, 1 threads, f16", "1 queries, 1 threads, bf16")),
               "flash attention of 64 queries, or of a bf16 cache: it is 1", [str(means)])
    tap.report(means["4096 keys, 1 queries, 1 threads, f16"] != means["4096 keys, 1 queries, 2 threads, f16"],
               "and it depends on the number of threads", [str(means)])
    sums = found["narrow sums"]
    errors = [sums[n]["error"] for n in ("50", "500", "2000")]
    tap.report(errors == sorted(errors), "the error of A11 grows with the number of keys", [str(sums)])
    tap.report(all(each["unexplained"] * 1000 < each["error"] for each in sums.values()),
               "a kernel with float16 sums explains all but a thousandth of it", [str(sums)])
    tap.report(found["mean of 20 over 4096 keys"] == "inf", "the mean of 4096 values of 20 is inf", [str(found)])


REFUSALS = {
    "a library without the interface": ("ctypes.util.find_library('m')", "expected llama.cpp's C interface"),
    "a package that is not there": ("'/nowhere/libllama.so'", "cannot open shared object file"),
}
OTHER_LAYOUT = """
from sinkproof.adapters import _llama_c as c
for name, which in (("n_ctx", 1), ("use_extra_bufts", 0)):
    kept = dict(c.LAYOUTS)
    for version, both in kept.items():
        both = list(both)
        both[which] = [(n, k, 7 if n == name else d) for n, k, d in both[which]]
        c.LAYOUTS[version] = tuple(both)
    try:
        c.Library()
        print("opened")
    except c.TraceError as error:
        print("refused" if "expected the defaults of one of" in str(error) and "found" in str(error) else error)
    c.LAYOUTS.update(kept)
class Wrong(c.ctypes.Structure):
    _fields_ = [("at_0", c.ctypes.c_int64)] + c.Tensor._fields_
c.Tensor = Wrong
try:
    c.Library()
    print("opened")
except c.TraceError as error:
    print("refused" if "ggml_tensor" in str(error) else error)
"""


def refusals(tap, python):
    for what, (library, sentence) in REFUSALS.items():
        ran = engines.command([python, "-c", "import ctypes.util\nfrom sinkproof.adapters import _llama_c as c\n"
                               f"try: c.Library({library})\nexcept c.TraceError as error: print(error)"])
        tap.report(sentence in ran.stdout, f"refused: {what}", [ran.stdout, ran.stderr[-300:]])
    ran = engines.command([python, "-c", OTHER_LAYOUT])
    tap.report(ran.stdout.split() == ["refused"] * 3, "refused: parameters and tensors of another layout",
               [ran.stdout[-500:], ran.stderr[-500:]])


POINTS = "T0 A1 A2 A4 A10 A11 A12 A13 M1 M2 M3 M4 M5 M6 M8 M9 M10 M11 M12 F1 F2".split()


def drawn(draw):
    """An honest run: (model, --dense and --dequantize, n, the adapter's options, the policy that says what they do)."""
    model = draw.choice(["synthetic:tiny", "synthetic:tiny", "synthetic:doc/engines/mid.json"])
    model += f",seed={draw.randrange(4)}"
    made = ["--dense", draw.choice(["f32", "f16", "bf16", "q8_0"]), *(["--dequantize"] if draw.random() < 0.2 else [])]
    n, chunk = draw.choice([1, 2, 7, 9, 17, 40, 63, 64, 90, 150]), draw.choice([None, None, 1, 5, 30])
    options, sequences, policy = ["--threads", str(draw.choice([1, 2, 3]))], draw.choice([1, 1, 3]), "llama-cpp"
    options += ["--chunk", str(chunk)] if chunk else []
    options += ["--sequences", str(sequences), *(["--unified"] if draw.random() < 0.4 else [])] if sequences > 1 else []
    options += [word for word in ("--swa-small", "--no-repack") if draw.random() < 0.3]
    if draw.random() < 0.5:  # flash attention: another kernel from 64 queries on, keys of others between in one cache
        options, policy = [*options, "--flash"], "llama-cpp-flash"
        if "--unified" in options:
            policy += ",A5.q=f16?,A11.acc=f16?"
        elif min(chunk or n, n) >= 64:
            policy += ",A5.q=real,A11.acc=real"
    elif draw.random() < 0.3:
        cache = draw.choice(["f32", "bf16"])
        kept = "real" if cache == "f32" else cache
        options += ["--cache", cache]
        policy += "".join(f",{point}={kept}" for point in ("A5.q", "A5.k", "A11.weights", "A11.v"))
    if draw.random() < 0.5:
        options += ["--points", ",".join(point for point in POINTS if draw.random() < 0.6) or "A4"]
    return model, made, n, options, policy


def honest_runs(tap, python, work, runs, seed):
    """Runs that are drawn, and half of them half a trace: none may be called a bug."""
    draw, trace, found = random.Random(seed), os.path.join(work, "honest.safetensors"), []
    for _ in range(runs):
        model, made, n, options, policy = drawn(draw)
        path = os.path.join(work, re.sub(r"\W+", "-", f"{model} {' '.join(made)}") + ".gguf")
        if not os.path.exists(path):
            engines.command([engines.SINKPROOF, "synth", model, "--out", path, "--layout", "gguf", *made])
        tokens = f"random:{n},seed={draw.randrange(1000)}"
        ran = engines.command([python, "-m", "sinkproof.trace", "llama", path, "--out", trace, *options, "--tokens", tokens])
        code, report = (3, {}) if ran.returncode else engines.judged(path, trace, policy)
        words = " ".join([model, *made, "--tokens", tokens, *options])
        tap.report(code in (0, 4), f"llama.cpp honest: {words} --policy {policy}: exit {code}",
                   [ran.stderr[-300:], str(engines.points_of(report))])
        found.append({"run": words, "policy": policy, "verdict": report["results"][0]["verdict"] if report else "refused"})
    return found


def keep_honest(tap, python, work):
    runs, seed = int(os.environ.get("RUNS", "2" if engines.FEW else "12")), int(os.environ.get("SEED", "1"))
    found = honest_runs(tap, python, work, runs, seed)
    if os.environ.get("WRITE"):
        trace = os.path.join(work, "honest.safetensors")
        honest.write("llama", "llama.cpp", engines.version(trace), f"RUNS={runs} SEED={seed} python tests/audit/interop_llama.py",
                     found)


def more(tap, python, work):
    keep_honest(tap, python, work)
    refusals(tap, python)
    if engines.FEW:
        return
    tiny, mid = (written(work, model) for model in ("synthetic:tiny", "synthetic:doc/engines/mid.json,layers=2"))
    facts(tap, python, tiny, mid)
    formats(tap, python, work)
    plant(tap, python, work, tiny)


if __name__ == "__main__":
    sys.exit(engines.interop("llama", more))
