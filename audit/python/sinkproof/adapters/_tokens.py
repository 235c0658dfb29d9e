# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Tokens as for the command `sinkproof`, with the same random numbers: 1,2,3, @FILE, random:N[,seed=S] or
repeat:N[,seed=S], also behind ids as in 5,3+repeat:64.
"""
from __future__ import annotations

import re

from sinkproof._trace import TraceError

MASK = 2**64 - 1


def mixed(seed: int, i: int) -> int:
    """Number i of a seed's stream, 64 bits: SplitMix64, as in base/splitmix.h."""
    z = (seed + (i + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def random_tokens(n: int, seed: int, vocab: int) -> list[int]:
    """Uniform random tokens below `vocab`."""
    return [(mixed(seed, i) >> 32) * vocab >> 32 for i in range(n)]


def parse_tokens(text: str, vocab: int) -> list[int]:
    """The tokens that a text states, each below `vocab`."""
    begun = re.fullmatch(r"([0-9,]+)\+([^+]*)", text)
    if begun:
        return parse_tokens(begun[1], vocab) + parse_tokens(begun[2], vocab)
    drawn = re.fullmatch(r"(random|repeat):([0-9]+)(?:,seed=([0-9]+))?", text)
    if drawn and 0 < int(drawn[2]) <= 2**24:
        n, seed = int(drawn[2]), int(drawn[3] or 0) & MASK
        return random_tokens(n, seed, vocab) if drawn[1] == "random" else n * random_tokens(1, seed, vocab)
    if text.startswith(("random:", "repeat:")):
        raise TraceError(f"'{text[:107]}': expected {text[:6]}:N[,seed=S], N from 1 to {2**24}")
    source, words = "--tokens", text.split(",")
    if text.startswith("@"):
        source = text[1:]
        try:
            with open(source, encoding="ascii") as file:
                words = file.read().replace(",", " ").split()
        except OSError as error:
            raise TraceError(f"{source}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise TraceError(f"{source}: expected token ids in text") from None
    return [token_of(word, source, vocab) for word in words if word] or none_found(source)


def none_found(source: str) -> list[int]:
    raise TraceError(f"{source}: expected token ids, found none")


def token_of(word: str, source: str, vocab: int) -> int:
    if not re.fullmatch("[0-9]{1,18}", word):
        raise TraceError(f"{source}: '{word[:40]}' is not a token id")
    if int(word) >= vocab:
        raise TraceError(f"{source}: token id {int(word)}: expected 0 to {vocab - 1} (the vocabulary)")
    return int(word)
