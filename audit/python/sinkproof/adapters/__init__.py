# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Adapters: each runs one engine on a checkpoint and passes on what it computed, point by point.

    python -m sinkproof.trace transformers MODEL --tokens 5,1,7 --out trace.safetensors

A file here is an adapter: its name, with "-" for "_", is the word of the command, and it has one
subclass of Adapter, called Engine. A file that begins with "_" is part of the frame. An adapter
describes its engine and passes tensors to a Record; the frame parses tokens and options, asks the
library for names and shapes of the points, assembles the pieces of a prompt and writes the file.

An adapter only observes: each operation runs once, where the engine runs it, on the engine's own
inputs. It leaves out what it does not know: the judge bridges a missing point, but a guessed one
convicts an honest engine.
"""
from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import pkgutil
import sys
from collections.abc import Sequence

from sinkproof._trace import TraceError
from sinkproof.adapters._record import Record

__all__ = ["Adapter", "Record", "TraceError", "adapter_named", "adapter_names"]


class Adapter:
    """An engine that is open on a model. A subclass consists of class attributes and four methods."""

    title = ""                     # in a trace's metadata and in the list: "llama.cpp, its evaluation callback"
    install = ""                   # the command that installs its requirements: "pip install xllamacpp"
    tried: tuple[str, ...] = ()    # the releases with which it was tested: "xllamacpp 2026.10.11549"
    packages: tuple[str, ...] = ()  # distributions whose versions are in the metadata, the engine's own first
    dtypes: tuple[str, ...] = ()   # the values of --dtype, the default first; none: the checkpoint decides
    in_pieces = True               # it has a cache, so that --chunk N can feed N tokens at a time
    wants_tokens = True            # --tokens is required; else `tokens` may provide them
    wants_checkpoint = False       # --checkpoint is required: the judge cannot open MODEL

    @classmethod
    def needs(cls) -> str:
        """"Needs: pip install xllamacpp. Tried with xllamacpp 2026.10.11549", or nothing."""
        said = [f"Needs: {cls.install}"] * bool(cls.install) + [f"Tried with {', '.join(cls.tried)}"] * bool(cls.tried)
        return ". ".join(said)

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds its own options; the frame has --tokens, --dtype, --chunk, --points, --checkpoint, --policy, --out."""

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        """Opens the engine on MODEL, which the adapter interprets. Import the engine here, not at the top of the
        file.
        """
        self.model, self.options = model, options

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        """Runs the tokens, which follow the earlier ones: `record.begin(tokens)`, then `record.keep` for each point."""
        raise NotImplementedError

    def tokens(self) -> Sequence[int]:
        """The adapter's own tokens, if --tokens is not given."""
        raise TraceError("expected --tokens")

    def metadata(self) -> dict[str, str]:
        """Metadata besides engine, version, dtype and chunk: the engine's options."""
        return {}

    def close(self) -> None:
        """Frees its resources."""


def adapter_names() -> list[str]:
    """The words of the command for the engines."""
    return sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(__path__)
                  if not found.name.startswith("_"))


def adapter_named(name: str) -> type[Adapter]:
    """The adapter class for a word."""
    if name not in adapter_names():
        raise TraceError(f'no adapter "{name}": known are {", ".join(adapter_names())}')
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    found: type[Adapter] = module.Engine
    return found


def installed(packages: Sequence[str]) -> dict[str, str]:
    """{"torch": its version, ...}, without packages that are not installed."""
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def versions(packages: Sequence[str]) -> dict[str, str]:
    """The same; the first package's is called "version"."""
    return {"version" if package == packages[0] else package: said for package, said in installed(packages).items()}


def ranks() -> dict[str, str]:
    """{"ranks": the processes of torch.distributed} where several are at work, else {}."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return {}
    several = int(distributed.get_world_size())
    return {"ranks": str(several)} if several > 1 else {}
