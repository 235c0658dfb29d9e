# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Kernels drilled from Python: honest ones acquitted, mistakes convicted and named, what is refused; run by
python_inside.py, and with torch or another library where the environment has it."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
import checkpoints  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import sinkproof  # noqa: E402
from drilled_kernels import POLICY, attended, lse_of, raised  # noqa: E402
from sinkproof.testing import assert_kernel  # noqa: E402
from tap import Tap  # noqa: E402

seen = []


def honest(q, k, v, sinks, window, first):
    seen.append((q.dtype, first, window, q.shape, k.shape))
    return attended(q, k, v, sinks, window, first)


def planted(mistake):
    def kernel(q, k, v, sinks, window, first):
        return attended(q, k, v, sinks, window, first, mistake)
    return kernel


def check_honest(tap):
    for policy, dtype in (("bf16", ml_dtypes.bfloat16), (POLICY, ml_dtypes.bfloat16), ("f16", np.float16), ("f32", np.float32)):
        seen.clear()
        found = assert_kernel(honest, policy=policy, limit=40)
        tap.report(found.ok and (found.calls, found.failing, found.suspicious, found.not_served, found.cause) == (40, 0, 0, 0, None)
                   and str(found).startswith(f"honest under {policy}\n") and {s[0] for s in seen} == {np.dtype(dtype)},
                   f"40 calls of an honest kernel are within {policy}", [found, {s[0] for s in seen}])
    cached, released = [s for s in seen if s[1]], [s for s in seen if s[3][1:] == (64, 64) and s[4][1:] == (8, 64)]
    tap.report(any(len(s[3:]) and s[3][0] == 1 for s in cached) and any(s[3][0] > 1 for s in cached) and any(s[2] for s in cached)
               and any(s[1] for s in released) and all(s[4][0] == s[1] + s[3][0] for s in seen),
               f"{len(cached)} of {len(seen)} calls are over a cache: chunks, single tokens, windows, the released heads")
    begun = time.process_time()
    sinkproof.drill(honest, policy=POLICY, limit=40)
    forty, begun = time.process_time() - begun, time.process_time()
    one = sinkproof.drill(honest, policy=POLICY, only="attention:n=17,chunk=0,window=8,heads=4,kv=2,dim=64")
    alone = time.process_time() - begun
    tap.report(forty < 2 and alone < 0.05 and one.calls == 1, f"40 calls take {forty:.2f} s of the processor, one {alone:.3f} s")
    tap.report(sinkproof.drill(honest, policy="bf16", limit=20, model="synthetic:tiny").ok, "at the sizes of a model")
    wide = sinkproof.drill(honest, policy="f32", dtype="f32", limit=9)
    tap.report(wide.ok and wide.calls == 9, "a dtype that is said")


def check_planted(tap):
    for mistake, names in (("cache", {"cache-unread"}), ("sink", {"sink-dropped", "sink-in-max-only", "sink-renormalised"}),
                           ("window", {"window-off"})):
        found = sinkproof.drill(planted(mistake), policy=POLICY, limit=40)
        said = str(raised(AssertionError, found.check) or "")
        last = said.splitlines()[-1]
        told = {word.split("]")[0] for word in last.split("[")[1:]}
        tap.report(not found.ok and found.verdict is sinkproof.Verdict.BUG and told == names and last == f"Cause: {found.cause}"
                   and said.startswith("The kernel's attention is not honest!\n\nFailing calls: ") and found.why in said
                   and f"\nThe smallest that fails: {found.case}\n  A11[" in said and f"Policy: {POLICY}" in said,
                   f"the mistake {mistake} is convicted, and its cause ends the message", said.splitlines())
        again = sinkproof.drill(planted(mistake), policy=POLICY, only=found.case)
        tap.report((again.calls, again.failing, again.why) == (1, 1, found.why) and
                   sinkproof.drill(honest, policy=POLICY, only=found.case).ok, f"its smallest call shows {mistake} again", [again])
    for policy in ("bf16", "f16", "flash-bf16", "flash-f16", "f32", "vllm-bf16", "bf16-operands"):
        call = {"policy": policy, "only": "attention:n=17,chunk=0,window=0,heads=4,kv=2,dim=64,sinks=overflowing"}
        seen.clear()
        found, ok = sinkproof.drill(planted("max"), **call), sinkproof.drill(honest, **call)
        tap.report(ok.failing == 0 and len(seen) == 1 and found.failing == 1 and "is NaN" in found.why,
                   f"a sink that overflows outside of the maximum: {found.verdict.value} under {policy}", [found, ok])
    none = sinkproof.drill(planted("sink"), policy=POLICY, limit=9, first=True, cause=False)
    tap.report(none.cause is None and none.failing and "Cause" not in none.sentence(), "without the cause", [none])


