// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// AVX2, FMA and F16C: x86-64 since 2013.
#include "fast/kernels/kernels.inc"

const sinkproof_kernels kernels_avx2 = {.isa = "avx2", LANE_KERNELS};
