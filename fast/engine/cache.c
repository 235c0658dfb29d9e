// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Creates a cache and writes keys and values into their blocks. A key is a lane of its panel, so
// that one product gives sixteen scores; a value is a column, so that one product gives sixteen
// coordinates.
#include "fast/engine/cache.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = CACHE_BLOCK, ROWS = SINKPROOF_PANEL_ROWS, COLS = SINKPROOF_PANEL_COLS };
enum { LINE = 64 }; // bytes: alignment of blocks
enum { SPAN = SINKPROOF_SPAN_BLOCKS };

static size_t count_blocks(size_t n, size_t unit) {
    return (n + unit - 1) / unit;
}

static size_t smaller_size(size_t a, size_t b) {
    return a < b ? a : b;
}

// The blocks that a window layer must hold at once: a query's window, a step, and the beginning of
// a block.
static size_t ring_blocks(const sinkproof_config *config) {
    return count_blocks(config->window + CACHE_STEP + BLOCK - 1, BLOCK);
}

static size_t round_up_to_large_page(size_t bytes) {
    return count_blocks(bytes, LARGE_PAGE) * LARGE_PAGE;
}

// Places layer l from byte `at` on, and returns its end. A size beyond all memory stays so: the
// mapping will fail.
static size_t place_layer(kv_cache *cache, size_t l, size_t places, size_t at) {
    size_t with_sizes = cache->place_bytes + cache->n_kv_heads * sizeof(sinkproof_sizes);
    size_t bytes, end;
    cache->ring_l[l] = places;
    cache->offset_l[l] = at;
    bool fits = !__builtin_mul_overflow(places, with_sizes, &bytes) &&
                !__builtin_add_overflow(at, bytes, &end);
    return fits && end < SIZE_MAX / 8 ? count_blocks(end, LINE) * LINE : SIZE_MAX / 8;
}

// The sizes of head g's blocks in layer l.
static sinkproof_sizes *head_block_sizes(const kv_cache *cache, size_t l, size_t g) {
    size_t places = cache->ring_l[l];
    uint8_t *behind = cache->pages.data + cache->offset_l[l] + places * cache->place_bytes;
    return (sinkproof_sizes *)(void *)behind + g * places;
}

static bool is_ring(const kv_cache *cache, size_t l) {
    return cache->offset_l[l] >= cache->rings;
}

// Advises large pages in the full layers: after their first 2 MiB, where nothing is written yet; or
// (`first`) there, and in the rings too.
static void advise_cache_pages(const kv_cache *cache, bool first) {
    for (size_t l = 0; l < cache->n_layers; l++) {
        size_t bytes = cache->ring_l[l] * cache->place_bytes, large = LARGE_PAGE;
        uint8_t *data = cache->pages.data + cache->offset_l[l];
        if (is_ring(cache, l) || bytes < large) continue;
        if (first)
            pages_advise(data, large, true);
        else
            pages_advise(data + large, bytes / large * large - large, false);
    }
    size_t rings = cache->pages.bytes - cache->rings;
    rings -= rings % LARGE_PAGE;
    if (first && rings > 0) pages_advise(cache->pages.data + cache->rings, rings, true);
}

bool cache_new(const sinkproof_config *config, sinkproof_panel_format format, size_t max_tokens,
               kv_cache *cache, sinkproof_error *error) {
    size_t block = sinkproof_panel_block_bytes(format), d = config->head_dim;
    *cache = (kv_cache){.format = format,
                        .n_layers = config->n_layers,
                        .n_kv_heads = config->n_kv_heads,
                        .head_dim = d,
                        .key_bytes = BLOCK / ROWS * count_blocks(d, COLS) * block,
                        .value_bytes = count_blocks(d, ROWS) * block};
    cache->place_bytes = config->n_kv_heads * (cache->key_bytes + cache->value_bytes);
    cache->ring_l = calloc(2 * config->n_layers, sizeof *cache->ring_l);
    if (cache->ring_l == NULL) return sinkproof_fail(error, "no memory for a sequence");
    cache->offset_l = cache->ring_l + config->n_layers;
    size_t bytes = 0, blocks = count_blocks(max_tokens, BLOCK),
           whole = count_blocks(blocks, SPAN) * SPAN;
    for (size_t l = 0; l < config->n_layers; l++) {
        if (!config->sliding[l])
            bytes = place_layer(cache, l, whole, round_up_to_large_page(bytes));
    }
    cache->rings = bytes = round_up_to_large_page(bytes);
    for (size_t l = 0; l < config->n_layers; l++)
        if (config->sliding[l])
            bytes = place_layer(cache, l, smaller_size(blocks, ring_blocks(config)), bytes);
    if (!sinkproof_pages_new(bytes, SINKPROOF_LAZY_PAGES, "a key/value cache", &cache->pages,
                             error)) {
        free(cache->ring_l);
        return false;
    }
    advise_cache_pages(cache, false);
    return true;
}

