// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A trace that begins after position 0: the last rows of a whole one.
#ifndef SINKPROOF_TESTS_CUT_H
#define SINKPROOF_TESTS_CUT_H

#include "audit/sinkproof.h"
#include "audit/trace/trace_points.h"
#include "audit/trace/trace_write.h"
#include "tests/shared/judged.h"

#include <stdlib.h>
#include <string.h>

// What is kept: the rows from `first` on, and the last `keys` and `values` of those before. The
// positions are said to begin at `said`.
typedef struct cut {
    size_t first, keys, values, said;
} cut;

static inline cut cut_at(size_t first, size_t before) {
    return (cut){first, before, before, first};
}

// A trace of n tokens, in memory.
static inline sinkproof_trace *whole_trace(const sinkproof_model *model, judged_runner *run,
                                           void *of, const char *policy_name, const char *points,
                                           size_t n, const int32_t *tokens_n) {
    sinkproof_error error = {{0}};
    sinkproof_policy policy;
    sinkproof_trace_writer *writer = NULL;
    sinkproof_trace *trace = NULL;
    need(
        sinkproof_policy_parse(policy_name, &policy, &error) &&
            sinkproof_trace_writer_new(NULL, model, &policy, "cut", points, n, &writer, &error) &&
            run(of, model, &policy, n, tokens_n, sinkproof_trace_writer_observer(writer), &error) &&
            sinkproof_trace_writer_take(writer, tokens_n, &trace, &error),
        &error);
    sinkproof_trace_writer_free(writer);
    return trace;
}

// Rows [from, n) of every head of a tensor by head.
static inline uint8_t *rows_of_heads(const sinkproof_tensor *t, size_t from) {
    size_t row = t->bytes / (t->shape[0] * t->shape[1]), kept = t->shape[1] - from;
    uint8_t *out = malloc(t->shape[0] * kept * row);
    must(out != NULL);
    for (size_t h = 0; h < t->shape[0]; h++)
        memcpy(out + h * kept * row, t->data + (h * t->shape[1] + from) * row, kept * row);
    return out;
}

static inline void add_cut_point(sinkproof_trace_builder *b, const sinkproof_config *config,
                                 const sinkproof_trace *whole, sinkproof_trace_point point,
                                 size_t layer, const cut *c) {
    const sinkproof_tensor *t = sinkproof_trace_find(whole, point, layer);
    sinkproof_error error;
    if (t == NULL) return;
    bool by_head = sinkproof_trace_point_is_by_head(point);
    size_t before = point == sinkproof_trace_keys(config) ? c->keys
                    : point == TRACE_A2_V                 ? c->values
                                                          : 0;
    size_t from = c->first - before, shape[SINKPROOF_MAX_RANK];
    memcpy(shape, t->shape, sizeof shape);
    shape[by_head] -= from;
    uint8_t *rows = by_head ? rows_of_heads(t, from) : NULL;
    const uint8_t *data = by_head ? rows : t->data + from * (t->bytes / t->shape[0]);
    need(sinkproof_trace_builder_add(b, t->name, sinkproof_dtype_name(t->dtype), t->rank, shape,
                                     data, &error),
         &error);
    free(rows);
}

static inline sinkproof_trace *cut_trace(const sinkproof_model *model, const sinkproof_trace *whole,
                                         const cut *c) {
    const sinkproof_config *config = sinkproof_model_config(model);
    size_t n = sinkproof_trace_length(whole) - c->first;
    sinkproof_error error = {{0}};
    sinkproof_trace_builder *b = NULL;
    sinkproof_trace *trace = NULL;
    need(sinkproof_trace_builder_new(model, "cut", NULL, n,
                                     sinkproof_trace_tokens(whole) + c->first, &b, &error) &&
             sinkproof_trace_builder_place(b, 1, &n, &c->said, &error),
         &error);
    for (size_t l = 0; l < config->n_layers; l++)
        for (int p = 0; p < TRACE_POINTS; p++)
            if (l == 0 || sinkproof_trace_point_is_layered((sinkproof_trace_point)p))
                add_cut_point(b, config, whole, (sinkproof_trace_point)p, l, c);
    need(sinkproof_trace_builder_finish(b, &trace, &error), &error);
    sinkproof_trace_builder_free(b);
    return trace;
}

