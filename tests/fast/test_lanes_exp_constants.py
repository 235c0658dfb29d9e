# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The constants of the lanes' exponential are the same numbers wherever they stand.

fast/lanes/exp.h is the place; proofs/formal/LanesExp.v proves the bound about its own copy of them
and of the bound, so each must be there, with the header's value, and no other; proofs/bounds/
exp.sollya must print log2 e, ln 2 and the coefficients again. Sollya is asked when it is installed.
"""
import pathlib
import re
import shutil
import subprocess
import sys
from fractions import Fraction

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from tap import Tap  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPUTED = ("LOG2E", "LN2_HI", "LN2_LO", "C2", "C3", "C4", "C5", "C6")
TAP = Tap()


def value(text):
    """The exact value of a decimal or hexadecimal number, as C, Coq and Sollya write them."""
    text = text.strip("()")
    hexadecimal = re.fullmatch(r"(-?)0x([0-9a-f]+)(?:\.([0-9a-f]*))?(?:p([+-]?\d+)f?)?", text)
    if not hexadecimal:
        return Fraction(text.removesuffix("f"))
    sign, whole, part, power = hexadecimal.groups(default="")
    number = Fraction(int(whole + part, 16)) / 16 ** len(part) * Fraction(2) ** int(power or 0)
    return -number if sign else number


def numbers(pattern, text):
    return {name: value(number) for name, number in re.findall(pattern, text, re.MULTILINE)}


def differences(one, other):
    return [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]


def main():
    header = numbers(r"^#define (?:SINKPROOF_)?EXP_(\w+) +(\S+)", (ROOT / "fast/lanes/exp.h").read_text())
    formal = (ROOT / "proofs/formal/LanesExp.v").read_text(encoding="utf-8")
    proof = numbers(r"^Definition ([A-Z][A-Z0-9_]+) *:= (\S+)\.$", formal)
    of_polynomial = float(re.search(r"^Lemma P_exp .* <= (\S+)\.$", formal, re.MULTILINE)[1])
    TAP.report(set(COMPUTED) <= header.keys() and len(header) == 13,
           f"bound.exp lanes: fast/lanes/exp.h has its {len(header)} constants")
    apart = differences(header, proof)
    TAP.report(not apart, "bound.exp lanes: the proof is about the header's constants and bound"
           + (f" (apart: {', '.join(apart)})" if apart else ""))
    changed = dict(header, C6=header.get("C6", 0) + Fraction(1, 2 ** 40))
    TAP.report(differences(changed, proof) == sorted({"C6", *apart}), "one changed bit of a constant is seen")
    if shutil.which("sollya") is None:
        TAP.skip("the constants computed again", "sollya is missing (Debian: sollya)")
        return TAP.done()
    said = subprocess.run(["sollya", "proofs/bounds/exp.sollya"], cwd=ROOT, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60).stdout
    printed = numbers(r"^(\w+) +(\S+)$", said)
    error = float(printed.pop("ERROR", 1))
    TAP.report(printed == {name: header.get(name) for name in COMPUTED},
           "bound.exp lanes: Sollya finds the header's constants again")
    TAP.report(error <= of_polynomial, f"bound.exp lanes: Sollya's certificate of the polynomial, {error:.4g}, "
           f"is no more than what Coq proves, {of_polynomial:.4g}")
    return TAP.done()


if __name__ == "__main__":
    sys.exit(main())
