// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "proofs/truth/sliced_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_ROWS = 4, PLAN_ROWS = 64, MOST_BITS = 2200 };

// As multiply-adds of a matrix product: one for a nonzero integer of a sparse slice, and the join
// of a slice's sums for each weight.
static const double sparse_price = 50, join_price = 0.05;
// A row ball by ball, likewise.
static const double plain_price = 100;
// To take a dense slice from a weight, once for all tokens.
static const double take_price = 8;

// Row k of m at even distances.
static void sample_row(const sinkproof_matrix *w_rc, size_t k, size_t m, double *w_c) {
    sinkproof_matrix_row(w_rc, m > 1 ? k * (w_rc->rows - 1) / (m - 1) : 0, w_c);
}

static double digits_of(slong size, int s) {
    return floor((double)(size + 1) / s) + 1;
}

// Slices a row in place, as a block of such rows would be.
static void slice_row(double *rest_c, double *h_c, size_t cols, int s, sliced_account *seen) {
    size_t slices = 0;
    slice_found found = {.left_at = NULL};
    int exponent;
    double sizes = slice_sum_of_sizes(rest_c, cols);
    slice_outcome outcome;
    while ((outcome = slice_take(rest_c, &sizes, cols, SLICE_ROOM - s, h_c, &exponent, &found)) ==
               SLICE_TAKEN &&
           slices < SLICES_MOST) {
        slices++;
        if (found.count > cols / SPARSE_SHARE)
            seen->dense += 1;
        else
            seen->sparse += (double)found.count / (double)cols;
    }
    seen->plain_rows += outcome != SLICE_NONE;
    if (slices > seen->slices) seen->slices = slices;
}

// Of m sampled rows in digits of s bits: the means, and the price of a weight and a token.
static double price_of(const double *w_mc, double *work, size_t m, size_t cols, slong size, int s,
                       size_t tokens, sliced_account *seen) {
    *seen = (sliced_account){.digit_bits = s, .digits = (size_t)digits_of(size, s)};
    for (size_t k = 0; k < m; k++) {
        memcpy(work, w_mc + k * cols, cols * sizeof *work);
        slice_row(work, work + cols, cols, s, seen);
    }
    seen->dense /= (double)m;
    seen->sparse /= (double)m;
    double matrices = seen->dense + sparse_price * seen->sparse;
    double plain = plain_price * (double)seen->plain_rows / (double)m;
    double taken = take_price * seen->dense / (double)tokens;
    return digits_of(size, s) * (matrices + join_price * (double)seen->slices + plain) + taken;
}

// Bits of a row from the largest exponent of a digit to each weight's last bit, into a histogram.
static void count_bits(const double *w_c, size_t cols, size_t *count_b) {
    int top = -5000;
    for (size_t c = 0; c < cols; c++) {
        int e;
        if (!isfinite(w_c[c]) || w_c[c] == 0) continue;
        frexp(w_c[c], &e);
        if (e > top) top = e;
    }
    for (size_t c = 0; c < cols; c++) {
        int e, bits = 0;
        if (!isfinite(w_c[c])) continue;
        if (w_c[c] != 0) {
            uint64_t digits = (uint64_t)ldexp(fabs(frexp(w_c[c], &e)), 53);
            bits = top - e + 53 - __builtin_ctzll(digits);
        }
        count_b[bits < MOST_BITS ? bits : MOST_BITS]++;
    }
}

static void measure_spread(const double *w_mc, size_t m, size_t cols, sliced_plan *plan) {
    size_t *count_b = calloc(MOST_BITS + 1, sizeof *count_b), all = 0, sum = 0;
    if (count_b == NULL) abort();
    for (size_t k = 0; k < m; k++) count_bits(w_mc + k * cols, cols, count_b);
    for (int b = 0; b <= MOST_BITS; b++) all += count_b[b];
    plan->bits_most = -1;
    for (int b = 0; b <= MOST_BITS; b++) {
        sum += count_b[b];
        if (count_b[b] > 0) plan->bits_all = b;
        if (plan->bits_most < 0 && (double)sum >= 0.99 * (double)all) plan->bits_most = b;
    }
    free(count_b);
}

int sliced_choose(const sinkproof_matrix *w_rc, slong size, size_t tokens, sliced_plan *plan) {
    size_t cols = w_rc->cols, m = plan != NULL ? PLAN_ROWS : SAMPLE_ROWS;
    if (m > w_rc->rows) m = w_rc->rows;
    double *w_mc = malloc((m + 2) * cols * sizeof *w_mc), *work = w_mc + m * cols;
    if (w_mc == NULL) abort();
    for (size_t k = 0; k < m; k++) sample_row(w_rc, k, m, w_mc + k * cols);
    int best = 0, most = slice_digit_bits_most(cols);
    double least = INFINITY;
    sliced_account kept = {0};
    for (int s = most; s >= DIGIT_BITS_LEAST || best == 0; s--) {
        sliced_account seen;
        double price =
            price_of(w_mc, work, m < SAMPLE_ROWS ? m : SAMPLE_ROWS, cols, size, s, tokens, &seen);
        if (best > 0 && !(price < least)) continue;
        best = s;
        least = price;
        kept = seen;
    }
    if (plan != NULL) {
        price_of(w_mc, work, m, cols, size, best, tokens, &kept);
        plan->expected = kept;
        plan->rows_measured = m;
        plan->multiply_adds = (double)kept.digits * (kept.dense + kept.sparse);
        measure_spread(w_mc, m, cols, plan);
    }
    free(w_mc);
    return best;
}

sliced_plan sinkproof_sliced_plan(const sinkproof_matrix *w_rc, slong size) {
    sliced_plan plan = {0};
    sliced_choose(w_rc, size, 1, &plan);
    return plan;
}
