// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which stage a gradient comes from: the table of the backward pass. Of each point and each weight
// it says what is read, and which statement the set rests on.
#include "audit/judge/judge_backward_internal.h"

#include <stdlib.h>
#include <string.h>

static sinkproof_matrix slot_of(const backward_pass *pass, size_t layer, sinkproof_slot slot) {
    return sinkproof_model_slot(pass->model, layer, slot);
}

// ---- linear layers ---------------------------------------------------------------------------

// One linear layer that a point's gradient comes back through.
typedef struct back_through {
    sinkproof_trace_point result;
    sinkproof_slot slot;
} back_through;

// dx of `count` layers that read one input. Each share may be stored, and so may their sum.
static near_set *through_linear(backward_pass *pass, size_t count, const back_through *of,
                                size_t layer) {
    backward_sums sums = {0};
    double terms = 0;
    bool fine = true;
    for (size_t i = 0; fine && i < count; i++) {
        sinkproof_matrix m = slot_of(pass, layer, of[i].slot);
        near_set *dy = of[i].result == TRACE_A12
                           ? backward_read_passed(pass, TRACE_A12, TRACE_A13, layer)
                           : backward_read_gradient(pass, of[i].result, layer);
        near_set *w = dy != NULL ? backward_read_weight(pass, &m, 0) : NULL;
        if (i == 0 && w != NULL) fine = backward_sums_new(pass, pass->n * m.cols, &sums);
        fine = fine && w != NULL;
        if (fine) backward_add_inputs(pass->n, m.rows, m.cols, w, dy, sums.terms);
        terms += (double)m.rows;
        free(dy);
        free(w);
    }
    near_set *x = fine ? backward_sums_finish(pass, &sums, terms, (double)count,
                                              count > 1 ? (double)count : 0)
                       : NULL;
    free(sums.terms);
    return x;
}

// dW or db of a linear layer; x is NULL for the bias.
static near_set *of_linear(backward_pass *pass, sinkproof_slot slot, near_set *dy, near_set *x,
                           bool bias, size_t layer) {
    sinkproof_matrix m = slot_of(pass, layer, slot);
    size_t all = bias ? m.cols : m.rows, cols = bias ? 1 : m.cols;
    size_t first = bias ? 0 : pass->first_row, end = bias ? all : pass->end_row;
    backward_sums sums = {0};
    near_set *sets = NULL, *ones = NULL;
    if (dy != NULL && bias) ones = backward_allocate(pass, pass->n, sizeof *ones);
    for (size_t t = 0; ones != NULL && t < pass->n; t++) ones[t].mid = 1;
    const near_set *with = bias ? ones : x;
    if (dy != NULL && with != NULL && backward_sums_new(pass, (end - first) * cols, &sums)) {
        backward_add_weights(pass->n, end - first, cols, dy + first, all, with, sums.terms);
        sets = backward_sums_finish(pass, &sums, (double)pass->n, 1, 1);
    }
    free(ones);
    free(dy);
    free(x);
    return sets;
}

// ---- norms -----------------------------------------------------------------------------------

// The residual stream before a layer.
static near_set *stream_before(backward_pass *pass, size_t layer) {
    return layer == 0 ? backward_read_point(pass, TRACE_T0, 0)
                      : backward_read_point(pass, TRACE_M12, layer - 1);
}

static near_set *through_norm(backward_pass *pass, sinkproof_slot slot, size_t layer, near_set *x,
                              near_set *dy, near_set *passed, bool has_passed) {
    sinkproof_matrix scale = slot_of(pass, layer, slot);
    near_set *dx = NULL;
    if (x != NULL && dy != NULL && (passed != NULL || !has_passed))
        dx = backward_norm_inputs(pass, &scale, pass->n, x, dy, passed);
    free(x);
    free(dy);
    free(passed);
    return dx;
}

// The gradient of the residual stream that layer `layer` reads.
static near_set *stream_gradient(backward_pass *pass, size_t layer) {
    near_set *x = stream_before(pass, layer);
    near_set *dy = x != NULL ? backward_read_gradient(pass, TRACE_A1, layer) : NULL;
    near_set *passed = dy != NULL ? backward_read_gradient(pass, TRACE_A13, layer) : NULL;
    return through_norm(pass, SINKPROOF_ATTN_NORM, layer, x, dy, passed, true);
}

