# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""sinkproof.trace on a transformers' model in ./checkpoint, run by python_inside.py: one line of TAP each."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import sinkproof  # noqa: E402
import torch  # noqa: E402
from sinkproof.adapters import transformers as hf  # noqa: E402
from sinkproof.adapters._torch import watch  # noqa: E402
from tap import Tap  # noqa: E402

TOKENS = [5, 1, 7, 3, 11, 2, 9, 4]


def refused(act):
    try:
        act()
    except sinkproof.TraceError as error:
        return str(error)
    return ""


def traced(model, *calls, points=None, **options):
    """The trace of these calls of the model, each with its arguments."""
    with torch.no_grad(), sinkproof.trace(model, points, **options) as trace:
        for arguments in calls:
            model(**arguments)
    return trace


def ids(*tokens):
    return {"input_ids": torch.tensor([list(tokens)])}


def trained(model, points=None, calls=None, times=1):
    """The trace of a pass forward and back."""
    with sinkproof.trace(model, points, backward=True, checkpoint="checkpoint") as trace:
        for arguments in calls or [ids(*TOKENS)]:
            logits = model(**arguments).logits.float()
        for _ in range(times):
            logits.logsumexp(-1).sum().backward(retain_graph=True)
    model.zero_grad()
    return trace


def check_gradients(tap, model, policy):
    """Gradients of points and of weights; interop_backward.py compares their numbers."""
    whole = trained(model)
    shaped = all(whole[name].shape == whole[name.replace("d", "", 1)].shape for name in whole if name.replace("d", "", 1) in whole)
    tap.report(shaped and whole["03.dsink"].shape == (10,) and whole["03.dM8"].dtype.name == "bfloat16" and "dF2" in whole,
               "a pass forward and back has the gradients of points and weights", list(whole))
    few = trained(model, {"A9"})
    tap.report({name.split(".", 1)[-1] for name in few if ".dW" not in name and ".db" not in name and name[0] != "d"}
               == {"A9", "dA9", "dsink", "tokens", "positions"}, "points restrict the gradients of points", list(few))
    two = trained(model, {"A11"}, [{"input_ids": torch.tensor([TOKENS[:4], TOKENS[4:]])}])
    tap.report(all(one["00.dA11"].shape == (4, 10, 16) and "00.dsink" not in one for one in two.sequences)
               and two["cu_seqlens"].tolist() == [0, 4, 8] and two["00.dsink"].shape == (10,),
               "several sequences in one backward pass are one trace, with the weights' gradients", [list(one) for one in two.sequences])
    batch = trained(model, None, [{"input_ids": torch.tensor([TOKENS[:4], TOKENS[4:]])}])
    found = sinkproof.judge("checkpoint", batch, policy, local=True, hint=False)
    tap.report(found.ok and "1 of 162 gradients undecided" in str(found), "and such a trace is honest", str(found).splitlines())
    padded = {"input_ids": torch.tensor([TOKENS[:4], TOKENS[4:]]), "attention_mask": torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])}
    for reads, text in ((3, "padding that the loss does not read: the trace is without it"),
                        (4, "padding that the loss reads: no weight's gradient is of the tokens alone")):
        with sinkproof.trace(model, backward=True, checkpoint="checkpoint") as trace:
            logits = model(**padded).logits.float()
            (logits[0, :reads].logsumexp(-1).sum() + logits[1].logsumexp(-1).sum()).backward()
        model.zero_grad()
        found = sinkproof.judge("checkpoint", trace, policy, local=True, hint=False) if reads == 3 else None
        good = all("00.dsink" not in one for one in trace.sequences) and (reads == 3 or not trace._one)  # pylint: disable=protected-access
        tap.report(good and (found is None or found.ok and trace["cu_seqlens"].tolist() == [0, 3, 7]), text,
                   str(found).splitlines())
    with sinkproof.trace(model, {"A11"}, backward=True) as apart:
        for tokens in (TOKENS[:4], TOKENS[4:]):
            model(**ids(*tokens)).logits.float().logsumexp(-1).sum().backward()
    model.zero_grad()
    tap.report([one["00.dA11"].shape for one in apart.sequences] == [(4, 10, 16)] * 2 and "00.dsink" not in apart.sequences[1],
               "of sequences with a backward pass each there are those of points alone", [list(one) for one in apart.sequences])
    cache = hf.new_cache(model.config)
    pieces = [{**ids(*TOKENS[:5]), "past_key_values": cache, "use_cache": True},
              {**ids(*TOKENS[5:]), "past_key_values": cache, "use_cache": True}]
    said = {"no gradient came": lambda: traced(model, ids(*TOKENS), backward=True),
            "expected one backward pass": lambda: trained(model, times=2),
            "found 5 cached tokens before it": lambda: trained(model, calls=pieces),
            "Linear": lambda: traced(torch.nn.Linear(2, 2), ids(*TOKENS), backward=True)}
    for part, act in said.items():
        tap.report(part in refused(act), f"gradients refused: {part}", [refused(act)])
    for owner, name, value, part in ((model.model, "gradient_checkpointing", True, "without gradient checkpointing"),
                                     (model, "_compiled_call_impl", len, "a compiled model")):
        kept = getattr(owner, name)
        setattr(owner, name, value)
        tap.report(part in refused(lambda: trained(model)), f"gradients refused: {part}")
        setattr(owner, name, kept)
    left = [parameter for parameter in model.parameters() if parameter._backward_hooks]
    tap.report(not left, "no hook on a parameter remains")
    model.zero_grad()


