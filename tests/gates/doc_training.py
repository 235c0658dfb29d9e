# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The runs of the training study (doc/27), and the chapter's tables of what is kept of them; for doc_pages.py.

tests/audit/training_study.py makes the runs. Nothing here needs torch.
"""
import ast
import hashlib
import json

KEPT = "doc/book/data/training.json"
CODE = "tests/audit/training.py"

DESIGNS = ("softmax", "sink-token", "kv-bias", "k-bias", "score-bias", "off-by-one", "v-bias", "value-even-5",
           "value-even-20", "scaled-2", "scaled-0.1", "sigmoid", "sigmoid-norm", "elu", "identity", "gated",
           "gated-head")
# {name of a run: its configuration}; what it does not say is training.Config's.
RUNS = {design: {"design": design} for design in DESIGNS}
RUNS |= {f"rate {rate:g}": {"design": "softmax", "rate": rate} for rate in (7.5e-4, 1.5e-3, 3e-3, 1.2e-2)}
RUNS |= {f"decay {decay:g}": {"design": "softmax", "decay": decay} for decay in (0, 0.5, 1, 2, 5)}
RUNS |= {"prefix-5": {"design": "prefix-5"}, "window-32": {"design": "window-32"}}
RUNS |= {f"window {window}": {"design": "window-32", "window": window} for window in (16, 8)}
RUNS |= {"drawn start": {"design": "softmax", "start": "drawn"}}
RUNS |= {"2 layers": {"design": "softmax", "layers": 2},
         "2 layers, drawn start": {"design": "softmax", "layers": 2, "start": "drawn"}}


def hash_of(root, name):
    """Of a run's configuration and of the code that makes it, without its comments."""
    code = ast.dump(ast.parse((root / CODE).read_text(encoding="utf-8")))
    return hashlib.sha256(json.dumps([RUNS[name], code], sort_keys=True).encode()).hexdigest()[:16]


def kept(root):
    path = root / KEPT
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
