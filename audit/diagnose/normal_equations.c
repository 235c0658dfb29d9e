// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Cholesky's factors of the normal equations: a = u^T u.
#include "audit/diagnose/normal_equations.h"

#include <math.h>
#include <stdbool.h>

size_t solve_normal(size_t p, double *a, double *b, double dependent) {
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
    for (size_t k = 0; k < p; k++) {
        for (size_t q = 0; q < k; q++) b[k] -= a[q * p + k] * b[q];
        b[k] = a[k * p + k] > 0 ? b[k] / a[k * p + k] : 0;
    }
    for (size_t k = p; k-- > 0;) {
        for (size_t q = k + 1; q < p; q++) b[k] -= a[k * p + q] * b[q];
        b[k] = a[k * p + k] > 0 ? b[k] / a[k * p + k] : 0;
    }
    return n_dependent;
}

void normal_variances(size_t p, const double *a, double *variance, double *room) {
    for (size_t c = 0; c < p; c++) { // the square of column c of u^-T
        variance[c] = 0;
        for (size_t i = c; i < p; i++) {
            double sum = i == c;
            for (size_t k = c; k < i; k++) sum -= a[k * p + i] * room[k];
            room[i] = sum / a[i * p + i];
            variance[c] += room[i] * room[i];
        }
    }
}
