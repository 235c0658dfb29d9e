# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""SmolLM2-135M-Instruct, a trained model: its tokens, its answer, and transformers' run of it, judged.

    make smollm2 && WHOLE=1 build/venv/bin/python tests/audit/interop_smollm2.py

Hugging Face transformers reads the same GGUF file by code of its own (the package `gguf` unpacks the weights, and
the rows of queries and keys are put back), and the tokenizer is built once more from the file's lists. 48 tokens and
2,000 strings; with WHOLE=1 600 tokens and 100,000 strings.
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile
from json.encoder import encode_basestring

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "audit" / "python"), str(ROOT / "tests" / "shared")]
from tap import Tap  # noqa: E402

PROGRAM = os.environ.get("SINKPROOF") or str(ROOT / "build/release/sinkproof")
MODEL = ROOT / "build" / "models" / "smollm2.gguf"
WHOLE = bool(os.environ.get("WHOLE"))
STRINGS, TOKENS = (100000, 600) if WHOLE else (2000, 48)
TEXT = ROOT / "LICENSE"


def sinkproof(*words):
    ran = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def lists(key):
    """A list of strings or numbers of the file, as the package gguf reads it."""
    import gguf
    field = gguf.GGUFReader(str(MODEL)).fields["tokenizer.ggml." + key]
    return [field.parts[i].tobytes().decode() if field.types[-1] == gguf.GGUFValueType.STRING else int(field.parts[i][0])
            for i in field.data]


def tokenizer_of_lists():
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    tokens, kinds, merges = lists("tokens"), lists("token_type"), lists("merges")
    made = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, [tuple(merge.split(" ")) for merge in merges]))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                  pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.add_special_tokens([AddedToken(token, normalized=False) for token, kind in zip(tokens, kinds) if kind == 3])
    return made


def drawn_strings(seed=5):
    draw, words = random.Random(seed), TEXT.read_text().split()
    pieces = ["  ", "\n", "\t", " ", "12", "3", "½", "Ⅷ", "٣", "a", "'s", "don't", "é", "<|im_start|>", "<|im_end|>", "!!", "…",
              "\u00a0", "\u3000"]

    def characters(n):
        return "".join(chr(draw.choice([draw.randint(0, 127), draw.randint(0, 0x24f), draw.randint(0x370, 0xd7ff),
                                        draw.randint(0xe000, 0x1ffff)])) for _ in range(n))
    for i in range(STRINGS):
        if i % 3 == 0:
            yield " ".join(draw.choice(words) for _ in range(draw.randint(1, 12)))
        elif i % 3 == 1:
            yield characters(draw.randint(1, 24))
        else:
            yield "".join(draw.choice(pieces) for _ in range(draw.randint(1, 16)))


def same_tokens(tap, work):
    strings = list(drawn_strings())
    lines = work / "lines"
    lines.write_text("".join(encode_basestring(s) + "\n" for s in strings), encoding="utf-8")
    status, out, told = sinkproof("tokens", MODEL, "--lines", lines)
    ours = [[int(i) for i in line.split(",") if i] for line in out.splitlines()]
    theirs = [one.ids for one in tokenizer_of_lists().encode_batch(strings, add_special_tokens=False)]
    differ = [(s, a, b) for s, a, b in zip(strings, ours, theirs) if a != b]
    tap.report(status == 0 and len(ours) == len(theirs) and not differ,
               f"smollm2: the ids of tokenizers, {len(strings)} strings, worst={len(differ)} bound=0", [told, *differ[:3]])


def same_prompt(tap):
    """The file's chat template, rendered here and by transformers."""
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(str(MODEL.parent), gguf_file=MODEL.name)
    message = "What is the capital of France?"
    theirs = tokenizer.apply_chat_template([{"role": "user", "content": message}], add_generation_prompt=True, return_dict=False)
    status, out, told = sinkproof("tokens", MODEL, "--prompt", message)
    tap.report(status == 0 and [int(i) for i in out.split(",")] == theirs, f"smollm2: transformers renders a prompt as the same {len(theirs)} ids",
               [out, theirs, told])


def an_answer(tap):
    status, out, told = sinkproof("run", MODEL, "--engine", "fast", "--text", "The capital of France is", "--generate", 1)
    tap.report(status == 0 and 'generated text: " Paris"' in out, "smollm2: the capital of France is Paris", [out[-300:], told[-300:]])


def judged(tap):
    import sinkproof as package
    import torch
    from transformers import AutoModelForCausalLM
    _, out, _ = sinkproof("tokens", MODEL, "--text", TEXT.read_text()[:6000])
    ids = [int(i) for i in out.split(",")][:TOKENS]
    model = AutoModelForCausalLM.from_pretrained(str(MODEL.parent), gguf_file=MODEL.name, dtype=torch.float32,
                                                 attn_implementation="eager")
    with torch.no_grad(), package.trace(model) as trace:
        model(torch.tensor([ids]))
    said = package.judge(package.Model(str(MODEL)), trace.sequences[0], "f32", local=True, diagnosis=False)
    tap.report(said.verdict == "within" and len(ids) == TOKENS,
               f"smollm2: transformers' run of {TOKENS} tokens in float32 is within f32", [said.verdict, said.first])
    with torch.no_grad():
        model.model.layers[7].self_attn.o_proj.weight.mul_(1.01)
    with torch.no_grad(), package.trace(model) as trace:
        model(torch.tensor([ids[:16]]))
    said = package.judge(package.Model(str(MODEL)), trace.sequences[0], "f32", local=True, diagnosis=False)
    tap.report(said.verdict == "bug" and said.first == "07.A12", "smollm2: one per cent more at one projection is convicted there",
               [said.verdict, said.first])


def main():
    tap = Tap()
    if not MODEL.exists():
        tap.skip("smollm2", "build/models/smollm2.gguf is not there: make smollm2 brings it")
        return tap.done()
    with tempfile.TemporaryDirectory() as folder:
        same_tokens(tap, pathlib.Path(folder))
    same_prompt(tap)
    an_answer(tap)
    judged(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