def check_broken(tap):
    def last_nan(q, k, v, sinks, window, first):
        out = attended(q, k, v, sinks, window, first)
        out[-1, -1, -1] = np.nan
        return out

    def short(q, k, v):
        return q.reshape(len(q), -1)

    def two(q, k, v):
        return q, q

    def into(q, k, v, sinks, window, first):
        out = attended(q, k, v, sinks, window, first)
        q[...] = sinks[0] = 0
        return out

    def raising(q, first):
        raise ValueError(f"no page at {first}")

    def picky(q, k, v, sinks, window, first):
        if q.shape[2] != 64 or window:
            raise NotImplementedError
        return attended(q, k, v, sinks, window, first)

    for kernel, says in ((last_nan, " is NaN, expected "), (short, "A11: expected shape [1, 1, 2], found [1, 2]"),
                         (two, "expected A11 of the kernel, found 2 results"), (lambda q: None, "A11: expected an array"),
                         (lambda q: q + 1j, "A11: expected an array of bfloat16"),
                         (raising, "it raised ValueError: no page at 0")):
        said = raised(AssertionError, lambda: assert_kernel(kernel, policy=POLICY, limit=20))  # pylint: disable=cell-var-from-loop
        tap.report(said is not None and says in str(said), f"a failing call: {says}", [said])
        tap.report(isinstance(said.__cause__, ValueError) == (kernel is raising), "and the kernel's own exception is its cause")
    tap.report(sinkproof.drill(into, policy=POLICY, limit=20).ok, "arrays are copies: a kernel may write into them")
    some = sinkproof.drill(picky, policy=POLICY, limit=40)
    tap.report(some.ok and some.not_served > 0 and some.calls + some.not_served == 40, "what is not served is counted", [some])

    def none(q):
        raise NotImplementedError

    said = raised(AssertionError, lambda: assert_kernel(none, limit=20))
    tap.report(str(said) == "The kernel serves none of the 20 calls of attention", "a kernel that serves nothing is not honest", [said])

    def interrupted(q):
        seen.append(q)
        raise KeyboardInterrupt

    seen.clear()
    tap.report(raised(KeyboardInterrupt, lambda: sinkproof.drill(interrupted)) and len(seen) == 1, "an interrupt ends the drill")
    tap.report(isinstance(raised(TypeError, lambda: bool(some)), TypeError), "a drill has no truth value")


def check_refused(tap):
    for act, says in (
            (lambda: sinkproof.drill(honest, "attenti0n"), "no stage 'attenti0n': the nearest known is attention"),
            (lambda: sinkproof.drill(honest, policy="bf17"), "bf17"),
            (lambda: sinkproof.drill(honest, limit=0), "expected a limit from 1 on, found 0"),
            (lambda: sinkproof.drill(honest, rate=2.0), "expected a rate between 0 and 1"),
            (lambda: sinkproof.drill(honest, only="attention:m=3"), "'m=3' says nothing"),
            (lambda: sinkproof.drill(lambda q, pages: q), "parameter pages of the kernel: expected one of "),
            (lambda: sinkproof.drill(honest, policy="f32", dtype="bf16"), "the policy's numbers are not all in dtype BF16"),
            (lambda: sinkproof.drill(honest, dtype="fp4"), "dtype: expected bf16, f16 or f32, found 'fp4'"),
            (lambda: sinkproof.drill(honest, device="cuda"), "numpy's arrays are on no device, found 'cuda'"),
            (lambda: sinkproof.drill(honest, like="tensorflow"), "like: expected numpy, torch, jax, cupy, mlx")):
        said = raised(sinkproof.Error, act)
        tap.report(said is not None and says in str(said) and "\n" not in str(said), f"refused: {says}", [said])


