// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A2 to A11 of a pass. A task is one key/value head of one segment: its query heads and keys are
// rotated, its keys and values are appended to the cache, and its queries attend. In a window layer
// this happens in steps of 128 positions, so that the ring never loses a key that a query still
// sees. In a full layer a long segment is first appended completely, then its steps attend in any
// order. When there are fewer heads than threads, a single token's long context is split into
// pieces of whole spans, which are merged in the same order in which `attend` takes them: split or
// not, the bits are the same.
#include "fast/engine/internal.h"

#include <math.h>
#include <string.h>

enum { STEP = CACHE_STEP, SPAN = ENGINE_SPAN, PIECE = ENGINE_PIECE };

// The current sublayer.
typedef struct sublayer {
    engine_pass *pass;
    engine_worker *worker;
    const sinkproof_engine *e;
    const packed_layer *layer;
    size_t group, d; // query heads of a key/value head; head_dim
    bool sliding;
} sublayer;

// Visits the tasks of all segments in ascending order: the segment, and the number of tasks before
// it.
typedef struct cursor {
    size_t segment, before;
} cursor;

// A2 of one row and key/value head, rounded.
static void round_projected(const sublayer *a, size_t row, size_t g) {
    const sinkproof_engine *e = a->e;
    if (!e->bf16_cache) return;
    float *q = e->b.q_nd + row * e->width.q + g * a->group * a->d;
    round_to_bf16(e->kernels, a->group * a->d, q, NULL);
    round_to_bf16(e->kernels, a->d, e->b.k_nd + row * e->width.kv + g * a->d, NULL);
    round_to_bf16(e->kernels, a->d, e->b.v_nd + row * e->width.kv + g * a->d, NULL);
}

// A3 of a head, through a copy behind which are zeros, as the kernel wants them.
static void normalise_head(const sublayer *a, const float *scale_c, float *x_d) {
    const sinkproof_engine *e = a->e;
    float *copy = (float *)(void *)a->worker->work;
    memcpy(copy, x_d, a->d * sizeof *copy);
    memset(copy + a->d, 0, ((a->d + 31) / 32 * 32 - a->d) * sizeof *copy);
    e->kernels->rmsnorm(a->d, copy, scale_c, (float)e->config->rms_eps, copy);
    memcpy(x_d, copy, a->d * sizeof *copy);
}

// A3 of one row and key/value head; nothing without such a norm.
static void normalise_row(const sublayer *a, size_t row, size_t g) {
    const sinkproof_engine *e = a->e;
    if (!e->config->head_norms) return;
    float *q = e->b.q_nd + row * e->width.q + g * a->group * a->d;
    for (size_t h = 0; h < a->group; h++)
        normalise_head(a, a->layer->vector_c[SINKPROOF_Q_NORM], q + h * a->d);
    normalise_head(a, a->layer->vector_c[SINKPROOF_K_NORM],
                   e->b.k_nd + row * e->width.kv + g * a->d);
}

// A4 of one row and key/value head, rounded; nothing without a rotation.
static void rotate_row(const sublayer *a, size_t row, size_t g) {
    const sinkproof_engine *e = a->e;
    if (e->config->rotation.kind == SINKPROOF_NO_ROTATION) return;
    const float *cos_d = e->b.cos_nd + row * (a->d / 2), *sin_d = e->b.sin_nd + row * (a->d / 2);
    float *q = e->b.q_nd + row * e->width.q + g * a->group * a->d;
    float *k = e->b.k_nd + row * e->width.kv + g * a->d;
    for (size_t h = 0; h < a->group; h++) e->kernels->rope(a->d, cos_d, sin_d, q + h * a->d);
    e->kernels->rope(a->d, cos_d, sin_d, k);
    if (!e->bf16_cache) return;
    round_to_bf16(e->kernels, a->group * a->d, q, NULL);
    round_to_bf16(e->kernels, a->d, k, NULL);
}

// Appends rows i .. i + n - 1 of a segment, rotated first unless an observer has already seen them.
static void append_rows(const sublayer *a, const pass_segment *s, size_t g, size_t i, size_t n) {
    const sinkproof_engine *e = a->e;
    for (size_t row = s->row + i; a->pass->observer == NULL && row < s->row + i + n; row++) {
        round_projected(a, row, g);
        normalise_row(a, row, g);
        rotate_row(a, row, g);
    }
    size_t at = (s->row + i) * e->width.kv + g * a->d;
    cache_append(&s->sequence->cache, a->pass->l, g, s->first + i, n, e->b.k_nd + at,
                 e->b.v_nd + at, e->width.kv);
}

