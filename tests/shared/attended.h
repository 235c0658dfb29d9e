// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention that a planted mistake computes anew from the queries, keys and values of its layer.
#ifndef SINKPROOF_TESTS_ATTENDED_H
#define SINKPROOF_TESTS_ATTENDED_H

#include "tests/shared/planted.h"

// What is made of keys or values [n, width]; NULL: nothing.
typedef void remake(const shown *s, double by, double *x, size_t width);

static double *remade(const shown *s, sinkproof_trace_point point, remake *make, double by) {
    size_t width = s->c->n_kv_heads * s->c->head_dim;
    double *x = malloc(s->n * width * sizeof *x);
    must(x != NULL);
    memcpy(x, s->latest[point], s->n * width * sizeof *x);
    if (make != NULL) make(s, by, x, width);
    return x;
}

static inline size_t first_seen(const shown *s, size_t i) {
    size_t window = s->c->sliding[s->layer] ? s->c->window : s->n;
    return i + 1 > window ? i + 1 - window : 0;
}

static double score_with(const shown *s, const double *k, size_t h, size_t i, size_t j) {
    const sinkproof_config *c = s->c;
    size_t g = h / (c->n_heads / c->n_kv_heads);
    double sum = 0;
    for (size_t d = 0; d < c->head_dim; d++)
        sum += s->latest[TRACE_A4_Q][(i * c->n_heads + h) * c->head_dim + d] *
               k[(j * c->n_kv_heads + g) * c->head_dim + d];
    return sum / sqrt((double)c->head_dim);
}

// A6 with other keys.
static inline void attend_scores(shown *s, remake *keys, double by) {
    double *k = remade(s, TRACE_A4_K, keys, by);
    size_t columns = s->shape[2];
    for (size_t at = 0; at < s->count; at++) {
        size_t h = at / columns / s->n, i = at / columns % s->n, j = at % columns;
        if (j <= i && j >= first_seen(s, i)) s->v[at] = rounded(s, score_with(s, k, h, i, j));
    }
    free(k);
}

// What becomes of the logits of a query: of the sink, and of the keys up to its own; those that it
// does not see are -infinity.
typedef void reweigh(const shown *s, double by, size_t h, size_t i, double *sink, double *z);

// A11 with other keys, values or logits.
static inline void attend_with(shown *s, remake *keys, remake *values, reweigh *how, double by) {
    const sinkproof_config *c = s->c;
    size_t d = c->head_dim;
    double *k = remade(s, TRACE_A4_K, keys, by), *v = remade(s, TRACE_A2_V, values, by);
    double *sink_h = malloc(c->n_heads * sizeof *sink_h), *z = malloc(s->n * sizeof *z);
    sinkproof_matrix sinks = sinkproof_model_slot(s->model, s->layer, SINKPROOF_SINKS);
    must(sink_h != NULL && z != NULL && sinks.cols == c->n_heads);
    sinkproof_matrix_row(&sinks, 0, sink_h);
    for (size_t at = 0; at < s->n * c->n_heads; at++) {
        size_t i = at / c->n_heads, h = at % c->n_heads, g = h / (c->n_heads / c->n_kv_heads);
        double sink = sink_h[h], top, sum;
        for (size_t j = 0; j <= i; j++)
            z[j] = j < first_seen(s, i) ? -INFINITY : score_with(s, k, h, i, j);
        if (how != NULL) how(s, by, h, i, &sink, z);
        top = sink;
        for (size_t j = 0; j <= i; j++) top = fmax(top, z[j]);
        sum = exp(sink - top);
        for (size_t j = 0; j <= i; j++) sum += exp(z[j] - top);
        for (size_t q = 0; q < d; q++) {
            double y = 0;
            for (size_t j = 0; j <= i; j++)
                y += exp(z[j] - top) / sum * v[(j * c->n_kv_heads + g) * d + q];
            s->v[at * d + q] = rounded(s, y);
        }
    }
    free(k);
    free(v);
    free(sink_h);
    free(z);
}

#endif
