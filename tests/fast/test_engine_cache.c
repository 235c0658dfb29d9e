// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The key/value cache: every key and value lies where fast/kernels/kernels.h says, in both formats,
// also when a ring has gone round; and what a place held before never shows, not even a NaN.
#include "fast/engine/cache.h"
#include "fast/kernels/isa.h"
#include "tests/shared/block_sizes.h"
#include "tests/shared/opened.h"
#include "tests/shared/reference.h"

#include <math.h>

static uint64_t state = 5;

static sinkproof_config config_of(size_t head_dim) {
    sinkproof_config config;
    if (!sinkproof_config_named("tiny", &config)) exit(1);
    config.head_dim = head_dim;
    return config;
}

static kv_cache cache_of(const sinkproof_config *config, sinkproof_panel_format format,
                         size_t max_tokens) {
    kv_cache cache;
    sinkproof_error error;
    need(cache_new(config, format, max_tokens, &cache, &error), &error);
    return cache;
}

// n rows of bf16 numbers, so that both formats hold them.
static float *rows_of(size_t n, size_t width) {
    float *x = malloc(n * width * sizeof *x);
    for (size_t i = 0; i < n * width; i++)
        x[i] = (float)sinkproof_round(SINKPROOF_BF16, next_real(&state, 4));
    return x;
}

// Elements that are not in their place: the views of keys and values as panels, read back.
static size_t misplaced(const kv_cache *cache, size_t l, size_t g, size_t position,
                        const float *k_d, const float *v_d) {
    sinkproof_cache_view view = cache_head_view(cache, l, g);
    size_t d = cache->head_dim, b = position / 32, j = position % 32, wrong = 0;
    double row[64], column[32];
    const uint8_t *at = view.k + block_offset(&view, b);
    sinkproof_panels keys = sinkproof_panels_at(view.format, 32, d, at);
    panels_decode_row(&keys, j, row);
    for (size_t c = 0; c < d; c++) wrong += !(row[c] == k_d[c]);
    at = view.v + block_offset(&view, b);
    sinkproof_panels values = sinkproof_panels_at(view.format, d, 32, at);
    for (size_t c = 0; c < d; c++) {
        panels_decode_row(&values, c, column);
        wrong += !(column[j] == v_d[c]);
    }
    return wrong;
}

// Whether the sizes of the block that holds `position`, the last one, are those of its numbers.
static bool sizes_told(const kv_cache *cache, size_t l, size_t g, size_t position, const float *k,
                       const float *v, size_t stride) {
    sinkproof_cache_view view = cache_head_view(cache, l, g);
    if (view.format == SINKPROOF_PANEL_F32) return view.sizes == NULL;
    sinkproof_sizes found = view.sizes[position / 32 % view.ring], told = no_sizes;
    for (size_t i = position / 32 * 32; i <= position; i++)
        for (size_t d = 0; d < cache->head_dim; d++) {
            size_t at = i * stride + g * cache->head_dim + d;
            count_in(&told, (double)k[at], (double)v[at]);
        }
    return memcmp(&found, &told, sizeof told) == 0;
}

// 500 positions in pieces; after each the last ones of every layer and head are looked up.
static void test_places(sinkproof_panel_format format, size_t head_dim) {
    sinkproof_config config = config_of(head_dim);
    kv_cache cache = cache_of(&config, format, 500);
    size_t heads = config.n_kv_heads, width = heads * head_dim, wrong = 0, looked = 0, n;
    size_t blocks = 0, untold = 0;
    float *k = rows_of(500, width), *v = rows_of(500, width);
    // Zeros, infinities and subnormal numbers among them, and a block of zeros alone.
    for (size_t i = 0; i + 1 < 500 * width; i += 97) k[i] = v[i + 1] = i % 2 == 0 ? 0 : 0x1p-130f;
    for (size_t i = 300 * width; i + 1 < 500 * width; i += 1009) k[i] = v[i + 1] = -INFINITY;
    memset(k + 64 * width, 0, 32 * width * sizeof *k);
    memset(v + 96 * width, 0, 32 * width * sizeof *v);
    for (size_t first = 0; first < 500; first += n) {
        n = 1 + first % 50 < 500 - first ? 1 + first % 50 : 500 - first;
        for (size_t l = 0; l < config.n_layers; l++)
            for (size_t g = 0; g < heads; g++) {
                size_t at = first * width + g * head_dim, end = first + n;
                cache_append(&cache, l, g, first, n, k + at, v + at, width);
                untold += !sizes_told(&cache, l, g, end - 1, k, v, width);
                blocks++;
                size_t seen = config.sliding[l] ? config.window + CACHE_STEP - 1 : end;
                for (size_t i = end > seen ? end - seen : 0; i < end; i++, looked++) {
                    at = i * width + g * head_dim;
                    wrong += misplaced(&cache, l, g, i, k + at, v + at);
                }
            }
    }
    ok(wrong == 0, "cache %s, heads of %zu: %zu keys and values in their places, worst=%zu bound=0",
       format == SINKPROOF_PANEL_F32 ? "float32" : "bf16", head_dim, looked, wrong);
    ok(untold == 0, "cache %s, heads of %zu: the sizes of %zu blocks are told, worst=%zu bound=0",
       format == SINKPROOF_PANEL_F32 ? "float32" : "bf16", head_dim, blocks, untold);
    cache_free(&cache);
    free(k);
    free(v);
}

