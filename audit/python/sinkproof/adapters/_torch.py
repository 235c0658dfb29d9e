# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Shared by adapters of torch modules: hooks that are removed after a block, and watched operations.

The watcher only observes: every operation runs once, with the engine's arguments, on the kernel that
the engine chose.
"""
from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable
from typing import Any

from sinkproof.adapters._calls import Call, method_signature

# torch is absent during type checking: its tensors and modules are Any.
Tensor = Any
Module = Any

PRODUCTS = {"matmul", "__matmul__", "mm", "bmm", "grouped_mm", "_grouped_mm", "grouped_mm_fallback", "einsum"}
ADDITIONS = {"add", "add_", "__add__", "__iadd__", "__radd__"}
SCALINGS = {"mul", "__mul__", "__rmul__", "mul_", "__imul__"}
OPERANDS = ("input", "self", "other", "mat2")  # torch's names of the operands, in the order of their places
DTYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


def watch(on_call: Callable[[str, Any, Any], None]) -> Any:
    """A context in which on_call(name, args, result) sees every torch operation."""
    from torch.overrides import TorchFunctionMode

    class Watch(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            operands = (*args, *(kwargs[name] for name in OPERANDS if name in kwargs)) if kwargs else args
            on_call(getattr(func, "__name__", str(func)), operands, result)
            return result

    return Watch()


def device_text(device: str) -> str:
    """"NVIDIA H100 80GB HBM3", or "cpu"."""
    import torch
    return str(torch.cuda.get_device_name(device)) if device.startswith("cuda") else device


def same_storage(a: Tensor, b: Any) -> bool:
    """Whether b is a itself or a reshaped view of all of it."""
    return bool(hasattr(b, "data_ptr") and a.data_ptr() == b.data_ptr() and a.numel() == b.numel())


def first_of(output: Any) -> Tensor:
    """The activation that a module returns: the first element of a tuple."""
    return output[0] if isinstance(output, tuple) else output


SEEING: dict[int, Callable[[Tensor], None]] = {}  # callbacks of compiled code, by number
NUMBERS = itertools.count()


@functools.lru_cache(maxsize=None)
def show_operation() -> Any:
    """A custom operation for compiled graphs: at run time SEEING[number](values) is called.

    It counts in `calls`, so that no compiler removes it; to the compiler it is opaque.
    """
    import torch

    def show(calls, values, number):  # type: ignore[no-untyped-def]
        calls.add_(1)
        SEEING[number](values)

    types = {"calls": torch.Tensor, "values": torch.Tensor, "number": int, "return": None}
    show.__annotations__ = types
    operation = torch.library.custom_op("sinkproof::show", show, mutates_args=("calls",))
    operation.register_fake(lambda calls, values, number: None)
    return operation, torch.zeros((), dtype=torch.int64)


class Hooks:
    """Hooks on modules during a `with` block; afterwards nothing of them remains."""

    def __init__(self) -> None:
        self.undo = contextlib.ExitStack()

    def close(self) -> None:
        self.undo.close()

    def seen(self, keep: Callable[[Tensor], None]) -> Callable[[Tensor], None]:
        """`keep` in a form that eager code and compiled code can call."""
        import torch
        number, (show, calls) = next(NUMBERS), show_operation()
        SEEING[number] = keep
        self.undo.callback(SEEING.pop, number)

        def see(values: Tensor) -> None:
            if torch.compiler.is_compiling():
                show(calls, values, number)
            else:
                keep(values)
                self.follow(values, keep)

        return see

    def follow(self, values: Tensor, keep: Callable[[Tensor], None]) -> None:
        """Of a tensor that was kept: does nothing here. A watcher of gradients passes the tensor's to `keep`."""

    def after(self, module: Module, keep: Callable[[Tensor], None]) -> None:
        """Calls keep(output) after each call of the module."""
        see = self.seen(keep)
        handle = module.register_forward_hook(lambda module, inputs, output: see(first_of(output)))
        self.undo.callback(handle.remove)

    def before(self, module: Module, keep: Callable[[Tensor], None]) -> None:
        """Calls keep(first input) before each call of the module."""
        see, word = self.seen(keep), next(iter(method_signature(module).parameters), "")
        handle = module.register_forward_pre_hook(
            lambda module, args, kwargs: see(args[0] if args else kwargs[word]), with_kwargs=True)
        self.undo.callback(handle.remove)

    def enter(self, module: Module, see: Callable[[Call], None], named_by: Module = None) -> None:
        """Calls see(call) before each call, outside of compiled code, with the arguments bound by the module's own
        signature (or by that of `named_by`, if this module only wraps it).
        """
        import torch
        signature = method_signature(module if named_by is None else named_by)
        what = f"the call of {type(module if named_by is None else named_by).__name__}"
        begin = torch.compiler.disable(lambda args, kwargs: see(Call(signature, args, kwargs, what)))
        handle = module.register_forward_pre_hook(lambda module, args, kwargs: begin(args, kwargs), with_kwargs=True)
        self.undo.callback(handle.remove)

    def around(self, module: Module, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replaces the module's forward by make(forward)."""
        module.forward = make(module.forward)
        self.undo.callback(module.__dict__.pop, "forward")

    def leave(self, module: Module, see: Callable[[Any], None]) -> None:
        """Calls see(output) after each call, outside of compiled code."""
        import torch
        see = torch.compiler.disable(see)
        handle = module.register_forward_hook(lambda module, inputs, output: see(output))
        self.undo.callback(handle.remove)

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute during the block."""
        self.undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)
