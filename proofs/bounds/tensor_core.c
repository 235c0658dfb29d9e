// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The error of a sum that a matrix unit adds up (bound.tensor-core). Each block is one operation
// on its products and the sum so far, c: all are cut to a multiple of q = 2^-bits M, M no larger
// than the largest of them, added exactly, and the result is cut by less than v of it. Partial sums
// of several warps or of a split product are added in float32, to nearest.
//
// Worst: an operation errs by at most (block + 1) 2^-bits + v of the sizes that it adds, wherever
// it stands in a tree: a theorem.
//
// Likely: cuts lean toward zero, so each has a mean besides its scatter. The mean of the last cut
// is at most v / 2 of c; those of the products, q / 2 each, cancel as far as the signs do. Partial
// sums are those of bound.dot-likely: averaged over all orders of the terms, the m sums behind
// blocks have squares that add up to at most (m + 1)(S^2 / 3 + S^2 / 6m + Q / 6).
//
// Drift: averaged over the orders the last cuts take at most v / 2 (m + 1) / 2 of S, and less where
// the numbers are too short to lose anything. What share of it they take is emulated for some sums,
// in ascending order. Several partial sums lean less than one: the emulation is placed in the
// middle of what their number leaves open, and the rest counts as a bias.
#include "proofs/bounds/tensor_core.h"
#include "proofs/bounds/doubles.h"

#include <stdlib.h>

// What subnormal numbers of binary16 count as in an alignment; 0 if the policy stores none.
static double least_operand(const sinkproof_policy *policy) {
    bool stored = policy->weights == SINKPROOF_F16;
    for (int p = 0; p < AT_POINTS; p++) stored = stored || policy->at[p].format == SINKPROOF_F16;
    return stored ? 0x1p-14 : 0;
}

// Signs in place of the numbers.
static double *sign_numbers(const double *x, size_t n) {
    double *y = allocate_doubles(n);
    for (size_t i = 0; y != NULL && i < n; i++) y[i] = (x[i] > 0) - (x[i] < 0);
    return y;
}

// The sum of the largest sizes of a row.
static double row_reach(const sinkproof_planes *x, size_t row) {
    double sum = 0;
    for (size_t k = row * x->cols; k < (row + 1) * x->cols; k++)
        sum += fabs(x->mid[k]) + (x->worst != NULL ? x->worst[k] : 0);
    return sum;
}

// At least sum_k t (|x_k| + |y_k| + t): what operands that count as t at least would add.
static void sum_apparent_sizes(const sinkproof_planes *x, const sinkproof_planes *y, double t,
                               double *apparent) {
    double n = (double)x->cols, more = 1 + sinkproof_gamma(n + 4, 0x1p-53);
    for (size_t r = 0; r < y->rows; r++) {
        double of_y = row_reach(y, r);
        for (size_t i = 0; i < x->rows; i++) apparent[i * y->rows + r] = of_y;
    }
    for (size_t i = 0; i < x->rows; i++) {
        double of_x = row_reach(x, i);
        for (size_t r = 0; r < y->rows; r++) {
            double *sum = &apparent[i * y->rows + r];
            *sum = t * (of_x + *sum + n * t) * more;
        }
    }
}

//> bound.tensor-core
// The most that the last cuts take from a sum on average over its orders: v / 2 of each c.
static double greatest_lean(double last, double blocks, double sum) {
    return last / 2 * (blocks + 1) / 2 * sum;
}

static double cut_at(double x, double place) {
    return trunc(x / place) * place;
}

static double power_below(double x) {
    return x == 0 ? 1 : ldexp(1, ilogb(x));
}

// One block, but that the place of the cut is that of the largest product's own exponent.
static double block_sum(const core_terms *t, double c, size_t n, const double *x, const double *y) {
    double largest = fabs(c), sum = 0;
    for (size_t k = 0; k < n; k++) largest = fmax(largest, fabs(x[k] * y[k]));
    double place = t->cut * power_below(largest);
    for (size_t k = 0; k < n; k++) sum += cut_at(x[k] * y[k], place);
    sum += cut_at(c, place);
    return cut_at(sum, t->last * power_below(sum));
}

// One sum of n products through all blocks, in ascending order: what it lost toward zero.
static void lean_sample(const sinkproof_setting *s, size_t n, const double *x, const double *y,
                        double real, core_lean *lean) {
    size_t block = s->core.block;
    core_terms t = core_row_terms(s, (double)n, false, false);
    double sum = 0;
    for (size_t k = 0; k < n; k += block)
        sum = block_sum(&t, sum, n - k < block ? n - k : block, x + k, y + k);
    double lost = (real - sum) * real, most = greatest_lean(t.last, t.blocks, real) * real;
    if (!isfinite(lost) || !isfinite(most)) return;
    core_lean one = {lost, most, lost * lost, lost * most, most * most};
    core_lean_merge(lean, &one);
}
//< bound.tensor-core

void core_lean_merge(core_lean *into, const core_lean *from) {
    into->lost += from->lost, into->most += from->most;
    into->lost2 += from->lost2, into->both += from->both, into->most2 += from->most2;
}

