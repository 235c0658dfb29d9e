# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What a stranger's files may hold: weights that are no numbers, keys of config.json that are absent
or unknown, a trace whose indices are 64-bit. Each is read, or named and refused with exit 3.
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

CONFIG = checkpoints.STATED | checkpoints.SMALL
TOKENS = "1,2,3,4,5,6,7"


def poked(weights, name, at, bits):
    """The weights with element `at` of a tensor replaced."""
    dtype, shape, data = weights[name]
    return weights | {name: (dtype, shape, data[:2 * at] + struct.pack("<H", bits) + data[2 * at + 2:])}


def values(work):
    """Infinities and NaN: listed by info, refused by all that would compute with them."""
    weights = checkpoints.weights(CONFIG)
    good, trace, left = checkpoints.write(work / "good", weights, CONFIG), str(work / "trace"), work / "left"
    sinkproof("run", good, "--tokens", TOKENS, "--trace", trace, "--policy", "f32")
    for name, at, bits, said in (
            ("model.embed_tokens.weight", 3 * 32 + 5, 0x7fc0, "expected finite numbers, found NaN at (3, 5)"),
            ("lm_head.weight", 0, 0xff80, "expected finite numbers, found -infinity at (0, 0)"),
            ("model.layers.1.self_attn.sinks", 2, 0x7f80, "found infinity at (2)"),
            ("model.layers.0.mlp.experts.down_proj", 32 * 32, 0x7f80, "found infinity at (1, 0, 0)")):
        model = checkpoints.write(work / "bad", poked(weights, name, at, bits), CONFIG)
        for words in (["run", model, "--tokens", "1", "--trace", str(left)], ["judge", model, trace],
                      ["run", model, "--tokens", "1", "--engine", "fast"], ["truth", model, "--tokens", "1"],
                      ["synth", model, "--layout", "hf", "--out", str(left)]):
            status, _, told = sinkproof(*words)
            named = "bad/model.safetensors" in told and f"tensor {name}" in told and said in told
            report(status == 3 and named and not left.exists(),
                   f"model.config {words[0]} refuses: exit {status}, {told[-160:]}")
        status, out, told = sinkproof("info", model)
        report(status == 0 and name in out and said in out, f"model.config info lists {name}: exit {status} {told}")


def scales(work):
    """Scale byte 255 is no power of two: listed by info, refused by the others."""
    model, name = work / "mxfp4", "model.layers.1.mlp.experts.down_proj_scales"
    sinkproof("synth", "synthetic:tiny,layers=2", "--layout", "hf", "--out", str(model))
    tensors, meta = checkpoints.read(model / "model.safetensors")
    dtype, shape, data = tensors[name]
    tensors[name] = (dtype, shape, data[:-1] + b"\xff")
    (model / "model.safetensors").write_bytes(checkpoints.safetensors(tensors, meta))
    said = f"tensor {name}: expected scale bytes up to 254, found 255 (NaN) at (6, 95, 3) (1 in all)"
    for words in (["run", str(model), "--tokens", "1"], ["truth", str(model), "--tokens", "1"]):
        status, _, told = sinkproof(*words)
        report(status == 3 and said in told, f"model.config {words[0]} refuses: exit {status}, {told[-120:]}")
    status, out, _ = sinkproof("info", str(model))
    report(status == 0 and said in out and " 255 2^128 " in out, f"model.config info lists a scale byte of 255: exit {status}")


def no_sinks(work):
    """A sink of -infinity: a head without one, in every engine and for the judge."""
    model = checkpoints.write(work / "none", poked(checkpoints.weights(CONFIG), "model.layers.0.self_attn.sinks",
                                                   1, 0xff80), CONFIG)
    for engine in ("ref", "lanes", "fast"):
        trace = str(work / engine)
        ran = sinkproof("run", model, "--tokens", TOKENS, "--engine", engine, "--policy", "f32", "--trace", trace)
        judged = sinkproof("judge", model, trace, "--policy", "f32")
        report((ran[0], judged[0]) == (0, 0), f"{engine} without a sink: run {ran[0]}, judge {judged[0]}")
    status, out, _ = sinkproof("info", model)
    report(status == 0 and "1 of 4 sinks is -infinity: that head has none" in out, "model.config info says that a head has no sink")


