// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's attention, A4 to A11.
#include "audit/judge/judge_internal.h"
#include "proofs/bounds/scaled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t first_seen_key(const sinkproof_config *config, size_t layer, size_t i) {
    return config->sliding[layer] && i + 1 > config->window ? i + 1 - config->window : 0;
}

// ---- A4

enum { TURNED = 32 }; // tokens of a part

typedef struct rotation {
    sinkproof_trace_point point;
    size_t heads;
    const sinkproof_turning *turning;
    sinkproof_honest *x_nhd;
} rotation;

static void rotate_token(judge_part *part, size_t i, void *of) {
    const rotation *r = of;
    const judge_pass *pass = part->pass;
    size_t d = pass->config->head_dim;
    sinkproof_setting s = pass_setting(pass, pass->n * r->heads * d);
    sinkproof_turns turns = token_turns(pass, r->point == TRACE_A4_K, i);
    sinkproof_honest *y_d = part_allocate(part, 5 * d, sizeof *y_d);
    for (size_t h = 0; y_d != NULL && h < r->heads; h++) {
        size_t offset = (i * r->heads + h) * d;
        const trace_piece piece = {.point = r->point, .offset = offset, .count = d, .token = i};
        sinkproof_honest *head = &r->x_nhd[offset];
        meant_turn(pass, &s, r->turning, &turns, head, y_d + d, y_d);
        for (size_t k = 0; k < d; k++) head[k] = y_d[k];
        piece_compare(part, &piece, head);
    }
    free(y_d);
}

bool judge_rotated(judge_pass *pass, const sinkproof_walk_step *step, sinkproof_honest *y_nhd) {
    const sinkproof_config *c = pass->config;
    bool query = step->point == TRACE_A4_Q;
    size_t heads = query ? c->n_heads : c->n_kv_heads;
    rotation r = {step->point, heads, query ? &pass->meaning->query : &pass->meaning->key, y_nhd};
    memcpy(y_nhd, step_input(pass, step, 0), pass->n * heads * c->head_dim * sizeof *y_nhd);
    return judge_each_token(pass, step->layer, TURNED, rotate_token, &r);
}

// ---- A5 to A11

enum { QUERIES = 64 }; // queries of a part

typedef struct attention {
    const sinkproof_layer *layer;
    const sinkproof_honest *q_nhd, *k_ngd, *v_ngd;
    sinkproof_honest *out_nhd;
    size_t blocks; // blocks of queries
} attention;

// One head, its queries [first, first + rows), and the keys [low, high) that at least one of them
// sees.
typedef struct block {
    size_t h, first, rows, low, high;
} block;

// Query i of head h, which sees the keys [first_key, first_key + seen).
typedef struct query {
    size_t h, i, first_key, seen;
} query;

// The first row of row i's pass.
static size_t pass_begin(const sinkproof_passes *passes, size_t i) {
    if (passes->rows == 0 || i < passes->first) return 0;
    return i - (i - passes->first) % passes->rows;
}

// The row behind the last of row i's pass.
static size_t pass_end(const sinkproof_passes *passes, size_t n, size_t i) {
    size_t rows = i < passes->first ? passes->first : passes->rows;
    if (passes->rows == 0 || n - pass_begin(passes, i) < rows) return n;
    return pass_begin(passes, i) + rows;
}

static query part_query(const judge_part *part, size_t h, size_t i) {
    const judge_pass *pass = part->pass;
    const sinkproof_meaning *m = pass->meaning;
    size_t begin = pass_begin(&m->passes, i), last = pass_end(&m->passes, pass->n, i) - 1;
    size_t row = last - i < m->sees_later ? last : i + m->sees_later;
    if (m->positions_anew) row = i - begin;
    size_t first_key = first_seen_key(pass->config, part->layer, row);
    if (m->cache_unread && first_key < begin) first_key = begin;
    size_t end = m->sees_all ? pass->n : row + 1;
    return (query){h, i, first_key, end - first_key};
}

