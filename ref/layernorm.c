// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// LayerNorm (A1, M1, F1 of GPT-2; doc/30-gpt2.md): a token minus its mean, divided by its standard
// deviation, times a learned scale, plus a learned shift. The variance is the sum of squares over
// the number of elements (not one less), and epsilon is under the root.
#include "ref/stages.h"

#include <math.h>

static double row_mean(size_t hidden, const double *x_c) {
    double sum = 0;
    for (size_t c = 0; c < hidden; c++) sum += x_c[c];
    return sum / (double)hidden;
}

// 1 / sqrt(mean_c (x_c - mean)^2 + eps)
static double inverse_deviation(size_t hidden, const double *x_c, double mean, double eps) {
    double sum = 0;
    for (size_t c = 0; c < hidden; c++) sum += (x_c[c] - mean) * (x_c[c] - mean);
    return 1.0 / sqrt(sum / (double)hidden + eps);
}

void sinkproof_layernorm(const sinkproof_policy *policy, sinkproof_point point,
                         const sinkproof_matrix *scale, const sinkproof_matrix *shift, double eps,
                         size_t n, const double *x_nc, double *out_nc, double *work) {
    size_t hidden = scale->cols;
    double *scale_c = work, *shift_c = work + hidden;
    sinkproof_point before = sinkproof_point_before_weight(point);
    sinkproof_matrix_row(scale, 0, scale_c);
    sinkproof_matrix_row(shift, 0, shift_c);
    //> layernorm.forward
    for (size_t t = 0; t < n; t++) {
        const double *x_c = x_nc + t * hidden;
        double mean = row_mean(hidden, x_c), inverse = inverse_deviation(hidden, x_c, mean, eps);
        for (size_t c = 0; c < hidden; c++) {
            double normed = round_at(policy, before, (x_c[c] - mean) * inverse);
            out_nc[t * hidden + c] = round_at(policy, point, normed * scale_c[c] + shift_c[c]);
        }
    }
    //< layernorm.forward
}