// Some of the sums, spread over rows and columns.
static void sample_leans(const sinkproof_setting *s, const sinkproof_planes *x,
                         const sinkproof_planes *y, size_t most, core_lean *lean) {
    size_t n = x->cols, all = x->rows * y->rows, count = all < most ? all : most;
    for (size_t e = 0; e < count; e++) {
        size_t i = e * x->rows / count, r = (e * 7919 + e * y->rows / count) % y->rows;
        const double *x_k = x->mid + i * n, *y_k = y->mid + r * n;
        double real = 0;
        for (size_t k = 0; k < n; k++) real += x_k[k] * y_k[k];
        lean_sample(s, n, x_k, y_k, real, lean);
    }
}

bool core_sums_prepare(const sinkproof_setting *s, const sinkproof_planes *x,
                       const sinkproof_planes *y, size_t emulated, core_sums *c) {
    size_t n = x->cols, rows = x->rows, others = y->rows;
    double *of_x = sign_numbers(x->mid, rows * n), *of_y = sign_numbers(y->mid, others * n);
    double least = least_operand(s->policy);
    c->signs = allocate_doubles(rows * others);
    if (least > 0) c->apparent = allocate_doubles(rows * others);
    bool fine =
        of_x != NULL && of_y != NULL && c->signs != NULL && (least == 0 || c->apparent != NULL);
    if (fine) sinkproof_matrix_times(rows, others, n, of_x, of_y, c->signs, others);
    if (fine && least > 0) sum_apparent_sizes(x, y, least, c->apparent);
    if (fine) sample_leans(s, x, y, emulated, &c->lean);
    free(of_x), free(of_y);
    return fine;
}

void core_sums_free(core_sums *c) {
    free(c->signs);
    free(c->apparent);
}

sum_sizes core_sum_sizes(double mid, double total, double square, const core_sums *c, size_t at) {
    return (sum_sizes){mid, total, square, c->signs != NULL ? fabs(c->signs[at]) : 0,
                       c->apparent != NULL ? c->apparent[at] : 0};
}

//> bound.tensor-core
core_terms core_row_terms(const sinkproof_setting *s, double n, bool biased, bool straddles) {
    double block = s->core.block, m = ceil(n / block) + (straddles ? 1 : 0);
    double cut = ldexp(1, -s->core.bits), last = fmax(cut, 0x1p-23);
    // a block's operation, and the addition that may follow it: of two partial sums, or of b
    double step = (block + 1) * cut + last;
    double both = sinkproof_add_up(sinkproof_mul_up(step, 1 + s->u), s->u);
    return (core_terms){.n = n,
                        .blocks = fmax(m, 1),
                        .cut = cut,
                        .last = last,
                        .gamma = sinkproof_gamma(m, both),
                        .width = block,
                        .biased = biased};
}

// The share of the greatest lean that the sampled sums have, and three standard deviations of it.
static double lean_share(const core_lean *lean, double *open) {
    double share = lean->most > 0 ? lean->lost / lean->most : 0;
    double rest = lean->lost2 - 2 * share * lean->both + share * share * lean->most2;
    *open = lean->most > 0 ? 3 * sqrt(fmax(rest, 0)) / lean->most : 1;
    return share;
}

sum_freedom core_freedom(const sinkproof_setting *s, const core_terms *t, const sum_sizes *z) {
    double m = t->blocks, mid = z->mid, square = z->square, u = s->u;
    double once = t->biased ? mid * mid : 0;
    double paths = (m + 1) * (mid * mid / 3 + mid * mid / (6 * m) + square / 6) + once;
    double others = (m + 1) * (mid * mid + square);
    // sums of the largest of each block: where c is the largest, and where a product is
    double sums = sqrt(m * paths), products = sqrt(m * square);
    // c has 24 bits: where it is the largest and the unit keeps as many, all of c is kept
    double own = t->cut <= 0x1p-23 ? products : sums + products;
    double even = t->n > t->width ? t->width * z->signs / t->n : z->signs;
    double lean = t->last / 2 * sums + t->cut / 2 * (even * (sums + products) + own);
    double cuts = (t->width + 1) * t->cut * t->cut, last = t->last * t->last / 4;
    double scatter = last / 3 + u * u / 3 + cuts / 3;
    double centred = paths * (last + u * u + cuts) + square * cuts;
    // beside what binary32 alone would lose, where binary16 has subnormal numbers
    double apparent = (t->width + 1) * t->cut * (1 + t->gamma) * z->apparent;
    // several partial sums lean less than one
    double open, share = lean_share(&t->lean, &open), most = greatest_lean(t->last, m, mid);
    double least = s->core.parts > 0 ? share / s->core.parts : 0;
    return (sum_freedom){.worst = t->gamma * z->total + apparent,
                         .likely = sqrt(2 * s->odds * centred) + lean + apparent,
                         .var = paths * scatter + square * cuts / 3,
                         .order = (others - fmin(paths, others)) * scatter,
                         .bias = (fabs(share - least) / 2 + open) * fabs(most) + apparent,
                         .shift = -(share + least) / 2 * most};
}
//< bound.tensor-core
