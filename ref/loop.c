// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Points shown to an observer, and attention from queries, keys and values on (doc/10-forward.md).
// It computes nothing itself: the numbers come from the
// stages.
#include "ref/loop.h"

#include "ref/scaled.h"

#include <stdio.h>
#include <string.h>

// Shows the observer a point by its full name ("F2"); the observer may replace the values.
void show_named_point(const token_chunk *c, const char *full, size_t rank, const size_t *shape,
                      double *values) {
    const sinkproof_observer *o = c->observer;
    if (o == NULL) return;
    if (o->replace != NULL) o->replace(o->context, full, rank, shape, values);
    o->see(o->context, full, rank, shape, values);
}

// The point `name` of the current layer ("03.A1").
void show_layer_point(const token_chunk *c, const char *name, size_t rank, const size_t *shape,
                      double *values) {
    char full[48];
    snprintf(full, sizeof full, "%02zu.%s", c->l, name);
    show_named_point(c, full, rank, shape, values);
}

// What is read later may be rounded before: queries, and keys and values when they are cached.
static void read_heads(const token_chunk *c, sinkproof_point point, size_t heads, double *x) {
    sinkproof_rounding how = c->session->policy.at[point];
    if (how.format != SINKPROOF_REAL)
        sinkproof_scaled_read(how, c->n, heads, c->config->head_dim, x);
}

// Rounds queries, keys and values, and stores the new keys and values in the cache.
static void cache_keys_and_values(token_chunk *c) {
    chunk_buffers *b = &c->b;
    size_t groups = c->config->n_kv_heads, width = groups * c->config->head_dim;
    size_t bytes = c->n * width * sizeof(double);
    read_heads(c, AT_A5_Q, c->config->n_heads, b->q_nhd);
    read_heads(c, AT_A5_K, groups, b->k_ngd);
    read_heads(c, AT_A11_V, groups, b->v_ngd);
    memcpy(c->session->k_ljgd[c->l] + c->first * width, b->k_ngd, bytes);
    memcpy(c->session->v_ljgd[c->l] + c->first * width, b->v_ngd, bytes);
}

// A5 to A11 for head h and the queries from row i on. Scores and weights are kept for an observer;
// attention in one pass keeps only the scores, and only for an observer.
static void attend_block(token_chunk *c, size_t h, size_t i, const sinkproof_normaliser *normaliser,
                         double *s_ij, double *alpha_ij) {
    const sinkproof_config *config = c->config;
    const sinkproof_stages *stages = c->session->stages;
    const sinkproof_policy *policy = &c->session->policy;
    size_t d = config->head_dim, g = h / (config->n_heads / config->n_kv_heads);
    size_t left = c->n - i;
    sinkproof_block block = {
        .rows = left < c->b.rows ? left : c->b.rows,
        .keys = c->first + c->n,
        .first = c->first + i,
        .window = config->sliding[c->l] ? config->window : 0,
        .head_dim = d,
        .q_stride = config->n_heads * d,
        .kv_stride = config->n_kv_heads * d,
    };
    const double *q_id = c->b.q_nhd + i * block.q_stride + h * d;
    const double *k_jd = c->session->k_ljgd[c->l] + g * d, *v_jd = c->session->v_ljgd[c->l] + g * d;
    double *o_id = c->b.o_nhd + i * block.q_stride + h * d;
    bool one_pass = stages->attention != NULL;
    stages->sink_logits(policy, &block, normaliser, q_id, c->b.b_i);
    if (!one_pass || c->observer != NULL) stages->scores(policy, &block, q_id, k_jd, s_ij);
    if (one_pass) {
        stages->attention(policy, &block, c->b.b_i, q_id, k_jd, v_jd, o_id);
        return;
    }
    stages->softmax_sink(policy, &block, c->b.b_i, s_ij, alpha_ij);
    stages->values(policy, &block, alpha_ij, v_jd, o_id);
}

// A6, A9 and A10 of every head; A6 alone when attention is one pass.
static void show_attention(token_chunk *c, size_t keys) {
    size_t heads = c->config->n_heads, rows = heads * c->n;
    show_layer_point(c, "A6", 3, (size_t[]){heads, c->n, keys}, c->b.s_hij);
    if (c->session->stages->attention != NULL) return;
    for (size_t r = 0; r < rows; r++) // A10: the sink's column dropped
        memcpy(c->b.weight_hij + r * keys, c->b.alpha_hij + r * (keys + 1), keys * sizeof(double));
    show_layer_point(c, "A9", 3, (size_t[]){heads, c->n, keys + 1}, c->b.alpha_hij);
    show_layer_point(c, "A10", 3, (size_t[]){heads, c->n, keys}, c->b.weight_hij);
}

void loop_attend(token_chunk *c, const sinkproof_layer *layer) {
    cache_keys_and_values(c);
    size_t heads = c->config->n_heads, keys = c->first + c->n;
    for (size_t h = 0; h < heads; h++) {
        sinkproof_normaliser normaliser = // the experts' scratch is free here
            sinkproof_head_normaliser(c->config, layer, h, c->b.work);
        size_t kept = c->observer != NULL ? h : 0; // heads already held for the observer
        for (size_t i = 0; i < c->n; i += c->b.rows)
            attend_block(c, h, i, &normaliser, c->b.s_hij + kept * c->b.rows * keys,
                         c->b.alpha_hij + kept * c->b.rows * (keys + 1));
    }
    if (c->observer != NULL) show_attention(c, keys);
    show_per_head(c, "A11", heads, c->b.o_nhd);
}
