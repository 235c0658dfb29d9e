# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Token ids against Hugging Face tokenizers and tiktoken, on drawn strings: no difference.

    WHOLE=1 VOCABULARIES=DIR python tests/studies/interop_text.py [SEED]

Vocabularies are trained here, on the book; with VOCABULARIES the published ones are asked too: o200k_base.tiktoken
and r50k_base.tiktoken in that folder, and with the first OpenAI's own rendering of conversations (openai-harmony).
First every code point is asked, of the planes that have any, with WHOLE=1 of all: those on which a library's classes
differ have to be ones that PCRE2's version of Unicode has not assigned; they are counted, and left out of the strings.
20000 strings for each tokenizer, 100000 with WHOLE=1; with FEW=1 1500, of characters of the first two planes.
"""
import base64
import functools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata
from json.encoder import encode_basestring

import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
from tap import Tap  # noqa: E402

PROGRAM = os.environ.get("SINKPROOF") or str(ROOT / "build/release/sinkproof")
WHOLE = bool(os.environ.get("WHOLE"))
FEW = bool(os.environ.get("FEW"))
COUNT = 100000 if WHOLE else 1500 if FEW else 20000
PLANES = range(17) if WHOLE else (0, 1) if FEW else (0, 1, 2, 3, 14)  # the others have no character
NOT_ASKED = frozenset(range(0x20000, 0x110000) if FEW else ())  # no string has them
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
O200K = "|".join([r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTION,
                  r"[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" + CONTRACTION,
                  r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
HARMONY = {0: "<|startoftext|>", 1: "<|endoftext|>", 4: "<|return|>", 5: "<|constrain|>", 7: "<|channel|>",
           8: "<|start|>", 9: "<|end|>", 10: "<|message|>", 14: "<|call|>", 20: "<|endofprompt|>"}


def sinkproof(*words, text=None):
    ran = subprocess.run([PROGRAM, "tokens", *map(str, words)], input=text, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def encoded(path, strings, work):
    """Our ids of each string."""
    lines = work / "lines"
    lines.write_text("".join(encode_basestring(s) + "\n" for s in strings), encoding="utf-8")
    status, out, err = sinkproof(path, "--lines", lines)
    assert status == 0, err
    return [[int(i) for i in line.split(",") if i] for line in out.splitlines()]


# ---- strings

SPACES = [chr(c) for c in (9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 32, 32, 0x85, 0xa0, 0x1680, 0x180e, 0x2000, 0x2003,
                           0x200a, 0x200b, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff)]
EMOJI = ["\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "1\ufe0f\u20e3",
         "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\U0001f600", "\u200d", "\ufe0f", "\U0001f9d1\U0001f3ff\u200d\U0001f680"]
KINDS = "".join(unicodedata.category(chr(c))[0] for c in range(0x110000))
MARKS, DIGITS, LETTERS = ([chr(c) for c, kind in enumerate(KINDS) if kind == one] for one in "MNL")
CONTRACTIONS = [a + b for a in ("'", "\u2019", "`") for b in ("s", "S", "\u017f", "t", "T", "re", "RE", "rE", "ve", "m", "ll", "LL", "d", "D", "sx", "")]


class Strings:
    """Drawn strings: of every block, and of what patterns care about."""

    def __init__(self, seed, excluded=frozenset()):
        self.draw, self.excluded = random.Random(seed), excluded
        self.book = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "doc").glob("*.md")))
        self.special = list(HARMONY.values()) + ["<|end", "|>", "<|", "<|reserved_200013|>", "<|reserved_200018|>"]

    def some(self, choices, most):
        return "".join(self.draw.choice(choices) for _ in range(self.draw.randint(1, most)))

    def block(self):
        start = self.draw.choice([self.draw.choice(PLANES) << 16 | self.draw.randrange(0, 0x10000, 256), self.draw.randrange(0, 0x30000, 256)])
        return "".join(chr(start + self.draw.randrange(256)) for _ in range(self.draw.randint(1, 12)))

    def prose(self):
        at = self.draw.randrange(len(self.book))
        return self.book[at:at + self.draw.randint(1, 80)]

    def cased(self):
        return self.draw.choice([str.upper, str.title, str.swapcase])(self.prose())

    def part(self):
        kind = self.draw.randrange(10)
        return (self.block() if kind < 2 else self.some(LETTERS, 4) + self.some(MARKS, 3) if kind == 2 else
                self.some(EMOJI, 4) if kind == 3 else self.some(SPACES, 6) if kind == 4 else
                self.some(["don", "WE", "x", "\u00c9t\u00e9", ""], 1) + self.some(CONTRACTIONS, 2) if kind == 5 else
                self.some(DIGITS, 5) if kind == 6 else self.cased() if kind == 7 else
                self.some(self.special, 2) if kind == 8 else self.prose())

    def one(self):
        text = "".join(self.part() for _ in range(self.draw.randint(1, 5)))
        return "".join(c for c in text if not 0xd800 <= ord(c) < 0xe000 and ord(c) not in self.excluded)

    def many(self, count):
        return [self.one() for _ in range(count)]


@functools.cache
def strings_of(seed, count, excluded=frozenset()):
    return Strings(seed, excluded).many(count)


# ---- tokenizers, of our own making

def trained(pattern, size):
    tokenizer = Tokenizer(models.BPE())
    own = pre_tokenizers.ByteLevel(add_prefix_space=False)
    split = [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    tokenizer.pre_tokenizer = own if pattern == GPT2 else pre_tokenizers.Sequence(split)
    tokenizer.decoder = decoders.ByteLevel()
    book = Strings(7).book
    texts = [book[i:i + 4000] for i in range(0, len(book), 4000)] + strings_of(7, 20000)
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def alphabet():
    """The byte of each character of GPT-2's alphabet."""
    plain = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(0x100 + i): b for i, b in enumerate(others)}


