// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The normal equations of least squares, a x = b with a symmetric and not negative, by Cholesky's
// factors. Of a the upper triangle is read: a[i p + j], i <= j.
#ifndef SINKPROOF_NORMAL_EQUATIONS_H
#define SINKPROOF_NORMAL_EQUATIONS_H

#include <stddef.h>

// An unknown whose square, less what the unknowns before it say of it, is at most this part of
// itself depends on them.
#define NORMAL_DEPENDENT 1e-10

// Solves p equations in place: b becomes x, the upper triangle of a its factor. An unknown that
// depends on those before it is 0, and so is its a[i p + i]. `dependent`: NORMAL_DEPENDENT, or 0
// where something is added to the squares. Returns how many unknowns depend on others.
size_t solve_normal(size_t p, double *a, double *b, double dependent);
// The same for m right sides: b (p, m).
size_t solve_normal_columns(size_t p, size_t m, double *a, double *b, double dependent);

// The variance of unknown c, or of each, where each equation has variance 1, of the factor that
// solve_normal leaves. None may depend on others. room: of p numbers.
double normal_variance(size_t p, const double *a, size_t c, double *room);
void normal_variances(size_t p, const double *a, double *variance, double *room);

#endif