static near_set *last_stream_gradient(backward_pass *pass) {
    near_set *x = backward_read_point(pass, TRACE_M12, pass->config->n_layers - 1);
    near_set *dy = x != NULL ? backward_read_gradient(pass, TRACE_F1, 0) : NULL;
    return through_norm(pass, SINKPROOF_FINAL_NORM, 0, x, dy, NULL, false);
}

static near_set *scale_gradient(backward_pass *pass, sinkproof_slot slot, size_t layer, near_set *x,
                                near_set *dy, size_t rows) {
    near_set *sets = backward_norm_scale(pass, slot_of(pass, layer, slot).cols, rows, x, dy);
    free(x);
    free(dy);
    return sets;
}

// ---- heads -----------------------------------------------------------------------------------

// A2 from A3 through a norm of each head, or A3 (A2 in a model without one) from A4.
static near_set *head_gradient(backward_pass *pass, bool keys, bool before_norm, size_t layer) {
    const sinkproof_config *c = pass->config;
    size_t heads = keys ? c->n_kv_heads : c->n_heads;
    near_set *sets = NULL;
    if (!before_norm) {
        near_set *dy = backward_read_gradient(pass, keys ? TRACE_A4_K : TRACE_A4_Q, layer);
        if (dy != NULL) sets = backward_rotated(pass, heads, dy);
        free(dy);
        return sets;
    }
    sinkproof_matrix scale = slot_of(pass, layer, keys ? SINKPROOF_K_NORM : SINKPROOF_Q_NORM);
    near_set *x = backward_read_point(pass, keys ? TRACE_A2_K : TRACE_A2_Q, layer);
    near_set *dy =
        x != NULL ? backward_read_gradient(pass, keys ? TRACE_A3_K : TRACE_A3_Q, layer) : NULL;
    if (dy != NULL) sets = backward_norm_inputs(pass, &scale, pass->n * heads, x, dy, NULL);
    free(x);
    free(dy);
    return sets;
}

// ---- the tables ------------------------------------------------------------------------------

near_set *backward_point_sets(backward_pass *pass, sinkproof_trace_point point, size_t layer,
                              const char **statement) {
    static const back_through qkv[] = {{TRACE_A2_Q, SINKPROOF_W_Q},
                                       {TRACE_A2_K, SINKPROOF_W_K},
                                       {TRACE_A2_V, SINKPROOF_W_V}},
                              output[] = {{TRACE_A12, SINKPROOF_W_O}},
                              logits[] = {{TRACE_F2, SINKPROOF_UNEMBEDDING}},
                              tied[] = {{TRACE_F2, SINKPROOF_EMBEDDING}};
    const sinkproof_config *c = pass->config;
    bool rotated = c->rotation.kind != SINKPROOF_NO_ROTATION, normed = c->head_norms;
    switch (point) {
    case TRACE_F2:
        *statement = "grad.cross-entropy";
        return backward_cross_entropy(pass);
    case TRACE_F1:
        *statement = "grad.linear";
        return through_linear(pass, 1, c->tied ? tied : logits, 0);
    case TRACE_T0:
        *statement = "grad.chain";
        return stream_gradient(pass, 0);
    case TRACE_M12:
        *statement = "grad.chain";
        return layer + 1 == c->n_layers ? last_stream_gradient(pass)
                                        : stream_gradient(pass, layer + 1);
    case TRACE_A13: {
        *statement = "grad.chain";
        near_set *x = backward_read_point(pass, TRACE_A13, layer);
        near_set *dy = x != NULL ? backward_read_gradient(pass, TRACE_M1, layer) : NULL;
        near_set *passed = dy != NULL ? backward_read_gradient(pass, TRACE_M12, layer) : NULL;
        return through_norm(pass, SINKPROOF_MLP_NORM, layer, x, dy, passed, true);
    }
    case TRACE_A12:
        *statement = "grad.chain";
        return backward_read_gradient(pass, TRACE_A13, layer);
    case TRACE_M11:
        *statement = "grad.chain";
        return backward_read_gradient(pass, TRACE_M12, layer);
    case TRACE_A11:
        *statement = "grad.linear";
        return through_linear(pass, 1, output, layer);
    case TRACE_A1:
        *statement = "grad.linear";
        return through_linear(pass, 3, qkv, layer);
    case TRACE_A9:
    case TRACE_A10:
    case TRACE_A2_V:
        *statement = "grad.values";
        return backward_attention_sets(pass, point, layer);
    case TRACE_A6:
        *statement = "grad.softmax";
        return backward_attention_sets(pass, point, layer);
    case TRACE_A4_Q:
    case TRACE_A4_K:
        *statement = "grad.qkv";
        return backward_attention_sets(pass, point, layer);
    case TRACE_A3_Q:
    case TRACE_A3_K:
        *statement = "grad.rotation";
        return head_gradient(pass, point == TRACE_A3_K, false, layer);
    case TRACE_A2_Q:
    case TRACE_A2_K:
        *statement = normed ? "grad.rmsnorm" : rotated ? "grad.rotation" : "grad.qkv";
        if (!normed && !rotated) return backward_attention_sets(pass, point, layer);
        return head_gradient(pass, point == TRACE_A2_K, normed, layer);
    case TRACE_M10:
    case TRACE_M4:
        *statement = c->dense ? "grad.chain" : "grad.mixture";
        return backward_experts_sets(pass, point, layer);
    case TRACE_M2:
        *statement = "grad.router";
        return backward_experts_sets(pass, point, layer);
    case TRACE_M6:
        *statement = "grad.swiglu";
        return backward_experts_sets(pass, point, layer);
    case TRACE_M8:
    case TRACE_M1:
        *statement = "grad.linear";
        return backward_experts_sets(pass, point, layer);
    case TRACE_M9:
        *statement = "grad.linear";
        return backward_read_gradient(pass, TRACE_M10, layer);
    case TRACE_M5:
        *statement = "grad.linear";
        return backward_read_gradient(pass, TRACE_M6, layer);
    default: // a log-sum-exp's is the loss's own
        *statement = "grad.lse";
        return backward_lacks(pass, "what the loss has there", "");
    }
}

