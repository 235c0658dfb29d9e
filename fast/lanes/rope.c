// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The rotation in lane arithmetic: one of the two products is rounded, the other is fused into the
// sum. The cosines and sines are those of the reference's table.
#include "fast/lanes/stages.h"

#include <math.h>

// The pair (x_1, x_2) of one head, in place.
static void turn_pair(const sinkproof_policy *policy, float cosine, float sine, double *x_1,
                      double *x_2) {
    float a = (float)*x_1, b = (float)*x_2;
    float a_cosine = a * cosine, b_cosine = b * cosine;
    *x_1 = round_at(policy, AT_A4, fmaf(-b, sine, a_cosine));
    *x_2 = round_at(policy, AT_A4, fmaf(a, sine, b_cosine));
}

void lanes_rope(const sinkproof_policy *policy, size_t n, size_t n_heads, size_t head_dim,
                const double *cos_nd, const double *sin_nd, double *x_nhd) {
    size_t half = head_dim / 2;
    for (size_t t = 0; t < n; t++)
        for (size_t h = 0; h < n_heads; h++) {
            double *x_d = x_nhd + (t * n_heads + h) * head_dim;
            for (size_t d = 0; d < half; d++)
                turn_pair(policy, (float)cos_nd[t * half + d], (float)sin_nd[t * half + d], &x_d[d],
                          &x_d[d + half]);
        }
}
