// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Some queries of a failing point of attention, and the emulation of a supposed mistake there, in
// binary64.
#include "audit/diagnose/attention_screen.h"
#include "audit/judge/judge_prefix.h"
#include "audit/trace/trace_points.h"
#include "model/sinks.h"
#include "proofs/bounds/scaled.h"
#include "ref/normaliser.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- its distance

// Element k of the point, for a query.
static size_t element_of(const attention_view *view, size_t head, size_t row, size_t k) {
    return view->of->point == TRACE_A11 ? (row * view->heads + head) * view->width + k
                                        : (head * view->n + row) * view->width + k;
}

// Whether a row sees the key of a column by the definition.
static bool is_seen(const attention_view *view, size_t row, size_t column) {
    sinkproof_sequence s = sinkproof_trace_sequence_of(view->of->trace, row);
    size_t own = s.first + row - s.row, before = s.first + s.rows, behind = s.key + s.keys;
    if (column + before < behind || column + before - behind > own) return false;
    return view->layer_window == 0 || column + before - behind + view->layer_window > own;
}

void attention_residual(attention_view *view, const sinkproof_attending *how, size_t s,
                        double *residual) {
    const attention_sample *at = &view->samples[s];
    size_t first = element_of(view, at->head, at->row, 0);
    const double *lo = view->of->lo + first, *hi = view->of->hi + first, *v = view->of->v + first;
    attention_emulate(view, how, at, residual);
    for (size_t k = 0; k < view->width; k++) {
        double half = (hi[k] - lo[k]) / 2, least = view->roundoff * fabs(v[k]) + 0x1p-149;
        residual[k] = (v[k] - residual[k]) / (half > least ? half : least);
    }
    // a masked key's score is not a number of the point
    for (size_t k = 0; k < view->width && view->of->point == TRACE_A6; k++)
        if (!is_seen(view, at->row, k)) residual[k] = 0;
}

double attention_misfit(attention_view *view, const sinkproof_attending *how, size_t s) {
    double *residual = view->work + 6 * (view->columns + 1), square = 0;
    attention_residual(view, how, s, residual);
    for (size_t k = 0; k < view->width; k++) square += residual[k] * residual[k];
    square /= (double)view->width;
    return square == square ? log1p(square) : INFINITY;
}

// ---- which queries

static bool query_fails(const attention_view *view, size_t head, size_t row) {
    bool inside = true;
    for (size_t k = 0; k < view->width; k++) {
        size_t e = element_of(view, head, row, k);
        inside = inside && view->of->v[e] >= view->of->lo[e] && view->of->v[e] <= view->of->hi[e];
    }
    return !inside;
}

// Whether a row sees by the definition only keys that the trace has.
static bool reads_known_keys(const attention_view *view, size_t row) {
    sinkproof_sequence s = sinkproof_trace_sequence_of(view->of->trace, row);
    size_t own = s.first + row - s.row, seen = own + 1;
    if (view->layer_window > 0 && seen > view->layer_window) seen = view->layer_window;
    bool several = sinkproof_trace_sequences(view->of->trace) > 1;
    return own + 1 - seen >= (several ? s.first + s.rows - s.keys : view->from);
}

// The products with the keys of the query's head, over sqrt(head_dim).
static void multiply_keys(const attention_view *view, size_t head, size_t row, double *product_c) {
    size_t d = view->dim, g = head / (view->heads / view->groups);
    const double *q = &view->q_nhd[(row * view->heads + head) * d];
    for (size_t c = 0; c < view->columns; c++) {
        const double *k = &view->k_cgd[((c - view->from) * view->groups + g) * d];
        double sum = 0;
        for (size_t i = 0; c >= view->from && i < d; i++) sum += q[i] * k[i];
        product_c[c] = c < view->from ? NAN : sum / sqrt((double)d);
    }
}

static bool is_zero(const attention_view *view, size_t head, size_t row) {
    bool zero = true;
    for (size_t k = 0; k < view->width && zero; k++)
        zero = view->of->v[element_of(view, head, row, k)] == 0;
    return zero;
}

static void add_sample(attention_view *view, size_t head, size_t row, bool fails) {
    if (view->n_samples == ATTENTION_SAMPLES) return;
    attention_sample *s = &view->samples[view->n_samples];
    double *product_c = &view->products[view->n_samples * view->columns];
    multiply_keys(view, head, row, product_c);
    *s = (attention_sample){.head = head, .row = row, .fails = fails, .product_c = product_c};
    s->misfit = attention_misfit(view, &sinkproof_attending_as_defined, view->n_samples++);
    view->n_failing += fails;
}