static double most_of(size_t n, const size_t *x) {
    size_t most = 0;
    for (size_t i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    return (double)most;
}

// Rows of words: dT0's, and where the embedding is also the unembedding dF2's.
static void add_words(const backward_pass *pass, const near_set *dx, size_t *added,
                      gradient_terms *rows) {
    size_t hidden = pass->config->hidden;
    const near_set one = {1, 0};
    for (size_t t = 0; t < pass->n; t++) {
        size_t word = (size_t)sinkproof_trace_tokens(pass->trace)[t];
        if (word < pass->first_row || word >= pass->end_row) continue;
        word -= pass->first_row, added[word]++;
        for (size_t k = 0; k < hidden; k++)
            sinkproof_gradient_add(&rows[word * hidden + k], dx[t * hidden + k], one);
    }
}

static near_set *embedding_gradient(backward_pass *pass) {
    const sinkproof_config *c = pass->config;
    size_t rows = pass->end_row - pass->first_row;
    backward_sums sums = {0};
    size_t *added = backward_allocate(pass, rows, sizeof *added);
    near_set *dx = backward_read_gradient(pass, TRACE_T0, 0), *dz = NULL, *x = NULL, *sets = NULL;
    if (dx != NULL && c->tied) {
        dz = backward_read_gradient(pass, TRACE_F2, 0);
        x = dz != NULL ? backward_read_point(pass, TRACE_F1, 0) : NULL;
    }
    if (dx != NULL && added != NULL && (!c->tied || x != NULL) &&
        backward_sums_new(pass, rows * c->hidden, &sums)) {
        add_words(pass, dx, added, sums.terms);
        if (c->tied)
            backward_add_weights(pass->n, rows, c->hidden, dz + pass->first_row, c->vocab, x,
                                 sums.terms);
        sets = c->tied ? backward_sums_finish(pass, &sums, 2 * (double)pass->n, 2,
                                              2 + most_of(rows, added))
                       : backward_sums_gathered(pass, &sums, c->hidden, added, 0);
    }
    free(sums.terms);
    free(added);
    free(dx);
    free(dz);
    free(x);
    return sets;
}

// The values' bias, with 1 in the place of 1 - alpha_s: the sum of dO over queries and a group.
static near_set *bias_of_ones(backward_pass *pass, size_t layer) {
    const sinkproof_config *c = pass->config;
    size_t width = c->n_kv_heads * c->head_dim, each = c->n_heads / c->n_kv_heads;
    backward_sums sums = {0};
    near_set *dout = backward_read_gradient(pass, TRACE_A11, layer), *sets = NULL, one = {1, 0};
    if (dout != NULL && backward_sums_new(pass, width, &sums)) {
        for (size_t t = 0; t < pass->n; t++)
            for (size_t h = 0; h < c->n_heads; h++)
                for (size_t d = 0; d < c->head_dim; d++)
                    sinkproof_gradient_add(&sums.terms[h / each * c->head_dim + d],
                                           dout[(t * c->n_heads + h) * c->head_dim + d], one);
        sets = backward_sums_finish(pass, &sums, (double)(pass->n * each), 1, 2);
    }
    free(dout);
    return sets;
}

near_set *backward_weight_sets(backward_pass *pass, sinkproof_slot slot, size_t layer,
                               const char **statement) {
    static const struct linear_slots {
        sinkproof_slot weight, bias;
        sinkproof_trace_point result, input;
    } linear[] = {{SINKPROOF_W_Q, SINKPROOF_B_Q, TRACE_A2_Q, TRACE_A1},
                  {SINKPROOF_W_K, SINKPROOF_B_K, TRACE_A2_K, TRACE_A1},
                  {SINKPROOF_W_V, SINKPROOF_B_V, TRACE_A2_V, TRACE_A1},
                  {SINKPROOF_W_O, SINKPROOF_B_O, TRACE_A12, TRACE_A11},
                  {SINKPROOF_W_ROUTER, SINKPROOF_B_ROUTER, TRACE_M2, TRACE_M1},
                  {SINKPROOF_UNEMBEDDING, SINKPROOF_SLOTS, TRACE_F2, TRACE_F1}};
    const sinkproof_config *c = pass->config;
    *statement = "grad.linear";
    if (slot == SINKPROOF_B_V) *statement = "grad.value-bias";
    if (slot == SINKPROOF_B_V && pass->meaning->bias_of_ones) return bias_of_ones(pass, layer);
    for (size_t i = 0; i < sizeof linear / sizeof *linear; i++) {
        bool bias = slot == linear[i].bias;
        if (slot != linear[i].weight && !bias) continue;
        near_set *dy = linear[i].result == TRACE_A12
                           ? backward_read_passed(pass, TRACE_A12, TRACE_A13, layer)
                           : backward_read_gradient(pass, linear[i].result, layer);
        near_set *x =
            dy != NULL && !bias ? backward_read_point(pass, linear[i].input, layer) : NULL;
        return of_linear(pass, slot, dy, x, bias, layer);
    }
    switch (slot) {
    case SINKPROOF_SINKS:
        *statement = "grad.sink";
        return backward_sink_sets(pass, layer);
    case SINKPROOF_EMBEDDING:
        *statement = "grad.embedding";
        return embedding_gradient(pass);
    case SINKPROOF_W_UP:
    case SINKPROOF_B_UP:
    case SINKPROOF_W_DOWN:
    case SINKPROOF_B_DOWN:
        return backward_experts_weight(pass, slot, layer);
    default:
        break;
    }
    *statement = "grad.rmsnorm";
    near_set *x = NULL, *dy = NULL;
    size_t rows = pass->n;
    if (slot == SINKPROOF_ATTN_NORM && (x = stream_before(pass, layer)) != NULL)
        dy = backward_read_gradient(pass, TRACE_A1, layer);
    if (slot == SINKPROOF_MLP_NORM && (x = backward_read_point(pass, TRACE_A13, layer)) != NULL)
        dy = backward_read_gradient(pass, TRACE_M1, layer);
    if (slot == SINKPROOF_FINAL_NORM &&
        (x = backward_read_point(pass, TRACE_M12, c->n_layers - 1)) != NULL)
        dy = backward_read_gradient(pass, TRACE_F1, 0);
    if (slot == SINKPROOF_Q_NORM && (x = backward_read_point(pass, TRACE_A2_Q, layer)) != NULL)
        dy = backward_read_gradient(pass, TRACE_A3_Q, layer), rows *= c->n_heads;
    if (slot == SINKPROOF_K_NORM && (x = backward_read_point(pass, TRACE_A2_K, layer)) != NULL)
        dy = backward_read_gradient(pass, TRACE_A3_K, layer), rows *= c->n_kv_heads;
    return scale_gradient(pass, slot, layer, x, dy, rows);
}
