# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""ONNX Runtime on the graph that ONNX Runtime GenAI's builder makes of a checkpoint.

    python -m sinkproof.trace onnx MODEL --tokens 5,1,7 --dtype float32 --out trace.safetensors

The builder writes the graph into a folder, which --graph keeps; the tensors between its nodes become
outputs of the graph, and the runtime computes them with the logits:

  T0 A1 A2 A12 A13 M1 M2 M11 M12 F1 F2   always
  A4.k      the new rows of the cached keys, if attention is one fused node; A11 is its output
  A4.q A4.k the rotation's outputs, if it is not
  M3 M4 M6 M8 M10   if the mixture of experts is not fused (graphs for DirectML)

The builder needs a tokenizer beside the checkpoint; one with a word for each token is made for it.
"""
from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from typing import Any

import numpy as np

from sinkproof.adapters import Record, TraceError
from sinkproof.adapters._graph import GraphAdapter, Place, refuse_input

PRECISIONS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int4": "int4"}
CACHED = re.compile(r"past_key_values\.\d+\.(key|value)")
LAYER = re.compile(r"/layers\.(\d+)/")
# The end of a node's name, the index of its output, and the point; norms and fused attention are separate.
NODES = [(r"/q_proj/Add$", 0, "A2.q"), (r"/k_proj/Add$", 0, "A2.k"), (r"/v_proj/Add$", 0, "A2.v"),
         (r"/qkv_proj/Add$", 0, "A2"), (r"/q_rotary/RotaryEmbedding$", 0, "A4.q"),
         (r"/k_rotary/RotaryEmbedding$", 0, "A4.k"),
         (r"/attn/(GroupQueryAttention|MultiHeadAttention|Attention)$", 0, "A11"), (r"/o_proj/Add$", 0, "A12"),
         (r"/post_attention_layernorm/SkipLayerNorm$", 0, "M1"),
         (r"/post_attention_layernorm/SkipLayerNorm$", 3, "A13"),
         (r"/moe/router/(MatMul/)?Add$", 0, "M2"), (r"/moe/TopK$", 1, "M3"), (r"/moe/\w*[Ss]oftmax$", 0, "M4"),
         (r"/gate_up_proj/Add$", 0, "M6"), (r"/act_fn/Mul_3$", 0, "M8"), (r"/down_proj/Add$", 0, "M10"),
         (r"/moe/(MoE|QMoE)$", 0, "M11"), (r"/weighted_sum/Squeeze$", 0, "M11")]


def folder_with_tokenizer(checkpoint: str, folder: str) -> None:
    """A folder with links to the checkpoint's files, and a tokenizer with a word for each token."""
    with open(os.path.join(checkpoint, "config.json"), encoding="utf-8") as file:
        n_tokens = json.load(file)["vocab_size"]
    for name in os.listdir(checkpoint):
        os.symlink(os.path.join(os.path.abspath(checkpoint), name), os.path.join(folder, name))
    words = {f"t{token}": token for token in range(n_tokens)}
    told = {"tokenizer.json": {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
                               "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
                               "model": {"type": "WordLevel", "vocab": words, "unk_token": "t0"}},
            "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "t0",
                                      "eos_token": "t1", "pad_token": "t2"}}
    for name, what in told.items():
        if not os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(what, file)


