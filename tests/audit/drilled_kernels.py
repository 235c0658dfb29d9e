# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Attention in numpy for the tests of drills: honest, and with mistakes."""
import numpy as np

POLICY = "flash-bf16"


def attended(q, k, v, sinks, window, first, mistake=""):
    """In float32, rounded to the queries' dtype at the end."""
    kind, n, group = q.dtype, len(q), q.shape[1] // k.shape[1]
    k, v = (x.astype(np.float32).repeat(group, axis=1) for x in (k, v))
    begin = first if mistake == "cache" else 0
    if mistake == "window":
        window = 0
    rows, keys = first + np.arange(n)[:, None], np.arange(len(k))[None, :]
    visible = (keys <= rows) & (keys >= begin) & ((window == 0) | (keys > rows - window))
    scores = np.einsum("nhd,khd->hnk", q.astype(np.float32), k) / np.sqrt(np.float32(q.shape[2]))
    scores = np.where(visible, scores, np.float32(-np.inf))
    sink = sinks.astype(np.float32)[:, None, None]
    top = scores.max(2, keepdims=True) if mistake in ("sink", "max") else np.maximum(scores.max(2, keepdims=True), sink)
    weights = np.exp(scores - top)
    total = weights.sum(2, keepdims=True) + (0 if mistake == "sink" else np.exp(sink - top))
    if mistake == "max":  # what the sink takes is subtracted: inf / inf where the maximum leaves it out
        weights = weights * (1 - np.exp(sink - top) / total)
        total = weights.sum(2, keepdims=True)
    return np.einsum("hnk,khd->nhd", weights / total, v).astype(kind)


def lse_of(q, k, sinks, window, first, with_sink):
    """[heads, n], natural, in float32."""
    k = k.astype(np.float32).repeat(q.shape[1] // k.shape[1], axis=1)
    rows, keys = first + np.arange(len(q))[:, None], np.arange(len(k))[None, :]
    visible = (keys <= rows) & ((window == 0) | (keys > rows - window))
    scores = np.einsum("nhd,khd->hnk", q.astype(np.float32), k) / np.sqrt(np.float32(q.shape[2]))
    scores = np.where(visible, scores, np.float32(-np.inf))
    if with_sink:
        sink = np.broadcast_to(sinks.astype(np.float32)[:, None, None], (*scores.shape[:2], 1))
        scores = np.concatenate([scores, sink], axis=2)
    top = scores.max(2, keepdims=True)
    return (top + np.log(np.exp(scores - top).sum(2, keepdims=True)))[..., 0]


def raised(kind, act):
    try:
        act()
    except kind as error:
        return error
    return None
