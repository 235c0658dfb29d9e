// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Cholesky's factors of the normal equations: a = u^T u.
#include "audit/diagnose/normal_equations.h"

#include <math.h>
#include <stdbool.h>

static size_t factorise(size_t p, double *a, double dependent) {
    size_t n_dependent = 0;
    for (size_t k = 0; k < p; k++) {
        double own = a[k * p + k];
        for (size_t q = 0; q < k; q++) own -= a[q * p + k] * a[q * p + k];
        bool apart = own > dependent * a[k * p + k] && own > 0;
        n_dependent += !apart;
        a[k * p + k] = apart ? sqrt(own) : 0;
        for (size_t j = k + 1; j < p; j++) {
            for (size_t q = 0; q < k; q++) a[k * p + j] -= a[q * p + k] * a[q * p + j];
            a[k * p + j] = apart ? a[k * p + j] / a[k * p + k] : 0;
        }
    }
    return n_dependent;
}

// b is column c of m.
static void substitute(size_t p, size_t m, size_t c, const double *u, double *b) {
    for (size_t k = 0; k < p; k++) {
        double left = b[k * m + c], own = u[k * p + k];
        for (size_t q = 0; q < k; q++) left -= u[q * p + k] * b[q * m + c];
        b[k * m + c] = own > 0 ? left / own : 0;
    }
    for (size_t k = p; k-- > 0;) {
        double left = b[k * m + c], own = u[k * p + k];
        for (size_t q = k + 1; q < p; q++) left -= u[k * p + q] * b[q * m + c];
        b[k * m + c] = own > 0 ? left / own : 0;
    }
}

size_t solve_normal_columns(size_t p, size_t m, double *a, double *b, double dependent) {
    size_t n_dependent = factorise(p, a, dependent);
    for (size_t c = 0; c < m; c++) substitute(p, m, c, a, b);
    return n_dependent;
}

size_t solve_normal(size_t p, double *a, double *b, double dependent) {
    return solve_normal_columns(p, 1, a, b, dependent);
}

double normal_variance(size_t p, const double *a, size_t c, double *room) {
    double variance = 0; // the square of column c of u^-T
    for (size_t i = c; i < p; i++) {
        double sum = i == c;
        for (size_t k = c; k < i; k++) sum -= a[k * p + i] * room[k];
        room[i] = sum / a[i * p + i];
        variance += room[i] * room[i];
    }
    return variance;
}

void normal_variances(size_t p, const double *a, double *variance, double *room) {
    for (size_t c = 0; c < p; c++) variance[c] = normal_variance(p, a, c, room);
}
