# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Attention of other designs, as Hugging Face transformers computes it, judged by `sinkproof sinks --judge`.

    python tests/audit/interop_designs.py

Tiny random models of GPT-2, Llama, BLOOM, GPT-OSS, Qwen3-Next and MiMo-V2-Flash, eager, in float32 and bfloat16: the
scores, weights, results and gates of every layer are inside the honest sets; with a mistake planted into the engine they
are not, at the step that was changed. Needs torch, transformers and safetensors; a model that this transformers does not
have is not asked about, and that is said.
"""
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "shared"))
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from tap import Tap  # noqa: E402

SINKPROOF = os.environ.get("SINKPROOF") or os.path.join(ROOT, "build", "release", "sinkproof")
TOKENS, VOCABULARY, WINDOW = 24, 97, 7
SMALL = dict(vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             head_dim=16, intermediate_size=32, max_position_embeddings=64)
EXPERTS = dict(num_experts_per_tok=2)


# ------------------------------------------------------------------------------------------
# The models: class, configuration, and the design of each layer in words


def gpt2():
    config = transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=64, n_layer=2, n_head=4)
    return transformers.GPT2LMHeadModel, config, ["learned", "learned"]


def llama():
    return transformers.LlamaForCausalLM, transformers.LlamaConfig(**SMALL), ["softmax", "softmax"]


def bloom():
    config = transformers.BloomConfig(vocab_size=VOCABULARY, hidden_size=64, n_layer=2, n_head=4)
    return transformers.BloomForCausalLM, config, ["alibi", "alibi"]


def gpt_oss():
    config = transformers.GptOssConfig(**SMALL, **EXPERTS, num_local_experts=4, sliding_window=WINDOW,
                                       layer_types=["sliding_attention", "full_attention"])
    return transformers.GptOssForCausalLM, config, [f"gpt-oss-window,window={WINDOW}", "score-bias"]


def qwen3_next():
    config = transformers.Qwen3NextConfig(
        **SMALL, **EXPERTS, num_experts=4, moe_intermediate_size=32, shared_expert_intermediate_size=32,
        layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=8, linear_value_head_dim=8)
    return transformers.Qwen3NextForCausalLM, config, [None, "gated"]


def mimo():
    # Twice as many heads of keys where the window is; a third of a head's coordinates turn, 8 of 24.
    fields = {**SMALL, "num_key_value_heads": 1, "head_dim": 24}
    config = transformers.MiMoV2FlashConfig(
        **fields, **EXPERTS, v_head_dim=8, n_routed_experts=4, moe_intermediate_size=32, sliding_window=WINDOW,
        layer_types=["full_attention", "sliding_attention"], attention_value_scale=0.707)
    return transformers.MiMoV2FlashForCausalLM, config, ["softmax", f"mimo-v2-flash,window={WINDOW}"]


MODELS = {"GPT2": gpt2, "Llama": llama, "Bloom": bloom, "GptOss": gpt_oss, "Qwen3Next": qwen3_next, "MiMoV2Flash": mimo}


def present(name):
    return any(hasattr(transformers, f"{name}{kind}") for kind in ("ForCausalLM", "LMHeadModel"))


def made(make, dtype):
    """A model whose scores are of ordinary size, from seed 1."""
    kind, config, designs = make()
    config._attn_implementation = "eager"
    torch.manual_seed(1)
    model = kind(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() >= 2:
                parameter.normal_(0, 1.5 / parameter.shape[-1] ** 0.5)
            elif "sink" in name:
                parameter.uniform_(-2, 2)
    for parameter in model.parameters():  # the frequencies of a rotation stay in float32
        parameter.data = parameter.data.to(dtype)
    return model, designs


# ------------------------------------------------------------------------------------------
# Watching one run


@contextlib.contextmanager
def changed(place, name, value):
    right = getattr(place, name)
    setattr(place, name, value)
    try:
        yield right
    finally:
        setattr(place, name, right)


def rows(x):
    """[1, heads, n, width] as [n, heads, width]."""
    return x[0].transpose(0, 1)


class Watch:
    """What the eager attention of each layer computed, by the names of a design's file."""

    def __init__(self, model):
        self.model, self.layers, self.turned = model, {}, {}
        self.modeling = sys.modules[type(model).__module__]

    def at(self, module):
        return self.layers.setdefault(module.layer_idx, {})

    def rotary(self, right):
        """Queries and keys before their rotation, and its tables: the next attention is theirs."""

        def turn(q, k, cos, sin, *rest, **options):
            pairs = cos.shape[-1] if "gpt_oss" in self.modeling.__name__ else cos.shape[-1] // 2
            self.turned = {"unturned.q": rows(q), "unturned.k": rows(k), "cos": cos[0, :, :pairs], "sin": sin[0, :, :pairs]}
            return right(q, k, cos, sin, *rest, **options)
        return turn

    def base(self, layer):
        """Of tables that are not scaled."""
        said = getattr(self.model.config, "rope_parameters", None) or {}
        said = said.get(self.model.config.layer_types[layer], said) if getattr(self.model.config, "layer_types", None) else said
        if said.get("rope_type") == "default":
            self.turned["rotary.base"] = torch.tensor([float(said["rope_theta"])])

    def eager(self, right):
        """Scores are what goes into the softmax, or what is joined by a sink before it."""

        def attention(module, query, key, value, mask, *rest, **options):
            held = self.at(module)
            held.update(q=rows(query), k=rows(key), v=rows(value))
            if self.turned:
                self.base(module.layer_idx)
                held.update(self.turned)
            if getattr(module, "sinks", None) is not None:
                held["star.logit"] = module.sinks.detach()
            softmax, joined = torch.nn.functional.softmax, torch.cat
            shifted = hasattr(module, "sinks")  # these two models subtract the maximum before

            def softmax_seen(x, *given, **named):
                if not shifted:
                    held["s"] = x[0]
                return softmax(x, *given, **named)

            def cat_seen(parts, *given, **named):
                both = joined(parts, *given, **named)
                held["s"] = both[0]
                return both

            with changed(torch.nn.functional, "softmax", softmax_seen), changed(torch, "cat", cat_seen):
                output, weights = right(module, query, key, value, mask, *rest, **options)
            held.update(alpha=weights[0], o=output[0])
            return output, weights

        return attention

    def bloom(self, stack):
        """BLOOM's attention has no function of its own: its two products are watched."""
        current = {}

        def scores(alibi, batch1, batch2, **options):
            current["held"] = held = self.layers.setdefault(len(self.layers), {})
            held.update(q=batch1.transpose(0, 1), k=batch2.permute(2, 0, 1), bias=alibi)
            held["slope"] = torch.tensor([2.0 ** (-8 * (h + 1) / len(alibi)) for h in range(len(alibi))])
            held["s"] = right_scores(alibi, batch1, batch2, **options)
            return held["s"]

        def values(alpha, v):
            current["held"].update(alpha=alpha, v=v.transpose(0, 1))
            current["held"]["o"] = (o := right_values(alpha, v)).transpose(0, 1)
            return o

        right_scores = stack.enter_context(changed(torch.Tensor, "baddbmm", scores))
        right_values = stack.enter_context(changed(torch, "bmm", values))

    def gates(self, stack):
        for module in self.model.modules():
            if type(module).__name__ == "Qwen3NextAttention":
                def gate(proj, given, out, module=module):
                    pairs = out[0].view(len(out[0]), -1, 2 * module.head_dim)
                    self.at(module)["g"] = pairs[:, :, module.head_dim:]

                def gated(proj, given, module=module):
                    self.at(module)["gated"] = given[0][0].view(len(given[0][0]), -1, module.head_dim)
                for handle in (module.q_proj.register_forward_hook(gate), module.o_proj.register_forward_pre_hook(gated)):
                    stack.callback(handle.remove)

    def run(self, eager=None):
        generator = torch.Generator().manual_seed(2)
        tokens = torch.randint(VOCABULARY, (1, TOKENS), generator=generator)
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            if hasattr(self.modeling, "eager_attention_forward"):
                right = eager or self.modeling.eager_attention_forward
                stack.enter_context(changed(self.modeling, "eager_attention_forward", self.eager(right)))
            else:
                self.bloom(stack)
            if hasattr(self.modeling, "apply_rotary_pos_emb"):
                stack.enter_context(changed(self.modeling, "apply_rotary_pos_emb",
                                            self.rotary(self.modeling.apply_rotary_pos_emb)))
            self.gates(stack)
            self.model(input_ids=tokens, use_cache=False)
        return self


