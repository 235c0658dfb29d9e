# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Drivers of published attention kernels: each calls one on the inputs of a stage `attention`, and returns A11.

    from sinkproof.kernels import Call, kernel_named
    o = kernel_named("fla").function(Call(q, k, v, sinks, window))

All drivers have one signature. Tensors are torch's, on the device and in the dtype of the kernel: queries
[rows, heads, dim], keys and values [keys, groups, dim], sinks [heads], the result [rows, heads, dim]. Row r is at
position keys - rows + r, and sees the last `window` keys up to its own (0: all of them). Scores are divided by
sqrt(dim). So a prompt in one piece has as many rows as keys, and a piece over a cache has fewer.

A driver calls the kernel as its engine does, and computes nothing of the attention itself.
"""
from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from sinkproof.adapters import installed

Tensor = Any  # torch is absent during type checking


@dataclasses.dataclass(frozen=True)
class Call:
    """The inputs of one call; shapes as above."""

    q: Tensor
    k: Tensor
    v: Tensor
    sinks: Tensor
    window: int

    @property
    def first(self) -> int:
        """The position of the first row."""
        return int(self.k.shape[0] - self.q.shape[0])

    @property
    def scale(self) -> float:
        dim: int = self.q.shape[2]
        return 1 / math.sqrt(dim)

    def rows(self, begin: int, end: int) -> Call:
        """Rows [begin, end) alone, with the keys up to the last of them."""
        keys = self.first + end
        return dataclasses.replace(self, q=self.q[begin:end].contiguous(), k=self.k[:keys].contiguous(),
                                   v=self.v[:keys].contiguous())

    def visible(self) -> Tensor:
        """[rows, keys]: whether the row sees the key."""
        import torch
        row = torch.arange(self.first, self.k.shape[0], device=self.q.device)[:, None]
        key = torch.arange(self.k.shape[0], device=self.q.device)[None, :]
        return (key <= row) & (key > row - self.window) if self.window else key <= row


# ------------------------------------------------------------------------------------------
# transformers


def layer_of(call: Call) -> Any:
    """What the attention functions of transformers read of their module."""
    return SimpleNamespace(sinks=call.sinks, num_key_value_groups=call.q.shape[1] // call.k.shape[1], training=False)


def with_batch(x_nhd: Tensor) -> Tensor:
    return x_nhd.transpose(0, 1)[None]


def eager(call: Call) -> Tensor:
    import torch
    from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward
    hidden = torch.zeros(call.visible().shape, dtype=call.q.dtype, device=call.q.device)
    hidden.masked_fill_(~call.visible(), torch.finfo(call.q.dtype).min)
    out, _ = eager_attention_forward(layer_of(call), with_batch(call.q), with_batch(call.k), with_batch(call.v),
                                     hidden[None, None], call.scale)
    return out[0]


def flex(call: Call) -> Tensor:
    import torch._dynamo
    from torch.nn.attention.flex_attention import create_block_mask
    from transformers.integrations.flex_attention import flex_attention_forward

    def seen(_batch: Tensor, _head: Tensor, row: Tensor, key: Tensor) -> Tensor:
        at = row + call.first
        return (key <= at) & (key > at - call.window) if call.window else key <= at

    # transformers compiles it; torch would go on without its kernel after eight shapes
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1000
    mask = create_block_mask(seen, None, None, call.q.shape[0], call.k.shape[0], device=call.q.device)
    out, _ = flex_attention_forward(layer_of(call), with_batch(call.q), with_batch(call.k), with_batch(call.v), mask,
                                    scaling=call.scale, s_aux=call.sinks)
    return out[0]


# ------------------------------------------------------------------------------------------
# Triton kernels


def gpt_oss_triton(call: Call) -> Tensor:
    import torch
    from gpt_oss.triton.attention import attention
    rows, heads, dim = call.q.shape
    groups = call.k.shape[1]
    start = torch.tensor([call.first], dtype=torch.int32, device=call.q.device)
    out = attention(call.q.view(1, rows, groups, heads // groups, dim), call.k[None], call.v[None], call.sinks,
                    call.scale, call.window, start)
    return out[0].view(rows, heads, dim)


def fla(call: Call) -> Tensor:
    from fla.ops.attn.parallel import parallel_attn
    return parallel_attn(call.q[None], call.k[None], call.v[None], scale=call.scale,
                         window_size=call.window or None, sink_bias=call.sinks)[0]


PAGE = 16      # keys of a page of vLLM's cache
SEGMENTS = 16  # parts of the keys when a single row is decoded


def paged(x_nhd: Tensor) -> Tensor:
    """[pages, PAGE, groups, dim], the last page filled up with zeros."""
    import torch
    n, groups, dim = x_nhd.shape
    pages = torch.zeros(-(-n // PAGE) * PAGE, groups, dim, dtype=x_nhd.dtype, device=x_nhd.device)
    pages[:n] = x_nhd
    return pages.view(-1, PAGE, groups, dim)


def whole_numbers(call: Call, *numbers: int) -> Tensor:
    import torch
    return torch.tensor(numbers, dtype=torch.int32, device=call.q.device)


def unified_attention(call: Call, k: Tensor, v: Tensor, **cached: Any) -> Tensor:
    """vLLM's kernel over a cache in pages; `cached` says how the cache is quantised."""
    import torch
    from vllm.v1.attention.ops.triton_unified_attention import unified_attention as attention
    rows, heads, dim = call.q.shape
    keys, out = call.k.shape[0], torch.empty_like(call.q)
    parts: dict[str, Any] = {}
    if rows == 1:  # the kernel for single rows: parts of the keys, merged by a second kernel
        room, padded = (1, heads, SEGMENTS), 1 << (dim - 1).bit_length()
        parts = {"seq_threshold_3D": 8, "num_par_softmax_segments": SEGMENTS,
                 "softmax_segm_output": torch.empty(*room, padded, device=k.device),
                 "softmax_segm_max": torch.empty(room, device=k.device),
                 "softmax_segm_expsum": torch.empty(room, device=k.device)}
    attention(q=call.q, k=k, v=v, out=out, cu_seqlens_q=whole_numbers(call, 0, rows), max_seqlen_q=rows,
              seqused_k=whole_numbers(call, keys), max_seqlen_k=keys, softmax_scale=call.scale, causal=True,
              window_size=(call.window - 1, 0) if call.window else (-1, -1),
              block_table=whole_numbers(call, *range(k.shape[0]))[None], softcap=0, q_descale=None,
              sinks=call.sinks, **{"k_descale": None, "v_descale": None, **cached}, **parts)
    return out


