# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The arguments of a call, bound by the called function's own signature.

Names and places of arguments change between releases of an engine, so an argument is looked up by
the function's own name for it, whether it was passed by name or by place. An argument that is not
understood is refused: an unnoticed past would turn one sequence into two.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from sinkproof._trace import TraceError

VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The function's signature; for compiled code without one, a signature that accepts anything."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                                  inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])


def names_any(signature: inspect.Signature) -> bool:
    return any(parameter.kind not in VARIADIC for parameter in signature.parameters.values())


def method_signature(thing: Any, name: str = "forward") -> inspect.Signature:
    """A method's signature; if a subclass passes on *args and **kwargs, that of the class that names them."""
    found = signature_of(getattr(thing, name))
    if names_any(found):
        return found
    for parent in type(thing).__mro__:
        if name in vars(parent):
            inherited = signature_of(vars(parent)[name])
            without_self = inherited.replace(parameters=list(inherited.parameters.values())[1:])
            if names_any(without_self):
                return without_self
    return found


class Call:
    """The arguments of one call. `given`: the passed ones by name; `places`: by place, with defaults."""

    def __init__(self, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any],
                 what: str = "the call") -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TraceError(f"{what}: expected arguments {signature}: {error}") from None
        self.what = what
        self.given = dict(named(signature, bound.arguments))
        bound.apply_defaults()
        kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}
        self.places: list[Any] = []
        for name, value in bound.arguments.items():
            if kinds[name] is inspect.Parameter.VAR_POSITIONAL:
                self.places += value
            elif kinds[name] is not inspect.Parameter.VAR_KEYWORD:
                self.places.append(value)
        if not self.places and len(kwargs) == 1:  # a single argument with a name that the function passes on
            self.places = list(kwargs.values())

    def get(self, name: str) -> Any:
        """An argument by name, or None."""
        return self.given.get(name)

    def first(self) -> Any:
        """The first argument by place."""
        if not self.places:
            raise TraceError(f"{self.what}: expected an argument, found {', '.join(self.given) or 'none'}")
        return self.places[0]

    def refuse_others(self, known: Collection[str]) -> None:
        """Refuses every argument that is not in `known`, since it may hold a past or change the result."""
        for name, value in self.given.items():
            if name not in known and value is not None and not isinstance(value, bool):
                raise TraceError(f"{self.what}: argument {name} is not understood: expected "
                                 f"{', '.join(known)}, or none, found {type(value).__name__}")


def named(signature: inspect.Signature, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each argument with its own name; those of *args are "args[0]", ..., those of **kwargs keep their names."""
    for name, value in arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            yield from ((f"{name}[{i}]", one) for i, one in enumerate(value))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            yield from value.items()
        else:
            yield name, value
