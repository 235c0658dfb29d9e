// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weights of keys that the trace does not show, by numbers of a table: each weight times a number
// of the distance between query and key, or of the key; scores times a number of the position or
// the head; a sink, or keys of score 0, that count a number of times. Least squares give the
// tables: the output times the sum that divides is linear in them, but for factors of scores.
#include "audit/diagnose/composed_weighings.h"
#include "audit/diagnose/normal_equations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KIND, BY, STEP }; // the numbers

size_t weighing_index(const kernel *x, weighing_by by, size_t h, size_t i, size_t j) {
    switch (by) {
    case BY_ALL:
        return 0;
    case BY_ROW:
        return i;
    case BY_HEAD:
        return h;
    case BY_DISTANCE:
        return i - j;
    case BY_KEY:
        return j;
    case BY_HEAD_DISTANCE:
        return h * x->n + i - j;
    case BY_HEAD_KEY:
        return h * x->n + j;
    }
    return 0;
}

size_t weighing_numbers(const kernel *x, weighing_by by) {
    bool both = by == BY_HEAD_DISTANCE || by == BY_HEAD_KEY;
    return both ? x->heads * x->n : by == BY_HEAD ? x->heads : by == BY_ALL ? 1 : x->n;
}

size_t weighing_first(const kernel *x, weighing_by by, size_t i) {
    return by == BY_DISTANCE || by == BY_HEAD_DISTANCE ? 0 : kernel_first(x, i);
}

// What the number multiplies in a score.
static double multiplied(const weighing *w, double z, size_t i, size_t j) {
    return w->kind == WEIGH_SCORES   ? z
           : w->kind == WEIGH_BY_KEY ? (double)j
                                     : (double)j - (double)i;
}

size_t weighing_row(kernel *x, const weighing *w, size_t h, size_t i, double *y_c) {
    size_t first = weighing_first(x, w->by, i);
    double b = x->sink_h[h], top = b, sum, number = 1;
    bool of_keys = w->kind == WEIGH_KEYS;
    if (!of_keys) number = w->table[weighing_index(x, w->by, h, i, i)];
    for (size_t j = first; j <= i; j++) {
        kernel_read(x, x->k, x->v, h, i, j);
        if (w->kind == WEIGH_SCORES) x->z[j] *= number;
        if (w->kind == WEIGH_BY_KEY || w->kind == WEIGH_BY_DISTANCE)
            x->z[j] += number * multiplied(w, 0, i, j);
        bool there = !of_keys || w->table[weighing_index(x, w->by, h, i, j)] != 0;
        if (there) top = fmax(top, x->z[j]);
    }
    sum = exp(b - top) * (w->kind == WEIGH_SINK ? number : 1) +
          (w->kind == WEIGH_ZEROS ? number * exp(-top) : 0);
    for (size_t j = first; j <= i; j++) {
        double times = of_keys ? w->table[weighing_index(x, w->by, h, i, j)] : 1;
        x->a[j] = times != 0 ? times * exp(x->z[j] - top) : 0;
        sum += x->a[j];
    }
    for (size_t j = first; j <= i; j++) x->a[j] /= sum;
    kernel_sum(x, i, first, y_c);
    return first;
}

static bool make_weighed(const sinkproof_making *of, double *y, double *width) {
    const weighing w = {(weighing_kind)of->numbers[KIND], (weighing_by)of->numbers[BY],
                        of->table != NULL ? of->table + KERNEL_HEADER : NULL};
    kernel x;
    if (w.table == NULL || !kernel_open(of, &x)) return false;
    for (size_t at = 0; at < x.n * x.heads; at++) {
        size_t i = at / x.heads, h = at % x.heads, c = at * x.d;
        size_t first = weighing_row(&x, &w, h, i, y + c);
        kernel_widths(&x, of->numbers[STEP], h, i, first, y + c, width + c);
        kernel_onto(&x, h, i, y + c);
    }
    kernel_close(&x);
    return true;
}

bool weighing_try(const operation *o, const kernel *x, const weighing *w, made_kind *made) {
    made->make = make_weighed;
    made->numbers[KIND] = w->kind, made->numbers[BY] = w->by;
    made->numbers[STEP] = 2 * o->c->step;
    if (o->c->found != NULL) return true;
    made->table = kernel_table(o->c, weighing_numbers(x, w->by), w->table);
    return made->table != NULL && kernel_try(o, made);
}

// ---- the fits

// What an element may be off by.
static double noise_of(const composing *c, size_t at) {
    double size = fabs(c->v[at]) * c->step;
    return fmax(fmax((c->hi[at] - c->lo[at]) / 2, size), c->least);
}

// e^(z - top) of the keys in x->a, of all keys up to the query's own; returns e^(b - top).
static double exponentials(kernel *x, weighing_by by, size_t h, size_t i, double *sum) {
    size_t first = weighing_first(x, by, i), seen = kernel_first(x, i);
    double top = x->sink_h[h];
    for (size_t j = first; j <= i; j++) {
        kernel_read(x, x->k, x->v, h, i, j);
        if (j >= seen) top = fmax(top, x->z[j]);
    }
    double sink = exp(x->sink_h[h] - top);
    *sum = sink;
    for (size_t j = first; j <= i; j++) {
        x->a[j] = exp(fmin(x->z[j] - top, 40));
        if (j >= seen) *sum += x->a[j];
    }
    x->z[0] = top; // for what has no key
    return sink;
}

