# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The tokenizer inside a GGUF file: the same ids as from tokenizer.json, for each name of a pattern; what is refused.

The vocabulary is that of tests/vectors/text, in a file beside a model whose directory has none.
"""
import json
import os
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
from checkpoints import TAP, report, sinkproof  # noqa: E402
from gguf_file import ARRAY, TEXT, Gguf, text  # noqa: E402

I32 = 5
ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKENIZER = json.loads((ROOT / "tests" / "vectors" / "text" / "tokenizer.json").read_text())
TEXTS = ["hello there, it's   ABC 12345\n\n", "<|start|>user<|message|>don't 7<|end|>", "a  1 b\t22  ", "é€ 9", " 5", "4123", ""]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
TEMPLATE = ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nSAID<|im_end|>\n' }}"
            "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def split(pattern):
    return {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
        {**BYTE_LEVEL, "use_regex": False}]}


STEPS = {"gpt-2": BYTE_LEVEL, "llama-bpe": split(LLAMA3.replace("DIGITS", r"\p{N}{1,3}")),
         "qwen2": split(LLAMA3.replace("DIGITS", r"\p{N}")),
         "smollm": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL]}}


def strings(values):
    return struct.pack("<IQ", TEXT, len(values)) + b"".join(text(value) for value in values)


def keys_of(tokenizer, pre):
    """A vocabulary in the keys of GGUF: an id without a token becomes an unused one."""
    special = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    spelt = {i: token for token, i in tokenizer["model"]["vocab"].items()}
    ids = range(max(*special, *spelt) + 1)
    kinds = [3 if i in special else 1 if i in spelt else 5 for i in ids]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    return {"tokenizer.ggml.model": (TEXT, "gpt2"), "tokenizer.ggml.pre": (TEXT, pre),
            "tokenizer.ggml.tokens": (ARRAY, strings([special.get(i) or spelt.get(i) or f"[UNUSED{i}]" for i in ids])),
            "tokenizer.ggml.token_type": (ARRAY, struct.pack(f"<IQ{len(kinds)}i", I32, len(kinds), *kinds)),
            "tokenizer.ggml.merges": (ARRAY, strings(merges))}


def ids(path, lines):
    status, out, told = sinkproof("tokens", str(path), "--lines", str(lines))
    return status, out, told


def same_ids(work, model):
    lines = work / "lines"
    lines.write_text("".join(json.dumps(one) + "\n" for one in TEXTS))
    for pre, steps in STEPS.items():
        tokenizer = {**TOKENIZER, "pre_tokenizer": steps}
        tokenizer["model"] = {**TOKENIZER["model"], "ignore_merges": pre == "llama-bpe"}
        (work / "tokenizer.json").write_text(json.dumps(tokenizer))
        file = Gguf(model)
        file.keys.update(keys_of(tokenizer, pre))
        inside, beside = ids(file.write(work / f"{pre}.gguf"), lines), ids(work / "tokenizer.json", lines)
        report(inside[0] == 0 and inside[1] == beside[1], f"{pre}: the ids of tokenizer.json {inside[2]}{beside[2]}",
               [inside, beside])
    separate = {ids(work / f"{pre}.gguf", lines)[1] for pre in STEPS}
    report(len(separate) == len(STEPS), "four patterns, four splittings of these texts", separate)


def a_byte_without_a_token(work, model):
    tokenizer = json.loads(json.dumps(TOKENIZER))
    vocabulary = tokenizer["model"]["vocab"]
    (work / "text").write_text(json.dumps("a1b1c") + "\n" + json.dumps("abc") + "\n")
    tokenizer["model"].pop("unk_token", None)
    digit = vocabulary.pop("1")
    tokenizer["model"]["merges"] = [m for m in tokenizer["model"]["merges"] if "1" not in m]
    file = Gguf(model)
    file.keys.update(keys_of(tokenizer, "gpt-2"))
    status, out, told = ids(file.write(work / "gap.gguf"), work / "text")
    with_digit, without = out.splitlines()
    report(status == 0 and str(digit) not in with_digit.split(",") and len(with_digit) > 0 and without != "",
           f"a byte without a token is left out {told}", out)


def the_model_itself(work, model):
    """run --text takes the tokenizer inside the model's own file, whatever lies beside it."""
    file = Gguf(model)
    file.keys.update(keys_of({**TOKENIZER, "pre_tokenizer": BYTE_LEVEL}, "gpt-2"))
    folder = work / "alone"
    folder.mkdir()
    for name in ("with", "without"):
        path = file.write(folder / f"{name}.gguf")
        for key in list(file.keys):
            if key.startswith("tokenizer."):
                del file.keys[key]
        status, _, told = sinkproof("run", path, "--text", "2", "--engine", "fast")
        expected = (3, "expected tokenizer.ggml.model to be") if name == "without" else (0, "")
        report(status == expected[0] and expected[1] in told, f"run --text {name} a tokenizer inside: exit {status}", told)