def vllm_triton(call: Call) -> Tensor:
    return unified_attention(call, paged(call.k), paged(call.v))


def vllm_triton_fp8(call: Call) -> Tensor:
    """A cache in e4m3 with the scale 1, as `--kv-cache-dtype fp8` makes it where the checkpoint states none."""
    import torch
    from vllm.v1.kv_cache_interface import KVQuantMode
    one = torch.ones(1, dtype=torch.float32, device=call.q.device)
    k, v = (paged(x).clamp(-448, 448).to(torch.float8_e4m3fn) for x in (call.k, call.v))
    return unified_attention(call, k, v, k_descale=one, v_descale=one, kv_quant_mode=KVQuantMode.FP8_PER_TENSOR)


def vllm_triton_token_head(call: Call, dtype: Any, mode: str) -> Tensor:
    """A cache with a scale for each token and head, which vLLM's own kernel writes."""
    import torch
    from vllm.v1.attention.ops.triton_reshape_and_cache_flash import (
        triton_reshape_and_cache_flash_per_token_head_quant as write,
    )
    from vllm.v1.kv_cache_interface import KVQuantMode
    keys, groups, dim = call.k.shape
    pages, device, kind = -(-keys // PAGE), call.q.device, KVQuantMode[mode]
    k, v = (torch.zeros(pages, PAGE, groups, dim, dtype=dtype, device=device) for _ in range(2))
    k_scale, v_scale = (torch.ones(pages, PAGE, groups, device=device) for _ in range(2))
    write(call.k, call.v, k, v, k_scale, v_scale, key_places(0, keys, call), kind)
    return unified_attention(call, k, v, kv_quant_mode=kind, k_scale_cache=k_scale, v_scale_cache=v_scale)


def vllm_triton_int8(call: Call) -> Tensor:
    import torch
    return vllm_triton_token_head(call, torch.int8, "INT8_PER_TOKEN_HEAD")


def vllm_triton_fp8_token_head(call: Call) -> Tensor:
    import torch
    return vllm_triton_token_head(call, torch.float8_e4m3fn, "FP8_PER_TOKEN_HEAD")


def flash_attention_3(call: Call) -> Tensor:
    from vllm.vllm_flash_attn import flash_attn_varlen_func
    rows, keys = call.q.shape[0], call.k.shape[0]
    return flash_attn_varlen_func(call.q, paged(call.k), paged(call.v), max_seqlen_q=rows,
                                  cu_seqlens_q=whole_numbers(call, 0, rows), max_seqlen_k=keys,
                                  seqused_k=whole_numbers(call, keys), softmax_scale=call.scale, causal=True,
                                  window_size=[call.window - 1, 0] if call.window else [-1, -1],
                                  block_table=whole_numbers(call, *range(-(-keys // PAGE)))[None], fa_version=3,
                                  s_aux=call.sinks)


def key_places(begin: int, end: int, call: Call) -> Tensor:
    import torch
    return torch.arange(begin, end, dtype=torch.int64, device=call.q.device)


def sglang_decode(call: Call) -> Tensor:
    import torch
    from sglang.kernels.ops.attention.decode_attention import decode_attention_fwd
    rows, heads, dim = call.q.shape
    if rows != 1:
        raise ValueError("it computes a single row")
    keys, splits = call.k.shape[0], 8
    begin = max(0, keys - call.window) if call.window else 0  # the engine hands on the places in the window alone
    out = torch.empty_like(call.q)
    logits = torch.empty(1, heads, splits, dim, dtype=torch.float32, device=out.device)
    lse = torch.empty(1, heads, splits, dtype=torch.float32, device=out.device)
    decode_attention_fwd(call.q, call.k, call.v, out, whole_numbers(call, 0, keys - begin),
                         key_places(begin, keys, call), logits, lse, whole_numbers(call, splits), splits, call.scale,
                         1.0, 1.0, sinks=call.sinks)
    return out


def extend(call: Call, out: Tensor, **more: Any) -> None:
    if call.window == 1:
        raise ValueError("a window of one key is no window to it: its word for it is 0, which means none")
    from sglang.kernels.ops.attention.extend_attention import extend_attention_fwd
    first, rows = call.first, call.q.shape[0]
    extend_attention_fwd(call.q, call.k[first:].contiguous(), call.v[first:].contiguous(), out, call.k, call.v,
                         whole_numbers(call, 0, rows), whole_numbers(call, 0, first), key_places(0, first, call), None,
                         True, None, rows, 1.0, 1.0, sm_scale=call.scale,
                         sliding_window_size=call.window - 1 if call.window else -1, **more)


def sglang_extend(call: Call) -> Tensor:
    import torch
    out = torch.empty_like(call.q)
    extend(call, out, sinks=call.sinks)
    return out


def cascade(call: Call) -> Tensor:
    """Two parts of the keys, each rounded to the queries' dtype, merged by their log-sum-exp: the earlier keys, and
    the piece's own keys with the sink."""
    import torch
    from vllm.v1.attention.ops.triton_merge_attn_states import merge_attn_states
    if call.first == 0:
        return sglang_extend(call)
    outs = [torch.empty_like(call.q) for _ in range(3)]
    lse = [torch.empty(call.q.shape[:2], dtype=torch.float32, device=call.q.device) for _ in range(2)]
    extend(call, outs[0], lse_extend=lse[0], skip_extend=True)
    extend(call, outs[1], lse_extend=lse[1], skip_prefix=True, sinks=call.sinks)
    merge_attn_states(outs[2], outs[0], lse[0].T.contiguous(), outs[1], lse[1].T.contiguous())
    return outs[2]


# ------------------------------------------------------------------------------------------
# The list


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A published kernel. `install` makes it importable; `pieces` are the ways in which it is called."""

    name: str
    title: str
    packages: tuple[str, ...]  # whose versions say which kernel it is, its own first
    function: Callable[[Call], Tensor]
    pieces: tuple[str, ...] = ("prompt", "chunks", "decode")
    dtypes: tuple[str, ...] = ("bf16", "f16", "f32")

    def versions(self) -> dict[str, str]:
        """The versions of its packages, those of torch and Triton too, as far as they are installed."""
        return installed(list(dict.fromkeys((*self.packages, "torch", "triton"))))


KERNELS = (
    Kernel("eager", "transformers, eager attention of GPT-OSS", ("transformers",), eager),
    Kernel("flex", "transformers, FlexAttention", ("transformers",), flex, ("prompt",)),
    Kernel("gpt-oss-triton", "OpenAI's Triton attention", ("gpt-oss",), gpt_oss_triton, ("prompt", "chunks")),
    Kernel("fla", "flash-linear-attention, parallel_attn", ("fla-core",), fla, ("prompt",)),
    Kernel("vllm-triton", "vLLM, Triton unified attention", ("vllm",), vllm_triton),
    Kernel("vllm-triton-fp8", "the same over a cache in e4m3, scale 1", ("vllm",), vllm_triton_fp8, ("decode",)),
    Kernel("vllm-triton-int8", "the same over int8, a scale for each token and head", ("vllm",), vllm_triton_int8,
           ("decode",)),
    Kernel("vllm-triton-fp8-token", "the same over e4m3, a scale for each token and head", ("vllm",),
           vllm_triton_fp8_token_head, ("decode",)),
    Kernel("fa3", "FlashAttention-3 as vLLM ships it", ("vllm",), flash_attention_3, dtypes=("bf16", "f16")),
    Kernel("sglang-decode", "SGLang, Triton decode", ("sglang",), sglang_decode, ("decode",)),
    Kernel("sglang-extend", "SGLang, Triton extend", ("sglang",), sglang_extend, ("prompt", "chunks")),
    Kernel("cascade", "SGLang's extend in two parts, merged by vLLM's kernel", ("sglang", "vllm"), cascade,
           ("chunks",)),
)


def kernel_named(name: str) -> Kernel:
    """The kernel of a name; KeyError lists those that are known."""
    for kernel in KERNELS:
        if kernel.name == name:
            return kernel
    raise KeyError(f'no kernel "{name}": known are {", ".join(kernel.name for kernel in KERNELS)}')


def in_pieces(kernel: Kernel, pieces: str, call: Call) -> Tensor:
    """A prompt through the kernel: whole, in two chunks, or a row at a time."""
    import torch
    n = call.q.shape[0]
    cuts = {"prompt": [0, n], "chunks": [0, n // 2, n], "decode": list(range(n + 1))}[pieces]
    return torch.cat([kernel.function(call.rows(begin, end)) for begin, end in zip(cuts, cuts[1:]) if begin < end])
