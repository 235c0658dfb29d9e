// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rows of honest sets split into planes: the centres and the kinds of freedom, each an array for a
// matrix product.
#include "proofs/bounds/bounds.h"
#include "proofs/bounds/doubles.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The number of bits from the first to the last 1 of the significand, the maximum over all
// elements.
static int most_significant_bits(const double *x, size_t n) {
    uint64_t ones = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t pattern;
        memcpy(&pattern, &x[i], sizeof pattern);
        ones |= pattern & 0xfffffffffffff;
    }
    int bits = 53;
    while (bits > 1 && (ones & 1) == 0) ones >>= 1, bits--;
    return bits;
}

// ---- splitting rows

// Sums of this length, for this many rows of x, are bounded through factors in binary32; for
// smaller ones the factors cost more than they save.
enum { LONG_SUM = 256, MANY_ROWS = 8 };

static bool compute_factors(sinkproof_planes *x) {
    if (!factors_allocate(x->rows, x->cols, &x->f)) return false;
    for (size_t r = 0; r < x->rows; r++)
        if (!factors_fill_row(&x->f, r, &x->mid[r * x->cols])) {
            factors_free(&x->f);
            return true; // no factors
        }
    return true;
}

static bool all_are_exact(const sinkproof_honest *x, size_t rows, size_t cols, size_t stride) {
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < cols; k++)
            if (x[i * stride + k].lo != x[i * stride + k].hi) return false;
    return true;
}

static bool copy_mid(sinkproof_planes *p, const sinkproof_honest *x, size_t stride) {
    p->mid = allocate_doubles(p->rows * p->cols);
    if (p->mid == NULL) return false;
    for (size_t i = 0; i < p->rows; i++)
        for (size_t k = 0; k < p->cols; k++) p->mid[i * p->cols + k] = x[i * stride + k].mid;
    return true;
}

static bool copy_freedom(sinkproof_planes *p, const sinkproof_honest *x, size_t stride) {
    size_t n = p->rows * p->cols;
    p->worst = allocate_doubles(n), p->likely = allocate_doubles(n), p->var = allocate_doubles(n),
    p->bias = allocate_doubles(n);
    if (p->worst == NULL || p->likely == NULL || p->var == NULL || p->bias == NULL) return false;
    for (size_t i = 0; i < p->rows; i++) {
        for (size_t k = 0; k < p->cols; k++) {
            const sinkproof_honest *e = &x[i * stride + k];
            p->worst[i * p->cols + k] = sinkproof_radius(e);
            p->likely[i * p->cols + k] = likely_radius(e);
            p->var[i * p->cols + k] = e->var;
            p->bias[i * p->cols + k] = e->bias;
        }
    }
    return true;
}

sinkproof_planes sinkproof_planes_new(const sinkproof_honest *x, size_t rows, size_t cols,
                                      size_t stride) {
    sinkproof_planes p = {
        .rows = rows, .cols = cols, .known = all_are_exact(x, rows, cols, stride)};
    bool factored = p.known && cols >= LONG_SUM && rows >= MANY_ROWS;
    bool fine = copy_mid(&p, x, stride);
    if (fine) p.bits = p.known ? most_significant_bits(p.mid, rows * cols) : 53;
    fine = fine && (p.known || copy_freedom(&p, x, stride)) && (!factored || compute_factors(&p));
    if (!fine) sinkproof_planes_free(&p);
    return p;
}

sinkproof_planes sinkproof_planes_rows(const sinkproof_planes *x, size_t first, size_t count) {
    sinkproof_planes rows = *x;
    size_t skip = first * x->cols;
    rows.rows = count;
    rows.mid += skip;
    if (x->f.size != NULL) rows.f.size += skip, rows.f.square += skip, rows.f.scale += first;
    if (!x->known) rows.worst += skip, rows.likely += skip, rows.var += skip, rows.bias += skip;
    return rows;
}

void sinkproof_planes_free(sinkproof_planes *p) {
    free(p->mid);
    free(p->worst);
    free(p->likely);
    free(p->var);
    free(p->bias);
    factors_free(&p->f);
    *p = (sinkproof_planes){0};
}
