# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What `truth` says of the bits that a run will lose: on drawn shapes of both architectures no run loses
more, nor less than half; what it asks for by itself is enough; what will not do is said before and after.
"""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
from tap import Tap  # noqa: E402

SINKPROOF = os.environ["SINKPROOF"]
SEED, SHAPES, FACTOR = 20, 12, 2


def truth(*words):
    done = subprocess.run([SINKPROOF, "truth", *map(str, words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def lost(*words):
    """(exit code, the entry on lost bits, standard error)."""
    code, out, told = truth(*words, "--json", "-")
    entries = json.loads(out)["results"] if out else []
    return code, next(e for e in entries if e.get("what") == "bits lost on the way"), told


def gpt_oss(draw):
    kv, layers = draw.choice([1, 2]), draw.randint(1, 5)
    return {"model_type": "gpt_oss", "hidden_size": draw.choice([32, 64, 96, 192]), "head_dim": draw.choice([8, 16, 32, 64]),
            "num_key_value_heads": kv, "num_attention_heads": kv * draw.choice([1, 2, 4]), "num_hidden_layers": layers,
            "intermediate_size": draw.choice([32, 64, 128]), "num_local_experts": 5, "num_experts_per_tok": 2,
            "vocab_size": 97, "sliding_window": 8, "rope_theta": 150000.0, "rms_norm_eps": 1e-5, "swiglu_limit": 7.0,
            "initial_context_length": 4096, "max_position_embeddings": 131072, "tie_word_embeddings": False,
            "layer_types": [("sliding_attention", "full_attention")[i % 2] for i in range(layers)],
            "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
                             "original_max_position_embeddings": 4096}}


def gpt2(draw):
    heads = draw.choice([2, 4, 8])
    return {"model_type": "gpt2", "n_embd": heads * draw.choice([8, 16]), "n_head": heads, "n_layer": draw.randint(1, 5),
            "n_inner": draw.choice([32, 64, 256]), "n_positions": 64, "vocab_size": 97, "layer_norm_epsilon": 1e-5,
            "activation_function": "gelu_new", "tie_word_embeddings": True}


def drawn_shapes(tap, folder):
    draw, most, least, unsound = random.Random(SEED), 0, 9, []
    for k in range(SHAPES):
        config = (gpt2 if k % 3 == 2 else gpt_oss)(draw)
        path = folder / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        code, e, _ = lost(f"synthetic:{path},seed={k + 1}", "--tokens", f"random:{draw.randint(1, 6)},seed={k + 1}")
        share = e["lost"] / e["measured"] if e["measured"] else 0
        most, least = max(most, share), min(least, share)
        sound = code in (0, 4) and e["ok"] and e["chosen"] and 1 <= share <= FACTOR
        if not sound or e["bits"] - e["measured"] < 64:
            unsound.append(f"{config}: {e}")
    tap.report(not unsound, f"{SHAPES} drawn shapes: estimated over measured loss from {least:.3f} to {most:.3f}, "
               f"bounds=1 and {FACTOR}, 64 bits and more are left", unsound)


def depth(tap):
    """30 layers: 256 bits lose everything on the way, what is chosen does not."""
    model = ("synthetic:tiny,layers=30", "--tokens", "1,2")
    code, out, _ = truth(*model)
    first = out.splitlines()[0]
    tap.report(code == 0 and first.startswith("640 bits, chosen here: 30 layers of this shape lose about "),
               "30 layers: the bits are chosen, and said first", [first, code])
    code, e, told = lost(*model, "--bits", 256)
    at = e["unknown_from_layer"]
    tap.report(code == 4 and not e["ok"] and not e["chosen"] and at is not None and e["bits_wanted"] == 640,
               f"30 layers at 256 bits: nothing known from layer {at} on, 640 bits wanted", [e])
    said = told.splitlines()
    tap.report(len(said) == 2 and "nothing may be certified from layer 13 on; --bits 640 would leave 64 or more" in said[0] and
               said[1].startswith(f"nothing is certified at the end of layer {at}:") and "--bits 640 would do (estimated)" in said[1],
               "30 layers at 256 bits: said before the run and after", said)
    code, e, told = lost(*model, "--bits", e["bits_wanted"])
    tap.report(code == 0 and e["ok"] and not told, "30 layers at the bits that were named: certified", [code, e, told])
    code, out, _ = truth(*model, "--bits", 256)
    lines = out.splitlines()
    tap.report(code == 4 and lines[0].startswith("256 bits: 30 layers") and lines[-1].startswith("nothing is certified at the end"),
               "30 layers at 256 bits: the same as text", lines)
    code, e, _ = lost("synthetic:tiny-gpt2", "--tokens", "1,2,3", "--bits", 34)
    tap.report(code == 4 and e["unknown_from_layer"] == 1 and e["bits_wanted"] == 256,
               "finite balls that all hold 0 say nothing: layer 1 of GPT-2 at 34 bits", [e])
    code, out, _ = truth("synthetic:tiny-gpt2,layers=30", "--tokens", "1,2")
    tap.report(code == 0 and out.startswith("640 bits, chosen here: 30 layers"), "30 layers of GPT-2", [out[:200], code])


def local(tap, folder):
    """With every layer's end traced only one layer at a time is enclosed; without, all of them."""
    model, trace = "synthetic:tiny,layers=30", folder / "t.safetensors"
    for points, layers in (("", 1), ("F2", 30)):
        words = [SINKPROOF, "run", model, "--tokens", "1,2", "--policy", "f32", "--engine", "ref", "--trace", str(trace)]
        subprocess.run(words + (["--points", points] if points else []), capture_output=True, check=True)
        code, e, _ = lost(model, "--local", trace)
        tap.report(e["layers"] == layers and e["ok"] and e["bits"] == (256 if layers == 1 else 640),
                   f"--local, a trace of {points or 'all points'}: {e['layers']} untraced in a row, {e['bits']} bits", [code, e])


