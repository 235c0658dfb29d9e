// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention for the tests of its kernels: queries, keys and values from a seed, in a cache with the
// engine's layout; the expected results of the scalar code, and the comparison with a kernel. The
// shapes are around every block (32 keys) and span (256), with windows, rings that have wrapped,
// dominant sinks and no sinks; computed whole, and as merged spans.
#ifndef SINKPROOF_TESTS_ATTENTION_SHAPES_H
#define SINKPROOF_TESTS_ATTENTION_SHAPES_H

#include "tests/shared/block_sizes.h"
#include "tests/shared/few.h"
#include "tests/shared/kernels.h"

typedef struct shape {
    size_t head_dim, group, first, n, window, ring; // ring 0: a place for every block
    sinkproof_panel_format format;
    float sink;
    float k_scale, q_scale; // 0: 1
    bool any_q;             // q is float32 whatever the keys' format
    size_t tiny;            // the position of a subnormal key; 0: none
    size_t odd;             // the position of a key with values of size odd_v; 0: none
    float v_scale, odd_v;   // 0: 1
} shape;

// The contents of the cache: k_jd, v_jd as numbers, and as blocks.
typedef struct cached {
    double *k_jd, *v_jd, *q_id, *o_id;
    float *q, *o;
    uint8_t *all, *memory; // for all heads; for this one
    sinkproof_sizes *sizes;
    sinkproof_cache_view view;
} cached;

static size_t up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

// Number (row, column) of a panel's block of columns.
static void put(sinkproof_panel_format format, uint8_t *block, size_t row, size_t column, float x) {
    if (format == SINKPROOF_PANEL_F32) {
        memcpy(block + (column * 16 + row) * 4, &x, 4);
        return;
    }
    uint16_t bits = (uint16_t)(bits_of(x) >> 16);
    memcpy(block + (column / 2 * 32 + row * 2 + column % 2) * 2, &bits, 2);
}

static void store(cached *c, const shape *s, size_t j) {
    size_t bytes = sinkproof_panel_block_bytes(s->format), wide = up(s->head_dim, 32) / 32;
    size_t slot = j % 32;
    uint8_t *k = c->memory + block_offset(&c->view, j / 32), *v = k + 2 * wide * bytes;
    sinkproof_sizes *sizes = &c->sizes[j / 32 % c->view.ring];
    if (slot == 0) *sizes = no_sizes;
    for (size_t d = 0; d < s->head_dim; d++) {
        count_in(sizes, c->k_jd[j * s->head_dim + d], c->v_jd[j * s->head_dim + d]);
        put(s->format, k + (slot / 16 * wide + d / 32) * bytes, slot % 16, d % 32,
            (float)c->k_jd[j * s->head_dim + d]);
        put(s->format, v + d / 16 * bytes, d % 16, slot, (float)c->v_jd[j * s->head_dim + d]);
    }
}

