// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// RMSNorm in lane arithmetic: the squares in sixteen partial sums, a square root, one division for
// the whole row, then x times the quotient times the scale.
#include "fast/lanes/stages.h"

#include <math.h>

// 1 / sqrt(mean_c x_c^2 + eps)
static float inverse_rms(size_t hidden, const double *x_c, float eps) {
    float lane_l[LANES_WIDTH] = {0};
    for (size_t c = 0; c < hidden; c++) {
        float *lane = &lane_l[c % LANES_WIDTH], x = (float)x_c[c];
        *lane = fmaf(x, x, *lane);
    }
    float mean = lanes_fold(lane_l) / (float)hidden;
    return 1 / sqrtf(mean + eps);
}

void lanes_rmsnorm(const sinkproof_policy *policy, sinkproof_point point,
                   const sinkproof_matrix *scale, double eps, size_t n, const double *x_nc,
                   double *out_nc, double *work) {
    size_t hidden = scale->cols;
    double *scale_c = work;
    sinkproof_matrix_row(scale, 0, scale_c);
    for (size_t t = 0; t < n; t++) {
        const double *x_c = x_nc + t * hidden;
        float inverse = inverse_rms(hidden, x_c, (float)eps);
        for (size_t c = 0; c < hidden; c++) {
            float normed = (float)x_c[c] * inverse;
            float out = normed * (float)scale_c[c];
            out_nc[t * hidden + c] = round_at(policy, point, out);
        }
    }
}