// Every place of every layer and head has bytes of its own, within the cache; in a full layer the
// places of a head's span follow each other.
static void test_streams(sinkproof_panel_format format) {
    sinkproof_config config = config_of(64);
    kv_cache cache = cache_of(&config, format, 700);
    size_t bytes = cache.key_bytes + cache.value_bytes, shared = 0, apart = 0, places = 0;
    uint8_t *taken = calloc(cache.pages.bytes, 1);
    if (taken == NULL) exit(1);
    for (size_t l = 0; l < config.n_layers; l++)
        for (size_t g = 0; g < config.n_kv_heads; g++) {
            sinkproof_cache_view view = cache_head_view(&cache, l, g);
            size_t head = (size_t)(view.k - cache.pages.data);
            for (size_t b = 0; b < view.ring; b++, places++) {
                size_t at = head + block_offset(&view, b);
                if (at + bytes > cache.pages.bytes) shared += bytes;
                for (size_t i = at; i < at + bytes && i < cache.pages.bytes; i++)
                    shared += taken[i]++ != 0;
                if (!config.sliding[l] && b % SINKPROOF_SPAN_BLOCKS != 0)
                    apart += at != head + block_offset(&view, b - 1) + bytes;
            }
        }
    ok(shared == 0 && apart == 0, "cache %s: %zu places, bytes that two have worst=%zu bound=0",
       format == SINKPROOF_PANEL_F32 ? "float32" : "bf16", places, shared);
    cache_free(&cache);
    free(taken);
}

// What one query reads from a cache that held NaN before, and from a fresh one.
static void test_no_leak(sinkproof_panel_format format) {
    enum { D = 16, BEFORE = 200, N = 5 };
    sinkproof_config config = config_of(D);
    const sinkproof_kernels *kernels = sinkproof_isa_choose(NULL, NULL);
    kv_cache used = cache_of(&config, format, 256), fresh = cache_of(&config, format, 256);
    float *k = rows_of(N, D), *v = rows_of(N, D), *q = rows_of(1, D), nan_d[D], o[2][D];
    void *scratch = aligned_alloc(64, SINKPROOF_SCRATCH);
    const float sink = 0.5f;
    size_t wrong = 0;
    for (size_t d = 0; d < D; d++) nan_d[d] = d % 2 == 0 ? NAN : INFINITY;
    for (size_t l = 0; l < 2; l++) { // a ring, and a full layer
        kv_cache *caches[] = {&used, &fresh};
        for (size_t i = 0; i < BEFORE; i++) cache_append(&used, l, 0, i, 1, nan_d, nan_d, D);
        for (size_t c = 0; c < 2; c++) {
            cache_append(caches[c], l, 0, 0, N, k, v, D);
            sinkproof_attention a = {.cache = cache_head_view(caches[c], l, 0),
                                     .group = 1,
                                     .n = 1,
                                     .first = N - 1,
                                     .window = config.sliding[l] ? config.window : 0,
                                     .scale = 0.25f,
                                     .sink_h = &sink,
                                     .q = q,
                                     .q_stride = D,
                                     .o = o[c],
                                     .o_stride = D};
            kernels->attend(&a, scratch);
        }
        for (size_t d = 0; d < D; d++) wrong += !(o[0][d] == o[1][d]);
    }
    ok(wrong == 0, "cache %s: a former NaN is gone, worst=%zu bound=0",
       format == SINKPROOF_PANEL_F32 ? "float32" : "bf16", wrong);
    cache_free(&used);
    cache_free(&fresh);
    free(k);
    free(v);
    free(q);
    free(scratch);
}

// A whole context is reserved, a short text needs its blocks alone.
static void test_bytes(void) {
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) exit(1);
    kv_cache cache = cache_of(&config, SINKPROOF_PANEL_BF16, config.max_context);
    // 12 full layers of 2 KiB a position, 12 rings of 9 places of 64 KiB.
    size_t whole = cache_bytes(&cache, config.max_context), block = (size_t)32 * 2 * 8 * 64 * 2;
    ok(whole == 12 * block * (config.max_context / 32) + 12 * 9 * block &&
           cache_bytes(&cache, 0) == 0 && cache_bytes(&cache, 33) == 24 * 2 * block,
       "cache of 131072 tokens of gpt-oss-20b in bf16: %zu MiB, of 33 tokens %zu KiB", whole >> 20,
       cache_bytes(&cache, 33) >> 10);
    cache_free(&cache);
}

int main(void) {
    test_places(SINKPROOF_PANEL_F32, 16);
    test_places(SINKPROOF_PANEL_BF16, 16);
    test_places(SINKPROOF_PANEL_F32, 64);
    test_places(SINKPROOF_PANEL_BF16, 48);
    test_streams(SINKPROOF_PANEL_F32);
    test_streams(SINKPROOF_PANEL_BF16);
    test_no_leak(SINKPROOF_PANEL_F32);
    test_no_leak(SINKPROOF_PANEL_BF16);
    test_bytes();
    return tap_done();
}
