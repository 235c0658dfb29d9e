// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of an operand as a matrix product reads it (bound.operands, bound.q8): rounding is
// monotone, so the ends of an operand's set are rounded as the operand is. In blocks of whole
// numbers, the scale d and each quotient t = x / d have errors of their own, and t is then rounded
// to a whole number: where t may be on either side of a half both whole numbers are honest, and
// there is no other freedom. Weights whose blocks have a minimum meet the sum of a block's numbers
// beside the numbers themselves: one more operand for each minimum (bound.q8-minima).
#include "proofs/bounds/bounds.h"

#include "model/ggml_blocks.h"
#include "proofs/bounds/scaled.h"
#include "ref/operands.h"

#include <stdlib.h>
#include <string.h>

// ---- blocks of whole numbers

// The largest whole number; roundings of d (amax / 127, or amax times a rounded 1 / 127) and of t
// (d, its reciprocal, the product); products that a processor adds as integers; roundings of the
// product of two scales and a sum of integers, and one more where such a sum of 256 products
// becomes a number of float32.
enum {
    LARGEST = 127,
    SCALE_ROUNDINGS = 2,
    WHOLE_ROUNDINGS = 3,
    TOGETHER = 4,
    SCALINGS = 2,
    K_SCALINGS = 3
};

//> bound.q8
// The scale after so many roundings of float32, before it is stored.
static ends scale_ends(ends largest, int roundings) {
    double off = sinkproof_gamma(roundings, 0x1p-24) + 0x1p-50, tiny = 0x1p-126;
    double lo = largest.lo / LARGEST * (1 - off) - tiny,
           hi = largest.hi / LARGEST * (1 + off) + tiny;
    return (ends){lo, hi};
}

static ends rounded_ends(sinkproof_format format, ends x) {
    return (ends){sinkproof_round(format, x.lo), sinkproof_round(format, x.hi)};
}

static ends stored_scale_ends(sinkproof_format format, ends largest) {
    ends d = scale_ends(largest, SCALE_ROUNDINGS);
    if (format != SINKPROOF_Q8_K) d = rounded_ends(SINKPROOF_F16, d);
    return (ends){fmax(d.lo, 0), d.hi};
}

// The integers that may represent x: those nearest to 127 x / amax, up to the roundings of that
// quotient.
static ends whole_number_ends(const sinkproof_honest *x, ends largest) {
    double off = sinkproof_gamma(WHOLE_ROUNDINGS, 0x1p-24) + 0x1p-50;
    double lo =
        x->lo == 0 ? 0 : fmax(LARGEST * x->lo / (x->lo < 0 ? largest.lo : largest.hi), -LARGEST);
    double hi =
        x->hi == 0 ? 0 : fmin(LARGEST * x->hi / (x->hi < 0 ? largest.hi : largest.lo), LARGEST);
    return (ends){ceil(lo - fabs(lo) * off - 0.5), floor(hi + fabs(hi) * off + 0.5)};
}
//< bound.q8

static ends scaled_ends(ends q, ends d) {
    return (ends){q.lo * (q.lo < 0 ? d.hi : d.lo), q.hi * (q.hi < 0 ? d.lo : d.hi)};
}

//> bound.q8-minima
// The sum of a block's whole numbers q times the scale before it is stored, with one rounding more,
// and stored as the scale is.
static ends sum_ends(sinkproof_format format, ends q, ends largest) {
    if (format == SINKPROOF_Q8_K) return scaled_ends(q, stored_scale_ends(format, largest));
    ends d = scale_ends(largest, SCALE_ROUNDINGS + 1);
    return rounded_ends(SINKPROOF_F16, scaled_ends(q, (ends){fmax(d.lo, 0), d.hi}));
}
//< bound.q8-minima

static sinkproof_honest set_of_anything(void) {
    return set_between_codes((ends){-INFINITY, INFINITY}, 0);
}

// One block of n numbers, in place, and its sums.
static void read_block(sinkproof_format format, size_t n, size_t sums, sinkproof_honest *x_c,
                       sinkproof_honest *sum_p) {
    double mid_c[GGML_BLOCK_MOST], read_c[GGML_BLOCK_MOST + GGML_BLOCK_MOST / SINKPROOF_SUMMED];
    ends largest = row_largest_ends(n, x_c), d = stored_scale_ends(format, largest);
    ends whole_p[GGML_BLOCK_MOST / SINKPROOF_SUMMED] = {{0}};
    bool known = d.hi < INFINITY; // with a scale beyond float16 nothing is known
    for (size_t c = 0; c < n; c++) mid_c[c] = x_c[c].mid;
    sinkproof_operand_row_and_sums((sinkproof_rounding){.format = format}, n, sums, mid_c, read_c);
    for (size_t c = 0; c < n; c++) {
        ends q = whole_number_ends(&x_c[c], largest), *whole = &whole_p[c / SINKPROOF_SUMMED];
        whole->lo += q.lo, whole->hi += q.hi;
        x_c[c] = known ? set_between_codes(scaled_ends(q, d), read_c[c]) : set_of_anything();
    }
    for (size_t p = 0; p < sums; p++) {
        ends s = sum_ends(format, whole_p[p], largest);
        known = known && s.lo > -INFINITY && s.hi < INFINITY;
        sum_p[p] = known ? set_between_codes(s, read_c[n + p]) : set_of_anything();
    }
}

