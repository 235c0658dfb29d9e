# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""How a call is told of tokens, past and positions must not matter to who watches it: by name, by place, under new names.

    python tests/audit/interop_hf_arguments.py

A TAP program beside interop_hf.py, which says what it needs. It runs with the pinned release of transformers and with the newest
(`make interop-newest`): arguments change their names from one to the next. A run that is watched is one honest
trace, or it is refused in a sentence; it is never two sequences in silence.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "audit", "python"), os.path.join(ROOT, "tests", "shared")]
import interop_hf_models as models  # noqa: E402
import sinkproof  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from interop_hf_planted import SINKPROOF  # noqa: E402
from sinkproof.adapters import gpt2  # noqa: E402
from sinkproof.adapters import transformers as hf  # noqa: E402
from sinkproof.adapters._tokens import random_tokens  # noqa: E402
from tap import Tap  # noqa: E402

FIRST, SECOND = torch.tensor([random_tokens(9, 1, 211)]), torch.tensor([random_tokens(4, 2, 211)])


class Room:
    """A loaded model, what it is held against, and the report."""

    def __init__(self, tap, directory, model, policy, points):
        self.tap, self.opened, self.model = tap, sinkproof.Model(directory), model
        self.policy, self.points, self.word = policy, points, hf.cache_word(model)
        self.name = f"transformers {transformers.__version__} {type(model).__name__}"

    def cache(self):
        return hf.new_cache(self.model.config)

    def honest(self, text, act, n=13, more=""):
        """One sequence of n tokens, every point of it there and honest."""
        try:
            with torch.no_grad(), sinkproof.trace(self.model) as trace:
                act()
            said = [sinkproof.judge(self.opened, one, self.policy, local=True, hint=False, diagnosis=False)
                    for one in trace.sequences]
            good = [len(one["tokens"]) for one in trace.sequences] == [n] and said[0].ok
            good = good and len(said[0].points) == self.points - ("F2" not in trace)
            notes = [repr(one) for one in said]
        except sinkproof.TraceError as error:
            good, notes = False, [str(error)]
        self.tap.report(good, f"{self.name}: {text}: one honest trace of {n} tokens{more}", notes)

    def refused(self, text, expected, act):
        """One sentence, of ours."""
        try:
            with torch.no_grad(), sinkproof.trace(self.model) as trace:
                act()
            said = f"traced as {len(trace.sequences)} sequences"
        except Exception as error:  # pylint: disable=broad-exception-caught
            said = f"{type(error).__name__}: {error}"
        self.tap.report(said.startswith("TraceError: ") and expected in said and "\n" not in said,
                        f"{self.name}: refused: {text}", [said, f"expected: {expected}"])


def as_kind(model, forward, act):
    """act() while the model is of a class of one's own with this forward."""
    kind = type(model)
    model.__class__ = type("Mine", (kind,), {"forward": forward})
    try:
        act()
    finally:
        model.__class__ = kind


def pieces(room, model, word, cache):
    model(input_ids=FIRST, use_cache=True, **{word: cache})
    model(input_ids=SECOND, use_cache=True, **{word: cache})


def given_back(room):
    """The first call makes the cache, the second is given what it handed back."""
    output = room.model(input_ids=FIRST, use_cache=True)
    room.model(input_ids=SECOND, use_cache=True, **{room.word: output[room.word]})


def by_place(room, parameters):
    """Every argument in its place, none by its name."""
    cache = room.cache()
    for ids, first in ((FIRST, 0), (SECOND, 9)):
        values = {"input_ids": ids, "position_ids": torch.arange(first, first + ids.shape[1])[None], room.word: cache}
        last = max(parameters.index(name) for name in values)
        room.model(*(values.get(name) for name in parameters[:last + 1]), use_cache=True)


