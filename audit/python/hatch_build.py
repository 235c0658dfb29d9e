# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Puts libsinkproof into the wheel if it exists: the file that $SINKPROOF_LIBRARY names, or else the build of the
checkout (`make library`). Such a wheel is for this platform; a wheel without a library is for any, and finds the
installed library there.
"""
import os
import pathlib
import platform
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Carry(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = pathlib.Path(self.root).parents[1] / "build" / "release" / "library"
        built = folder / f"libsinkproof.so.{self.metadata.version}"
        path = pathlib.Path(os.environ.get("SINKPROOF_LIBRARY") or built)
        if not path.is_file():
            if os.environ.get("SINKPROOF_LIBRARY"):
                raise FileNotFoundError(f"{path}: SINKPROOF_LIBRARY names no file")
            return
        build_data["force_include"][str(path.resolve())] = "sinkproof/libsinkproof.so"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{platform.machine()}"
