// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What an engine with a supposed mistake computes for a query, in binary64.
#include "audit/diagnose/attention_screen.h"
#include "ref/scaled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_VALUE SIZE_MAX

// The keys that a query reads, and their weights.
typedef struct row_reads {
    size_t first, end, n, parts, all;
    double *z_e, *a_e; // of those that are read
    double *sums_e;    // how often each counts in the sum
    size_t *key_e;     // the keys' places in the cache
    size_t *value_e;   // those of their values; NO_VALUE: it is zero
    size_t *part_e;
} row_reads;

static double dot(const double *x, const double *y, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += x[k] * y[k];
    return sum;
}

// ---- weights

// The end of the part whose first key is at `begin`; a part without keys ends there.
static size_t part_end(const row_reads *r, size_t begin, size_t part) {
    while (begin < r->n && r->part_e[begin] == part) begin++;
    return begin;
}

static void merge_parts(const sinkproof_attending *how, row_reads *r, double b) {
    const sinkproof_merging *m = &how->merging;
    double top = how->merging.sink_beside ? b : -INFINITY, total = 0;
    double *of_part = calloc(2 * r->parts + 1, sizeof *of_part), *sum = of_part + r->parts;
    for (size_t p = 0, begin = 0, end; of_part != NULL && p < r->parts; p++, begin = end) {
        double high = b, keys = 0;
        end = part_end(r, begin, p);
        for (size_t e = begin; e < end; e++) high = r->z_e[e] > high ? r->z_e[e] : high;
        for (size_t e = begin; e < end; e++) keys += exp(r->z_e[e] - high);
        double sink = exp(b - high);
        bool divides = sinkproof_in_part(m->sink_divides, p, r->parts);
        bool counts = sinkproof_in_part(m->sink_in_lse, p, r->parts);
        sum[p] = high + log(keys + (divides ? sink : 0));
        of_part[p] = m->exponent * (high + log(keys + (counts ? sink : 0)));
        top = fmax(top, of_part[p]);
    }
    if (m->sink_too) b *= m->exponent;
    for (size_t p = 0; of_part != NULL && p < r->parts; p++)
        total += of_part[p] = exp(of_part[p] - top);
    if (m->sink_beside) total += exp(b - top);
    for (size_t e = 0; of_part != NULL && e < r->n; e++) {
        size_t p = r->part_e[e], of = m->reversed ? r->parts - 1 - p : p;
        r->a_e[e] = exp(r->z_e[e] - sum[p]) * of_part[of] / total;
    }
    free(of_part);
}

// The maximum that each part has: its own, or that of the parts up to it, or of the sink too.
static void unscale_parts(const sinkproof_attending *how, row_reads *r, double b) {
    const sinkproof_merging *m = &how->merging;
    double all = b, sum = 0, top = -INFINITY, above = 0, more = 0;
    for (size_t e = 0; e < r->n; e++) all = fmax(all, r->z_e[e]);
    sum = m->begun && (m->unscaled & SINKPROOF_MERGE_SUMS) ? 1 : exp(b - all);
    if (m->begun) top = b;
    for (size_t e = 0; e < r->n; e++) {
        bool begins = e == 0 || r->part_e[e] != r->part_e[e - 1];
        if (begins && !m->running) top = -INFINITY;
        for (size_t f = e; begins && f < r->n && r->part_e[f] == r->part_e[e]; f++)
            top = fmax(top, r->z_e[f]);
        if (begins) more = exp(all - top);
        above = exp(r->z_e[e] - all);
        sum += m->unscaled & SINKPROOF_MERGE_SUMS ? above * more : above;
        r->a_e[e] = m->unscaled & SINKPROOF_MERGE_OUTPUTS ? above * more : above;
    }
    for (size_t e = 0; e < r->n; e++) r->a_e[e] /= sum;
}

// What is left of a mean of parts: some have no keys, or the sink gates it.
static void weigh_mean(const sinkproof_attending *how, row_reads *r, double b) {
    double by = 1, top = b, sum = 0;
    by = (double)r->parts / (double)sinkproof_attending_parts(how, r->parts, r->end, r->all);
    for (size_t e = 0; e < r->n; e++) top = fmax(top, r->z_e[e]);
    for (size_t e = 0; e < r->n; e++) sum += exp(r->z_e[e] - top);
    if (how->merging.gated) by *= sum / (sum + exp(b - top));
    for (size_t e = 0; e < r->n; e++) r->a_e[e] *= by;
}