// ---- several sequences in one trace

enum { MOST_PACKED = 8 };

typedef struct packed_rows {
    size_t count, row[MOST_PACKED], rows[MOST_PACKED], n;
    const sinkproof_trace *of[MOST_PACKED]; // whole traces with the same points
} packed_rows;

static inline void copy_packed_rows(const packed_rows *p, size_t s, const sinkproof_tensor *t,
                                    bool by_head, size_t columns, uint8_t *out) {
    size_t size = sinkproof_dtype_size(t->dtype), rows = p->rows[s], keys = rows * size;
    if (!by_head) {
        size_t each = t->bytes / rows;
        memcpy(out + p->row[s] * each, t->data, t->bytes);
        return;
    }
    bool sink = t->shape[2] > rows;
    for (size_t h = 0; h < t->shape[0]; h++)
        for (size_t i = 0; i < rows; i++) {
            const uint8_t *from = t->data + (h * rows + i) * t->shape[2] * size;
            uint8_t *to = out + (h * p->n + p->row[s] + i) * columns * size;
            memcpy(to + p->row[s] * size, from, keys);
            if (sink) memcpy(to + p->n * size, from + keys, size);
        }
}

static inline void add_packed_point(sinkproof_trace_builder *b, const packed_rows *p,
                                    sinkproof_trace_point point, size_t layer) {
    const sinkproof_tensor *t = sinkproof_trace_find(p->of[0], point, layer);
    sinkproof_error error;
    if (t == NULL) return;
    bool by_head = sinkproof_trace_point_is_by_head(point);
    size_t shape[SINKPROOF_MAX_RANK], count = 1;
    memcpy(shape, t->shape, sizeof shape);
    if (by_head) shape[2] += p->n - p->rows[0];
    shape[by_head] = p->n;
    for (size_t d = 0; d < t->rank; d++) count *= shape[d];
    uint8_t *out = calloc(count, sinkproof_dtype_size(t->dtype));
    must(out != NULL);
    for (size_t s = 0; s < p->count; s++)
        copy_packed_rows(p, s, sinkproof_trace_find(p->of[s], point, layer), by_head, shape[2],
                         out);
    need(sinkproof_trace_builder_add(b, t->name, sinkproof_dtype_name(t->dtype), t->rank, shape,
                                     out, &error),
         &error);
    free(out);
}

static inline sinkproof_trace *packed_trace(const sinkproof_model *model, size_t count,
                                            const sinkproof_trace *const *of) {
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_error error = {{0}};
    sinkproof_trace_builder *b = NULL;
    sinkproof_trace *trace = NULL;
    packed_rows p = {.count = count};
    for (size_t s = 0; s < count; s++) {
        p.of[s] = of[s], p.row[s] = p.n, p.rows[s] = sinkproof_trace_length(of[s]);
        p.n += p.rows[s];
    }
    int32_t *tokens = malloc(p.n * sizeof *tokens);
    must(tokens != NULL);
    for (size_t s = 0; s < count; s++)
        memcpy(tokens + p.row[s], sinkproof_trace_tokens(of[s]), p.rows[s] * sizeof *tokens);
    need(sinkproof_trace_builder_new(model, "packed", NULL, p.n, tokens, &b, &error) &&
             sinkproof_trace_builder_place(b, count, p.rows, NULL, &error),
         &error);
    for (size_t l = 0; l < config->n_layers; l++)
        for (int q = 0; q < TRACE_POINTS; q++)
            if (l == 0 || sinkproof_trace_point_is_layered((sinkproof_trace_point)q))
                add_packed_point(b, &p, (sinkproof_trace_point)q, l);
    need(sinkproof_trace_builder_finish(b, &trace, &error), &error);
    sinkproof_trace_builder_free(b);
    free(tokens);
    return trace;
}

static inline sinkproof_judgement judged_trace(const sinkproof_model *model,
                                               const sinkproof_trace *trace, const char *policy) {
    sinkproof_error error = {{0}};
    sinkproof_policy declared;
    sinkproof_judgement j = {0};
    const sinkproof_judge_options how = {.rate = 1e-9, .end_to_end = true};
    need(sinkproof_policy_parse(policy, &declared, &error) &&
             sinkproof_judge(model, trace, &declared, &how, &j, &error),
         &error);
    return j;
}

#endif
