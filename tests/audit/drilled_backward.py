# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Attention that goes back, in numpy, with mistakes of one's choice; for the drills of `attention_backward`."""
import numpy as np


def scored(q, k, window):
    """Scores [heads, n, keys] in float32, -inf where the mask hides a key; and the keys of each query head."""
    k = k.astype(np.float32).repeat(q.shape[1] // k.shape[1], axis=1)
    seen = np.tri(len(q)) - (np.tri(len(q), k=-window) if window else 0)
    scores = np.einsum("nhd,khd->hnk", q.astype(np.float32), k) / np.float32(np.sqrt(q.shape[2]))
    return np.where(seen > 0, scores, -np.inf).astype(np.float32), k


def log_sum_exp(scores, sinks):
    scores = scores if sinks is None else np.concatenate([scores, np.broadcast_to(sinks, (*scores.shape[:2], 1))], axis=2)
    most = scores.max(axis=2)
    return most + np.log(np.exp(scores - most[:, :, None]).sum(axis=2))


def grouped(x, kv_heads):
    """[n, heads, dim] added up over the heads of a group."""
    n, heads, dim = x.shape
    return x.reshape(n, kv_heads, heads // kv_heads, dim).sum(axis=2)


def back(q, k, v, sinks, do, dlse, window, mistake=None):
    """(dq, dk, dv, dsinks)"""
    sinks = sinks.astype(np.float32)[:, None, None]
    scores, keys = scored(q, k, window)
    lse = log_sum_exp(scores, None if mistake == "no sink in the weights" else sinks)
    if mistake == "window lost":
        scores, _ = scored(q, k, 0)
    weights, of_sink = np.exp(scores - lse[:, :, None]), np.exp(sinks[:, :, 0] - lse)
    do = do.astype(np.float32)
    values = v.astype(np.float32).repeat(q.shape[1] // v.shape[1], axis=1)
    of_weights = np.einsum("nhd,khd->hnk", do, values)
    delta = (weights * of_weights).sum(axis=2)
    if mistake == "D renormalised":
        delta = delta / np.maximum(1 - of_sink, np.float32(1e-30))
    dlse = np.zeros_like(delta) if dlse is None or mistake == "dLSE ignored" else dlse.astype(np.float32)
    of_scores = weights * (of_weights - delta[:, :, None] + dlse[:, :, None]) / np.float32(np.sqrt(q.shape[2]))
    dq = np.einsum("hnk,khd->nhd", of_scores, keys)
    dk = np.einsum("hnk,nhd->khd", of_scores, q.astype(np.float32))
    dv = np.einsum("hnk,nhd->khd", weights, do)
    rows = of_sink * (dlse - delta)
    dsinks = {"sign lost": -rows.sum(axis=1), "sink missing": 0 * rows.sum(axis=1), "last block": rows[:, (len(q) - 1) // 8 * 8:].sum(axis=1),
              "scaled": rows.sum(axis=1) / np.sqrt(q.shape[2])}.get(mistake, rows.sum(axis=1))
    if mistake == "one head of a group":
        group = q.shape[1] // k.shape[1]
        return dq, dk[:, ::group], dv[:, ::group], dsinks
    return dq, grouped(dk, k.shape[1]), grouped(dv, v.shape[1]), dsinks


MISTAKES = ("window lost", "no sink in the weights", "D renormalised", "dLSE ignored", "sign lost", "sink missing", "last block",
            "scaled", "one head of a group")
