# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Hugging Face transformers, judged again as doc/engines/transformers.json says."""
import sys

import engines

if __name__ == "__main__":
    sys.exit(engines.interop("transformers"))
