# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof sinks --trace FILE`: a trace without its model is measured as with it, to the last bit, where no window and
no weight is needed; each other metric is a dash; a trace of a stranger is refused with a sentence. 1 CPU second.
"""
import array
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from tap import Tap  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("SINKPROOF", "build/release/sinkproof"))


def sinkproof(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300, check=False)


def told(*words):
    ran = sinkproof("sinks", *words, "--json", "-")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["results"][0]


def written(path, tensors, n=3):
    """A trace of {name: shape}, all ones; of tokens and positions too."""
    out = {"tokens": ("I32", [n], array.array("i", range(n)).tobytes()), "positions": ("I32", [n], array.array("i", range(n)).tobytes())}
    for name, shape in tensors.items():
        count = 1
        for extent in shape:
            count *= extent
        out[name] = ("F64", shape, array.array("d", [1.0] * count).tobytes())
    path.write_bytes(checkpoints.safetensors(out, {"format": "sinkproof-trace-1"}))
    return path


def check_model(tap, work, model):
    path = work / "trace.safetensors"
    ran = sinkproof("run", model, "--tokens", "random:14", "--trace", path)
    assert ran.returncode == 0, ran.stderr
    whole, alone = told(model, path), told("--trace", path)
    same = [key for key in ("tokens", "sink", "sink_star", "sink_star_published", "T0", "F1") if whole[key] == alone[key]]
    layers = list(zip(whole["layers"], alone["layers"]))
    numbers = [a[key] == b[key] for a, b in layers for key in ("values", "keys", "A13", "M12", "A1", "M1", "sink_by_position", "mass_by_position")]
    heads = [(g, h) for a, b in layers for g, h in zip(a["heads"], b["heads"])]
    numbers += [g[key] == h[key] for g, h in heads for key in ("alpha", "sink", "mass", "alpha_star", "group")]
    tap.report(len(same) == 6 and all(numbers) and len(numbers) > 100, f"metric.sink {model}: {len(numbers)} numbers without the model, every bit")
    dashes = [h[key] for _, h in heads for key in ("alpha_1_seen", "bias", "intensity", "output", "share")]
    tap.report(not any(x is not None for x in dashes) and alone["sink_1_seen"] is None, "what needs a model is not there")
    full = [(g, h) for (a, b) in layers if a["window"] is None for g, h in zip(a["heads"], b["heads"])]
    tap.report(full and all(g[key] == h[key] for g, h in full for key in ("cosine_1", "cosine_others")) and full[0][1]["cosine_1"] is not None,
               "cosines of layers that see all keys are the same")
    text = sinkproof("sinks", "--trace", path).stdout
    tap.report("No model: layers and heads by the shapes" in text, "and the text says so")


def check_parts(tap, work):
    """Each metric with the points it needs, and no more."""
    for name, shape, key in (("00.A9", [2, 3, 4], "alpha"), ("00.A2.v", [3, 2, 4], "values"), ("00.M12", [3, 5], "M12"), ("00.A4.k", [3, 2, 4], "keys")):
        one = told("--trace", written(work / "one.safetensors", {name: shape}))
        layer = one["layers"][0]
        known = {"alpha": layer["heads"][0]["alpha"] is not None, "values": layer["values"][0]["first"] is not None,
                 "M12": layer["M12"] is not None, "keys": layer["keys"][0]["first"] is not None}
        tap.report([k for k, there in known.items() if there] == [key] and name[3:] not in one["missing"].split(", "), f"{name} alone gives {key}")
    both = told("--trace", written(work / "two.safetensors", {"00.A4.q": [3, 4, 2], "00.A4.k": [3, 2, 2]}))
    head = both["layers"][0]["heads"][0]
    tap.report(head["alpha"] is None and abs(head["cosine_1"] - 1) < 1e-15 and "A9" in both["missing"],
               "queries and keys give cosines and no weights: there may be a sink")


def check_bare(tap, work):
    """A10 in the place of A9: the same numbers but those of the sink's column, which are dashes."""
    path, bare = work / "trace.safetensors", work / "bare.safetensors"
    tensors, metadata = checkpoints.read(path)
    assert any(name.endswith("A10") for name in tensors)
    without = {name: tensor for name, tensor in tensors.items() if not name.endswith("A9")}
    bare.write_bytes(checkpoints.safetensors(without, metadata))
    whole, alone = told("--trace", path), told("--trace", bare)
    heads = [(g, h) for a, b in zip(whole["layers"], alone["layers"]) for g, h in zip(a["heads"], b["heads"])]
    tap.report(whole["sink"] == alone["sink"] and all(g["alpha"] == h["alpha"] and g["mass"] == h["mass"] for g, h in heads)
               and all(layer["weights"] == "A10" for layer in alone["layers"]), f"metric.sink A10 alone: the weights of {len(heads)} heads, every bit")
    tap.report(alone["sink_star"] is None is alone["sink_star_published"] and whole["sink_star"] is not None
               and all(h["alpha_star"] is None is h["sink"]["mean"] for _, h in heads), "the sink's weights are not there")
    ran = sinkproof("sinks", "--trace", bare, "--html", work / "bare.html")
    page = (work / "bare.html").read_text()
    tap.report(ran.returncode == 0 and "without the sink's (A10)" in ran.stdout and "No layer shows A9" in ran.stdout and "<svg" in page
               and "the sink's own column" not in page and "nan" not in page, "and the text and the page say no number of it", [ran.stderr])