def ranks_of(tokenizer):
    """{bytes: rank}, in the order of the merges: what tiktoken would have."""
    bytes_of = alphabet()
    vocab = sorted(tokenizer.get_vocab(with_added_tokens=False).items(), key=lambda item: item[1])
    words = [bytes(bytes_of[c] for c in token) for token, _ in vocab]
    return {word: rank for rank, word in enumerate(words)}


def write_ranks(ranks, path):
    path.write_text("".join(f"{base64.b64encode(word).decode()} {rank}\n" for word, rank in ranks.items()))
    return path


def harmony_of(n):
    names = {name: n + at for at, name in HARMONY.items()}
    return names | {f"<|reserved_{199998 + at}|>": n + at for at in range(1090) if at not in HARMONY or at == 20}


def read_ranks(path):
    return {base64.b64decode(word): int(rank) for word, rank in (line.split() for line in path.read_text().splitlines())}


def theirs(encoding):
    """A thread for each string, and all special tokens handed over with it, take tiktoken longer than the string."""
    return lambda strings: [encoding.encode(s, allowed_special="all") if "<|" in s else encoding.encode_ordinary(s) for s in strings]


def hugging(tokenizer):
    return lambda strings: [e.ids for e in tokenizer.encode_batch(strings, add_special_tokens=False)]


def cases(work):
    """(name, pattern and library, path for us, their function)."""
    gpt2, o200k = trained(GPT2, 6000), trained(O200K, 8000)
    ranks = ranks_of(gpt2)
    gpt2.add_special_tokens(["<|endoftext|>"])
    o200k.add_special_tokens([AddedToken(word, normalized=False) for word in HARMONY.values()])
    o200k.add_tokens([AddedToken("<|end", normalized=True), AddedToken("attention sink", normalized=True)])
    wide = ranks_of(o200k)
    for name, tokenizer in (("gpt2", gpt2), ("o200k", o200k)):
        (work / name).mkdir()
        tokenizer.save(str(work / name / "tokenizer.json"))
        yield f"tokenizer.json, {name}'s pattern, against tokenizers", f"{name}, tokenizers", work / name, hugging(tokenizer)
    whole = json.loads(o200k.to_str())
    whole["model"]["ignore_merges"], whole["model"]["merges"] = True, whole["model"]["merges"][::2]
    whole["model"]["merges"] = [m for m in whole["model"]["merges"] if "".join(m) in whole["model"]["vocab"]]
    (work / "whole.json").write_text(json.dumps(whole))
    yield "half the merges, whole tokens first, against tokenizers", "o200k, tokenizers", work / "whole.json", hugging(Tokenizer.from_str(json.dumps(whole)))
    (work / "lists").mkdir()
    gpt2.model.save(str(work / "lists"))
    plain = Tokenizer(models.BPE.from_file(str(work / "lists/vocab.json"), str(work / "lists/merges.txt")))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    yield "vocab.json and merges.txt, against tokenizers", "gpt2, tokenizers", work / "lists", hugging(plain)
    for name, pattern, words, special in (("gpt2", GPT2, ranks, {"<|endoftext|>": len(ranks)}),
                                          ("o200k", O200K, wide, harmony_of(len(wide)))):
        path = write_ranks(words, work / f"{name}.tiktoken")
        yield (f"{len(words)} ranks, {name}'s pattern, against tiktoken", f"{name}, tiktoken", f"{path},pattern={name}",
               theirs(tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=words, special_tokens=special)))
    yield from published()


def published():
    folder = pathlib.Path(os.environ.get("VOCABULARIES") or "/nonexistent")
    for file, name, pattern, special in (("o200k_base.tiktoken", "o200k", O200K, harmony_of), ("r50k_base.tiktoken", "gpt2", GPT2, lambda n: {"<|endoftext|>": n})):
        if not (folder / file).is_file():
            continue
        ranks = read_ranks(folder / file)
        yield (f"the published {file}, {len(ranks)} ranks, against tiktoken", f"{name}, tiktoken", folder / file,
               theirs(tiktoken.Encoding(file, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special(len(ranks)))))


# ---- questions

