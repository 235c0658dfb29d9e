// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Queries, keys and values as attention reads them: as they are, or rounded and multiplied
// otherwise than they were written.
#include "audit/judge/judge_read_source.h"
#include "audit/judge/judge_seen.h"
#include "proofs/bounds/scaled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void head_rows_free(head_rows *rows) {
    free(rows->owned);
    *rows = (head_rows){0};
}

bool reads_by_row(const sinkproof_attending *m) {
    bool keys = (m->read.of & (SINKPROOF_CACHE_KEYS | SINKPROOF_CACHE_VALUES)) != 0;
    bool some = keys && (m->read.spared || m->cache.kind != SINKPROOF_CACHE_NONE);
    return some || (m->group != SINKPROOF_GROUP_OWN && m->group_spared);
}

// How many rows of earlier positions the trace has of a point.
static size_t rows_before(const sinkproof_trace *trace, sinkproof_trace_point point, size_t layer) {
    const sinkproof_tensor *before = sinkproof_trace_before(trace, point, layer);
    return before != NULL ? before->shape[0] : 0;
}

bool sinkproof_read_source(const sinkproof_read_as *read, const sinkproof_config *config,
                           const sinkproof_trace *trace, unsigned of, size_t layer,
                           sinkproof_tensor *source) {
    static const sinkproof_trace_point turned[] = {[SINKPROOF_CACHE_KEYS] = TRACE_A4_K,
                                                   [SINKPROOF_CACHE_VALUES] = TRACE_A2_V,
                                                   [SINKPROOF_READ_QUERIES] = TRACE_A4_Q};
    static const sinkproof_trace_point unturned[] = {[SINKPROOF_CACHE_KEYS] = TRACE_A2_K,
                                                     [SINKPROOF_CACHE_VALUES] = TRACE_A2_V,
                                                     [SINKPROOF_READ_QUERIES] = TRACE_A2_Q};
    ptrdiff_t from = (ptrdiff_t)layer + read->layer_by;
    if (from < 0 || from >= (ptrdiff_t)config->n_layers) return false;
    sinkproof_trace_point point = (read->not_turned ? unturned : turned)[of];
    const sinkproof_tensor *rows = sinkproof_trace_find(trace, point, (size_t)from);
    size_t earlier = rows_before(trace, point, (size_t)from);
    bool named = sinkproof_trace_first(trace) > 0 && sinkproof_trace_prefix(trace) != NULL &&
                 of != SINKPROOF_READ_QUERIES; // rows that the trace does not have are read
    if (rows == NULL || earlier != rows_before(trace, turned[of], layer) || named) return false;
    *source = *rows;
    if (earlier == 0) return true;
    const sinkproof_tensor *before = sinkproof_trace_before(trace, point, (size_t)from);
    if (before->data + before->bytes != rows->data) return false; // of several caches
    source->data = before->data, source->shape[0] += earlier, source->bytes += before->bytes;
    return true;
}

// The numbers that stand in the trace for x, where they are others; unchanged where it lacks them.
static void read_from_elsewhere(const judge_pass *pass, unsigned of, size_t layer, size_t count,
                                sinkproof_honest *y) {
    const sinkproof_read_as *read = &pass->meaning->attending.read;
    if (read->layer_by == 0 && !read->not_turned) return;
    sinkproof_tensor source;
    bool there = sinkproof_read_source(read, pass->config, pass->trace, of, layer, &source) &&
                 sinkproof_tensor_elements(&source) == count;
    for (size_t i = 0; there && i < count; i++)
        y[i] = sinkproof_exact_set(sinkproof_tensor_value(&source, i));
}

