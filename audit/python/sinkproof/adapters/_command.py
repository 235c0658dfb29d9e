# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`python -m sinkproof.trace ENGINE MODEL --tokens … --out FILE`, also installed as `sinkproof-trace`.

A failure is one sentence on standard error and exit code 3, with no file left behind.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from sinkproof._library import Error
from sinkproof._model import Model
from sinkproof._trace import Trace
from sinkproof.adapters import Adapter, Record, adapter_named, adapter_names, ranks, versions
from sinkproof.adapters._tokens import parse_tokens

REFUSED = 3


def add_common_options(parser: argparse.ArgumentParser, adapter: type[Adapter]) -> None:
    parser.add_argument("model", metavar="MODEL", help="what the engine opens: a directory or a file")
    parser.add_argument("--tokens", required=adapter.wants_tokens, metavar="IDS",
                        help="1,2,3, @FILE, random:N[,seed=S] or repeat:N[,seed=S]")
    parser.add_argument("--out", required=True, metavar="FILE", help="the trace to write")
    parser.add_argument("--points", metavar="A9,03.M8", help="keep these points alone")
    parser.add_argument("--checkpoint", required=adapter.wants_checkpoint, metavar="MODEL",
                        help="the model as the judge opens it, where MODEL is a file of the engine's own kind")
    parser.add_argument("--policy", help="what the engine declares to round, for the trace's metadata")
    if adapter.dtypes:
        parser.add_argument("--dtype", choices=adapter.dtypes, default=adapter.dtypes[0],
                            help=f"what it computes in ({adapter.dtypes[0]})")
    if adapter.in_pieces:
        parser.add_argument("--chunk", type=positive, metavar="N",
                            help="feed N tokens at a time through the engine's cache; 1 decodes")


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, found '{text}'")
    return int(text)


def parser_of_all() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sinkproof-trace", allow_abbrev=False,
                                     description="Runs an engine on a model and writes what it computed as a trace.",
                                     epilog="sinkproof-trace ENGINE --help lists the options of one.")
    engines = parser.add_subparsers(dest="engine", metavar="ENGINE", required=True)
    for name in adapter_names():
        adapter = adapter_named(name)
        own = engines.add_parser(name, help=adapter.title, description=adapter.title, allow_abbrev=False,
                                 epilog=adapter.needs())
        add_common_options(own, adapter)
        adapter.add_options(own)
    return parser


def pieces(tokens: Sequence[int], chunk: int | None) -> list[Sequence[int]]:
    step = chunk or len(tokens)
    return [tokens[at:at + step] for at in range(0, len(tokens), step)]


def metadata_of(engine: Adapter, model: Model, options: argparse.Namespace) -> dict[str, str]:
    """The metadata of a trace: engine, versions, ranks, dtype, options and the model's fingerprint."""
    said = {"engine": engine.title, **versions(engine.packages), **ranks(), "model": f"{model.fingerprint:016x}",
            "policy": options.policy, "dtype": getattr(options, "dtype", None),
            "chunk": getattr(options, "chunk", None), **engine.metadata()}
    return {key: str(value) for key, value in said.items() if value is not None}


def traced(name: str, options: argparse.Namespace) -> Trace:
    """The engine's trace of the tokens."""
    model = Model(options.checkpoint or options.model)
    record = Record(model, None if options.points is None else options.points.split(","))
    given = options.tokens and parse_tokens(options.tokens, int(model.number("vocab")))
    engine = adapter_named(name)(options.model, options)
    try:
        for piece in pieces(given or engine.tokens(), getattr(options, "chunk", None)):
            engine.feed(piece, record)
        return record.trace(metadata_of(engine, model, options))
    finally:
        engine.close()


def main(argv: Sequence[str] | None = None) -> int:
    try:
        options = parser_of_all().parse_args(argv)
        traced(options.engine, options).save(options.out)
        return 0
    except Error as error:
        sentence = str(error)
    except ImportError as error:
        sentence = f"a Python package is missing: {error}. {adapter_named(options.engine).needs()}"
    except Exception as error:  # any exception of the engine becomes one line
        sentence = f"{options.model}: {' '.join(str(error).split()) or type(error).__name__}"
    print(f"sinkproof-trace: {sentence}", file=sys.stderr)
    return REFUSED
