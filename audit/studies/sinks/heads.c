// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The heads of a layer as an observer sees them, and attention computed from them in binary64.
#include "audit/studies/sinks/heads.h"

#include "audit/trace/trace_points.h"
#include "base/words.h"
#include "model/sinks.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- the observer's data ------------------------------------------------------------------------

static size_t shape_elements(size_t rank, const size_t *shape) {
    size_t count = 1;
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    return count;
}

static void keep_keys(layer_heads *at, const double *k_ngd) {
    size_t width = at->config->n_kv_heads * at->config->head_dim;
    for (size_t i = 0; i < at->n; i++)
        for (size_t c = 0; c < width; c++) at->k_gdn[c * at->n + i] = k_ngd[i * width + c];
    at->held_k = true;
}

// b of every row: a number of the head, or the score of a learned key with the row's query.
static void keep_sinks(heads_observer *w) {
    layer_heads *at = &w->at;
    const sinkproof_config *config = at->config;
    size_t d = config->head_dim;
    sinkproof_layer layer = sinkproof_model_layer(w->model, at->layer);
    for (size_t h = 0; h < config->n_heads; h++) {
        sinkproof_normaliser b = sinkproof_head_normaliser(config, &layer, h, w->work);
        for (size_t i = 0; i < at->n; i++) {
            double score = 0;
            const double *q_d = at->q_nhd + (i * config->n_heads + h) * d;
            for (size_t c = 0; b.key_d != NULL && c < d; c++) score += q_d[c] * b.key_d[c];
            at->b_hi[h * at->n + i] = b.key_d != NULL ? score / sqrt((double)d) : b.logit;
        }
    }
}

static void show_attended_layer(heads_observer *w, size_t layer, double *o_nhd) {
    layer_heads *at = &w->at;
    if (!at->held_q || !at->held_k || !at->held_v) {
        w->incomplete = true;
        return;
    }
    at->layer = layer;
    at->window = at->config->sliding[layer] ? at->config->window : 0;
    at->o_nhd = o_nhd;
    keep_sinks(w);
    w->heads(w->context, at);
    at->held_q = at->held_k = at->held_v = false;
}

// Engines call this before `see`, with values that the observer may change.
static void replace_attended(void *context, const char *name, size_t rank, const size_t *shape,
                             double *values) {
    heads_observer *w = context;
    layer_heads *at = &w->at;
    sinkproof_trace_point point;
    size_t layer, bytes = shape_elements(rank, shape) * sizeof(double);
    if (w->heads == NULL || !sinkproof_trace_name_parse(name, &point, &layer)) return;
    if (point == TRACE_A4_Q) memcpy(at->q_nhd, values, bytes);
    if (point == TRACE_A4_K) keep_keys(at, values);
    if (point == TRACE_A2_V) memcpy(at->v_ngd, values, bytes);
    at->held_q = at->held_q || point == TRACE_A4_Q;
    at->held_v = at->held_v || point == TRACE_A2_V;
    if (point == TRACE_A11) show_attended_layer(w, layer, values);
}

static void see_layer_point(void *context, const char *name, size_t rank, const size_t *shape,
                            const double *values) {
    heads_observer *w = context;
    sinkproof_trace_point point;
    size_t layer;
    if (w->point == NULL || !sinkproof_trace_name_parse(name, &point, &layer)) return;
    w->point(w->context, point, layer, shape_elements(rank, shape), values);
}

bool heads_observer_begin(heads_observer *w, const sinkproof_model *model, size_t n,
                          sinkproof_observer *observer, sinkproof_error *error) {
    const sinkproof_config *c = sinkproof_model_config(model);
    size_t d = c->head_dim;
    w->model = model;
    w->incomplete = false;
    w->at = (layer_heads){.config = c, .n = n};
    w->at.q_nhd = malloc(n * c->n_heads * d * sizeof(double));
    w->at.k_gdn = malloc(n * c->n_kv_heads * d * sizeof(double));
    w->at.v_ngd = malloc(n * c->n_kv_heads * d * sizeof(double));
    w->at.b_hi = malloc(n * c->n_heads * sizeof(double));
    w->work = malloc(sinkproof_normaliser_work(c) * sizeof(double));
    *observer = (sinkproof_observer){
        .see = see_layer_point, .replace = replace_attended, .context = w, .no_logits = !w->logits};
    if (w->at.q_nhd == NULL || w->at.k_gdn == NULL || w->at.v_ngd == NULL || w->at.b_hi == NULL ||
        w->work == NULL)
        return sinkproof_fail(error, "no memory for the heads of %s",
                              sinkproof_counted(n, "token").text);
    return true;
}

