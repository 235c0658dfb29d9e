# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""sinkproof.drill of stages that go back: honest kernels acquitted, mistakes convicted and named; run by python_inside.py, once
without torch, on kernels in numpy, and once with it, on forward kernels that autograd differentiates."""
import importlib.util
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import numpy as np  # noqa: E402
import sinkproof  # noqa: E402
from drilled_backward import MISTAKES, back  # noqa: E402
from drilled_kernels import raised  # noqa: E402
from tap import Tap  # noqa: E402

STAGE = "attention_backward"
NAMED = {"window lost": "the window is lost going back", "no sink in the weights": "the weights are recomputed without the sink",
         "D renormalised": "D is of the renormalised weights", "dLSE ignored": "the gradient of the log-sum-exp is ignored",
         "sign lost": "the sign is wrong", "sink missing": "the sink's gradient is missing: it is zero",
         "last block": "it is that of the last block of queries alone", "scaled": "a factor 1/sqrt(head_dim) too many",
         "one head of a group": "the sum over the group is missing"}


def kernel(mistake=None):
    def attention_backward(q, k, v, sinks, do, dlse, window):
        return back(q, k, v, sinks, do, dlse, window, mistake)
    return attention_backward


def check_numpy(tap):
    for policy in ("f32", "flash-bf16"):
        found = sinkproof.drill(kernel(), STAGE, policy, limit=16, lse=True)
        tap.report(found.ok and (found.calls, found.failing, found.lse) == (16, 0, "with-sink"),
                   f"grad.chain an honest kernel under {policy}; its log-sum-exp has the sink", [found])
    for mistake in MISTAKES:
        found = sinkproof.drill(kernel(mistake), STAGE, "f32", limit=12, lse="with-sink")
        tap.report(not found.ok and found.cause.startswith(NAMED[mistake]), f"grad.chain {mistake}: convicted and named",
                   [found, found.cause])

    def plain(q, k, v, sinks, do, window):
        return back(q, k, v, sinks, do, None, window)

    found = sinkproof.drill(plain, STAGE, "f32", limit=12)
    tap.report(found.ok and found.lse is None, "grad.chain without a loss on the log-sum-exp", [found])
    seen = []

    def shapes(q, o, lse, do, dlse, sinks, window):
        seen.append((q.shape, o.shape, lse.shape, do.shape, dlse.shape, sinks.shape, q.dtype.name, lse.dtype.name,
                     bool(np.abs(np.float32(dlse)).max() > 0)))
        raise NotImplementedError

    none = sinkproof.drill(shapes, STAGE, "bf16", limit=20, lse="without-sink")
    tap.report(none.not_served == 20 and all(a == b == c and d == e == (a[1], a[0]) and f == (a[1],)
                                             for a, b, c, d, e, f in ((s[0], s[1], s[3], s[2], s[4], s[5]) for s in seen))
               and {s[6:8] for s in seen} == {("bfloat16", "float32")} and {s[8] for s in seen} == {True, False},
               "grad.chain what a kernel is given: o and lse of the forward pass, do, and dlse in some calls", [none.not_served, {s[6:8] for s in seen}, {s[8] for s in seen}, seen[:3]])

    def swiglu(x, dy, swiglu_alpha, swiglu_limit):
        gate, up = np.minimum(x[..., ::2], swiglu_limit), np.clip(x[..., 1::2], -swiglu_limit, swiglu_limit)
        sigmoid = 1 / (1 + np.exp(-np.float32(swiglu_alpha) * gate))
        found = np.empty_like(x)
        found[..., ::2] = dy * (up + 1) * sigmoid * (1 + np.float32(swiglu_alpha) * gate * (1 - sigmoid)) * (x[..., ::2] <= swiglu_limit)
        found[..., 1::2] = dy * gate * sigmoid * (np.abs(x[..., 1::2]) <= swiglu_limit)
        return found

    def rmsnorm(x, dy, final_norm, rms_eps):
        r = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(rms_eps))
        along = (final_norm * dy * x).mean(axis=1, keepdims=True)
        return r * (final_norm * dy - x * r * r * along), (dy * x * r).sum(axis=0)

    def linear(x, dy, w_o):
        return (dy @ w_o).reshape(x.shape), dy.T @ x.reshape(len(x), -1), dy.sum(axis=0)

    for stage in (swiglu, rmsnorm, linear):
        found = sinkproof.drill(stage, f"{stage.__name__}_backward", "f32", limit=40)
        tap.report(found.ok and found.calls == 40, f"grad.chain an honest {stage.__name__}_backward", [found])
    found = sinkproof.drill(lambda x, dy, swiglu_alpha, swiglu_limit: swiglu(x, dy, swiglu_alpha, 1e9), "swiglu_backward", "f32", limit=40)
    tap.report(not found.ok and found.why.startswith("dM6["), "grad.swiglu a clamp that is lost going back is convicted", [found])
    found = sinkproof.drill(lambda x, dy, final_norm, rms_eps: (final_norm * dy, rmsnorm(x, dy, final_norm, rms_eps)[1]),
                            "rmsnorm_backward", "f32", limit=40)
    tap.report(not found.ok and found.why.startswith("dM12["), "grad.rmsnorm a norm that goes back as a scale is convicted", [found])
    said = raised(sinkproof.Error, lambda: sinkproof.drill(lambda q, k, v, sinks, window: q, STAGE, "f32", limit=3))
    tap.report(said is not None and "differentiated by torch, which is not installed" in str(said),
               "a forward kernel needs torch", [said])


def check_torch(tap):
    import torch
    torch.set_num_threads(1)

    def weighed(q, k, sinks, window):
        i = torch.arange(len(q))
        seen = (i[:, None] >= i) & ((i[:, None] - i < window) if window else torch.tensor(True))
        scores = torch.einsum("nhd,khd->hnk", q, k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)) * q.shape[2] ** -0.5
        return torch.cat([scores.masked_fill(~seen, -torch.inf), sinks[:, None, None].expand(-1, len(q), 1)], dim=2)

    def attention(q: torch.Tensor, k, v, sinks, window):
        logits = weighed(q, k, sinks, window)
        weights = torch.softmax(logits - logits.max(dim=2, keepdim=True).values, dim=2)[:, :, :-1]
        return torch.einsum("hnk,khd->nhd", weights, v.repeat_interleave(q.shape[1] // v.shape[1], dim=1))

    def with_lse(q: torch.Tensor, k, v, sinks, window, kind="with-sink"):
        logits = weighed(q, k, sinks, window)
        lse = torch.logsumexp(logits if kind == "with-sink" else logits[:, :, :-1], dim=2)
        return attention(q, k, v, sinks, window), lse

    def cut(q: torch.Tensor, k, v, sinks, window):
        return attention(q, k, v, sinks.detach(), window)

    for policy in ("f32", "hf-bf16"):
        found = sinkproof.drill(attention, STAGE, policy, limit=20)
        tap.report(found.ok and found.calls == 20, f"grad.chain autograd of eager attention under {policy}", [found])
    for kind in ("with-sink", "without-sink"):
        found = sinkproof.drill(lambda q, k, v, sinks, window: with_lse(q, k, v, sinks, window, kind), STAGE, "f32", limit=16, lse=True,  # pylint: disable=cell-var-from-loop
                                like=torch)
        tap.report(found.ok and found.lse == kind, f"grad.lse autograd of the output and of its log-sum-exp {kind}", [found])
    found = sinkproof.drill(cut, STAGE, "f32", limit=12)
    tap.report(not found.ok and "the sink's gradient is missing" in str(found.cause),
               "grad.sink a sink that is cut off from the graph is convicted", [found])

    class Own(torch.autograd.Function):
        """Attention with a backward pass of its own."""

        @staticmethod
        def forward(ctx, q, k, v, sinks, window, mistake):
            ctx.save_for_backward(q, k, v, sinks)
            ctx.asked = window, mistake
            return attention(q, k, v, sinks, window)

        @staticmethod
        def backward(ctx, do):
            found = back(*(x.numpy() for x in ctx.saved_tensors), do.numpy(), None, *ctx.asked)
            return (*(torch.from_numpy(np.ascontiguousarray(x, np.float32)) for x in found), None, None)

    for mistake in (None, "sign lost"):
        found = sinkproof.drill(lambda q, k, v, sinks, window: Own.apply(q, k, v, sinks, window, mistake), STAGE, "f32",  # pylint: disable=cell-var-from-loop
                                limit=12, like=torch)
        tap.report(found.ok == (mistake is None) and (found.cause or "the sign is wrong").startswith("the sign is wrong"),
                   f"grad.chain a function of autograd with a backward pass of its own, {mistake or 'honest'}", [found])

    def swiglu(x: torch.Tensor, swiglu_alpha, swiglu_limit):
        gate, up = x[..., ::2].clamp(max=swiglu_limit), x[..., 1::2].clamp(-swiglu_limit, swiglu_limit)
        return (up + 1) * (gate * torch.sigmoid(gate * swiglu_alpha))

    def rmsnorm(x: torch.Tensor, final_norm, rms_eps):
        wide = x.float()
        return (final_norm * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + rms_eps))).to(x.dtype)

    def linear(x: torch.Tensor, w_o, b_o):
        return torch.nn.functional.linear(x.flatten(1), w_o, b_o)

    for forward in (swiglu, rmsnorm, linear):
        for policy in ("f32", "hf-bf16"):
            found = sinkproof.drill(forward, f"{forward.__name__}_backward", policy, limit=40)
            tap.report(found.ok and found.calls == 40, f"grad.chain autograd of {forward.__name__} under {policy}", [found])
    for act, says in ((lambda: sinkproof.drill(lambda q, k, v, window: q, STAGE, "f32", limit=3, like=torch), "whose gradient is dsink"),
                      (lambda: sinkproof.drill(lambda q, k, v, sinks, window: q, STAGE, "f32", limit=3), "q: expected a tensor of torch")):
        said = raised(sinkproof.Error, act)
        tap.report(said is not None and says in str(said), f"refused: {says}", [said])


def main():
    tap = Tap()
    with np.errstate(all="ignore"):
        (check_torch if importlib.util.find_spec("torch") else check_numpy)(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
