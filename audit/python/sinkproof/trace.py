# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`python -m sinkproof.trace`: an engine runs a model, and its points are written as a trace.

This file is only an entry point: in a program `sinkproof.trace` is the function of that name.
"""
import sys

if __name__ == f"{__package__}.trace":
    raise ImportError("sinkproof.trace is a function of the package: `import sinkproof` has it")

from sinkproof.adapters._command import main

if __name__ == "__main__":
    sys.exit(main())
