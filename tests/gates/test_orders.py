# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""In which order libraries add up while these tests run, and that ORDER changes it (tests/shared/orders.py)."""
import math
import os
import subprocess
import sys
from fractions import Fraction

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), *of) for of in (["..", "shared"], [".."])]
import orders  # noqa: E402
import run  # noqa: E402
from tap import Tap  # noqa: E402

tap = Tap()
PROGRAM = os.environ.get("SINKPROOF", "build/release/sinkproof")
ORDER = os.environ.get("ORDER", "").split()
OTHER_CORE, OTHER_SUM = "openblas" in ORDER, "python" in ORDER
# First what another sum() makes of floats, then what no sum() may change.
ASKED = """[sum([0.1] * 10), sum([1e100, 1.0, -1e100]), sum([1, 2.5, 3]), sum(range(5)), sum([[1], [2]], []), sum([]),
 sum([0.5], 2), sum((x / 4 for x in range(3)), start=1.0), sum([float("inf"), 1.0]), sum([1e308, 1e308, -1e308]),
 str(sum([float("nan"), 1.0])), str(sum([-0.0])), sum([True, 2**70]), sum([F(1, 3), F(1, 6)]), str(sum([F(1, 2), 0.25]))]"""
COMPENSATED = [1.0, 1.0]
PLAIN = [0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1, 0.0]
SAME = [6.5, 10, [1, 2], 0, 2.5, 1.75, math.inf, math.inf, "nan", "0.0", 2**70 + 1, Fraction(1, 2), "0.75"]


def core_of_command():
    """As OpenBLAS itself says when the command loads it first and last, and as `info --cpu` says."""
    ran = subprocess.run([PROGRAM, "info", "--cpu"], env={**os.environ, "OPENBLAS_VERBOSE": "2"}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    cores = [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("Core: ")]
    said = next((line.split()[2] for line in ran.stdout.splitlines() if line.startswith("OpenBLAS    core ")), "")
    return (cores[0], cores[-1], said.rstrip(",")) if cores else (None, None, said)


def sums(env):
    """What a fresh Python makes of ASKED, and what it says of text."""
    said = "from fractions import Fraction as F\nprint(" + ASKED.replace("\n", "") + """)
try: print(sum(["a"], ""))
except TypeError as error: print(error)"""
    ran = subprocess.run([sys.executable, "-c", said], env=env, text=True, stdout=subprocess.PIPE)
    values, text = ran.stdout.splitlines()
    return eval(values, {"Fraction": Fraction, "inf": math.inf}), text


def python():
    own, text = sums({name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
    other, other_text = sums({**os.environ, "PYTHONPATH": orders.OTHER_SUM})
    here, _ = sums(dict(os.environ))
    compensates = sys.version_info >= (3, 12)
    expected = [PLAIN, COMPENSATED] if compensates else [COMPENSATED, PLAIN]
    tap.report(own[:2] == expected[1] and own[2:] == SAME, f"sum() of Python {sys.version.split()[0]} "
               f"{'compensates' if compensates else 'adds one float after the other'}", [own])
    tap.report(other[:2] == expected[0] and other[2:] == SAME and other_text == text,
               f"the other sum(): where floats round it is another, of all else the same, {len(SAME)} cases",
               [other, other_text])
    tap.report(here == (other if OTHER_SUM else own),
               f"these tests have {'the other' if OTHER_SUM else 'its own'} sum()", [here])


def blas():
    own, asked = orders.products(""), os.environ.get("OPENBLAS_CORETYPE")
    (found, last, said), running, core = core_of_command(), orders.products(asked or ""), orders.other_core()
    if not OTHER_CORE and not (own and found and (core or asked)):
        tap.skip("another order of OpenBLAS's sums", f"this OpenBLAS has one: {own and own[0]}")
        return
    tap.report(found and running and found == running[0] and (not asked or not OTHER_CORE or found == asked),
               f"the command's OpenBLAS adds up as {found}; OPENBLAS_CORETYPE is {asked or 'not set'}, "
               f"this processor's core {own and own[0]}", [found, running, own])
    tap.report(last == said and (not asked or last == found),
               f"`info --cpu` says the core that the command multiplies with: {last}", [found, last, said])
    # Figures of two orders differ in their digits: tests/gates/check_doc.py compares those of one line alone.
    line, apart = (run.machine({**os.environ, "OPENBLAS_CORETYPE": of}) for of in (asked or "", core or ""))
    tap.report(line.endswith(f" openblas-{found}") and (apart != line or core == asked or not core),
               f"the log's figures are those of {line}", [line, apart])
    if os.environ.get("ORDER_CORE") == "the machine's own":
        tap.report(bool(asked), f"the machine itself asks for {asked}: no other core is tried")
    elif OTHER_CORE:
        tap.report(orders.differ(own, running), f"products of {found} and of {own and own[0]} differ in binary64 and in "
                   "binary32", [own, running])
    elif not asked:
        tap.report(core, f"ORDER=openblas would add up as {core}: products differ from {own[0]}'s in binary64 and in "
                   "binary32", [own, *map(orders.products, orders.CORES)])


def words():
    for order in ("", "openblas", "python openblas"):
        changed = sorted(orders.environment({"ORDER": order, "OPENBLAS_CORETYPE": "X"}))
        tap.report(changed == sorted({"python": "PYTHONPATH", "openblas": "ORDER_CORE"}[word] for word in order.split()),
                   f"ORDER={order!r} where the machine asks for a core of OpenBLAS changes {changed}")
    for order in ("other", "python blas"):
        try:
            said = orders.environment({"ORDER": order})
        except ValueError as error:
            said = str(error)
        tap.report(said == f"ORDER: expected openblas, python or both, found {order}", f"refused: {said}")


python()
blas()
words()
sys.exit(tap.done())