void cache_free(kv_cache *cache) {
    sinkproof_pages_free(&cache->pages);
    free(cache->ring_l);
    cache->ring_l = NULL;
}

size_t cache_bytes(const kv_cache *cache, size_t tokens) {
    size_t places = 0;
    for (size_t l = 0; l < cache->n_layers; l++)
        places += smaller_size(count_blocks(tokens, BLOCK), cache->ring_l[l]);
    return places * cache->place_bytes;
}

void cache_settle_pages(kv_cache *cache, size_t tokens) {
    if (cache->settled || tokens / BLOCK * cache->place_bytes < LARGE_PAGE) return;
    cache->settled = true;
    advise_cache_pages(cache, true);
}

sinkproof_cache_view cache_head_view(const kv_cache *cache, size_t l, size_t g) {
    const bool bf16 = cache->format == SINKPROOF_PANEL_BF16, ring = is_ring(cache, l);
    const size_t bytes = cache->key_bytes + cache->value_bytes;
    const uint8_t *head =
        cache->pages.data + cache->offset_l[l] + g * (ring ? bytes : SPAN * bytes);
    return (sinkproof_cache_view){.format = cache->format,
                                  .head_dim = cache->head_dim,
                                  .ring = cache->ring_l[l],
                                  .place_stride = ring ? cache->place_bytes : bytes,
                                  .span_stride = SPAN * cache->place_bytes,
                                  .k = head,
                                  .v = head + cache->key_bytes,
                                  .sizes = bf16 ? head_block_sizes(cache, l, g) : NULL};
}

static uint16_t bf16_upper_half(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

// Key j of a block: lane j % 16 of panel j / 16, coordinate d in column d.
static void put_key(const kv_cache *cache, uint8_t *block, size_t j, const float *k_d) {
    uint8_t *panel = block + j / ROWS * (cache->key_bytes / (BLOCK / ROWS));
    if (cache->format == SINKPROOF_PANEL_F32) {
        float *lane = (float *)(void *)panel + j % ROWS;
        for (size_t d = 0; d < cache->head_dim; d++) lane[d * ROWS] = k_d[d];
        return;
    }
    uint16_t *lane = (uint16_t *)(void *)panel + j % ROWS * 2;
    for (size_t d = 0; d < cache->head_dim; d++)
        lane[d / 2 * 2 * ROWS + d % 2] = bf16_upper_half(k_d[d]);
}

// Value j of a block: column j; coordinate d in lane d % 16 of panel d / 16.
static void put_value(const kv_cache *cache, uint8_t *block, size_t j, const float *v_d) {
    if (cache->format == SINKPROOF_PANEL_F32) {
        float *column = (float *)(void *)block + j * ROWS;
        for (size_t d = 0; d < cache->head_dim; d++)
            column[d / ROWS * (ROWS * COLS) + d % ROWS] = v_d[d];
        return;
    }
    uint16_t *column = (uint16_t *)(void *)block + j / 2 * 2 * ROWS + j % 2;
    for (size_t d = 0; d < cache->head_dim; d++)
        column[d / ROWS * (ROWS * COLS) + d % ROWS * 2] = bf16_upper_half(v_d[d]);
}

// The exponent field of a float32 number, which is in its upper half.
static uint8_t float_exponent(float x) {
    return (uint8_t)(bf16_upper_half(x) >> 7 & 0xff);
}

static void include_row_sizes(size_t head_dim, const float *k_d, const float *v_d,
                              sinkproof_sizes *sizes) {
    for (size_t d = 0; d < head_dim; d++) {
        uint8_t k = float_exponent(k_d[d]), v = float_exponent(v_d[d]);
        if (k_d[d] != 0 && k < sizes->least_k) sizes->least_k = k;
        if (v_d[d] != 0 && v < sizes->least_v) sizes->least_v = v;
        if (v > sizes->most_v) sizes->most_v = v;
    }
}

void cache_append(const kv_cache *cache, size_t l, size_t g, size_t first, size_t n, const float *k,
                  const float *v, size_t stride) {
    const sinkproof_cache_view view = cache_head_view(cache, l, g);
    uint8_t *head = cache->pages.data + (view.k - cache->pages.data);
    sinkproof_sizes *sizes = head_block_sizes(cache, l, g);
    for (size_t i = 0; i < n; i++) {
        size_t b = (first + i) / BLOCK, j = (first + i) % BLOCK;
        size_t place = b % cache->ring_l[l];
        uint8_t *block = head + block_offset(&view, b);
        if (j == 0) {
            memset(block, 0, cache->key_bytes + cache->value_bytes);
            sizes[place] = (sinkproof_sizes){255, 255, 0};
        }
        if (cache->format == SINKPROOF_PANEL_BF16)
            include_row_sizes(cache->head_dim, k + i * stride, v + i * stride, &sizes[place]);
        put_key(cache, block, j, k + i * stride);
        put_value(cache, block + cache->key_bytes, j, v + i * stride);
    }
}