# ------------------------------------------------------------------------------------------
# Judging it


def judged(work, watch, designs, policy):
    """(exit code, {step: verdict}, the first step outside)."""
    path = os.path.join(work, "design.safetensors")
    tensors = {f"{layer:02d}.{name}": x.detach().clone().contiguous()
               for layer, held in watch.layers.items() for name, x in held.items()}
    words = {f"{layer:02d}.design": design for layer, design in enumerate(designs) if design}
    save_file(tensors, path, metadata={"format": "sinkproof-design-1", **words})
    process = subprocess.run([SINKPROOF, "sinks", "--judge", path, "--policy", policy, "--json", "-"], capture_output=True,
                             text=True, check=False)
    steps = json.loads(process.stdout)["results"] if process.stdout else []
    first = next((step["id"] for step in steps if step["verdict"] == "bug"), None)
    return process.returncode, {step["id"]: step for step in steps}, first, process.stderr.strip()


def honest(tap, work, name, make):
    for dtype, policies in ((torch.float32, ["f32"]), (torch.bfloat16, ["bf16"])):
        model, designs = made(make, dtype)
        watch = Watch(model).run()
        if name in ("GptOss", "MiMoV2Flash") and dtype is torch.bfloat16:
            policies = [*policies, "hf-bf16"]  # what these two do, to the last rounding
        for policy in policies:
            code, steps, first, said = judged(work, watch, designs, policy)
            watched = [design for design in designs if design]
            open_ = [id for id, step in steps.items() if step["elements"] == 0 or step["unbounded"]]
            maps = [id for id in steps if id.endswith(".alpha")]
            worst = max((step["worst"] or 0 for step in steps.values()), default=0)
            elements = sum(step["elements"] for step in steps.values())
            tap.report(code == 0 and len(maps) == len(watched) and not open_ and len(steps) >= 2 * len(watched) and worst <= 1,
                       f"{name} {str(dtype)[6:]} --policy {policy}: {len(steps)} steps honest, maps included, "
                       f"elements={elements} worst={worst:.3g} bound=1", [first, open_, said])


