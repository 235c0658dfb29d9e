// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures attention of one layer of the 20b model: 64 query heads on 8 key/value heads of 64. The
// caches are read from memory: as many copies are used in turn as exceed the processor's caches,
// like the layers of a model. Runs with and without sinks alternate: their ratio is the cost of the
// sink.
#include "audit/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUPS = 8, // key/value heads
    GROUP = 8,  // query heads of each
    HEAD_DIM = 64,
    ROW = GROUPS * GROUP * HEAD_DIM,
    SPAN = SINKPROOF_SPAN_BLOCKS * 32, // keys of a span
    TILE = 64,                         // queries of a piece
    COPIES = 256,
};

typedef struct attention {
    sinkproof_bench *bench;
    size_t n, keys, window; // the last query sees `keys` keys, or only the last `window`
    sinkproof_panel_format format;
    size_t place, ring, bytes; // bytes of one head's 32 positions; places; bytes of the cache
    size_t copies, next;
    sinkproof_sizes *sizes; // [ring], the same for all heads
    float sink_h[GROUP];
    float *q, *o; // [n][ROW]
    size_t first_span, spans, piece_spans, pieces;
    sinkproof_span_state *state; // [GROUPS][spans][GROUP]
    float *part;                 // [GROUPS][spans][GROUP][HEAD_DIM]
} attention;

// The work of key/value head g: queries i .. i + n - 1.
static sinkproof_attention attention_part(const attention *a, size_t g, size_t i, size_t n) {
    // As in the engine's cache: each head's blocks of a span, keys and values, are adjacent.
    const size_t span = SINKPROOF_SPAN_BLOCKS * a->place;
    const uint8_t *k = a->bench->arena + (a->next % a->copies) * a->bytes + g * span;
    return (sinkproof_attention){
        .cache = {.format = a->format,
                  .head_dim = HEAD_DIM,
                  .ring = a->ring,
                  .place_stride = a->place,
                  .span_stride = GROUPS * span,
                  .k = k,
                  .v = k + a->place / 2,
                  .sizes = a->format == SINKPROOF_PANEL_BF16 ? a->sizes : NULL},
        .group = GROUP,
        .n = n,
        .first = a->keys - a->n + i,
        .window = a->window,
        .scale = 0.125f,
        .sink_h = a->sink_h,
        .q = a->q + i * ROW + g * GROUP * HEAD_DIM,
        .q_stride = ROW,
        .o = a->o + i * ROW + g * GROUP * HEAD_DIM,
        .o_stride = ROW,
    };
}

static void run_spans(void *of, size_t piece, int worker) {
    attention *a = of;
    size_t each = a->pieces / GROUPS, g = piece / each, from = piece % each * a->piece_spans;
    size_t to = from + a->piece_spans < a->spans ? from + a->piece_spans : a->spans;
    sinkproof_attention part = attention_part(a, g, 0, 1);
    size_t at = (g * a->spans + from) * GROUP;
    a->bench->table->attend_spans(&part, a->first_span + from, a->first_span + to, a->state + at,
                                  a->part + at * HEAD_DIM, a->bench->scratch_t[worker]);
}

static void run_tile(void *of, size_t piece, int worker) {
    attention *a = of;
    size_t tiles = (a->n + TILE - 1) / TILE, i = piece % tiles * TILE;
    sinkproof_attention part =
        attention_part(a, piece / tiles, i, a->n - i < TILE ? a->n - i : TILE);
    a->bench->table->attend(&part, a->bench->scratch_t[worker]);
}

static void run_attention(void *of) {
    attention *a = of;
    const sinkproof_kernels *table = a->bench->table;
    a->next++;
    if (a->n > 1) {
        bench_share_pieces(a->bench->threads, GROUPS * ((a->n + TILE - 1) / TILE), run_tile, a);
        return;
    }
    if (a->spans < 2 * (size_t)a->bench->threads) { // too little work to split
        bench_share_pieces(a->bench->threads, GROUPS, run_tile, a);
        return;
    }
    bench_share_pieces(a->bench->threads, a->pieces, run_spans, a);
    for (size_t h = 0; h < GROUPS * GROUP; h++) {
        size_t at = h / GROUP * a->spans * GROUP + h % GROUP;
        table->merge_spans(HEAD_DIM, a->sink_h[h % GROUP], a->spans, GROUP, a->state + at,
                           a->part + at * HEAD_DIM, a->o + h * HEAD_DIM);
    }
}

static size_t bytes_per_key(sinkproof_panel_format format) { // keys and values
    return 2 * (HEAD_DIM / 32) * 2 * sinkproof_panel_block_bytes(format);
}

