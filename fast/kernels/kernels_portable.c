// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Plain C: any machine.
#define SINKPROOF_LANES_PORTABLE
#include "fast/kernels/kernels.inc"

const sinkproof_kernels sinkproof_kernels_portable = {.isa = "portable", SINKPROOF_LANE_KERNELS};
