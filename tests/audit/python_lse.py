# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The log-sum-exp as a second output of a drilled attention: honest ones of either kind acquitted, mistakes convicted; run by
python_inside.py."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import sinkproof  # noqa: E402
from drilled_kernels import POLICY, attended, lse_of, raised  # noqa: E402
from tap import Tap  # noqa: E402

LSE_MISTAKES = {"bf16": lambda x: x.astype(ml_dtypes.bfloat16), "base-2": lambda x: x / np.float32(np.log(2)),
                "ln-2": lambda x: x + np.float32(np.log(2)), "row-before": lambda x: np.roll(x, 1, axis=1)}


def with_lse(with_sink, mistake="", by_token=False):
    def kernel(q, k, v, sinks, window, first):
        lse = LSE_MISTAKES.get(mistake, lambda x: x)(lse_of(q, k, sinks, window, first, with_sink))
        return attended(q, k, v, sinks, window, first), lse.T if by_token else lse
    return kernel


def check_lse(tap):
    for policy in ("bf16", POLICY, "f32"):
        for with_sink in (True, False):
            kind, with_ = ("with-sink", "with") if with_sink else ("without-sink", "without")
            for said in (True, kind):
                found = sinkproof.drill(with_lse(with_sink, by_token=said is True), policy=policy, limit=12, lse=said)
                words = f"A9.lse fits {with_} the sink, and not" if said is True else f"A9.lse is judged {with_} the sink, as is said of it."
                tap.report(found.ok and (found.calls, found.failing, found.lse) == (12, 0, kind) and words in str(found),
                           f"an honest log-sum-exp {kind} under {policy}, {'found' if said is True else 'said'}", [found])
    for mistake in LSE_MISTAKES:
        found = sinkproof.drill(with_lse(True, mistake), policy="bf16", limit=12, lse=True, lse_layout="heads,tokens", cause=False)
        tap.report(not found.ok and found.failing > 6 and found.why.startswith("A9.lse[") and
                   ("; times ln 2 it is inside" in found.why) == (mistake == "base-2") and
                   ("; less ln 2 it is inside" in found.why) == (mistake == "ln-2"), f"a log-sum-exp: {mistake} is convicted", [found])
    found = sinkproof.drill(with_lse(False), policy=POLICY, limit=12, lse="with-sink", lse_layout="heads,tokens", cause=False)
    tap.report(not found.ok and found.lse == "with-sink" and found.why.startswith("A9.lse["), "without the sink where it is said to be with it",
               [found])
    equal = "attention:n=4,chunk=0,window=0,heads=4,kv=2,dim=16"
    for act, says in ((lambda: sinkproof.drill(with_lse(True), lse="natural"), "lse: expected True, with-sink or without-sink, found 'natural'"),
                      (lambda: sinkproof.drill(with_lse(True), lse=True, lse_layout="rows"), "lse_layout: expected heads,tokens or tokens,heads"),
                      (lambda: sinkproof.drill(with_lse(True), lse=True, only=equal), "A9.lse of shape [4, 4] is in either layout: say which one"),
                      (lambda: sinkproof.drill(lambda x: x, "rmsnorm", lse=True), "a log-sum-exp is an output of the stage attention")):
        said = raised(sinkproof.Error, act)
        tap.report(said is not None and says in str(said), f"refused: {says}", [said])
    tap.report(sinkproof.drill(with_lse(True), lse=True, only=equal, lse_layout="heads,tokens").ok, "a layout that is said")
    wrong = sinkproof.drill(with_lse(True), limit=3, lse=True, lse_layout="tokens,heads")
    tap.report(not wrong.ok and "A9.lse: expected shape [" in wrong.why, "another layout than the one that is said", [wrong])


def main():
    tap = Tap()
    with np.errstate(all="ignore"):
        check_lse(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
