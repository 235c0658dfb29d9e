// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures matrix products at the model's shapes, in every format of weights, for one token up to a
// prompt. With few tokens the weights are read from memory: as many copies are used in turn as
// exceed the caches. OpenBLAS multiplies the same shapes in float32 for comparison, in turn with
// these kernels.
#include "audit/bench/bench.h"
#include "fast/kernels/blas.h"

#include <stdlib.h>
#include <string.h>

enum { COPIES = 64, MOST_TOKENS = 512, PIECES = 8 }; // PIECES: pieces of panels per thread

typedef struct shape {
    const char *name;
    size_t rows, cols, most_tokens;
    unsigned formats; // bit f: sinkproof_panel_format f
    bool peer;
} shape;

#define BIT(f) (1u << SINKPROOF_PANEL_##f)
static const shape shapes[] = {
    {"experts-up", 5760, 2880, 512, BIT(MXFP4) | BIT(BF16) | BIT(Q8_0) | BIT(F32), true},
    {"experts-down", 2880, 2880, 512, BIT(MXFP4), true},
    {"qkv", 5120, 2880, 512, BIT(BF16) | BIT(Q8_0), true},
    {"output", 2880, 4096, 512, BIT(BF16) | BIT(Q8_0), true},
    {"unembedding", 201088, 2880, 32, BIT(BF16) | BIT(Q8_0), false},
};
static const char *const format_names[] = {"f32", "bf16", "mxfp4", "q8_0"};

typedef struct product {
    sinkproof_bench *bench;
    sinkproof_product of;
    sinkproof_panels copy[COPIES];
    size_t copies, next, pieces, piece_panels;
    float *x, *y;
    uint16_t *x16;
    float *peer_rc; // weights of the library's product, or NULL
    const float *x_n[MOST_TOKENS];
    const uint16_t *x16_n[MOST_TOKENS];
    float *y_n[MOST_TOKENS];
} product;

// Scales of 1 (MXFP4) or 2^-7 (Q8_0); the exponent of bf16 numbers from 1/2 up to 1, by which pairs
// of them are multiplied as pairs.
static void fill_scales(const sinkproof_panels *w) {
    enum { HALF = 126 };
    if (w->format == SINKPROOF_PANEL_BF16) memset((uint8_t *)w->least_p, HALF, w->panels);
    uint8_t *scales = (uint8_t *)w->scales;
    size_t blocks = w->panels * w->blocks;
    if (w->format == SINKPROOF_PANEL_MXFP4) memset(scales, 127, blocks * 16);
    if (w->format == SINKPROOF_PANEL_Q8_0)
        for (size_t i = 0; i < blocks * 16; i++) scales[2 * i] = 0, scales[2 * i + 1] = 0x20;
}

static void run_piece(void *of, size_t piece, int worker) {
    product *p = of;
    const sinkproof_panels *w = p->of.weight;
    size_t first = piece * p->piece_panels, last = first + p->piece_panels;
    p->bench->table->linear(&p->of, first, last < w->panels ? last : w->panels,
                            p->bench->scratch_t[worker]);
}

static void run_product(void *of) {
    product *p = of;
    p->of.weight = &p->copy[p->next++ % p->copies];
    bench_share_pieces(p->bench->threads, p->pieces, run_piece, p);
}

typedef struct foreign {
    int threads;
    size_t n, rows, cols;
    const float *x_nc, *w_rc;
    float *y_nr;
} foreign;

static void run_peer(void *of) {
    const foreign *p = of;
    sinkproof_blas_product(p->threads, p->n, p->rows, p->cols, p->x_nc, p->w_rc, p->y_nr);
}

