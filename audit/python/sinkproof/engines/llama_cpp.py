# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""llama.cpp: what its graph computes, node by node, as traces.

    with Model("model.gguf") as model:
        trace = model.trace(tokens, Options(flash=True, chunk=1))

Through ctypes over its C interface, from any shared library that exports it: the one inside PyPI's
xllamacpp, or one that is named. A context's evaluation callback sees every node of the graph.

The C interface has no version and changes between builds. So before anything of it is used, what
the library reports as its defaults is compared with every layout that is known here, and the
layout of a tensor and of a batch with what the library says of some that it makes. A build that
differs is refused with a sentence.
"""
from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class TraceError(Exception):
    """What a build of llama.cpp, or a run of it, cannot show: one sentence."""


# ------------------------------------------------------------------------------------------
# The binary interface: what the two structs of parameters hold, and the defaults they report

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
AT_24 = [("at_24", INT, 1)]  # a field whose meaning is not needed is named by its place

# By the version of ggml in the builds where a layout was seen. Between two of them any may hold.
LAYOUTS: dict[str, tuple[list[Field], list[Field]]] = {
    "0.12": (MODEL_HEAD + MODEL_TAIL + MMAP_FLAGS, SIZES + THREADS + NUMBERS + FLAGS),
    "0.17": (MODEL_HEAD + MODEL_TAIL + MMAP_FLAGS, SIZES + OUTPUTS + THREADS + CTX_TYPE + NUMBERS + FLAGS + OTHER),
    "0.21": (MODEL_HEAD + [("load_mode", INT, -1)] + MODEL_TAIL + MODEL_FLAGS,
             SIZES + OUTPUTS + AT_24 + THREADS + CTX_TYPE + NUMBERS + FLAGS + OTHER),
    "0.24": (MODEL_HEAD + [("load_mode", INT, -1), ("at_28", INT, 1)] + MODEL_TAIL + MODEL_FLAGS,
             SIZES + OUTPUTS + AT_24 + THREADS + CTX_TYPE + NUMBERS + FLAGS + OTHER),
    "0.26": (MODEL_HEAD + [("load_mode", INT, -1), ("at_28", INT, 1)] + MODEL_TAIL + MODEL_FLAGS,
             SIZES + OUTPUTS + AT_24 + THREADS + CTX_TYPE + NUMBERS + [("at_128", POINTER, None)] + FLAGS + OTHER),
}
ROOM = 512  # bytes that no known struct of parameters fills


class Tensor(ctypes.Structure):
    """struct ggml_tensor, as far as it is read here."""
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
TYPES = {"f32": 0, "f16": 1, "q8_0": 8, "bf16": 30}  # of a cache; their names are asked of the library
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
        self.version = "ggml " + self.c.ggml_version().decode()
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

    def refuse(self, what: str, expected: object, found: object) -> None:
        raise TraceError(f"{self.path} ({self.version}): {what}: expected {expected}, found {found}: this build's "
                         "binary interface is not known here")

    def reported(self, function: str) -> tuple[bytes, int | None]:
        """The bytes of the struct that `function` returns, and how many it wrote, where that shows.

        On x86-64 a struct that is returned is written to where a hidden first argument points: what
        keeps its paint is beyond the struct, or between two fields.
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
        """The struct whose fields, with their defaults, are what the library reports; refuses others."""
        data, written = self.reported(function)
        for version, layouts in LAYOUTS.items():
            params = struct(layouts[which])
            last = getattr(params, layouts[which][-1][0])
            values = params.from_buffer_copy(data)
            if all(getattr(values, name) == default for name, _, default in layouts[which]) and written in (
                    None, last.offset + last.size):
                setattr(self, f"layout_{which}", version)
                return params
        found = " ".join(data[i:i + 4].hex() for i in range(0, written or 192, 4))
        self.refuse(function, f"the defaults of one of {len(LAYOUTS)} known layouts (ggml {', '.join(LAYOUTS)})",
                    f"{written if written is not None else 'unknown'} bytes {found}")

    def check_tensor(self) -> None:
        """Fields of a tensor are where the library writes them."""
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
        """Fields of a batch: pointers of its own where they are expected, nothing where nothing is."""
        batch = self.c.llama_batch_init(3, 0, 1)
        found = [batch.n_tokens, *(bool(getattr(batch, name)) for name, _ in Batch._fields_[1:])]
        if found != [0, True, False, True, True, True, True] or batch.seq_id[3]:
            self.refuse("llama_batch_init", [0, True, False, True, True, True, True], found)
        self.c.llama_batch_free(batch)

    def array(self, tensor: Tensor) -> Array:
        """A tensor's elements, the first dimension of ggml last: a view of its memory, strides and all."""
        dtype = np.dtype(DTYPES[self.c.ggml_type_name(tensor.type).decode()])
        shape, strides = tuple(tensor.ne)[::-1], tuple(tensor.nb)[::-1]
        extent = dtype.itemsize + sum((n - 1) * stride for n, stride in zip(shape, strides))
        memory = (ctypes.c_char * extent).from_address(tensor.data)
        return np.ndarray(shape, dtype, memory, strides=strides)


