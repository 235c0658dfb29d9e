// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Converts numbers to and from balls: decimal constants, stored rows, radii.
#include "proofs/truth/truth.h"

#include <math.h>
#include <stdlib.h>

void truth_decimal_text(double value, char text[40]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, 40, "%.*g", digits, value);
        if (strtod(text, NULL) == value) return;
    }
}

void sinkproof_truth_decimal(arb_t out, double value, slong bits) {
    char text[40];
    truth_decimal_text(value, text);
    if (!isfinite(value) || arb_set_str(out, text, bits) != 0) arb_indeterminate(out);
}

void sinkproof_truth_row(arb_ptr out_c, const sinkproof_matrix *matrix, size_t r,
                         double *scratch_c) {
    sinkproof_matrix_row(matrix, r, scratch_c);
    for (size_t c = 0; c < matrix->cols; c++) arb_set_d(out_c + c, scratch_c[c]);
}

// An upper bound of log2(x): the result of log2 is widened by far more than its error.
static double log2_above(const mag_t x) {
    if (mag_is_zero(x)) return -INFINITY;
    arf_t significand;
    arf_init(significand);
    arf_set_mag(significand, x);
    slong exponent = arf_abs_bound_lt_2exp_si(significand); // x < 2^exponent
    arf_mul_2exp_si(significand, significand, -exponent);
    double result = (double)exponent + log2(arf_get_d(significand, ARF_RND_UP));
    arf_clear(significand);
    return result + 0x1p-20;
}

double sinkproof_truth_radius_log2(const arb_t ball) {
    return arb_is_finite(ball) ? log2_above(arb_radref(ball)) : INFINITY;
}

double sinkproof_truth_relative_log2(const arb_t ball) {
    if (!arb_is_finite(ball)) return INFINITY;
    if (arb_is_exact(ball)) return -INFINITY;
    if (arf_is_zero(arb_midref(ball))) return INFINITY;
    mag_t least, ratio; // ratio >= rad / |mid|
    mag_init(least);
    mag_init(ratio);
    arf_get_mag_lower(least, arb_midref(ball));
    mag_div(ratio, arb_radref(ball), least);
    double result = log2_above(ratio);
    mag_clear(least);
    mag_clear(ratio);
    return result;
}

double sinkproof_truth_distance(const arb_t ball, double x) {
    if (!arb_is_finite(ball) || !isfinite(x)) return INFINITY;
    arf_t distance, radius;
    arf_init(distance);
    arf_init(radius);
    arf_set_d(distance, x);
    // Rounded away from zero, since an exact difference of e^(-2^100) and 1 would need 2^100 bits.
    arf_sub(distance, arb_midref(ball), distance, 128, ARF_RND_UP);
    arf_abs(distance, distance);
    arf_set_mag(radius, arb_radref(ball));
    arf_add(distance, distance, radius, 64, ARF_RND_UP);
    double result = arf_get_d(distance, ARF_RND_UP);
    arf_clear(distance);
    arf_clear(radius);
    return result;
}

mpfr_ptr truth_mpfr_vector(size_t n, mpfr_prec_t bits) {
    mpfr_ptr vector = malloc((n == 0 ? 1 : n) * sizeof *vector);
    if (vector == NULL) abort();
    for (size_t i = 0; i < n; i++) {
        mpfr_init2(vector + i, bits);
        mpfr_set_zero(vector + i, 1);
    }
    return vector;
}

void truth_mpfr_vector_free(mpfr_ptr vector, size_t n) {
    for (size_t i = 0; i < n; i++) mpfr_clear(vector + i);
    free(vector);
}
