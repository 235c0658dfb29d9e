// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Linear layers: y_nr = sum_c W_rc x_nc + b_r, rounded once (bound.dot), and where a policy says so
// also the operand x when it is read, each product, the running sum, and the sum before its bias.
// Weights stay in their stored format: each row is decoded once, exactly, for all tokens. The code
// is deliberately not fast: no blocking over columns, one running sum per output, in ascending c,
// so that a token's result does not depend on the other tokens of the call.
#include "ref/operands.h"
#include "ref/scaled.h"
#include "ref/stages.h"

#include <string.h>

// Tokens are packed side by side in groups of LANES, so that each weight is loaded once for LANES
// tokens and the compiler may use vector registers over tokens: never over the sum.
enum { LANES = 8 };

static size_t count_lane_groups(size_t n) {
    return (n + LANES - 1) / LANES;
}

// A row, and at most one sum for 32 numbers behind it (bound.q8-minima).
static size_t with_sums(size_t cols) {
    return cols + cols / SINKPROOF_SUMMED;
}

size_t sinkproof_linear_work(size_t n, size_t rows, size_t cols) {
    cols = with_sums(cols);
    size_t widest = rows > cols ? rows : cols; // a row of W, or the bias
    return widest + count_lane_groups(n) * LANES * cols;
}

// packed[(n / LANES) all + c][n % LANES] = x_nc as it is read, its sums behind it; missing tokens
// are zero.
static void pack_tokens(sinkproof_rounding read, size_t n, size_t cols, size_t sums,
                        const double *x_nc, double *x_c, double *packed) {
    size_t all = cols + sums;
    memset(packed, 0, count_lane_groups(n) * LANES * all * sizeof *packed);
    sinkproof_rounding row = scaled_settled(read, n, 1, cols, x_nc);
    for (size_t t = 0; t < n; t++) {
        sinkproof_operand_row_and_sums(row, cols, sums, x_nc + t * cols, x_c);
        for (size_t c = 0; c < all; c++) packed[(t / LANES * all + c) * LANES + t % LANES] = x_c[c];
    }
}

// dot_t = sum_c w_c x_tc for one group of tokens.
static void dot_group(size_t cols, const double *w_c, const double *x_ct, double *dot_t) {
    double sum_t[LANES] = {0};
    for (size_t c = 0; c < cols; c++)
#pragma GCC unroll 8 // the sums stay in registers
        for (size_t t = 0; t < LANES; t++) sum_t[t] += w_c[c] * x_ct[c * LANES + t];
    memcpy(dot_t, sum_t, sizeof sum_t);
}

// The same in parts that are rounded: of each rank, or of so many products.
static void dot_group_in_parts(sinkproof_rounding acc, size_t cols, const double *w_c,
                               const double *x_ct, double *dot_t) {
    size_t each = sinkproof_sum_part_products(acc, cols);
    sinkproof_format sum = acc.format == SINKPROOF_RANKS ? acc.part : SINKPROOF_REAL;
    memset(dot_t, 0, LANES * sizeof *dot_t);
    //> bound.parts
    for (size_t c = 0; c < cols; c += each) {
        double part_t[LANES];
        dot_group(cols - c < each ? cols - c : each, w_c + c, x_ct + c * LANES, part_t);
        for (size_t t = 0; t < LANES; t++)
            dot_t[t] = sinkproof_round(sum, dot_t[t] + sinkproof_round(acc.part, part_t[t]));
    }
    //< bound.parts
}

// The same, rounded at each step. Terms with a common scale are summed separately first.
static void dot_group_rounded(const running_points *running, size_t together, size_t cols,
                              const double *w_c, const double *x_ct, double *dot_t) {
    for (size_t t = 0; t < LANES; t++) {
        //> bound.accumulator
        dot_t[t] = 0;
        for (size_t first = 0; first < cols; first += together) {
            double part = 0;
            for (size_t c = first; c < cols && c < first + together; c += running->together)
                part = running_add(running, part, cols - c, w_c + c, x_ct + c * LANES + t, LANES);
            dot_t[t] = sinkproof_round(running->acc.format, dot_t[t] + part);
        }
        //< bound.accumulator
    }
}

// y_nr without the bias and the last rounding.
static void compute_products(const sinkproof_policy *policy, sinkproof_product_points at, size_t n,
                             const sinkproof_matrix *weight_rc, const double *x_nc, double *y_nr,
                             double *work) {
    size_t rows = weight_rc->rows, cols = weight_rc->cols;
    sinkproof_rounding read = sinkproof_operand_rounding(policy, at.in, weight_rc);
    size_t sums = sinkproof_operand_sums(read.format, weight_rc);
    double *w_c = work, *packed = work + (rows > cols + sums ? rows : cols + sums);
    running_points running = running_points_at(policy, at.term, at.acc);
    bool plain = running.term == SINKPROOF_REAL && running.acc.format == SINKPROOF_REAL;
    bool unit = running.acc.format == SINKPROOF_TENSOR_CORE; // knows no blocks with a scale
    size_t together = unit ? cols : sinkproof_terms_together(weight_rc);
    pack_tokens(read, n, cols, sums, x_nc, w_c, packed);
    cols += sums;
    for (size_t r = 0; r < rows; r++) {
        (sums > 0 ? sinkproof_matrix_split_row : sinkproof_matrix_row)(weight_rc, r, w_c);
        for (size_t first = 0; first < n; first += LANES) {
            double dot_t[LANES];
            if (sinkproof_sum_is_in_parts(running.acc))
                dot_group_in_parts(running.acc, cols, w_c, packed + first * cols, dot_t);
            else if (plain)
                dot_group(cols, w_c, packed + first * cols, dot_t);
            else
                dot_group_rounded(&running, together, cols, w_c, packed + first * cols, dot_t);
            for (size_t t = first; t < n && t < first + LANES; t++)
                y_nr[t * rows + r] = dot_t[t - first];
        }
    }
}

void sinkproof_linear(const sinkproof_policy *policy, sinkproof_point point, size_t n,
                      const sinkproof_matrix *weight_rc, const sinkproof_matrix *bias_r,
                      const double *x_nc, double *y_nr, double *work) {
    size_t rows = weight_rc->rows;
    bool biased = bias_r != NULL && bias_r->count > 0;
    sinkproof_product_points at = sinkproof_product_points_at(point);
    compute_products(policy, at, n, weight_rc, x_nc, y_nr, work);
    double *b_r = work; // the row buffer is free again
    if (biased) sinkproof_matrix_row(bias_r, 0, b_r);
    for (size_t t = 0; t < n; t++)
        for (size_t r = 0; r < rows; r++) {
            //> bound.operands
            double y = y_nr[t * rows + r];
            if (biased) y = round_at(policy, at.product, y) + b_r[r];
            y_nr[t * rows + r] = round_at(policy, point, y);
            //< bound.operands
        }
}
