# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The training study of doc/27: small decoders of many designs, trained here, and where they put their attention.

    python3 tests/audit/training_study.py [NAME ...]     the runs that are not kept yet, or those; `make training-study`

What a run showed is kept in doc/book/data/training.json under a hash of its configuration and of the code that
made it (tests/audit/training.py): a run whose hash is kept is not made again, so that the study can be stopped and
goes on. tests/gates/doc_training.py makes the chapter's tables from what is kept, and finds a run that is missing.
"""
import json
import os
import pathlib
import platform
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/gates"))
import doc_training  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import training  # noqa: E402


def made(name, kept):
    """One run: what was seen before the first step, on the way and at the end."""
    config, way, began = training.Config(**doc_training.RUNS[name]), [], time.process_time()

    def see(number, learned):
        told = training.measure(config, learned)
        way.append({"step": number, **told} if number in (0, config.steps) else
                   {"step": number, **{key: told[key] for key in ("sink_1", "sink_star", "loss") if key in told}})

    learned = training.train(config, see)
    numpy.savez(kept / f"{name.replace(' ', '_')}.npz", **{key: p.detach().numpy() for key, p in learned.items()})
    return {"hash": doc_training.hash_of(ROOT, name), "seconds": round(time.process_time() - began, 1),
            "torch": torch.__version__, "machine": platform.machine(), "seen": way}


def keep(told):
    path = ROOT / doc_training.KEPT
    rows = [f" {json.dumps(name)}: {json.dumps(told[name])}" for name in doc_training.RUNS if name in told]
    fresh = path.with_suffix(".new")
    fresh.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    os.replace(fresh, path)


def main(names):
    parameters = ROOT / "build/training"  # of the trained models: for those who want to look at them
    parameters.mkdir(parents=True, exist_ok=True)
    told = doc_training.kept(ROOT)
    for name in names or doc_training.RUNS:
        if told.get(name, {}).get("hash") != doc_training.hash_of(ROOT, name):
            told[name] = made(name, parameters)
            keep(told)
            print(f"{name}: {told[name]['seconds']} s, Sink_1 {told[name]['seen'][-1]['sink_1']}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
