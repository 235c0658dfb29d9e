# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Writes the tokenizer of this folder in three formats: 256 bytes, and the merges below, chosen by hand.

    python3 tests/vectors/text/make.py
"""
import base64
import json
import pathlib

HERE = pathlib.Path(__file__).parent
MERGES = ["h e", "l l", "he ll", "hell o", "b c", "a b", "a a", "aa aa", "Ġ w", "o r", "l d", "Ġw or", "Ġwor ld", "' s",
          "Ġ Ġ", "ĠĠ ĠĠ", "Ċ Ċ", "Ã ©", "1 2", "12 3"]
SPECIAL = ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>", "<|end|><|start|>"]
LATE = "hello there"

PLAIN = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
ORDER = PLAIN + [b for b in range(256) if b not in PLAIN]
CHARACTERS = [chr(b) for b in PLAIN] + [chr(0x100 + i) for i in range(68)]

if __name__ == "__main__":
    tokens = CHARACTERS + [merge.replace(" ", "") for merge in MERGES]
    end = len(tokens)
    vocab = {token: i for i, token in enumerate(tokens)}
    lists = vocab | {"<|endoftext|>": end}
    added = [(end, "<|endoftext|>", False)] + [(end + 1 + i, word, False) for i, word in enumerate(SPECIAL + [LATE])]
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [
        {"id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": word == LATE,
         "special": word != LATE} for i, word, _ in added], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": lists, "merges": MERGES}}
    byte_of = {c: b for c, b in zip(CHARACTERS, ORDER)}
    (HERE / "tokenizer.json").write_text(json.dumps(whole, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    (HERE / "vocab.json").write_text(json.dumps(lists, ensure_ascii=False) + "\n", encoding="utf-8")
    (HERE / "merges.txt").write_text("#version: 0.2\n" + "".join(m + "\n" for m in MERGES), encoding="utf-8")
    (HERE / "ranks.tiktoken").write_text("".join(
        f"{base64.b64encode(bytes(byte_of[c] for c in token)).decode()} {i}\n" for i, token in enumerate(tokens)))
