// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/trace/trace_alone.h"

#include "audit/trace/trace_calls.h"
#include "audit/trace/trace_points.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A tensor of the sequence: `lines` times `bytes` bytes, `step` bytes apart; in front of the first
// line `earlier` bytes of keys or values before its rows, and behind each one number of the sink.
typedef struct part {
    const uint8_t *from, *before;
    size_t lines, bytes, step, earlier;
    const uint8_t *sink; // of the first line; NULL: none
    size_t sink_bytes;
} part;

typedef struct splitting {
    const sinkproof_trace *trace;
    const sinkproof_config *config;
    sinkproof_sequence s;
    size_t earlier_keys; // of the sequences before it
    sinkproof_safetensors_writer *out;
} splitting;

// The tensors of a point that are written; NULL: none. An unsaid log-sum-exp is found as two.
static const sinkproof_tensor *tensor_at(const splitting *x, sinkproof_trace_point point,
                                         size_t layer) {
    const sinkproof_tensor *t = sinkproof_trace_find(x->trace, point, layer);
    bool again = point == TRACE_LSE_KEYS && t != NULL &&
                 t == sinkproof_trace_find(x->trace, TRACE_LSE, layer);
    bool open = sinkproof_trace_point_is_by_head(point) && x->s.keys != x->s.first + x->s.rows;
    return again || open ? NULL : t;
}

static part part_of(const splitting *x, sinkproof_trace_point point, size_t layer,
                    const sinkproof_tensor *t, size_t *shape) {
    const sinkproof_tensor *before = sinkproof_trace_before(x->trace, point, layer);
    const sinkproof_sequence *s = &x->s;
    size_t size = sinkproof_dtype_size(t->dtype), each = t->bytes / t->shape[0];
    memcpy(shape, t->shape, t->rank * sizeof *shape);
    if (sinkproof_trace_point_is_by_head(point)) {
        size_t wide = t->shape[2], columns = sinkproof_trace_columns(x->trace);
        const uint8_t *row = t->data + s->row * wide * size;
        shape[1] = s->rows, shape[2] = s->keys + (wide - columns);
        return (part){.from = row + s->key * size,
                      .lines = s->rows,
                      .bytes = s->keys * size,
                      .step = wide * size,
                      .sink = wide > columns ? row + columns * size : NULL,
                      .sink_bytes = wide > columns ? size : 0};
    }
    if (sinkproof_trace_point_is_offered(point) && !sinkproof_trace_lse_by_token(x->trace)) {
        shape[1] = s->rows;
        return (part){.from = t->data + s->row * size, .lines = 1, .bytes = s->rows * size};
    }
    part p = {.from = t->data + s->row * each, .lines = 1, .bytes = s->rows * each};
    shape[0] = s->rows;
    if (before == NULL) return p;
    p.before = before->data + x->earlier_keys * each;
    p.earlier = (s->keys - s->rows) * each;
    shape[0] = s->keys;
    return p;
}

static bool write_part(const splitting *x, sinkproof_trace_point point, size_t layer,
                       const sinkproof_tensor *t, sinkproof_error *error) {
    size_t shape[SINKPROOF_MAX_RANK], heads = 1, head = 0;
    part p = part_of(x, point, layer, t, shape);
    bool good =
        p.earlier == 0 || sinkproof_safetensors_writer_bytes(x->out, p.before, p.earlier, error);
    bool lse = sinkproof_trace_point_is_offered(point) && !sinkproof_trace_lse_by_token(x->trace);
    if (sinkproof_trace_point_is_by_head(point) || lse)
        heads = t->shape[0], head = t->bytes / t->shape[0];
    for (size_t h = 0; good && h < heads; h++)
        for (size_t i = 0; good && i < p.lines; i++) {
            size_t at = h * head + i * p.step;
            good = sinkproof_safetensors_writer_bytes(x->out, p.from + at, p.bytes, error) &&
                   (p.sink == NULL ||
                    sinkproof_safetensors_writer_bytes(x->out, p.sink + at, p.sink_bytes, error));
        }
    return good;
}

// Calls `act` for each tensor of the sequence, in one order.
typedef bool part_action(const splitting *x, sinkproof_trace_point point, size_t layer,
                         const sinkproof_tensor *t, sinkproof_error *error);