def chat(work, model):
    """SmolLM2's template: marks of its own, its system message, and no special token out of a content."""
    said = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    template = TEMPLATE.replace("SAID", said)
    tokenizer = {**TOKENIZER, "pre_tokenizer": BYTE_LEVEL}
    last = max(token["id"] for token in tokenizer["added_tokens"])
    tokenizer["added_tokens"] = tokenizer["added_tokens"] + [
        {**tokenizer["added_tokens"][0], "id": last + 1 + i, "content": mark} for i, mark in enumerate(("<|im_start|>", "<|im_end|>"))]

    def told(template, *words):
        file = Gguf(model)
        file.keys.update({**keys_of(tokenizer, "gpt-2"), "tokenizer.chat_template": (TEXT, template)})
        return sinkproof("tokens", file.write(work / "chat.gguf"), *words)

    def ids_of(*pieces):
        """A mark is an id, and text is encoded as it stands."""
        return ",".join(str(piece) if isinstance(piece, int) else told(template, "--plain", "--text", piece)[1].strip() for piece in pieces)
    begin, end, question = last + 1, last + 2, "hello <|im_end|> 1"
    wanted = ids_of(begin, f"system\n{said}", end, "\n", begin, f"user\n{question}", end, "\n", begin, "assistant\n")
    status, out, error = told(template, "--prompt", question)
    report(status == 0 and out.strip() == wanted, f"a prompt by the template: {error}", [out, wanted])
    (work / "chat.json").write_text(json.dumps([{"role": "system", "content": "a"}, {"role": "user", "content": "b"},
                                                {"role": "assistant", "content": "c"}, {"role": "user", "content": "d"}]))
    wanted = ids_of(begin, "system\na", end, "\n", begin, "user\nb", end, "\n", begin, "assistant\nc", end, "\n", begin, "user\nd", end, "\n",
                    begin, "assistant\n")
    status, out, error = told(template, "--chat", str(work / "chat.json"))
    report(status == 0 and out.strip() == wanted, f"a conversation by the template: {error}", [out, wanted])
    status, out, error = told(template.replace(said, "hello"), "--prompt", "1")
    report(status == 0 and out.startswith(ids_of(begin, "system\nhello", end)), f"another system message of the template: {error}", [out])
    for what, other in (("another program", template + " "), ("a quoted message", template.replace(said, "it\\'s")), ("a shorter one", template[:40])):
        report(told(other, "--prompt", "1")[:2] == told("", "--prompt", "1")[:2] != told(template, "--prompt", "1")[:2],
               f"{what} is no such template: rendered as GPT-OSS's, whose marks are here")
    for message, sentence in (({"role": "developer", "content": "a"}, "expected the role system, user or assistant, found 'developer'"),
                              ({"role": "user"}, "a message of role user: expected content"),
                              ({"role": "assistant", "content": "a", "channel": "final"}, "expected no channel, reasoning or date")):
        (work / "chat.json").write_text(json.dumps([message]))
        status, _, error = told(template, "--chat", str(work / "chat.json"))
        report(status == 3 and sentence in error, f"refused: exit {status}, {error[-100:]}", [sentence, error])


def refused(work, model):
    good = keys_of(TOKENIZER, "gpt-2")
    kind, raw = good["tokenizer.ggml.token_type"]
    (work / "one").write_text(json.dumps("a") + "\n")
    for key, value, sentence in (
            ("model", (TEXT, "llama"), 'expected tokenizer.ggml.model to be "gpt2": a byte-level BPE, found "llama"'),
            ("model", None, 'expected tokenizer.ggml.model to be "gpt2": a byte-level BPE, found nothing'),
            ("pre", (TEXT, "chameleon"), '"qwen2" or "smollm", found "chameleon"'),
            ("pre", None, '"qwen2" or "smollm", found nothing'),
            ("tokens", (TEXT, "a"), "expected tokenizer.ggml.tokens to be an array of strings"),
            ("merges", None, "expected tokenizer.ggml.merges to be an array of strings, found nothing"),
            ("merges", (ARRAY, strings(["a"])), "merge 0: expected two tokens and a space, found 'a'"),
            ("token_type", (kind, struct.pack("<IQi", I32, 1, 1)), "expected tokenizer.ggml.token_type to be an int32"),
            ("token_type", (TEXT, "1"), "expected tokenizer.ggml.token_type to be an int32 for each token"),
            ("tokens", (ARRAY, strings(["a"])), "expected tokenizer.ggml.token_type to be an int32 for each token")):
        file = Gguf(model)
        file.keys.update({**good, "tokenizer.ggml." + key: value})
        if value is None:
            del file.keys["tokenizer.ggml." + key]
        status, _, told = ids(file.write(work / "bad.gguf"), work / "one")
        report(status == 3 and sentence in told, f"refused: exit {status}, {told[-140:]}", [sentence, told])


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        model = work / "tiny.gguf"
        sinkproof("synth", "synthetic:tiny-llama,layers=1", "--layout", "gguf", "--out", str(model))
        same_ids(work, model)
        refused(work, model)
        chat(work, model)
        a_byte_without_a_token(work, model)
        the_model_itself(work, model)
    return TAP.done()


if __name__ == "__main__":
    sys.exit(main())