// Leaves out all but the largest weights; of equal ones the first.
static void keep_largest(row_reads *r, size_t kept) {
    for (size_t e = 0; e < r->n; e++) {
        size_t larger = 0;
        for (size_t f = 0; f < r->n; f++)
            larger += fabs(r->a_e[f]) > r->a_e[e] || (f < e && fabs(r->a_e[f]) == r->a_e[e]);
        r->z_e[e] = larger < kept ? r->a_e[e] : 0;
    }
    memcpy(r->a_e, r->z_e, r->n * sizeof *r->a_e);
}

static void leave_out_weights(const sinkproof_attending *how, row_reads *r) {
    double sum = 0;
    const sinkproof_rounding as = {.format = how->read.format, .scale = how->read.scale};
    if (how->weights_kept > 0 && how->weights_kept < r->n) keep_largest(r, how->weights_kept);
    if (how->read.of & SINKPROOF_READ_WEIGHTS) sinkproof_scaled_read(as, 1, 1, r->n, r->a_e);
    for (size_t e = 0; e < r->n; e++) {
        double a = r->a_e[e] < how->weight_low ? 0 : r->a_e[e];
        sum += r->a_e[e] = a < how->weight_high ? a : how->weight_high;
    }
    for (size_t e = 0; how->weights_over && sum > 0 && e < r->n; e++) r->a_e[e] /= sum;
}

// Keeps of the keys those that are marked.
static void keep_keys(row_reads *r, const bool *kept_e) {
    size_t n = 0;
    for (size_t e = 0; e < r->n; e++) {
        if (!kept_e[e]) continue;
        r->z_e[n] = r->z_e[e], r->sums_e[n] = r->sums_e[e];
        r->key_e[n] = r->key_e[e], r->value_e[n] = r->value_e[e];
        r->part_e[n] = r->part_e[e], n++;
    }
    r->n = n;
}

// Leaves out keys by their scores: all but the largest, those far below them, other parts.
static void leave_out_scores(const sinkproof_attending *how, row_reads *r) {
    if (how->scores_kept == 0 && how->score_within == 0 && how->parts_kept == SINKPROOF_KEPT_ALL)
        return;
    bool *kept_e = calloc(r->n + 1, sizeof *kept_e);
    size_t top = 0;
    for (size_t e = 0; e < r->n; e++)
        if (r->z_e[e] > r->z_e[top]) top = e;
    for (size_t e = 0; kept_e != NULL && e < r->n; e++) {
        size_t larger = 0;
        for (size_t f = 0; how->scores_kept > 0 && f < r->n; f++)
            larger += r->z_e[f] > r->z_e[e] || (f < e && r->z_e[f] == r->z_e[e]);
        kept_e[e] =
            (how->scores_kept == 0 || larger < how->scores_kept) &&
            (how->score_within == 0 || r->z_e[top] - r->z_e[e] <= how->score_within) &&
            sinkproof_part_is_kept(how->parts_kept, r->part_e[e], r->part_e[top], r->parts - 1);
    }
    if (kept_e != NULL) keep_keys(r, kept_e);
    free(kept_e);
}

// Weights that are no softmax; returns the sink's.
static double weigh_otherwise(const sinkproof_attending *how, row_reads *r, double b, double top) {
    double number = how->summing.number;
    double own = sinkproof_weighed(how->weighing, number, b, top), sum = own;
    bool divided = sinkproof_weighing_divides(how->weighing);
    for (size_t e = 0; e < r->n; e++) {
        r->a_e[e] = sinkproof_weighed(how->weighing, number, r->z_e[e], top);
        sum += r->a_e[e];
    }
    if (how->weighing == SINKPROOF_WEIGH_TWICE) sum *= sum;
    for (size_t e = 0; divided && e < r->n; e++) r->a_e[e] /= sum;
    return divided ? own / sum : own;
}