// Sets the keys that at least one query of the block sees.
static void find_seen_keys(const judge_part *part, block *b) {
    b->low = part->pass->n, b->high = 0;
    for (size_t r = 0; r < b->rows; r++) {
        query q = part_query(part, b->h, b->first + r);
        size_t end = q.first_key + q.seen;
        if (q.first_key < b->low) b->low = q.first_key;
        if (end > b->high) b->high = end;
    }
    if (part->pass->meaning->sink_has_value) b->low = 0;
}

// Rounds the scores z_j of the visible keys and compares them.
static void compare_scores(judge_part *part, const sinkproof_setting *s, const query *q,
                           sinkproof_honest *z_j) {
    size_t n = part->pass->n;
    const trace_piece piece = {.point = TRACE_A6,
                               .offset = (q->h * n + q->i) * n + q->first_key,
                               .count = q->seen,
                               .token = q->i};
    for (size_t j = 0; j < q->seen; j++) z_j[j] = meant_score(part->pass, s, z_j[j]);
    piece_compare(part, &piece, z_j);
}

// Compares the weights of the masked keys before and after the visible ones; the row starts at
// `row`.
static void compare_masked(judge_part *part, sinkproof_trace_point point, size_t row,
                           const query *q) {
    piece_compare_zeros(part, point, row, q->first_key);
    size_t end = q->first_key + q->seen;
    piece_compare_zeros(part, point, row + end, part->pass->n - end);
}

// Compares A9 (the sink's weight is the last column) and A10 (without the sink). Returns the
// relative variance that the weights of the row share: 0 once they are the engine's own.
static double compare_weights(judge_part *part, const query *q, double common,
                              sinkproof_honest *a_j) {
    size_t n = part->pass->n, with_sink = (q->h * n + q->i) * (n + 1), keys = (q->h * n + q->i) * n;
    const trace_piece a9 = {.point = TRACE_A9,
                            .offset = with_sink + q->first_key,
                            .count = q->seen + 1,
                            .apart = with_sink + n,
                            .token = q->i,
                            .common = common};
    compare_masked(part, TRACE_A9, with_sink, q);
    if (piece_compare(part, &a9, a_j)) common = 0;
    const trace_piece a10 = {.point = TRACE_A10,
                             .offset = keys + q->first_key,
                             .count = q->seen,
                             .token = q->i,
                             .common = common};
    compare_masked(part, TRACE_A10, keys, q);
    return piece_compare(part, &a10, a_j) ? 0 : common;
}

// Transposes [keys, d] of one key/value head, from key `low` on, to [d, keys]: then a weighted sum
// is a product of rows.
static sinkproof_planes transpose_values(judge_part *part, const sinkproof_honest *v_jd,
                                         size_t stride, size_t keys) {
    size_t d = part->pass->config->head_dim;
    sinkproof_honest *t = part_allocate(part, keys * d, sizeof *t);
    if (t == NULL) return (sinkproof_planes){0};
    for (size_t j = 0; j < keys; j++)
        for (size_t k = 0; k < d; k++) t[k * keys + j] = v_jd[j * stride + k];
    sinkproof_planes planes = sinkproof_planes_new(t, d, keys, keys);
    free(t);
    return planes;
}

// The sink's logit of each row of the block.
static bool sink_logits(judge_part *part, const block *b, const attention *a,
                        const sinkproof_setting *s, const sinkproof_planes *q_id,
                        sinkproof_honest *b_i) {
    const sinkproof_config *c = part->pass->config;
    double *work = part_allocate(part, sinkproof_normaliser_work(c), sizeof *work);
    if (work == NULL) return false;
    sinkproof_normaliser normaliser = sinkproof_head_normaliser(c, a->layer, b->h, work);
    bool fine = sinkproof_honest_sink_logits(s, &normaliser, q_id, b_i);
    free(work);
    return fine;
}

