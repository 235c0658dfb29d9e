# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""vLLM on a CPU, judged again as doc/engines/vllm.json says."""
import sys

import engines

if __name__ == "__main__":
    sys.exit(engines.interop("vllm"))