# ------------------------------------------------------------------------------------------
# The graph: which node is which point


@dataclass(frozen=True)
class Node:
    """A node of the graph whose value is there."""
    library: Library
    tensor: Tensor

    @property
    def name(self) -> str:
        return self.tensor.name.decode(errors="replace")

    @property
    def operation(self) -> str:
        return self.library.c.ggml_op_desc(ctypes.byref(self.tensor)).decode()

    @property
    def value(self) -> Array:
        return self.library.array(self.tensor)

    def source(self, i: int) -> Node:
        return Node(self.library, Tensor.from_address(self.tensor.src[i]))

    def root(self) -> Node:
        """What it is a view of, and itself when it is none."""
        place = self.tensor.view_src
        return Node(self.library, Tensor.from_address(place)).root() if place else self


# What is named alone: base name -> (point, rank of what a trace holds of each token).
NAMED = {"embd": "T0", "attn_norm": "A1", "kq_soft_max": "A10", "attn_out": "A12", "ffn_inp": "A13",
         "attn_post_norm": "M1", "ffn_moe_probs": "M2", "ffn_moe_topk": "M3", "ffn_moe_weights_softmax": "M4",
         "ffn_moe_gate": "M5.gate", "ffn_moe_up": "M5.up", "ffn_moe_gate_biased": "M6.gate",
         "ffn_moe_up_biased": "M6.up", "ffn_moe_swiglu_oai": "M8", "ffn_moe_down": "M9", "ffn_moe_down_biased": "M10",
         "ffn_moe_out": "M11", "l_out": "M12", "result_norm": "F1", "result_output": "F2"}


def point_of(node: Node) -> str | None:
    """"03.A4.q": the point that a node is, or None."""
    base, _, layer = node.name.partition("-")
    prefix = f"{int(layer):02d}." if layer.isdigit() else ""
    if base in ("Qcur", "Kcur", "Vcur") and prefix:
        if node.operation == "ROPE":
            return f"{prefix}A4.{base[0].lower()}"
        return f"{prefix}A2.{base[0].lower()}" if node.operation == "ADD" else None
    if node.operation == "MUL_MAT" and node.source(0).name.endswith(".attn_output.weight"):
        return f"{int(node.source(0).name.split('.')[1]):02d}.A11"  # its source, whatever made it
    return prefix + NAMED[base] if base in NAMED and (prefix or not layer) else None


# ------------------------------------------------------------------------------------------
# A run


@dataclass(frozen=True)
class Options:
    """How llama.cpp is asked to run. A call takes `chunk` tokens, the first `prefill`; None is all."""
    flash: bool = False
    cache: str = "f16"          # of keys and values: f32, f16, bf16, q8_0
    threads: int = 1
    chunk: int | None = None
    prefill: int | None = None
    ubatch: int = 512           # tokens that the graph is computed for at once
    context: int | None = None  # cells of the cache; None: what the tokens need
    swa_full: bool = True       # sliding windows keep every cell
    unified: bool = False       # one cache for all sequences
    repack: bool = True         # weights rearranged for the processor, where a kernel is there

    def calls(self, n: int) -> Iterator[tuple[int, int]]:
        """The tokens [begin, end) of each call."""
        begin = 0
        while begin < n:
            size = (self.prefill if begin == 0 else self.chunk or (1 if self.prefill else None)) or self.chunk or n
            yield begin, min(n, begin + size)
            begin += size


Hook = Callable[[str, Array], None]  # of a point's name and its value, which it may change


class Model:
    """A GGUF file that llama.cpp has loaded."""

    def __init__(self, path: str | os.PathLike[str], library: Library | None = None, repack: bool = True) -> None:
        self.library, self.path = library or Library(), os.fspath(path)
        params = self.library.c.llama_model_default_params
        params.restype, params.argtypes = self.library.model_params, []
        asked = params()
        asked.use_extra_bufts = repack
        self.pointer = self.library.c.llama_model_load_from_file(self.path.encode(), asked)
        if not self.pointer:
            raise TraceError(f"{self.path}: llama.cpp does not load it")
        self.layers = self.library.c.llama_model_n_layer(self.pointer)
        if self.meta("general.architecture") != "gpt-oss":
            raise TraceError(f'{self.path}: general.architecture is "{self.meta("general.architecture")}", expected '
                             '"gpt-oss"')

    def meta(self, key: str) -> str:
        room = ctypes.create_string_buffer(256)
        self.library.c.llama_model_meta_val_str(self.pointer, key.encode(), room, len(room))
        return room.value.decode()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *exception: object) -> None:
        self.library.c.llama_model_free(self.pointer)

    def run(self, sequences: Sequence[Sequence[int]], options: Options = Options(),
            points: Iterable[str] | None = None, hook: Hook | None = None) -> list[dict[str, Array]]:
        """Each sequence's points by name. All begin together and advance together, call by call.

        `points` keeps these alone, without their layer ("A4.q"). `hook` sees each point's value
        before the graph goes on, and may write to it.
        """
        with Session(self, sequences, options, points, hook) as session:
            session.run()
        return [session.assemble(i) for i in range(len(sequences))]

    def metadata(self, options: Options) -> dict[str, str]:
        """What a trace says of a run."""
        said = {name: str(value) for name, value in asdict(options).items() if value is not None}
        return {"engine": "llama.cpp", "version": self.library.version, "gguf": os.path.basename(self.path), **said,
                "features": self.library.c.llama_print_system_info().decode().strip(" |")}


