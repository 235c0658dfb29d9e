# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The lecture's measurements on a trained model: `make lecture`, by the command `sinkproof sinks`.

    python3 tests/studies/lecture_study.py [--model FILE] [--out FILE] [--jobs N] [--texts N]

Natural texts are six licences that Debian's base-files has and six chapters of the book, code is six files of ref/.
The fast path runs in float32; the metrics are computed from its states in binary64. The numbers of every text are kept in
doc/book/data/lecture.json. From them tests/gates/doc_lecture.py makes the tables, the intervals and the verdict on each
claim.
"""
import argparse
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from json.encoder import encode_basestring

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/gates"), str(ROOT / "tests/shared")]
import checkpoints  # noqa: E402
import doc_lecture  # noqa: E402

PROGRAM = os.environ.get("SINKPROOF") or str(ROOT / "build/release/sinkproof")
LICENCES = pathlib.Path("/usr/share/common-licenses")
FAMILIES = ("Apache-2.0", "Artistic", "CC0-1.0", "GFDL-1.3", "GPL-1", "GPL-2", "GPL-3", "LGPL-2.1", "MPL-1.1", "MPL-2.0")
CHAPTERS = ("01", "06", "11", "12", "14", "15", "17", "18", "21", "27")
CODE = ("attention", "config", "forward", "loop", "mask", "metrics", "policy", "qkv", "rope", "softmax_sink", "swiglu",
        "values", "rmsnorm", "router", "session")
PAD, PADS, CHANGED, WORD = "<|im_end|>", 4, 16, " best"
SENTENCE = "The capital of France is Paris, and the capital of Italy is Rome."  # of the maps that the book shows


# ---- texts

def prose(page):
    """A chapter's sentences: without code, formulas, tables, headings and marks."""
    text = re.sub(r"^```.*?^```$|\$\$.*?\$\$|<!--.*?-->", "", page, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if not re.match(r"[#|!>]|\s*[-*\d]+[.)]? ", line)]
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|eq\[[^\]]*\]", r"\1", " ".join(lines))
    return re.sub(r"\s+", " ", re.sub(r"\$[^$]*\$|[`*]", "", text)).strip()