static int compare_misfits(const void *a, const void *b) {
    const attention_sample *x = a, *y = b;
    return x->misfit > y->misfit ? -1 : x->misfit < y->misfit;
}

// Takes up to `most` of the queries that fail, or of those that do not, evenly; of those whose keys
// the trace has.
static void take_samples(attention_view *view, const uint8_t *fails, bool wanted, size_t most) {
    size_t all = view->heads * view->n, there = 0, met = 0, taken = 0;
    for (size_t at = 0; at < all; at++)
        there += (fails[at] != 0) == wanted && reads_known_keys(view, at / view->heads);
    for (size_t at = 0; at < all; at++) {
        if ((fails[at] != 0) != wanted || !reads_known_keys(view, at / view->heads)) continue;
        // rows before heads, so that a part of the samples has every head and every stretch of rows
        if (met++ * most / there < taken || taken == most) continue;
        add_sample(view, at % view->heads, at / view->heads, wanted);
        taken++;
    }
}

// How far the rows that fail are apart, if all are as far, and are three or more; 0: they are not,
// or rows beside each other fail.
static size_t step_of_rows(const attention_view *view, const uint8_t *fails) {
    size_t last = SIZE_MAX, step = 0, rows = 0;
    for (size_t row = view->first_row; row < view->end_row; row++) {
        if (memchr(fails + row * view->heads, 1, view->heads) == NULL) continue;
        if (last != SIZE_MAX && step != 0 && row - last != step) return 0;
        if (last != SIZE_MAX) step = row - last;
        last = row, rows++;
    }
    return rows > 2 && step > 1 ? step : 0;
}

static bool choose_samples(attention_view *view) {
    enum { FAILING = 24, PASSING = 8 };
    size_t all = view->heads * view->n;
    uint8_t *fails = malloc(all + 1);
    if (fails == NULL) return false;
    view->first_row = view->n, view->first_head = view->heads;
    view->all_zero = view->of->point == TRACE_A11;
    for (size_t at = 0; at < all; at++) {
        size_t row = at / view->heads, head = at % view->heads;
        fails[at] = reads_known_keys(view, row) && query_fails(view, head, row);
        if (!fails[at]) continue;
        view->all_zero = view->all_zero && is_zero(view, head, row);
        if (head < 64) view->heads_failing |= 1ull << head;
        if (row < view->first_row) view->first_row = row;
        if (head < view->first_head) view->first_head = head;
        if (row >= view->end_row) view->end_row = row + 1;
        if (head >= view->end_head) view->end_head = head + 1;
    }
    view->row_step = step_of_rows(view, fails);
    take_samples(view, fails, true, FAILING);
    qsort(view->samples, view->n_samples, sizeof *view->samples, compare_misfits);
    take_samples(view, fails, false, PASSING);
    // heads between those that fail tell whether only some of them have a cause
    for (size_t h = view->first_head, some = 0; h < view->end_head && some < 4; h++)
        if (h < 64 && (view->heads_failing >> h & 1) == 0)
            add_sample(view, h, view->end_row - 1, false), some++;
    // the rows beside those that fail tell where a cause begins
    for (size_t h = view->first_head; h < view->end_head; h++) {
        bool first = view->first_row > 0 && reads_known_keys(view, view->first_row - 1);
        bool last = view->end_row < view->n && reads_known_keys(view, view->end_row);
        bool between = view->row_step > 0 && reads_known_keys(view, view->first_row + 1);
        if (first) add_sample(view, h, view->first_row - 1, false);
        if (last) add_sample(view, h, view->end_row, false);
        if (between) add_sample(view, h, view->first_row + 1, false);
    }
    free(fails);
    return true;
}

// ---- what the trace holds

// The sets of keys or values of the tokens before the trace, which are named; NULL: unknown.
static const sinkproof_honest *named_before(const attention_point *of,
                                            sinkproof_trace_point point) {
    const sinkproof_config *c = sinkproof_model_config(of->model);
    return sinkproof_prefix_sets(of->prefix, c, point, of->layer);
}

// How many earlier positions of a sequence have keys or values; of caches apart all that have a
// column, or none.
static size_t count_before(const attention_point *of, sinkproof_trace_point point,
                           const sinkproof_sequence *s) {
    const sinkproof_tensor *before = sinkproof_trace_before(of->trace, point, of->layer);
    bool named = named_before(of, point) != NULL;
    if (sinkproof_trace_sequences(of->trace) > 1)
        return before != NULL || (named && s->named > 0) ? s->keys - s->rows : 0;
    if (named) return s->first;
    return before != NULL ? before->shape[0] : 0;
}

