# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Run by wheel_roots.py under one Python with the wheel unpacked beside: an honest kernel and trace pass, mistakes are
named, and no BLAS but the wheel's and numpy's is there. Prints one line of JSON; needs numpy and ml_dtypes alone."""
import json
import platform
import sys
import time

import numpy as np
import sinkproof
from sinkproof.testing import assert_honest


def attention(q, k, v, sinks, window, first, mistake=None):
    kind, group = q.dtype, q.shape[1] // k.shape[1]
    k, v = (x.astype(np.float32).repeat(group, axis=1) for x in (k, v))
    rows, keys = first + np.arange(len(q))[:, None], np.arange(len(k))[None, :]
    seen = (keys <= rows) & ((window == 0) | (keys > rows - window)) & (keys >= (first if mistake == "cache" else 0))
    scores = np.einsum("nhd,khd->hnk", q.astype(np.float32), k) / np.sqrt(np.float32(q.shape[2]))
    scores = np.where(seen, scores, np.float32(-np.inf))
    sink = sinks.astype(np.float32)[:, None, None]
    top = scores.max(2, keepdims=True)
    top = top if mistake == "sink" else np.maximum(top, sink)
    weights = np.exp(scores - top)
    total = weights.sum(2, keepdims=True) + (0 if mistake == "sink" else np.exp(sink - top))
    return np.einsum("hnk,khd->nhd", weights / total, v).astype(kind)


def forgetful(q, k, v, sinks, window, first):
    return attention(q, k, v, sinks, window, first, "sink")


def uncached(q, k, v, sinks, window, first):
    return attention(q, k, v, sinks, window, first, "cache")


def unsunk(A4_q, A4_k, A2_v, call):
    return attention(A4_q, A4_k, A2_v, call.weight("sinks").reshape(-1), call.window, call.first, "sink")


begin = time.monotonic()
drills = {kernel.__name__: sinkproof.drill(kernel, policy="flash-bf16", limit=12)
          for kernel in (attention, forgetful, uncached)}
trace = sinkproof.run("synthetic:tiny", range(40), policy="f32")
honest = assert_honest("synthetic:tiny", trace, policy="f32")
try:
    assert_honest("synthetic:tiny", sinkproof.run("synthetic:tiny", range(40), policy="f32,exp=4ulp",
                                                  replace={"A11": unsunk}), policy="f32,exp=4ulp")
    said = ""
except AssertionError as error:
    said = str(error)
seconds = time.monotonic() - begin
try:
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = sorted({line.split()[-1] for line in maps if ".so" in line})
except OSError:
    files = None
json.dump({"python": platform.python_version(), "machine": platform.machine(), "seconds": seconds,
           "ok": {name: drill.ok for name, drill in drills.items()},
           "calls": {name: drill.calls for name, drill in drills.items()},
           "causes": {name: str(drill.cause) for name, drill in drills.items() if not drill.ok},
           "honest": honest.verdict.value, "said": said, "files": files, "numpy": np.__version__}, sys.stdout)
print()
