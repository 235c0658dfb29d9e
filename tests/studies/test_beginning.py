# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Tokens behind a beginning: bos+ by what the model's own files say, and ids and + by themselves; what is refused."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/shared"))
from checkpoints import read_f64  # noqa: E402
from gguf_file import U32, Gguf  # noqa: E402
from tap import Tap  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("SINKPROOF", "build/release/sinkproof"))

# The adapters' own module, without the package, which needs more than Python has.
sys.modules["sinkproof"], sys.modules["sinkproof._trace"] = types.ModuleType("sinkproof"), types.ModuleType("sinkproof._trace")
sys.modules["sinkproof._trace"].TraceError = ValueError
spec = importlib.util.spec_from_file_location("_tokens", ROOT / "audit/python/sinkproof/adapters/_tokens.py")
_tokens = importlib.util.module_from_spec(spec)
spec.loader.exec_module(_tokens)
parse_tokens = _tokens.parse_tokens


def sinkproof(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300, check=False)


def logits(work, model, tokens):
    """The last layer's output: equal for equal tokens, and for no others."""
    path = work / "trace.safetensors"
    ran = sinkproof("run", model, "--tokens", tokens, "--trace", path)
    return read_f64(path)["F1"] if ran.returncode == 0 else ran.stderr


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        repeated = parse_tokens("repeat:3,seed=4", 211)
        want = logits(work, "synthetic:tiny", "9,5," + ",".join(map(str, repeated)))
        tap.report(logits(work, "synthetic:tiny", "9,5+repeat:3,seed=4") == want != logits(work, "synthetic:tiny", "repeat:5,seed=4"),
                   "9,5+repeat:3 is 9, 5 and three times the token of repeat:3")
        tap.report(parse_tokens("9,5+repeat:3,seed=4", 211) == [9, 5, *repeated], "and so for the adapters")

        sinkproof("synth", "synthetic:tiny", "--out", work / "hf")
        config = json.loads((work / "hf/config.json").read_text(encoding="utf-8"))
        (work / "hf/config.json").write_text(json.dumps({**config, "bos_token_id": 7}), encoding="utf-8")
        path = work / "tiny.gguf"
        sinkproof("synth", "synthetic:tiny", "--out", path, "--layout", "gguf")
        file = Gguf(path)
        file.keys["tokenizer.ggml.bos_token_id"] = (U32, 11)
        file.write(path)
        for model, bos in ((work / "hf", 7), (path, 11)):
            tap.report(logits(work, model, "bos+random:4") == logits(work, model, f"{bos}+random:4") != logits(work, model, "8+random:4"),
                       f"bos+ is the {bos} that {model.name} names")
        for model, words, sentence in (("synthetic:tiny", "bos+random:4", "expected a bos_token_id below 211 for bos+, found none"),
                                       ("synthetic:tiny", "1+2+random:4", "expected one beginning, found two"),
                                       ("synthetic:tiny", "211+random:4", "token id 211: expected 0 to 210"),
                                       ("synthetic:tiny", "1+", "expected token ids, found none"),
                                       ("synthetic:tiny", "1+random:0", "expected random:N")):
            ran = sinkproof("run", model, "--tokens", words)
            tap.report(ran.returncode == 3 and sentence in ran.stderr, f"{words} is refused: {sentence}", [ran.stderr])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