// Less than the sink's logit where its maximum is another one.
static double sink_more(const sinkproof_summing *s, const row_reads *r, double b) {
    double all = s->top_of_keys ? -INFINITY : b, own = all;
    size_t from, to;
    sinkproof_top_keys(s, r->first, r->n, &from, &to);
    for (size_t e = 0; e < r->n; e++) {
        all = fmax(all, r->z_e[e]);
        if (e >= from && e < to) own = fmax(own, r->z_e[e]);
    }
    return r->n == 0 ? 0 : all - (s->sink_top == SINKPROOF_TOP_OWN ? b : own);
}

static double weigh_again(row_reads *r, double sink) {
    double sum = exp(sink);
    for (size_t e = 0; e < r->n; e++) sum += exp(r->a_e[e]);
    for (size_t e = 0; e < r->n; e++) r->a_e[e] = exp(r->a_e[e]) / sum;
    return exp(sink) / sum;
}

// The weights of the keys that are read; returns the sink's.
static double weigh_keys(const sinkproof_attending *how, row_reads *r, double b) {
    leave_out_scores(how, r);
    double count = how->sink_count * (how->sink_per_part ? (double)r->parts : 1), top = b, sum;
    if (how->merging.on) {
        if (how->merging.unscaled != 0)
            unscale_parts(how, r, b);
        else
            merge_parts(how, r, b);
        if (how->merging.mean != SINKPROOF_MEAN_SEEN || how->merging.gated) weigh_mean(how, r, b);
        return 0;
    }
    if (how->renormalised) count = 0;
    if (how->summing.sink_top != SINKPROOF_TOP_ALL) b += sink_more(&how->summing, r, b);
    for (size_t e = 0; e < r->n; e++) top = r->z_e[e] > top ? r->z_e[e] : top;
    if (how->weighing != SINKPROOF_WEIGH_SOFTMAX && how->weighing != SINKPROOF_WEIGH_AGAIN)
        return weigh_otherwise(how, r, b, top);
    for (size_t e = 0; e < r->n; e++) r->a_e[e] = exp(r->z_e[e] - top);
    double empty = sinkproof_empty_count(&how->summing, how->zero_keys, r->first, r->end);
    sum = count * exp(b - top) + how->sum_plus + empty * exp(-top);
    for (size_t e = 0; e < r->n; e++) sum += r->sums_e[e] * r->a_e[e];
    if (how->summing.format != SINKPROOF_REAL)
        sum = sinkproof_summed(&how->summing, r->first, r->n, r->a_e, exp(b - top));
    for (size_t e = 0; e < r->n; e++) r->a_e[e] /= sum;
    double sink = count * exp(b - top) / sum;
    if (how->zeros_in_sink) sink += empty * exp(-top) / sum;
    return how->weighing == SINKPROOF_WEIGH_AGAIN ? weigh_again(r, sink) : sink;
}

// ---- sinks

static sinkproof_head_counts counts_of(const attention_view *view) {
    return (sinkproof_head_counts){view->heads, view->groups};
}

// The mean, the largest or the smallest of some sinks.
static double sink_of_several(const double *b, size_t count, sinkproof_sink_made made) {
    bool mean = made == SINKPROOF_SINK_MEAN || made == SINKPROOF_SINK_OF_GROUP;
    bool large = made == SINKPROOF_SINK_LARGEST || made == SINKPROOF_SINK_GROUP_LARGE;
    double of = b[0];
    for (size_t k = 1; k < count; k++)
        of = mean ? of + b[k] : large ? fmax(of, b[k]) : fmin(of, b[k]);
    return mean ? of / (double)count : of;
}