def check_stages(tap):
    def rmsnorm(x, attn_norm, rms_eps):
        x = x.astype(np.float64)
        return (x / np.sqrt((x * x).mean(1, keepdims=True) + rms_eps) * attn_norm).astype(np.float32)

    def swiglu(M6, swiglu_alpha, swiglu_limit):
        gate, up = M6[..., ::2].astype(np.float64), M6[..., 1::2].astype(np.float64)
        gate, up = np.minimum(gate, swiglu_limit), np.clip(up, -swiglu_limit, swiglu_limit)
        with np.errstate(over="ignore"):
            return (gate / (1 + np.exp(-swiglu_alpha * gate)) * (up + 1)).astype(np.float32)

    def mixture(M10, M3, M4):
        seen.append(M3.dtype)
        return (M10 * M4[:, :, None]).sum(1, dtype=np.float32)

    seen.clear()
    for kernel in (rmsnorm, swiglu, mixture):
        tap.report(assert_kernel(kernel, kernel.__name__, "f32", limit=60).calls == 60, f"an honest {kernel.__name__}")
    tap.report({str(kind) for kind in seen} == {"int32"}, "experts are whole numbers", seen[:3])
    found = sinkproof.drill(lambda x, attn_norm, rms_eps: rmsnorm(x, attn_norm, 10 * rms_eps), "rmsnorm", "f32", limit=60)
    tap.report(not found.ok and found.cause is not None, "another eps is convicted", [found])


def varlen(mistake):
    """Sequences packed end to end; the mistakes are a boundary that is not there, and the queries' for the keys'."""
    def kernel(q, k, v, sinks, cu_seqlens_q, cu_seqlens_k, window, max_seqlen_q):
        assert cu_seqlens_q.dtype == np.int32 and (np.diff(cu_seqlens_q) <= max_seqlen_q).all()
        of_keys = cu_seqlens_q if mistake == "lengths" else cu_seqlens_k
        out, lse = np.zeros_like(q), np.zeros(q.shape[:2], np.float32)  # of the keys, [rows, heads]
        for i, (begin, end) in enumerate(zip(cu_seqlens_q, cu_seqlens_q[1:])):
            least, most = 0 if mistake == "bleeds" else of_keys[i], of_keys[i + 1]
            first = most - least - (end - begin)
            out[begin:end] = attended(q[begin:end], k[least:most], v[least:most], sinks, window, first)
            lse[begin:end] = lse_of(q[begin:end], k[least:most], sinks, window, first, False).T
        return out, np.roll(lse, 1, axis=0) if mistake == "lse" else lse
    return kernel


def paged(mistake):
    """A cache in pages; the mistakes are pages in the order of the cache, and the whole last page."""
    def kernel(q, k_cache, v_cache, block_table, seqused_k, sinks, window, page_size):
        assert k_cache.shape[1] == page_size
        order = np.arange(block_table.shape[1]) if mistake == "order" else block_table[0]
        keys = block_table.shape[1] * page_size if mistake == "last-page" else seqused_k[0]
        k, v = (x[order].reshape(-1, *x.shape[2:])[:keys] for x in (k_cache, v_cache))
        return attended(q, k, v, sinks, window, keys - len(q))
    return kernel


