# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mistakes of public reports, planted in transformers' GPT-OSS, each judged as a fused kernel would be traced and asked
for its cause.

    python tests/audit/interop_hf_reports.py             all of them, held against doc/engines/reports/transformers.json
    FEW=1 python tests/audit/interop_hf_reports.py       those that take little time
    python tests/audit/interop_hf_reports.py --write     all of them, and keep what was found
    python tests/audit/interop_hf_reports.py NAME...     these, with what the diagnosis says

A report is a line of a public tracker, its number and the mistake in one sentence. A mistake counts as named when a
finding at the first point outside explains it in the words that belong to its cause, in every format that it is planted
in; as named wrong when any finding explains points by words that do not. The test fails where fewer are named than the
file keeps, or where any is named wrong. A TAP program beside interop_hf_planted.py, whose model and policies it has.
"""
import collections
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "audit", "python"), os.path.join(ROOT, "tests", "shared")]
import sinkproof  # noqa: E402
import torch  # noqa: E402
from engines import changed  # noqa: E402
from interop_hf_bugs import (attention, attribute, by_parts, FULL, kernel, modules, shares,  # noqa: E402
                             together, weights)
from interop_hf_planted import POLICIES, SINKPROOF  # noqa: E402
from sinkproof.adapters import transformers as hf  # noqa: E402
from sinkproof.adapters._tokens import random_tokens  # noqa: E402
from tap import Tap  # noqa: E402
from transformers import DynamicCache  # noqa: E402

KEPT = pathlib.Path(ROOT) / "doc/engines/reports/transformers.json"
FORMAT = "sinkproof-reports-1"
FUSED = ("A6", "A9", "A10")  # what a fused kernel of attention does not show
LENGTH, PREFIX, PAGE = 48, 16, 8
AT_ONCE, STEPS, AFTER_A_PREFIX, THREE = (LENGTH,), (40, *[1] * 8), (PREFIX, LENGTH - PREFIX), (PREFIX,) * 3
BRAIN, NARROW = torch.bfloat16, torch.float8_e4m3fn
LOG2E, NONE = math.log2(math.e), -1e30

# where: public names; says: the mistake; plant: model -> context manager; point: where it acts first; words: the
# diagnosis' text matches one of these when it names the cause; pieces: the calls, over a cache where there are several.
Report = collections.namedtuple("Report", "where says plant point words pieces under",
                                defaults=(AT_ONCE, ("float32", "bfloat16")))


# ------------------------------------------------------------------------------------------
# Places


def before(x, first, wrong):
    """The keys or values that a call reads: wrong(those of the calls before), then its own."""
    return torch.cat([wrong(x[:, :, :first]), x[:, :, first:]], dim=2)


def cache(wrong, when=None):
    """wrong(keys or values of all positions, the first of the call, window or not) are what a call reads."""
    def attend(right, module, query, key, value, mask, **more):
        n, slides = query.shape[2], module.sliding_window is not None
        first = key.shape[2] - n
        if (when or later)(first, n, slides):
            key, value = wrong(key, first), wrong(value, first)
        return right(module, query, key, value, mask, **more)
    return attention(attend)


def seen(rule, when):
    """A call's queries i also see, or do not see, keys j as rule(i, j, first of the call, visible) says."""
    def attend(right, module, query, key, value, mask, **more):
        n, slots = query.shape[2], key.shape[2]
        if when(slots - n, n, module.sliding_window is not None):
            i, j = torch.arange(slots - n, slots)[:, None], torch.arange(slots)
            visible = rule(i, j, slots - n, mask == 0)
            mask = torch.zeros_like(mask).masked_fill(~visible, torch.finfo(mask.dtype).min)
        return right(module, query, key, value, mask, **more)
    return attention(attend)


def instead(compute):
    """compute(again, q, k, v, mask, module) gives the output: again(q, k, v, mask) is unwatched attention."""
    def attend(right, module, query, key, value, mask, **more):
        watched, shown = right(module, query, key, value, mask, **more)

        def again(*arguments):
            with torch._C.DisableTorchFunction():
                return right(module, *arguments, **more)[0]
        return compute(again, query, key, value, mask, module, watched), shown
    return attention(attend)


