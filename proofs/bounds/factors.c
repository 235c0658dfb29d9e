// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Upper bounds in binary32: they bound long sums of sizes and of squares with half the work.
//
// Each number is scaled by its row's power of two and rounded up to binary32. A product of such
// rows errs by at most gamma_(k+2), and by k 2^-126 where terms underflow (linear.c).
#include "proofs/bounds/factors.h"
#include "proofs/bounds/processors.h"

#include <math.h>
#include <stdlib.h>

enum { ABREAST = 16 }; // independent extremes, so that the loop does not wait for one of them

// The loops below go over every weight. The largest size in a row, NaN if one is not finite, and
// the smallest that is not 0.
FOR_EACH_PROCESSOR
static void row_extremes(size_t k, const double *x_k, double *largest, double *least) {
    double most[ABREAST] = {0}, none[ABREAST] = {0}, few[ABREAST];
    for (size_t a = 0; a < ABREAST; a++) few[a] = INFINITY;
    size_t whole = k - k % ABREAST;
    for (size_t i = 0; i < whole; i += ABREAST)
        for (size_t a = 0; a < ABREAST; a++) {
            double size = fabs(x_k[i + a]), other = size > 0 ? size : INFINITY;
            most[a] = size > most[a] ? size : most[a];
            few[a] = other < few[a] ? other : few[a];
            none[a] += 0 * size;
        }
    for (size_t i = whole; i < k; i++) {
        double size = fabs(x_k[i]), other = size > 0 ? size : INFINITY;
        most[0] = size > most[0] ? size : most[0];
        few[0] = other < few[0] ? other : few[0];
        none[0] += 0 * size;
    }
    for (size_t a = 1; a < ABREAST; a++) {
        most[0] = most[a] > most[0] ? most[a] : most[0];
        few[0] = few[a] < few[0] ? few[a] : few[0];
        none[0] += none[a];
    }
    *largest = most[0] + none[0], *least = few[0];
}

// Writes at least |x_k| down and its square, at most 1.000001 times as large.
FOR_EACH_PROCESSOR
static void round_sizes_up(size_t k, const double *restrict x_k, double down,
                           float *restrict size_k, float *restrict square_k) {
    for (size_t i = 0; i < k; i++) {
        double part = fabs(x_k[i]) * down;
        size_k[i] = (float)part * (1 + 0x1p-22f);
        square_k[i] = (float)(part * part) * (1 + 0x1p-22f);
    }
}

static void *allocate_items(size_t n, size_t size) {
    return malloc((n > 0 ? n : 1) * size);
}

bool factors_allocate(size_t rows, size_t cols, binary_factors *f) {
    *f = (binary_factors){.rows = rows, .cols = cols, .least = INFINITY};
    f->size = allocate_items(rows * cols, sizeof *f->size);
    f->square = allocate_items(rows * cols, sizeof *f->square);
    f->scale = allocate_items(rows, sizeof *f->scale);
    if (f->size != NULL && f->square != NULL && f->scale != NULL) return true;
    factors_free(f);
    return false;
}

bool factors_fill_row(binary_factors *f, size_t r, const double *x_k) {
    size_t k = f->cols;
    double largest, least;
    row_extremes(k, x_k, &largest, &least);
    if (!(largest < 0x1p400)) return false;
    f->scale[r] = largest > 0x1p-400 ? ldexp(1, ilogb(largest) + 1) : 0x1p-399;
    f->least = least < f->least ? least : f->least;
    round_sizes_up(k, x_k, 1 / f->scale[r], &f->size[r * k], &f->square[r * k]);
    return true;
}

void factors_free(binary_factors *f) {
    free(f->size);
    free(f->square);
    free(f->scale);
    *f = (binary_factors){0};
}