def check_layouts(tap):
    for signature, make, mistakes in (("varlen", varlen, ("bleeds", "lengths", "lse")), ("paged", paged, ("order", "last-page"))):
        options = {"policy": POLICY, "signature": signature, "lse": signature == "varlen" and "without-sink", "page": 4}
        options["lse_layout"] = "tokens,heads" if signature == "varlen" else None
        found = sinkproof.drill(make(""), limit=40, **options)
        tap.report(found.ok and found.calls == 40, f"an honest kernel of signature {signature}", [found])
        for mistake in mistakes:
            found = sinkproof.drill(make(mistake), limit=40, first=True, cause=False, **options)
            tap.report(not found.ok and found.failing and found.exception is None, f"{signature}: the mistake {mistake} is convicted",
                       [found])
    for act, says in ((lambda: sinkproof.drill(honest, signature="ragged"), "signature: expected varlen or paged, found 'ragged'"),
                      (lambda: sinkproof.drill(paged(""), signature="paged", page=0), "expected pages of 1 key or more, found 0"),
                      (lambda: sinkproof.drill(lambda x: x, "rmsnorm", signature="paged"), "are those of the stage attention"),
                      (lambda: sinkproof.drill(honest, signature="paged"), "parameter k of the kernel: expected one of n, first")):
        said = raised(sinkproof.Error, act)
        tap.report(said is not None and says in str(said), f"refused: {says}", [said])
    alone = sinkproof.drill(honest, policy=POLICY, limit=4, lse=True)
    tap.report("expected A11, A9.lse of the kernel, found" in str(alone), "a log-sum-exp that is not there", [alone])


def numbers(codes, scale):
    return codes.astype(np.float32) * (scale if scale.shape == (1,) else scale[..., None])


def eight_bits(mistake):
    """Keys and values as codes; the mistakes are a scale that is dropped, and one that is another's."""
    def kernel(q, k, v, k_scale, v_scale, sinks, window, first):
        seen.append((k.dtype, v.dtype, k_scale.dtype, k_scale.shape))
        if mistake == "dropped":
            v_scale = np.ones_like(v_scale)
        if mistake == "exchanged":
            k_scale, v_scale = v_scale, k_scale
        if mistake == "head":
            k_scale = np.roll(k_scale, 1, axis=-1)
        return attended(q, numbers(k, k_scale), numbers(v, v_scale), sinks, window, first)
    return kernel


def eight_bits_in_pages(q, k_cache, v_cache, k_scale, v_scale, block_table, seqused_k, sinks, window):
    seen.append((k_cache.dtype, v_cache.dtype, k_scale.dtype, k_scale.shape))
    paged_scales = k_scale.shape[:2] == k_cache.shape[:2]
    k, v = (numbers(x[block_table[0]], s[block_table[0]] if paged_scales else s).reshape(-1, *x.shape[2:])[:seqused_k[0]]
            for x, s in ((k_cache, k_scale), (v_cache, v_scale)))
    return attended(q, k, v, sinks, window, len(k) - len(q))


def eight_bits_packed(q, k, v, k_scale, v_scale, sinks, cu_seqlens_q, cu_seqlens_k, window):
    out, k, v = np.zeros_like(q), numbers(k, k_scale), numbers(v, v_scale)
    for begin, end, least, most in zip(cu_seqlens_q, cu_seqlens_q[1:], cu_seqlens_k, cu_seqlens_k[1:]):
        out[begin:end] = attended(q[begin:end], k[least:most], v[least:most], sinks, window, most - least - (end - begin))
    return out