def spelled(points):
    return ", ".join(f"U+{c:04X}" for c in points[:4]) + (", ..." if len(points) > 4 else "")


def probes(c):
    return f"a{c}B{c}1{c}. {c}'s"


def code_points(tap, name, path, ask, work):
    """The code points on which the library has other classes; all others give the same ids."""
    differ, count = [], 0
    for plane in PLANES:
        points = [c for c in range(plane << 16, (plane + 1) << 16) if not 0xd800 <= c < 0xe000]
        strings = [probes(chr(c)) for c in points]
        differ += [c for c, a, b in zip(points, encoded(path, strings, work), ask(strings)) if a != b]
        count += len(points)
    ours = json.loads(sinkproof(path, "--json", "-")[1])["results"][0]["unicode"]
    new = [c for c in differ if unicodedata.category(chr(c)) == "Cn"]
    same_version = unicodedata.unidata_version == ours
    what = f"{name}: every code point of planes {', '.join(map(str, PLANES))}: {len(differ)} of {count} differ ({spelled(differ)})"
    if same_version:
        old = [f"U+{c:04X} {unicodedata.name(chr(c), '?')}" for c in differ if unicodedata.category(chr(c)) != "Cn"]
        tap.report(len(new) == len(differ), f"{what}, none of which Unicode {ours}, PCRE2's here, has assigned", old)
    else:
        print(f"# {what}; PCRE2 has Unicode {ours}, this Python {unicodedata.unidata_version}: assigned or not is not known")
    return NOT_ASKED.union(differ)


def drawn(tap, name, path, ask, work, seed, excluded):
    strings = strings_of(seed, COUNT, excluded)
    ours, others = encoded(path, strings, work), ask(strings)
    wrong = [f"{s!r}: {a} and {b}" for s, a, b in zip(strings, ours, others) if a != b]
    tokens = sum(map(len, ours))
    tap.report(not wrong and len(ours) == COUNT, f"{name}: {COUNT} strings of seed {seed}, {tokens} tokens, {len(wrong)} differ", wrong)


def back(tap, name, path, work, seed):
    strings = [s for s in strings_of(seed + 1, 60) if "<|reserved_200018|>" not in s][:40]  # of its id the other spelling comes back
    wrong = []
    for text, ids in zip(strings, encoded(path, strings, work)):
        if ids and json.loads(sinkproof(path, "--decode", ",".join(map(str, ids)))[1]) != text:
            wrong.append(repr(text))
    tap.report(not wrong, f"{name}: 40 strings come back from their ids", wrong)


def conversations(tap, work):
    """Against openai-harmony: systems, developers, channels, and spellings that are no tokens there."""
    folder = pathlib.Path(os.environ.get("VOCABULARIES") or "/nonexistent")
    if not (folder / "o200k_base.tiktoken").is_file():
        print("# VOCABULARIES has no o200k_base.tiktoken: openai-harmony was not asked")
        return
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = str(folder)
    import openai_harmony as h  # pylint: disable=import-outside-toplevel
    encoding = h.load_harmony_encoding(h.HarmonyEncodingName.HARMONY_GPT_OSS)
    strings, wrong, count = Strings(11), [], 200
    for _ in range(count):
        reasoning, date = strings.draw.choice(["low", "medium", "high"]), strings.draw.choice([None, "2025-06-28"])
        system = h.SystemContent.new().with_reasoning_effort(getattr(h.ReasoningEffort, reasoning.upper()))
        system = system.with_conversation_start_date(date) if date else system
        chat, their = [{"role": "system", "reasoning": reasoning} | ({"date": date} if date else {})], [h.Message.from_role_and_content(h.Role.SYSTEM, system)]
        for _ in range(strings.draw.randint(1, 5)):
            role, text = strings.draw.choice(["developer", "user", "assistant"]), strings.prose() + strings.draw.choice(["", "<|end|>", "\U0001f600"])
            channel = strings.draw.choice([None, "analysis", "commentary", "final"]) if role == "assistant" else None
            chat.append({"role": role, "content": text} | ({"channel": channel} if channel else {}))
            content = h.DeveloperContent.new().with_instructions(text) if role == "developer" else text
            message = h.Message.from_role_and_content(getattr(h.Role, role.upper()), content)
            their.append(message.with_channel(channel) if channel else message)
        status, out, err = sinkproof(folder / "o200k_base.tiktoken", "--chat", "-", text=json.dumps(chat))
        want = encoding.render_conversation_for_completion(h.Conversation.from_messages(their), h.Role.ASSISTANT)
        if status or [int(i) for i in out.split(",")] != want:
            wrong.append(f"{chat} {err}")
    tap.report(not wrong, f"{count} conversations against openai-harmony: {len(wrong)} differ", wrong)


def main(seed):
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        excluded = {}
        for name, kind, path, ask in cases(work):
            if kind not in excluded:
                excluded[kind] = code_points(tap, kind, path, ask, work)
            drawn(tap, name, path, ask, work, seed, excluded[kind])
            back(tap, name, path, work, seed)
        conversations(tap, work)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