def main():
    tap, model = Tap(), hf.load_model("checkpoint", "bfloat16")
    experts = hf.experts_implementation(model)
    policy = "hf-bf16,M11.sum=" + ("bf16" if experts == "eager" else "real")
    whole = traced(model, ids(*TOKENS))
    found = sinkproof.judge("checkpoint", whole, policy, local=True, hint=False)
    tap.report(found.ok and len(found.points) == 4 * 23 + 3 and whole["03.A11"].dtype.name == "bfloat16",
               "every point of a bfloat16 module is traced and honest", str(found).splitlines())
    cache = hf.new_cache(model.config)
    chunks = [{**ids(*TOKENS[:5]), "past_key_values": cache, "use_cache": True},
              {**ids(*TOKENS[5:]), "past_key_values": cache, "use_cache": True}]
    found = sinkproof.judge("checkpoint", traced(model, *chunks), policy, local=True, hint=False)
    tap.report(found.ok, "a prompt in two chunks through a cache is one trace", str(found).splitlines())
    with sinkproof.trace(model) as trace:
        made = model.generate(**ids(*TOKENS), max_new_tokens=3, do_sample=False)
    found = sinkproof.judge("checkpoint", trace, policy, local=True, hint=False)
    tap.report(found.ok and trace["tokens"].tolist() == made[0, :-1].tolist() and "F2" not in trace,
               "generation is one trace, without the logits that it did not ask for", str(found).splitlines())
    few = traced(model, ids(*TOKENS), points={"A9", "A13"})
    tap.report({name.split(".")[-1] for name in few} == {"A9", "A13", "tokens", "positions"}, "points restrict it",
               list(few))
    few.save("few.safetensors")
    from safetensors.torch import load_file
    again = load_file("few.safetensors")
    tap.report(set(again) == set(few) and again["00.A9"].dtype == torch.bfloat16
               and again["00.A9"].view(torch.int16).numpy().tobytes() == few["00.A9"].tobytes(),
               "a saved trace is what safetensors reads, bit for bit")
    arrays = {"tokens": torch.tensor(TOKENS), "00.A9": torch.from_numpy(few["00.A9"].view("i2")).view(torch.bfloat16)}
    found = sinkproof.judge("checkpoint", arrays, policy, local=True, hint=False)
    tap.report(found.verdict != "bug" and found["00.A9"].elements == few["00.A9"].size,
               "tensors of torch are taken as arrays")
    seen = []
    with watch(lambda name, args, result: seen.append((name, args))):
        a, b = torch.ones(2, 2), torch.eye(2)
        torch.matmul(other=b, input=a)
        torch.add(a, other=b)
    tap.report([(name, [one is a or one is b for one in args], args[0] is a) for name, args in seen if name in ("matmul", "add")]
               == [("matmul", [True, True], True), ("add", [True, True], True)],
               "operands of torch's operations are seen in their places, however they are given", seen)
    check_gradients(tap, model, policy)
    model.__class__ = type("Mine", (type(model),), {})
    found = sinkproof.judge("checkpoint", traced(model, ids(*TOKENS)), policy, local=True, hint=False)
    tap.report(found.ok and len(found.points) == 95, "a subclass of one's own is traced", str(found).splitlines())
    sinks = model.model.layers[0].self_attn.sinks
    kept = sinks.data.clone()
    sinks.data -= 20
    found = sinkproof.judge("checkpoint", traced(model, ids(*TOKENS)), policy, local=True, hint=False)
    sinks.data.copy_(kept)
    tap.report(found.first == "00.A9", "sinks that are not the checkpoint's are convicted at A9", [found.first])
    held = {"past_key_values": cache, "use_cache": True}
    later = traced(model, {**ids(*TOKENS), **held}, {**ids(3), **held})
    found = sinkproof.judge("checkpoint", later, policy, local=True, hint=False)
    tap.report(found.ok and later["positions"].tolist() == [*range(8, 17)] and len(later["01.A4.k"]) == 17
               and not any(point.undecided for point in found.points),
               "a cache that was filled before: its keys and values are in the trace, and all is decided",
               str(found).splitlines())
    says = [refused(lambda: traced(model, {"inputs_embeds": torch.zeros(1, 3, 96)})),
            refused(lambda: traced(model, {**ids(*TOKENS), "attention_mask": torch.tensor([[0] + [1] * 7])})),
            refused(lambda: traced(model)), refused(lambda: traced(torch.nn.Linear(2, 2)))]
    expected = ["[batch, n], found none", "padding on the left needs", "was not called", "found Linear"]
    for said, part in zip(says, expected):
        tap.report(part in said and "\n" not in said, f"refused: {part}", [said])
    after = [module for module in model.modules() if module._forward_hooks or module._forward_pre_hooks]
    tap.report(not after and "forward" not in model.model.layers[0].mlp.router.__dict__,
               "nothing of the watcher remains", after[:3])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
