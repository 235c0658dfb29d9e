# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Adapters of engines that take gigabytes, on stand-ins of a few lines; run by python_inside.py.

What is asked: an argument is found by name and by place; an input, a cache or an order of tokens that is not
understood ends in one sentence, and never in a second sequence that nobody asked for.
"""
import contextlib
import pathlib
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
import numpy as np  # noqa: E402
import sinkproof  # noqa: E402
from sinkproof.adapters import Record, adapter_named, adapter_names, keras_hub, mlx, onnx, openvino, ranks, vllm  # noqa: E402
from sinkproof.adapters._adapted import beside, without_adapter  # noqa: E402
from sinkproof.adapters._calls import Call, method_signature, signature_of  # noqa: E402
from tap import Tap  # noqa: E402


def refused(tap, text, expected, act):
    try:
        said = f"nothing: {act()}"
    except sinkproof.TraceError as error:
        said = str(error)
    tap.report(expected in said and not said.startswith("nothing") and "\n" not in said, f"refused: {text}",
               [said, f"expected: {expected}"])


def bare(kind, **attributes):
    """An engine's adapter without the engine."""
    made = object.__new__(kind)
    vars(made).update(attributes)
    return made


# ------------------------------------------------------------------------------------------
# Ranks


def check_ranks(tap):
    def said(**told):
        stand_in = types.SimpleNamespace(**{name: lambda value=value: value for name, value in told.items()})
        held = sys.modules.get("torch.distributed")
        sys.modules["torch.distributed"] = stand_in
        try:
            return ranks()
        finally:
            sys.modules.pop("torch.distributed")
            if held is not None:
                sys.modules["torch.distributed"] = held

    found = [said(is_available=True, is_initialized=True, get_world_size=4),
             said(is_available=True, is_initialized=True, get_world_size=1),
             said(is_available=True, is_initialized=False), said(is_available=False)]
    tap.report(found == [{"ranks": "4"}, {}, {}, {}], "metadata name the ranks where torch.distributed has several", found)


# ------------------------------------------------------------------------------------------
# Binding


def check_calls(tap):
    def forward(tokens, mask=None, *, past=None, **more):
        return tokens, mask, past, more

    signature = signature_of(forward)
    same = [Call(signature, (1, 2), {"past": 3, "other": 4}), Call(signature, (1,), {"other": 4, "past": 3, "mask": 2}),
            Call(signature, (), {"past": 3, "mask": 2, "other": 4, "tokens": 1})]
    tap.report(all(call.given == {"tokens": 1, "mask": 2, "past": 3, "other": 4} and call.places[:2] == [1, 2]
                   and call.first() == 1 for call in same), "by name or by place, an argument is the same", [c.given for c in same])
    call = Call(signature, (1,), {})
    tap.report(call.given == {"tokens": 1} and call.places == [1, None, None] and call.get("past") is None,
               "a default is in its place and was not given", [call.given, call.places])
    loose = Call(signature_of(lambda *args, **kwargs: 0), (5, 6), {"past": 7})
    tap.report(loose.given == {"args[0]": 5, "args[1]": 6, "past": 7} and loose.first() == 5,
               "what names nothing keeps its places", [loose.given])
    mine = type("Mine", (type("Base", (), {"forward": lambda self, tokens, past=None: 0}),),
                {"forward": lambda self, *args, **kwargs: 0})
    tap.report(list(method_signature(mine()).parameters) == ["tokens", "past"], "a subclass that hands on has its parent's names")
    refused(tap, "a call that does not fit", "the call: expected arguments (tokens, mask=None", lambda: Call(signature, (), {"mask": 1}))
    refused(tap, "an argument that nobody knows", "argument other is not understood: expected tokens, mask, or none, found int",
            lambda: Call(signature, (1,), {"other": 4}).refuse_others(("tokens", "mask")))
    for harmless in ({"other": None}, {"other": True}, {}):
        Call(signature, (1,), harmless).refuse_others(("tokens",))
    tap.report(True, "nothing and a yes or no hold no past")


# ------------------------------------------------------------------------------------------
# Stand-ins


def tensor(name):
    """An input or an output of a graph."""
    return types.SimpleNamespace(name=name, shape=["batch", 2, "past", 4], type="tensor(float)", get_names=lambda: {name})


