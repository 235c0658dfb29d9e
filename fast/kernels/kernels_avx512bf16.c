// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// AVX-512 with products of pairs of bf16 numbers (vdpbf16ps).
#include "fast/kernels/kernels.inc"

const sinkproof_kernels kernels_avx512bf16 = {.isa = "avx512bf16", LANE_KERNELS};