def check_caches(tap):
    for code, scales, said, kernel, signature in (
            ("e4m3", None, "e4m3", eight_bits(""), None), ("e4m3", "tensor", "e4m3(tensor)", eight_bits_in_pages, "paged"),
            ("e4m3", "head", "e4m3(head)", eight_bits(""), None), ("e4m3", "token-head", "e4m3(token-head)", eight_bits_in_pages, "paged"),
            ("int8", "token-head", "int8(token-head)", eight_bits_packed, "varlen"), ("int8", 0.03, "int8(0.03)", eight_bits(""), None),
            ("int8", "head", "int8(head)", eight_bits_packed, "varlen"), ("e5m2", "token-head", "e5m2(token-head)", eight_bits(""), None)):
        seen.clear()
        found = sinkproof.drill(kernel, policy=POLICY, limit=40, cache=code, scales=scales, signature=signature, page=4)
        kinds = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "int8": np.int8}
        tap.report(found.ok and found.calls == 40 and found.policy == f"{POLICY},A5.k={said},A11.v={said}"
                   and {s[:3] for s in seen} <= {(np.dtype(kinds[code]),) * 2 + (np.dtype(np.float32),)},
                   f"an honest kernel over a cache of {said}, signature {signature}", [found, set(seen)])
    for mistake, code, scales in (("dropped", "e4m3", "tensor"), ("dropped", "int8", "token-head"), ("exchanged", "e4m3", "token-head"),
                                  ("dropped", "e4m3", 0.25), ("head", "e4m3", "head"), ("head", "int8", "token-head")):
        found = sinkproof.drill(eight_bits(mistake), policy=POLICY, limit=30, cache=code, scales=scales, first=True, cause=False)
        tap.report(found.failing > 0 and found.exit_code == 1, f"a scale that is {mistake} is convicted: {code}, {scales}", [found])
    bare = sinkproof.drill(lambda q, k, v, sinks, window, first: attended(q, k, v, sinks, window, first), policy=POLICY, limit=30,
                           cache="int8", scales="head", first=True, cause=False)
    tap.report(bare.exit_code == 1, "a kernel that knows of no scale is convicted", [bare])
    for options, says in (({"cache": "e3m4"}, "cache: expected e4m3, e5m2, int8, found 'e3m4'"), ({"scales": "head"}, "asks for a cache"),
                          ({"cache": "int8"}, "a cache in int8 has scales"), ({"cache": "e4m3", "scales": "row"}, "found 'row'"),
                          ({"cache": "e4m3", "scales": -1}, "expected a number from 2^-126"),
                          ({"cache": "e4m3", "stage": "values"}, "are those of the stage attention, found values")):
        refusal = raised(sinkproof.Error, lambda: sinkproof.drill(eight_bits(""), **options))  # pylint: disable=cell-var-from-loop
        tap.report(refusal is not None and says in str(refusal), f"refused: {says}", [refusal])


def check_torch(tap):
    if importlib.util.find_spec("torch") is None:
        print("# no torch here: its kernels are not drilled")
        return
    import torch

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sinks: torch.Tensor, window: int, first: int,
                  forgets: bool = False) -> torch.Tensor:
        seen.append((q.dtype, q.device.type))
        k, v = (x.float().repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
        rows, keys = first + torch.arange(len(q))[:, None], torch.arange(len(k))[None, :]
        visible = (keys <= rows) & (keys > rows - (window or len(k))) & (keys >= (first if forgets else 0))
        scores = torch.einsum("nhd,khd->hnk", q.float(), k) / q.shape[2] ** 0.5
        scores = scores.masked_fill(~visible, -torch.inf)
        weights = torch.cat([scores, sinks.float()[:, None, None].expand(-1, len(q), 1)], dim=2).softmax(2)[..., :-1]
        return torch.einsum("hnk,khd->nhd", weights, v).to(q.dtype)

    for policy, kind in ((POLICY, torch.bfloat16), ("f16", torch.float16), ("f32", torch.float32)):
        seen.clear()
        assert_kernel(attention, policy=policy, limit=20)
        tap.report(set(seen) == {(kind, "cpu")}, f"a kernel annotated with torch.Tensor is given tensors of {kind}", set(seen))
    found = sinkproof.drill(lambda q, k, v, sinks, window, first: attention(q, k, v, sinks, window, first, True), policy=POLICY,
                            limit=20, like=torch, device="cpu")
    tap.report("[cache-unread]" in (found.cause or ""), "and its cache that is never read is named", [found])
    found = sinkproof.drill(lambda q, k, v, sinks, window, first: attention(q, k, v, sinks, window, first), policy=POLICY, limit=9,
                            make=lambda x: torch.from_numpy(x.astype(np.float32)).bfloat16())
    tap.report(found.ok, "arrays made by the caller's own function", [found])

    def in_pages(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, block_table: torch.Tensor, seqused_k: torch.Tensor,
                 sinks: torch.Tensor, window: int) -> torch.Tensor:
        seen.append((block_table.dtype, seqused_k.dtype))
        k, v = (x[block_table[0]].flatten(0, 1)[:seqused_k[0]] for x in (k_cache, v_cache))
        return attention(q, k, v, sinks, window, len(k) - len(q))

    def of_codes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, k_scale: torch.Tensor, v_scale: torch.Tensor,
                 sinks: torch.Tensor, window: int, first: int) -> torch.Tensor:
        seen.append((k.dtype, v_scale.dtype))
        return attention(q, k.float() * k_scale[..., None], v.float() * v_scale[..., None], sinks, window, first)

    for code, kind in (("e4m3", torch.float8_e4m3fn), ("int8", torch.int8)):
        seen.clear()
        tap.report(assert_kernel(of_codes, policy=POLICY, limit=20, cache=code, scales="token-head").ok
                   and seen[0] == (kind, torch.float32), f"tensors of {kind}", seen[:1])
    seen.clear()
    tap.report(assert_kernel(in_pages, policy=POLICY, limit=20, signature="paged").ok and seen[0] == (torch.int32, torch.int32),
               "tensors in pages", seen[:1])


