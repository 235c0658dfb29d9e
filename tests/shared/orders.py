# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Sums in another order than this machine's: no test result may depend on the library's order of summation.

OpenBLAS sums a matrix product in a different order for each family of processors ("core"), and does not
know processors newer than itself; Python's sum() compensates from 3.12 on. `make test ORDER=openblas` runs the tests
with the order of another core, `ORDER=python` with the sum() of other Pythons (tests/shared/other_sum): each alone,
since two changes may hide what one shows, and ORDER="openblas python" both.
"""
import ctypes.util
import functools
import os
import subprocess
import sys

# Cores without wide vectors first: their orders differ most from a new processor's.
CORES = ("Prescott", "Nehalem", "Haswell", "ARMV8", "NEOVERSEN1", "CORTEXA57")
OTHER_SUM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "other_sum")

# Prints one product in binary64 and one in binary32 of each length, computed by this process's OpenBLAS.
PRODUCTS = """
import ctypes, sys
blas, found = ctypes.CDLL(sys.argv[1]), []
blas.openblas_get_corename.restype = ctypes.c_char_p
for name, number in (("cblas_dgemm", ctypes.c_double), ("cblas_sgemm", ctypes.c_float)):
    for n in (64, 7, 100):
        x, y = ((number * n)(*(1 / (a * k + b) - 0.1 for k in range(n))) for a, b in ((1, 3), (2, 1)))
        out = number()
        getattr(blas, name)(101, 111, 112, 1, 1, n, number(1), x, n, y, n, number(0), ctypes.byref(out), 1)
        found.append(out.value.hex())
print(blas.openblas_get_corename().decode(), *found)
"""


@functools.lru_cache(maxsize=None)
def products(core):
    """(the core that ran, the bits of its products); None if it cannot run. "": the core for this processor."""
    env = {name: value for name, value in os.environ.items() if name not in ("OPENBLAS_CORETYPE", "PYTHONPATH")}
    if core:
        env["OPENBLAS_CORETYPE"] = core
    library = ctypes.util.find_library("openblas")
    ran = subprocess.run([sys.executable, "-c", PRODUCTS, str(library)], env=env, text=True,
                         # this processor may lack a core's instructions
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    words = ran.stdout.split()
    return (words[0], tuple(words[1:])) if ran.returncode == 0 and len(words) == 7 else None


def differ(one, other):
    """Whether two cores' products differ, in binary64 and in binary32."""
    return bool(one and other) and one[1][:3] != other[1][:3] and one[1][3:] != other[1][3:]


def other_core():
    """The first core that runs here and sums in another order than this processor's; None if there is none."""
    return next((core for core in CORES
                 if (products(core) or [""])[0] == core and differ(products(core), products(""))), None)


def environment(env):
    """Applies ORDER to the environment. A core that the machine itself requires stays: others may give wrong results
    there.
    """
    asked = env.get("ORDER", "").split()
    if set(asked) - {"openblas", "python"}:
        raise ValueError(f"ORDER: expected openblas, python or both, found {' '.join(asked)}")
    changes = {}
    if "python" in asked:
        changes["PYTHONPATH"] = os.pathsep.join(filter(None, (OTHER_SUM, env.get("PYTHONPATH"))))
    if "openblas" in asked and env.get("OPENBLAS_CORETYPE"):
        changes["ORDER_CORE"] = "the machine's own"
    elif "openblas" in asked and other_core():
        changes["OPENBLAS_CORETYPE"] = other_core()
    return changes
