// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's walk through one layer's attention, A1 to A13.
#include "audit/judge/judge_internal.h"

#include <math.h>
#include <stdlib.h>

size_t sinkproof_first_key(const sinkproof_config *config, size_t layer, size_t i) {
    return config->sliding[layer] && i + 1 > config->window ? i + 1 - config->window : 0;
}

// ---- A4

enum { TURNED = 32 }; // tokens of a part

typedef struct rotation {
    sinkproof_trace_point point;
    size_t heads;
    sinkproof_honest *x_nhd;
} rotation;

static void rotate_rows(sinkproof_part *part, size_t index, void *of) {
    const rotation *r = of;
    const sinkproof_walk *walk = part->walk;
    size_t d = walk->config->head_dim, half = d / 2, end = (index + 1) * TURNED;
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * r->heads * d);
    sinkproof_honest *y_d = sinkproof_part_grab(part, d, sizeof *y_d);
    for (size_t i = index * TURNED; y_d != NULL && i < walk->n && i < end; i++) {
        for (size_t h = 0; h < r->heads; h++) {
            size_t offset = (i * r->heads + h) * d;
            sinkproof_honest *head = &r->x_nhd[offset];
            sinkproof_honest_rotate(&s, d, head, &walk->c_ip[i * half], &walk->s_ip[i * half], y_d);
            for (size_t k = 0; k < d; k++) head[k] = y_d[k];
            sinkproof_settle(
                part,
                &(sinkproof_piece){.point = r->point, .offset = offset, .count = d, .token = i},
                head);
        }
    }
    free(y_d);
}

static bool rotated(sinkproof_walk *walk, size_t l, sinkproof_trace_point point, size_t heads,
                    sinkproof_honest *x_nhd) {
    rotation r = {point, heads, x_nhd};
    return sinkproof_in_parts(walk, l, (walk->n + TURNED - 1) / TURNED, rotate_rows, &r);
}

// ---- A5 to A11

enum { QUERIES = 64 }; // of a part

typedef struct attention {
    const double *sinks_h;
    const sinkproof_honest *q_nhd, *k_ngd, *v_ngd;
    sinkproof_honest *out_nhd;
    size_t blocks; // of queries
} attention;

// One head, queries [first, first + rows), keys [low, high): those that one of them may see.
typedef struct block {
    size_t h, first, rows, low, high;
} block;

// Scores of row i, z_j for its visible keys, rounded and settled.
static void score_row(sinkproof_part *part, const sinkproof_setting *s, const block *b, size_t i,
                      size_t first_key, sinkproof_honest *z_j) {
    size_t n = part->walk->n, seen = i + 1 - first_key;
    for (size_t j = 0; j < seen; j++)
        z_j[j] = sinkproof_honest_score(s, part->walk->config->head_dim, z_j[j]);
    sinkproof_settle(part,
                     &(sinkproof_piece){.point = SINKPROOF_TRACE_A6,
                                        .offset = (b->h * n + i) * n + first_key,
                                        .count = seen,
                                        .token = i},
                     z_j);
}

// The weights of masked keys, at either side of the visible ones.
static void settle_masked(sinkproof_part *part, sinkproof_trace_point point, size_t row,
                          size_t first_key, size_t i) {
    sinkproof_settle_zeros(part, point, row, first_key);
    sinkproof_settle_zeros(part, point, row + i + 1, part->walk->n - i - 1);
}

// Row i of one head: z_j over its visible keys become weights, the sink's behind them. Returns the
// relative variance that the row's weights still share (0 once they are settled).
static double weights_row(sinkproof_part *part, const sinkproof_setting *s, const block *b,
                          size_t i, size_t first_key, const sinkproof_honest *z_j,
                          sinkproof_honest sink, sinkproof_honest *a_j) {
    size_t n = part->walk->n, seen = i + 1 - first_key, row = (b->h * n + i) * (n + 1);
    double common = 0;
    if (!sinkproof_honest_softmax(s, SINKPROOF_AT_A9, seen, z_j, sink, a_j, &common)) {
        part->failed = true;
        return 0;
    }
    settle_masked(part, SINKPROOF_TRACE_A9, row, first_key, i);
    bool whole = sinkproof_settle(part,
                                  &(sinkproof_piece){.point = SINKPROOF_TRACE_A9,
                                                     .offset = row + first_key,
                                                     .count = seen + 1,
                                                     .apart = row + n,
                                                     .token = i,
                                                     .common = common},
                                  a_j);
    settle_masked(part, SINKPROOF_TRACE_A10, row - b->h * n - i, first_key, i);
    bool keys = sinkproof_settle(part,
                                 &(sinkproof_piece){.point = SINKPROOF_TRACE_A10,
                                                    .offset = row - b->h * n - i + first_key,
                                                    .count = seen,
                                                    .token = i,
                                                    .common = whole ? 0 : common},
                                 a_j);
    return whole || keys ? 0 : common;
}

