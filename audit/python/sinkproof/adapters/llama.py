# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""llama.cpp, through the library inside PyPI's xllamacpp or another with its C interface.

A context's evaluation callback sees every node of the graph, and does not change the computation: the
logits are the same bits as without it. The nodes of the points:

  T0 embd                 A1 attn_norm-L         A2 the sums Qcur-L, Kcur-L, Vcur-L
  A4 Qcur-L, Kcur-L after the rotation           A10 kq_soft_max-L, if flash attention is off
  A11 the operand of attn_output.weight          A12 attn_out-L        A13 ffn_inp-L
  M1 attn_post_norm-L     M2 ffn_moe_probs-L     M3 ffn_moe_topk-L     M4 ffn_moe_weights_softmax-L
  M5 ffn_moe_gate-L, ffn_moe_up-L, in turn       M6 the same, _biased  M8 ffn_moe_swiglu_oai-L
  M9 ffn_moe_down-L       M10 ffn_moe_down_biased-L                    M11 ffn_moe_out-L
  M12 l_out-L             F1 result_norm         F2 result_output

A file of Llama has no biases and one perceptron: A2 is the product, M1 ffn_norm-L, M6 ffn_gate-L and ffn_up-L, M8
ffn_swiglu-L, M10 ffn_out-L. It keeps the two coordinates of a rotated pair side by side, and a trace has them in halves.

