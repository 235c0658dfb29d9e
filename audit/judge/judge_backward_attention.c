// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradients of attention in a trace: which inputs it holds, and the sets that follow. An engine
// that shows no weights is judged through them unseen.
#include "audit/judge/judge_backward_attention.h"
#include "audit/judge/judge_backward_internal.h"
#include "audit/trace/trace_points.h"
#include "model/sinks.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct attention_view {
    sinkproof_backward_inputs in;
    near_set *owned[16];
    double *dlse[2], *sink_h;
    size_t *begins_n, n_owned;
} attention_view;

static void view_free(attention_view *view) {
    for (size_t i = 0; i < view->n_owned; i++) free(view->owned[i]);
    free(view->dlse[0]);
    free(view->dlse[1]);
    free(view->sink_h);
    free(view->begins_n);
}

static const near_set *own(attention_view *view, near_set *x) {
    if (x != NULL) view->owned[view->n_owned++] = x;
    return x;
}

// NULL where the trace lacks it, which is no lack yet.
static const near_set *point_if_held(backward_pass *pass, attention_view *view,
                                     sinkproof_trace_point point, size_t layer) {
    if (sinkproof_trace_find(pass->trace, point, layer) == NULL) return NULL;
    return own(view, backward_read_point(pass, point, layer));
}
static const near_set *gradient_if_held(backward_pass *pass, attention_view *view,
                                        sinkproof_trace_point point, size_t layer) {
    if (!backward_has_gradient(pass, point, layer)) return NULL;
    return own(view, backward_read_gradient(pass, point, layer));
}

// A log-sum-exp's gradient as numbers, [heads, n].
static double *lse_gradient(backward_pass *pass, sinkproof_trace_point point, size_t layer) {
    if (!backward_has_gradient(pass, point, layer)) return NULL;
    size_t count = pass->config->n_heads * pass->n;
    near_set *x = backward_read_gradient(pass, point, layer);
    double *d = backward_allocate(pass, count, sizeof *d);
    for (size_t i = 0; x != NULL && d != NULL && i < count; i++) d[i] = x[i].mid;
    free(x);
    return d;
}

// Whether the loss reads a log-sum-exp whose gradient the trace lacks.
static bool lacks_lse(backward_pass *pass, size_t layer) {
    const sinkproof_trace_point points[] = {TRACE_LSE, TRACE_LSE_KEYS};
    for (size_t i = 0; i < 2; i++) {
        char name[SINKPROOF_TRACE_NAME];
        if (!backward_loss_reads(pass, points[i], layer)) continue;
        if (backward_has_gradient(pass, points[i], layer)) continue;
        snprintf(name, sizeof name, "%02zu.d%s", layer, sinkproof_trace_point_name(points[i]));
        backward_lacks(pass, "", name);
        return true;
    }
    return false;
}

// Every sequence begins at its position 0: a query sees keys of the trace alone.
static bool find_sequences(backward_pass *pass, attention_view *view) {
    size_t count = sinkproof_trace_sequences(pass->trace);
    view->begins_n = backward_allocate(pass, pass->n, sizeof *view->begins_n);
    for (size_t s = 0; view->begins_n != NULL && s < count; s++) {
        sinkproof_sequence of = sinkproof_trace_sequence(pass->trace, s);
        if (of.first > 0) {
            backward_lacks(pass, "keys and values before the first token", "");
            return false;
        }
        for (size_t i = of.row; i < of.row + of.rows; i++) view->begins_n[i] = of.row;
    }
    if (sinkproof_trace_columns(pass->trace) != pass->n || sinkproof_trace_is_apart(pass->trace)) {
        backward_lacks(pass, "sequences whose keys are their rows", "");
        return false;
    }
    view->in.begins_n = view->begins_n;
    return view->begins_n != NULL;
}