def keys(work):
    """What config.json does not say is printed with the default; what is not known is refused."""
    weights = checkpoints.weights(CONFIG)
    stated = checkpoints.write(work / "stated", weights, CONFIG)
    told = {"layer_types": "alternating, sliding first"}
    line = [text for text in sinkproof("info", stated)[1].splitlines() if text.startswith("not stated")]
    report(line == ["not stated  layer_types alternating, sliding first (the published default of each)"],
           f"model.config info of what is stated but for {list(told)}: {line}")
    for key, said in (("rope_theta", "rope_theta 150000"), ("rms_norm_eps", "rms_norm_eps 1e-05"),
                      ("swiglu_limit", "swiglu_limit 7"), ("swiglu_alpha", "swiglu_alpha 1.702"),
                      ("rope_scaling", "rope_scaling yarn of factor 32 on 4096 positions")):
        less = {k: v for k, v in CONFIG.items() if k != key}
        model = checkpoints.write(work / "less", weights, less)
        status, out, _ = sinkproof("info", model)
        same = sinkproof("run", model, "--tokens", TOKENS)[1] == sinkproof("run", stated, "--tokens", TOKENS)[1]
        report(status == 0 and said in out and same, f"model.config without {key}: {said}, and the logits are those")
    for change, said in (({"quantization_config": {"quant_method": "gptq"}}, 'expected "quant_method" to be "mxfp4"'),
                         ({"rope_scaling": {"rope_type": "yarn", "factor": 32.0}}, "original_max_position_embeddings"),
                         ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 'expected "rope_type"')):
        model = checkpoints.write(work / "other", weights, CONFIG | change)
        status, _, told = sinkproof("run", model, "--tokens", "1")
        report(status == 3 and said in told and "other/config.json" in told, f"model.config exit {status}, {told[-170:]}")


def indices(work):
    """Tokens, positions and chosen experts as I64, what torch writes unless it is told otherwise."""
    trace = str(work / "trace")
    sinkproof("run", "synthetic:tiny", "--tokens", TOKENS, "--policy", "f32", "--trace", trace)
    tensors, meta = checkpoints.read(trace)

    def judged(**changed):
        wide = dict(tensors)
        for name, (dtype, shape, data) in tensors.items():
            if dtype != "I32":
                continue
            ids = list(struct.unpack(f"<{len(data) // 4}i", data))
            ids[-1] = changed.get(name, ids[-1])
            wide[name] = ("I64", shape, struct.pack(f"<{len(ids)}q", *ids))
        path = work / "wide"
        path.write_bytes(checkpoints.safetensors(wide, meta))
        return sinkproof("judge", "synthetic:tiny", str(path), "--policy", "f32")

    narrow, wide = sinkproof("judge", "synthetic:tiny", trace, "--policy", "f32"), judged()
    report(narrow[0] == wide[0] == 0 and narrow[1].splitlines()[1:] == wide[1].splitlines()[1:],
           f"trace I64 indices are judged as I32 are: exit {wide[0]} {wide[2]}")
    for name, value in (("tokens", 211), ("tokens", 2**32 + 1), ("tokens", -1), ("tokens", 2**63 - 1),
                        ("positions", 2**32 + 6), ("positions", 5)):
        status, _, told = judged(**{name: value})
        report(status == 3 and f"tensor {name}" in told and f" {value}" in told,
               f"trace {name} {value}: exit {status}, {told[-120:]}")


if __name__ == "__main__":
    sys.exit(checkpoints.run(values, scales, no_sinks, keys, indices))
