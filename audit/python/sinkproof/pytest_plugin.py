# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""For pytest: the fixture `sinkproof_honest`, available wherever the package is installed.

    def test_my_engine(sinkproof_honest):
        sinkproof_honest("synthetic:tiny", my_trace(), policy="bf16", points=["A9", "A11"])

It is sinkproof.testing.assert_honest; a model given by name is opened once for all tests.
"""
from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # imported on use: pytest loads this file in every project
    from sinkproof import Judgement, Model


class Honest:
    """assert_honest, with the models that it has opened."""

    def __init__(self) -> None:
        self.models: dict[str, Model] = {}

    def __call__(self, model: Model | str | os.PathLike[str], trace: Any, policy: str = "auto",
                 **options: Any) -> Judgement:
        __tracebackhide__ = True
        import sinkproof
        from sinkproof.testing import assert_honest
        if not isinstance(model, sinkproof.Model):
            spec = os.fspath(model)
            if spec not in self.models:
                self.models[spec] = sinkproof.Model(spec)
            model = self.models[spec]
        return assert_honest(model, trace, policy, **options)

    def close(self) -> None:
        for model in self.models.values():
            model.close()


@pytest.fixture(scope="session")
def sinkproof_honest() -> Iterator[Honest]:
    """sinkproof.testing.assert_honest, with each model opened once."""
    honest = Honest()
    yield honest
    honest.close()
