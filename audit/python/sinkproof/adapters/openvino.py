# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""OpenVINO on the model that optimum-intel exports from a checkpoint, with additional results.

    python -m sinkproof.trace openvino MODEL --tokens 5,1,7 --precision f32 --out trace.safetensors

It has every point but A6, A9 and A10, which exist only inside the fused attention. The exported model
computes every expert for every token: M6, M8 and M10 are the rows of those that its top k chose. Its
tensors are float32 whatever the kernels compute in; --precision is a hint to the runtime, whose default
depends on the processor. --ir keeps the export, or uses an existing one.
"""
from __future__ import annotations

import argparse
import contextlib
import os
import re
from typing import Any

import numpy as np

from sinkproof.adapters import Record, TraceError
from sinkproof.adapters._graph import GraphAdapter, Place, refuse_input

# The name of an operation without "__module.model.layers.L", and its point.
LAYERS = [(r"\.input_layernorm/aten::mul/Multiply_1$", "A1"),
          (r"\.self_attn\.q_proj/ov_ext::linear/Add$", "A2.q"), (r"\.self_attn\.k_proj/ov_ext::linear/Add$", "A2.k"),
          (r"\.self_attn\.v_proj/ov_ext::linear/Add$", "A2.v"),
          (r"\.self_attn/aten::reshape/Reshape_3$", "A11"), (r"\.self_attn\.o_proj/ov_ext::linear/Add$", "A12"),
          (r"/aten::add/Add$", "A13"), (r"\.post_attention_layernorm/aten::mul/Multiply_1$", "M1"),
          (r"\.mlp\.router/aten::linear/Add$", "M2"), (r"\.mlp\.router/aten::topk/TopK$", "M3"),
          (r"\.mlp\.router/aten::softmax/Softmax$", "M4"), (r"\.mlp\.experts/aten::add/Add$", "M6"),
          (r"\.mlp\.experts/aten::mul/Multiply_2$", "M8"), (r"\.mlp\.experts/aten::add/Add_2$", "M10"),
          (r"\.mlp/aten::reshape/Reshape_1$", "M11"), (r"/aten::add/Add_1$", "M12")]
WHOLE = [(r"^__module\.model\.embed_tokens/.*Gather$", "T0"), (r"^__module\.model\.norm/aten::mul/Multiply_1$", "F1")]
BY_HEAD = ("A4.q", "A4.k")         # [1, heads, n, head_dim]
BY_EXPERT = ("M6", "M8", "M10")    # [experts, n, width]


class Engine(GraphAdapter):
    title = "OpenVINO, model by optimum-intel"
    install = "pip install openvino optimum-intel torch; pip uninstall torchvision, where it is of another build"
    tried = ("openvino 2026.4.1", "optimum-intel 2.2.0", "transformers 5.5.4", "torch 2.13.0")
    packages = ("openvino", "optimum-intel", "transformers")

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--precision", choices=["default", "f32", "bf16", "f16"], default="default",
                            help="the hint of what to compute in")
        parser.add_argument("--cache-precision", choices=["default", "f32", "bf16", "f16", "u8"], default="default",
                            help="what keys and values are kept in")
        parser.add_argument("--mode", choices=["default", "accuracy", "performance"], default="default",
                            help="the hint of what matters")
        parser.add_argument("--weights", choices=["plain", "int8", "int4"], default="plain",
                            help="what optimum-intel makes of them when it exports")
        parser.add_argument("--ir", metavar="DIR", help="keep the exported model here; take it when it is there")

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        super().__init__(model, options)
        import openvino
        core = openvino.Core()
        network = core.read_model(self.exported(options.ir, "openvino_model.xml"))
        self.names = self.tap(network)
        hints = {"INFERENCE_PRECISION_HINT": options.precision, "KV_CACHE_PRECISION": options.cache_precision,
                 "EXECUTION_MODE_HINT": options.mode.upper()}
        self.compiled = core.compile_model(network, "CPU", {key: value for key, value in hints.items()
                                                            if value.lower() != "default"})
        self.request = self.compiled.create_infer_request()

    def export(self, folder: str) -> None:
        """Exports with optimum-intel; the output of its libraries is discarded."""
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        with open(os.devnull, "w", encoding="utf-8") as nothing, contextlib.redirect_stdout(nothing):
            from optimum.intel import OVModelForCausalLM, OVWeightQuantizationConfig
            bits = {"plain": None, "int8": 8, "int4": 4}[self.options.weights]
            how: dict[str, Any] = {"load_in_8bit": False} if bits is None else {
                "quantization_config": OVWeightQuantizationConfig(bits=bits)}
            network = OVModelForCausalLM.from_pretrained(self.model, export=True, compile=False, **how)
            network.save_pretrained(folder)

    def tap(self, network: Any) -> list[Place]:
        """(point, layer) of each result, in the order of the results; None: not a point."""
        found: list[tuple[Any, str, int | None]] = []
        n_heads = self.config("num_attention_heads")
        for operation in network.get_ordered_ops():
            name = operation.get_friendly_name()
            layer = re.match(r"__module\.model\.layers\.(\d+)(.*)$", name)
            if layer and self.joins_halves(operation):
                heads = operation.get_output_partial_shape(0)[1].get_length()
                found.append((operation.output(0), "A4.q" if heads == n_heads else "A4.k", int(layer[1])))
            places = LAYERS if layer else WHOLE
            for pattern, point in places:
                if re.match(pattern, layer[2] if layer else name):
                    number = int(layer[1]) if layer else None
                    found.append((operation.output(1 if point == "M3" else 0), point, number))
        if not any(point == "A11" for _, point, _ in found):
            raise TraceError(f"{self.model}: the exported model has no operations of the names that are known")
        network.add_outputs([output for output, _, _ in found])
        return [("F2", None), *((point, number) for _, point, number in found)]

    @staticmethod
    def joins_halves(operation: Any) -> bool:
        """Whether it ends a rotation: joins two halves, a difference and a sum."""
        return operation.get_type_name() == "Concat" and [
            operation.input_value(at).get_node().get_type_name() for at in range(operation.get_input_size())
        ] == ["Subtract", "Add"]

    def infer(self, given: dict[str, Any]) -> dict[Place, Any]:
        given["beam_idx"] = np.zeros(1, np.int32)
        known = {name for tensor in self.compiled.inputs for name in tensor.get_names()}
        for tensor in self.compiled.inputs:
            if not given.keys() & tensor.get_names():
                refuse_input(" or ".join(sorted(tensor.get_names())), list(given))
        self.request.infer({name: value for name, value in given.items() if name in known})
        return {place: np.array(self.request.get_output_tensor(at).data) for at, place in enumerate(self.names)}

    def keep(self, record: Record, place: Place, values: dict[Place, Any], n: int) -> None:
        (point, layer), value = place, values[place]
        if point in BY_HEAD:
            record.keep(point, value[0].transpose(1, 0, 2), layer)
        elif point in BY_EXPERT:
            chosen = values["M3", layer].reshape(n, -1)
            record.keep(point, value.reshape(-1, n, value.shape[-1])[chosen, np.arange(n)[:, None]], layer)
        else:
            super().keep(record, place, values, n)

    def metadata(self) -> dict[str, str]:
        hints = [f"{key}={self.compiled.get_property(key)}" for key in
                 ("INFERENCE_PRECISION_HINT", "KV_CACHE_PRECISION", "EXECUTION_MODE_HINT")]
        return {"dtype": "float32 between operations", "hints": ", ".join(hints), "weights": self.options.weights}