// The products q k of every row and key of the block, z [rows, keys], and the sink's logits b
// [rows].
static void block_products(judge_part *part, const block *b, const attention *a,
                           sinkproof_honest *z, sinkproof_honest *b_i) {
    const sinkproof_config *c = part->pass->config;
    size_t d = c->head_dim, width = c->n_heads * d, kv_width = c->n_kv_heads * d, n = part->pass->n;
    size_t keys = b->high - b->low, g = meant_group(part->pass, b->h);
    sinkproof_setting s = pass_setting(part->pass, c->n_heads * n * (n + 1));
    sinkproof_planes q_id =
        sinkproof_planes_new(a->q_nhd + b->first * width + b->h * d, b->rows, d, width);
    sinkproof_planes k_jd =
        sinkproof_planes_new(a->k_ngd + b->low * kv_width + g * d, keys, d, kv_width);
    const sinkproof_accumulator sum = sinkproof_accumulator_at(s.policy, AT_A5_TERM, AT_A5_ACC);
    double *terms_i = part_allocate(part, b->rows, sizeof *terms_i);
    for (size_t i = 0; terms_i != NULL && i < b->rows; i++)
        terms_i[i] = sinkproof_score_terms(&s, d, d);
    if (terms_i == NULL ||
        !sinkproof_honest_accumulated(&s, &sum, &q_id, &k_jd, terms_i, false, z, keys) ||
        !sink_logits(part, b, a, &s, &q_id, b_i))
        part->failed = true;
    free(terms_i);
    sinkproof_planes_free(&q_id);
    sinkproof_planes_free(&k_jd);
}

// An engine that shows its weights has divided them before they meet the values, and has one part.
static bool shows_weights(const judge_part *part) {
    return point_is_traced(part->pass, TRACE_A9, part->layer) ||
           point_is_traced(part->pass, TRACE_A10, part->layer);
}

static sinkproof_setting weights_setting(const judge_part *part, size_t elements,
                                         sinkproof_policy *shown) {
    sinkproof_setting s = pass_setting(part->pass, elements);
    if (!shows_weights(part) || !sinkproof_policy_rounds_weights_once(s.policy)) return s;
    *shown = *s.policy;
    shown->at[AT_A9_UNNORM].format = SINKPROOF_REAL;
    s.policy = shown;
    return s;
}

// Judges A6 to A10 of the block's rows: p [rows, keys] is zero where a key is masked.
static void block_weights(judge_part *part, const block *b, const sinkproof_honest *b_i,
                          sinkproof_honest *z, sinkproof_honest *p, double *common_i) {
    const judge_pass *pass = part->pass;
    size_t n = pass->n, keys = b->high - b->low;
    sinkproof_policy shown;
    sinkproof_setting s = weights_setting(part, pass->config->n_heads * n * (n + 1), &shown);
    const sinkproof_rounding read = s.policy->at[AT_A11_WEIGHTS];
    sinkproof_honest *a_j = part_allocate(part, keys + 1, sizeof *a_j);
    for (size_t r = 0; !part->failed && !pass_has_ended(pass) && r < b->rows; r++) {
        query q = part_query(part, b->h, b->first + r);
        sinkproof_honest *z_j = &z[r * keys + q.first_key - b->low], *p_j = &p[r * keys];
        compare_scores(part, &s, &q, z_j);
        if (!meant_weights(pass, &s, q.first_key, q.seen, z_j, b_i[r], a_j, &common_i[r]))
            part->failed = true;
        else
            common_i[r] = compare_weights(part, &q, common_i[r], a_j);
        if (!part->failed && !sinkproof_honest_scaled(&s, AT_A11_WEIGHTS, read, 1, 1, q.seen, a_j))
            part->failed = true;
        for (size_t j = b->low; j < b->high; j++)
            p_j[j - b->low] = j >= q.first_key && j < q.first_key + q.seen ? a_j[j - q.first_key]
                                                                           : sinkproof_exact_set(0);
        if (pass->meaning->sink_has_value) p_j[0] = sinkproof_honest_add(p_j[0], a_j[q.seen]);
    }
    free(a_j);
}