def with_sinks(wrong, start):
    """Rows of layers without a window have, from `start` on, wrong(sinks)."""
    def compute(again, query, key, value, mask, module, right):
        if module.sliding_window is not None:
            return right
        with changed(module.sinks, "data", wrong(module.sinks.data)):
            other = again(query, key, value, mask)
        rows = torch.arange(key.shape[2] - query.shape[2], key.shape[2]) >= start
        return torch.where(rows[:, None, None], other, right)
    return instead(compute)


def repeated(which):
    """Keys of a call are read once more, as if they stood behind the others: which(first, slots) says which."""
    def compute(again, query, key, value, mask, module, right):
        first = key.shape[2] - query.shape[2]
        if not first:
            return right
        more = which(first, key.shape[2])
        wide = torch.cat([mask, mask[..., more]], dim=-1)
        return again(query, *(torch.cat([x, x[:, :, more]], dim=2) for x in (key, value)), wide)
    return instead(compute)


# ------------------------------------------------------------------------------------------
# Mistakes that are more than a line


def packed(sees):
    """The trace is of the second document of a packed row; its queries also see keys of the first, as sees(slides,
    their number) says."""
    def plant(model):
        kept = {}

        def compute(again, query, key, value, mask, module, right):
            if module.layer_idx not in kept:
                kept[module.layer_idx] = key, value
                return right
            slides, (keys, values) = module.sliding_window is not None, kept[module.layer_idx]
            of_first = sees(slides, keys.shape[2])
            keys = torch.cat([keys[:, :, of_first], key], dim=2)
            values = torch.cat([values[:, :, of_first], value], dim=2)
            wide = torch.cat([mask.new_zeros(*mask.shape[:3], keys.shape[2] - mask.shape[3]), mask], dim=-1)
            return again(query, keys, values, wide)
        with torch.no_grad(), instead(compute)(model):
            model(input_ids=torch.tensor([random_tokens(12, 3, model.config.vocab_size)]))
        return instead(compute)(model)
    return plant


def of_experts(wrong, names=("gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias")):
    """wrong(parameter with an expert in each row) in every layer."""
    def plant(model):
        return together(*(weights("mlp.experts", name, lambda data, *_: wrong(data.clone()))(model) for name in names))
    return plant


def first_experts(keep):
    return lambda data: data * (torch.arange(len(data)) < keep).reshape(-1, *[1] * (data.dim() - 1)).to(data.dtype)


def remote_dropped(model):
    """Experts from 4 on are on another rank, and what they give is not added."""
    def near(right):
        return lambda x, e, w: right(x, e, w * (e < 4).to(w.dtype))
    return together(*(changed(owner, "forward", near(owner.forward)) for owner in modules(model, "mlp.experts")))


def fifth_is_fourth(data):
    data[5] = data[4]
    return data


def adapter(half):
    """The checkpoint is base plus adapter; the engine's weights lack the adapter, where it is not on one half alone."""
    def wrong(data):
        rows = torch.arange(data.shape[1], dtype=torch.float32) % 5 - 2
        columns = torch.arange(data.shape[2], dtype=torch.float32) % 7 - 3
        merged = torch.outer(rows, columns) * 0.01
        if half:
            merged = merged * (torch.arange(data.shape[2]) % 2)
        return (data.float() - merged).to(data.dtype)
    return of_experts(wrong, ["gate_up_proj"])


def unscaled(x):
    """Eight bits of x over its scale, read without the scale."""
    return (x.float() / (x.float().abs().amax() / 448)).clamp(-448, 448).to(NARROW).to(x.dtype)


def gate_of_another_base(scores, b):
    """The sink's gate behind a finished softmax has the LSE times ln 2."""
    lse = torch.logsumexp(scores, -1, keepdim=True)
    return torch.exp(scores - lse) * torch.sigmoid(lse * math.log(2) - b)


def gate_of_a_rounded_lse(scores, b):
    lse = torch.logsumexp(scores, -1, keepdim=True)
    return torch.exp(scores - lse) * torch.sigmoid(lse.to(BRAIN).float() - b)


def sinks_of_queries(scores, b):
    own = b.flatten()[torch.arange(scores.shape[-2]) % b.numel()].reshape(1, 1, -1, 1)
    return weighed(scores, own)


