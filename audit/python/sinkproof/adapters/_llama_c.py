# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""llama.cpp's C interface through ctypes, checked before use.

It works with any shared library that exports the interface: the one inside PyPI's xllamacpp, or one
that the user names. The interface has no version and changes between builds. Before use, the
library's default parameters are therefore compared with every known layout, and the layouts of a
tensor and of a batch with objects that the library makes. A build that differs is refused with a
sentence on what was expected and what was found.
"""
from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from sinkproof._trace import Array, TraceError

# ------------------------------------------------------------------------------------------
# The binary interface: the fields of the two parameter structs, and their reported defaults

INT, FLOAT, BOOL, POINTER, SIZE = ctypes.c_int32, ctypes.c_float, ctypes.c_bool, ctypes.c_void_p, ctypes.c_size_t
Field = tuple[str, Any, Any]  # name, type, default


def many(kind: Any, default: Any, names: str) -> list[Field]:
    return [(name, kind, default) for name in names.split()]


MODEL_HEAD = [*many(POINTER, None, "devices tensor_buft_overrides"), ("n_gpu_layers", INT, -1), ("split_mode", INT, 1)]
MODEL_TAIL = [("main_gpu", INT, 0), *many(POINTER, None, "tensor_split progress progress_data kv_overrides")]
MMAP_FLAGS = [("vocab_only", BOOL, False), ("use_mmap", BOOL, True), *many(BOOL, False, "use_direct_io use_mlock"),
              ("check_tensors", BOOL, False), ("use_extra_bufts", BOOL, True), *many(BOOL, False, "no_host no_alloc")]
MODEL_FLAGS = [*many(BOOL, False, "vocab_only check_tensors"), ("use_extra_bufts", BOOL, True),
               *many(BOOL, False, "no_host no_alloc load_mtp")]
SIZES = [("n_ctx", INT, 512), ("n_batch", INT, 2048), ("n_ubatch", INT, 512), ("n_seq_max", INT, 1),
         ("n_rs_seq", INT, 0)]
THREADS = many(INT, 4, "n_threads n_threads_batch")
NUMBERS = [*many(INT, -1, "rope_scaling_type pooling_type attention_type flash_attn_type"),
           *many(FLOAT, 0.0, "rope_freq_base rope_freq_scale"),
           *many(FLOAT, -1.0, "yarn_ext_factor yarn_attn_factor yarn_beta_fast yarn_beta_slow"),
           ("yarn_orig_ctx", INT, 0), ("defrag_thold", FLOAT, -1.0), *many(POINTER, None, "cb_eval cb_eval_data"),
           *many(INT, 1, "type_k type_v"), *many(POINTER, None, "abort_callback abort_callback_data")]
FLAGS = [("embeddings", BOOL, False), *many(BOOL, True, "offload_kqv no_perf op_offload swa_full"),
         ("kv_unified", BOOL, False), ("samplers", POINTER, None), ("n_samplers", SIZE, 0)]
OUTPUTS, CTX_TYPE, OTHER = [("n_outputs_max", INT, 0)], [("ctx_type", INT, 0)], [("ctx_other", POINTER, None)]
AT_24 = [("at_24", INT, 1)]  # a field of unknown meaning is named by its place

# Layouts by the version of ggml in the builds where they were seen. A build between two of them may have either.
LAYOUTS: dict[str, tuple[list[Field], list[Field]]] = {
    "0.12": (MODEL_HEAD + MODEL_TAIL + MMAP_FLAGS, SIZES + THREADS + CTX_TYPE + NUMBERS + FLAGS),
    "0.17": (MODEL_HEAD + MODEL_TAIL + MMAP_FLAGS, SIZES + OUTPUTS + THREADS + CTX_TYPE + NUMBERS + FLAGS + OTHER),
    "0.21": (MODEL_HEAD + [("load_mode", INT, -1)] + MODEL_TAIL + MODEL_FLAGS,
             SIZES + OUTPUTS + AT_24 + THREADS + CTX_TYPE + NUMBERS + FLAGS + OTHER),
    "0.24": (MODEL_HEAD + [("load_mode", INT, -1), ("at_28", INT, 1)] + MODEL_TAIL + MODEL_FLAGS,
             SIZES + OUTPUTS + AT_24 + THREADS + CTX_TYPE + NUMBERS + FLAGS + OTHER),
    "0.26": (MODEL_HEAD + [("load_mode", INT, -1), ("at_28", INT, 1)] + MODEL_TAIL + MODEL_FLAGS,
             SIZES + OUTPUTS + AT_24 + THREADS + CTX_TYPE + NUMBERS + [("at_128", POINTER, None)] + FLAGS + OTHER),
}
ROOM = 512  # more bytes than any known parameter struct


class Tensor(ctypes.Structure):
    """struct ggml_tensor, as far as this file reads it."""
    _fields_ = [("type", INT), ("buffer", POINTER), ("ne", ctypes.c_int64 * 4), ("nb", SIZE * 4), ("op", INT),
                ("op_params", INT * 16), ("flags", INT), ("src", POINTER * 10), ("view_src", POINTER),
                ("view_offs", SIZE), ("data", POINTER), ("name", ctypes.c_char * 64)]


class Batch(ctypes.Structure):
    """struct llama_batch."""
    _fields_ = [("n_tokens", INT), ("token", ctypes.POINTER(INT)), ("embd", POINTER), ("pos", ctypes.POINTER(INT)),
                ("n_seq_id", ctypes.POINTER(INT)), ("seq_id", ctypes.POINTER(ctypes.POINTER(INT))),
                ("logits", ctypes.POINTER(ctypes.c_int8))]


class InitParams(ctypes.Structure):
    """struct ggml_init_params."""
    _fields_ = [("mem_size", SIZE), ("mem_buffer", POINTER), ("no_alloc", BOOL)]


Watcher = ctypes.CFUNCTYPE(BOOL, ctypes.POINTER(Tensor), BOOL, POINTER)
Log = ctypes.CFUNCTYPE(None, INT, ctypes.c_char_p, POINTER)
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "llama_backend_init": (None, []),
    "llama_log_set": (None, [POINTER, POINTER]),
    "llama_model_free": (None, [POINTER]), "llama_free": (None, [POINTER]),
    "llama_model_n_layer": (INT, [POINTER]), "llama_model_n_swa": (INT, [POINTER]),
    "llama_model_meta_val_str": (INT, [POINTER, ctypes.c_char_p, ctypes.c_char_p, SIZE]),
    "llama_model_desc": (INT, [POINTER, ctypes.c_char_p, SIZE]),
    "llama_n_ctx": (ctypes.c_uint32, [POINTER]), "llama_n_batch": (ctypes.c_uint32, [POINTER]),
    "llama_n_ubatch": (ctypes.c_uint32, [POINTER]), "llama_n_seq_max": (ctypes.c_uint32, [POINTER]),
    "llama_n_threads": (INT, [POINTER]), "llama_n_threads_batch": (INT, [POINTER]),
    "llama_decode": (INT, [POINTER, Batch]), "llama_batch_init": (Batch, [INT, INT, INT]),
    "llama_batch_free": (None, [Batch]), "llama_get_logits_ith": (ctypes.POINTER(FLOAT), [POINTER, INT]),
    "llama_get_memory": (POINTER, [POINTER]), "llama_memory_seq_rm": (BOOL, [POINTER, INT, INT, INT]),
    "llama_memory_seq_add": (None, [POINTER, INT, INT, INT, INT]),
    "llama_print_system_info": (ctypes.c_char_p, []),
    "ggml_version": (ctypes.c_char_p, []), "ggml_type_name": (ctypes.c_char_p, [INT]),
    "ggml_op_desc": (ctypes.c_char_p, [ctypes.POINTER(Tensor)]),
    "ggml_init": (POINTER, [InitParams]), "ggml_free": (None, [POINTER]),
    "ggml_new_tensor_2d": (ctypes.POINTER(Tensor), [POINTER, INT, ctypes.c_int64, ctypes.c_int64]),
    "ggml_view_2d": (ctypes.POINTER(Tensor), [POINTER, ctypes.POINTER(Tensor), ctypes.c_int64, ctypes.c_int64,
                                              SIZE, SIZE]),
    "ggml_add": (ctypes.POINTER(Tensor), [POINTER, ctypes.POINTER(Tensor), ctypes.POINTER(Tensor)]),
    "ggml_set_name": (ctypes.POINTER(Tensor), [ctypes.POINTER(Tensor), ctypes.c_char_p]),
    "ggml_get_name": (POINTER, [ctypes.POINTER(Tensor)]), "ggml_get_data": (POINTER, [ctypes.POINTER(Tensor)]),
}
TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8, "bf16": 30}  # of a cache; the library provides their names
DTYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32,
                          "i64": np.int64}


def find_library(path: str | None = None) -> str:
    """The shared library: `path`, or the one inside the package xllamacpp."""
    if path is not None:
        return path
    spec = importlib.util.find_spec("xllamacpp")
    places = list(spec.submodule_search_locations or []) if spec else []
    found = [os.path.join(place, name) for place in places for name in sorted(os.listdir(place))
             if name.endswith(".so")]
    if not found:
        raise TraceError("expected the Python package xllamacpp, or a library named by its path, found neither")
    return found[0]


def struct(layout: list[Field]) -> Any:
    return type("Params", (ctypes.Structure,), {"_fields_": [(name, kind) for name, kind, _ in layout]})


class Library:
    """A shared library with llama.cpp's C interface, opened and checked."""

    def __init__(self, path: str | None = None) -> None:
        self.path = find_library(path)
        try:
            self.c = ctypes.CDLL(self.path)
            for name, (result, arguments) in SIGNATURES.items():
                function = getattr(self.c, name)
                function.restype, function.argtypes = result, arguments
        except OSError as error:
            raise TraceError(f"{self.path}: {error}") from None
        except AttributeError:
            raise TraceError(f"{self.path}: expected llama.cpp's C interface, found no {name} in it") from None
        self.version = f"ggml {self.c.ggml_version().decode()}"
        if path is None:
            self.version = f"xllamacpp {importlib.metadata.version('xllamacpp')}, {self.version}"
        self.quiet = Log(lambda level, text, data: None)
        self.c.llama_log_set(ctypes.cast(self.quiet, POINTER), None)
        self.model_params = self.check_params("llama_model_default_params", 0)
        self.context_params = self.check_params("llama_context_default_params", 1)
        self.check_tensor()
        self.check_batch()
        self.c.llama_backend_init()
        for name, arguments in (("llama_model_load_from_file", [ctypes.c_char_p, self.model_params]),
                                ("llama_init_from_model", [POINTER, self.context_params])):
            function = getattr(self.c, name)
            function.restype, function.argtypes = POINTER, arguments

    def refuse(self, what: str, expected: object, found: object) -> NoReturn:
        raise TraceError(f"{self.path} ({self.version}): {what}: expected {expected}, found {found}: this build's "
                         "binary interface is not known here")

    def reported(self, function: str) -> tuple[bytes, int | None]:
        """The bytes of the struct that `function` returns, and how many it wrote, if that can be seen.

        On x86-64 a returned struct is written to the address in a hidden first argument: bytes that keep
        their paint are beyond the struct, or between two fields.
        """
        call = getattr(self.c, function)
        if platform.machine() not in ("x86_64", "AMD64"):
            call.restype, call.argtypes = type("Room", (ctypes.Structure,), {"_fields_": [("b", BOOL * ROOM)]}), []
            return bytes(call()), None
        room = (ctypes.c_ubyte * ROOM)(*[0xA5] * ROOM)
        call.restype, call.argtypes = POINTER, [POINTER]
        call(room)
        return bytes(room), len(bytes(room).rstrip(b"\xa5"))

    def check_params(self, function: str, which: int) -> Any:
        """The struct whose fields and defaults match the library's report; refuses others."""
        data, written = self.reported(function)
        for layouts in LAYOUTS.values():
            params = struct(layouts[which])
            last = getattr(params, layouts[which][-1][0])
            values = params.from_buffer_copy(data)
            if all(getattr(values, name) == default for name, _, default in layouts[which]) and written in (
                    None, last.offset + last.size):
                return params
        found = " ".join(data[i:i + 4].hex() for i in range(0, written or 192, 4))
        self.refuse(function, f"the defaults of one of {len(LAYOUTS)} known layouts (ggml {', '.join(LAYOUTS)})",
                    f"{written if written is not None else 'unknown'} bytes {found}")

    def check_tensor(self) -> None:
        """Checks that the fields of a tensor are where the library writes them."""
        memory = self.c.ggml_init(InitParams(1 << 16, None, False))
        a = self.c.ggml_new_tensor_2d(memory, TYPES["f32"], 5, 3)
        self.c.ggml_set_name(a, b"a name")
        view = self.c.ggml_view_2d(memory, a, 2, 3, 20, 12).contents
        total, t = self.c.ggml_add(memory, a, a), a.contents
        here = ctypes.addressof(t)
        for what, expected, found in (
                ("ggml_tensor.type", TYPES["f32"], t.type), ("ggml_tensor.ne", [5, 3, 1, 1], list(t.ne)),
                ("ggml_tensor.nb", [4, 20, 60, 60], list(t.nb)), ("ggml_tensor.data", self.c.ggml_get_data(a), t.data),
                ("ggml_tensor.name", self.c.ggml_get_name(a), here + Tensor.name.offset),
                ("ggml_tensor.view_src", here, view.view_src), ("ggml_tensor.view_offs", 12, view.view_offs),
                ("ggml_tensor.src", [here, here], list(total.contents.src[:2])),
                ("the operation of a sum", b"ADD", self.c.ggml_op_desc(total))):
            if expected != found:
                self.refuse(what, expected, found)
        self.c.ggml_free(memory)
        for name, number in TYPES.items():
            if self.c.ggml_type_name(number) != name.encode():
                self.refuse(f"the number of the type {name}", number, self.c.ggml_type_name(number))

    def check_batch(self) -> None:
        """Checks the fields of a batch: its pointers are set where expected, and nothing elsewhere."""
        batch = self.c.llama_batch_init(3, 0, 1)
        found = [batch.n_tokens, *(bool(getattr(batch, field[0])) for field in Batch._fields_[1:])]
        if found != [0, True, False, True, True, True, True] or batch.seq_id[3]:
            self.refuse("llama_batch_init", [0, True, False, True, True, True, True], found)
        self.c.llama_batch_free(batch)

    def array(self, tensor: Tensor) -> Array:
        """A tensor's elements as a strided view of its memory, with ggml's first dimension last."""
        dtype = np.dtype(DTYPES[self.c.ggml_type_name(tensor.type).decode()])
        shape, strides = tuple(tensor.ne)[::-1], tuple(tensor.nb)[::-1]
        extent = dtype.itemsize + sum((n - 1) * stride for n, stride in zip(shape, strides))
        memory = (ctypes.c_char * extent).from_address(tensor.data)
        return np.ndarray(shape, dtype, memory, strides=strides)


class Node:
    """A node of a graph whose value has been computed."""

    def __init__(self, library: Library, tensor: Tensor) -> None:
        self.library, self.tensor = library, tensor

    @property
    def name(self) -> str:
        return str(self.tensor.name.decode(errors="replace"))

    @property
    def operation(self) -> str:
        return str(self.library.c.ggml_op_desc(ctypes.byref(self.tensor)).decode())

    @property
    def value(self) -> Array:
        return self.library.array(self.tensor)

    def source(self, i: int) -> Node:
        return Node(self.library, Tensor.from_address(self.tensor.src[i]))

    def root(self) -> Node:
        """The node that this node is a view of; this node itself if it is not a view."""
        place = self.tensor.view_src
        return Node(self.library, Tensor.from_address(place)).root() if place else self
