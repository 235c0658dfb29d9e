// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The store of rational numbers and the operations on rows and matrices of them.
#include "proofs/exact/rational.h"

#include <stdlib.h>

// Numbers and arrays of one instance, newest first.
typedef struct cell {
    struct cell *next;
    mpq_t value;
} cell;
typedef struct array {
    struct array *next;
    rational at[];
} array;
static _Thread_local cell *cells;
static _Thread_local array *arrays;

static mpq_ptr new_rational(void) {
    cell *c = malloc(sizeof *c);
    if (c == NULL) abort();
    mpq_init(c->value);
    c->next = cells;
    cells = c;
    return c->value;
}

static rational *new_rationals(size_t n) {
    array *a = malloc(sizeof *a + n * sizeof a->at[0]);
    if (a == NULL) abort();
    a->next = arrays;
    arrays = a;
    rational zero = q_int(0);
    for (size_t k = 0; k < n; k++) a->at[k] = zero;
    return a->at;
}

void q_forget(void) {
    while (cells != NULL) {
        cell *c = cells;
        cells = c->next;
        mpq_clear(c->value);
        free(c);
    }
    while (arrays != NULL) {
        array *a = arrays;
        arrays = a->next;
        free(a);
    }
}

rational q_frac(long numerator, unsigned long denominator) {
    mpq_ptr q = new_rational();
    mpq_set_si(q, numerator, denominator);
    mpq_canonicalize(q);
    return q;
}

rational q_double(double x) {
    mpq_ptr q = new_rational();
    mpq_set_d(q, x);
    return q;
}

rational q_add(rational a, rational b) {
    mpq_ptr q = new_rational();
    mpq_add(q, a, b);
    return q;
}

rational q_sub(rational a, rational b) {
    mpq_ptr q = new_rational();
    mpq_sub(q, a, b);
    return q;
}

rational q_mul(rational a, rational b) {
    mpq_ptr q = new_rational();
    mpq_mul(q, a, b);
    return q;
}

rational q_div(rational a, rational b) {
    if (mpq_sgn(b) == 0) abort();
    mpq_ptr q = new_rational();
    mpq_div(q, a, b);
    return q;
}

rational q_power(rational a, long k) {
    rational p = q_int(1);
    for (long left = labs(k); left > 0; left /= 2) { // a is squared from bit to bit of k
        if (left % 2 == 1) p = q_mul(p, a);
        if (left > 1) a = q_mul(a, a);
    }
    return k < 0 ? q_div(q_int(1), p) : p;
}

static void require(bool condition) {
    if (!condition) abort();
}

row row_zero(size_t n) {
    return (row){n, new_rationals(n)};
}

row row_add(row a, row b) {
    require(a.n == b.n);
    row r = row_zero(a.n);
    for (size_t k = 0; k < a.n; k++) r.at[k] = q_add(a.at[k], b.at[k]);
    return r;
}

row row_scale(rational a, row x) {
    row r = row_zero(x.n);
    for (size_t k = 0; k < x.n; k++) r.at[k] = q_mul(a, x.at[k]);
    return r;
}

rational row_dot(row a, row b) {
    require(a.n == b.n);
    rational sum = q_int(0);
    for (size_t k = 0; k < a.n; k++) sum = q_add(sum, q_mul(a.at[k], b.at[k]));
    return sum;
}

rational row_sum(row a) {
    rational sum = q_int(0);
    for (size_t k = 0; k < a.n; k++) sum = q_add(sum, a.at[k]);
    return sum;
}

row row_join(row a, row b) {
    row r = row_zero(a.n + b.n);
    for (size_t k = 0; k < a.n; k++) r.at[k] = a.at[k];
    for (size_t k = 0; k < b.n; k++) r.at[a.n + k] = b.at[k];
    return r;
}

row row_slice(row a, size_t first, size_t count) {
    require(first <= a.n && count <= a.n - first);
    return (row){count, a.at + first};
}

row row_times(row x, matrix w) {
    require(x.n == w.rows);
    row y = row_zero(w.cols);
    for (size_t c = 0; c < w.cols; c++)
        for (size_t r = 0; r < w.rows; r++)
            y.at[c] = q_add(y.at[c], q_mul(x.at[r], w.at[r * w.cols + c]));
    return y;
}

bool row_equal(row a, row b) {
    require(a.n == b.n);
    for (size_t k = 0; k < a.n; k++)
        if (!mpq_equal(a.at[k], b.at[k])) return false;
    return true;
}

matrix matrix_zero(size_t rows, size_t cols) {
    return (matrix){rows, cols, new_rationals(rows * cols)};
}

matrix matrix_block(matrix w, size_t first, size_t count) {
    require(first <= w.rows && count <= w.rows - first);
    return (matrix){count, w.cols, w.at + first * w.cols};
}