// A sink's logit as a mistaken kernel may hold it.
static double held_logit(const backward_pass *pass, double b) {
    const double log2_e = 1.4426950408889634;
    if (!pass->meaning->sink_in_base_2) return b;
    return sinkproof_round(pass->arithmetic.narrow, b * log2_e) / log2_e;
}

static bool read_sinks(backward_pass *pass, attention_view *view, size_t layer) {
    const sinkproof_config *c = pass->config;
    sinkproof_layer weights = sinkproof_model_layer(pass->model, layer);
    if (!sinkproof_sinks_are_constant(c)) {
        backward_lacks(pass, "a sink that is one logit", "");
        return false;
    }
    view->sink_h = backward_allocate(pass, c->n_heads, sizeof *view->sink_h);
    double *work = backward_allocate(pass, sinkproof_normaliser_work(c), sizeof *work);
    for (size_t h = 0; view->sink_h != NULL && work != NULL && h < c->n_heads; h++)
        view->sink_h[h] = held_logit(pass, sinkproof_head_normaliser(c, &weights, h, work).logit);
    free(work);
    view->in.sink_h = view->sink_h;
    return !pass->failed;
}

static sinkproof_trace_point queries(const sinkproof_config *c) {
    return sinkproof_trace_point_exists(c, TRACE_A4_Q, 0) ? TRACE_A4_Q : TRACE_A2_Q;
}

// Fills the view with the tensors of a layer that the trace holds: the gradients of the weights and
// of the scores only where they are asked for.
static bool view_layer(backward_pass *pass, size_t layer, bool from_weights, bool from_scores,
                       attention_view *view) {
    const sinkproof_config *c = pass->config;
    size_t n = pass->n;
    *view = (attention_view){.in = {.policy = pass->policy,
                                    .arithmetic = &pass->arithmetic,
                                    .meaning = pass->meaning,
                                    .n = n,
                                    .heads = c->n_heads,
                                    .groups = c->n_kv_heads,
                                    .dim = c->head_dim,
                                    .window = c->sliding[layer] ? c->window : 0,
                                    .rate = 1e-9}};
    sinkproof_backward_inputs *in = &view->in;
    if (!find_sequences(pass, view) || !read_sinks(pass, view, layer)) return false;
    in->q = point_if_held(pass, view, queries(c), layer);
    in->k = point_if_held(pass, view, sinkproof_trace_keys(c), layer);
    in->v = point_if_held(pass, view, TRACE_A2_V, layer);
    in->out = point_if_held(pass, view, TRACE_A11, layer);
    in->scores = point_if_held(pass, view, TRACE_A6, layer);
    in->weights = point_if_held(pass, view, TRACE_A9, layer);
    in->dout = gradient_if_held(pass, view, TRACE_A11, layer);
    // A mistake that reads other keys made weights of its own.
    if (pass->meaning->no_window || pass->meaning->no_mask) from_weights = from_scores = false;
    if (from_weights) {
        in->dweights = gradient_if_held(pass, view, TRACE_A10, layer);
        in->dweights_row = n;
        if (in->dweights == NULL) {
            in->dweights = gradient_if_held(pass, view, TRACE_A9, layer);
            in->dweights_row = n + 1;
        }
    }
    if (from_scores) in->dscores = gradient_if_held(pass, view, TRACE_A6, layer);
    view->dlse[0] = lse_gradient(pass, TRACE_LSE, layer);
    view->dlse[1] = lse_gradient(pass, TRACE_LSE_KEYS, layer);
    // A9.lse of a trace whose metadata say so is that of the keys, and so is its gradient.
    bool keys = sinkproof_trace_lse(pass->trace) == SINKPROOF_LSE_KEYS && view->dlse[1] == NULL;
    in->dlse_hn = keys ? NULL : view->dlse[0];
    in->dlse_keys_hn = keys ? view->dlse[0] : view->dlse[1];
    return !pass->failed;
}

