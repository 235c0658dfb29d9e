// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The outputs of attention without some keys, as the trace's queries, keys and values make them.
#include "audit/diagnose/composed_made.h"
#include "ref/normaliser.h"

#include <math.h>
#include <stdlib.h>

// One query: its row and head, and what it reads.
typedef struct lone_query {
    size_t row, head, first; // first: the first key that it sees
    const double *q;
} lone_query;

typedef struct rest_of_keys {
    size_t heads, each, d, first, count; // each: heads of a key/value head; keys that are left out
    const double *q_nhd, *k_ngd, *v_ngd;
    double *e_j;
} rest_of_keys;

static double *numbers_of(const sinkproof_making *of, sinkproof_trace_point point) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(of->trace, point, of->layer);
    size_t all = tensor != NULL ? sinkproof_tensor_elements(tensor) : 0;
    double *x = all > 0 ? malloc(all * sizeof *x) : NULL;
    for (size_t i = 0; x != NULL && i < all; i++) x[i] = sinkproof_tensor_value(tensor, i);
    return x;
}

// y: the output of a query whose sink has the logit b.
static void attend_rest(const rest_of_keys *r, const lone_query *at, double b, double *y) {
    size_t groups = r->heads / r->each, g = at->head / r->each;
    double top = b, sum;
    for (size_t j = at->first; j <= at->row; j++) {
        const double *k = r->k_ngd + (j * groups + g) * r->d;
        r->e_j[j] = 0;
        for (size_t i = 0; i < r->d; i++) r->e_j[j] += at->q[i] * k[i];
        r->e_j[j] /= sqrt((double)r->d);
        if (j >= r->first && j < r->first + r->count) r->e_j[j] = -INFINITY;
        top = fmax(top, r->e_j[j]);
    }
    sum = exp(b - top);
    for (size_t i = 0; i < r->d; i++) y[i] = 0;
    for (size_t j = at->first; j <= at->row; j++) {
        const double *v = r->v_ngd + (j * groups + g) * r->d;
        double e = exp(r->e_j[j] - top);
        sum += e;
        for (size_t i = 0; i < r->d; i++) y[i] += e * v[i];
    }
    for (size_t i = 0; i < r->d; i++) y[i] /= sum;
}

static void attend_rows(const sinkproof_making *of, const rest_of_keys *r, double *work,
                        double *x) {
    const sinkproof_config *c = of->config;
    size_t window = c->sliding[of->layer] ? c->window : 0;
    const sinkproof_layer layer = sinkproof_model_layer(of->model, of->layer);
    for (size_t h = 0; h < r->heads; h++) {
        double b = sinkproof_head_normaliser(c, &layer, h, work).logit;
        for (size_t row = r->first + r->count; row < of->n; row++) {
            size_t at = (row * r->heads + h) * r->d;
            const lone_query q = {row, h, window > 0 && row + 1 > window ? row + 1 - window : 0,
                                  r->q_nhd + at};
            attend_rest(r, &q, b, x + at);
        }
    }
}

bool attention_without_keys(const sinkproof_making *of, size_t first, size_t count, double *x) {
    const sinkproof_config *c = of->config;
    bool plain = sinkproof_trace_first(of->trace) == 0 && sinkproof_trace_sequences(of->trace) == 1;
    rest_of_keys r = {.heads = c->n_heads,
                      .each = c->n_heads / c->n_kv_heads,
                      .d = c->head_dim,
                      .first = first,
                      .count = count};
    if (!plain || sinkproof_sinks_stored(c) == SINKPROOF_SINK_KEY) return false;
    double *q = numbers_of(of, TRACE_A4_Q), *k = numbers_of(of, TRACE_A4_K);
    double *v = numbers_of(of, TRACE_A2_V);
    double *work = calloc(sinkproof_normaliser_work(c) + of->n + 1, sizeof *work);
    bool there = q != NULL && k != NULL && v != NULL && work != NULL;
    if (there) {
        r.q_nhd = q, r.k_ngd = k, r.v_ngd = v;
        r.e_j = work + sinkproof_normaliser_work(c);
        attend_rows(of, &r, work, x);
    }
    free(q);
    free(k);
    free(v);
    free(work);
    return there;
}