static void free_attention(attention *a) {
    free(a->sizes);
    free(a->q);
    free(a->o);
    free(a->state);
    free(a->part);
}

static void make_attention(attention *a, sinkproof_bench *bench, size_t n, size_t keys,
                           size_t window, sinkproof_panel_format format) {
    *a = (attention){.bench = bench, .n = n, .keys = keys, .window = window, .format = format};
    a->place = bytes_per_key(format);
    a->ring = (keys + SPAN - 1) / SPAN * SINKPROOF_SPAN_BLOCKS;
    a->bytes = a->ring * GROUPS * a->place;
    size_t wanted = bench->quick ? 2 : bench->last_level * 4 / a->bytes + 1;
    a->copies = wanted * a->bytes <= bench->arena_bytes ? wanted : bench->arena_bytes / a->bytes;
    if (a->copies > COPIES) a->copies = COPIES;
    size_t first_key = window > 0 && keys > window ? keys - window : 0;
    a->first_span = first_key / SPAN;
    a->spans = (keys + SPAN - 1) / SPAN - a->first_span;
    size_t pieces = (size_t)bench->threads;
    a->piece_spans = (a->spans + pieces - 1) / pieces;
    a->pieces = GROUPS * ((a->spans + a->piece_spans - 1) / a->piece_spans);
    a->sizes = malloc(a->ring * sizeof *a->sizes);
    a->q = aligned_alloc(64, n * ROW * sizeof *a->q);
    a->o = aligned_alloc(64, n * ROW * sizeof *a->o);
    a->state = aligned_alloc(64, GROUPS * a->spans * GROUP * sizeof *a->state);
    a->part = aligned_alloc(64, GROUPS * a->spans * GROUP * HEAD_DIM * sizeof *a->part);
    if (a->copies == 0 || a->sizes == NULL || a->q == NULL || a->o == NULL || a->state == NULL ||
        a->part == NULL)
        abort();
    // Every number from bench_fill_panels is in [0.5, 1).
    for (size_t b = 0; b < a->ring; b++) a->sizes[b] = (sinkproof_sizes){126, 126, 126};
    bench_fill_panels(SINKPROOF_PANEL_F32, (uint8_t *)a->q, n * ROW * sizeof *a->q);
    // Like the engine's queries if the cache is bf16.
    if (format == SINKPROOF_PANEL_BF16) bench->table->round_bf16(n * ROW, a->q, NULL);
    for (size_t h = 0; h < GROUP; h++) a->sink_h[h] = 0.5f * (float)h;
}

// The number of keys that the n queries see, summed.
static double count_visible_keys(const attention *a) {
    double sum = 0;
    for (size_t i = 0; i < a->n; i++) {
        size_t before = a->keys - a->n + i + 1;
        sum += (double)(a->window > 0 && before > a->window ? a->window : before);
    }
    return sum;
}

static const char *format_name(const attention *a) {
    return a->format == SINKPROOF_PANEL_F32 ? "f32" : "bf16";
}

static bench_case describe_attention_case(attention *a, bool sinks) {
    bench_case c = {.run = run_attention, .of = a, .threads = a->bench->threads};
    snprintf(c.id, sizeof c.id, "attention.%s.q%zu.k%zu%s%s", format_name(a), a->n, a->keys,
             a->window > 0 ? ".window" : "", sinks ? "" : ".no-sinks");
    double scores = count_visible_keys(a) * (double)GROUPS * (double)GROUP;
    size_t seen = a->window > 0 && a->window + a->n - 1 < a->keys ? a->window + a->n - 1 : a->keys;
    bench_count_score_work(a->bench->table, a->format, HEAD_DIM, scores, c.need);
    c.need[BENCH_MEMORY] = (double)seen * (double)GROUPS * (double)a->place / 32;
    c.more = json_pack("{sI sI sI sb ss}", "queries", (json_int_t)a->n, "keys", (json_int_t)a->keys,
                       "window", (json_int_t)a->window, "sinks", sinks, "cache", format_name(a));
    return c;
}

// Fills the arena once per format: every part of it is then valid in that format.
static void fill_arena(sinkproof_bench *bench, sinkproof_panel_format format) {
    size_t bytes = bench->last_level * 5, most = 131072 / 32 * GROUPS * bytes_per_key(format);
    if (bytes < most) bytes = most;
    if (bench->quick || bytes > bench->arena_bytes) bytes = bench->arena_bytes;
    sinkproof_bench_say("filling caches");
    bench_fill_panels(format, bench->arena, bytes);
}