static sinkproof_attention make_queries(const sublayer *a, const pass_segment *s, size_t g,
                                        size_t i, size_t n) {
    const sinkproof_engine *e = a->e;
    size_t at = (s->row + i) * e->width.q + g * a->group * a->d;
    sinkproof_attention attention = {.cache = cache_head_view(&s->sequence->cache, a->pass->l, g),
                                     .group = a->group,
                                     .n = n,
                                     .first = s->first + i,
                                     .window = a->sliding ? e->config->window : 0,
                                     .scale = (float)(1 / sqrt((double)a->d)),
                                     .sink_h = a->layer->vector_c[SINKPROOF_SINKS] + g * a->group,
                                     .q = e->b.q_nd + at,
                                     .q_stride = e->width.q,
                                     .o = e->b.o_nd + at,
                                     .o_stride = e->width.q};
    if (a->pass->observer != NULL) {
        attention.score_row = s->first + s->n;
        attention.score_head = s->n * attention.score_row;
        attention.score =
            e->b.score_hij + g * a->group * attention.score_head + i * attention.score_row;
    }
    return attention;
}

// Rounds A11 of rows that have attended.
static void round_output(const sublayer *a, size_t row, size_t g, size_t n) {
    const sinkproof_engine *e = a->e;
    for (size_t i = row; e->bf16_operands && i < row + n; i++) {
        size_t at = i * e->width.q + g * a->group * a->d;
        round_to_bf16(e->kernels, a->group * a->d, e->b.o_nd + at, e->b.o16_nd + at);
    }
}

static void attend_rows(const sublayer *a, const pass_segment *s, size_t g, size_t i, size_t n) {
    sinkproof_attention attention = make_queries(a, s, g, i, n);
    a->e->kernels->attend(&attention, a->worker->scratch);
    round_output(a, s->row + i, g, n);
}

// The rows of step t of a segment: steps end where positions are multiples of STEP.
static size_t rows_of_step(const pass_segment *s, size_t t, size_t *i) {
    size_t start = s->first / STEP + t, from = start * STEP, to = from + STEP;
    if (from < s->first) from = s->first;
    if (to > s->first + s->n) to = s->first + s->n;
    *i = from - s->first;
    return to - from;
}

static bool segment_has_second_round(const sublayer *a, const pass_segment *s) {
    return !a->sliding && (s->steps > 1 || s->pieces > 0);
}

// ---- tasks -----------------------------------------------------------------------------------

// First round: everything except the queries of full layers that wait for all keys.
static size_t count_first_tasks(const sublayer *a, const pass_segment *s) {
    return a->e->config->n_kv_heads * (a->sliding ? 1 : s->steps);
}

static void run_first_task(const sublayer *a, const pass_segment *s, size_t task) {
    size_t heads = a->e->config->n_kv_heads, g = task % heads;
    size_t t = a->sliding ? 0 : task / heads, end = a->sliding ? s->steps : t + 1, i;
    for (; t < end; t++) {
        size_t n = rows_of_step(s, t, &i);
        append_rows(a, s, g, i, n);
        if (!segment_has_second_round(a, s)) attend_rows(a, s, g, i, n);
    }
}

// Second round: the waiting queries, step by step from the longest context down, or piece by piece.
static size_t count_second_tasks(const sublayer *a, const pass_segment *s) {
    if (!segment_has_second_round(a, s)) return 0;
    return a->e->config->n_kv_heads * (s->pieces > 0 ? s->pieces : s->steps);
}

static size_t padded_head_dim(const sublayer *a) {
    return (a->d + 15) / 16 * 16;
}

// Where the spans of a split context are stored: [spans, group] of head g.
static size_t split_state_offset(const sublayer *a, const pass_segment *s, size_t g) {
    size_t spans = s->first / SPAN + 1;
    return (s->state * a->e->config->n_kv_heads + g * spans) * a->group;
}

static void run_second_task(const sublayer *a, const pass_segment *s, size_t task) {
    const sinkproof_engine *e = a->e;
    size_t heads = e->config->n_kv_heads, g = task % heads, i;
    if (s->pieces == 0) {
        size_t n = rows_of_step(s, s->steps - 1 - task / heads, &i);
        attend_rows(a, s, g, i, n);
        return;
    }
    size_t spans = s->first / SPAN + 1, first = task / heads * PIECE, last = first + PIECE;
    if (last > spans) last = spans;
    size_t at = split_state_offset(a, s, g) + first * a->group;
    sinkproof_attention attention = make_queries(a, s, g, 0, 1);
    e->kernels->attend_spans(&attention, first, last, e->b.state_sh + at,
                             e->b.span_shd + at * padded_head_dim(a), a->worker->scratch);
}

// Third round: merges the spans of a split context, one query head after the other.
static size_t count_third_tasks(const sublayer *a, const pass_segment *s) {
    return segment_has_second_round(a, s) && s->pieces > 0 ? a->e->config->n_kv_heads : 0;
}

