// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Keys and values that the trace has none of: those of drafts that were rejected, of another
// sequence, of slots that were never cleared. The weights of a query are then all smaller by one
// factor, and its output is a mean of what it should be and of a few vectors that all queries of a
// key/value head share. Both are fitted to the trace: fewer numbers by far than the elements.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// the numbers; FIRST: the first of the keys in whose place the vectors stand, 0: none
enum { COUNT, STEP, KEPT, FIRST };
enum { MOST_VECTORS = 2, STEPS = 3000 };     // of the fit
enum { LEAST_ROWS = 3, NUMBERS_OF_FIT = 3 }; // elements for each number of the fit

// The outputs of one key/value head that are not as they should be.
typedef struct mean_fit {
    size_t count, points, d; // count: vectors
    double kept; // 1: what should be loses the vectors' weight; 0: the trace shows that it has
    const double *rest; // what should be, without the keys that others stand for
    const double **x_i, **v_i;
    double *w_ik, *u_kd; // the weights of the vectors; the vectors
} mean_fit;

// Solves [aa ab; ab bb] (x, y) = (a, b), or of the first alone.
static void solve_few(size_t count, double aa, double ab, double bb, double a, double b, double *x,
                      double *y) {
    double area = aa * bb - ab * ab;
    *x = aa > 0 ? a / aa : 0, *y = 0;
    if (count == 2 && area > 1e-14 * aa * bb)
        *x = (a * bb - b * ab) / area, *y = (b * aa - a * ab) / area;
}

static void fit_weights(const mean_fit *f) {
    for (size_t i = 0; i < f->points; i++) {
        double aa = 0, ab = 0, bb = 0, a = 0, b = 0, second = 0;
        for (size_t k = 0; k < f->d; k++) {
            double x = f->kept * f->x_i[i][k], r = f->v_i[i][k] - f->x_i[i][k];
            double p = f->u_kd[k] - x;
            double q = f->count == 2 ? f->u_kd[f->d + k] - x : 0;
            aa += p * p, ab += p * q, bb += q * q, a += p * r, b += q * r;
        }
        solve_few(f->count, aa, ab, bb, a, b, &f->w_ik[i * f->count], &second);
        if (f->count == 2) f->w_ik[2 * i + 1] = second;
    }
}

static double weight_of_all(const mean_fit *f, size_t i) {
    return f->w_ik[i * f->count] + (f->count == 2 ? f->w_ik[2 * i + 1] : 0);
}

// Returns by how much the vectors changed.
static double fit_vectors(const mean_fit *f) {
    double change = 0;
    for (size_t k = 0; k < f->d; k++) {
        double aa = 0, ab = 0, bb = 0, a = 0, b = 0, first, second;
        for (size_t i = 0; i < f->points; i++) {
            double p = f->w_ik[i * f->count], q = f->count == 2 ? f->w_ik[2 * i + 1] : 0;
            double r = f->v_i[i][k] - (1 - f->kept * weight_of_all(f, i)) * f->x_i[i][k];
            aa += p * p, ab += p * q, bb += q * q, a += p * r, b += q * r;
        }
        solve_few(f->count, aa, ab, bb, a, b, &first, &second);
        change = fmax(change, fabs(first - f->u_kd[k]));
        f->u_kd[k] = first;
        if (f->count == 2)
            change = fmax(change, fabs(second - f->u_kd[f->d + k])), f->u_kd[f->d + k] = second;
    }
    return change;
}

// Whether each vector is one: zeros are a factor of each query.
static bool are_vectors(const mean_fit *f) {
    double size = 0;
    bool all = true;
    for (size_t i = 0; i < f->points; i++)
        for (size_t k = 0; k < f->d; k++) size = fmax(size, fabs(f->x_i[i][k]));
    for (size_t u = 0; u < f->count; u++) {
        double largest = 0;
        for (size_t k = 0; k < f->d; k++) largest = fmax(largest, fabs(f->u_kd[u * f->d + k]));
        all = all && largest > 0.01 * size;
    }
    return all;
}

// Solves a symmetric a (d, d) u = b; both are overwritten. Returns false if it cannot.
static bool solve_all(size_t d, double *a, double *b, double *u) {
    for (size_t j = 0; j < d; j++) {
        if (!(a[j * d + j] > 0)) return false;
        for (size_t i = j + 1; i < d; i++) {
            double by = a[i * d + j] / a[j * d + j];
            for (size_t k = j; k < d; k++) a[i * d + k] -= by * a[j * d + k];
            b[i] -= by * b[j];
        }
    }
    for (size_t j = d; j-- > 0;) {
        for (size_t k = j + 1; k < d; k++) b[j] -= a[j * d + k] * u[k];
        u[j] = b[j] / a[j * d + j];
    }
    return true;
}

