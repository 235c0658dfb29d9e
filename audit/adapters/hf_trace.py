#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Runs Hugging Face transformers' GptOssForCausalLM and writes what it computed as a trace.

    hf_trace.py MODEL_DIR --tokens 5,1,7 --dtype bfloat16 --out trace.safetensors

A trace is one safetensors file with the named points of a forward pass, in the dtype that the
engine holds (format sinkproof-trace-1); `sinkproof judge MODEL_DIR trace.safetensors` reads it.
The watching is done by audit/python/sinkproof/hf.py: `sinkproof.trace(model)` of the Python
package. An error is one sentence, exit 3, no file. Needs torch, transformers, numpy and ml_dtypes.
"""
import argparse
import contextlib
import os
import random
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "audit", "python"))
try:
    from sinkproof.hf import (TraceError, experts_implementation, load_model, metadata,  # noqa: F401
                              trace_model, write_trace)
except ImportError as missing:
    sys.exit(print(f"hf_trace.py: a Python package is missing: {missing}", file=sys.stderr) or 3)


def parse_tokens(text):
    """"1,2,3", "@FILE" with ids between commas or white space, or ("random", N, seed)."""
    if text.startswith("random:"):
        fields = text[len("random:"):].split(",")
        seed = fields[1] if len(fields) == 2 else "seed=1"
        if len(fields) > 2 or not seed.startswith("seed=") or int(fields[0]) < 1:
            raise ValueError(f'"{text}" where random:N[,seed=S] was expected')
        return ("random", int(fields[0]), int(seed[len("seed="):]))
    if text.startswith("@"):
        with open(text[1:], encoding="ascii") as file:
            text = file.read().replace(",", " ")
    tokens = [int(word) for word in text.replace(",", " ").split()]
    if not tokens:
        raise ValueError("at least one token is needed")
    return tokens


def draw_tokens(tokens, vocab):
    """A list as it is; ("random", N, seed) drawn uniformly below `vocab`."""
    if not isinstance(tokens, tuple):
        return tokens
    _, n, seed = tokens
    generator = random.Random(seed)
    return [generator.randrange(vocab) for _ in range(n)]


def planted_bug(name, model):
    """The context of a planted bug, from tests/audit/interop_hf_bugs.py of this source tree."""
    if name is None:
        return contextlib.nullcontext()
    sys.path.insert(0, os.path.join(ROOT, "tests", "audit"))
    try:
        from interop_hf_bugs import BUGS
    except ImportError:
        raise TraceError(f"{sys.path[0]}: no interop_hf_bugs.py with planted bugs there") from None
    finally:
        del sys.path[0]
    if name not in BUGS:
        raise TraceError(f'no planted bug "{name}"; known: {", ".join(BUGS)}')
    return BUGS[name](model)


def arguments(argv):
    parser = argparse.ArgumentParser(prog="hf_trace.py", description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", metavar="MODEL_DIR", help="checkpoint in the Hugging Face layout")
    parser.add_argument("--tokens", required=True, help="ids: 1,2,3 or @FILE or random:N[,seed=S]")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="bfloat16")
    parser.add_argument("--out", required=True, metavar="FILE", help="the trace to write")
    parser.add_argument("--chunk", type=int, metavar="N",
                        help="feed the prompt N tokens at a time, through a key/value cache")
    parser.add_argument("--experts", default="default", metavar="NAME",
                        help="default (what transformers chooses), eager, grouped_mm, batched_mm")
    parser.add_argument("--points", metavar="A9,M8", help="keep only these points")
    parser.add_argument("--bug", metavar="NAME",
                        help="plant a known mistake first (tests/audit/interop_hf_bugs.py)")
    options = parser.parse_args(argv)
    try:
        options.tokens = parse_tokens(options.tokens)
    except (ValueError, OSError) as error:
        parser.error(f"--tokens: {error}")
    if options.chunk is not None and options.chunk < 1:
        parser.error("--chunk: at least 1")
    options.points = set(options.points.split(",")) if options.points else None
    return options


def main(argv=None):
    options = arguments(argv)
    try:
        model = load_model(options.model, options.dtype, options.experts)
        tokens = draw_tokens(options.tokens, model.config.vocab_size)
        with planted_bug(options.bug, model):
            trace = trace_model(model, tokens, options.chunk, options.points)
        write_trace(trace, options.out, metadata(model, options.dtype, options.chunk, options.bug))
        return 0
    except TraceError as error:
        sentence = str(error)
    except ImportError as error:
        sentence = f"a Python package is missing: {error}"
    except Exception as error:  # whatever transformers raises on a checkpoint: one line
        sentence = f"{options.model}: {' '.join(str(error).split()) or type(error).__name__}"
    print(f"hf_trace.py: {sentence}", file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main())