def weighed(scores, b):
    top = torch.maximum(scores.amax(-1, keepdim=True), b)
    e = torch.exp(scores - top)
    return e / (e.sum(-1, keepdim=True) + torch.exp(b - top))


# ------------------------------------------------------------------------------------------
# The reports


def wide_in_steps(i, j, first, visible):
    return visible | (j == i - PAGE)


def later(first, n, slides):
    return first > 0


def later_windows(first, n, slides):
    return first > 0 and slides


def windows_in_steps(first, n, slides):
    return slides and n == 1


REPORTS = {
    "down-bias-by-two-ranks": Report(
        "torchtitan #4245", "the down-projection's bias is added on two ranks",
        weights("mlp.experts", "down_proj_bias", lambda b, *_: 2 * b), "M10",
        [r"bias\w* of the down-projection .*(twice|by 2|times 2)"]),
    "down-bias-by-four-ranks": Report(
        "torchtitan #4245", "the down-projection's bias is added on four ranks",
        weights("mlp.experts", "down_proj_bias", lambda b, *_: 4 * b), "M10",
        [r"bias.*(four times|by 4|times 4|[^\d.]4[^\d.])"]),
    "output-bias-by-four-ranks": Report(
        "text-generation-inference #1036", "the output projection's bias is added on four ranks",
        weights("self_attn.o_proj", "bias", lambda b, *_: 4 * b), "A12",
        [r"bias.*(four times|by 4|times 4|[^\d.]4[^\d.])"]),
    "experts-empty": Report(
        "vllm #46441, vllm-gaudi #987", "experts 4 to 6 are empty after loading", of_experts(first_experts(4)), "M5",
        [r"expert.*(zero|empty)", r"(zero|empty|left out).*experts? (from )?4"]),
    "remote-experts-dropped": Report(
        "vllm-gaudi #1796", "what remote experts give is not added", remote_dropped, "M11",
        [r"experts? .*(4|remote).*", r"remote"]),
    "fifth-expert-is-fourth": Report(
        "ours", "expert 5 has expert 4's weights", of_experts(fifth_is_fourth), "M5", [r"expert 5.*(expert 4|before)",
        r"(one before|expert 4),.*expert 5"]),
    "sink-by-two-ranks": Report(
        "prime-rl #3397", "the sink is counted on both ranks of context parallelism",
        kernel(lambda scores, b: by_parts(scores, b, LENGTH // 2, True)), "A11",
        [r"sink.*(2 times|twice|ln\(?2|equal parts|parts? of 24|ranks)"], under=FULL),
    "prefix-without-the-sink": Report(
        "vllm #26325", "behind a cached prefix two parts are merged without the sink",
        with_sinks(lambda b: torch.full_like(b, NONE), PREFIX), "A11", [r"sink is left out", r"sink-dropped"],
        pieces=AFTER_A_PREFIX),
    "prefix-with-the-sink-twice": Report(
        "vllm #26325", "behind a cached prefix two parts are merged, and the sink is in both",
        with_sinks(lambda b: b + math.log(2), PREFIX), "A11",
        [r"sink.*(twice|two|2 times|in each of|times 2|ln\(?2|0\.69|once for|by 2)"], pieces=AFTER_A_PREFIX,
        under=FULL),
    "lse-of-another-base": Report(
        "pytorch #181645", "the LSE that the sink's gate reads is off by a factor ln(2)",
        kernel(gate_of_another_base), "A11", [r"(LSE|log-sum-exp).*(ln\(?2|base 2|0\.69)"], under=FULL),
    "sink-by-query": Report(
        "openvino #32731", "the sink is taken by the query's index, not by the head's", kernel(sinks_of_queries),
        "A11", [r"sink.*(quer|row|position)"], under=FULL),
    "cache-without-its-scale": Report(
        "vllm #42580", "keys and values of eight bits are read without their scale",
        cache(lambda x, first: before(x, first, unscaled)), "A11", [r"scale.*(left out|without|dropped|missing|not)",
        r"without (its|their|a) scale"], pieces=STEPS),
    "window-writes-lost": Report(
        "sglang #19107", "a call's keys and values are not written to the cache of the windows' layers",
        cache(lambda x, first: torch.cat([x[:, :, :first], 0 * x[:, :, first:]], dim=2),
              lambda first, n, slides: slides and first == PREFIX),
        "A11", [r"(keys|values|write|pass|piece).*(zero|lost|not written|empty|stale)",
        r"(zero|lost|not written|empty).*(key|value|pass)"], pieces=THREE),
    "window-lost-behind-a-prefix": Report(
        "kvcached #446", "after a prefix hit the windows' layers do not see the prefix",
        seen(lambda i, j, first, visible: visible & (j >= first), later_windows), "A11",
        [r"cached keys are never read", r"(prefix|cached|earlier|before).*(not|never|lost|unseen)",
        r"own p(ass|iece)", r"from-key=16"], pieces=AFTER_A_PREFIX),
    "last-key-twice": Report(
        "Rapid-MLX #1124", "in steps the newest key is read twice", repeated(lambda first, slots: [slots - 1]), "A11",
        [r"(last|newest|own) key.*twice", r"twice.*(last|newest|own)"], pieces=STEPS),
    "page-twice": Report(
        "tt-metal #30362 (class)", "in steps a page of 8 cached keys is read twice",
        repeated(lambda first, slots: list(range(PAGE, 2 * PAGE))), "A11", [r"(page|keys? 8).*twice",
        r"twice.*(page|keys? 8)"], pieces=STEPS),
    "wide-in-steps": Report(
        "AMDMIGraphX #5260", "the window is one key too wide in steps", seen(wide_in_steps, windows_in_steps), "A11",
        [r"one key too wide", r"window has 9 keys, not 8"], pieces=STEPS),
    "packed-rows-bleed": Report(
        "transformers #39997", "the second document of a packed row sees all of the first",
        packed(lambda slides, n: slice(0, n)), "A11", [r"(document|sequence|packed|outside|foreign|another).*"]),
    "packed-windows-bleed": Report(
        "NeMo-RL #1672", "in layers without a window the second document of a packed row sees the first",
        packed(lambda slides, n: slice(0, 0 if slides else n)), "A11",
        [r"(document|sequence|packed|outside|foreign|another).*"]),
    "packed-boundary-late": Report(
        "prime-rl #2392", "the boundary of packed rows is one off: the last key of the first document is seen",
        packed(lambda slides, n: slice(n - 1, n)), "A11", [r"(document|sequence|packed|outside|foreign|another).*"]),
    "mxfp4-scales-zero": Report(
        "sglang #33541", "the scales of the experts' up-projection are zeros",
        of_experts(lambda w: 0 * w, ["gate_up_proj"]), "M5",
        [r"(scale|weight|expert|projection|product).*(zero|empty|by 0|times 0|left out)",
        r"(zero|empty).*(scale|weight|expert|projection)", r"M5 is zero"]),
    "adapter-on-the-gate-alone": Report(
        "tinker-cookbook #457", "the adapter is applied to the gate's half alone", adapter(half=True), "M5",
        [r"rank|adapter|LoRA"]),
    "adapter-dropped": Report(
        "unsloth-zoo #885", "the adapter of the experts is not applied", adapter(half=False), "M5",
        [r"rank|adapter|LoRA"]),
    "shares-of-rounded-logits": Report(
        "tt-metal #47671", "the experts' shares are computed from logits in bfloat16",
        shares(lambda w, top, *_: torch.softmax(top.to(BRAIN).float(), 1)), "M4", [r"bfloat16|bf16"], under=FULL),
    "clamp-lost": Report(
        "sglang #39939", "gate and up are not clamped", attribute("mlp.experts", "limit", math.inf), "M8",
        [r"not clamped"]),
    "cached-keys-unread": Report(
        "gpt-oss 0.0.9", "from the second call on cached keys are never read",
        seen(lambda i, j, first, visible: visible & (j >= first), later), "A11", [r"cached keys are never read",
        r"own p(ass|iece)", r"from-key=16"], pieces=AFTER_A_PREFIX),
    "lse-rounded": Report(
        "transformers 5.17", "the LSE is rounded to bfloat16 before the sink's gate", kernel(gate_of_a_rounded_lse),
        "A11", [r"log-sum-exp is rounded to bfloat16"], under=FULL),
    "sink-rounded-in-base-2": Report(
        "fla-core 0.6.0", "the sink times log2(e) is rounded to bfloat16",
        kernel(lambda scores, b: weighed(scores, (b * LOG2E).to(BRAIN).float() / LOG2E)), "A11",
        [r"log2\(e\) in bfloat16"], under=FULL),
}
QUICK = ("down-bias-by-two-ranks", "clamp-lost", "cached-keys-unread", "lse-rounded", "last-key-twice",
         "shares-of-rounded-logits")  # under FEW=1


# ------------------------------------------------------------------------------------------


def traced(model, report):
    tokens, at = torch.tensor([random_tokens(LENGTH, 7, model.config.vocab_size)]), 0
    with torch.no_grad(), report.plant(model), sinkproof.trace(model) as trace:
        more = {} if report.pieces == AT_ONCE else {hf.cache_word(model): DynamicCache(), "use_cache": True}
        for n in report.pieces:
            model(input_ids=tokens[:, at:at + n], **more)
            at += n
    return {name: values for name, values in trace.sequences[0].items() if name.split(".", 1)[-1] not in FUSED}


def text_of(finding):
    """What a finding explains, in one line; an empty one where it explains nothing."""
    if not finding["mistakes"]:
        return ""
    said = " and ".join(f"{why} [{name}]" for name, why in zip(finding["mistakes"], finding["because"]))
    return said + "".join("; or " + " and ".join(each) for each in finding["indistinguishable"])


def row(opened, model, dtype, name, report):
    """How the mistake is called: named, otherwise (a cause that it is not), or not named."""
    judged = sinkproof.judge(opened, traced(model, report), POLICIES[dtype], local=True, hint=False)
    findings = json.loads(judged.to_json())[0]["diagnosis"]
    texts = {text: any(re.search(word, text, re.IGNORECASE) for word in report.words)
             for text in map(text_of, findings) if text}
    first = next((text_of(finding) for finding in findings if judged.first in finding["points"]), "")
    how = "otherwise" if not all(texts.values()) else "named" if texts.get(first) else "not named"
    return {"report": name, "where": report.where, "policy": POLICIES[dtype], "verdict": str(judged.verdict),
            "first": judged.first, "named": how, "as": " | ".join(texts)}


def named(rows):
    """The reports that are named in every format that they are planted in."""
    others = {r["report"] for r in rows if r["named"] != "named"}
    return sorted({r["report"] for r in rows} - others)


def held(tap, rows):
    """No fewer than the file keeps, of those that were asked."""
    told = json.loads(KEPT.read_text(encoding="utf-8"))
    if told["format"] != FORMAT:
        raise ValueError(f'{KEPT}: format "{told["format"]}", expected "{FORMAT}"')
    asked, now = {r["report"] for r in rows}, named(rows)
    lost = sorted(set(named(told["rows"])) & asked - set(now))
    tap.report(not lost, f"{len(now)} of {len(asked)} reports are named, no fewer than doc/engines/reports keeps", lost)


def main():
    words, tap, rows = sys.argv[1:], Tap(), []
    few = os.environ.get("FEW") and "--write" not in words
    names = [word for word in words if word != "--write"] or (QUICK if few else list(REPORTS))
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        directory = os.path.join(folder, "tiny")
        subprocess.run([SINKPROOF, "synth", "synthetic:tiny", "--layout", "hf", "--out", directory], check=True)
        opened = sinkproof.Model(directory)
        for dtype in POLICIES:
            model = hf.load_model(directory, dtype, "eager", "eager")
            for name in names:
                if dtype not in REPORTS[name].under:
                    continue
                found = row(opened, model, dtype, name, REPORTS[name])
                rows.append(found)
                at = re.sub(r"^\d+\.", "", found["first"] or "")
                tap.report(at == REPORTS[name].point and found["named"] != "otherwise",
                           f"{REPORTS[name].where}, {name} {dtype}: {found['named']}", [REPORTS[name].says, found])
                if words and "--write" not in words:
                    print("#", json.dumps(found))
    if "--write" in words:
        body = ",\n".join(" " + json.dumps(each, ensure_ascii=False) for each in rows)
        KEPT.parent.mkdir(exist_ok=True)
        told = f'{{"format": "{FORMAT}", "model": "synthetic:tiny", "rows": [\n{body}\n]}}\n'
        KEPT.write_text(told, encoding="utf-8")
    elif not words:
        held(tap, rows)
    print(f"# {len(named(rows))} of {len({r['report'] for r in rows})} reports are named")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