// One vector is where the lines from what should be through what is meet: those that lead nearest
// to it count most.
static void meet_lines(const mean_fit *f) {
    enum { ROUNDS = 6 };
    size_t d = f->d;
    double *a = malloc((d * d + 2 * d) * sizeof *a), *b = a + d * d;
    for (int round = 0; a != NULL && round < ROUNDS; round++) {
        memset(a, 0, (d * d + 2 * d) * sizeof *a);
        fit_weights(f);
        for (size_t i = 0; i < f->points; i++) {
            double length = 0, along = 0, counts = f->w_ik[i] * f->w_ik[i];
            for (size_t k = 0; k < d; k++) {
                double line = f->v_i[i][k] - f->x_i[i][k];
                length += line * line, along += line * f->x_i[i][k];
            }
            for (size_t k = 0; k < d; k++) {
                double line = counts * (f->v_i[i][k] - f->x_i[i][k]) / length;
                for (size_t l = 0; l < d; l++) a[k * d + l] -= line * (f->v_i[i][l] - f->x_i[i][l]);
                a[k * d + k] += counts, b[k] += counts * f->x_i[i][k] - line * along;
            }
        }
        if (!solve_all(d, a, b, b + d)) break;
        memcpy(f->u_kd, b + d, d * sizeof *b);
    }
    free(a);
}

// Fits both in turn. They begin on the lines from what should be to what is.
static bool fit_mean(const mean_fit *f) {
    for (size_t k = 0; k < f->count * f->d; k++) {
        size_t i = k < f->d ? 0 : f->points / 2;
        f->u_kd[k] = f->x_i[i][k % f->d] + 4 * (f->v_i[i][k % f->d] - f->x_i[i][k % f->d]);
    }
    if (f->count == 1 && f->kept != 0) meet_lines(f);
    for (int step = 0; step < STEPS; step++) {
        fit_weights(f);
        if (fit_vectors(f) < 1e-12) break;
    }
    fit_weights(f);
    bool mean = are_vectors(f);
    for (size_t i = 0; i < f->points; i++)
        mean = mean && (f->kept == 0 || (weight_of_all(f, i) > 0 && weight_of_all(f, i) < 1));
    return mean;
}

static bool is_off(size_t d, const double *x, const double *v, double step) {
    double off = 0, size = 0;
    for (size_t k = 0; k < d; k++)
        off = fmax(off, fabs(v[k] - x[k])), size = fmax(size, fabs(v[k]));
    return off > 8 * step * size;
}

// y: what is added to the outputs of one key/value head.
static bool add_group(const sinkproof_making *of, mean_fit *f, const double *v, size_t g,
                      double *y) {
    size_t d = f->d, heads = of->config->n_heads, each = heads / of->config->n_kv_heads;
    f->points = 0;
    for (size_t at = 0; at < of->n * heads; at++)
        if (at % heads / each == g && is_off(d, of->x + at * d, v + at * d, of->numbers[STEP]))
            f->x_i[f->points] = f->rest + at * d, f->v_i[f->points++] = v + at * d;
    if (f->points == 0) return true;
    size_t numbers = f->count * (f->points + d);
    if (f->points < LEAST_ROWS || NUMBERS_OF_FIT * numbers > f->points * d || !fit_mean(f))
        return false;
    for (size_t i = 0; i < f->points; i++) {
        size_t at = (size_t)(f->x_i[i] - f->rest);
        for (size_t k = 0; k < d; k++) {
            y[at + k] = (1 - f->kept * weight_of_all(f, i)) * f->x_i[i][k] - of->x[at + k];
            for (size_t u = 0; u < f->count; u++)
                y[at + k] += f->w_ik[i * f->count + u] * f->u_kd[u * d + k];
        }
    }
    return true;
}

static bool make_means(const sinkproof_making *of, double *y, double *width) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(of->trace, of->point, of->layer);
    size_t d = of->config->head_dim, most = of->all / d;
    mean_fit f = {.count = (size_t)of->numbers[COUNT], .d = d, .kept = of->numbers[KEPT]};
    size_t first = (size_t)of->numbers[FIRST];
    double *room = malloc((2 * of->all + MOST_VECTORS * (most + d) + 1) * sizeof *room);
    f.x_i = malloc((2 * most + 1) * sizeof *f.x_i);
    bool fine = room != NULL && f.x_i != NULL && tensor != NULL &&
                sinkproof_tensor_elements(tensor) == of->all;
    for (size_t at = 0; fine && at < of->all; at++)
        room[at] = sinkproof_tensor_value(tensor, at), y[at] = width[at] = 0;
    if (fine) {
        double *rest = room + of->all; // what should be, without the keys
        memcpy(rest, of->x, of->all * sizeof *rest);
        if (first > 0) fine = attention_without_keys(of, first, f.count, rest);
        f.rest = first > 0 ? rest : of->x;
        f.v_i = f.x_i + most, f.w_ik = rest + of->all, f.u_kd = f.w_ik + MOST_VECTORS * most;
        for (size_t g = 0; fine && g < of->config->n_kv_heads; g++)
            fine = add_group(of, &f, room, g, y);
        for (size_t at = 0; at < of->all; at++)
            if (y[at] != 0)
                width[at] = 2 * of->numbers[STEP] * (fabs(room[at]) + fabs(of->x[at])) +
                            (of->radius != NULL ? 4 * of->radius[at] : 0);
    }
    free(room);
    free(f.x_i);
    return fine;
}

