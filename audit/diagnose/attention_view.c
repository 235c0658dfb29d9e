// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Some queries of a failing point of attention, and the emulation of a supposed mistake there, in
// binary64.
#include "audit/diagnose/attention_screen.h"
#include "model/sinks.h"
#include "proofs/bounds/scaled.h"
#include "ref/normaliser.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- what an engine computes

// The keys that a query reads, and their weights.
typedef struct row_reads {
    size_t first, end, n, parts;
    double *z_e, *a_e; // of those that are read
    size_t *key_e;     // the keys' places in the cache
    size_t *part_e;
} row_reads;

static double dot(const double *x, const double *y, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += x[k] * y[k];
    return sum;
}

// The sum of e^z over the keys of a part, over e^top; part SIZE_MAX: over all keys.
static double part_sum(const row_reads *r, size_t part, double top) {
    double sum = 0;
    for (size_t e = 0; e < r->n; e++)
        if (part == SIZE_MAX || r->part_e[e] == part) sum += exp(r->z_e[e] - top);
    return sum;
}

static void merge_parts(const sinkproof_attending *how, row_reads *r, double b) {
    const sinkproof_merging *m = &how->merging;
    double top = how->merging.sink_beside ? b : -INFINITY, total = 0;
    double *of_part = calloc(2 * r->parts + 1, sizeof *of_part), *sum = of_part + r->parts;
    for (size_t p = 0; of_part != NULL && p < r->parts; p++) {
        double high = b;
        for (size_t e = 0; e < r->n; e++)
            if (r->part_e[e] == p) high = fmax(high, r->z_e[e]);
        double keys = part_sum(r, p, high), sink = exp(b - high);
        bool divides = sinkproof_in_part(m->sink_divides, p, r->parts);
        bool counts = sinkproof_in_part(m->sink_in_lse, p, r->parts);
        sum[p] = high + log(keys + (divides ? sink : 0));
        of_part[p] = m->exponent * (high + log(keys + (counts ? sink : 0)));
        top = fmax(top, of_part[p]);
    }
    for (size_t p = 0; of_part != NULL && p < r->parts; p++) total += exp(of_part[p] - top);
    if (m->sink_beside) total += exp(b - top);
    for (size_t e = 0; of_part != NULL && e < r->n; e++) {
        size_t p = r->part_e[e];
        r->a_e[e] = exp(r->z_e[e] - sum[p]) * exp(of_part[p] - top) / total;
    }
    free(of_part);
}

// The weights of the keys that are read; returns the sink's.
static double weigh_keys(const sinkproof_attending *how, row_reads *r, double b) {
    double count = how->sink_count * (how->sink_per_part ? (double)r->parts : 1), top = b, sum;
    if (how->merging.on) {
        merge_parts(how, r, b);
        return 0;
    }
    if (how->renormalised) count = 0;
    for (size_t e = 0; e < r->n; e++) top = fmax(top, r->z_e[e]);
    sum = part_sum(r, SIZE_MAX, top) + count * exp(b - top);
    for (size_t e = 0; e < r->n; e++) r->a_e[e] = exp(r->z_e[e] - top) / sum;
    return count * exp(b - top) / sum;
}

static sinkproof_head_counts counts_of(const attention_view *view) {
    return (sinkproof_head_counts){view->heads, view->groups};
}

// A sink's logit as it is made.
static double sink_as_made(const attention_view *view, const sinkproof_attending *how, double b) {
    double sum = 0;
    for (size_t h = 0; h < view->heads; h++) sum += view->sink_h[h];
    switch (how->sink_made) {
    case SINKPROOF_SINK_ABSOLUTE:
        return fabs(b);
    case SINKPROOF_SINK_MEAN:
        return sum / (double)view->heads;
    case SINKPROOF_SINK_E4M3:
        return sinkproof_round(SINKPROOF_E4M3, b);
    case SINKPROOF_SINK_E5M2:
        return sinkproof_round(SINKPROOF_E5M2, b);
    case SINKPROOF_SINK_STORED:
        break;
    }
    return b;
}

// The value of a point of the trace that stands before the one in question.
static double traced(const attention_view *view, const sinkproof_tensor *tensor, size_t head,
                     size_t row, size_t j) {
    size_t each = tensor->shape[tensor->rank - 1];
    return sinkproof_tensor_value(tensor, (head * view->n + row) * each + j);
}

