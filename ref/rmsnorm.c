// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// RMSNorm (A1, M1, F1; doc/03-rmsnorm.md): a token divided by its root mean square, times a learned
// scale. The scale multiplies before the one rounding; rounding before the scale is another model
// (Llama's), although some engines do it (A1.norm). No mean is subtracted, no bias is added.
#include "ref/stages.h"

#include <math.h>

// 1 / sqrt(mean_c x_c^2 + eps)
static double inverse_rms(size_t hidden, const double *x_c, double eps) {
    double sum = 0;
    for (size_t c = 0; c < hidden; c++) sum += x_c[c] * x_c[c];
    return 1.0 / sqrt(sum / (double)hidden + eps);
}

void sinkproof_rmsnorm(const sinkproof_policy *policy, sinkproof_point point,
                       const sinkproof_matrix *scale, double eps, size_t n, const double *x_nc,
                       double *out_nc, double *work) {
    size_t hidden = scale->cols;
    double *scale_c = work;
    sinkproof_point before = sinkproof_point_before_weight(point);
    sinkproof_matrix_row(scale, 0, scale_c);
    //> rmsnorm.forward
    for (size_t t = 0; t < n; t++) {
        const double *x_c = x_nc + t * hidden;
        double inverse = inverse_rms(hidden, x_c, eps);
        for (size_t c = 0; c < hidden; c++) {
            double normed = round_at(policy, before, x_c[c] * inverse);
            out_nc[t * hidden + c] = round_at(policy, point, normed * scale_c[c]);
        }
    }
    //< rmsnorm.forward
}
