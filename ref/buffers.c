// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The memory of one chunk: sizes checked for overflow, counted in a first pass, carved in a second.
#include "ref/buffers.h"

#include "base/words.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_ROWS = 64 };

typedef struct arena {
    double *base; // NULL while counting
    size_t used;
    bool overflow;
} arena;

// Room for a * b * c doubles.
static double *take_doubles(arena *a, size_t x, size_t y, size_t z) {
    size_t count, end;
    if (__builtin_mul_overflow(x, y, &count) || __builtin_mul_overflow(count, z, &count) ||
        __builtin_add_overflow(a->used, count, &end) || end > SIZE_MAX / sizeof(double)) {
        a->overflow = true;
        return NULL;
    }
    double *room = a->base != NULL ? a->base + a->used : NULL;
    a->used = end;
    return room;
}

static size_t max2(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t work_size(const sinkproof_config *c, size_t n) {
    size_t heads = c->n_heads * c->head_dim;
    size_t size = stage_experts_work(c, n);
    size = max2(size, sinkproof_linear_work(n, heads, c->hidden));
    size = max2(size, sinkproof_linear_work(n, c->hidden, heads));
    size = max2(size, sinkproof_normaliser_work(c));
    size = max2(size, sinkproof_linear_work(n, c->n_experts, c->hidden));
    return max2(size, sinkproof_linear_work(n, c->vocab, c->hidden));
}

static void place_attention(arena *a, const sinkproof_config *c, size_t n, size_t keys,
                            bool observed, chunk_buffers *b) {
    size_t heads = observed ? c->n_heads : 1;
    b->rows = observed || n < BLOCK_ROWS ? n : BLOCK_ROWS;
    b->freq_d = take_doubles(a, 1, 1, c->head_dim / 2);
    b->cos_nd = take_doubles(a, 1, n, c->head_dim / 2);
    b->sin_nd = take_doubles(a, 1, n, c->head_dim / 2);
    b->q_nhd = take_doubles(a, n, c->n_heads, c->head_dim);
    b->k_ngd = take_doubles(a, n, c->n_kv_heads, c->head_dim);
    b->v_ngd = take_doubles(a, n, c->n_kv_heads, c->head_dim);
    b->o_nhd = take_doubles(a, n, c->n_heads, c->head_dim);
    b->b_i = take_doubles(a, 1, 1, b->rows);
    b->s_hij = take_doubles(a, heads, b->rows, keys);
    b->alpha_hij = take_doubles(a, heads, b->rows, keys + 1);
    b->weight_hij = observed ? take_doubles(a, heads, b->rows, keys) : NULL;
}

static void place_experts(arena *a, const sinkproof_config *c, size_t n, bool observed,
                          chunk_buffers *b) {
    b->router_ne = take_doubles(a, 1, n, c->n_experts);
    b->weights_nk = take_doubles(a, 1, n, c->n_chosen);
    b->chosen_real_nk = take_doubles(a, 1, n, c->n_chosen);
    b->chosen_nk = (int32_t *)(void *)take_doubles(a, 1, n, c->n_chosen);
    b->experts.down = take_doubles(a, n, c->n_chosen, c->hidden);
    if (!observed) return;
    b->experts.up_raw = take_doubles(a, n, c->n_chosen, 2 * c->inter);
    b->experts.up = take_doubles(a, n, c->n_chosen, 2 * c->inter);
    b->experts.act = take_doubles(a, n, c->n_chosen, c->inter);
    b->experts.down_raw = take_doubles(a, n, c->n_chosen, c->hidden);
}

static void place_buffers(arena *a, const sinkproof_config *c, size_t n, size_t keys, bool observed,
                          bool logits, chunk_buffers *b) {
    b->x_nc = take_doubles(a, 1, n, c->hidden);
    b->t_nc = take_doubles(a, 1, n, c->hidden);
    b->out_nc = take_doubles(a, 1, n, c->hidden);
    place_attention(a, c, n, keys, observed, b);
    place_experts(a, c, n, observed, b);
    b->logits_nv = logits ? take_doubles(a, 1, n, c->vocab) : NULL;
    b->work = take_doubles(a, 1, 1, work_size(c, n));
}

bool buffers_new(const sinkproof_config *config, size_t n, size_t keys, bool observed, bool logits,
                 chunk_buffers *buffers, sinkproof_error *error) {
    arena a = {NULL, 0, false};
    memset(buffers, 0, sizeof *buffers);
    place_buffers(&a, config, n, keys, observed, logits, buffers);
    if (!a.overflow) a.base = calloc(a.used, sizeof *a.base);
    if (a.base == NULL)
        return sinkproof_fail(error, "no memory for %s of the forward pass (%zu MiB were needed)",
                              sinkproof_counted(n, "token").text,
                              a.used / ((1u << 20) / sizeof *a.base));
    a.used = 0;
    place_buffers(&a, config, n, keys, observed, logits, buffers);
    buffers->memory = a.base;
    return true;
}

void buffers_free(chunk_buffers *buffers) {
    free(buffers->memory);
    memset(buffers, 0, sizeof *buffers);
}
