# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The layers of a point together (stat.drift-pooled): an output projection that cuts off the last bit stays within
the limit of every layer and is suspicious in all of them; an honest one is not, and one broken layer accuses no
other. What is seen at 1, 4 and 24 layers is the table of chapter 13. And a share of a limit is never shown as 1.00
beside it, in the table and in the page, whatever the rate makes of it."""
import array
import functools
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

MODEL, TOKENS, LAYERS, RATE = "synthetic:tiny,layers=24", 36, 24, 1e-9
BINS = 14  # of drift: its limit is as sqrt(ln(2 BINS / rate))
TABLE = re.compile(r"<!-- prints layers-together -->\n```text\n(.*?)```", re.DOTALL)


def cut(raw, bits, share=1.0, up=False):
    """float32 numbers without their last bits, of a share of them; `up`: with them all set."""
    words, mask = array.array("I", raw), (1 << bits) - 1
    for i, word in enumerate(words):
        if i * 2654435761 % 2**32 < share * 2**32:
            words[i] = word | mask if up else word & ~mask
    return words.tobytes()


def scaled(raw, factor):
    return array.array("f", [x * factor for x in array.array("f", raw)]).tobytes()


class Judged:
    """What the command says of a trace of some layers' A11 and A12, these changed."""

    def __init__(self, work, layers=range(LAYERS), change=None, words=(), engine="ref"):
        tensors, metadata = honest(work, engine)
        kept = {"tokens": tensors["tokens"]}
        kept |= {"positions": tensors["positions"]} if "positions" in tensors else {}
        for layer in layers:
            kept[f"{layer:02}.A11"] = tensors[f"{layer:02}.A11"]
            dtype, shape, raw = tensors[f"{layer:02}.A12"]
            kept[f"{layer:02}.A12"] = dtype, shape, change(layer, raw) if change else raw
        path = work / "changed.safetensors"
        path.write_bytes(checkpoints.safetensors(kept, metadata))
        self.status, self.text, self.told = sinkproof("judge", MODEL, str(path), "--policy", "f32", "--local", "--no-hint",
                                                      "--json", str(work / "json"), "--html", str(work / "page"), *words)
        self.page = (work / "page").read_text(encoding="utf-8")
        self.points = {p["id"]: p for p in json.loads((work / "json").read_text())["results"][1:] if p["id"].endswith("A12")}
        self.own = [abs(p["drift"]) / p["drift_limit"] for p in self.points.values()]
        together = [p["together"] for p in self.points.values() if p["together"]]
        self.together = abs(together[0]["drift"]) / together[0]["drift_limit"] if together else None
        self.asked = [t["layers"] for t in together]
        self.accused = {name for name, p in self.points.items() if p["verdict"] == "suspicious"}

    def shown(self):
        """The column of drift in the line of A12."""
        return next(line for line in self.text.splitlines() if line.startswith("A12 ")).split("|")[0].split()[-1]


@functools.cache
def honest(work, engine):
    """A trace; the reference adds as the emulation does, the lanes do not."""
    path = work / f"{engine}.safetensors"
    status, _, told = sinkproof("run", MODEL, "--tokens", f"random:{TOKENS},seed=7", "--policy", "f32", "--engine", engine,
                                "--points", "A11,A12", "--trace", str(path))
    assert status == 0, told
    return checkpoints.read(path)


def last_bit(work):
    """Each layer passes, all of them do not."""
    j = Judged(work, range(4), lambda _, raw: cut(raw, 1))
    report(max(j.own) < 1 < j.together and j.status == 4 and len(j.accused) == 4 and j.asked == [4] * 4,
           f"stat.drift-pooled a projection without its last bit, 4 layers: each at most {max(j.own):.4f} of its limit, "
           f"together {j.together:.3f}, exit {j.status}", j.told.splitlines())
    said = re.search(r"Errors of 4 layers of A12 lean one way together, in none too far alone \(\S+ \S+\): \S+;\n"
                     r"independent ones of either sign stay below \S+ \(odds 1e-09\)", j.text)
    report(bool(said) and "First suspicion: 00.A12." in j.text, "the report says so, with the odds", j.text.splitlines())
    cell = re.search(r'title="A12 of 4 layers together">([0-9.]+)<', j.page)
    report(bool(cell) and cell[1] == j.shown() and float(cell[1]) > 1,
           f"the page and the table show what they lean together: {cell and cell[1]}")
    whole = Judged(work, range(4), lambda _, raw: cut(raw, 1), ("--strict", "--all"))
    report(whole.status == 1, "with --strict it exits 1")
    report(f"drift of all layers together, of its limit: A12 {j.shown()}\n" in whole.text, "--all lists the points",
           whole.text.splitlines())