# ------------------------------------------------------------------------------------------
# Mistakes


def without_sink(module, query, key, value, mask, scaling=None, **options):
    key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
    weights = torch.softmax(query @ key.transpose(2, 3) * scaling + mask, dim=-1)
    return (weights @ value).transpose(1, 2), weights


def one_added(module, query, key, value, mask, scaling=None, **options):
    """Softmax off by one, as it is meant: a logit of zero joins the row."""
    key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
    scores = query @ key.transpose(2, 3) * scaling + mask
    scores = torch.cat([scores, torch.zeros_like(scores[..., :1])], dim=-1)
    weights = torch.softmax(scores.float(), dim=-1).to(query.dtype)[..., :-1]
    return (weights @ value).transpose(1, 2), weights


def over_d(right):
    def attention(module, query, key, value, mask, scaling=None, **options):
        return right(module, query, key, value, mask, scaling=scaling * scaling, **options)
    return attention


def without(watch, name):
    for held in watch.layers.values():
        held.pop(name, None)
    return watch


def next_head(right):
    def slopes(num_heads, device):
        return right(num_heads, device).roll(1, 0)
    return slopes


def mistakes(tap, work):
    for dtype, policy in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        def convicted(what, watch, designs, *steps):
            code, _, first, said = judged(work, watch, designs, policy)
            tap.report((code, first) == (1, steps[0]) if steps else code == 0,
                       f"{str(dtype)[6:]}: {what}: {'convicted at ' + steps[0] if steps else 'honest'}", [code, first, said])

        model, designs = made(gpt_oss, dtype)
        convicted("the sink forgotten", Watch(model).run(without_sink), designs, "00.alpha")
        kind, config, words = gpt_oss()
        config.sliding_window = WINDOW + 1
        model, _ = made(lambda: (kind, config, words), dtype)
        convicted("a window longer by one", Watch(model).run(), designs, "00.alpha")
        model, designs = made(llama, dtype)
        watch = Watch(model).run(one_added)
        convicted("softmax off by one, taken for softmax", without(watch, "s"), designs, "00.alpha")
        convicted("the same, said to be what it is", watch, ["off-by-one"] * 2)
        eager = sys.modules[type(model).__module__].eager_attention_forward
        convicted("scores over d, not its root", Watch(model).run(over_d(eager)), designs, "00.s")
        if dtype is torch.bfloat16:
            convicted("frequencies rounded to bfloat16", Watch(model.to(dtype)).run(), designs, "00.cos")
        model, designs = made(bloom, dtype)
        modeling = sys.modules[type(model).__module__]
        with changed(modeling, "_get_alibi_slopes", next_head(modeling._get_alibi_slopes)):
            convicted("slopes of the next head", Watch(model).run(), designs, "00.bias")
        if present("Qwen3Next"):
            model, designs = made(qwen3_next, dtype)
            with changed(torch, "sigmoid", torch.ones_like):
                convicted("the gate left out", Watch(model).run(), designs, "01.gated")


SHOWN = re.compile(r"<!-- python design -->\n```python\n(.*?)```\n\n<!-- prints design -->\n```text\n(.*?)```", re.DOTALL)


def shown(tap, work):
    """The book's own program, whose engine forgot its sink."""
    with open(os.path.join(ROOT, "doc", "24-variants.md"), encoding="utf-8") as page:
        program, prints = SHOWN.search(page.read()).groups()
    subprocess.run([sys.executable, "-c", program], cwd=work, check=True)
    process = subprocess.run([os.path.abspath(SINKPROOF), "sinks", "--judge", "engine.safetensors"], cwd=work,
                             capture_output=True, text=True, check=False)
    tap.report(process.returncode == 1 and process.stdout == prints, "the book's program is judged as the book shows",
               [process.returncode, *process.stdout.splitlines()])


def main():
    transformers.utils.logging.set_verbosity_error()
    tap = Tap()
    with tempfile.TemporaryDirectory() as work:
        for name, make in MODELS.items():
            if not present(name):
                print(f"# {name}: not in transformers {transformers.__version__}, not asked about", flush=True)
                continue
            honest(tap, work, name, make)
        mistakes(tap, work)
        shown(tap, work)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
