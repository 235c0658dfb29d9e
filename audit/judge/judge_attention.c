// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's attention, A5 to A11.
#include "audit/judge/judge_internal.h"
#include "proofs/bounds/scaled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t first_seen_key(const sinkproof_config *config, size_t layer, size_t i) {
    return config->sliding[layer] && i + 1 > config->window ? i + 1 - config->window : 0;
}

enum { QUERIES = 64 }; // queries of a part

typedef struct attention {
    const sinkproof_layer *layer;
    const sinkproof_honest *q_nhd, *k_ngd, *v_ngd;
    sinkproof_honest *out_nhd;
    size_t blocks; // blocks of queries
} attention;

// One head, its queries [first, first + rows), and the keys [low, high) that at least one of them
// reads. seen: the most keys that one of them sees.
typedef struct block {
    size_t h, first, rows, low, high, seen;
    const sinkproof_attending *meant; // of all of these queries
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

static query part_query(const judge_part *part, const block *b, size_t i) {
    const judge_pass *pass = part->pass;
    const sinkproof_meaning *m = pass->meaning;
    const sinkproof_config *c = pass->config;
    size_t begin = pass_begin(&m->passes, i), last = pass_end(&m->passes, pass->n, i) - 1;
    size_t row = last - i < m->sees_later ? last : i + m->sees_later, first_key, end;
    if (m->positions_anew) row = i - begin;
    if (b->meant == &sinkproof_attending_as_defined) {
        first_key = first_seen_key(c, part->layer, row), end = row + 1;
    } else {
        const sinkproof_sight sight = {pass->n, c->window, c->sliding[part->layer] ? c->window : 0};
        sinkproof_attending_seen(b->meant, &sight, row, &first_key, &end);
    }
    if (m->cache_unread && first_key < begin) first_key = begin;
    if (m->sees_all) end = pass->n;
    return (query){b->h, i, first_key, end - first_key};
}

static sinkproof_key_read query_key(const judge_part *part, const block *b, const query *q,
                                    size_t j) {
    return sinkproof_attending_key(b->meant, part->pass->n, q->i, q->first_key, j);
}

static void include_key(block *b, bool none, size_t key) {
    if (none) return;
    if (key < b->low) b->low = key;
    if (key >= b->high) b->high = key + 1;
}

// Sets the keys that at least one query of the block reads.
static void find_seen_keys(const judge_part *part, block *b) {
    bool moved = b->meant->cache.kind != SINKPROOF_CACHE_NONE;
    b->low = part->pass->n, b->high = 0, b->seen = 0;
    for (size_t r = 0; r < b->rows; r++) {
        query q = part_query(part, b, b->first + r);
        size_t end = q.first_key + q.seen;
        if (q.seen > b->seen) b->seen = q.seen;
        include_key(b, false, q.first_key);
        include_key(b, false, end - 1);
        for (size_t j = q.first_key; moved && j < end; j++) {
            sinkproof_key_read read = query_key(part, b, &q, j);
            include_key(b, read.zero_key, read.key);
            include_key(b, read.zero_value, read.value);
        }
    }
    if (part->pass->meaning->sink_has_value) b->low = 0;
}

// Compares the scores z_j of the visible keys.
static void compare_scores(judge_part *part, const query *q, sinkproof_honest *z_j) {
    size_t n = part->pass->n;
    const trace_piece piece = {.point = TRACE_A6,
                               .offset = (q->h * n + q->i) * n + q->first_key,
                               .count = q->seen,
                               .token = q->i};
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

// A head as it is meant: the head whose query it has, and the key/value head that this one reads.
static sinkproof_head_counts head_counts(const judge_part *part) {
    return (sinkproof_head_counts){part->pass->config->n_heads, part->pass->config->n_kv_heads};
}
static size_t block_head(const judge_part *part, const block *b) {
    return sinkproof_attending_head(b->meant->head, head_counts(part), b->h, 0);
}
static size_t block_group(const judge_part *part, const block *b) {
    return sinkproof_attending_group(b->meant, head_counts(part), block_head(part, b));
}

// The sink's logit of each row of the block.
static bool sink_logits(judge_part *part, const block *b, const attention *a,
                        const sinkproof_setting *s, const sinkproof_planes *q_id,
                        sinkproof_honest *b_i) {
    const sinkproof_config *c = part->pass->config;
    const sinkproof_attending *m = b->meant;
    bool by_row = m->sink.choice == SINKPROOF_HEAD_ROW, fine = true;
    double *work = part_allocate(part, sinkproof_normaliser_work(c), sizeof *work);
    if (work == NULL) return false;
    for (size_t r = 0; fine && r < (by_row ? b->rows : 1); r++) {
        size_t h =
            sinkproof_attending_head(m->sink, head_counts(part), block_head(part, b), b->first + r);
        sinkproof_normaliser normaliser = sinkproof_head_normaliser(c, a->layer, h, work);
        sinkproof_planes rows =
            by_row ? sinkproof_planes_rows(q_id, r, 1) : sinkproof_planes_rows(q_id, 0, b->rows);
        fine = sinkproof_honest_sink_logits(s, &normaliser, &rows, b_i + r);
    }
    for (size_t r = 0; fine && r < b->rows; r++) {
        if (m->sink_times != 1)
            b_i[r] = sinkproof_honest_inside(
                s, sinkproof_honest_mul(b_i[r], sinkproof_exact_set(m->sink_times)));
        if (m->sink_plus != 0)
            b_i[r] = sinkproof_honest_inside(
                s, sinkproof_honest_add(b_i[r], sinkproof_exact_set(m->sink_plus)));
    }
    free(work);
    return fine;
}

// The products q k of every row and key of the block, z [rows, keys], and the sink's logits b
// [rows].
static void block_products(judge_part *part, const block *b, const attention *a,
                           sinkproof_honest *z, sinkproof_honest *b_i) {
    const sinkproof_config *c = part->pass->config;
    size_t d = c->head_dim, width = c->n_heads * d, kv_width = c->n_kv_heads * d, n = part->pass->n;
    size_t keys = b->high - b->low, g = block_group(part, b), h = block_head(part, b);
    sinkproof_setting s = pass_setting(part->pass, c->n_heads * n * (n + 1));
    sinkproof_planes q_id =
        sinkproof_planes_new(a->q_nhd + b->first * width + h * d, b->rows, d, width);
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

// The rows of a block, as they are read: seen keys [rows, seen], in the order of the cache.
typedef struct seen_rows {
    sinkproof_honest *z; // scores
    sinkproof_honest *p; // weights [rows, keys]: zero where a key is not read
} seen_rows;

// What a query's weights are made in.
typedef struct weights_room {
    sinkproof_honest *z_e, *a_e, *a_j; // of the keys that are read; of those that are seen
    size_t *part_e;
} weights_room;

// The weights a_j of the keys that a query sees and of the sink. Those that it does not read are 0.
static bool query_weights(const judge_part *part, const block *b, const query *q,
                          const sinkproof_setting *s, const sinkproof_honest *z_j,
                          sinkproof_honest sink, weights_room *room, double *common) {
    keys_read keys = {.first = q->first_key,
                      .end = q->first_key + q->seen,
                      .part_j = room->part_e,
                      .z_j = room->z_e};
    size_t last = SIZE_MAX;
    for (size_t j = 0; j < q->seen; j++) {
        sinkproof_key_read read = query_key(part, b, q, q->first_key + j);
        size_t in = sinkproof_attending_part(b->meant, keys.first, keys.end, q->first_key + j);
        if (read.times == 0) continue;
        keys.parts += in != last, last = in;
        room->part_e[keys.n] = keys.parts - 1;
        room->z_e[keys.n++] = score_counted(s, read.times, z_j[j]);
    }
    if (keys.n == 0) return false;
    if (!meant_weights(part->pass, b->meant, s, &keys, sink, room->a_e, common)) return false;
    for (size_t j = 0, e = 0; j < q->seen; j++) {
        sinkproof_key_read read = query_key(part, b, q, q->first_key + j);
        room->a_j[j] = read.times == 0 ? sinkproof_exact_set(0) : room->a_e[e++];
    }
    room->a_j[q->seen] = room->a_e[keys.n];
    return true;
}

// The scores of the keys that a query sees, from the products of all keys of the block.
static void query_scores(const judge_part *part, const block *b, const query *q,
                         const sinkproof_setting *s, const sinkproof_honest *product_j,
                         sinkproof_honest *z_j) {
    for (size_t j = 0; j < q->seen; j++) {
        sinkproof_key_read read = query_key(part, b, q, q->first_key + j);
        z_j[j] = meant_score(part->pass, s, b->meant->score_times,
                             read.zero_key ? sinkproof_exact_set(0) : product_j[read.key - b->low]);
    }
}

// Judges A6 to A10 of the block's rows, from the products z [rows, keys] on.
static void block_weights(judge_part *part, const block *b, const sinkproof_honest *b_i,
                          const sinkproof_honest *products, seen_rows *to, double *common_i) {
    const judge_pass *pass = part->pass;
    size_t n = pass->n, keys = b->high - b->low;
    sinkproof_policy shown;
    sinkproof_setting s = weights_setting(part, pass->config->n_heads * n * (n + 1), &shown);
    const sinkproof_rounding as_read = s.policy->at[AT_A11_WEIGHTS];
    sinkproof_honest *work = part_allocate(part, 3 * (b->seen + 1), sizeof *work);
    size_t *part_e = part_allocate(part, b->seen + 1, sizeof *part_e);
    weights_room room = {work, work + b->seen + 1, work + 2 * (b->seen + 1), part_e};
    for (size_t r = 0; !part->failed && !pass_has_ended(pass) && r < b->rows; r++) {
        query q = part_query(part, b, b->first + r);
        sinkproof_honest *z_j = &to->z[r * b->seen], *p_j = &to->p[r * keys], *a_j = room.a_j;
        query_scores(part, b, &q, &s, &products[r * keys], z_j);
        compare_scores(part, &q, z_j);
        if (!query_weights(part, b, &q, &s, z_j, b_i[r], &room, &common_i[r]))
            part->failed = true;
        else
            common_i[r] = compare_weights(part, &q, common_i[r], a_j);
        if (!part->failed &&
            !sinkproof_honest_scaled(&s, AT_A11_WEIGHTS, as_read, 1, 1, q.seen, a_j))
            part->failed = true;
        for (size_t j = 0; j < keys; j++) p_j[j] = sinkproof_exact_set(0);
        for (size_t j = 0; !part->failed && j < q.seen; j++) {
            sinkproof_key_read read = query_key(part, b, &q, q.first_key + j);
            sinkproof_honest *p_v = &p_j[read.value - b->low];
            if (!read.zero_value)
                *p_v = read.value == q.first_key + j && b->meant->cache.kind == SINKPROOF_CACHE_NONE
                           ? a_j[j]
                           : sinkproof_honest_add(*p_v, a_j[j]);
        }
        if (pass->meaning->sink_has_value) p_j[0] = sinkproof_honest_add(p_j[0], a_j[q.seen]);
    }
    free(work);
    free(part_e);
}

// A11 with a running maximum and a sum in a known order. Its set replaces the set of the form that
// divides the weights first, or is joined with it where the policy admits both.
static void sum_running_values(judge_part *part, const block *b, const attention *a,
                               const sinkproof_setting *s, const sinkproof_honest *z,
                               const sinkproof_honest *b_i) {
    const sinkproof_config *c = part->pass->config;
    size_t d = c->head_dim, width = c->n_heads * d, kv_width = c->n_kv_heads * d;
    size_t g = block_group(part, b);
    const sinkproof_accumulator sum = sinkproof_accumulator_at(s->policy, AT_A11_TERM, AT_A11_ACC);
    bool alone = s->policy->forms[SINKPROOF_FORM_OF_A9] == 1u << SINKPROOF_A9_RUNNING_MAX;
    sinkproof_honest *o_d = part_allocate(part, d, sizeof *o_d);
    for (size_t r = 0; o_d != NULL && r < b->rows; r++) {
        query q = part_query(part, b, b->first + r);
        const sinkproof_flash f = {
            q.seen, d, kv_width, &z[r * b->seen], a->v_ngd + q.first_key * kv_width + g * d,
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
    size_t d = part->pass->config->head_dim;
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
        query q = part_query(part, b, b->first + r);
        error_i[r] = sinkproof_honest_merge_error(s, q.seen, &z[r * b->seen], b_i[r]);
    }
    if (!sinkproof_honest_merged(s, weights, values, terms_i, error_i, out, width))
        part->failed = true;
}

static void scale_outputs(const sinkproof_setting *s, double times, size_t d,
                          sinkproof_honest *o_d) {
    for (size_t k = 0; times != 1 && k < d; k++)
        o_d[k] = sinkproof_honest_roundings(
            s, sinkproof_honest_mul(o_d[k], sinkproof_exact_set(times)), 2);
}

// Judges A11 of the block's rows.
static void block_values(judge_part *part, const block *b, const attention *a,
                         const sinkproof_honest *p, const sinkproof_honest *z,
                         const sinkproof_honest *b_i, const double *common_i) {
    const judge_pass *pass = part->pass;
    const sinkproof_config *c = pass->config;
    size_t d = c->head_dim, width = c->n_heads * d, keys = b->high - b->low;
    size_t kv_width = c->n_kv_heads * d, g = block_group(part, b);
    sinkproof_setting s = pass_setting(pass, pass->n * width);
    sinkproof_planes weights = sinkproof_planes_new(p, b->rows, keys, keys);
    sinkproof_planes values =
        transpose_values(part, a->v_ngd + b->low * kv_width + g * d, kv_width, keys);
    double terms_i[QUERIES];
    for (size_t r = 0; r < b->rows; r++)
        terms_i[r] = (double)part_query(part, b, b->first + r).seen + pass->meaning->sink_has_value;
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
        scale_outputs(&s, b->meant->output_times, d, o_d);
        sinkproof_honest_finish(&s, AT_A11, d, o_d);
        piece_compare(part, &piece, o_d);
    }
    sinkproof_planes_free(&weights);
    sinkproof_planes_free(&values);
}

// Judges the queries of a block, which are all in the place of the meaning, or all outside it.
static void attend_queries(judge_part *part, const attention *a, block b) {
    const judge_pass *pass = part->pass;
    find_seen_keys(part, &b);
    size_t keys = b.high - b.low;
    sinkproof_honest *products = malloc(b.rows * keys * sizeof *products); // all written whole
    seen_rows to = {malloc(b.rows * b.seen * sizeof *to.z), malloc(b.rows * keys * sizeof *to.p)};
    sinkproof_honest b_i[QUERIES];
    double common_i[QUERIES];
    part->failed = part->failed || products == NULL || to.z == NULL || to.p == NULL;
    if (!part->failed) block_products(part, &b, a, products, b_i);
    if (!part->failed) block_weights(part, &b, b_i, products, &to, common_i);
    if (!part->failed && !pass_has_ended(pass) && !part_leaves_out_point(part, TRACE_A11))
        block_values(part, &b, a, to.p, to.z, b_i, common_i);
    free(products);
    free(to.z);
    free(to.p);
}

static void attend_block(judge_part *part, size_t index, void *of) {
    const attention *a = of;
    const judge_pass *pass = part->pass;
    const sinkproof_attending *m = &pass->meaning->attending;
    size_t h = index / a->blocks, first = index % a->blocks * QUERIES;
    size_t rows = pass->n - first < QUERIES ? pass->n - first : QUERIES, done = 0;
    while (done < rows) {
        bool in = sinkproof_attending_is_at(m, h, first + done);
        size_t more = 1;
        while (done + more < rows && sinkproof_attending_is_at(m, h, first + done + more) == in)
            more++;
        attend_queries(part, a,
                       (block){.h = h,
                               .first = first + done,
                               .rows = more,
                               .meant = in ? m : &sinkproof_attending_as_defined});
        done += more;
    }
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