// The logit of the sink of head h as it is made.
static double sink_as_made(const attention_view *view, const sinkproof_attending *how, size_t h) {
    size_t each = view->heads / view->groups, layers = view->config->n_layers;
    size_t by = (size_t)((how->sink_layer % (int)layers + (int)layers) % (int)layers);
    const double *b_h = &view->sink_lh[(view->of->layer + by) % layers * view->heads];
    double b = b_h[h];
    switch (how->sink_made) {
    case SINKPROOF_SINK_ABSOLUTE:
        b = fabs(b);
        break;
    case SINKPROOF_SINK_MEAN:
    case SINKPROOF_SINK_LARGEST:
    case SINKPROOF_SINK_SMALLEST:
        b = sink_of_several(b_h, view->heads, how->sink_made);
        break;
    case SINKPROOF_SINK_OF_GROUP:
    case SINKPROOF_SINK_GROUP_LARGE:
    case SINKPROOF_SINK_GROUP_SMALL:
        b = sink_of_several(b_h + h / each * each, each, how->sink_made);
        break;
    case SINKPROOF_SINK_E4M3:
        b = sinkproof_round(SINKPROOF_E4M3, b);
        break;
    case SINKPROOF_SINK_E5M2:
        b = sinkproof_round(SINKPROOF_E5M2, b);
        break;
    case SINKPROOF_SINK_WHOLE:
        b = nearbyint(b);
        break;
    case SINKPROOF_SINK_CUT:
        b = trunc(b);
        break;
    case SINKPROOF_SINK_STORED:
        break;
    }
    b = fmax(how->sink_low, fmin(how->sink_high, b));
    return b * how->sink_times * how->logits_times + how->sink_plus;
}

// ---- a query

// The value of a point of the trace that stands before the one in question.
static double traced(const attention_view *view, const sinkproof_tensor *tensor, size_t head,
                     size_t row, size_t column) {
    size_t each = tensor->shape[tensor->rank - 1];
    return sinkproof_tensor_value(tensor, (head * view->n + row) * each + column);
}

// Where the numbers of a query are.
typedef struct query_place {
    size_t head, row, of; // of: the head that it has
    size_t own, all;      // in its sequence: its position, and the keys
    ptrdiff_t base;       // the column of position 0
    sinkproof_sight sight;
    size_t key_group, value_group, own_group; // that of its own pass may be as defined
    const double *product_c; // with the keys of its head, as defined; NULL: not known
} query_place;

static query_place place_of(const attention_view *view, const sinkproof_attending *how,
                            const attention_sample *at) {
    sinkproof_sequence s = sinkproof_trace_sequence_of(view->of->trace, at->row);
    size_t begin = sinkproof_trace_first(view->of->trace);
    if (how->across)
        s = (sinkproof_sequence){.rows = view->n, .first = begin, .key = begin, .keys = view->n};
    sinkproof_head_counts n = counts_of(view);
    size_t of = sinkproof_attending_head(how->head, n, at->head, at->row);
    return (query_place){.head = at->head,
                         .row = at->row,
                         .of = of,
                         .key_group = sinkproof_attending_group(how, n, of, SINKPROOF_CACHE_KEYS),
                         .value_group =
                             sinkproof_attending_group(how, n, of, SINKPROOF_CACHE_VALUES),
                         .own_group = of / (n.heads / n.groups),
                         .own = s.first + at->row - s.row,
                         .all = s.first + s.rows,
                         .sight = {s.first + s.rows, view->config->window, view->layer_window},
                         .base = (ptrdiff_t)(s.key + s.keys) - (ptrdiff_t)(s.first + s.rows),
                         .product_c = at->product_c};
}

// The numbers of a column's key or value, which may be read otherwise; NULL: they are not known.
static const double *column_row(const attention_view *view, unsigned of, bool otherwise,
                                size_t column, size_t g) {
    if (column < view->from || column >= view->columns) return NULL;
    if (otherwise) return attention_read_row(view, of, column - view->from, g);
    const double *x = of == SINKPROOF_CACHE_KEYS ? view->k_cgd : view->v_cgd;
    return x + ((column - view->from) * view->groups + g) * view->dim;
}

// The numbers of a row's query.
static const double *query_row(const attention_view *view, bool otherwise, size_t row, size_t h) {
    if (otherwise) return attention_read_row(view, SINKPROOF_READ_QUERIES, row, h);
    return view->q_nhd + (row * view->heads + h) * view->dim;
}