// Writes the sets of keys or values of a sequence: of earlier positions those that the trace names,
// then those that it has, then those of its rows. Returns their number. *given: how many elements
// of the earlier ones that the trace has the sequences before have read; moves on.
static size_t read_sequence(const attention_point *of, sinkproof_trace_point point, size_t each,
                            const sinkproof_sequence *s, size_t *given, sinkproof_honest *x) {
    const sinkproof_tensor *before = sinkproof_trace_before(of->trace, point, of->layer);
    const sinkproof_tensor *rows = sinkproof_trace_find(of->trace, point, of->layer);
    const sinkproof_honest *named = named_before(of, point);
    bool several = sinkproof_trace_sequences(of->trace) > 1;
    size_t earlier = count_before(of, point, s), has = before == NULL ? 0
                                                       : several      ? earlier
                                                                      : before->shape[0];
    size_t from = (s->named_at + s->named - earlier) * each, at = 0;
    for (; at < (earlier - has) * each; at++) x[at] = named[from + at];
    for (size_t i = 0; i < has * each; i++)
        x[at++] = sinkproof_exact_set(sinkproof_tensor_value(before, *given + i));
    *given += has * each;
    for (size_t i = 0; i < s->rows * each; i++)
        x[at++] = sinkproof_exact_set(sinkproof_tensor_value(rows, s->row * each + i));
    return at;
}

// The queries; or the keys or values of each sequence, behind those of earlier positions.
static double *read_tensor(const attention_view *view, sinkproof_trace_point point,
                           sinkproof_point at, size_t heads) {
    const sinkproof_trace *trace = view->of->trace;
    const sinkproof_tensor *tensor = sinkproof_trace_find(trace, point, view->of->layer);
    const sinkproof_policy *policy = view->of->policy;
    bool queries = point == TRACE_A4_Q;
    size_t each = heads * view->dim, given = 0, read = 0;
    size_t count = (queries ? view->n : view->columns - view->from) * each;
    sinkproof_honest *x = tensor != NULL ? malloc((count + 1) * sizeof *x) : NULL;
    double *out = x != NULL ? malloc((count + 1) * sizeof *out) : NULL;
    sinkproof_setting set = sinkproof_setting_for(policy, count, 1e-9);
    for (size_t i = 0; out != NULL && queries && i < count; i++)
        x[i] = sinkproof_exact_set(sinkproof_tensor_value(tensor, i));
    for (size_t i = 0; out != NULL && !queries && i < sinkproof_trace_sequences(trace); i++) {
        sinkproof_sequence s = sinkproof_trace_sequence(trace, i);
        read += read_sequence(view->of, point, each, &s, &given, x + read);
    }
    if (out != NULL &&
        !sinkproof_honest_scaled(&set, at, policy->at[at], count / each, heads, view->dim, x)) {
        free(out);
        out = NULL;
    }
    for (size_t i = 0; out != NULL && i < count; i++) out[i] = x[i].mid;
    free(x);
    return out;
}

static double largest_size(const double *x, size_t n) {
    double largest = 0;
    for (size_t i = 0; x != NULL && i < n; i++) largest = fmax(largest, fabs(x[i]));
    return largest;
}

static bool read_sinks(attention_view *view) {
    size_t layers = view->config->n_layers;
    double *work = calloc(sinkproof_normaliser_work(view->config) + 1, sizeof *work);
    view->sink_lh = calloc(layers * view->heads, sizeof *view->sink_lh);
    for (size_t l = 0; work != NULL && view->sink_lh != NULL && l < layers; l++) {
        sinkproof_layer layer = sinkproof_model_layer(view->of->model, l);
        for (size_t h = 0; h < view->heads; h++)
            view->sink_lh[l * view->heads + h] =
                sinkproof_head_normaliser(view->config, &layer, h, work).logit;
    }
    free(work);
    return work != NULL && view->sink_lh != NULL;
}

static const sinkproof_tensor *shown_before(const attention_view *view, bool is_before,
                                            sinkproof_trace_point point) {
    return is_before ? sinkproof_trace_find(view->of->trace, point, view->of->layer) : NULL;
}