def innocents(work):
    j = Judged(work, engine="lanes")
    report(j.status == 0 and 0 < j.together <= 1 and not j.accused and j.asked == [LAYERS] * LAYERS,
           f"stat.drift-pooled an honest projection, {LAYERS} layers together worst={j.together:.3g} bound=1")
    report(Judged(work, [3]).asked == [], "one layer is not asked twice")
    j = Judged(work, range(4), lambda layer, raw: scaled(raw, 1 + 1e-5) if layer == 1 else raw)
    report(j.points["01.A12"]["verdict"] in ("suspicious", "bug") and j.accused <= {"01.A12"} and j.asked == [3] * 3,
           f"a layer that is broken by itself accuses no other: {sorted(j.accused)}, asked together {j.asked}")
    j = Judged(work, change=lambda layer, raw: cut(raw, 1, up=layer == 9))
    report(j.status == 4 and len(j.accused) == LAYERS - 1 and "09.A12" not in j.accused,
           f"of {LAYERS} layers the one that leans the other way is not accused: {len(j.accused)} are")


def power(work):
    """The last bit is half an ulp, on the average, and a lean is seen where it reaches its limit: that far the table.
    Then two bits, 1.5 ulp, of a share of the elements: just below it passes, just above it does not."""
    rows = ["layers   alone  together"]
    for n in (1, 4, LAYERS):
        last = Judged(work, range(n), lambda _, raw: cut(raw, 1))
        alone = 0.5 / max(last.own)
        least = 0.5 / last.together if n > 1 else alone
        rows.append(f"{n:6} {alone:7.2f} {least if n > 1 else '-':>9{'.2f' if n > 1 else ''}}")
        passed = [Judged(work, range(n), lambda _, raw, s=s: cut(raw, 2, s * least / 1.5)).status for s in (0.85, 1.15)]
        report(passed == [0, 4], f"stat.drift-pooled {n} layers: the verdict turns at a lean of {least:.3f} ulp: "
               f"exits {passed} at 0.85 and 1.15 of it")
    shown = TABLE.search((ROOT / "doc/13-bounds.md").read_text(encoding="utf-8"))
    text = "\n".join(rows) + "\n"
    report(bool(shown) and shown[1] == text, "the table of chapter 13 is what is measured", text.splitlines())


def shares(work):
    """One layer's lean against limits just above and below it, as the rate makes them: neither is shown as 1.00."""
    one = Judged(work, [0], lambda _, raw: cut(raw, 1)).own[0]
    # A share is |drift| / (sqrt(2 L v) / w), L the odds' logarithm. With log, exp and sqrt to an ulp, 2 u, a share's own
    # roundings cost 5 u; the odds here carry two shares' and 6 u more, the rate 3 u, its logarithm 2 u and 1 u / L; of an
    # error of L a share has half: below 15 u with L above 2. 16: what is of second order.
    roundings = 16 * 2**-53
    for wanted in (0.996, 0.9999, 1.0001):
        odds = math.log(2 * BINS / RATE) * (one / wanted) ** 2
        j = Judged(work, [0], lambda _, raw: cut(raw, 1), ("--rate", repr(2 * BINS * math.exp(-odds))))
        shown, cells = j.shown(), re.findall(r">(\d+\.\d\d)</td>", j.page)
        right = (float(shown) < 1) == (wanted < 1) and float(shown) != 1 and (j.status == 4) == (wanted > 1)
        report(right and abs(j.own[0] / wanted - 1) <= roundings and shown in cells and "1.00" not in cells,
               f"a drift of {j.own[0]:.7f} of its limit is shown as {shown}, exit {j.status}", [cells])
        leans = re.search(r"Errors lean one way \(.*?\): -?(\S+);\n.*? stay below (\S+) ", j.text)
        report(bool(leans) == (wanted > 1) and (not leans or float(leans[1]) > float(leans[2])),
               f"and the sentence tells the two apart: {leans and leans.groups()}")


if __name__ == "__main__":
    sys.exit(checkpoints.run(last_bit, innocents, power, shares))