void attention_emulate(const attention_view *view, const sinkproof_attending *how, size_t head,
                       size_t row, double *y) {
    if (!sinkproof_attending_is_at(how, head, row)) how = &sinkproof_attending_as_defined;
    size_t n = view->n, d = view->dim,
           of = sinkproof_attending_head(how->head, counts_of(view), head, row);
    size_t g = sinkproof_attending_group(how, counts_of(view), of);
    double b = view->sink_h[sinkproof_attending_head(how->sink, counts_of(view), of, row)];
    const double *q = &view->q_nhd[(row * view->heads + of) * d];
    const double *k_jd = &view->k_ngd[g * d], *v_jd = &view->v_ngd[g * d];
    size_t stride = view->groups * d;
    size_t *places = (size_t *)(void *)(view->work + 2 * n);
    row_reads r = {.z_e = view->work, .a_e = view->work + n, .key_e = places, .part_e = places + n};
    sinkproof_trace_point point = view->of->point;
    b = sink_as_made(view, how, b) * how->sink_times * how->logits_times;
    for (size_t k = 0; k < view->width; k++) y[k] = 0;
    sinkproof_attending_seen(how, &view->sight, row, &r.first, &r.end);
    size_t last = SIZE_MAX;
    for (size_t j = r.first; j < r.end; j++) {
        sinkproof_key_read read = sinkproof_attending_key(how, n, row, r.first, j);
        size_t in = sinkproof_attending_part(how, r.first, r.end, j);
        double z = view->scores != NULL ? traced(view, view->scores, head, row, j) : 0;
        if (view->scores == NULL && !read.zero_key)
            z = dot(q, k_jd + read.key * stride, d) / sqrt((double)d) * how->score_times;
        if (view->scores == NULL && how->score_limit > 0)
            z = fmax(-how->score_limit, fmin(how->score_limit, z));
        if (point == TRACE_A6) y[j] = z;
        if (read.times == 0) continue;
        r.parts += in != last, last = in;
        r.part_e[r.n] = r.parts - 1, r.key_e[r.n] = j;
        r.z_e[r.n++] =
            z * how->logits_times + log(read.times) + (how->sink_on_key && j == 0 ? b : 0);
    }
    if (how->sink_on_key) b = -INFINITY;
    if (point == TRACE_A6) return;
    double sink = weigh_keys(how, &r, b);
    for (size_t e = 0; e < r.n; e++) {
        size_t j = r.key_e[e];
        sinkproof_key_read read = sinkproof_attending_key(how, n, row, r.first, j);
        if (how->gates > 0) r.a_e[e] *= 1 - sink;
        double a = view->weights != NULL ? traced(view, view->weights, head, row, j) : r.a_e[e];
        if (point == TRACE_A9 || point == TRACE_A10)
            y[j] = a;
        else if (!read.zero_value)
            for (size_t k = 0; k < d; k++) y[k] += a * v_jd[read.value * stride + k];
    }
    if (point == TRACE_A9) y[n] = sink;
    for (size_t k = 0; point == TRACE_A11 && k < d; k++) y[k] *= how->output_times;
}

// ---- its distance

// Element k of the point, for a query.
static size_t element_of(const attention_view *view, size_t head, size_t row, size_t k) {
    return view->of->point == TRACE_A11 ? (row * view->heads + head) * view->width + k
                                        : (head * view->n + row) * view->width + k;
}

void attention_residual(const attention_view *view, const sinkproof_attending *how, size_t s,
                        double *residual) {
    const attention_sample *at = &view->samples[s];
    attention_emulate(view, how, at->head, at->row, residual);
    for (size_t k = 0; k < view->width; k++) {
        size_t e = element_of(view, at->head, at->row, k);
        double half = (view->of->hi[e] - view->of->lo[e]) / 2, off = view->of->v[e] - residual[k];
        // a masked key's weight is exactly 0, and its score is not a number of the point
        if (view->of->point == TRACE_A6 && half == 0)
            residual[k] = 0;
        else
            residual[k] =
                off == 0 ? 0 : off / fmax(half, 0x1p-60 * fabs(view->of->v[e]) + 0x1p-149);
    }
}

