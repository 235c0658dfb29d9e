// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// AVX-512 F, BW, DQ and VL.
#include "fast/kernels/kernels.inc"

const sinkproof_kernels kernels_avx512 = {.isa = "avx512", LANE_KERNELS};
