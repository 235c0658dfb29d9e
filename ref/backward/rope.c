// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradient of a rotation: the transposed rotation, by the opposite angle. The concentration is
// a factor of cosine and sine, forward and backward.
#include "ref/backward/backward.h"

void sinkproof_rope_backward(size_t n, size_t n_heads, size_t head_dim, const double *cos_nd,
                             const double *sin_nd, double *dx_nhd) {
    size_t half = head_dim / 2;
    for (size_t t = 0; t < n; t++)
        for (size_t h = 0; h < n_heads; h++)
            for (size_t d = 0; d < half; d++) {
                double *dx1 = dx_nhd + (t * n_heads + h) * head_dim + d, *dx2 = dx1 + half;
                double c = cos_nd[t * half + d], s = sin_nd[t * half + d];
                //> grad.rotation
                double turned1 = *dx1 * c + *dx2 * s;
                double turned2 = *dx2 * c - *dx1 * s;
                //< grad.rotation
                *dx1 = turned1;
                *dx2 = turned2;
            }
}
