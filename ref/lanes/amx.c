// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The order of a tile's sums, from the pseudocode of TDPBF16PS (Intel SDM vol. 2): within a block
// of 32 columns the even and the odd ones are summed apart, and what is added to the total is their
// sum.
#include "ref/lanes/amx.h"

#include <math.h>

enum { BLOCK = 32 };

float sinkproof_amx_dot(size_t n, const float *w_c, const float *x_c) {
    float total = 0;
    for (size_t first = 0; first < n; first += BLOCK) {
        float even = 0, odd = 0;
        for (size_t c = first; c < first + BLOCK; c += 2) {
            even = fmaf(w_c[c], x_c[c], even);
            odd = fmaf(w_c[c + 1], x_c[c + 1], odd);
        }
        total += even + odd;
    }
    return total;
}

bool sinkproof_amx_serves(double least_w, double least_x) {
    return least_w >= 0x1p-126 && least_x >= 0x1p-126 && least_w * least_x >= 0x1p-111;
}