void heads_observer_free(heads_observer *w) {
    free(w->at.q_nhd);
    free(w->at.k_gdn);
    free(w->at.v_ngd);
    free(w->at.b_hi);
    free(w->work);
    w->at = (layer_heads){0};
    w->work = NULL;
}

// ---- attention ---------------------------------------------------------------------------------

bool heads_have_no_sinks(const sinkproof_config *config) {
    return sinkproof_sinks_stored(config) == SINKPROOF_SINK_NOTHING &&
           sinkproof_sinks_constant(config) == -INFINITY;
}

size_t heads_first_key(const layer_heads *heads, size_t i) {
    size_t first = sinkproof_mask_first(heads->window, i);
    bool hides = i >= heads->hidden.from && heads->hidden.first > first;
    return hides ? heads->hidden.first : first;
}

// One coordinate at a time, so that the sums of all keys vectorise.
void heads_row_scores(const layer_heads *heads, const double *k_gdn, size_t h, size_t i,
                      double *s_j) {
    const sinkproof_config *c = heads->config;
    size_t d = c->head_dim, g = h / (c->n_heads / c->n_kv_heads), n = heads->n;
    size_t first = heads_first_key(heads, i);
    const double *q_d = heads->q_nhd + (i * c->n_heads + h) * d;
    const double root = sqrt((double)d);
    for (size_t j = first; j <= i; j++) s_j[j] = 0;
    for (size_t e = 0; e < d; e++) {
        const double *k_n = k_gdn + (g * d + e) * n;
        for (size_t j = first; j <= i; j++) s_j[j] += q_d[e] * k_n[j];
    }
    for (size_t j = first; j <= i; j++) s_j[j] /= root;
}

// Shifted by the larger of the sink and the largest score, so that neither overflows.
double row_mean_each_way(const heads_row_sums *sums, double b, double *sink) {
    bool above = b > sums->top;
    double key = above ? exp(sums->top - b) : 1, own = above ? 1 : exp(b - sums->top);
    double all = key * sums->sum + own;
    *sink = own / all;
    return key / all;
}

void heads_row_weights(const layer_heads *heads, size_t h, size_t i, double b, double *alpha_j,
                       double *sink) {
    size_t first = heads_first_key(heads, i);
    heads_row_sums sums = {.top = -INFINITY};
    heads_row_scores(heads, heads->k_gdn, h, i, alpha_j);
    for (size_t j = 0; j < first; j++) alpha_j[j] = 0;
    for (size_t j = first; j <= i; j++) sums.top = fmax(sums.top, alpha_j[j]);
    for (size_t j = first; j <= i; j++) {
        alpha_j[j] = exp(alpha_j[j] - sums.top);
        sums.sum += alpha_j[j];
    }
    double each = row_mean_each_way(&sums, b, sink);
    for (size_t j = first; j <= i; j++) alpha_j[j] *= each;
}

void heads_attend(const layer_heads *heads, double change, double *o_nhd, double *alpha_j) {
    const sinkproof_config *c = heads->config;
    size_t d = c->head_dim, width = c->n_kv_heads * d, group = c->n_heads / c->n_kv_heads;
    for (size_t h = 0; h < c->n_heads; h++)
        for (size_t i = 0; i < heads->n; i++) {
            double sink, *o_d = o_nhd + (i * c->n_heads + h) * d;
            double b = heads->b_hi[h * heads->n + i];
            heads_row_weights(heads, h, i, isinf(b) ? b : b + change, alpha_j, &sink);
            for (size_t e = 0; e < d; e++) o_d[e] = 0;
            for (size_t j = heads_first_key(heads, i); j <= i; j++) {
                const double *v_d = heads->v_ngd + j * width + h / group * d;
                for (size_t e = 0; e < d; e++) o_d[e] += alpha_j[j] * v_d[e];
            }
        }
}