class Engine(GraphAdapter):
    title = "ONNX Runtime, graph by ONNX Runtime GenAI"
    install = "pip install onnxruntime onnxruntime-genai onnx onnx-ir torch transformers accelerate"
    tried = ("onnxruntime 1.31.1", "onnxruntime-genai 0.18.0", "onnx 1.23.2", "transformers 5.23.0", "torch 2.13.0")
    packages = ("onnxruntime", "onnxruntime-genai")
    dtypes = tuple(PRECISIONS)

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--build-for", choices=["cpu", "cuda", "dml", "webgpu"], default="cpu", metavar="EP",
                            help="the execution provider that the graph is built for; it always runs on the CPU's")
        parser.add_argument("--extra", action="append", default=[], metavar="KEY=VALUE",
                            help="one of the builder's --extra_options; may be given again")
        parser.add_argument("--optimize", choices=["all", "extended", "basic", "none"], default="all",
                            help="what the runtime may rewrite in the graph")
        parser.add_argument("--room", type=int, metavar="N",
                            help="keys that the cache of a sliding layer has room for (the window; more shows them)")
        parser.add_argument("--graph", metavar="DIR", help="keep the builder's graph here; take it when it is there")

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        super().__init__(model, options)
        import onnx
        import onnxruntime
        written = self.exported(options.graph, "model.onnx")
        graph = onnx.load(written, load_external_data=False)
        self.sliding = {int(layer[1]) for node in graph.graph.node if (layer := LAYER.search(node.name))
                        and any(own.name == "sliding_window_cache" and own.i for own in node.attribute)}
        self.names = self.tap(graph.graph)
        path = os.path.join(os.path.dirname(written), "watched.onnx")
        onnx.save(graph, path)
        how = onnxruntime.SessionOptions()
        how.log_severity_level = 3
        how.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, {
            "all": "ORT_ENABLE_ALL", "extended": "ORT_ENABLE_EXTENDED", "basic": "ORT_ENABLE_BASIC",
            "none": "ORT_DISABLE_ALL"}[options.optimize])
        self.session = onnxruntime.InferenceSession(path, how, providers=["CPUExecutionProvider"])
        self.past: dict[str, Any] = {}

    def export(self, folder: str) -> None:
        """Runs the builder's own command."""
        source = os.path.join(self.work.name, "source")
        os.makedirs(source)
        folder_with_tokenizer(self.model, source)
        words = [sys.executable, "-W", "ignore", "-m", "onnxruntime_genai.models.builder", "-i", source, "-o", folder,
                 "-p", PRECISIONS[self.options.dtype], "-e", self.options.build_for,
                 "-c", os.path.join(self.work.name, "cache")]
        words += ["--extra_options", *self.options.extra] if self.options.extra else []
        ran = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"},
                             check=False)
        if ran.returncode:
            said = [line for line in ran.stderr.splitlines() if line.strip()]
            raise TraceError(f"{self.model}: the builder says: {said[-1] if said else ran.returncode}".replace(
                source, self.model))

    # -- the graph

    def tap(self, graph: Any) -> dict[str, Place]:
        """{tensor: (point, layer)}; makes the tensors outputs of the graph."""
        import onnx
        found: dict[str, Place] = {"logits": ("F2", None)}
        for node in graph.node:
            layer = LAYER.search(node.name)
            for at, point, number in self.points_of(node, int(layer[1]) if layer else None):
                while len(node.output) <= at:
                    node.output.append("")
                node.output[at] = node.output[at] or f"{node.name}/output_{at}"
                found.setdefault(node.output[at], (point, number))
        held = {output.name for output in graph.output}
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in found if name not in held)
        for cached in range(len([name for name in held if name.endswith(".key")])):
            found[f"present.{cached}.key"] = ("present", cached)
        return found

    def points_of(self, node: Any, layer: int | None) -> list[tuple[int, str, int | None]]:
        """The points of a node: [(output, point, layer)]."""
        last = int(self.config("num_hidden_layers"))
        if node.name == "/model/embed_tokens/Gather":
            return [(0, "T0", None)]
        if re.search(r"/(input_layernorm|final_norm_layernorm)/(Skip)?Layer", node.name) and layer is not None:
            here: list[tuple[int, str, int | None]] = [(0, "F1", None) if layer == last else (0, "A1", layer)]
            return here + [(3, "M12", layer - 1)] * ("Skip" in node.name)
        return [(at, point, layer) for end, at, point in NODES if re.search(end, node.name) and layer is not None]

    # -- the run

    def infer(self, given: dict[str, Any]) -> dict[Place, Any]:
        feeds = {}
        for tensor in self.session.get_inputs():
            feeds[tensor.name] = given.get(tensor.name, self.past.get(tensor.name))
            if feeds[tensor.name] is None:
                feeds[tensor.name] = self.empty_cache(tensor, list(given))
        names = [output.name for output in self.session.get_outputs()]
        values = dict(zip(names, self.session.run(names, feeds)))
        self.past = {name.replace("present", "past_key_values"): value for name, value in values.items()
                     if name.startswith("present")}
        return {place: values[name] for name, place in self.names.items()}

    def empty_cache(self, tensor: Any, known: list[str]) -> Any:
        """An empty cache of a layer; a sliding one has its full size from the start."""
        if not CACHED.fullmatch(tensor.name):
            refuse_input(tensor.name, [*known, "past_key_values.L.key", "past_key_values.L.value"])
        if self.seen > 0:
            raise TraceError(f"the graph's input {tensor.name}: expected what the call before cached, and none of its "
                             f"outputs is {tensor.name.replace('past_key_values', 'present')}")
        room = 0
        if "sliding" in str(tensor.shape[2]) and int(tensor.name.split(".")[1]) in self.sliding:
            room = max(self.options.room or 0, self.config("sliding_window"))
        return np.zeros([1, self.config("num_key_value_heads"), room, self.config("head_dim")],
                        np.float16 if "float16" in tensor.type else np.float32)

    def keep(self, record: Record, place: Place, values: dict[Place, Any], n: int) -> None:
        (point, layer), value = place, values[place]
        if point == "present":
            # Rotated keys of a fused node: the new rows, as long as a sliding layer's cache holds all keys.
            if ("A4.k", layer) not in values and value.shape[2] >= self.seen:
                record.keep("A4.k", value[0][:, self.seen - n:self.seen].transpose(1, 0, 2), layer)
        elif point == "A2":
            q = self.config("num_attention_heads") * self.config("head_dim")
            k = self.config("num_key_value_heads") * self.config("head_dim")
            for part, begin, stop in (("q", 0, q), ("k", q, q + k), ("v", q + k, q + 2 * k)):
                record.keep(f"A2.{part}", value[0][:, begin:stop], layer)
        else:
            super().keep(record, place, values, n)

    def metadata(self) -> dict[str, str]:
        return {"built_for": self.options.build_for, "provider": "CPUExecutionProvider",
                "optimize": self.options.optimize, "extra_options": " ".join(self.options.extra)}