def check_onnx(tap):
    inputs = ["input_ids", "attention_mask", "past_key_values.0.key", "past_key_values.0.value"]
    outputs = ["logits", "present.0.key", "present.0.value"]

    def pieces(inputs, outputs):
        """What the runtime was given in two pieces of three tokens."""
        def run(names, feeds):
            ran.append(feeds)
            return [np.full((1, 2, 3 * len(ran), 4), len(ran), np.float32) for _ in names]
        ran = []
        session = types.SimpleNamespace(get_inputs=lambda: list(map(tensor, inputs)), run=run,
                                        get_outputs=lambda: list(map(tensor, outputs)))
        engine = bare(onnx.Engine, session=session, past={}, names={"logits": ("F2", None)}, sliding=set(),
                      config=lambda key: 2, options=types.SimpleNamespace(room=0))
        for engine.seen in (0, 3):
            engine.infer({"input_ids": np.ones((1, 3)), "attention_mask": np.ones((1, engine.seen + 3))})
        return ran

    held = [feeds["past_key_values.0.key"].shape for feeds in pieces(inputs, outputs)]
    tap.report(held == [(1, 2, 0, 2), (1, 2, 3, 4)], "onnx: the second piece is given what the first cached", [held])
    refused(tap, "onnx: an input that nobody knows", "the graph's input cache_indirection is not understood: expected one of input_ids",
            lambda: pieces([*inputs, "cache_indirection"], outputs))
    refused(tap, "onnx: a cache that no output has", "past_key_values.0.key: expected what the call before cached, and none of its "
            "outputs is present.0.key", lambda: pieces(inputs, ["logits", "kept.0.key", "kept.0.value"]))


def check_openvino(tap):
    fed = []
    request = types.SimpleNamespace(infer=fed.append, get_output_tensor=lambda at: types.SimpleNamespace(data=[at]))

    def engine(*names):
        return bare(openvino.Engine, compiled=types.SimpleNamespace(inputs=[tensor(name) for name in names]), request=request,
                    names=[("F2", None)])
    given = {"input_ids": 1, "attention_mask": 2, "position_ids": 3}
    engine("input_ids", "attention_mask", "beam_idx").infer(dict(given))
    tap.report(fed[0].keys() == {"input_ids", "attention_mask", "beam_idx"}, "openvino: a model is given what it asks for", [fed])
    refused(tap, "openvino: an input that nobody knows", "the graph's input past is not understood: expected one of input_ids",
            lambda: engine("input_ids", "past").infer(dict(given)))


def check_mlx(tap):
    class Norm:
        def __call__(self, x, scale=1):
            return x * scale

    seen, norm = [], Norm()
    mlx.watch(norm, lambda args, result: seen.append((list(args), result)))
    results = [norm(3), norm(scale=2, x=3)]
    tap.report(results == [3, 6] and seen == [([3, 1], 3), ([3, 2], 6)], "mlx: arguments of a module by name and by place", [seen])
    cache = types.SimpleNamespace(offset=5)
    bare(mlx.Engine, caches=[cache], fed=5).check_caches()
    bare(mlx.Engine, caches=None, fed=5).check_caches()
    refused(tap, "mlx: a cache that the model did not take", "expected 9 tokens in each layer's cache, found [5]",
            lambda: bare(mlx.Engine, caches=[cache, types.SimpleNamespace(offset=9)], fed=9).check_caches())


def check_keras(tap):
    class Layer:
        def call(self, inputs, training=None):
            return inputs + 1

    layer, seen = Layer(), []
    engine = bare(keras_hub.Engine, record=object())
    engine.around(layer, "call", lambda args, result: seen.append((args[0], result)))
    tap.report((layer.call(1), layer.call(training=False, inputs=2)) == (2, 3) and seen == [(1, 2), (2, 3)],
               "keras-hub: arguments of a layer by name and by place", [seen])
    fed = []

    def call_with_cache(token_ids, cache, cache_update_index):
        fed.append((cache, cache_update_index))
        return None, None, f"{cache}+"

    sys.modules["torch"] = types.SimpleNamespace(tensor=lambda rows, dtype: np.array(rows), int32=None,
                                                 no_grad=contextlib.nullcontext)
    try:
        engine = bare(keras_hub.Engine, record=None, seen=0, cache=None, options=types.SimpleNamespace(chunk=2),
                      network=types.SimpleNamespace(call_with_cache=call_with_cache))
        engine.cache_of = lambda: engine.cache or "empty"
        record = Record()
        engine.feed([1, 2], record)
        engine.feed([3, 4], record)
    finally:
        del sys.modules["torch"]
    tap.report(fed == [("empty", 0), ("empty+", 2)], "keras-hub: a piece is given the cache of the one before", [fed])