static bool for_each_part(const splitting *x, part_action *act, sinkproof_error *error) {
    bool good = true;
    for (size_t l = 0; good && l < x->config->n_layers; l++)
        for (int p = 0; good && p < TRACE_POINTS; p++) {
            sinkproof_trace_point point = (sinkproof_trace_point)p;
            const sinkproof_tensor *t = tensor_at(x, point, l);
            if (t == NULL || (l > 0 && !sinkproof_trace_point_is_layered(point))) continue;
            good = act(x, point, l, t, error);
        }
    return good;
}

static bool declare_part(const splitting *x, sinkproof_trace_point point, size_t layer,
                         const sinkproof_tensor *t, sinkproof_error *error) {
    size_t shape[SINKPROOF_MAX_RANK];
    (void)error;
    part_of(x, point, layer, t, shape);
    sinkproof_safetensors_writer_declare(x->out, t->name, t->dtype, t->rank, shape);
    return true;
}

static bool declare_head(const splitting *x, sinkproof_error *error) {
    static const char *const kept[] = {"format", "engine", "version", "policy",
                                       "model",  "ranks",  "lse"};
    for (size_t k = 0; k < sizeof kept / sizeof kept[0]; k++) {
        const char *said = sinkproof_trace_metadata(x->trace, kept[k]);
        if (said != NULL) sinkproof_safetensors_writer_metadata(x->out, kept[k], said);
    }
    const uint8_t *calls = sinkproof_trace_calls(x->trace);
    char text[4096]; // calls that need more are left out
    if (calls != NULL && calls_write(calls, x->s.row, x->s.rows, text, sizeof text))
        sinkproof_safetensors_writer_metadata(x->out, "calls", text);
    const char *layout = sinkproof_trace_lse_by_token(x->trace) ? "tokens,heads" : "heads,tokens";
    sinkproof_safetensors_writer_metadata(x->out, "lse_layout", layout);
    const sinkproof_dtype dtype = SINKPROOF_DTYPE_I32;
    sinkproof_safetensors_writer_declare(x->out, "tokens", dtype, 1, &x->s.rows);
    sinkproof_safetensors_writer_declare(x->out, "positions", dtype, 1, &x->s.rows);
    if (x->s.named > 0)
        sinkproof_safetensors_writer_declare(x->out, "prefix", dtype, 1, &x->s.named);
    return for_each_part(x, declare_part, error);
}

static bool write_all(const splitting *x, sinkproof_error *error) {
    const int32_t *tokens = sinkproof_trace_tokens(x->trace) + x->s.row,
                  *positions = sinkproof_trace_positions(x->trace) + x->s.row;
    size_t bytes = x->s.rows * sizeof *tokens;
    bool good = sinkproof_safetensors_writer_bytes(x->out, tokens, bytes, error) &&
                sinkproof_safetensors_writer_bytes(x->out, positions, bytes, error);
    if (good && x->s.named > 0)
        good = sinkproof_safetensors_writer_bytes(x->out,
                                                  sinkproof_trace_prefix(x->trace) + x->s.named_at,
                                                  x->s.named * sizeof *tokens, error);
    return good && for_each_part(x, write_part, error) &&
           sinkproof_safetensors_writer_finish(x->out, error);
}

bool sinkproof_trace_alone(const sinkproof_trace *trace, const sinkproof_config *config,
                           size_t number, sinkproof_trace **alone, sinkproof_error *error) {
    splitting x = {.trace = trace,
                   .config = config,
                   .s = sinkproof_trace_sequence(trace, number),
                   .out = sinkproof_safetensors_writer_new()};
    char *bytes = NULL;
    size_t length = 0;
    for (size_t i = 0; i < number; i++) {
        sinkproof_sequence s = sinkproof_trace_sequence(trace, i);
        x.earlier_keys += s.keys - s.rows;
    }
    *alone = NULL;
    bool good = declare_head(&x, error) &&
                sinkproof_safetensors_writer_begin_memory(x.out, &bytes, &length, error) &&
                write_all(&x, error);
    sinkproof_safetensors_writer_free(x.out);
    if (!good) free(bytes);
    char name[1200];
    snprintf(name, sizeof name, "%.1100s, sequence %zu", sinkproof_trace_path(trace), number);
    return good && trace_adopt(bytes, length, name, config, alone, error);
}
