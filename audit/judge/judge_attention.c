// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's attention, A5 to A11.
#include "audit/judge/judge_seen.h"
#include "proofs/bounds/scaled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Compares the scores z_j of the visible keys.
static void compare_scores(judge_part *part, const query *q, sinkproof_honest *z_j) {
    const judge_pass *pass = part->pass;
    const trace_piece piece = {.point = TRACE_A6,
                               .offset = (q->h * pass->n + q->i) * pass->keys + q->first_key,
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
    piece_compare_zeros(part, point, row + end, part->pass->keys - end);
}

// The weights of all keys, from those a_j of the keys that a query sees and of the sink, where they
// stand in other columns.
static void shift_columns(const judge_part *part, const query *q, const sinkproof_honest *a_j,
                          sinkproof_honest *all_j) {
    size_t all = part->pass->keys;
    for (size_t j = 0; j < all; j++) all_j[j] = sinkproof_exact_set(0);
    for (size_t j = 0; j <= q->seen; j++) {
        size_t key = j < q->seen ? q->first_key + j : all;
        size_t to = sinkproof_attending_column(q->meant, all, q->own, key);
        if (to < all) all_j[to] = a_j[j];
    }
}

// Compares A9 (the sink's weight is the last column) and A10 (without the sink). Returns the
// relative variance that the weights of the row share: 0 once they are the engine's own. all_j: the
// weights of all keys, where they stand in other columns.
static double compare_weights(judge_part *part, const sinkproof_setting *s, const query *q,
                              double common, sinkproof_honest *a_j, sinkproof_honest *all_j) {
    size_t all = part->pass->keys, row = q->h * part->pass->n + q->i;
    size_t with_sink = row * (all + 1), keys = row * all;
    const trace_piece a9 = {.point = TRACE_A9,
                            .offset = with_sink + q->first_key,
                            .count = q->seen + 1,
                            .apart = with_sink + all,
                            .token = q->i,
                            .common = common};
    if (!q->meant->apart) compare_masked(part, TRACE_A9, with_sink, q);
    if (!q->meant->apart && piece_compare(part, &a9, a_j)) common = 0;
    if (s != NULL && !meant_kept_weights(q->meant, s, q->seen, a_j)) part->failed = true;
    if (all_j != NULL) {
        shift_columns(part, q, a_j, all_j);
        const trace_piece row_of_keys = {
            .point = TRACE_A10, .offset = keys, .count = all, .token = q->i, .common = common};
        return piece_compare(part, &row_of_keys, all_j) ? 0 : common;
    }
    if (q->meant->apart) return common;
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

// The key/value head that a head reads, of the keys or of the values.
static size_t block_group(const judge_part *part, const block *b, unsigned of) {
    return sinkproof_attending_group(b->meant, head_counts(part), block_head(part, b), of);
}

// Of scores that are transposed: the keys in the place of the queries, and the queries in that of
// the keys. The trace is one of a sequence from position 0 on.
static head_rows transposed_keys(const judge_part *part, const attention *a, const block *b) {
    size_t g = block_group(part, b, SINKPROOF_CACHE_KEYS), d = part->pass->config->head_dim;
    return (head_rows){.x = a->k.x + b->first * a->k.width + g * d, .width = a->k.width};
}

static head_rows transposed_queries(const judge_part *part, const attention *a, const block *b,
                                    size_t from) {
    size_t d = part->pass->config->head_dim, width = part->pass->config->n_heads * d;
    return (head_rows){.x = a->q_nhd + from * width + b->h * d, .width = width};
}

static sinkproof_setting weights_elements(const judge_pass *pass) {
    return pass_setting(pass, pass->config->n_heads * pass->n * (pass->keys + 1));
}

// The products q k of every row and key of the block, z [rows, keys], and the sink's logits b
// [rows]. Products with an unknown key are unknown.
static void block_products(judge_part *part, const block *b, const attention *a,
                           sinkproof_honest *z, sinkproof_honest *b_i) {
    const sinkproof_config *c = part->pass->config;
    const sinkproof_attending *m = b->meant;
    size_t d = c->head_dim, keys = b->high - b->low, first = m->first_term;
    size_t terms = m->end_term > 0 ? m->end_term - first : d, from = larger_size(b->low, a->k.from);
    size_t known = larger_size(b->high, from) - from, unknown = keys - known;
    sinkproof_setting s = weights_elements(part->pass);
    for (size_t r = 0; r < b->rows; r++)
        for (size_t j = 0; j < unknown; j++) z[r * keys + j] = sinkproof_unknown_set(0);
    head_rows q = m->transposed ? transposed_keys(part, a, b) : queries_as_read(part, a, b),
              k = {0};
    if (known > 0 && m->transposed)
        k = transposed_queries(part, a, b, from);
    else if (known > 0)
        k = keys_as_read(part, a, b, SINKPROOF_CACHE_KEYS,
                         block_group(part, b, SINKPROOF_CACHE_KEYS), from, known);
    sinkproof_planes q_id = sinkproof_planes_new(q.x, b->rows, d, q.width);
    sinkproof_planes q_it = first > 0 || terms < d
                                ? sinkproof_planes_new(q.x + first, b->rows, terms, q.width)
                                : (sinkproof_planes){0};
    sinkproof_planes k_jd = known > 0 ? sinkproof_planes_new(k.x + first, known, terms, k.width)
                                      : (sinkproof_planes){0};
    const sinkproof_accumulator sum = sinkproof_accumulator_at(s.policy, AT_A5_TERM, AT_A5_ACC);
    double *terms_i = part_allocate(part, b->rows, sizeof *terms_i);
    for (size_t i = 0; terms_i != NULL && i < b->rows; i++)
        terms_i[i] = sinkproof_score_terms(&s, terms, terms);
    if (terms_i == NULL || part->failed ||
        (known > 0 && !sinkproof_honest_accumulated(&s, &sum, q_it.mid != NULL ? &q_it : &q_id,
                                                    &k_jd, terms_i, false, z + unknown, keys)) ||
        !sink_logits(part, b, a, &s, &q_id, b_i))
        part->failed = true;
    free(terms_i);
    sinkproof_planes_free(&q_id);
    sinkproof_planes_free(&q_it);
    sinkproof_planes_free(&k_jd);
    head_rows_free(&q);
    head_rows_free(&k);
}

// An engine that shows its weights has divided them before they meet the values, and has one part.
static bool shows_weights(const judge_part *part) {
    return !part->pass->meaning->attending.apart &&
           (point_is_traced(part->pass, TRACE_A9, part->layer) ||
            point_is_traced(part->pass, TRACE_A10, part->layer));
}

static sinkproof_setting weights_setting(const judge_part *part, sinkproof_policy *shown) {
    sinkproof_setting s = weights_elements(part->pass);
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

// The scores of the keys that a query sees, from the products of all keys of the block.
static void query_scores(const judge_part *part, const block *b, const query *q,
                         const sinkproof_setting *s, const sinkproof_honest *product_j,
                         sinkproof_honest *z_j) {
    for (size_t j = 0; j < q->seen; j++) {
        sinkproof_key_read read = query_key(b, q, q->first_key + j);
        const score_place at = {part->layer, q->h, q->own, q->position + j};
        z_j[j] = meant_score(part->pass, s, b->meant, &at,
                             read.zero_key ? sinkproof_exact_set(0) : product_j[read.key - b->low]);
    }
}

// Judges A6 to A10 of the block's rows, from the products z [rows, keys] on.
static void block_weights(judge_part *part, const block *b, const sinkproof_honest *b_i,
                          const sinkproof_honest *products, seen_rows *to, double *common_i) {
    const judge_pass *pass = part->pass;
    size_t keys = b->high - b->low;
    sinkproof_policy shown;
    sinkproof_setting s = weights_setting(part, &shown);
    const sinkproof_rounding as_read = s.policy->at[AT_A11_WEIGHTS];
    sinkproof_honest *work = part_allocate(part, 3 * (b->seen + 1), sizeof *work);
    size_t *part_e = part_allocate(part, 2 * (b->seen + 1), sizeof *part_e);
    double *times_e = part_allocate(part, 3 * (b->seen + 1), sizeof *times_e);
    bool elsewhere = b->meant->columns != SINKPROOF_COLUMNS_DEFINED;
    sinkproof_honest *all_j = elsewhere ? part_allocate(part, pass->keys, sizeof *all_j) : NULL;
    size_t next = b->seen + 1;
    weights_room room = {work,          work + next, work + 2 * next, part_e,
                         part_e + next, times_e,     times_e + next,  times_e + 2 * next};
    for (size_t r = 0; !part->failed && !pass_has_ended(pass) && r < b->rows; r++) {
        query q = part_query(part, b, b->first + r);
        sinkproof_honest *z_j = &to->z[r * b->seen], *p_j = &to->p[r * keys], *a_j = room.a_j;
        query_scores(part, b, &q, &s, &products[r * keys], z_j);
        compare_scores(part, &q, z_j);
        if (!query_weights(part, b, &q, &s, z_j, b_i[r], &room, &common_i[r]))
            part->failed = true;
        else
            common_i[r] = compare_weights(part, &s, &q, common_i[r], a_j, all_j);
        if (!part->failed &&
            !sinkproof_honest_scaled(&s, AT_A11_WEIGHTS, as_read, 1, 1, q.seen, a_j))
            part->failed = true;
        for (size_t j = 0; j < keys; j++) p_j[j] = sinkproof_exact_set(0);
        for (size_t j = 0; !part->failed && elsewhere && j < keys; j++) p_j[j] = all_j[b->low + j];
        for (size_t j = 0; !part->failed && !elsewhere && j < q.seen; j++) {
            sinkproof_key_read read = query_key(b, &q, q.first_key + j);
            sinkproof_honest *p_v = &p_j[read.value - b->low];
            if (!read.zero_value)
                *p_v = read.value == q.first_key + j && b->meant->cache.kind == SINKPROOF_CACHE_NONE
                           ? a_j[j]
                           : sinkproof_honest_add(*p_v, a_j[j]);
        }
        if (pass->meaning->sink_has_value || b->meant->sink_value)
            p_j[0] = sinkproof_honest_add(p_j[0], a_j[q.seen]);
    }
    free(all_j);
    free(work);
    free(part_e);
    free(times_e);
}

// A11 with a running maximum and a sum in a known order. Its set replaces the set of the form that
// divides the weights first, or is joined with it where the policy admits both.
static void sum_running_values(judge_part *part, const block *b, const attention *a,
                               const sinkproof_setting *s, const sinkproof_honest *z,
                               const sinkproof_honest *b_i) {
    const sinkproof_config *c = part->pass->config;
    size_t d = c->head_dim, width = c->n_heads * d;
    size_t g = block_group(part, b, SINKPROOF_CACHE_VALUES);
    const sinkproof_accumulator sum = sinkproof_accumulator_at(s->policy, AT_A11_TERM, AT_A11_ACC);
    bool alone = s->policy->forms[SINKPROOF_FORM_OF_A9] == 1u << SINKPROOF_A9_RUNNING_MAX;
    sinkproof_honest *o_d = part_allocate(part, d, sizeof *o_d);
    for (size_t r = 0; o_d != NULL && r < b->rows; r++) {
        query q = part_query(part, b, b->first + r);
        const sinkproof_flash f = {
            q.seen, d, a->v.width, &z[r * b->seen], cached_at(&a->v, q.first_key) + g * d, b_i[r]};
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

static void scale_outputs(const sinkproof_setting *s, const sinkproof_attending *m,
                          const sinkproof_rule_place *at, size_t d, sinkproof_honest *o_d) {
    double by = m->output_times * sinkproof_rule_factor(m->output_rule, m->rule_number, at);
    for (size_t k = 0; by != 1 && k < d; k++)
        o_d[k] = sinkproof_honest_roundings(s, set_times(m, o_d[k], by), 4);
}

// Whether numbers that are added up may be off by the same: merged parts, sums that are rounded,
// other exponentials, scales.
static bool shares_errors(const sinkproof_attending *m) {
    return m->merging.on || m->weighing != SINKPROOF_WEIGH_SOFTMAX ||
           m->summing.format != SINKPROOF_REAL || m->summing.sink_top != SINKPROOF_TOP_ALL ||
           m->read.scale != SINKPROOF_SCALE_NONE;
}

// Judges A11 of the block's rows.
static void block_values(judge_part *part, const block *b, const attention *a,
                         const sinkproof_honest *p, const sinkproof_honest *z,
                         const sinkproof_honest *b_i, const double *common_i) {
    const judge_pass *pass = part->pass;
    const sinkproof_config *c = pass->config;
    size_t d = c->head_dim, width = c->n_heads * d, keys = b->high - b->low;
    size_t g = block_group(part, b, SINKPROOF_CACHE_VALUES);
    sinkproof_setting s = pass_setting(pass, pass->n * width);
    head_rows v = keys_as_read(part, a, b, SINKPROOF_CACHE_VALUES, g, b->low, keys);
    if (part->failed) return;
    sinkproof_planes weights = sinkproof_planes_new(p, b->rows, keys, keys);
    sinkproof_planes values = transpose_values(part, v.x, v.width, keys);
    head_rows_free(&v);
    double terms_i[QUERIES];
    for (size_t r = 0; r < b->rows; r++)
        terms_i[r] = (double)part_query(part, b, b->first + r).seen +
                     pass->meaning->sink_has_value + (b->meant->columns != 0);
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
        const sinkproof_rule_place at = {part->layer, b->h, c->n_heads,
                                         part_query(part, b, b->first + r).own};
        scale_outputs(&s, b->meant, &at, d, o_d);
        for (size_t k = 0; shares_errors(b->meant) && k < d; k++) o_d[k] = set_without_lean(o_d[k]);
        sinkproof_honest_finish(&s, AT_A11, d, o_d);
        piece_compare(part, &piece, o_d);
    }
    sinkproof_planes_free(&weights);
    sinkproof_planes_free(&values);
}

// A11 of rows that read unknown values, or whose weights are unknown.
static void compare_unknown_values(judge_part *part, const block *b, const attention *a) {
    size_t d = part->pass->config->head_dim, width = part->pass->config->n_heads * d;
    for (size_t r = 0; r < b->rows; r++) {
        size_t offset = (b->first + r) * width + b->h * d;
        const trace_piece piece = {
            .point = TRACE_A11, .offset = offset, .count = d, .token = b->first + r};
        for (size_t k = 0; k < d; k++) a->out_nhd[offset + k] = sinkproof_unknown_set(0);
        piece_compare(part, &piece, &a->out_nhd[offset]);
    }
}

// A6 to A10 of rows that see keys without a column: the trace does not show what they add up.
static void compare_cut_rows(judge_part *part, const block *b) {
    for (size_t r = 0; !part->failed && r < b->rows; r++) {
        query q = part_query(part, b, b->first + r);
        sinkproof_honest *x_j = part_allocate(part, q.seen + 1, sizeof *x_j);
        for (size_t j = 0; x_j != NULL && j <= q.seen; j++) x_j[j] = sinkproof_unknown_set(0);
        if (x_j != NULL) compare_scores(part, &q, x_j);
        if (x_j != NULL && !judge_lse(part, NULL, &(lse_row){.h = q.h, .i = q.i}))
            part->failed = true;
        for (size_t j = 0; x_j != NULL && j <= q.seen; j++) x_j[j] = sinkproof_unknown_set(0);
        if (x_j != NULL) compare_weights(part, NULL, &q, 0, x_j, NULL);
        free(x_j);
    }
}

// Judges the queries of a block. Either all of them are in the place of the meaning, or none is;
// and either all of them read unknown keys, or none does.
static void attend_queries(judge_part *part, const attention *a, block b) {
    const judge_pass *pass = part->pass;
    if (query_is_cut(part, a, b.first, &b)) {
        compare_cut_rows(part, &b);
        compare_unknown_values(part, &b, a);
        return;
    }
    find_seen_keys(part, &b);
    size_t keys = b.high - b.low;
    bool shown = point_is_traced(pass, TRACE_A6, part->layer) || shows_weights(part) ||
                 point_is_traced(pass, TRACE_LSE, part->layer) ||
                 point_is_traced(pass, TRACE_LSE_KEYS, part->layer);
    bool known = b.low >= a->v.from && (b.low >= a->k.from || shown);
    if (!known && !shown) { // nothing to compare on the way
        compare_unknown_values(part, &b, a);
        return;
    }
    sinkproof_honest *products = malloc(b.rows * keys * sizeof *products); // all written whole
    seen_rows to = {malloc(b.rows * b.seen * sizeof *to.z), malloc(b.rows * keys * sizeof *to.p)};
    sinkproof_honest b_i[QUERIES];
    double common_i[QUERIES];
    part->failed = part->failed || products == NULL || to.z == NULL || to.p == NULL;
    if (!part->failed) block_products(part, &b, a, products, b_i);
    if (!part->failed) block_weights(part, &b, b_i, products, &to, common_i);
    bool wanted = !pass_has_ended(pass) && !part_leaves_out_point(part, TRACE_A11);
    if (!part->failed && wanted && known) block_values(part, &b, a, to.p, to.z, b_i, common_i);
    if (!part->failed && wanted && !known) compare_unknown_values(part, &b, a);
    free(products);
    free(to.z);
    free(to.p);
}

// The block of one query, whose meaning its place decides.
static block block_of_query(const judge_part *part, size_t h, size_t i) {
    const sinkproof_attending *m = &part->pass->meaning->attending;
    bool in = sinkproof_attending_is_at(m, h, i);
    return (block){
        .h = h, .first = i, .rows = 1, .meant = in ? m : &sinkproof_attending_as_defined};
}

// The rows that are compared, where nothing reads the output of the others; NULL: all.
static const sinkproof_rows *rows_alone(const judge_part *part) {
    bool last = judge_attention_is_last(part->pass, part->layer);
    // a row whose values stand in another one is needed too
    return last && part->pass->unmoved == NULL ? part->pass->options->rows : part->pass->alone;
}

// Rows that read unknown keys stand in blocks of their own: an unknown value times a weight of 0 is
// unknown.
static void attend_block(judge_part *part, size_t index, void *of) {
    const attention *a = of;
    size_t n = part->pass->n, h = index / a->blocks, first = index % a->blocks * QUERIES;
    size_t end = n - first < QUERIES ? n : first + QUERIES;
    const sinkproof_rows *asked = rows_alone(part);
    if (asked != NULL) first = larger_size(first, asked->first);
    if (asked != NULL && asked->end < end) end = asked->end;
    while (first < end && !part->failed && !pass_has_ended(part->pass)) {
        block b = block_of_query(part, h, first);
        bool unknown = block_reads_unknown(part, a, b);
        for (; !reads_by_row(b.meant) && first + b.rows < end; b.rows++) {
            block next = block_of_query(part, h, first + b.rows);
            if (next.meant != b.meant || block_reads_unknown(part, a, next) != unknown) break;
        }
        attend_queries(part, a, b);
        first += b.rows;
    }
}

bool judge_attention(judge_pass *pass, const sinkproof_walk_step *step, sinkproof_honest *y_nhd) {
    const sinkproof_config *c = pass->config;
    sinkproof_layer layer = sinkproof_model_layer(pass->model, step->layer);
    sinkproof_walk_step scores = sinkproof_walk_step_at(pass->model, TRACE_A6, step->layer);
    sinkproof_honest *q_nhd = step_input(pass, &scores, 0);
    sinkproof_trace_point keys = scores.inputs[1].point, values = step->inputs[1].point;
    attention a = {.layer = &layer,
                   .q_nhd = q_nhd,
                   .out_nhd = y_nhd,
                   .number = step->layer,
                   .blocks = (pass->n + QUERIES - 1) / QUERIES};
    bool fine = read_heads(pass, AT_A5_Q, pass->n, c->n_heads, q_nhd) &&
                read_cached(pass, keys, step->layer, AT_A5_K, pass->at[keys], &a.k) &&
                read_cached(pass, values, step->layer, AT_A11_V, pass->at[values], &a.v) &&
                make_read_numbers(pass, &a) &&
                judge_in_parts(pass, step->layer, c->n_heads * a.blocks, attend_block, &a);
    free_read_numbers(&a);
    cached_free(&a.k);
    cached_free(&a.v);
    return fine;
}