// ---- rows

//> bound.operands
// Row x_c [n + sums], whose sums are made here.
static void read_row(sinkproof_format format, size_t n, size_t sums, sinkproof_honest *x_c) {
    size_t block = sinkproof_whole_block(format);
    if (block == 0) sinkproof_honest_store(format, n, x_c);
    for (size_t c = 0; block > 0 && c < n; c += block) {
        size_t length = n - c < block ? n - c : block, first = c / SINKPROOF_SUMMED;
        size_t own = sums > 0 ? length / SINKPROOF_SUMMED : 0;
        read_block(format, length, own, x_c + c, x_c + n + first);
    }
}
//< bound.operands

sinkproof_honest sinkproof_honest_bias(const sinkproof_setting *s, sinkproof_rounding before,
                                       size_t terms, double b) {
    sinkproof_honest known = sinkproof_exact_set(b);
    return before.optional ? sinkproof_honest_roundings(s, known, (double)terms) : known;
}

// Whether the sum runs in an order, in parts or on ranks, which is not described of sums beside
// numbers.
static bool sums_in_an_order(const sinkproof_policy *policy, sinkproof_point in) {
    sinkproof_point term = in + 1, acc = in + 2;
    return policy->at[term].format != SINKPROOF_REAL || policy->at[acc].format != SINKPROOF_REAL ||
           (in == AT_M9_IN && policy->at[AT_M11_PART].format != SINKPROOF_REAL);
}

// Rows of cols numbers with room for their sums; or NULL.
static sinkproof_honest *rows_with_sums(const sinkproof_honest *x, size_t rows, size_t cols,
                                        size_t sums) {
    size_t all = cols + sums;
    sinkproof_honest *read = malloc((rows * all + 1) * sizeof *read);
    for (size_t r = 0; read != NULL && r < rows; r++) {
        memcpy(&read[r * all], &x[r * cols], cols * sizeof *read);
        for (size_t p = cols; p < all; p++) read[r * all + p] = sinkproof_exact_set(0);
    }
    return read;
}

sinkproof_planes sinkproof_operand_planes(const sinkproof_setting *s, sinkproof_point in,
                                          const sinkproof_matrix *w, const sinkproof_honest *x,
                                          size_t rows) {
    sinkproof_rounding how = sinkproof_operand_rounding(s->policy, in, w);
    sinkproof_format format = how.format;
    bool optional = how.optional, scaled = sinkproof_is_scaled(how);
    size_t cols = w->cols, sums = sinkproof_operand_sums(format, w);
    bool unknown = sums > 0 && (optional || sums_in_an_order(s->policy, in));
    if (unknown) sums = 0;
    size_t all = cols + sums;
    how.optional = false;
    if (format == SINKPROOF_REAL) return sinkproof_planes_new(x, rows, cols, cols);
    sinkproof_honest *read = rows_with_sums(x, rows, cols, sums);
    if (read == NULL) return (sinkproof_planes){.rows = rows};
    for (size_t r = 0; !scaled && r < rows; r++) read_row(format, cols, sums, &read[r * all]);
    if (scaled && !sinkproof_honest_scaled(s, in, how, rows, 1, cols, read)) {
        free(read);
        return (sinkproof_planes){.rows = rows};
    }
    for (size_t i = 0; optional && i < rows * cols; i++) // one choice for all rows of W
        read[i] = sinkproof_honest_choice(read[i], x[i]);
    for (size_t i = 0; unknown && i < rows * cols; i++) read[i] = set_of_anything();
    sinkproof_planes planes = sinkproof_planes_new(read, rows, all, all);
    bool whole = sinkproof_whole_block(format) > 0 && sinkproof_matrix_is_whole(w) && !optional;
    if (whole && (sums > 0 || sinkproof_matrix_minima(w) == 0)) planes.whole = TOGETHER;
    planes.sums = sums, planes.scalings = format == SINKPROOF_Q8_K ? K_SCALINGS : SCALINGS;
    free(read);
    return planes;
}