// [keys, d] of one key/value head from key `low` on -> [d, keys], so that a weighted sum is a
// product of rows.
static sinkproof_planes transposed(sinkproof_part *part, const sinkproof_honest *v_jd,
                                   size_t stride, size_t keys) {
    size_t d = part->walk->config->head_dim;
    sinkproof_honest *t = sinkproof_part_grab(part, keys * d, sizeof *t);
    if (t == NULL) return (sinkproof_planes){0};
    for (size_t j = 0; j < keys; j++)
        for (size_t k = 0; k < d; k++) t[k * keys + j] = v_jd[j * stride + k];
    sinkproof_planes planes = sinkproof_planes_of(t, d, keys, keys);
    free(t);
    return planes;
}

// A6 to A10 of the block's rows: p [rows, keys], zero where a key is masked.
static void block_weights(sinkproof_part *part, const block *b, const attention *a,
                          sinkproof_honest *z, sinkproof_honest *p, double *common_i) {
    const sinkproof_walk *walk = part->walk;
    size_t n = walk->n, keys = b->high - b->low;
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->config->n_heads * n * (n + 1));
    sinkproof_honest sink =
        sinkproof_honest_at(&s, SINKPROOF_AT_A8, sinkproof_known(a->sinks_h[b->h]));
    sinkproof_honest *a_j = sinkproof_part_grab(part, keys + 1, sizeof *a_j);
    for (size_t r = 0; !part->failed && r < b->rows; r++) {
        size_t i = b->first + r, first_key = sinkproof_first_key(walk->config, part->layer, i);
        sinkproof_honest *z_j = &z[r * keys + first_key - b->low], *p_j = &p[r * keys];
        score_row(part, &s, b, i, first_key, z_j);
        common_i[r] = weights_row(part, &s, b, i, first_key, z_j, sink, a_j);
        for (size_t j = b->low; j < b->high; j++)
            p_j[j - b->low] = j >= first_key && j <= i ? a_j[j - first_key] : sinkproof_known(0);
    }
    free(a_j);
}

// A11 of the block's rows.
static void block_values(sinkproof_part *part, const block *b, const attention *a,
                         const sinkproof_honest *p, const double *common_i) {
    const sinkproof_walk *walk = part->walk;
    const sinkproof_config *c = walk->config;
    size_t d = c->head_dim, width = c->n_heads * d, keys = b->high - b->low;
    size_t kv_width = c->n_kv_heads * d, g = b->h / (c->n_heads / c->n_kv_heads);
    sinkproof_setting s = sinkproof_walk_setting(walk, walk->n * width);
    sinkproof_planes weights = sinkproof_planes_of(p, b->rows, keys, keys);
    sinkproof_planes values =
        transposed(part, a->v_ngd + b->low * kv_width + g * d, kv_width, keys);
    double terms_i[QUERIES];
    for (size_t r = 0; r < b->rows; r++)
        terms_i[r] = (double)(b->first + r + 1 - sinkproof_first_key(c, part->layer, b->first + r));
    sinkproof_honest *out = a->out_nhd + b->first * width + b->h * d;
    if (!sinkproof_honest_products(&s, &weights, &values, terms_i, NULL, out, width))
        part->failed = true;
    for (size_t r = 0; !part->failed && r < b->rows; r++) {
        sinkproof_honest *o_d = &out[r * width];
        sinkproof_honest_finish(&s, SINKPROOF_AT_A11, d, o_d);
        sinkproof_settle(part,
                         &(sinkproof_piece){.point = SINKPROOF_TRACE_A11,
                                            .offset = (b->first + r) * width + b->h * d,
                                            .count = d,
                                            .token = b->first + r,
                                            .common = common_i[r]},
                         o_d);
    }
    sinkproof_planes_free(&weights), sinkproof_planes_free(&values);
}