// A name with its layer: "03.A4.q", "03.dA11".
static void lacks_named(backward_pass *pass, size_t layer, const char *what) {
    char name[SINKPROOF_TRACE_NAME];
    snprintf(name, sizeof name, "%02zu.%.20s", layer, what);
    backward_lacks(pass, "", name);
}

static bool run_view(backward_pass *pass, size_t layer, const attention_view *view,
                     const sinkproof_backward_outputs *out) {
    const char *lacks = attention_back_lacks(&view->in, out);
    if (lacks != NULL) lacks_named(pass, layer, lacks);
    if (lacks != NULL || pass->failed) return false;
    if (!attention_back(&view->in, out)) pass->failed = true;
    return !pass->failed;
}

static size_t point_elements(const backward_pass *pass, sinkproof_trace_point point) {
    return sinkproof_trace_elements(pass->config, point, pass->n);
}

// dA9 has a column more, of the sink, which meets no value.
static near_set *with_sink_column(backward_pass *pass, const near_set *x_hij) {
    size_t n = pass->n, rows = pass->config->n_heads * n;
    near_set *y = backward_allocate(pass, rows * (n + 1), sizeof *y);
    for (size_t r = 0; y != NULL && r < rows; r++)
        for (size_t j = 0; j < n; j++) y[r * (n + 1) + j] = x_hij[r * n + j];
    return y;
}

near_set *backward_attention_sets(backward_pass *pass, sinkproof_trace_point point, size_t layer) {
    bool of_weights = point == TRACE_A9 || point == TRACE_A10, of_scores = point == TRACE_A6;
    attention_view view;
    size_t count = of_weights || of_scores ? pass->config->n_heads * pass->n * pass->n
                                           : point_elements(pass, point);
    near_set *x = NULL;
    sinkproof_backward_outputs out = {0};
    bool fine = of_weights || point == TRACE_A2_V || !lacks_lse(pass, layer);
    if (!fine) return NULL;
    fine = view_layer(pass, layer, !of_weights, !of_weights && !of_scores, &view);
    if (fine) x = backward_allocate(pass, count, sizeof *x);
    if (of_weights) out.dweights = x;
    if (of_scores) out.dscores = x;
    if (point == queries(pass->config)) out.dq = x;
    if (point == sinkproof_trace_keys(pass->config)) out.dk = x;
    if (point == TRACE_A2_V) out.dv = x;
    fine = fine && x != NULL && run_view(pass, layer, &view, &out);
    view_free(&view);
    if (fine && point == TRACE_A9) {
        near_set *wide = with_sink_column(pass, x);
        free(x);
        return wide;
    }
    if (fine) return x;
    free(x);
    return NULL;
}

// The sums over the heads of each group, which are no head's gradient.
static void add_over_group(const backward_pass *pass, near_set *x_h) {
    size_t each = pass->config->n_heads / pass->config->n_kv_heads;
    near_set one = {1, 0};
    for (size_t g = 0; g < pass->config->n_kv_heads; g++) {
        near_set sum =
            sinkproof_gradient_dot(&pass->arithmetic, each, x_h + g * each, 1, &one, 0, 0, 0);
        for (size_t m = 0; m < each; m++) x_h[g * each + m] = sum;
    }
}

near_set *backward_sink_sets(backward_pass *pass, size_t layer) {
    attention_view view;
    size_t heads = pass->config->n_heads;
    bool other = pass->meaning->added == SINKPROOF_SINK_OF_LAYER;
    if (other) layer = pass->meaning->layer;
    if (lacks_lse(pass, layer)) return NULL;
    bool fine = view_layer(pass, layer, true, false, &view);
    near_set *x = fine ? backward_allocate(pass, heads, sizeof *x) : NULL;
    sinkproof_backward_outputs out = {.dsink_h = x};
    fine = x != NULL && run_view(pass, layer, &view, &out);
    view_free(&view);
    if (fine && pass->meaning->added == SINKPROOF_SINK_GROUP) add_over_group(pass, x);
    if (fine) return x;
    free(x);
    return NULL;
}