class Session:
    """One context, its cache, and what is kept of its graph."""

    def __init__(self, model: Model, sequences: Sequence[Sequence[int]], options: Options,
                 points: Iterable[str] | None, hook: Hook | None) -> None:
        self.model, self.c, self.options, self.hook = model, model.library.c, options, hook
        self.sequences = [list(map(int, tokens)) for tokens in sequences]
        self.points = None if points is None else set(points)
        self.parts: list[dict[str, list[Array]]] = [{} for _ in sequences]  # of each sequence, by point
        self.cells: dict[int, tuple[dict[int, tuple[int, int]], int]] = {}  # of a layer: what a cell of its
        # cache holds, (sequence, position), and how many cells a sequence of its own has
        self.batch: list[tuple[int, int]] = []  # (sequence, position) of the rows of a call
        self.rows: list[tuple[int, int]] = []   # those that the graph is being computed for
        self.failure: BaseException | None = None
        self.watcher = Watcher(self.watch)

    def __enter__(self) -> Session:
        longest = max(map(len, self.sequences))
        params = self.c.llama_context_default_params
        params.restype, params.argtypes = self.model.library.context_params, []
        asked, options = params(), self.options
        cells = options.context or -(-longest // 256) * 256
        asked.n_ctx = cells * len(self.sequences)
        asked.n_batch = max(longest * len(self.sequences), 1)
        asked.n_ubatch = min(options.ubatch, asked.n_batch)
        asked.n_seq_max = len(self.sequences)
        asked.n_threads = asked.n_threads_batch = options.threads
        asked.flash_attn_type = int(options.flash)
        asked.type_k = asked.type_v = TYPES[options.cache]
        asked.swa_full, asked.kv_unified = options.swa_full, options.unified
        asked.cb_eval = ctypes.cast(self.watcher, POINTER)
        self.pointer = self.c.llama_init_from_model(self.model.pointer, asked)
        if not self.pointer:
            raise TraceError(f"{self.model.path}: llama.cpp makes no context with {options}")
        for what, expected in (("n_seq_max", asked.n_seq_max), ("n_threads", options.threads),
                               ("n_threads_batch", options.threads)):
            found = getattr(self.c, f"llama_{what}")(self.pointer)
            if found != expected:
                self.model.library.refuse(f"{what} of a new context", expected, found)
        return self

    def __exit__(self, *exception: object) -> None:
        self.c.llama_free(self.pointer)

    # -- calls

    def run(self) -> None:
        longest = max(map(len, self.sequences))
        for begin, end in self.options.calls(longest):
            self.call([(s, i) for s, tokens in enumerate(self.sequences) for i in range(begin, min(end, len(tokens)))])

    def call(self, rows: list[tuple[int, int]]) -> None:
        """llama_decode of these (sequence, position), logits asked of each."""
        batch = self.c.llama_batch_init(len(rows), 0, 1)
        batch.n_tokens = len(rows)
        for r, (sequence, position) in enumerate(rows):
            batch.token[r], batch.pos[r] = self.sequences[sequence][position], position
            batch.n_seq_id[r], batch.seq_id[r][0], batch.logits[r] = 1, sequence, 1
        self.batch, self.rows = list(rows), []
        status = self.c.llama_decode(self.pointer, batch)
        self.c.llama_batch_free(batch)
        if self.failure:
            raise self.failure
        if status != 0:
            raise TraceError(f"{self.model.path}: llama_decode of {len(rows)} tokens: expected 0, found {status}")
        if self.batch:
            raise TraceError("the callback was not called for every token: expected none left, found "
                             f"{len(self.batch)}")

    # -- nodes

    def watch(self, tensor: Any, ask: bool, data: Any) -> bool:
        """The callback: asked first whether a node is wanted, called again when its value is there."""
        try:
            node = Node(self.model.library, tensor.contents)
            if node.operation == "SET_ROWS" and node.name.startswith("cache_k_l"):
                return True if ask else self.stored(node)
            point = point_of(node)
            if ask:
                return point is not None or (bool(self.hook) and node.name.startswith("kqv_out-"))
            if point is None:  # what becomes A11, before it is multiplied
                self.hook(f"{int(node.name[8:]):02d}.A11", node.value)
                return True
            return self.keep(point, node.source(1) if point.endswith(".A11") else node)
        except BaseException as failure:  # an exception cannot pass through llama.cpp
            self.failure = failure
            return False

    def stored(self, node: Node) -> bool:
        """Keys go to cells of the cache: which, and of which token, is what a column of A10 means."""
        layer = int(node.name[len("cache_k_l"):].split(" ")[0])
        cells, _ = self.cells.setdefault(layer, ({}, node.root().tensor.ne[1]))
        cells.update(zip(node.source(1).value.reshape(-1).tolist(), self.rows))
        return True

    def begin_rows(self, node: Node) -> None:
        """The embedding is the first node: its tokens say which rows the graph is computed for."""
        tokens = node.source(1).value.reshape(-1).tolist()
        streams = len({s for s, _ in self.batch}) > 1 and not self.options.unified
        self.rows = self.split(len(tokens)) if streams else self.batch[:len(tokens)]
        self.batch = [row for row in self.batch if row not in set(self.rows)]
        found = [self.sequences[s][i] for s, i in self.rows]
        if tokens != found:
            raise TraceError(f"expected the tokens {found[:8]} in a part of the batch, found {tokens[:8]}")

    def split(self, n: int) -> list[tuple[int, int]]:
        """Equally many rows of each sequence that has some left, sequence by sequence."""
        left: dict[int, list[tuple[int, int]]] = {}
        for row in self.batch:
            left.setdefault(row[0], []).append(row)
        return [row for rows in left.values() for row in rows[:n // len(left)]]

    def keep(self, point: str, node: Node) -> bool:
        """A copy of a point's rows, by sequence; the hook first, on what the graph goes on with."""
        if point == "T0":
            self.begin_rows(node)
        base = point.removesuffix(".gate").removesuffix(".up").split(".", 1)[-1 if point[0].isdigit() else 0]
        if self.hook and base != "A11":
            self.hook(point, node.value)
        if self.points is not None and base not in self.points:
            return True
        value = self.by_keys(point, node.value) if base == "A10" else node.value.reshape(len(self.rows), -1)
        for sequence in {s for s, _ in self.rows}:
            mine = [r for r, (s, _) in enumerate(self.rows) if s == sequence]
            self.parts[sequence].setdefault(point, []).append(value[mine].copy())
        return True

    def by_keys(self, point: str, value: Array) -> Array:
        """[rows, heads, longest] of [streams, heads, rows, cells]: a column for each position held."""
        n_streams, n_heads, n_rows, n_columns = value.shape
        found = np.zeros((n_streams * n_rows, n_heads, max(map(len, self.sequences))), np.float32)
        cells, size = self.cells[int(point[:2])]
        for r, (sequence, position) in enumerate(self.rows):
            base = 0 if self.options.unified else sequence * size
            held = [(cell - base, at) for cell, (owner, at) in cells.items() if owner == sequence and at <= position]
            columns = np.array([(column, at) for column, at in held if 0 <= column < n_columns])
            found[r][:, columns[:, 1]] = value[r // n_rows, :, r % n_rows, columns[:, 0]].T
        return found

    # -- the trace

    def assemble(self, sequence: int) -> dict[str, Array]:
        """The parts of all calls as whole tensors, in the shapes of a trace, with tokens and positions."""
        tokens = np.array(self.sequences[sequence], np.int32)
        whole = {point: np.concatenate(parts) for point, parts in self.parts[sequence].items()}
        for point in [point for point in whole if point.endswith(".gate")]:
            gate, up, name = whole.pop(point), whole.pop(point[:-4] + "up"), point[:-5]
            whole[name] = np.stack([gate, up], axis=-1).reshape(len(tokens), -1)  # OpenAI's order: in turn
        shaped = {point: self.shaped(point.split(".")[1] if point[0].isdigit() else point, value)
                  for point, value in whole.items()}
        return {"tokens": tokens, "positions": np.arange(len(tokens), dtype=np.int32), **shaped}

    def shaped(self, base: str, value: Array) -> Array:
        if base == "A10":
            return value[:, :, :len(value)].transpose(1, 0, 2)
        if base in ("A2", "A4", "A11"):
            return value.reshape(len(value), -1, int(self.model.meta("gpt-oss.attention.key_length")))
        if base in ("M5", "M6", "M8", "M9", "M10"):
            return value.reshape(len(value), int(self.model.meta("gpt-oss.expert_used_count")), -1)
        return value