// The largest size of a group's numbers, between *lo and *hi.
static void group_largest(const scale_groups *of, const sinkproof_honest *x, double *lo,
                          double *hi) {
    *lo = *hi = 0;
    for (size_t r = 0; r < of->runs; r++)
        for (size_t k = 0; k < of->run; k++) {
            const sinkproof_honest *y = &x[r * of->stride + k];
            double least = y->lo > 0 ? y->lo : y->hi < 0 ? -y->hi : 0;
            *lo = fmax(*lo, least), *hi = fmax(*hi, fmax(fabs(y->lo), fabs(y->hi)));
        }
}

// Multiplies what is read by the scale of another group in the place of its own; x: before it was
// rounded to codes.
static void read_under_other_scales(const sinkproof_setting *s, const sinkproof_read_as *read,
                                    size_t rows, size_t heads, size_t d, const sinkproof_honest *x,
                                    sinkproof_honest *y) {
    scale_groups of = sinkproof_scale_groups(read->scale, rows, heads, d);
    for (size_t g = 0; g < of.count; g++) {
        size_t from = sinkproof_scale_source(read, heads, of.count, g);
        double lo, hi, other_lo, other_hi;
        group_largest(&of, x + g * of.step, &lo, &hi);
        group_largest(&of, x + from * of.step, &other_lo, &other_hi);
        if (from == g || !(lo > 0)) continue;
        double mid = (other_lo + other_hi) / (lo + hi);
        double error = fmax(other_hi / lo - mid, mid - other_lo / hi);
        sinkproof_honest by = sinkproof_set_around(mid, error, error, 0, error);
        by = sinkproof_honest_declared(by, 8 * s->u, 0);
        for (size_t r = 0; r < of.runs; r++)
            for (size_t k = 0; k < of.run; k++) {
                sinkproof_honest *z = &y[g * of.step + r * of.stride + k];
                *z = sinkproof_honest_roundings(s, sinkproof_honest_mul(*z, by), 2);
            }
    }
}

// A copy of x[rows, heads, head_dim] as it is read; NULL if memory runs out.
static sinkproof_honest *read_otherwise(const judge_pass *pass, unsigned of, size_t layer,
                                        sinkproof_point at, size_t first, size_t rows, size_t heads,
                                        const sinkproof_honest *x) {
    const sinkproof_attending *m = &pass->meaning->attending;
    const sinkproof_rounding how = {.format = m->read.format, .scale = m->read.scale};
    size_t d = pass->config->head_dim, count = rows * heads * d;
    sinkproof_setting s = pass_setting(pass, count);
    sinkproof_honest *y = malloc((count + 1) * sizeof *y);
    if (y == NULL) return NULL;
    memcpy(y, x, count * sizeof *y);
    read_from_elsewhere(pass, of, layer, count, y);
    const sinkproof_format stored =
        pass->policy->at[of == SINKPROOF_CACHE_VALUES ? AT_A2 : AT_A4].format;
    bool others = m->read.scale_from != SINKPROOF_SCALE_FROM_OWN;
    sinkproof_honest *before = others ? malloc((count + 1) * sizeof *before) : NULL;
    bool fine =
        (!others || before != NULL) && map_read_sets(pass, &s, first, rows, heads, stored, y);
    if (fine && others) memcpy(before, y, count * sizeof *y);
    fine = fine && sinkproof_honest_scaled(&s, at, how, rows, heads, d, y);
    if (fine && others) {
        read_under_other_scales(&s, &m->read, rows, heads, d, before, y);
        // what is read may be stored in the format that held it
        for (size_t i = 0; i < count; i++)
            y[i] = set_hull(y[i], sinkproof_honest_rounded(stored, y[i]));
    }
    free(before);
    if (!fine) {
        free(y);
        return NULL;
    }
    double times = of == SINKPROOF_CACHE_VALUES && m->read.value_times != 0 ? m->read.value_times
                                                                            : m->read.times;
    for (size_t i = 0; times != 1 && i < count; i++) {
        y[i] = set_times(m, y[i], times);
        y[i] = sinkproof_honest_roundings(&s, y[i], 1);
    }
    return y;
}

