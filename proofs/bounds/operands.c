// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of an operand as a matrix product reads it (bound.operands, bound.q8): rounding is
// monotone, so the ends of an operand's set are rounded as the operand is. In blocks of whole
// numbers, the scale d and each quotient t = x / d have errors of their own, and t is then rounded
// to a whole number: where t may be on either side of a half both whole numbers are honest, and
// there is no other freedom.
#include "proofs/bounds/bounds.h"

#include "model/q8_0.h"
#include "proofs/bounds/scaled.h"
#include "ref/operands.h"

#include <stdlib.h>
#include <string.h>

// ---- blocks of whole numbers

// The largest whole number; roundings of d (amax / 127, or amax times a rounded 1 / 127) and of t
// (d, its reciprocal, the product); products that a processor adds as integers.
enum { LARGEST = 127, SCALE_ROUNDINGS = 2, WHOLE_ROUNDINGS = 3, TOGETHER = 4 };

//> bound.q8
static ends scale_ends(ends largest) {
    double off = sinkproof_gamma(SCALE_ROUNDINGS, 0x1p-24) + 0x1p-50, tiny = 0x1p-126;
    double lo = largest.lo / LARGEST * (1 - off) - tiny,
           hi = largest.hi / LARGEST * (1 + off) + tiny;
    return (ends){fmax(sinkproof_round(SINKPROOF_F16, lo), 0), sinkproof_round(SINKPROOF_F16, hi)};
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

static void read_block(size_t n, sinkproof_honest *x_c) {
    double mid_c[SINKPROOF_Q8_0_BLOCK], read_c[SINKPROOF_Q8_0_BLOCK];
    ends largest = row_largest_ends(n, x_c), d = scale_ends(largest);
    bool known = d.hi < INFINITY; // with a scale beyond float16 nothing is known
    for (size_t c = 0; c < n; c++) mid_c[c] = x_c[c].mid;
    sinkproof_operand_row((sinkproof_rounding){.format = SINKPROOF_Q8_0}, n, mid_c, read_c);
    for (size_t c = 0; c < n; c++) {
        ends q = whole_number_ends(&x_c[c], largest);
        double lo = q.lo * (q.lo < 0 ? d.hi : d.lo), hi = q.hi * (q.hi < 0 ? d.lo : d.hi);
        x_c[c] = known ? set_between_codes((ends){lo, hi}, read_c[c])
                       : set_between_codes((ends){-INFINITY, INFINITY}, 0);
    }
}

// ---- rows

//> bound.operands
static void read_row(sinkproof_format format, size_t n, sinkproof_honest *x_c) {
    if (format != SINKPROOF_Q8_0) sinkproof_honest_store(format, n, x_c);
    for (size_t c = 0; format == SINKPROOF_Q8_0 && c < n; c += SINKPROOF_Q8_0_BLOCK)
        read_block(n - c < SINKPROOF_Q8_0_BLOCK ? n - c : SINKPROOF_Q8_0_BLOCK, x_c + c);
}
//< bound.operands

sinkproof_honest sinkproof_honest_bias(const sinkproof_setting *s, sinkproof_rounding before,
                                       size_t terms, double b) {
    sinkproof_honest known = sinkproof_exact_set(b);
    return before.optional ? sinkproof_honest_roundings(s, known, (double)terms) : known;
}

sinkproof_planes sinkproof_operand_planes(const sinkproof_setting *s, sinkproof_point in,
                                          const sinkproof_matrix *w, const sinkproof_honest *x,
                                          size_t rows) {
    sinkproof_rounding how = sinkproof_operand_rounding(s->policy, in, w);
    sinkproof_format format = how.format;
    bool optional = how.optional, scaled = sinkproof_is_scaled(how);
    size_t cols = w->cols;
    how.optional = false;
    if (format == SINKPROOF_REAL) return sinkproof_planes_new(x, rows, cols, cols);
    sinkproof_honest *read = malloc((rows * cols + 1) * sizeof *read);
    if (read == NULL) return (sinkproof_planes){.rows = rows};
    memcpy(read, x, rows * cols * sizeof *read);
    for (size_t r = 0; !scaled && r < rows; r++) read_row(format, cols, &read[r * cols]);
    if (scaled && !sinkproof_honest_scaled(s, in, how, rows, 1, cols, read)) {
        free(read);
        return (sinkproof_planes){.rows = rows};
    }
    for (size_t i = 0; optional && i < rows * cols; i++) // one choice for all rows of W
        read[i] = sinkproof_honest_choice(read[i], x[i]);
    sinkproof_planes planes = sinkproof_planes_new(read, rows, cols, cols);
    bool whole = format == SINKPROOF_Q8_0 && sinkproof_matrix_is_whole(w) && !optional;
    if (whole) planes.whole = TOGETHER;
    free(read);
    return planes;
}