double attention_misfit(const attention_view *view, const sinkproof_attending *how, size_t s) {
    double *residual = view->work + 4 * view->n, square = 0;
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

static void add_sample(attention_view *view, size_t head, size_t row, bool fails) {
    if (view->n_samples == ATTENTION_SAMPLES) return;
    attention_sample *s = &view->samples[view->n_samples];
    *s = (attention_sample){.head = head, .row = row, .fails = fails};
    s->misfit = attention_misfit(view, &sinkproof_attending_as_defined, view->n_samples++);
    view->n_failing += fails;
}

static int compare_misfits(const void *a, const void *b) {
    const attention_sample *x = a, *y = b;
    return x->misfit > y->misfit ? -1 : x->misfit < y->misfit;
}

// Takes up to `most` of the queries that fail, or of those that do not, evenly.
static void take_samples(attention_view *view, const uint8_t *fails, bool wanted, size_t most) {
    size_t all = view->heads * view->n, there = 0, met = 0, taken = 0;
    for (size_t at = 0; at < all; at++) there += (fails[at] != 0) == wanted;
    for (size_t at = 0; at < all; at++) {
        if ((fails[at] != 0) != wanted) continue;
        // rows before heads, so that a part of the samples has every head and every stretch of rows
        if (met++ * most / there < taken || taken == most) continue;
        add_sample(view, at % view->heads, at / view->heads, wanted);
        taken++;
    }
}

static bool choose_samples(attention_view *view) {
    enum { FAILING = 24, PASSING = 8 };
    size_t all = view->heads * view->n;
    uint8_t *fails = malloc(all + 1);
    if (fails == NULL) return false;
    view->first_row = view->n, view->first_head = view->heads;
    for (size_t at = 0; at < all; at++) {
        size_t row = at / view->heads, head = at % view->heads;
        fails[at] = query_fails(view, head, row);
        if (!fails[at]) continue;
        if (row < view->first_row) view->first_row = row;
        if (head < view->first_head) view->first_head = head;
        if (row >= view->end_row) view->end_row = row + 1;
        if (head >= view->end_head) view->end_head = head + 1;
    }
    take_samples(view, fails, true, FAILING);
    qsort(view->samples, view->n_samples, sizeof *view->samples, compare_misfits);
    take_samples(view, fails, false, PASSING);
    // the rows beside those that fail tell where a cause begins
    for (size_t h = view->first_head; h < view->end_head; h++) {
        if (view->first_row > 0) add_sample(view, h, view->first_row - 1, false);
        if (view->end_row < view->n) add_sample(view, h, view->end_row, false);
    }
    free(fails);
    return true;
}

// ---- what the trace holds

static double *read_tensor(const attention_view *view, sinkproof_trace_point point,
                           sinkproof_point at, size_t heads) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(view->of->trace, point, view->of->layer);
    const sinkproof_policy *policy = view->of->policy;
    size_t count = view->n * heads * view->dim;
    sinkproof_honest *x = tensor != NULL ? malloc(count * sizeof *x) : NULL;
    double *out = x != NULL ? malloc(count * sizeof *out) : NULL;
    sinkproof_setting s = sinkproof_setting_for(policy, count, 1e-9);
    for (size_t i = 0; out != NULL && i < count; i++)
        x[i] = sinkproof_exact_set(sinkproof_tensor_value(tensor, i));
    if (out != NULL &&
        !sinkproof_honest_scaled(&s, at, policy->at[at], view->n, heads, view->dim, x)) {
        free(out);
        out = NULL;
    }
    for (size_t i = 0; out != NULL && i < count; i++) out[i] = x[i].mid;
    free(x);
    return out;
}

static bool read_sinks(attention_view *view) {
    sinkproof_layer layer = sinkproof_model_layer(view->of->model, view->of->layer);
    double *work = calloc(sinkproof_normaliser_work(view->config) + 1, sizeof *work);
    view->sink_h = calloc(view->heads, sizeof *view->sink_h);
    for (size_t h = 0; work != NULL && view->sink_h != NULL && h < view->heads; h++)
        view->sink_h[h] = sinkproof_head_normaliser(view->config, &layer, h, work).logit;
    free(work);
    return work != NULL && view->sink_h != NULL;
}

static const sinkproof_tensor *shown_before(const attention_view *view, bool is_before,
                                            sinkproof_trace_point point) {
    return is_before ? sinkproof_trace_find(view->of->trace, point, view->of->layer) : NULL;
}

bool attention_view_open(const attention_point *of, attention_view *view, bool *there) {
    const sinkproof_config *c = sinkproof_model_config(of->model);
    const sinkproof_trace_point needed[] = {TRACE_A4_Q, TRACE_A4_K, TRACE_A2_V};
    *view = (attention_view){.of = of, .config = c, .n = of->n, .heads = c->n_heads};
    *there = sinkproof_trace_first(of->trace) == 0 && sinkproof_trace_sequences(of->trace) == 1;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        *there = *there && sinkproof_trace_find(of->trace, needed[i], of->layer) != NULL;
    // a sink that is a key has no logit of its own
    *there = *there && sinkproof_sinks_stored(c) != SINKPROOF_SINK_KEY;
    if (!*there) return true;
    view->groups = c->n_kv_heads, view->dim = c->head_dim;
    view->width = of->point == TRACE_A11 ? c->head_dim : of->n + (of->point == TRACE_A9);
    view->sight = (sinkproof_sight){of->n, c->window, c->sliding[of->layer] ? c->window : 0};
    view->scores = shown_before(view, of->point != TRACE_A6, TRACE_A6);
    view->weights = shown_before(view, of->point == TRACE_A11, TRACE_A10);
    if (view->weights == NULL)
        view->weights =
            shown_before(view, of->point == TRACE_A11 || of->point == TRACE_A10, TRACE_A9);
    view->q_nhd = read_tensor(view, TRACE_A4_Q, AT_A5_Q, view->heads);
    view->k_ngd = read_tensor(view, TRACE_A4_K, AT_A5_K, view->groups);
    view->v_ngd = read_tensor(view, TRACE_A2_V, AT_A11_V, view->groups);
    view->work = calloc(6 * view->n + view->width + 8, sizeof *view->work);
    if (view->q_nhd == NULL || view->k_ngd == NULL || view->v_ngd == NULL || view->work == NULL ||
        !read_sinks(view) || !choose_samples(view)) {
        attention_view_close(view);
        return false;
    }
    *there = view->n_failing > 0;
    if (!*there) attention_view_close(view);
    return true;
}

void attention_view_close(attention_view *view) {
    free(view->q_nhd);
    free(view->k_ngd);
    free(view->v_ngd);
    free(view->sink_h);
    free(view->work);
    *view = (attention_view){.of = NULL};
}
