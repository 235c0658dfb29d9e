// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What was read in the place of each value or key: least squares over the rows and heads of a
// group.
#include "audit/diagnose/composed_read.h"
#include "audit/diagnose/normal_equations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The values of a group, [n, d] in b: the heads of each row give as many equations. What little
// weight leaves open is as it is.
static bool solve_values(const reading *r, size_t g, double *a, double *b) {
    kernel *x = r->x;
    size_t n = x->n, d = x->d;
    memset(a, 0, n * n * sizeof *a);
    memset(b, 0, n * d * sizeof *b);
    for (size_t at = r->first * x->each; at < n * x->each; at++) {
        size_t i = at / x->each, h = g * x->each + at % x->each;
        size_t first = kernel_read_all(x, x->k, x->v, h, i);
        const double *y_c = r->o->c->v + (i * x->heads + h) * d;
        kernel_weigh(x, h, i, first);
        for (size_t j = first; j <= i; j++) {
            for (size_t k = first; k <= j; k++) a[k * n + j] += x->a[j] * x->a[k];
            for (size_t c = 0; c < d; c++) b[j * d + c] += x->a[j] * y_c[c];
        }
    }
    double little = r->o->c->step > 0x1p-12 ? 1e-5 : 1e-9;
    for (size_t j = 0; j < n; j++) {
        a[j * n + j] += little;
        for (size_t c = 0; c < d; c++) b[j * d + c] += little * x->v[(j * x->groups + g) * d + c];
    }
    return solve_normal_columns(n, d, a, b, 0) == 0;
}

// Key j of a group, [d] in b; false: too few rows tell it.
static bool solve_key(const reading *r, size_t g, size_t j, double *a, double *b) {
    const kernel *x = r->x;
    const composing *c = r->o->c;
    size_t n = x->n, d = x->d, equations = 0;
    double size = 0;
    memset(a, 0, d * d * sizeof *a);
    memset(b, 0, d * sizeof *b);
    size_t from = j > r->first ? j : r->first; // earlier rows may read what is right
    for (size_t at = from * x->each; at < n * x->each; at++) {
        size_t i = at / x->each, h = g * x->each + at % x->each, e = (h * n + i) * n + j;
        const double *q_c = x->q + (i * x->heads + h) * d;
        if (j < kernel_first(x, i) || !isfinite(c->v[e])) continue;
        for (size_t k = 0; k < d; k++) {
            for (size_t l = 0; l <= k; l++) a[l * d + k] += q_c[k] * q_c[l];
            b[k] += q_c[k] * c->v[e] * sqrt((double)d), size += q_c[k] * q_c[k];
        }
        equations++;
    }
    for (size_t k = 0; k < d; k++) a[k * d + k] += 1e-12 * size;
    return equations >= d + d / 2 && solve_normal(d, a, b, 0) == 0;
}

// The size of the numbers of a vector: the root of their mean square.
static double size_of(size_t d, const double *x) {
    double square = 0;
    for (size_t c = 0; c < d; c++) square += x[c] * x[c];
    return sqrt(square / (double)d);
}

// Whether roundings of the size `noise` leave less than a tenth of a vector open.
static bool is_told(size_t n, const double *u, size_t j, size_t end, double noise, double size,
                    double *room) {
    double square = 0;
    for (size_t k = j; k < end; k++) square = fmax(square, normal_variance(n, u, k, room));
    return noise * sqrt(square) < 0.1 * size;
}

size_t reading_solve(const reading *r, double *room, double *y, uint8_t *told) {
    const kernel *x = r->x;
    const composing *c = r->o->c;
    size_t n = x->n, d = x->d, count = 0, square = n > d ? n * n : d * d;
    const double *own = r->of_keys ? x->k : x->v;
    double *b = room + square, *more = b + n * d, rms = size_of(c->elements, c->v);
    memcpy(y, own, n * x->groups * d * sizeof *y);
    memset(told, 0, n * x->groups);
    for (size_t g = 0; g < x->groups; g++) {
        bool values = !r->of_keys && solve_values(r, g, room, b);
        for (size_t j = 0; j < n; j++) {
            size_t v = j * x->groups + g;
            double size = size_of(d, own + v * d), noise = 2 * c->step * rms;
            bool key = r->of_keys && solve_key(r, g, j, room, b);
            if (key && !is_told(d, room, 0, d, noise * sqrt((double)d), size, more)) continue;
            if (!key && !(values && is_told(n, room, j, j + 1, noise, size, more))) continue;
            memcpy(y + v * d, key ? b : b + j * d, d * sizeof *y);
            told[v] = 1, count++;
        }
    }
    return count;
}