// The most keys of a sequence.
static size_t longest_sequence(const sinkproof_trace *trace) {
    size_t most = 0;
    for (size_t i = 0; i < sinkproof_trace_sequences(trace); i++) {
        sinkproof_sequence s = sinkproof_trace_sequence(trace, i);
        if (s.first + s.rows > most) most = s.first + s.rows;
    }
    return most;
}

bool attention_view_open(const attention_point *of, attention_view *view, bool *there) {
    const sinkproof_config *c = sinkproof_model_config(of->model);
    const sinkproof_trace_point needed[] = {TRACE_A4_Q, TRACE_A4_K, TRACE_A2_V};
    *view = (attention_view){.of = of, .config = c, .n = of->n, .heads = c->n_heads};
    *there = true;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        *there = *there && sinkproof_trace_find(of->trace, needed[i], of->layer) != NULL;
    // a sink that is a key has no logit of its own
    *there = *there && sinkproof_sinks_stored(c) != SINKPROOF_SINK_KEY;
    if (!*there) return true;
    size_t begin = sinkproof_trace_first(of->trace), columns = sinkproof_trace_columns(of->trace);
    size_t sequences = sinkproof_trace_sequences(of->trace), known = 0;
    // keys and values are known from one position on; of several sequences those of all columns
    for (size_t i = 0; i < sequences; i++) {
        sinkproof_sequence q = sinkproof_trace_sequence(of->trace, i);
        size_t earlier = count_before(of, TRACE_A4_K, &q);
        *there = *there && earlier == count_before(of, TRACE_A2_V, &q);
        known += q.rows + earlier;
    }
    bool apart = sinkproof_trace_is_apart(of->trace);
    *there = *there && (sequences == 1 ? !apart : known == columns);
    if (!*there) return true;
    view->columns = columns, view->keys = begin + of->n, view->from = columns - known;
    view->plain = sequences == 1, view->begin = begin;
    if (sequences > 1) view->keys = longest_sequence(of->trace);
    view->groups = c->n_kv_heads, view->dim = c->head_dim;
    view->width = of->point == TRACE_A11 ? c->head_dim : view->columns + (of->point == TRACE_A9);
    view->layer_window = c->sliding[of->layer] ? c->window : 0;
    view->scores = shown_before(view, of->point != TRACE_A6, TRACE_A6);
    view->weights = shown_before(view, of->point == TRACE_A11, TRACE_A10);
    if (view->weights == NULL)
        view->weights =
            shown_before(view, of->point == TRACE_A11 || of->point == TRACE_A10, TRACE_A9);
    const sinkproof_tensor *traced = sinkproof_trace_find(of->trace, of->point, of->layer);
    view->roundoff = sinkproof_unit_roundoff(sinkproof_trace_format(traced->dtype));
    view->q_nhd = read_tensor(view, TRACE_A4_Q, AT_A5_Q, view->heads);
    view->k_cgd = read_tensor(view, TRACE_A4_K, AT_A5_K, view->groups);
    view->v_cgd = read_tensor(view, TRACE_A2_V, AT_A11_V, view->groups);
    size_t key_numbers = (view->columns - view->from) * view->groups * view->dim;
    view->largest_q = largest_size(view->q_nhd, view->n * view->heads * view->dim);
    view->largest_k = largest_size(view->k_cgd, key_numbers);
    view->largest_v = largest_size(view->v_cgd, key_numbers);
    view->frequency_p = calloc(view->dim / 2 + 1, sizeof *view->frequency_p);
    if (view->frequency_p != NULL && c->rotation.kind != SINKPROOF_NO_ROTATION)
        sinkproof_yarn_frequencies(of->policy, c, view->frequency_p);
    view->work = calloc(7 * (view->columns + 1) + view->width + 8, sizeof *view->work);
    view->products = calloc(ATTENTION_SAMPLES * view->columns, sizeof *view->products);
    if (view->frequency_p == NULL || view->q_nhd == NULL || view->k_cgd == NULL ||
        view->v_cgd == NULL || view->work == NULL || view->products == NULL || !read_sinks(view) ||
        !choose_samples(view)) {
        attention_view_close(view);
        return false;
    }
    *there = view->n_failing > 0 && !view->all_zero;
    if (!*there) attention_view_close(view);
    return true;
}

void attention_view_close(attention_view *view) {
    attention_view_forget(view);
    free(view->q_nhd);
    free(view->k_cgd);
    free(view->v_cgd);
    free(view->sink_lh);
    free(view->frequency_p);
    free(view->work);
    free(view->products);
    *view = (attention_view){.of = NULL};
}