static bool row_has_disturbance(const json_t *row, const char *disturbance) {
    const json_t *found;
    size_t i;
    json_array_foreach(json_object_get(row, "disturbed"), i,
                       found) if (strcmp(json_string_value(found), disturbance) == 0) return true;
    return false;
}

// The cost of the sinks: the ratio of the last two rows; 1 means none.
static void add_cost(sinkproof_bench *bench, const char *id) {
    size_t rows = json_array_size(bench->rows);
    const json_t *with = json_array_get(bench->rows, rows - 2);
    const json_t *without = json_array_get(bench->rows, rows - 1);
    double ratio = json_real_value(json_object_get(with, "median")) /
                   json_real_value(json_object_get(without, "median"));
    json_t *row = json_deep_copy(with);
    json_object_set_new(row, "id", json_string(id));
    json_object_set_new(row, "value", json_real(ratio));
    json_object_set_new(row, "unit", json_string("times without"));
    json_object_set_new(row, "limit", json_real(1));
    json_object_set_new(row, "share", json_real(1 / ratio));
    json_object_set_new(row, "roof", json_string("no sinks"));
    bool disturbed = row_has_disturbance(with, "case") || row_has_disturbance(without, "case");
    json_object_set_new(row, "disturbed", bench_disturbances(disturbed, false, 1 / ratio));
    bench_add_row(bench, row);
}

// Measures with and without sinks in turn; returns whether the caches are filled. The ratio needs
// both.
static bool measure_sink_cost(attention *with, attention *without, bool filled) {
    sinkproof_bench *bench = with->bench;
    bench_case cases[2] = {describe_attention_case(with, true),
                           describe_attention_case(without, false)};
    char cost[128];
    snprintf(cost, sizeof cost, "%s.sinks-cost", cases[0].id);
    bool both = bench_is_wanted(bench, cost);
    bool wanted = both || bench_is_wanted(bench, cases[1].id);
    if (wanted && !filled && !bench->looks) fill_arena(bench, with->format);
    const char *only = bench->only;
    size_t repeat = bench->repeat;
    if (both) {
        bench->only = NULL;
        // A ratio near 1 needs more runs than a figure.
        bench->repeat = 5 * repeat < SINKPROOF_BENCH_REPEATS ? 5 * repeat : SINKPROOF_BENCH_REPEATS;
    }
    bench_measure(bench, 2, cases);
    bench->only = only;
    bench->repeat = repeat;
    if (both && !bench->looks) add_cost(bench, cost);
    return wanted || filled;
}

void sinkproof_bench_attention(sinkproof_bench *bench) {
    static const struct {
        size_t n, keys, window;
        bool quick;
    } all[] = {
        {1, 512, 0, true},     {1, 4096, 0, true},      {1, 32768, 0, false},
        {1, 131072, 0, false}, {1, 4096, 128, true},    {512, 512, 0, false},
        {512, 4096, 0, false}, {512, 4096, 128, false}, {32, 512, 0, true},
    };
    static const sinkproof_panel_format formats[] = {SINKPROOF_PANEL_BF16, SINKPROOF_PANEL_F32};
    for (size_t f = 0; f < 2; f++) {
        bool filled = false;
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            if (bench->quick && !all[i].quick) continue;
            attention with, without;
            make_attention(&with, bench, all[i].n, all[i].keys, all[i].window, formats[f]);
            make_attention(&without, bench, all[i].n, all[i].keys, all[i].window, formats[f]);
            for (size_t h = 0; h < GROUP; h++) without.sink_h[h] = -INFINITY;
            filled = measure_sink_cost(&with, &without, filled);
            free_attention(&with);
            free_attention(&without);
        }
    }
}

void bench_attention_scaling(sinkproof_bench *bench, const sinkproof_bench_list *keys) {
    fill_arena(bench, SINKPROOF_PANEL_BF16);
    for (int windowed = 0; windowed < 2; windowed++)
        for (size_t i = 0; i < keys->n; i++) {
            attention a;
            make_attention(&a, bench, 1, keys->at[i], windowed ? 128 : 0, SINKPROOF_PANEL_BF16);
            bench_case c = describe_attention_case(&a, true);
            json_object_set_new(c.more, "series",
                                json_string(windowed ? "attention, one query, window of 128"
                                                     : "attention, one query, all keys"));
            json_object_set_new(c.more, "tokens", json_integer(1));
            json_object_set_new(c.more, "at", json_integer((json_int_t)keys->at[i]));
            bench_measure(bench, 1, &c);
            free_attention(&a);
        }
}
