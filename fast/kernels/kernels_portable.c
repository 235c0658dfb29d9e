// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Plain C: any machine.
#define LANES_PORTABLE
#include "fast/kernels/kernels.inc"

const sinkproof_kernels kernels_portable = {.isa = "portable", LANE_KERNELS};