// The normal equations of the elements of head h, of a number for each distance or key.
static void add_head(const composing *c, kernel *x, weighing_by by, size_t h, double *a, double *b,
                     double *t) {
    size_t n = x->n;
    for (size_t i = 0; i < n; i++) {
        double sum, sink = exponentials(x, by, h, i, &sum);
        size_t first = weighing_first(x, by, i);
        for (size_t k = 0; k < x->d; k++) {
            size_t at = (i * x->heads + h) * x->d + k;
            double noise = noise_of(c, at) * sum, y = c->v[at];
            bool key = by == BY_HEAD_KEY;
            for (size_t j = first; j <= i; j++)
                t[key ? j : i - j] = x->a[j] * (x->v_at[j][k] - y) / noise;
            size_t from = key ? first : 0, end = key ? i + 1 : i + 1 - first;
            for (size_t p = from; p < end; p++) {
                b[p] += t[p] * sink * y / noise;
                for (size_t q = from; q <= p; q++) a[q * n + p] += t[p] * t[q];
            }
        }
    }
}

// Numbers that little weight leaves open are as defined.
static bool solve_head(const kernel *x, weighing_by by, double *a, double *b) {
    size_t n = x->n;
    for (size_t p = 0; p < n; p++) {
        bool seen = by == BY_HEAD_KEY || x->window == 0 || p < x->window;
        double little = 1e-9 * a[p * n + p] + 1e-6;
        a[p * n + p] += little, b[p] += little * seen;
    }
    return solve_normal(n, a, b, 0) == 0;
}

bool weighing_fit_keys(const composing *c, kernel *x, weighing_by by, double *shared,
                       double *of_heads) {
    size_t n = x->n, all = n * n + n;
    double *room = calloc(2 * all + n + 1, sizeof *room);
    if (room == NULL) return false;
    double *a = room, *b = a + n * n, *sum_a = room + all, *sum_b = sum_a + n * n;
    bool fine = true;
    for (size_t h = 0; h < x->heads && fine; h++) {
        memset(a, 0, all * sizeof *a);
        add_head(c, x, by, h, a, b, room + 2 * all);
        for (size_t i = 0; i < all; i++) sum_a[i] += a[i];
        fine = solve_head(x, by, a, b);
        memcpy(of_heads + h * n, b, n * sizeof *b);
    }
    fine = fine && solve_head(x, by, sum_a, sum_b);
    memcpy(shared, sum_b, n * sizeof *shared);
    free(room);
    return fine;
}

void weighing_fit_terms(const composing *c, kernel *x, const weighing *w, double *table) {
    size_t all = weighing_numbers(x, w->by);
    double *square = calloc(all + 1, sizeof *square);
    memset(table, 0, all * sizeof *table);
    for (size_t at = 0; square != NULL && at < c->elements; at += x->d) {
        size_t i = at / x->d / x->heads, h = at / x->d % x->heads;
        double sum, sink = exponentials(x, w->by, h, i, &sum);
        size_t first = kernel_first(x, i), to = weighing_index(x, w->by, h, i, i);
        double term = w->kind == WEIGH_SINK ? sink : exp(-x->z[0]);
        for (size_t k = 0; k < x->d; k++) {
            double y = c->v[at + k], noise = noise_of(c, at + k) * sum, right = 0, keys = 0;
            for (size_t j = first; j <= i; j++) right += x->a[j] * x->v_at[j][k], keys += x->a[j];
            right -= y * (keys + (w->kind == WEIGH_SINK ? 0 : sink));
            double t = term * y / noise;
            table[to] += t * right / noise, square[to] += t * t;
        }
    }
    for (size_t p = 0; square != NULL && p < all; p++)
        table[p] = square[p] > 0 ? table[p] / square[p] : w->kind == WEIGH_SINK;
    free(square);
}

// One step of least squares of the number of each row or head.
static void step_scores(const composing *c, kernel *x, const weighing *w, double *table,
                        double *room) {
    size_t all = weighing_numbers(x, w->by), d = x->d;
    double *along = room, *square = along + all, *y_c = square + all, *m = y_c + d;
    memset(room, 0, 2 * all * sizeof *room);
    for (size_t at = 0; at < c->elements; at += d) {
        size_t i = at / d / x->heads, h = at / d % x->heads;
        size_t to = weighing_index(x, w->by, h, i, i);
        size_t first = weighing_row(x, w, h, i, y_c);
        double mean = 0; // of what is multiplied, the sink's being 0
        for (size_t j = first; j <= i; j++) {
            m[j] = multiplied(w, w->kind == WEIGH_SCORES ? x->z[j] / table[to] : 0, i, j);
            mean += x->a[j] * m[j];
        }
        for (size_t k = 0; k < d; k++) {
            double slope = -mean * y_c[k], noise = noise_of(c, at + k);
            for (size_t j = first; j <= i; j++) slope += x->a[j] * m[j] * x->v_at[j][k];
            along[to] += slope * (c->v[at + k] - y_c[k]) / (noise * noise);
            square[to] += slope * slope / (noise * noise);
        }
    }
    for (size_t p = 0; p < all; p++) {
        double by = square[p] > 0 ? along[p] / square[p] : 0;
        double most = w->kind == WEIGH_SCORES ? fabs(table[p]) / 2 : 0.25;
        table[p] += fmax(-most, fmin(most, by));
    }
}

bool weighing_fit_scores(const composing *c, kernel *x, const weighing *w, double *table) {
    enum { STEPS = 12 };
    size_t all = weighing_numbers(x, w->by);
    double *room = malloc((2 * all + x->d + x->n + 1) * sizeof *room);
    if (room == NULL) return false;
    for (size_t p = 0; p < all; p++) table[p] = w->kind == WEIGH_SCORES;
    for (int step = 0; step < STEPS; step++) step_scores(c, x, w, table, room);
    free(room);
    return true;
}
