# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Does an engine compute GPT-OSS, up to honest rounding?

    import sinkproof

    judgement = sinkproof.judge("path/of/a/checkpoint", "trace.safetensors")
    print(judgement)                      # the report, and .verdict, .points, .to_json()

    with sinkproof.trace(model) as trace:  # a transformers' GptOssForCausalLM
        model(input_ids=tokens)

    sinkproof.testing.assert_honest("synthetic:tiny", {"tokens": tokens, "03.A11": array})

    sinkproof.drill(my_kernel, policy="flash-bf16").check()

    sinkproof.run("synthetic:tiny", tokens, policy="f32", replace={"A11": my_attention})

The package calls libsinkproof and needs no compiler: `sinkproof._library` says where it looks for the
library. torch is needed only to trace a torch module. A refused call raises an Error.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sinkproof import testing
from sinkproof._drill import Drill, drill
from sinkproof._judgement import Diagnosis, Judgement, Point, Verdict, judge
from sinkproof._library import VERSION as __version__
from sinkproof._library import Error, names
from sinkproof._model import Model
from sinkproof._run import Call, run
from sinkproof._trace import Trace, TraceError

if TYPE_CHECKING:
    from sinkproof._watch import trace
    from sinkproof.adapters.dump import from_dump

__all__ = ["Call", "Diagnosis", "Drill", "Error", "Judgement", "Model", "Point", "Trace", "TraceError", "Verdict", "__version__",
           "drill", "engines", "from_dump", "judge", "points", "policies", "run", "testing", "trace"]


# What needs the adapters is imported when it is first used: a test that only judges does without.
LATER = {"trace": "sinkproof._watch", "from_dump": "sinkproof.adapters.dump"}


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(LATER[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def policies() -> tuple[str, ...]:
    """The known policies, narrowest first."""
    return names("policy_names")


def engines() -> tuple[str, ...]:
    """The engines of this project: "ref", "lanes", "fast"."""
    return names("engine_names")


def points() -> tuple[str, ...]:
    """The points of a trace without their layers, in the order of the forward pass."""
    return names("point_names")