bool make_read_numbers(const judge_pass *pass, attention *a) {
    const sinkproof_config *c = pass->config;
    unsigned of = pass->meaning->attending.read.of;
    bool fine = true;
    if (of & SINKPROOF_READ_QUERIES) {
        a->read_q = read_otherwise(pass, SINKPROOF_READ_QUERIES, a->number, AT_A5_Q, pass->first,
                                   pass->n, c->n_heads, a->q_nhd);
        fine = a->read_q != NULL;
    }
    if (of & SINKPROOF_CACHE_KEYS) {
        a->read_k = read_otherwise(pass, SINKPROOF_CACHE_KEYS, a->number, AT_A5_K, a->k.from,
                                   pass->keys - a->k.from, c->n_kv_heads, a->k.x);
        fine = fine && a->read_k != NULL;
    }
    if (of & SINKPROOF_CACHE_VALUES) {
        a->read_v = read_otherwise(pass, SINKPROOF_CACHE_VALUES, a->number, AT_A11_V, a->v.from,
                                   pass->keys - a->v.from, c->n_kv_heads, a->v.x);
        fine = fine && a->read_v != NULL;
    }
    return fine;
}

void free_read_numbers(attention *a) {
    free(a->read_q);
    free(a->read_k);
    free(a->read_v);
}

head_rows queries_as_read(judge_part *part, const attention *a, const block *b) {
    const sinkproof_config *c = part->pass->config;
    const sinkproof_attending *m = b->meant;
    size_t d = c->head_dim, width = c->n_heads * d, h = block_head(part, b);
    bool otherwise = (m->read.of & SINKPROOF_READ_QUERIES) != 0;
    const sinkproof_honest *x = (otherwise ? a->read_q : a->q_nhd) + h * d;
    if (m->query_by == 0) return (head_rows){.x = x + b->first * width, .width = width};
    head_rows q = {.width = d, .owned = part_allocate(part, b->rows * d, sizeof *q.owned)};
    q.x = q.owned;
    for (size_t r = 0; q.owned != NULL && r < b->rows; r++) {
        ptrdiff_t from = (ptrdiff_t)(b->first + r) + m->query_by;
        if (from < 0 || from >= (ptrdiff_t)part->pass->n) from = (ptrdiff_t)(b->first + r);
        memcpy(&q.owned[r * d], &x[(size_t)from * width], d * sizeof *q.owned);
    }
    return q;
}

head_rows keys_as_read(judge_part *part, const attention *a, const block *b, unsigned of, size_t g,
                       size_t first, size_t count) {
    size_t d = part->pass->config->head_dim, own = g;
    bool values = of == SINKPROOF_CACHE_VALUES, otherwise = (b->meant->read.of & of) != 0;
    const cached_rows *from = values ? &a->v : &a->k;
    const sinkproof_honest *read = otherwise ? (values ? a->read_v : a->read_k) : from->x;
    size_t at = (first - from->from) * from->width;
    if (!reads_by_row(b->meant)) return (head_rows){.x = read + at + g * d, .width = from->width};
    head_rows rows = {.width = d, .owned = part_allocate(part, count * d, sizeof *rows.owned)};
    rows.x = rows.owned;
    query q = part_query(part, b, b->first);
    size_t before = q.first_key - q.position; // columns of other sequences
    if (b->meant->group_spared)
        own = sinkproof_attending_group(&sinkproof_attending_as_defined, head_counts(part),
                                        block_head(part, b), of);
    for (size_t j = 0; rows.owned != NULL && j < count; j++) {
        size_t key = first + j - before;
        bool there = otherwise && first + j >= before;
        bool meant = there && sinkproof_attending_reads(b->meant, of, q.own, q.position, key);
        memcpy(&rows.owned[j * d],
               (meant ? read : from->x) + at + j * from->width +
                   (sinkproof_attending_is_own(b->meant, q.own, key) ? own : g) * d,
               d * sizeof *rows.owned);
    }
    return rows;
}