def other_names(room):
    """A release to come: the cache and the positions under other names, or *args and **kwargs alone."""
    model, kind, word = room.model, type(room.model), room.word

    def renamed(self, input_ids=None, memory=None, **more):
        return kind.forward(self, input_ids=input_ids, **{word: memory}, **more)

    def handed_on(self, *args, **kwargs):
        return kind.forward(self, *args, **kwargs)

    as_kind(model, renamed, lambda: room.honest("a cache called memory", lambda: pieces(room, model, "memory", room.cache())))
    as_kind(model, handed_on, lambda: room.honest("a forward of *args and **kwargs",
                                                  lambda: pieces(room, model, word, room.cache())))
    hidden = room.cache()

    class Box:
        """A past that nothing shows to be one."""

    def boxed(self, input_ids=None, state=None, **more):
        return kind.forward(self, input_ids=input_ids, **{word: hidden}, **more)

    def held(self, input_ids=None, **more):
        return kind.forward(self, input_ids=input_ids, **{word: hidden}, **more)

    def two_calls(**more):
        for ids in (FIRST, SECOND):
            model(input_ids=ids, use_cache=True, **more)

    as_kind(model, boxed, lambda: room.refused("a past that is not understood", "argument state is not understood",
                                               lambda: two_calls(state=Box())))
    hidden = room.cache()
    as_kind(model, held, lambda: room.refused("a past that the model keeps to itself", "a past came in a way that is not understood",
                                              lambda: two_calls()))


def arguments(room):
    model, word = room.model, room.word
    room.honest("at once", lambda: model(input_ids=torch.cat([FIRST, SECOND], dim=1)))
    room.honest(f"two pieces, {word}", lambda: pieces(room, model, word, room.cache()))
    room.honest("two pieces, the old name past_key_values", lambda: pieces(room, model, "past_key_values", room.cache()))
    room.honest("two pieces, the cache that the model made", lambda: given_back(room))
    parameters = list(hf.method_signature(model).parameters)
    room.honest("two pieces, everything by its place", lambda: by_place(room, parameters))
    room.honest("generate", lambda: model.generate(FIRST, max_new_tokens=5, do_sample=False, pad_token_id=0), 13)
    other_names(room)
    old = room.cache()
    model(input_ids=FIRST, use_cache=True, **{word: old})
    room.honest("a sequence that began before", lambda: model(input_ids=SECOND, **{word: old}), 4)
    room.refused("keys in tuples, as before caches", f"argument {word} is not understood",
                 lambda: model(input_ids=SECOND, **{word: ((FIRST, FIRST),)}))
    room.refused("embeddings in the place of tokens", "expected input_ids [batch, n], found none",
                 lambda: model(inputs_embeds=torch.zeros(1, 3, 96)))
    room.refused("positions of fewer tokens", "expected position_ids [1, 4] or [1, 4], found [1, 3]",
                 lambda: model(input_ids=SECOND, position_ids=torch.arange(3)[None]))
    room.refused("slots that the cache does not have next", "expected cache_position 0 to 3, found [5, 6, 7, 8]",
                 lambda: model(input_ids=SECOND, cache_position=torch.arange(5, 9)))
    room.refused("masks of layers of another kind", "expected a mask of full_attention, found chunked_attention",
                 lambda: model(input_ids=SECOND, attention_mask={"chunked_attention": None}))


def main():
    tap = Tap()
    print(f"# transformers {transformers.__version__}, torch {torch.__version__}")
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        directory = models.make(os.path.join(folder, "checkpoint"), "tiny", num_hidden_layers=2, sliding_window=8)
        room = Room(tap, directory, hf.load_model(directory, "float32"), "f32", 49)
        arguments(room)
        left = [module for module in room.model.modules() if module._forward_hooks or module._forward_pre_hooks]
        tap.report(not left, f"{room.name}: nothing of the watcher remains", left[:3])
        other = os.path.join(folder, "gpt2")
        subprocess.run([SINKPROOF, "synth", "synthetic:tiny-gpt2,layers=2", "--out", other], check=True)
        room = Room(tap, other, gpt2.load_model(other, "float32"), "f32", 2 * 14 + 3)
        arguments(room)
        room.refused("token types, which add an embedding", "argument token_type_ids is not understood",
                     lambda: room.model(input_ids=SECOND, token_type_ids=SECOND))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