def check_vllm(tap):
    class Module:
        def register_forward_hook(self, hook, with_kwargs):
            self.hook = hook

        def forward(self, input_, bias=None):
            return input_

    module, seen, record = Module(), [], Record()
    engine = bare(vllm.Engine, record=record)
    engine.see(module, lambda args, result: seen.append((args[0], result)))
    module.hook(module, (), {"input_": 7}, "out")
    module.hook(module, (7,), {}, "out")
    tap.report(seen == [(7, "out")] * 2, "vllm: arguments of a module by name and by place", [seen])
    sys.modules["vllm"] = types.SimpleNamespace(SamplingParams=lambda **options: None)
    try:
        for order, good in (([1, 2, 3], True), ([3, 1, 2], False), ([1, 2], False)):
            def generate(prompts, how, use_tqdm, order=order):
                record.begin(order)
            record = Record()
            engine.engine = types.SimpleNamespace(generate=generate)
            if good:
                engine.feed([1, 2, 3], record)
            else:
                refused(tap, f"vllm: the scheduler feeds {order}", f"expected the scheduler to feed the prompt's 3 tokens in their order, "
                        f"found {len(order)}", lambda: engine.feed([1, 2, 3], record))
    finally:
        del sys.modules["vllm"]


def check_adapters_of_peft(tap):
    """An adapter beside the weights of a linear layer is taken, elsewhere refused; merged or switched off it is none."""
    def layer(**told):
        return types.SimpleNamespace(**{"base_layer": None, "active_adapters": ["a"], "merged_adapters": [], "disable_adapters": False,
                                        **told})

    def model(*layers, name="q_proj"):
        return types.SimpleNamespace(named_modules=lambda: [("", None), *((f"layers.{i}.{name}", each) for i, each in enumerate(layers))])

    merged = layer(merged_adapters=["a"])
    refused(tap, "an adapter of experts", "layers.1.experts: the adapter a is not merged into the weights",
            lambda: beside(model(merged, layer(), name="experts")))
    refused(tap, "one beside a merged one", "layers.0.q_proj: the adapter b is beside weights into which a is merged",
            lambda: beside(model(layer(merged_adapters=["a"], active_adapters=["a", "b"]))))
    refused(tap, "two beside each other", "expected one adapter beside the weights, found a, b",
            lambda: beside(model(layer(), layer(active_adapters=["b"]))))
    refused(tap, "one for the command", "the adapter a is not merged", lambda: without_adapter(model(layer())))
    tap.report(beside(types.SimpleNamespace(get_base_model=lambda: model(layer(), merged))) == "a", "one beside linear layers is taken")
    inner = model(merged, layer(disable_adapters=True), types.SimpleNamespace())
    tap.report(without_adapter(types.SimpleNamespace(get_base_model=lambda: inner)) is inner and without_adapter(inner) is inner,
               "merged and disabled adapters are none: the model in the wrapper is watched")
    told = sinkproof.Trace({"tokens": np.arange(3), "T0": np.zeros((3, 96), np.float32)}, {"adapter": "beside"})
    with tempfile.TemporaryDirectory() as scratch:
        told.save(f"{scratch}/t.safetensors")
        for given in (told, f"{scratch}/t.safetensors"):
            try:
                said = sinkproof.judge("synthetic:tiny", given, "f32").verdict
            except sinkproof.Error as error:
                said = str(error)
            tap.report("expected its directory" in said, "without its adapter such a trace is not judged", [said])


def check_needs(tap):
    """Whoever is told to install something is told which releases were tried."""
    for name in adapter_names():
        adapter = adapter_named(name)
        said = adapter.needs()
        tap.report((not adapter.install and not said) or (said.startswith(f"Needs: {adapter.install}. Tried with ")
                                                          and all(release in said for release in adapter.tried)),
                   f"{name}: {said or 'needs nothing'}")


def main():
    tap = Tap()
    for check in (check_ranks, check_calls, check_onnx, check_openvino, check_mlx, check_keras, check_vllm, check_adapters_of_peft, check_needs):
        check(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