def check_jax(tap):
    if importlib.util.find_spec("jax") is None:
        print("# no JAX here: its kernels are not drilled")
        return
    import jax
    import jax.numpy as jnp

    def attention(q: jax.Array, k: jax.Array, v: jax.Array, sinks: jax.Array, window: int, first: int) -> jax.Array:
        seen.append(q.dtype)
        k, v = (jnp.repeat(x.astype(jnp.float32), q.shape[1] // x.shape[1], axis=1) for x in (k, v))
        rows, keys = first + jnp.arange(len(q))[:, None], jnp.arange(len(k))[None, :]
        scores = jnp.einsum("nhd,khd->hnk", q.astype(jnp.float32), k) / q.shape[2] ** 0.5
        scores = jnp.where((keys <= rows) & (keys > rows - (window or len(k))), scores, -jnp.inf)
        sink = jnp.broadcast_to(sinks.astype(jnp.float32)[:, None, None], (*scores.shape[:2], 1))
        weights = jax.nn.softmax(jnp.concatenate([scores, sink], axis=2), axis=2)[..., :-1]
        return jnp.einsum("hnk,khd->nhd", weights, v).astype(q.dtype)

    seen.clear()
    assert_kernel(attention, policy=POLICY, limit=10)
    tap.report({str(kind) for kind in seen} == {"bfloat16"}, "a kernel annotated with jax.Array is given arrays of bfloat16", seen[:2])


def check_mlx(tap):
    if importlib.util.find_spec("mlx") is None:
        print("# no MLX here: its kernels are not drilled")
        return
    import mlx.core as mx

    def attention(q: mx.array, k: mx.array, v: mx.array, sinks: mx.array, window: int, first: int) -> mx.array:
        seen.append(q.dtype)
        group = q.shape[1] // k.shape[1]
        k, v = (mx.repeat(x.astype(mx.float32), group, axis=1).transpose(1, 0, 2) for x in (k, v))
        rows, keys = first + mx.arange(q.shape[0])[:, None], mx.arange(k.shape[1])[None, :]
        scores = q.astype(mx.float32).transpose(1, 0, 2) @ k.transpose(0, 2, 1) / q.shape[2] ** 0.5
        scores = mx.where((keys <= rows) & (keys > rows - (window or k.shape[1])), scores, -mx.inf)
        sink = mx.broadcast_to(sinks.astype(mx.float32)[:, None, None], (*scores.shape[:2], 1))
        weights = mx.softmax(mx.concatenate([scores, sink], axis=2), axis=2)[..., :-1]
        return (weights @ v).transpose(1, 0, 2).astype(q.dtype)

    seen.clear()
    assert_kernel(attention, policy=POLICY, limit=10)
    tap.report(set(seen) == {mx.bfloat16}, "a kernel annotated with mx.array is given arrays of bfloat16", seen[:2])


def check_book(tap):
    """The book's kernel that does not read its cache, and the same kernel when it does."""
    if importlib.util.find_spec("pytest") is None:
        tap.skip("the book's drill", "no pytest")
        return
    page = (ROOT / "doc" / "14-judging.md").read_text(encoding="utf-8")
    code = page.split("<!-- python drill -->\n```python\n")[1].split("```")[0]
    prints = page.split("<!-- prints drill -->\n```text\n")[1].split("```")[0]
    read = code.replace("x[first:]", "x").replace("np.tri(len(q))", "np.tri(len(q), len(k), first)").replace(
        "np.tri(len(q), k=-window)", "np.tri(len(q), len(k), first - window)")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("test_drill.py", code), ("test_drilled.py", read)):
            pathlib.Path(folder, name).write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_drill.py",
                               "test_drilled.py"], cwd=folder, capture_output=True, text=True, check=False)
    tap.report(done.returncode == 1 and prints in done.stdout and "1 failed, 1 passed" in done.stdout,
               "the book's drill fails with its cause, and passes when the cache is read", [done.stdout, done.stderr])