// Of the cache's format: the digits that bf16 lacks are cut off.
static float number(const shape *s, float scale) {
    float x = 2 * random_float() * (scale != 0 ? scale : 1);
    uint32_t bits = bits_of(x) & (s->format == SINKPROOF_PANEL_BF16 ? 0xffff0000 : 0xffffffff);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float query(const shape *s) {
    return s->any_q ? random_float() : number(s, s->q_scale);
}

static cached fill(const shape *s) {
    size_t keys = s->first + s->n, d = s->head_dim, rows = s->n * s->group;
    size_t bytes = sinkproof_panel_block_bytes(s->format);
    cached c = {.k_jd = calloc(keys * d, 8), .v_jd = calloc(keys * d, 8)};
    c.q_id = calloc(rows * d, 8);
    c.o_id = calloc(rows * d, 8);
    c.q = calloc(rows * d, 4);
    c.o = guarded(rows * d);
    size_t key_bytes = 2 * (up(d, 32) / 32) * bytes, value_bytes = up(d, 16) / 16 * bytes;
    c.view = (sinkproof_cache_view){.format = s->format,
                                    .head_dim = d,
                                    .ring = s->ring != 0 ? s->ring : up(keys, 32) / 32,
                                    .place_stride = key_bytes + value_bytes};
    // A ring is contiguous; in other caches this is the second of three heads.
    size_t span = SINKPROOF_SPAN_BLOCKS * c.view.place_stride, heads = s->ring != 0 ? 1 : 3;
    size_t memory = up(c.view.ring, SINKPROOF_SPAN_BLOCKS) / SINKPROOF_SPAN_BLOCKS * heads * span;
    c.view.span_stride = heads * span;
    c.all = aligned_alloc(64, memory);
    c.memory = c.all + (heads == 3 ? span : 0);
    memset(c.all, 0, memory);
    c.sizes = calloc(c.view.ring, sizeof *c.sizes);
    if (s->format == SINKPROOF_PANEL_BF16) c.view.sizes = c.sizes;
    c.view.k = c.memory;
    c.view.v = c.memory + key_bytes;
    for (size_t i = 0; i < keys * d; i++)
        c.k_jd[i] = number(s, s->k_scale), c.v_jd[i] = number(s, s->v_scale);
    for (size_t i = 0; s->tiny > 0 && i < d; i++) c.k_jd[s->tiny * d + i] = number(s, 0x1p-128f);
    for (size_t i = 0; s->odd > 0 && i < d; i++) c.v_jd[s->odd * d + i] = number(s, s->odd_v);
    for (size_t i = 0; i < rows * d; i++) c.q_id[i] = c.q[i] = query(s);
    for (size_t j = 0; j < keys; j++) store(&c, s, j); // a ring keeps the last ones
    return c;
}

static void empty(cached *c) {
    free(c->k_jd);
    free(c->v_jd);
    free(c->q_id);
    free(c->o_id);
    free(c->q);
    free_guarded(c->o);
    free(c->all);
    free(c->sizes);
}

// Attention in scalar code, in the mode under test.
static __typeof__(lanes_attention) *scalar = lanes_attention;

// Head by head.
static void expected(const shape *s, cached *c) {
    sinkproof_policy policy;
    sinkproof_policy_known("f32", &policy);
    double *b_i = malloc(s->n * sizeof *b_i);
    if (b_i == NULL) abort();
    for (size_t i = 0; i < s->n; i++) b_i[i] = s->sink;
    for (size_t h = 0; h < s->group; h++) {
        sinkproof_block block = {.rows = s->n,
                                 .keys = s->first + s->n,
                                 .first = s->first,
                                 .window = s->window,
                                 .head_dim = s->head_dim,
                                 .q_stride = s->group * s->head_dim,
                                 .kv_stride = s->head_dim};
        scalar(&policy, &block, b_i, c->q_id + h * s->head_dim, c->k_jd, c->v_jd,
               c->o_id + h * s->head_dim);
    }
    free(b_i);
}

static size_t wrong(const shape *s, const cached *c) {
    size_t n = s->n * s->group * s->head_dim, count = guards_hold(c->o, n) ? 0 : 1;
    for (size_t i = 0; i < n; i++) count += !same(c->o[i], (float)c->o_id[i]);
    return count;
}

static sinkproof_attention attention_of(const shape *s, const cached *c, float *sink_h) {
    for (size_t h = 0; h < s->group; h++) sink_h[h] = s->sink;
    return (sinkproof_attention){.cache = c->view,
                                 .group = s->group,
                                 .n = s->n,
                                 .first = s->first,
                                 .window = s->window,
                                 .scale = (float)(1 / sqrt((double)s->head_dim)),
                                 .sink_h = sink_h,
                                 .q = c->q,
                                 .q_stride = s->group * s->head_dim,
                                 .o = c->o,
                                 .o_stride = s->group * s->head_dim};
}

static _Alignas(64) unsigned char scratch[SINKPROOF_SCRATCH];

// One query as spans, `each` of them per call, merged afterwards.
static size_t joined(const sinkproof_kernels *kernels, const shape *s, cached *c,
                     const sinkproof_attention *a, size_t each) {
    size_t oldest = s->window != 0 && s->first + 1 > s->window ? s->first + 1 - s->window : 0;
    size_t from = oldest / 256, to = s->first / 256 + 1, spans = to - from;
    size_t width = up(s->head_dim, 16);
    sinkproof_span_state *state = calloc(spans * s->group, sizeof *state);
    float *o = calloc(spans * s->group * width, sizeof *o);
    for (size_t k = from; k < to; k += each)
        kernels->attend_spans(a, k, k + each < to ? k + each : to, state + (k - from) * s->group,
                              o + (k - from) * s->group * width, scratch);
    for (size_t h = 0; h < s->group; h++)
        kernels->merge_spans(s->head_dim, s->sink, spans, s->group, state + h, o + h * width,
                             c->o + h * s->head_dim);
    free(state);
    free(o);
    return wrong(s, c);
}

static size_t run_on(const sinkproof_kernels *kernels, const shape *s, cached *c) {
    float sink_h[32];
    sinkproof_attention a = attention_of(s, c, sink_h);
    paint(c->o, s->n * s->group * s->head_dim);
    kernels->attend(&a, scratch);
    size_t count = wrong(s, c);
    for (size_t each = 1; s->n == 1 && each <= 4; each += 3)
        count += joined(kernels, s, c, &a, each);
    if (count > 0)
        note("%s head_dim=%zu group=%zu first=%zu n=%zu window=%zu ring=%zu format=%d sink=%g: %zu "
             "wrong",
             kernels->isa, s->head_dim, s->group, s->first, s->n, s->window, s->ring, s->format,
             s->sink, count);
    return count;
}

// One case on every set: what is expected is computed once.
static void run_one(asked_sets *sets, const shape *s) {
    cached c = fill(s);
    expected(s, &c);
    for (size_t k = 0; k < sets->n; k++) sets->wrong[k] += run_on(sets->of[k], s, &c);
    empty(&c);
}

static void tell_shapes(asked_sets *sets, sinkproof_panel_format format, const char *what,
                        size_t cases) {
    char said[80];
    snprintf(said, sizeof said, "%s: %s", format == SINKPROOF_PANEL_F32 ? "f32" : "bf16", what);
    tell_sets(sets, said, cases);
}

// Every case, or under FEW=1 every fifth; every seventh where the processor is emulated too.
static inline size_t few_step(void) {
    return or_few(1, on_hardware() ? 5 : 7);
}

static inline void positions(asked_sets *sets, sinkproof_panel_format format) {
    static const size_t first[] = {0, 1, 15, 31, 32, 63, 254, 255, 256, 257, 511, 600};
    static const size_t n[] = {1, 2, 3, 4, 17};
    static const float sink[] = {0, -INFINITY, 40, -40, 1.5f};
    size_t cases = 0;
    for (size_t f = 0; f < sizeof first / sizeof *first; f += few_step())
        for (size_t k = 0; k < sizeof n / sizeof *n; k++) {
            shape s = {.head_dim = 64,
                       .group = 8,
                       .first = first[f],
                       .n = n[k],
                       .format = format,
                       .sink = sink[cases % 5]};
            run_one(sets, &s);
            cases++;
        }
    tell_shapes(sets, format, "blocks and spans", cases);
}

static inline void windows(asked_sets *sets, sinkproof_panel_format format) {
    static const size_t window[] = {1, 8, 31, 32, 33, 128, 200};
    static const size_t first[] = {0, 5, 127, 128, 250, 256, 300, 515};
    size_t cases = 0;
    for (size_t w = 0; w < sizeof window / sizeof *window; w += few_step())
        for (size_t f = 0; f < sizeof first / sizeof *first; f++) {
            size_t n = cases % 3 == 0 ? 1 : cases % 3 == 1 ? 7 : 27;
            size_t ring = cases % 2 == 0 ? 0 : (window[w] + n + 30) / 32 + 1;
            shape s = {.head_dim = 32,
                       .group = 4,
                       .first = first[f],
                       .n = n,
                       .window = window[w],
                       .ring = ring,
                       .format = format,
                       .sink = cases % 4 == 0 ? -INFINITY : 0.5f};
            run_one(sets, &s);
            cases++;
        }
    tell_shapes(sets, format, "windows and rings", cases);
}

static inline void widths(asked_sets *sets, sinkproof_panel_format format) {
    static const size_t head_dim[] = {
        2, 16, 32, 48, 80, 128, SINKPROOF_WIDEST_HEAD - 2, SINKPROOF_WIDEST_HEAD};
    static const size_t group[] = {1, 5, 8, 25};
    size_t cases = 0;
    for (size_t d = 0; d < sizeof head_dim / sizeof *head_dim; d++)
        for (size_t g = 0; g < sizeof group / sizeof *group; g += few_step()) {
            shape s = {.head_dim = head_dim[d],
                       .group = group[g],
                       .first = 40,
                       .n = 4,
                       .format = format,
                       .sink = 0.25f};
            run_one(sets, &s);
            s.first = 290; // two spans, which a single query merges
            s.n = 1;
            run_one(sets, &s);
            cases += 2;
        }
    tell_shapes(sets, format, "widths and groups", cases);
}

#endif