def middle(text):
    """From the first sentence of the second third on: a beginning is a title, and known by heart."""
    at = text.find(". ", len(text) // 3)
    return text[at + 2:]


def texts(count):
    """[(kind, name, text)]."""
    found = [("prose", f"common-licenses/{name}", middle(re.sub(r"\s+", " ", (LICENCES / name).read_text(errors="replace"))))
             for name in FAMILIES if (LICENCES / name).is_file()][:count // 2]
    pages = [next((ROOT / "doc").glob(f"{number}-*.md")) for number in CHAPTERS]
    found += [("prose", f"doc/{page.name}", middle(prose(page.read_text(encoding="utf-8")))) for page in pages][:count - len(found)]
    files = [ROOT / f"ref/{name}.c" for name in CODE if (ROOT / f"ref/{name}.c").is_file()]
    return found + [("code", f"ref/{file.name}", file.read_text(encoding="utf-8").split("\n\n", 1)[1]) for file in files][:count // 2]


# ---- the command

def command(*words):
    ran = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(ran.stderr)
    return ran.stdout


def ids_of(model, strings):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as lines:
        lines.write("".join(encode_basestring(s) + "\n" for s in strings))
        lines.flush()
        out = command("tokens", model, "--lines", lines.name)
    return [[int(i) for i in line.split(",") if i] for line in out.splitlines()]


def sinks(model, inputs, *words):
    asked = [word for text in inputs for word in ("--tokens", text)]
    out = command("sinks", model, "--engine", "fast", "--threads", "1", *asked, *words, "--json", "-")
    return json.loads(out)["results"]


def said(ids):
    return ",".join(map(str, ids))


# ---- the kept numbers of a census

def rounded(x):
    return None if x is None else float(f"{x:.6g}")


def shares(census):
    """The share of the heads, in percent, with a sink at the first token, for each epsilon; for 0.3 also the largest such
    share at one of the tokens 2 to 10, and its token."""
    heads = [h["alpha"] for layer in census["layers"] for h in layer["heads"]]

    def share(k, epsilon):
        return 100 * sum(alpha[k] > epsilon for alpha in heads) / len(heads)
    later = [share(k, 0.3) for k in range(1, len(heads[0]))]
    return {**{str(e): rounded(share(0, e)) for e in doc_lecture.EPSILONS}, "later": rounded(max(later)),
            "at": later.index(max(later)) + 2}


def layers(census):
    """For each layer the lecture's numbers of states, values, keys and directions, in the order of doc_lecture.STATE ..."""
    out = []
    for layer in census["layers"]:
        state = layer["M12"]
        drains = [[g["first"] / g["median"] for g in layer[kind]] for kind in ("values", "keys")]
        out.append([state["largest"], state["token"], state["coordinate"], state["ratio"],
                    state["first_norm"] / state["other_norm"], layer["A1"]["before"], layer["A1"]["after"],
                    statistics.fmean(drains[0]), statistics.fmean(drains[1]),
                    statistics.fmean(h["cosine_1"] for h in layer["heads"]),
                    statistics.fmean(h["cosine_others"] for h in layer["heads"])])
    return [[rounded(x) for x in row] for row in out]


def firsts(census):
    return [rounded(h["alpha"][0]) for layer in census["layers"] for h in layer["heads"]]


def pad_shares(census):
    """The share of heads, in percent, with a sink at the first pad, at the first token of the text, and at the pads together."""
    heads = [h["alpha"] for layer in census["layers"] for h in layer["heads"]]
    each = [(alpha[0], alpha[PADS], sum(alpha[:PADS])) for alpha in heads]
    return [rounded(100 * sum(x > 0.3 for x in column) / len(heads)) for column in zip(*each)]


# ---- the measurements

def run_inputs(model, n, bos, natural, count):
    first, drawn = ("bos+", n - 1) if bos else ("", n)
    kinds = {"natural": [first + said(ids[:drawn]) for ids in natural],
             "random": [f"{first}random:{drawn},seed={s}" for s in range(count)],
             "repeated": [f"{first}repeat:{drawn},seed={s}" for s in range(count)]}
    inputs = [text for texts_of in kinds.values() for text in texts_of]
    census = iter([r for r in sinks(model, inputs) if "layers" in r])
    told = {}
    for kind, texts_of in kinds.items():
        each = [next(census) for _ in texts_of]
        told[kind] = [shares(c) for c in each]
        if n == doc_lecture.LENGTH and not bos:
            told[f"{kind} layers"] = [layers(c) for c in each]
            told[f"{kind} firsts"] = [firsts(c) for c in each]
    return told


def run_perturb(model, natural, word):
    out = [r for r in sinks(model, [said(ids[:doc_lecture.LENGTH]) for ids in natural], "--perturb", f"{CHANGED}:{word}") if "perturbed" in r]
    later = [[rounded(statistics.fmean(r["states"][-1]["relative"][CHANGED + 1:])), rounded(r["states"][-1]["relative"][-1])] for r in out]
    return [{"as it is": a, "first hidden": b} for a, b in zip(later[::2], later[1::2])]


def run_strategies(model, ids):
    first, recent, n = doc_lecture.CACHE
    out = [r for r in sinks(model, [said(ids[:n])], "--strategies", f"{first},{recent}") if "strategy" in r]
    told = {r["strategy"]: {"loss": rounded(r["whole"]["loss"]), "state": rounded(r["whole"]["state"]),
                            **{k: rounded(r["attention"][k]) for k in ("relative", "bound", "row_bound", "vacuous")}} for r in out}
    return {"full": {"loss": rounded(out[0]["whole"]["full_loss"])}, **told}


def run_outliers(model, natural):
    out = [r for r in sinks(model, [said(ids[:doc_lecture.LENGTH]) for ids in natural], "--quantise") if "outliers" in r and not r["hidden"]]
    told = {}
    for r in out:
        most = told.setdefault(r["outliers"], {}).setdefault(r["point"], {})
        for key in ("most", "per_tensor", "rest_per_tensor", "per_token", "rest_per_token"):
            most[key] = max(most.get(key, 0), rounded(r[key]))
    return [*told.values()]


def softmax(scores):
    most = max(scores)
    exponentials = [math.exp(s - most) for s in scores]
    return [e / sum(exponentials) for e in exponentials]


def run_maps(model, told):
    """Of the sentence: the maps of the heads that give the first token most and least on the texts of prose."""
    means = [statistics.fmean(each) for each in zip(*told["inputs"][str(doc_lecture.LENGTH)]["natural firsts"])]
    layers = len(told["inputs"][str(doc_lecture.LENGTH)]["natural layers"][0])
    columns, maps = len(means) // layers, []
    words = [json.loads(line.split(None, 1)[1]) for line in command("tokens", model, "--text", SENTENCE, "--pieces").splitlines()]
    for at in (means.index(max(means)), means.index(min(means))):
        layer, head = divmod(at, columns)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.safetensors"
            command("run", model, "--engine", "fast", "--text", SENTENCE, "--points", f"{layer:02}.A4.q,{layer:02}.A4.k", "--trace", path)
            tensors, _ = checkpoints.read(path)
        (kind, (n, heads, d), q), (_, (_, groups, _), k) = (tensors[f"{layer:02}.A4.{name}"] for name in "qk")
        q, k = checkpoints.numbers_of(kind, q), checkpoints.numbers_of(kind, k)
        rows = [softmax([sum(q[(i * heads + head) * d + c] * k[(j * groups + head * groups // heads) * d + c] for c in range(d)) / math.sqrt(d)
                         for j in range(i + 1)]) for i in range(n)]
        maps.append({"layer": layer, "head": head, "mean": rounded(means[at]), "alpha": [[rounded(x) for x in row] for row in rows]})
    return {"words": words, "heads": maps}


def measure(model, count, jobs):
    found = texts(count)
    natural_texts, code_texts = ([t for t in found if t[0] == kind] for kind in ("prose", "code"))
    ids = ids_of(model, [text for _, _, text in found] + [WORD, PAD])
    natural, code, (word,), (pad,) = ids[:len(natural_texts)], ids[len(natural_texts):-2], ids[-2], ids[-1]
    short = [name for (kind, name, _), i in zip(found, ids) if len(i) < (max(doc_lecture.LENGTHS) if kind == "prose" else doc_lecture.LENGTH)]
    if short:
        sys.exit(f"expected texts of {max(doc_lecture.LENGTHS)} tokens, and code of {doc_lecture.LENGTH}, found fewer in {', '.join(short)}")
    n, cut = doc_lecture.LENGTH, lambda texts_of: [said(i[:doc_lecture.LENGTH]) for i in texts_of]
    told = {"texts": [[kind, name, hashlib.sha256(text.encode()).hexdigest()[:16]] for kind, name, text in found]}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        inputs = {(length, b): pool.submit(run_inputs, model, length, b, natural, count // 2)
                  for length in reversed(doc_lecture.LENGTHS) for b in (False, True)}
        caches = [pool.submit(run_strategies, model, i) for i in natural]
        others = {"code": pool.submit(sinks, model, cut(code)),
                  "padded": pool.submit(sinks, model, [said(PADS * [pad] + i[:n]) for i in natural]),
                  "masked": pool.submit(sinks, model, [said(PADS * [pad] + i[:n]) for i in natural], "--hide", f"{PADS}@{PADS}"),
                  "hidden": pool.submit(sinks, model, cut(natural), "--hide", "1@2"),
                  "perturb": pool.submit(run_perturb, model, natural, word),
                  "outliers": pool.submit(run_outliers, model, natural)}
        told["inputs"] = {f"{length}{' bos' if b else ''}": job.result() for (length, b), job in inputs.items()}
        told["caches"] = [job.result() for job in caches]
        told |= {name: others[name].result() for name in ("perturb", "outliers")}
        census = {name: [r for r in others[name].result() if "layers" in r] for name in ("code", "padded", "masked", "hidden")}
    told["code firsts"] = [firsts(c) for c in census["code"]]
    told["code"] = [shares(c) for c in census["code"]]
    told |= {name: [pad_shares(c) for c in census[name]] for name in ("padded", "masked")}
    told["hidden"] = [shares(c) for c in census["hidden"]]
    told["maps"] = run_maps(model, told)
    return told


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="build/models/smollm2.gguf")
    parser.add_argument("--out", default=str(ROOT / doc_lecture.KEPT))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--texts", type=int, default=12)
    asked = parser.parse_args()
    told = measure(asked.model, asked.texts, asked.jobs)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = {"model": pathlib.Path(asked.model).name, "fingerprint": doc_lecture.fingerprint(command("info", asked.model)),
            "cpu_seconds": round(used.ru_utime + used.ru_stime), **told}
    path = pathlib.Path(asked.out)
    fresh = path.with_suffix(".new")
    fresh.write_text("{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in told.items()) + "\n}\n", encoding="utf-8")
    os.replace(fresh, path)
    print("\n".join(doc_lecture.summary(told)))


if __name__ == "__main__":
    main()