def check_refusals(tap, work):
    for tensors, sentence in (({"00.A9": [2, 3, 4], "01.A9": [3, 3, 4]}, "tensor 01.A9: expected 2 in dimension 0"),
                              ({"00.A2.v": [3, 3, 4], "00.A9": [4, 3, 4]}, "expected"),
                              ({"T0": [3, 4]}, "expected points of a layer, found none"),
                              ({"600.M12": [3, 4]}, "expected points of a layer, found none"),
                              ({"00.M12": [2, 4]}, "00.M12"), ({"00.M99": [3, 4]}, "found none"),
                              ({"00.A9": [2, 3, 4], "00.X": [3]}, "00.X")):
        ran = sinkproof("sinks", "--trace", written(work / "bad.safetensors", tensors))
        tap.report(ran.returncode == 3 and sentence in ran.stderr and not ran.stdout, f"refused: {', '.join(tensors)}", [ran.stderr, str(ran.returncode)])
    (work / "text").write_text("no trace")
    for words, status in (((work / "text",), 3), ((work / "none",), 3), ((work / "bad.safetensors", "--quantise"), 2),
                          ((work / "bad.safetensors", "--tokens", "1"), 2), ((work / "bad.safetensors", "--list"), 2)):
        ran = sinkproof("sinks", "--trace", *words)
        tap.report(ran.returncode == status and ran.stderr and not ran.stdout, f"refused: {' '.join(map(str, words[1:])) or words[0].name}", [ran.stderr])


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for model in ("synthetic:tiny", "synthetic:tiny-llama", "synthetic:tiny-qwen3", "synthetic:tiny-gpt2"):
            check_model(tap, work, model)
            check_bare(tap, work)
        page = sinkproof("sinks", "--trace", work / "trace.safetensors", "--html", work / "page.html")
        tap.report(page.returncode == 0 and b"<svg" in (work / "page.html").read_bytes(), "and drawn on a page", [page.stderr])
        small = pathlib.Path(__file__).resolve().parents[1] / "vectors/openai-torch/small"
        whole, alone = told(small, small / "trace-bf16.safetensors"), told("--trace", small / "trace-bf16.safetensors")
        tap.report(whole["T0"] == alone["T0"] and all(a["M12"] == b["M12"] for a, b in zip(whole["layers"], alone["layers"])),
                   "a trace of another engine, with experts and without the router")
        check_parts(tap, work)
        check_refusals(tap, work)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