// The product of a query and a key over sqrt(head_dim); NAN: it is not known.
static double product_of(const attention_view *view, const sinkproof_attending *how,
                         const query_place *q, size_t key, size_t first, size_t column) {
    bool queries = (how->read.of & SINKPROOF_READ_QUERIES) != 0;
    bool keys = sinkproof_attending_reads(how, SINKPROOF_CACHE_KEYS, q->own, first, key);
    bool own = how->group_spared && sinkproof_attending_is_own(how, q->own, key);
    size_t g = own ? q->own_group : q->key_group;
    bool plain = q->product_c != NULL && how->query_by == 0 && !queries && !keys &&
                 !how->transposed && q->of == q->head && g == q->own_group && how->end_term == 0;
    if (plain) return q->product_c[column];
    ptrdiff_t row = (ptrdiff_t)q->row + how->query_by;
    if (row < 0 || row >= (ptrdiff_t)view->n) row = (ptrdiff_t)q->row;
    const double *k = column_row(view, SINKPROOF_CACHE_KEYS, keys, column, g);
    size_t terms = how->end_term > 0 ? how->end_term - how->first_term : view->dim;
    if (k == NULL) return NAN;
    if (how->transposed) {
        g = q->head / (view->heads / view->groups);
        k = column_row(view, SINKPROOF_CACHE_KEYS, false, (size_t)((ptrdiff_t)q->own + q->base), g);
        queries = keys = false, row = (ptrdiff_t)key;
    }
    const double *x = query_row(view, queries, (size_t)row, q->of);
    double times = (queries ? how->read.times : 1) * (keys ? how->read.times : 1);
    return times * dot(x + how->first_term, k + how->first_term, terms) / sqrt((double)view->dim);
}

static double rule_at(const attention_view *view, sinkproof_rule rule,
                      const sinkproof_attending *how, const query_place *q) {
    if (rule == SINKPROOF_RULE_NONE) return 1;
    const sinkproof_rule_place at = {view->of->layer, q->head, view->heads, q->own};
    return sinkproof_rule_factor(rule, how->rule_number, &at);
}

// The score of a key that the mask lets through by its leak.
static double leaked(const sinkproof_attending *how, const query_place *q, size_t key, double z) {
    if (!sinkproof_attending_leaks(how, &q->sight, q->own, key)) return z;
    return how->leak == SINKPROOF_LEAK_ADDED ? z + how->leak_number : how->leak_number;
}

static double score_of(const attention_view *view, const sinkproof_attending *how,
                       const query_place *q, size_t key, size_t first,
                       const sinkproof_key_read *read) {
    size_t column = (size_t)((ptrdiff_t)key + q->base);
    if (view->scores != NULL) return traced(view, view->scores, q->head, q->row, column);
    double z = 0, limit = how->score_limit;
    if (!read->zero_key)
        z = product_of(view, how, q, key, first, (size_t)((ptrdiff_t)read->key + q->base)) *
            how->score_times * rule_at(view, how->score_rule, how, q);
    if (limit > 0 && how->limit_soft)
        z = limit * tanh(z / limit);
    else if (limit > 0)
        z = fmax(-limit, fmin(limit, z));
    return z + how->score_plus - sinkproof_attending_slope(how, view->heads, q->head, q->own, key);
}

// Adds a key's value times its weight to y.
static bool add_value(const attention_view *view, const sinkproof_attending *how,
                      const query_place *q, size_t key, size_t first, size_t value, double a,
                      double *y) {
    bool read = sinkproof_attending_reads(how, SINKPROOF_CACHE_VALUES, q->own, first, key);
    bool own = how->group_spared && sinkproof_attending_is_own(how, q->own, key);
    size_t g = own ? q->own_group : q->value_group;
    const double *v =
        column_row(view, SINKPROOF_CACHE_VALUES, read, (size_t)((ptrdiff_t)value + q->base), g);
    if (read) a *= how->read.value_times != 0 ? how->read.value_times : how->read.times;
    if (v == NULL) return a == 0;
#pragma omp simd
    for (size_t k = 0; k < view->dim; k++) y[k] += a * v[k];
    return true;
}

