# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Adapters: each runs one engine on a checkpoint and hands over what it computed, point by point.

    python -m sinkproof.trace transformers MODEL --tokens 5,1,7 --out trace.safetensors

A file here is an adapter: its name, with "-" for "_", is the word of the command, and it has one
subclass of Adapter, called Engine. A file that begins with "_" is part of the frame. An adapter says
what its engine is and passes tensors to a Record; the frame reads tokens and options, asks the
library for names and shapes of the points, assembles the pieces of a prompt and writes the file.

An adapter only looks: each operation runs once, where the engine runs it, on what the engine gives
it. What it does not know it leaves out: a missing point is bridged by the judge, a guessed one
convicts an honest engine.
"""
from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import pkgutil
from collections.abc import Sequence

from sinkproof._trace import TraceError
from sinkproof.adapters._record import Record

__all__ = ["Adapter", "Record", "TraceError", "adapter_named", "adapter_names"]


class Adapter:
    """An engine that is open on a model. Of a subclass all is class attributes and four methods."""

    title = ""                     # in a trace's metadata and in the list: "llama.cpp, its evaluation callback"
    install = ""                   # the line that installs what it needs: "pip install xllamacpp"
    tried: tuple[str, ...] = ()    # the releases that its tests ran it with: "xllamacpp 2026.10.11549"
    packages: tuple[str, ...] = ()  # distributions whose versions the metadata names, the engine's own first
    dtypes: tuple[str, ...] = ()   # what --dtype may be, the default first; none: the checkpoint decides
    in_pieces = True               # it keeps what was fed, so that --chunk N can feed N tokens at a time
    wants_tokens = True            # --tokens must be given; else `tokens` may know them
    wants_checkpoint = False       # --checkpoint must be given: MODEL is nothing that the judge opens

    @classmethod
    def needs(cls) -> str:
        """"Needs: pip install xllamacpp. Tried with xllamacpp 2026.10.11549", or nothing."""
        said = [f"Needs: {cls.install}"] * bool(cls.install) + [f"Tried with {', '.join(cls.tried)}"] * bool(cls.tried)
        return ". ".join(said)

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Options of its own; the frame has --tokens, --dtype, --chunk, --points, --checkpoint, --policy, --out."""

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        """Opens the engine on MODEL, whatever that is to it. The engine is imported here, not above."""
        self.model, self.options = model, options

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        """Runs the tokens, which follow those before: `record.begin(tokens)`, then each point to `record.keep`."""
        raise NotImplementedError

    def tokens(self) -> Sequence[int]:
        """Where --tokens is not given: those that it knows by itself."""
        raise TraceError("expected --tokens")

    def metadata(self) -> dict[str, str]:
        """What a trace says of the run beside engine, version, dtype, chunk: the engine's options."""
        return {}

    def close(self) -> None:
        """Gives back what it holds."""


def adapter_names() -> list[str]:
    """The words that the command takes for an engine."""
    return sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(__path__)
                  if not found.name.startswith("_"))


def adapter_named(name: str) -> type[Adapter]:
    """The class of an adapter by its word."""
    if name not in adapter_names():
        raise TraceError(f'no adapter "{name}": known are {", ".join(adapter_names())}')
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    found: type[Adapter] = module.Engine
    return found


def versions(packages: Sequence[str]) -> dict[str, str]:
    """{"version": the engine's, "torch": ...}; a package that is not installed is left out."""
    said = {}
    for at, package in enumerate(packages):
        try:
            said["version" if at == 0 else package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return said
