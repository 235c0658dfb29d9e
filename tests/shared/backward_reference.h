// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A walk back through a model (backward_walk.h), begun, and with the reference's gradients and
// activations as its witness.
#ifndef SINKPROOF_TEST_BACKWARD_REFERENCE_H
#define SINKPROOF_TEST_BACKWARD_REFERENCE_H

#include "tests/shared/backward_walk.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

static composed *walk_new(const sinkproof_model *model, size_t n, const int32_t *tokens_n,
                          bool reads_more) {
    composed *w = calloc(1, sizeof *w);
    must(w != NULL);
    w->model = model, w->c = sinkproof_model_config(model);
    w->n = n, w->tokens_n = tokens_n, w->reads_more = reads_more, w->unit = 0x1p-53;
    w->act_lp = calloc(w->c->n_layers * TRACE_POINTS, sizeof *w->act_lp);
    must(w->act_lp != NULL);
    for (size_t i = 0; i < w->c->n_layers * TRACE_POINTS; i++) {
        sinkproof_trace_point point = (sinkproof_trace_point)(i % TRACE_POINTS);
        if (sinkproof_trace_point_exists(w->c, point, i / TRACE_POINTS))
            w->act_lp[i] = both_new(sinkproof_trace_elements(w->c, point, n));
    }
    return w;
}

static void walk_free(composed *w) {
    for (size_t i = 0; i < w->c->n_layers * TRACE_POINTS; i++)
        if (w->act_lp[i].v != NULL) both_free(w->act_lp[i]);
    for (size_t i = 0; i < w->count; i++) {
        if (w->list[i].of.v != NULL) both_free(w->list[i].of);
        free(w->list[i].ref);
    }
    free(w->act_lp);
    free(w);
}

static void keep_gradient(void *context, const char *name, size_t rank, const size_t *shape,
                          const double *values) {
    size_t n = 1;
    for (size_t r = 0; r < rank; r++) n *= shape[r];
    named_gradient *g = find(context, name);
    g->ref_n = n;
    g->ref = malloc((n + 1) * sizeof *g->ref);
    must(g->ref != NULL);
    memcpy(g->ref, values, n * sizeof *g->ref);
}

static void keep_activations(composed *w, const sinkproof_activations *a) {
    for (size_t i = 0; i < w->c->n_layers * TRACE_POINTS; i++) {
        both x = w->act_lp[i];
        for (size_t k = 0; a->at_lp[i] != NULL && k < x.n; k++) arb_set_d(x.v + k, a->at_lp[i][k]);
        if (a->at_lp[i] != NULL) both_size(x);
    }
}

// The gradients of the reference, and its activations, as the witness of a walk.
static composed *reference_walk(const sinkproof_model *model, size_t n, const int32_t *tokens_n,
                                bool reads_more) {
    const sinkproof_config *c = sinkproof_model_config(model);
    size_t half = c->head_dim / 2, width = n * c->n_heads * c->head_dim;
    composed *w = walk_new(model, n, tokens_n, reads_more);
    sinkproof_policy policy;
    sinkproof_policy_known("real-f64", &policy);
    sinkproof_error error;
    sinkproof_activations *a;
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    must(session != NULL);
    need(sinkproof_activations_new(c, n, tokens_n, &a, &error), &error);
    need(sinkproof_forward(session, n, tokens_n, NULL, &a->observer, &error), &error);
    double *freq_d = calloc(half, sizeof *freq_d);
    w->cos_nd = calloc(n * half, sizeof *w->cos_nd);
    w->sin_nd = calloc(n * half, sizeof *w->sin_nd);
    sinkproof_yarn_frequencies(&policy, c, freq_d);
    sinkproof_rope_table(&policy, c, freq_d, 0, n, w->cos_nd, w->sin_nd);
    double *dlogits = calloc(n * c->vocab, sizeof *dlogits), *given[3][2];
    int32_t *next = calloc(n, sizeof *next);
    must(next != NULL && c->n_layers <= 2);
    for (size_t t = 0; t < n; t++) next[t] = t + 1 < n ? tokens_n[t + 1] : -1;
    sinkproof_cross_entropy(n, c->vocab, sinkproof_activations_at(a, 0, TRACE_F2), next, dlogits);
    for (int kind = 0; kind < 3; kind++)
        for (size_t l = 0; l < 2; l++) {
            size_t count = kind == OF_OUTPUT ? width : c->n_heads * n;
            given[kind][l] = calloc(count, sizeof(double));
            for (size_t i = 0; i < count; i++) given[kind][l][i] = loss_factor(kind, l, i);
        }
    sinkproof_loss_gradients loss = {.dlogits_nv = dlogits};
    if (reads_more) {
        loss.do_lnhd = (const double *const *)given[OF_OUTPUT];
        loss.dlse_lhn = (const double *const *)given[OF_LSE];
        loss.dlse_keys_lhn = (const double *const *)given[OF_LSE_KEYS];
    }
    sinkproof_gradient_observer observer = {.see = keep_gradient, .context = w};
    need(sinkproof_backward(model, a, &loss, &observer, &error), &error);
    keep_activations(w, a);
    for (int kind = 0; kind < 3; kind++)
        for (size_t l = 0; l < 2; l++) free(given[kind][l]);
    free(dlogits), free(freq_d), free(next);
    sinkproof_activations_free(a);
    sinkproof_session_free(session);
    w->witness = true;
    return w;
}

static void reference_free(composed *w) {
    free(w->cos_nd), free(w->sin_nd);
    walk_free(w);
}

#endif