// Makes as many filled copies as exceed the largest cache, if the arena has room for them.
static void make_copies(product *p, sinkproof_panel_format format, size_t rows, size_t cols) {
    sinkproof_bench *bench = p->bench;
    size_t bytes = sinkproof_panels_bytes(format, rows, cols);
    size_t wanted = bench->last_level * 8 / bytes + 1;
    if (bench->quick) wanted = 2;
    if (wanted > COPIES) wanted = COPIES;
    if (wanted * bytes > bench->arena_bytes) wanted = bench->arena_bytes / bytes;
    p->copies = wanted;
    bench_fill_panels(format, bench->arena, wanted * bytes);
    for (size_t i = 0; i < wanted; i++) {
        p->copy[i] = sinkproof_panels_at(format, rows, cols, bench->arena + i * bytes);
        fill_scales(&p->copy[i]);
    }
    size_t panels = p->copy[0].panels, parts = (size_t)bench->threads * PIECES;
    p->piece_panels = ((panels + parts - 1) / parts + 7) / 8 * 8;
    p->pieces = (panels + p->piece_panels - 1) / p->piece_panels;
}

// Numbers with eight significant bits, which bf16 holds exactly.
static bool make_tokens(product *p, size_t rows, size_t cols) {
    size_t x_room = (cols + 31) / 32 * 32, y_room = (rows + 15) / 16 * 16;
    size_t n = rows > 100000 ? 32 : MOST_TOKENS;
    p->x = aligned_alloc(64, MOST_TOKENS * x_room * sizeof *p->x);
    p->x16 = aligned_alloc(64, MOST_TOKENS * x_room * sizeof *p->x16);
    p->y = aligned_alloc(64, n * y_room * sizeof *p->y);
    if (p->x == NULL || p->x16 == NULL || p->y == NULL) return false;
    bench_fill_panels(SINKPROOF_PANEL_BF16, (uint8_t *)p->x16,
                      MOST_TOKENS * x_room * sizeof *p->x16);
    memset(p->y, 0, n * y_room * sizeof *p->y);
    for (size_t i = 0; i < MOST_TOKENS * x_room; i++) {
        if (i % x_room >= cols) p->x16[i] = 0;
        uint32_t bits = (uint32_t)p->x16[i] << 16;
        memcpy(&p->x[i], &bits, sizeof bits);
    }
    for (size_t i = 0; i < n; i++) {
        p->x_n[i] = p->x + i * x_room;
        p->x16_n[i] = p->x16 + i * x_room;
        p->y_n[i] = p->y + i * y_room;
    }
    return true;
}

static bench_case describe_product_case(product *p, const char *name, bool pairs) {
    const sinkproof_panels *w = &p->copy[0];
    const double products = 2.0 * (double)(w->rows * w->cols * p->of.n);
    bench_case c = {.run = run_product, .of = p, .threads = p->bench->threads};
    snprintf(c.id, sizeof c.id, "product.%s.%s.%s.n%zu", name, format_names[w->format],
             pairs ? "bf16" : "f32", p->of.n);
    bool unit = pairs && w->format != SINKPROOF_PANEL_F32;
    c.need[unit ? BENCH_PAIRS : BENCH_FMA] = products;
    c.need[BENCH_MEMORY] =
        (double)(w->panels * w->blocks) *
        (double)(sinkproof_panel_block_bytes(w->format) + sinkproof_panel_scale_bytes(w->format));
    c.more = json_pack("{sI sI sI ss ss}", "rows", (json_int_t)w->rows, "cols", (json_int_t)w->cols,
                       "n", (json_int_t)p->of.n, "weights", format_names[w->format], "operands",
                       pairs ? "bf16" : "f32");
    return c;
}

static bench_case describe_peer(foreign *q, const char *name) {
    bench_case c = {.run = run_peer, .of = q, .threads = q->threads, .foreign = true};
    snprintf(c.id, sizeof c.id, "peer.openblas.%s.n%zu", name, q->n);
    c.need[BENCH_FMA] = 2.0 * (double)(q->rows * q->cols * q->n);
    c.more = json_pack("{sI sI sI ss ss}", "rows", (json_int_t)q->rows, "cols", (json_int_t)q->cols,
                       "n", (json_int_t)q->n, "weights", "f32", "operands", "f32");
    return c;
}