// A11 with a running maximum and a sum in a known order. Its set replaces the set of the form that
// divides the weights first, or is joined with it where the policy admits both.
static void sum_running_values(judge_part *part, const block *b, const attention *a,
                               const sinkproof_setting *s, const sinkproof_honest *z,
                               const sinkproof_honest *b_i) {
    const sinkproof_config *c = part->pass->config;
    size_t d = c->head_dim, width = c->n_heads * d, keys = b->high - b->low;
    size_t kv_width = c->n_kv_heads * d, g = b->h / (c->n_heads / c->n_kv_heads);
    const sinkproof_accumulator sum = sinkproof_accumulator_at(s->policy, AT_A11_TERM, AT_A11_ACC);
    bool alone = s->policy->forms[SINKPROOF_FORM_OF_A9] == 1u << SINKPROOF_A9_RUNNING_MAX;
    sinkproof_honest *o_d = part_allocate(part, d, sizeof *o_d);
    for (size_t r = 0; o_d != NULL && r < b->rows; r++) {
        query q = part_query(part, b->h, b->first + r);
        const sinkproof_flash f = {q.seen,
                                   d,
                                   kv_width,
                                   &z[r * keys + q.first_key - b->low],
                                   a->v_ngd + q.first_key * kv_width + g * d,
                                   b_i[r]};
        sinkproof_honest *out = a->out_nhd + (b->first + r) * width + b->h * d;
        if (!sinkproof_honest_flash(s, &sum, &f, o_d)) part->failed = true;
        for (size_t k = 0; !part->failed && k < d; k++)
            out[k] = alone ? o_d[k] : sinkproof_honest_hull(out[k], o_d[k]);
    }
    free(o_d);
}

// What parts of the keys do to A11 of the block's rows, where the policy says that their outputs
// may be rounded. All keys are one part where the engine shows its weights.
static void merge_parts(judge_part *part, const block *b, const sinkproof_setting *s,
                        const sinkproof_planes *weights, const sinkproof_planes *values,
                        const double *terms_i, const sinkproof_honest *z,
                        const sinkproof_honest *b_i, sinkproof_honest *out, size_t width) {
    size_t d = part->pass->config->head_dim, keys = b->high - b->low;
    double error_i[QUERIES];
    if (!sinkproof_honest_merges_parts(s->policy)) return;
    if (shows_weights(part)) {
        const sinkproof_rounding *at = s->policy->at;
        bool again = at[AT_A11_PART].optional && at[AT_A11_PART].format == at[AT_A11].format;
        for (size_t r = 0; !again && r < b->rows; r++)
            sinkproof_honest_finish(s, AT_A11_PART, d, &out[r * width]);
        return;
    }
    for (size_t r = 0; r < b->rows; r++) {
        query q = part_query(part, b->h, b->first + r);
        error_i[r] =
            sinkproof_honest_merge_error(s, q.seen, &z[r * keys + q.first_key - b->low], b_i[r]);
    }
    if (!sinkproof_honest_merged(s, weights, values, terms_i, error_i, out, width))
        part->failed = true;
}

