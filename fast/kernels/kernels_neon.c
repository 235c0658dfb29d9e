// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// NEON: every aarch64.
#include "fast/kernels/kernels.inc"

const sinkproof_kernels kernels_neon = {.isa = "neon", LANE_KERNELS};
