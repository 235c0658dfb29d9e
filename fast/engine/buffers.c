// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The arrays of a pass, carved from one mapping that grows when a pass needs more and is then kept.
// It starts as zeros, and only zeros are written beyond a row's end.
#include "fast/engine/internal.h"

static size_t max2(size_t a, size_t b) {
    return a > b ? a : b;
}

enum { LINE = 64 };
static const size_t beyond = SIZE_MAX / 2; // more than any mapping; later sums do not wrap

static size_t times(size_t a, size_t b) {
    size_t product;
    return __builtin_mul_overflow(a, b, &product) || product > beyond ? beyond : product;
}

// Carves arrays from a mapping, or only counts their sizes without one.
typedef struct cutter {
    uint8_t *data;
    size_t used;
} cutter;

// Room for rows * width elements of `size` bytes.
static void *cut(cutter *from, size_t rows, size_t width, size_t size) {
    void *at = from->data != NULL ? from->data + from->used : NULL;
    size_t bytes = times(times(rows, width), size);
    bool fits = bytes < beyond - LINE - from->used;
    from->used = fits ? from->used + (bytes + LINE - 1) / LINE * LINE : beyond - LINE;
    return at;
}

// Number of elements of the largest point that an observer sees.
static size_t seen_numbers(const sinkproof_engine *e, const sinkproof_fast_buffers *b) {
    const sinkproof_config *c = e->config;
    size_t widest = max2(c->n_heads * c->head_dim, c->hidden);
    widest = max2(widest, times(c->n_chosen, max2(2 * c->inter, c->hidden)));
    widest = max2(max2(widest, c->n_experts), max2(times(c->n_heads, b->keys), c->vocab));
    return times(b->rows, widest);
}

static void carve(const sinkproof_engine *e, sinkproof_fast_buffers *b, cutter *from) {
    const sinkproof_config *c = e->config;
    const sinkproof_widths *w = &e->width;
    const size_t n = b->rows, s = times(n, c->n_chosen), f = sizeof(float), h = sizeof(uint16_t);
    b->x_nc = cut(from, n, w->hidden, f);
    b->t_nc = cut(from, n, w->hidden, f);
    b->t16_nc = cut(from, n, w->hidden, h);
    b->q_nd = cut(from, n, w->q, f);
    b->k_nd = cut(from, n, w->kv, f);
    b->v_nd = cut(from, n, w->kv, f);
    b->o_nd = cut(from, n, w->q, f);
    b->o16_nd = cut(from, n, w->q, h);
    b->out_nc = cut(from, n, w->hidden, f);
    b->router_ne = cut(from, n, w->experts, f);
    b->up_s2f = cut(from, s, w->up, f);
    b->act_sf = cut(from, s, w->act, f);
    b->act16_sf = cut(from, s, w->act, h);
    b->down_sc = cut(from, s, w->hidden, f);
    b->cos_nd = cut(from, n, c->head_dim / 2, f);
    b->sin_nd = cut(from, n, c->head_dim / 2, f);
    b->logits_nv = cut(from, b->logit_rows, w->vocab, f);
    b->segments = cut(from, n, 1, sizeof *b->segments);
    b->wanted = cut(from, n, 1, sizeof *b->wanted);
    b->state_sh = cut(from, b->spans, c->n_heads, sizeof *b->state_sh);
    b->span_shd = cut(from, times(b->spans, c->n_heads), (c->head_dim + 15) / 16 * 16, f);
    b->score_hij = cut(from, times(b->keys, n), c->n_heads, f);
    b->seen = cut(from, b->keys > 0 ? seen_numbers(e, b) : 0, 1, sizeof *b->seen);
}

bool sinkproof_fast_buffers_reserve(sinkproof_engine *e, size_t rows, size_t logit_rows,
                                    size_t keys, size_t spans, sinkproof_error *error) {
    sinkproof_fast_buffers *b = &e->b;
    if (!sinkproof_workers_reserve(e, rows, error)) return false;
    if (rows <= b->rows && logit_rows <= b->logit_rows && keys <= b->keys && spans <= b->spans)
        return true;
    sinkproof_fast_buffers grown = {.rows = max2(rows, b->rows),
                                    .logit_rows = max2(logit_rows, b->logit_rows),
                                    .keys = keys,
                                    .spans = max2(spans, b->spans)};
    cutter from = {NULL, 0};
    carve(e, &grown, &from);
    sinkproof_pages pages;
    if (!sinkproof_pages_new(from.used, SINKPROOF_LARGE_PAGES, "activations", &pages, error))
        return false;
    sinkproof_fast_buffers_free(b);
    from = (cutter){pages.data, 0};
    carve(e, &grown, &from);
    grown.pages = pages;
    *b = grown;
    return true;
}

void sinkproof_fast_buffers_free(sinkproof_fast_buffers *buffers) {
    sinkproof_pages_free(&buffers->pages);
    *buffers = (sinkproof_fast_buffers){.rows = 0};
}