// y: the weights of each query times a number of its own, which is below 1, less the weights.
static bool make_shares(const sinkproof_making *of, double *y, double *width) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(of->trace, of->point, of->layer);
    size_t rows = of->n * of->config->n_heads, each = of->all / rows, off = 0;
    if (tensor == NULL || sinkproof_tensor_elements(tensor) != of->all) return false;
    for (size_t r = 0; r < rows; r++) {
        double xx = 0, xv = 0;
        for (size_t at = r * each; at < (r + 1) * each; at++)
            xx += of->x[at] * of->x[at], xv += of->x[at] * sinkproof_tensor_value(tensor, at);
        double by = xx > 0 ? xv / xx - 1 : 0;
        if (by > -8 * of->numbers[STEP]) by = 0;
        off += by < 0;
        for (size_t at = r * each; at < (r + 1) * each; at++) {
            y[at] = by * of->x[at];
            width[at] = by < 0 ? 4 * of->numbers[STEP] * fabs(of->x[at]) +
                                     (of->radius != NULL ? 4 * of->radius[at] : 0)
                               : 0;
        }
    }
    return off >= LEAST_ROWS;
}

// Whether what is made comes near the elements outside: the rest is the judge's.
static bool comes_near(composing *c, const sinkproof_moving *how) {
    double *y = calloc(2 * c->elements + 1, sizeof *y), *width = y + c->elements;
    sinkproof_making of = composing_making(c);
    of.x = c->mid, of.numbers = how->numbers;
    bool near = y != NULL && how->make(&of, y, width);
    size_t outside = 0, far = 0;
    for (size_t at = 0; near && at < c->elements; at++) {
        if (!c->marks[at]) continue;
        double room = 4 * (width[at] + (c->hi[at] - c->lo[at]) / 2);
        outside++, far += !(fabs(c->mid[at] + y[at] - c->v[at]) <= room);
    }
    free(y);
    return near && 8 * far <= outside;
}

// The first row with an element outside.
static size_t first_failing_row(const composing *c) {
    size_t each = c->elements / c->n;
    for (size_t at = 0; at < c->elements; at++)
        if (c->marks[at]) return at / each;
    return 0;
}

// Other keys and values in the place of the last ones before the first query that fails.
static bool try_in_place(composing *c, const sinkproof_moving *mean) {
    sinkproof_moving how = *mean;
    size_t count = (size_t)how.numbers[COUNT], row = first_failing_row(c), first = row - count;
    char id[48], text[320], keys[48];
    if (row <= count) return true;
    how.numbers[FIRST] = (double)first;
    if (count == 1)
        snprintf(keys, sizeof keys, "key %zu", first);
    else
        snprintf(keys, sizeof keys, "keys %zu and %zu", first, first + 1);
    snprintf(id, sizeof id, "foreign-key=%zu%s", first, count == 1 ? "" : "+1");
    snprintf(text, sizeof text,
             "is a mean of what it should be without %s and of %s that all queries of a key/value "
             "head share: in the cache other keys and values stand in the place of %s, which are "
             "not in the sequence, as a rejected draft leaves them",
             keys, count == 1 ? "one vector" : "two vectors", keys);
    return !comes_near(c, &how) || composing_try_moving(c, &how, id, text);
}

bool compose_foreign(composing *c) {
    bool outputs = c->point == TRACE_A11, weights = c->point == TRACE_A9 || c->point == TRACE_A10;
    const sinkproof_trace *trace = c->s->trials.suspect.trace;
    bool fine = true, shown = sinkproof_trace_find(trace, TRACE_A9, c->place) != NULL ||
                              sinkproof_trace_find(trace, TRACE_A10, c->place) != NULL;
    if (!outputs && !weights) return true;
    for (size_t count = 1; count <= (outputs ? MOST_VECTORS : 1) && fine && c->found == NULL;
         count++) {
        sinkproof_moving how = {.on = true, .point = c->point, .along = ALONG_ROWS, .factor = 1};
        char id[48], text[256];
        how.make = outputs ? make_means : make_shares, how.adds = true;
        how.numbers[COUNT] = (double)count, how.numbers[STEP] = c->step;
        how.numbers[KEPT] = !shown;
        snprintf(id, sizeof id, outputs ? "foreign-values-%zu" : "foreign-keys", count);
        if (outputs && shown)
            snprintf(
                text, sizeof text,
                "has %s added, which all queries of a key/value head share, each times a number "
                "of the query: values that are not in the sequence are read",
                count == 1 ? "one vector" : "two vectors");
        else if (outputs)
            snprintf(
                text, sizeof text,
                "is a mean of what it should be and of %s that all queries of a key/value head "
                "share: keys and values that are not in the sequence are read",
                count == 1 ? "one vector" : "two vectors");
        else
            snprintf(
                text, sizeof text,
                "is smaller by a factor of each query, the same for all of its keys and the sink: "
                "the sum has more terms, of keys that are not in the sequence");
        if (comes_near(c, &how)) fine = composing_try_moving(c, &how, id, text);
        if (fine && c->found == NULL && outputs && !shown) fine = try_in_place(c, &how);
    }
    return fine;
}