// Scores of the keys that are read.
static void read_keys(const attention_view *view, const sinkproof_attending *how,
                      const query_place *q, double b, row_reads *r, double *y) {
    size_t last = SIZE_MAX;
    for (size_t j = r->first; j < r->end; j++) {
        sinkproof_key_read read = sinkproof_attending_key(how, &q->sight, q->own, r->first, j);
        size_t in = sinkproof_attending_part(how, r->first, r->end, j);
        double z = score_of(view, how, q, j, r->first, &read);
        if (view->of->point == TRACE_A6) y[(ptrdiff_t)j + q->base] = z;
        if (how->leak != SINKPROOF_LEAK_NONE) z = leaked(how, q, j, z);
        if (read.times == 0) continue;
        r->parts += in != last, last = in;
        r->part_e[r->n] = r->parts - 1, r->key_e[r->n] = j;
        r->value_e[r->n] = read.zero_value ? NO_VALUE : read.value;
        r->sums_e[r->n] = read.sums / read.times;
        double more = read.times == 1 ? 0 : log(read.times);
        r->z_e[r->n++] = z * how->logits_times + more + (how->sink_on_key && j == 0 ? b : 0);
    }
}

// The weights, or the output, where the weights of keys and sink stand in other columns.
static void emulate_columns(const attention_view *view, const sinkproof_attending *how,
                            const query_place *q, const row_reads *r, double sink, double *y) {
    for (size_t e = 0; e <= r->n; e++) {
        double a = e < r->n ? r->a_e[e] : sink;
        size_t to =
            sinkproof_attending_column(how, q->all, q->own, e < r->n ? r->key_e[e] : q->all);
        if (to >= q->all) continue;
        if (view->of->point == TRACE_A10)
            y[(ptrdiff_t)to + q->base] = a;
        else if (!add_value(view, how, q, to, r->first, to, a, y))
            y[0] = NAN;
    }
}

void attention_emulate(attention_view *view, const sinkproof_attending *how,
                       const attention_sample *at, double *y) {
    if (!sinkproof_attending_is_at(how, at->head, at->row)) how = &sinkproof_attending_as_defined;
    size_t n = view->columns + 1;
    query_place q = place_of(view, how, at);
    size_t *places = (size_t *)(void *)(view->work + 3 * n);
    row_reads r = {.z_e = view->work,
                   .a_e = view->work + n,
                   .sums_e = view->work + 2 * n,
                   .key_e = places,
                   .part_e = places + n,
                   .value_e = places + 2 * n};
    sinkproof_trace_point point = view->of->point;
    r.all = q.all;
    double b = sink_as_made(view, how,
                            sinkproof_attending_head(how->sink, counts_of(view), q.of, at->row));
    bool known = attention_view_reads(view, &how->read);
    for (size_t k = 0; k < view->width; k++) y[k] = known ? 0 : NAN;
    sinkproof_attending_seen(how, &q.sight, q.own, &r.first, &r.end);
    if ((ptrdiff_t)r.first + q.base < 0) r.first = (size_t)-q.base;
    if (!known) return;
    read_keys(view, how, &q, b, &r, y);
    if (how->sink_on_key) b = -INFINITY;
    if (point == TRACE_A6) return;
    double sink = weigh_keys(how, &r, b);
    for (size_t e = 0; e < r.n && how->gates > 0; e++) r.a_e[e] *= 1 - sink;
    for (size_t e = 0; e < r.n && view->weights != NULL && !how->apart; e++)
        r.a_e[e] = traced(view, view->weights, at->head, at->row,
                          (size_t)((ptrdiff_t)r.key_e[e] + q.base));
    if (point != TRACE_A9) leave_out_weights(how, &r);
    bool elsewhere = how->columns != SINKPROOF_COLUMNS_DEFINED && point != TRACE_A9;
    if (elsewhere) emulate_columns(view, how, &q, &r, sink, y);
    for (size_t e = 0; e < r.n && !elsewhere; e++) {
        size_t j = r.key_e[e], value = r.value_e[e];
        if (point == TRACE_A9 || point == TRACE_A10)
            y[(ptrdiff_t)j + q.base] = r.a_e[e];
        else if (value != NO_VALUE && !add_value(view, how, &q, j, r.first, value, r.a_e[e], y))
            y[0] = NAN;
    }
    if (point == TRACE_A9) y[view->columns] = sink;
    if (point == TRACE_A11 && how->sink_value && !add_value(view, how, &q, 0, r.first, 0, sink, y))
        y[0] = NAN;
    double by = how->output_times * rule_at(view, how->output_rule, how, &q);
    for (size_t k = 0; point == TRACE_A11 && k < view->dim; k++) y[k] *= by;
}