// Measures both kinds of operands, and the library's product if it is a peer, in turn.
static void measure_tokens(product *p, const shape *s, size_t n) {
    bench_case cases[SINKPROOF_BENCH_TOGETHER];
    const sinkproof_panels *w = &p->copy[0];
    product with_pairs = *p;
    size_t count = 0;
    p->of = (sinkproof_product){.n = n, .weight = w, .x_n = p->x_n, .y_n = p->y_n};
    with_pairs.of = p->of;
    with_pairs.of.x16_n = with_pairs.x16_n;
    cases[count++] = describe_product_case(p, s->name, false);
    if (p->bench->table->pairs && w->format != SINKPROOF_PANEL_F32)
        cases[count++] = describe_product_case(&with_pairs, s->name, true);
    foreign q = {p->bench->threads, n, w->rows, w->cols, p->x, p->peer_rc, p->y};
    if (p->peer_rc != NULL && n >= 32) cases[count++] = describe_peer(&q, s->name);
    bench_measure(p->bench, count, cases);
}

// The numbers of tokens that are measured, ascending, and how many there are.
static const size_t *token_counts(const sinkproof_bench *bench, size_t *count) {
    static const size_t all[] = {1, 2, 4, 8, 32, 128, 512}, few[] = {1, 8, 32};
    *count = bench->quick ? sizeof few / sizeof *few : sizeof all / sizeof *all;
    return bench->quick ? few : all;
}

// Whether --only selects any case of this shape and format: filling the weights takes time.
static bool any_case_is_wanted(const sinkproof_bench *bench, const shape *s,
                               sinkproof_panel_format f, bool peer) {
    char id[96];
    size_t count;
    const size_t *tokens = token_counts(bench, &count);
    for (size_t i = 0; i < count && tokens[i] <= s->most_tokens; i++) {
        size_t n = tokens[i];
        bool with_pairs = bench->table->pairs && f != SINKPROOF_PANEL_F32;
        for (int pairs = 0; pairs < (with_pairs ? 2 : 1); pairs++) {
            snprintf(id, sizeof id, "product.%s.%s.%s.n%zu", s->name, format_names[f],
                     pairs ? "bf16" : "f32", n);
            if (bench_is_wanted(bench, id)) return true;
        }
        snprintf(id, sizeof id, "peer.openblas.%s.n%zu", s->name, n);
        if (peer && n >= 32 && bench_is_wanted(bench, id)) return true;
    }
    return false;
}

static void measure_format(product *p, const shape *s, sinkproof_panel_format f, bool peer) {
    size_t count;
    const size_t *tokens = token_counts(p->bench, &count);
    size_t rows = s->rows, cols = s->cols;
    if (p->bench->quick) rows = rows / 16 < 512 ? rows / 16 : 512, cols = cols / 4;
    cols = cols / 32 * 32;
    sinkproof_bench_say("filling weights");
    make_copies(p, f, rows, cols);
    if (p->copies == 0 || !make_tokens(p, rows, cols)) abort();
    if (peer) {
        p->peer_rc = aligned_alloc(64, rows * cols * sizeof *p->peer_rc);
        if (p->peer_rc == NULL) abort();
        bench_fill_panels(SINKPROOF_PANEL_F32, (uint8_t *)p->peer_rc, rows * cols * 4);
    }
    for (size_t i = 0; i < count && tokens[i] <= s->most_tokens; i++)
        measure_tokens(p, s, tokens[i]);
    free(p->peer_rc);
    free(p->x);
    free(p->x16);
    free(p->y);
}

void sinkproof_bench_products(sinkproof_bench *bench) {
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        bool peer = shapes[s].peer; // once per shape
        for (int f = SINKPROOF_PANEL_FORMATS - 1; f >= 0; f--) {
            if ((shapes[s].formats >> f & 1) == 0) continue;
            if (!any_case_is_wanted(bench, &shapes[s], (sinkproof_panel_format)f, peer)) continue;
            if (bench->looks) {
                bench->matched++;
                continue;
            }
            product *p = calloc(1, sizeof *p);
            if (p == NULL) abort();
            p->bench = bench;
            measure_format(p, &shapes[s], (sinkproof_panel_format)f, peer);
            peer = false;
            free(p);
        }
    }
}
