// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sinkproof_sizes of a block's keys and values, computed from the numbers themselves.
#ifndef SINKPROOF_TESTS_BLOCK_SIZES_H
#define SINKPROOF_TESTS_BLOCK_SIZES_H

#include "fast/kernels/kernels.h"

#include <math.h>

static const sinkproof_sizes no_sizes = {255, 255, 0};

// The exponent field of a bf16 number.
static uint8_t field_of(double x) {
    int exponent = isinf(x) || isnan(x) ? 128 : x == 0 ? -127 : ilogb(x);
    return (uint8_t)(exponent < -126 ? 0 : exponent + 127);
}

static void count_in(sinkproof_sizes *sizes, double k, double v) {
    if (k != 0 && field_of(k) < sizes->least_k) sizes->least_k = field_of(k);
    if (v != 0 && field_of(v) < sizes->least_v) sizes->least_v = field_of(v);
    if (field_of(v) > sizes->most_v) sizes->most_v = field_of(v);
}

#endif