ENGINE = '''
import sys
sys.path.insert(0, %r)
import numpy as np
import sinkproof
from drilled_kernels import attended


def attention(q, k, v, sinks, window, first):
    return attended(q, k, v, sinks, window, first)


def traced(tokens):
    trace = sinkproof.run("synthetic:tiny", tokens, policy="f32")
    return {name: trace[name] * np.float32(%s) if name == "02.A11" else trace[name] for name in trace}
'''


def check_readme(tap):
    """The README's test file passes on an honest engine, and fails on one that scales a tensor."""
    if importlib.util.find_spec("pytest") is None:
        tap.skip("the README's tests", "no pytest")
        return
    code = (ROOT / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    for factor, status, says in ((1, 0, "2 passed"), (1.01, 1, "(02.A11) are not honest!")):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "test_mine.py").write_text(code, encoding="utf-8")
            pathlib.Path(folder, "my_engine.py").write_text(ENGINE % (str(ROOT / "tests" / "audit"), factor), encoding="utf-8")
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"], cwd=folder,
                                  capture_output=True, text=True, check=False)
        tap.report(done.returncode == status and says in done.stdout, f"the README's tests, a tensor times {factor}: {says}",
                   [done.stdout, done.stderr])


def numbers_of(path):
    kinds = {"BF16": ml_dtypes.bfloat16, "F32": np.float32}
    return {name: np.frombuffer(data, kinds[dtype]).reshape(shape).astype(np.float32)
            for name, (dtype, shape, data) in checkpoints.read(path)[0].items()}


def check_kept(tap):
    """What published kernels made of these calls on a GPU, returned for the same inputs: OpenAI's Triton kernel does not
    read its cache, FlashAttention-3 is honest."""
    with tempfile.TemporaryDirectory() as folder:
        command = ROOT / (os.environ.get("SINKPROOF") or "build/release/sinkproof")
        subprocess.run([command, "judge", "--emit", folder, "--stages", "attention", "--policy", "bf16"], check=True,
                       stdout=subprocess.DEVNULL)
        manifest = json.loads(pathlib.Path(folder, "manifest.json").read_text(encoding="utf-8"))
        windows = {case["inputs"].split(".")[0]: case["window"] for case in manifest["cases"]}
        for kernel, status, cause in (("gpt-oss-triton-chunks", 1, "[cache-unread-piece]"), ("fa3-decode", 0, "")):
            kept = {}
            for name, out in numbers_of(ROOT / "tests" / "vectors" / "gpu" / f"attention-bf16-{kernel}.safetensors").items():
                call = name.split("/")[0]
                given = numbers_of(pathlib.Path(folder, f"{call}.safetensors"))
                kept[(windows[call], *(given[point].tobytes() for point in ("A4.q", "A4.k", "sinks")))] = out

            def replay(q, k, sinks, window):
                call = (window, *(x.astype(np.float32).tobytes() for x in (q, k, sinks)))
                out = kept.get(call)  # pylint: disable=cell-var-from-loop
                if out is None:
                    raise NotImplementedError
                return out.astype(q.dtype)

            found = sinkproof.drill(replay, policy="bf16")
            tap.report(found.exit_code == status and found.calls >= 20 and cause in (found.cause or ""),
                       f"kept outputs of {kernel}: {found.failing} of {found.calls} calls fail {cause}", [found])


def main():
    tap = Tap()
    with np.errstate(all="ignore"):
        for check in (check_honest, check_planted, check_broken, check_refused, check_stages, check_layouts, check_caches,
                      check_torch, check_jax, check_mlx, check_book, check_readme, check_kept):
            check(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