static void attend_block(sinkproof_part *part, size_t index, void *of) {
    const attention *a = of;
    const sinkproof_walk *walk = part->walk;
    const sinkproof_config *c = walk->config;
    size_t d = c->head_dim, width = c->n_heads * d, kv_width = c->n_kv_heads * d;
    block b = {.h = index / a->blocks, .first = index % a->blocks * QUERIES};
    b.rows = walk->n - b.first < QUERIES ? walk->n - b.first : QUERIES;
    b.low = sinkproof_first_key(c, part->layer, b.first), b.high = b.first + b.rows;
    size_t keys = b.high - b.low, g = b.h / (c->n_heads / c->n_kv_heads);
    sinkproof_honest *z = sinkproof_part_grab(part, b.rows * keys, sizeof *z);
    sinkproof_honest *p = sinkproof_part_grab(part, b.rows * keys, sizeof *p);
    double common_i[QUERIES];
    if (z != NULL && p != NULL) {
        sinkproof_setting s = sinkproof_walk_setting(walk, c->n_heads * walk->n * (walk->n + 1));
        sinkproof_planes query =
            sinkproof_planes_of(a->q_nhd + b.first * width + b.h * d, b.rows, d, width);
        sinkproof_planes key =
            sinkproof_planes_of(a->k_ngd + b.low * kv_width + g * d, keys, d, kv_width);
        if (!sinkproof_honest_products(&s, &query, &key, NULL, NULL, z, keys)) part->failed = true;
        sinkproof_planes_free(&query), sinkproof_planes_free(&key);
        if (!part->failed) block_weights(part, &b, a, z, p, common_i);
        if (!part->failed) block_values(part, &b, a, p, common_i);
    }
    free(z);
    free(p);
}

static bool heads(sinkproof_walk *walk, size_t l, const sinkproof_layer *layer,
                  const sinkproof_honest *q_nhd, const sinkproof_honest *k_ngd,
                  const sinkproof_honest *v_ngd, sinkproof_honest *out_nhd) {
    double *sinks = sinkproof_decoded(&layer->sinks);
    attention a = {sinks, q_nhd, k_ngd, v_ngd, out_nhd, (walk->n + QUERIES - 1) / QUERIES};
    bool fine = sinks != NULL &&
                sinkproof_in_parts(walk, l, walk->config->n_heads * a.blocks, attend_block, &a);
    free(sinks);
    return fine;
}

bool sinkproof_walk_attention(sinkproof_walk *walk, size_t l, sinkproof_honest *x_nd) {
    const sinkproof_config *c = walk->config;
    size_t n = walk->n, wide = c->n_heads * c->head_dim, narrow = c->n_kv_heads * c->head_dim;
    sinkproof_layer layer = sinkproof_model_layer(walk->model, l);
    sinkproof_honest *t = malloc(n * c->hidden * sizeof *t), *q = malloc(n * wide * sizeof *q);
    sinkproof_honest *k = malloc(n * narrow * sizeof *k), *v = malloc(n * narrow * sizeof *v);
    sinkproof_honest *o = malloc(n * wide * sizeof *o);
    const sinkproof_projection
        a2_q = {SINKPROOF_AT_A2, SINKPROOF_TRACE_A2_Q, &layer.w_q, &layer.b_q, t, q},
        a2_k = {SINKPROOF_AT_A2, SINKPROOF_TRACE_A2_K, &layer.w_k, &layer.b_k, t, k},
        a2_v = {SINKPROOF_AT_A2, SINKPROOF_TRACE_A2_V, &layer.w_v, &layer.b_v, t, v},
        a12 = {SINKPROOF_AT_A12, SINKPROOF_TRACE_A12, &layer.w_o, &layer.b_o, o, t};
    bool fine = t != NULL && q != NULL && k != NULL && v != NULL && o != NULL &&
                sinkproof_walk_norm(walk, l, SINKPROOF_TRACE_A1, &layer.attn_norm, x_nd, t) &&
                sinkproof_walk_project(walk, l, &a2_q) && sinkproof_walk_project(walk, l, &a2_k) &&
                sinkproof_walk_project(walk, l, &a2_v) &&
                rotated(walk, l, SINKPROOF_TRACE_A4_Q, c->n_heads, q) &&
                rotated(walk, l, SINKPROOF_TRACE_A4_K, c->n_kv_heads, k) &&
                heads(walk, l, &layer, q, k, v, o) && sinkproof_walk_project(walk, l, &a12) &&
                sinkproof_walk_residual(walk, l, SINKPROOF_AT_A13, SINKPROOF_TRACE_A13, t, x_nd);
    free(t);
    free(q);
    free(k);
    free(v);
    free(o);
    return fine;
}