// Judges A11 of the block's rows.
static void block_values(judge_part *part, const block *b, const attention *a,
                         const sinkproof_honest *p, const sinkproof_honest *z,
                         const sinkproof_honest *b_i, const double *common_i) {
    const judge_pass *pass = part->pass;
    const sinkproof_config *c = pass->config;
    size_t d = c->head_dim, width = c->n_heads * d, keys = b->high - b->low;
    size_t kv_width = c->n_kv_heads * d, g = meant_group(part->pass, b->h);
    sinkproof_setting s = pass_setting(pass, pass->n * width);
    sinkproof_planes weights = sinkproof_planes_new(p, b->rows, keys, keys);
    sinkproof_planes values =
        transpose_values(part, a->v_ngd + b->low * kv_width + g * d, kv_width, keys);
    double terms_i[QUERIES];
    for (size_t r = 0; r < b->rows; r++)
        terms_i[r] =
            (double)part_query(part, b->h, b->first + r).seen + pass->meaning->sink_has_value;
    sinkproof_honest *out = a->out_nhd + b->first * width + b->h * d;
    const sinkproof_accumulator sum = sinkproof_accumulator_at(s.policy, AT_A11_TERM, AT_A11_ACC);
    bool rescaled =
        sinkproof_policy_admits(s.policy, SINKPROOF_FORM_OF_A9, SINKPROOF_A9_RUNNING_MAX);
    if (!sinkproof_honest_accumulated(&s, &sum, &weights, &values, terms_i, rescaled, out, width))
        part->failed = true;
    if (!part->failed && rescaled && sinkproof_is_running(&sum))
        sum_running_values(part, b, a, &s, z, b_i);
    if (!part->failed) merge_parts(part, b, &s, &weights, &values, terms_i, z, b_i, out, width);
    for (size_t r = 0; !part->failed && r < b->rows; r++) {
        sinkproof_honest *o_d = &out[r * width];
        const trace_piece piece = {.point = TRACE_A11,
                                   .offset = (b->first + r) * width + b->h * d,
                                   .count = d,
                                   .token = b->first + r,
                                   .common = common_i[r]};
        sinkproof_honest_finish(&s, AT_A11, d, o_d);
        piece_compare(part, &piece, o_d);
    }
    sinkproof_planes_free(&weights);
    sinkproof_planes_free(&values);
}

static void attend_block(judge_part *part, size_t index, void *of) {
    const attention *a = of;
    const judge_pass *pass = part->pass;
    block b = {.h = index / a->blocks, .first = index % a->blocks * QUERIES};
    b.rows = pass->n - b.first < QUERIES ? pass->n - b.first : QUERIES;
    find_seen_keys(part, &b);
    size_t keys = b.high - b.low;
    sinkproof_honest *z = malloc(b.rows * keys * sizeof *z); // both are written whole
    sinkproof_honest *p = malloc(b.rows * keys * sizeof *p);
    sinkproof_honest b_i[QUERIES];
    double common_i[QUERIES];
    part->failed = part->failed || z == NULL || p == NULL;
    if (!part->failed) block_products(part, &b, a, z, b_i);
    if (!part->failed) block_weights(part, &b, b_i, z, p, common_i);
    if (!part->failed && !pass_has_ended(pass) && !part_leaves_out_point(part, TRACE_A11))
        block_values(part, &b, a, p, z, b_i, common_i);
    free(z);
    free(p);
}

// Rounds queries as the scores read them, and keys and values as the cache stores them.
static bool read_heads(const judge_pass *pass, sinkproof_point at, size_t heads,
                       sinkproof_honest *x) {
    size_t d = pass->config->head_dim;
    sinkproof_setting s = pass_setting(pass, pass->n * heads * d);
    return sinkproof_honest_scaled(&s, at, s.policy->at[at], pass->n, heads, d, x);
}

bool judge_attention(judge_pass *pass, const sinkproof_walk_step *step, sinkproof_honest *y_nhd) {
    const sinkproof_config *c = pass->config;
    size_t n = pass->n, groups = c->n_kv_heads;
    sinkproof_layer layer = sinkproof_model_layer(pass->model, step->layer);
    sinkproof_walk_step scores = sinkproof_walk_step_at(pass->model, TRACE_A6, step->layer);
    sinkproof_honest *q_nhd = step_input(pass, &scores, 0), *k_ngd = step_input(pass, &scores, 1);
    sinkproof_honest *v_ngd = step_input(pass, step, 1);
    attention a = {&layer, q_nhd, k_ngd, v_ngd, y_nhd, (n + QUERIES - 1) / QUERIES};
    return read_heads(pass, AT_A5_Q, c->n_heads, q_nhd) &&
           read_heads(pass, AT_A5_K, groups, k_ngd) && read_heads(pass, AT_A11_V, groups, v_ngd) &&
           judge_in_parts(pass, step->layer, c->n_heads * a.blocks, attend_block, &a);
}
