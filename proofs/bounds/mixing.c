// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Perturbed rows, sums over paths, and a cache of few bits.
#include "proofs/bounds/mixing.h"

#include <math.h>

//> mix.perturb
// |x - y| and |x|
sinkproof_moved sinkproof_row_distance(size_t width, const double *x_c, const double *y_c) {
    double off = 0, size = 0;
    for (size_t c = 0; c < width; c++) {
        off += (x_c[c] - y_c[c]) * (x_c[c] - y_c[c]);
        size += x_c[c] * x_c[c];
    }
    return (sinkproof_moved){.off = sqrt(off), .size = sqrt(size)};
}
//< mix.perturb

//> mix.paths
// Runs from the last row to the first, because a row reads the earlier rows' values from before
// this layer.
void sinkproof_path_sums(size_t n, const double *a_ij, double *p_i) {
    for (size_t i = n; i-- > 0;) {
        double arriving = 0;
        for (size_t j = 0; j <= i; j++) arriving += a_ij[i * n + j] * p_i[j];
        p_i[i] += arriving; // the residual adds the identity
    }
}
//< mix.paths

//> bound.quantized-cache
double sinkproof_quantise(int bits, size_t n, const double *x_n, double *out_n) {
    double limit = exp2(bits - 1) - 1, most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x_n[i]));
    double scale = most / limit;
    for (size_t i = 0; i < n; i++) out_n[i] = scale > 0 ? scale * rint(x_n[i] / scale) : 0;
    return scale;
}

// x / scale is at most limit (1 + u) and has relative error u; rounding to the nearest integer
// moves it by at most 1/2; the product of integer and scale rounds once more.
double sinkproof_quantise_most(int bits, double scale) {
    double limit = exp2(bits - 1) - 1;
    return scale * (0.5 + 4 * limit * 0x1p-53);
}

double sinkproof_cache_bound(size_t n, const double *alpha_j, const double *delta_j,
                             const double *eps_j, double sink, double most) {
    double values = 0, moved = 0;
    for (size_t j = 0; j < n; j++) {
        values += alpha_j[j] * eps_j[j];
        moved += alpha_j[j] * expm1(delta_j[j]);
    }
    return values + (2 - sink) * most * moved;
}

double sinkproof_cache_row_bound(size_t n, const double *alpha_j, const double *delta_j,
                                 const double *eps_j, double most) {
    double values = 0, delta = 0;
    for (size_t j = 0; j < n; j++) {
        values += alpha_j[j] * eps_j[j];
        delta = fmax(delta, delta_j[j]);
    }
    return values + 2 * most * tanh(delta / 2);
}
//< bound.quantized-cache