def said_first(*words):
    """The first line, which stands there before the run; the run is not waited for."""
    with subprocess.Popen([SINKPROOF, "truth", *words], stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        process.kill()
    return line


def chapter(tap):
    """The table of chapter 12: what is estimated is what the command says, what was measured is not more, and
    is measured again where a run is short."""
    text = (pathlib.Path(__file__).parents[2] / "doc/12-truth.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(synthetic:\S+)` \| `(\S+)` \| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) \|$", text, re.M)
    off, again = [], 0
    for model, tokens, layers, bits, estimated, measured in rows:
        plural = ("layer", "loses") if layers == "1" else ("layers", "lose")
        wanted = f"{bits} bits, chosen here: {layers} {plural[0]} of this shape {plural[1]} about {estimated} of them, "
        line = said_first(model, "--tokens", tokens)
        if not line.startswith(wanted) or not float(measured) <= float(estimated) <= FACTOR * float(measured):
            off.append(f"{model}: {line}")
        if "tiny" in model and "random" not in tokens:
            found, again = lost(model, "--tokens", tokens)[1]["measured"], again + 1
            if f"{found:.1f}" != measured:
                off.append(f"{model}: {found}")
    tap.report(len(rows) >= 10 and not off, f"chapter 12: {len(rows)} rows, {again} of them measured again", off)
    line = said_first("synthetic:gpt-oss-20b", "--tokens", "1,2", "--bits", "256")
    tap.report(line.startswith("256 bits: 24 layers of this shape lose about 701 of them (estimated): nothing may be certified from "
                               "layer 8 on; --bits 768 would leave 64 or more"), "24 layers of the 20b shape at 256 bits", [line])
    six, seven = (said_first(f"synthetic:gpt-oss-20b,layers={n}", "--tokens", "1,2") for n in (6, 7))
    tap.report(six.startswith("256 bits") and seven.startswith("320 bits"), "256 bits are chosen for six layers of it", [six, seven])


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        drawn_shapes(tap, pathlib.Path(folder))
        local(tap, pathlib.Path(folder))
    depth(tap)
    chapter(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