static void run_third_task(const sublayer *a, const pass_segment *s, size_t g) {
    const sinkproof_engine *e = a->e;
    size_t at = split_state_offset(a, s, g), to = s->row * e->width.q + g * a->group * a->d;
    for (size_t h = 0; h < a->group; h++)
        e->kernels->merge_spans(a->d, a->layer->vector_c[SINKPROOF_SINKS][g * a->group + h],
                                s->first / SPAN + 1, a->group, e->b.state_sh + at + h,
                                e->b.span_shd + (at + h) * padded_head_dim(a),
                                e->b.o_nd + to + h * a->d);
    round_output(a, s->row, g, 1);
}

// Runs all tasks of a round, which threads take one by one, then a barrier. A round without tasks
// has no barrier.
static void run_round(const sublayer *a, size_t (*tasks)(const sublayer *, const pass_segment *),
                      void (*run)(const sublayer *, const pass_segment *, size_t)) {
    const pass_segment *segments = a->e->b.segments;
    size_t total = 0, task;
    for (size_t s = 0; s < a->pass->n_segments; s++) total += tasks(a, &segments[s]);
    team_counter *counter = team_next_stage(a->pass, a->worker);
    if (total == 0) return;
    cursor at = {0, 0};
    while (counter_take_one(counter, total, &task)) {
        while (task - at.before >= tasks(a, &segments[at.segment]))
            at.before += tasks(a, &segments[at.segment++]);
        run(a, &segments[at.segment], task - at.before);
    }
    team_barrier();
}

// ---- an observer's points --------------------------------------------------------------------

static void show_per_head(const sublayer *a, const char *name, size_t heads, float *rows,
                          size_t stride) {
    size_t shape[] = {a->pass->n, heads, a->d};
    pass_show_point(a->pass, a->worker, name, 3, shape, rows, heads * a->d, stride);
}

// A2 to A4 of all rows by one thread; each point is shown before the next overwrites it.
static void observe_projected(const sublayer *a) {
    const sinkproof_engine *e = a->e;
    size_t heads = e->config->n_heads, groups = e->config->n_kv_heads, n = a->pass->n;
    bool mine = a->worker->id == 0;
    for (size_t task = 0; mine && task < n * groups; task++)
        round_projected(a, task / groups, task % groups);
    show_per_head(a, "A2.q", heads, e->b.q_nd, e->width.q);
    show_per_head(a, "A2.k", groups, e->b.k_nd, e->width.kv);
    show_per_head(a, "A2.v", groups, e->b.v_nd, e->width.kv);
    for (size_t task = 0; mine && task < n * groups; task++)
        normalise_row(a, task / groups, task % groups);
    if (e->config->head_norms) {
        show_per_head(a, "A3.q", heads, e->b.q_nd, e->width.q);
        show_per_head(a, "A3.k", groups, e->b.k_nd, e->width.kv);
    }
    for (size_t task = 0; mine && task < n * groups; task++)
        rotate_row(a, task / groups, task % groups);
    if (e->config->rotation.kind != SINKPROOF_NO_ROTATION) {
        show_per_head(a, "A4.q", heads, e->b.q_nd, e->width.q);
        show_per_head(a, "A4.k", groups, e->b.k_nd, e->width.kv);
    }
    const pass_segment *s = &e->b.segments[0];
    size_t count = heads * s->n * (s->first + s->n);
    for (size_t i = 0; mine && i < count; i++) e->b.score_hij[i] = 0;
    team_barrier();
}

static void observe_attention(const sublayer *a) {
    const pass_segment *s = &a->e->b.segments[0];
    size_t heads = a->e->config->n_heads, keys = s->first + s->n;
    pass_show_point(a->pass, a->worker, "A6", 3, (size_t[]){heads, s->n, keys}, a->e->b.score_hij,
                    keys, keys);
    show_per_head(a, "A11", heads, a->e->b.o_nd, a->e->width.q);
}

void pass_attention(engine_pass *pass, engine_worker *worker, const packed_layer *layer) {
    const sinkproof_engine *e = pass->engine;
    sublayer a = {.pass = pass,
                  .worker = worker,
                  .e = e,
                  .layer = layer,
                  .group = e->config->n_heads / e->config->n_kv_heads,
                  .d = e->config->head_dim,
                  .sliding = e->config->sliding[pass->l]};
    if (pass->observer != NULL) observe_projected(&a);
    run_round(&a, count_first_tasks, run_first_task);
    run_round(&a, count_second_tasks, run_second_task);
    run_round(&a, count_third_tasks, run_third_task);
    if (pass->observer != NULL) observe_attention(&a);
}
