// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rational numbers as values, so that an equation can be written as in the book.
//
// Every number is exact and immutable, and every operation makes a new number. No number is freed
// by itself: q_forget frees all of them, and a check calls it after each instance. A row is a row
// vector x of n entries; a matrix is dense and row-major; the derivation's x W is
// `row_times(x, W)`. If sizes do not match, the program is wrong and aborts.
#ifndef SINKPROOF_EXACT_RATIONAL_H
#define SINKPROOF_EXACT_RATIONAL_H

#include <stdbool.h>
#include <stddef.h>

#include <gmp.h>

typedef mpq_srcptr rational;

typedef struct row {
    size_t n;
    rational *at;
} row;

typedef struct matrix {
    size_t rows, cols;
    rational *at;
} matrix;

void q_forget(void); // frees every number, row and matrix of this thread

rational q_frac(long numerator, unsigned long denominator);
rational q_double(double x); // exactly; x must be finite
rational q_add(rational a, rational b);
rational q_sub(rational a, rational b);
rational q_mul(rational a, rational b);
rational q_div(rational a, rational b); // aborts when b = 0
rational q_power(rational a, long k);   // a^k, k of either sign

static inline rational q_int(long n) {
    return q_frac(n, 1);
}
static inline rational q_neg(rational a) {
    return q_sub(q_int(0), a);
}
static inline rational q_max(rational a, rational b) {
    return mpq_cmp(a, b) >= 0 ? a : b;
}
static inline rational q_abs(rational a) {
    return mpq_sgn(a) < 0 ? q_neg(a) : a;
}

row row_zero(size_t n);
row row_add(row a, row b);
row row_scale(rational a, row x);
rational row_dot(row a, row b);
rational row_sum(row a);
row row_join(row a, row b); // [a b]
row row_slice(row a, size_t first, size_t count);
row row_times(row x, matrix w); // x W
bool row_equal(row a, row b);

static inline row row_sub(row a, row b) {
    return row_add(a, row_scale(q_int(-1), b));
}
static inline row row_one(rational a) {
    row r = row_zero(1);
    r.at[0] = a;
    return r;
}

matrix matrix_zero(size_t rows, size_t cols);
matrix matrix_block(matrix w, size_t first, size_t count); // rows first ... first + count - 1

static inline row matrix_row(matrix w, size_t r) {
    return (row){w.cols, w.at + r * w.cols};
}

#endif
