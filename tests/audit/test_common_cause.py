# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""One cause of several findings is told once: windows on the other layers are too wide in some and too narrow in the
rest, which is one mistake. Two mistakes that share nothing are told apart. A factor that is another in each layer is
said to follow a rule of the layer's number where the rule's factors explain every layer, and only then."""
import array
import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

FULL, SLIDING = "full_attention", "sliding_attention"


def judged(work, name, types, without_sinks=False):
    """The diagnosis of a run of the tiny model with other windows, and without the sinks of layer 1: text and findings."""
    copy, trace = work / name, work / f"{name}.safetensors"
    sinkproof("synth", "synthetic:tiny", "--out", str(copy))
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    (copy / "config.json").write_text(json.dumps(config | {"layer_types": types}), encoding="utf-8")
    if without_sinks:
        tensors, metadata = checkpoints.read(copy / "model.safetensors")
        sinks = "model.layers.1.self_attn.sinks"
        dtype, shape, raw = tensors[sinks]
        tensors[sinks] = dtype, shape, b"\x80\xff" * (len(raw) // 2)
        (copy / "model.safetensors").write_bytes(checkpoints.safetensors(tensors, metadata))
    sinkproof("run", str(copy), "--tokens=random:12,seed=3", "--trace", str(trace))
    status, text, told = sinkproof("judge", "--any-model", "--policy=real-f64", "--json", str(work / "json"),
                                   "synthetic:tiny", str(trace))
    found = json.loads((work / "json").read_text(encoding="utf-8"))
    report(status == 1, f"{name} is a bug", told.splitlines())
    return re.sub(r"\s+", " ", text), next(r["diagnosis"] for r in found["results"] if "diagnosis" in r)


def exchanged(work):
    text, found = judged(work, "exchanged", [FULL, SLIDING, FULL, SLIDING])
    first = {(tuple(f["mistakes"]), f["common"]) for f in found}
    report(len(found) == 2 and first == {(("window-parity",), 1)}, "one cause, first in each finding", [found])
    report("A9, A10, A11 of layers 0, 2; A9 of layers 1, 3: explained, every element is inside by the layers with a window "
           "and those without are exchanged [window-parity] (other mistakes explain some of these points, not all)" in text
           and text.count("[window-parity]") == 1 and "window-double" not in text, "it is told once", [text[-900:]])


def apart(work):
    text, found = judged(work, "apart", [FULL, FULL, FULL, FULL], without_sinks=True)
    said = sorted((f["mistakes"][0], f["common"]) for f in found)
    report(len(found) == 2 and said[0][0].startswith("sink-") and said[1][0].startswith("window-")
           and {common for _, common in said} == {None}, f"two mistakes have no common cause: {said}", [found])
    report("; A9" not in text and "not all)" not in text, "and are told apart", [text[-900:]])


def factors(work):
    """The output projection of each layer, times a number, in float32: which rules are said."""
    for name, of, rules in (
        ("1/(l + 1)", (1, 1 / 2, 1 / 3, 1 / 4), {"1/(l + 1)"}),
        ("2^-l", (1, 1 / 2, 1 / 4, 1 / 8), {"2^-l"}),
        ("no rule", (1, 1 / 2, 0.3, 1 / 4), set()),
        ("nearly 1/(l + 1)", (1, 1 / 2, 0.3336, 1 / 4), set()),  # less than a thousandth away
        ("a rule that is not 1 where the point is inside", (1, 1, 1 / 3, 1 / 4), set()),
    ):
        copy, trace = work / "factors", work / "factors.safetensors"
        shutil.rmtree(copy, ignore_errors=True)
        sinkproof("synth", "synthetic:tiny", "--out", str(copy))
        tensors, metadata = checkpoints.read(copy / "model.safetensors")
        for layer, factor in enumerate(of):
            for part in ("weight", "bias"):
                key = f"model.layers.{layer}.self_attn.o_proj.{part}"
                _, shape, raw = tensors[key]
                scaled = array.array("f", [x * factor for x in array.array("f", checkpoints.as_float32(raw))])
                tensors[key] = "F32", shape, scaled.tobytes()
        (copy / "model.safetensors").write_bytes(checkpoints.safetensors(tensors, metadata))
        sinkproof("run", str(copy), "--tokens=random:12,seed=5", "--policy=f32", "--trace", str(trace))
        _, text, told = sinkproof("judge", "--any-model", "synthetic:tiny", str(trace), "--policy=f32", "--local")
        flat = re.sub(r"\s+", " ", text)
        said = re.findall(r"depends on the layer: it is ([^\[]*) \[", flat)
        named = flat.count("A12 is multiplied by")
        good = {rule for each in said for rule in each.split(" or ")} == rules and named == sum(f != 1 for f in of)
        report(good and (not rules or len(said) == named), f"factors {name}: {said}", [text[-1500:], told])


if __name__ == "__main__":
    sys.exit(checkpoints.run(exchanged, apart, factors))
