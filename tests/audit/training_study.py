# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The training study of doc/27: small decoders of many designs, trained here, and where they put their attention.

    python3 tests/audit/training_study.py [NAME ...]     the runs that are not kept yet, or those; `make training-study`
    python3 tests/audit/training_study.py --heads        trained heads and a step of training, into tests/vectors/training

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
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
import training  # noqa: E402
import training_trace  # noqa: E402


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


# ---- one head of each design, in the format of audit/designs/design_trace.h, and what it was computed from

ROWS, LONGER = 24, {"window-32": 40}  # of the first sequence that is measured


def head_of(config, learned, rows):
    """{name: tensor}, {name: tensor}, {name: number} of the head of the first seed that has the most of a sink."""
    tokens, did = torch.from_numpy(training.draw(config, numpy.random.default_rng(0), 1)[0]), []
    with torch.no_grad():
        training.forward(config, learned, tokens[None, :, :rows], lambda layer, its, h: did.append(its))
    its = {name: tensor[0, 0] for name, tensor in did[0].items()}  # of the first seed and the sequence
    by_share, star = (each[0, 0] if each is not None else None for each in training.means(
        config, training.shares(config.choices, did[0]["alpha"].double())))
    h = int((by_share[:, 0] + (star if star is not None else 0)).argmax())
    own = {name[2:]: p.detach()[0] for name, p in learned.items() if name.startswith("0.")}
    held = {name: its[name][h][:, None] for name in "qkvo"} | {name: its[name][h][None] for name in ("s", "alpha")}
    inputs = {"x": its["x"]} | {f"w{name}": own[name][h] for name in "qkv"}
    for name in ("key", "value", "logit"):
        if name in own:
            held[f"star.{name}"] = own[name][h:h + 1]
    if "gate" in own:
        inputs["wg"] = own["gate"][h]
        held["gate"] = torch.sigmoid(its["x"] @ own["gate"][h])[:, None]
        held["gated"] = held["gate"] * held["o"]
    told = {"alpha_1": by_share[h, 0], "alpha_2": by_share[h, 1]} | ({"alpha_*": star[h]} if star is not None else {})
    return held, inputs, {name: float(number) for name, number in told.items()}


def write_heads(folder, models):
    """models: [(design, configuration, parameters, what says which run it was)]."""
    held, inputs = {}, {}
    designs, told = {"format": "sinkproof-design-1", "policy": "f32"}, {}
    for layer, (design, config, learned, run) in enumerate(models):
        its, made_of, numbers = head_of(config, learned, LONGER.get(design, ROWS))
        designs[f"{layer:02}.design"] = design
        told |= {f"{layer:02}.{name}": repr(number) for name, number in numbers.items()} | {f"{layer:02}.run": run}
        held |= {f"{layer:02}.{name}": tensor.contiguous() for name, tensor in its.items()}
        inputs |= {f"{layer:02}.{name}": tensor.contiguous() for name, tensor in made_of.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, tensors, metadata in (("heads", held, designs), ("inputs", inputs, told)):
        (folder / f"{name}.safetensors").write_bytes(safetensors.torch.save(tensors, metadata))


def heads():
    designs, models = [name for name in doc_training.RUNS if name in training.DESIGNS], []
    absent = [name for name in designs if not (ROOT / f"build/training/{name}.npz").is_file()]
    if absent:
        return print(f"trained heads are left as they are: build/training lacks {', '.join(absent)}")
    for design in designs:
        kept = numpy.load(ROOT / f"build/training/{design}.npz")
        models.append((design, training.Config(**doc_training.RUNS[design]),
                       {name: torch.from_numpy(kept[name]) for name in kept}, doc_training.hash_of(ROOT, design)))
    write_heads(ROOT / "tests/vectors/training", models)


STEP, TOKENS = "score-bias", 20


def step():
    """One step of a trained model with logits for sinks, all its gradients, into tests/vectors/training/step."""
    path = ROOT / f"build/training/{STEP}.npz"
    if not path.is_file():
        return print(f"the step of training is left as it is: build/training lacks {STEP}")
    kept = numpy.load(path)
    training_trace.write(ROOT / "tests/vectors/training/step", training.Config(**doc_training.RUNS[STEP]),
                         {name: torch.from_numpy(kept[name]) for name in kept}, TOKENS, doc_training.hash_of(ROOT, STEP))


def main(names):
    if names == ["--heads"]:
        step()
        return heads()
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