A column of A10 is a cell of the cache; the position of a cell is read where keys are stored.
MODEL is a GGUF file; `sinkproof synth --layout gguf` writes one of any model.
"""
from __future__ import annotations

import argparse
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sinkproof._trace import Array, TraceError
from sinkproof.adapters import Adapter, Record
from sinkproof.adapters._llama_c import POINTER, TYPES, Library, Node, Watcher
from sinkproof.adapters._tokens import parse_tokens

NAMED = {"embd": "T0", "attn_norm": "A1", "kq_soft_max": "A10", "attn_out": "A12", "ffn_inp": "A13",
         "attn_post_norm": "M1", "ffn_moe_probs": "M2", "ffn_moe_topk": "M3", "ffn_moe_weights_softmax": "M4",
         "ffn_moe_gate": "M5.gate", "ffn_moe_up": "M5.up", "ffn_moe_gate_biased": "M6.gate",
         "ffn_moe_up_biased": "M6.up", "ffn_moe_swiglu_oai": "M8", "ffn_moe_down": "M9", "ffn_moe_down_biased": "M10",
         "ffn_moe_out": "M11", "l_out": "M12", "result_norm": "F1", "result_output": "F2"}
DENSE = {"ffn_norm": "M1", "ffn_gate": "M6.gate", "ffn_up": "M6.up", "ffn_swiglu": "M8", "ffn_out": "M10"}
UNLAYERED = ("T0", "F1", "F2")
Hook = Callable[[str, int, Array], None]  # called with a point, its layer and its value, which it may change


def point_of(node: Node, projected: str = "ADD") -> tuple[str, int] | None:
    """The point of a node, such as ("A4.q", 3), or None; A2 are results of the operation `projected`.

    kqv_out is A11 before its product.
    """
    base, _, layer = node.name.partition("-")
    if base == "kqv_out" and layer.isdigit():
        return "kqv_out", int(layer)
    if base in ("Qcur", "Kcur", "Vcur") and layer.isdigit():
        point = {"ROPE": "A4.", projected: "A2."}.get(node.operation)
        return (point + base[0].lower(), int(layer)) if point else None
    if node.operation == "MUL_MAT" and node.source(0).name.endswith(".attn_output.weight"):
        return "A11", int(node.source(0).name.split(".")[1])
    point = NAMED.get(base) or DENSE.get(base)
    if point is None or (point in UNLAYERED) == layer.isdigit():
        return None
    return point, int(layer or 0)


def in_halves(value: Array, head_dim: int) -> Array:
    """Rows of heads whose rotated pairs lie side by side, with the first coordinates of all pairs in front."""
    pairs = value.reshape(*value.shape[:-1], -1, head_dim // 2, 2)
    return np.moveaxis(pairs, -1, -2).reshape(value.shape)


class Context:
    """A context of llama.cpp: its cache, and the points of its graph, which go to a record."""

    def __init__(self, library: Library, model: Any, options: argparse.Namespace, cells: int,
                 turned: int = 0) -> None:
        self.library, self.c, self.options, self.turned = library, library.c, options, turned  # turned: Engine.turned()
        self.sequences = options.sequences
        self.hook: Hook | None = None
        self.record: Record | None = None
        self.rows: list[tuple[int, int, int]] = []     # (sequence, position, token) of a call, not yet computed
        self.running: list[tuple[int, int, int]] = []  # the part that the graph is computing
        self.cells: dict[int, dict[int, tuple[int, int]]] = {}  # by layer: cell -> (sequence, position)
        self.streams: dict[int, int] = {}              # by layer: cells of a sequence's own cache
        self.keys: dict[int, Node] = {}                # by layer: its cache of keys
        self.halves: dict[str, Array] = {}             # M5 and M6: gate or up, until the other is computed
        self.failure: BaseException | None = None
        self.watcher = Watcher(self.watch)
        self.pointer = self.c.llama_init_from_model(model, self.parameters(cells))
        if not self.pointer:
            raise TraceError(f"llama.cpp makes no context with flash attention {'on' if options.flash else 'off'} and "
                             f"a cache of {options.cache}")
        self.check()

    def parameters(self, cells: int) -> Any:
        make, options = self.c.llama_context_default_params, self.options
        make.restype, make.argtypes = self.library.context_params, []
        asked = make()
        asked.n_ctx, asked.n_seq_max = cells * self.sequences, self.sequences
        asked.n_batch = cells * self.sequences
        asked.n_ubatch = min(options.ubatch, asked.n_batch)
        asked.n_threads = asked.n_threads_batch = options.threads
        asked.flash_attn_type = int(options.flash)
        asked.type_k, asked.type_v = TYPES[options.cache], TYPES[options.cache_v or options.cache]
        asked.swa_full, asked.kv_unified = not options.swa_small, options.unified
        asked.cb_eval = ctypes.cast(self.watcher, POINTER)
        return asked

    def check(self) -> None:
        """Checks that the library understood the options that were given by name."""
        for name, asked in (("n_threads", self.options.threads), ("n_seq_max", self.sequences),
                            ("n_threads_batch", self.options.threads)):
            found = getattr(self.c, f"llama_{name}")(self.pointer)
            if found != asked:
                self.library.refuse(f"{name} of a new context", asked, found)

    def close(self) -> None:
        self.c.llama_free(self.pointer)

    # -- calls

    def call(self, rows: list[tuple[int, int, int]], record: Record | None) -> None:
        """Calls llama_decode on (sequence, position, token) with logits for each; the last sequence is recorded."""
        batch = self.c.llama_batch_init(len(rows), 0, 1)
        batch.n_tokens = len(rows)
        for r, (sequence, position, token) in enumerate(rows):
            batch.token[r], batch.pos[r], batch.n_seq_id[r] = token, position, 1
            batch.seq_id[r][0], batch.logits[r] = sequence, 1
        self.rows, self.running, self.record = list(rows), [], record
        status = self.c.llama_decode(self.pointer, batch)
        self.c.llama_batch_free(batch)
        if self.failure:
            raise self.failure
        if status != 0 or self.rows:
            raise TraceError(f"llama_decode of {len(rows)} tokens: expected 0 and a callback for each, found {status} "
                             f"and {len(self.rows)} without")

    def forget(self, keep: int, drop: int) -> None:
        """Removes `drop` tokens after the first `keep` from the cache; the later ones move up."""
        memory = self.c.llama_get_memory(self.pointer)
        if not self.c.llama_memory_seq_rm(memory, 0, keep, keep + drop):
            raise TraceError(f"llama.cpp does not take the tokens {keep} to {keep + drop - 1} out of its cache")
        self.c.llama_memory_seq_add(memory, 0, keep + drop, -1, -drop)

    # -- nodes

    def watch(self, tensor: Any, ask: bool, data: Any) -> bool:
        """The callback: called first to ask whether a node is wanted, and again when its value is computed."""
        try:
            node = Node(self.library, tensor.contents)
            stores = node.operation == "SET_ROWS" and node.name.startswith("cache_k_l")
            point = point_of(node, "MUL_MAT" if self.turned else "ADD")
            if not ask and stores:
                self.stored(node)
            elif not ask and point:
                self.seen(*point, node)
            return not ask or stores or point is not None
        except BaseException as failure:  # an exception cannot pass through llama.cpp
            self.failure = failure
            return False

    def stored(self, node: Node) -> None:
        """Records which tokens' keys go to which cells of the cache: this gives the columns of A10 their meaning."""
        layer = int(node.name[len("cache_k_l"):].split(" ")[0])
        self.streams[layer], self.keys[layer] = node.root().tensor.ne[1], node.root()
        held = ((sequence, position) for sequence, position, _ in self.running)
        self.cells.setdefault(layer, {}).update(zip(node.source(1).value.reshape(-1).tolist(), held))

    def begin(self, node: Node) -> None:
        """The embedding comes first: its tokens tell which rows the graph computes."""
        tokens = node.source(1).value.reshape(-1).tolist()
        self.running = self.part(len(tokens))
        if tokens != [token for _, _, token in self.running]:
            expected = [token for _, _, token in self.running]
            raise TraceError(f"expected the tokens {expected[:9]} in a part of a call, found {tokens[:9]}")
        taken = set(self.running)
        self.rows = [row for row in self.rows if row not in taken]
        if self.record and self.mine():
            self.record.begin([self.running[r][2] for r in self.mine()])

    def part(self, n: int) -> list[tuple[int, int, int]]:
        """The next n rows: in order, or equally many of each sequence if each has a cache of its own."""
        if self.options.unified or self.sequences == 1:
            return self.rows[:n]
        of = [[row for row in self.rows if row[0] == sequence] for sequence in range(self.sequences)]
        left = [rows for rows in of if rows]
        return [row for rows in left for row in rows[:n // len(left)]]

    def mine(self) -> list[int]:
        """The current rows of the recorded sequence."""
        return [r for r, (sequence, _, _) in enumerate(self.running) if sequence == self.sequences - 1]

    def seen(self, point: str, layer: int, node: Node) -> None:
        if point == "T0":
            self.begin(node)
        if self.hook and point != "A11":
            self.hook("A11" if point == "kqv_out" else point, layer, node.value)
        if self.record is None or not self.mine() or point == "kqv_out":
            return
        if point == "A10":
            self.keep_weights(layer, node.value)
            return
        value = (node.source(1) if point == "A11" else node).value.reshape(len(self.running), -1)[self.mine()]
        if self.turned and point in ("A2.q", "A2.k", "A4.q", "A4.k"):
            value = in_halves(value, self.turned)
        if point.endswith((".gate", ".up")):
            self.keep_half(point, layer, value)
        else:
            self.record.keep(point, value, layer)
        if point == "A11" and node.name.startswith("attn_out"):  # without a bias the product is A12
            self.record.keep("A12", node.value.reshape(len(self.running), -1)[self.mine()], layer)

    def keep_half(self, point: str, layer: int, value: Array) -> None:
        """Interleaves gate and up into one tensor when both are computed."""
        name, _, half = point.partition(".")
        other = self.halves.pop(name, None)
        if other is None:
            self.halves[name] = value.copy()
        elif self.record:
            gate, up = (value, other) if half == "gate" else (other, value)
            self.record.keep(name, np.stack([gate, up], axis=-1).reshape(len(value), -1), layer)

    def keep_weights(self, layer: int, value: Array) -> None:
        """The recorded sequence's [heads, rows, cells] of [streams, heads, rows, cells]; a cell's position is its
        key.
        """
        n_streams, _, n_rows, n_cells = value.shape
        rows, owner = self.mine(), self.sequences - 1
        stream = rows[0] // n_rows if n_streams > 1 else 0
        first = 0 if self.options.unified else owner * self.streams[layer]
        held = self.cells[layer]
        keys = [held.get(first + cell, (-1, -1)) for cell in range(n_cells)]
        positions = [position if sequence == owner else -1 for sequence, position in keys]
        if self.record:
            self.record.keep("A10", value[stream][:, [r % n_rows for r in rows]], layer, positions)


class Engine(Adapter):
    title = "llama.cpp, its evaluation callback"
    install = "pip install xllamacpp"
    tried = ("xllamacpp 2026.10.11549",)

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--flash", action="store_true", help="flash attention")
        parser.add_argument("--cache", choices=TYPES, default="f16", help="keys and values are kept in (f16)")
        parser.add_argument("--cache-v", choices=TYPES, help="values, where other than keys")
        parser.add_argument("--prefill", type=int, metavar="N", help="N tokens at once, and then one at a time")
        parser.add_argument("--ubatch", type=int, default=512, metavar="N", help="tokens of a graph (512)")
        parser.add_argument("--threads", type=int, default=1, metavar="N", help="(1)")
        parser.add_argument("--swa-small", action="store_true", help="sliding layers keep a window's cells alone")
        parser.add_argument("--sequences", type=int, default=1, metavar="N",
                            help="N - 1 others in each batch, before it")
        parser.add_argument("--unified", action="store_true", help="one cache for all sequences")
        parser.add_argument("--shift", type=int, metavar="N", help="before the last token, a context shift: the first "
                            "N go, and those behind take their places; traced is layer 0 up to its keys")
        parser.add_argument("--no-repack", action="store_true", help="weights stay as the file has them")
        parser.add_argument("--library", metavar="FILE", help="another library with llama.cpp's C interface")

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        super().__init__(model, options)
        self.library = Library(options.library)
        self.pointer = self.opened(model)
        self.context: Context | None = None
        self.hook: Hook | None = None
        self.fed = 0

    def opened(self, path: str) -> Any:
        make = self.library.c.llama_model_default_params
        make.restype, make.argtypes = self.library.model_params, []
        asked = make()
        asked.use_extra_bufts = not self.options.no_repack
        pointer = self.library.c.llama_model_load_from_file(path.encode(), asked)
        if not pointer:
            raise TraceError(f"{path}: llama.cpp does not load it")
        return pointer

    def said(self, key: str) -> str:
        """A key of the file; nothing if it has none."""
        text = ctypes.create_string_buffer(64)
        self.library.c.llama_model_meta_val_str(self.pointer, key.encode(), text, len(text))
        return text.value.decode()

    def turned(self) -> int:
        """The size of a head whose rotated pairs lie side by side; 0: they lie in halves."""
        if self.said("general.architecture") != "llama":
            return 0
        size = self.said("llama.attention.key_length")
        return int(size or int(self.said("llama.embedding_length")) // int(self.said("llama.attention.head_count")))

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        if self.context is None:
            self.context = Context(self.library, self.pointer, self.options, self.cells(), self.turned())
        self.context.hook = self.hook
        if self.options.shift:
            self.feed_shifted(tokens, record, self.context)
            return
        for begin, end in self.calls(len(tokens)):
            others = [(s, self.fed + i, tokens[(i + s + 1) % len(tokens)]) for s in range(self.options.sequences - 1)
                      for i in range(begin, end)]
            mine = [(self.options.sequences - 1, self.fed + i, tokens[i]) for i in range(begin, end)]
            self.context.call(others + mine, record)
        self.fed += len(tokens)

    def feed_shifted(self, tokens: Sequence[int], record: Record, context: Context) -> None:
        """Runs all but the last token, a context shift, then the last. Only layer 0 up to the keys is recorded.

        Later layers were computed from tokens that are gone. A4.k is the content of the cache.
        """
        drop, n, seen = self.options.shift, len(tokens), dict[str, list[Array]]()

        def hook(point: str, layer: int, value: Array) -> None:
            if layer == 0 and point in ("T0", "A1", "A2.k"):
                seen.setdefault(point, []).append(value.reshape(len(context.running), -1).copy())
        if self.fed or self.options.sequences > 1 or not 0 < drop < n - 1:
            raise TraceError(f"--shift {drop}: expected one sequence, in one piece, of more than {drop + 1} tokens")
        context.hook = hook
        context.call([(0, i, tokens[i]) for i in range(n - 1)], None)
        cell_of = {position: cell for cell, (_, position) in context.cells[0].items()}
        context.cells[0].clear()
        context.forget(0, drop)
        context.call([(0, n - 1 - drop, tokens[n - 1])], None)
        cell_of[n - 1] = next(iter(context.cells[0]))
        kept = list(range(drop, n))
        record.begin([tokens[i] for i in kept])
        for point, parts in seen.items():
            record.keep(point, np.concatenate(parts)[kept], 0)
        record.keep("A4.k", context.keys[0].value[0, 0][[cell_of[i] for i in kept]], 0)

    def cells(self) -> int:
        """The size of a cache for every token of a sequence: a multiple of 256 for llama.cpp."""
        n = len(parse_tokens(self.options.tokens, 2**31 - 1))
        return -(-n // 256) * 256

    def calls(self, n: int) -> list[tuple[int, int]]:
        """The calls for n tokens: all at once, or the first --prefill at once and the others one by one."""
        first = min(n, self.options.prefill or n)
        return [(0, first), *((i, i + 1) for i in range(first, n))]

    def metadata(self) -> dict[str, str]:
        options = self.options
        said = {"version": self.library.version, "cache": options.cache, "cache_v": options.cache_v,
                "flash": "on" if options.flash else "off", "threads": options.threads,
                "ubatch": options.ubatch, "prefill": options.prefill, "sequences": options.sequences,
                "processor": self.library.c.llama_print_system_info().decode().strip(" |")}
        return {name: str(value) for name, value in said.items() if value is not None}

    def close(self) -> None:
        if self.context:
            self.context.close()
        self.library.c.llama_model_free(self.pointer)
