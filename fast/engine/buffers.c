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

static size_t rows_times_saturated(size_t a, size_t b) {
    size_t product;
    return __builtin_mul_overflow(a, b, &product) || product > beyond ? beyond : product;
}

// Carves arrays from a mapping, or only counts their sizes without one.
typedef struct cutter {
    uint8_t *data;
    size_t used;
} cutter;

// Room for rows * width elements of `size` bytes.
static void *take_room(cutter *from, size_t rows, size_t width, size_t size) {
    void *at = from->data != NULL ? from->data + from->used : NULL;
    size_t bytes = rows_times_saturated(rows_times_saturated(rows, width), size);
    bool fits = bytes < beyond - LINE - from->used;
    from->used = fits ? from->used + (bytes + LINE - 1) / LINE * LINE : beyond - LINE;
    return at;
}

// Number of elements of the largest point that an observer sees.
static size_t largest_shown_point(const sinkproof_engine *e, const fast_buffers *b) {
    const sinkproof_config *c = e->config;
    size_t widest = max2(c->n_heads * c->head_dim, c->hidden);
    widest = max2(widest, rows_times_saturated(c->n_chosen, max2(2 * c->inter, c->hidden)));
    widest =
        max2(max2(widest, c->n_experts), max2(rows_times_saturated(c->n_heads, b->keys), c->vocab));
    return rows_times_saturated(b->rows, widest);
}

static void place_buffers(const sinkproof_engine *e, fast_buffers *b, cutter *from) {
    const sinkproof_config *c = e->config;
    const engine_widths *w = &e->width;
    const size_t n = b->rows, s = rows_times_saturated(n, c->n_chosen), f = sizeof(float),
                 h = sizeof(uint16_t);
    b->x_nc = take_room(from, n, w->hidden, f);
    b->t_nc = take_room(from, n, w->hidden, f);
    b->t16_nc = take_room(from, n, w->hidden, h);
    b->q_nd = take_room(from, n, w->q, f);
    b->k_nd = take_room(from, n, w->kv, f);
    b->v_nd = take_room(from, n, w->kv, f);
    b->o_nd = take_room(from, n, w->q, f);
    b->o16_nd = take_room(from, n, w->q, h);
    b->out_nc = take_room(from, n, w->hidden, f);
    b->router_ne = take_room(from, n, w->experts, f);
    b->up_s2f = take_room(from, s, w->up, f);
    b->act_sf = take_room(from, s, w->act, f);
    b->act16_sf = take_room(from, s, w->act, h);
    b->down_sc = take_room(from, s, w->hidden, f);
    b->cos_nd = take_room(from, n, c->head_dim / 2, f);
    b->sin_nd = take_room(from, n, c->head_dim / 2, f);
    b->logits_nv = take_room(from, b->logit_rows, w->vocab, f);
    b->segments = take_room(from, n, 1, sizeof *b->segments);
    b->wanted = take_room(from, n, 1, sizeof *b->wanted);
    b->state_sh = take_room(from, b->spans, c->n_heads, sizeof *b->state_sh);
    b->span_shd = take_room(from, rows_times_saturated(b->spans, c->n_heads),
                            (c->head_dim + 15) / 16 * 16, f);
    b->score_hij = take_room(from, rows_times_saturated(b->keys, n), c->n_heads, f);
    b->seen = take_room(from, b->keys > 0 ? largest_shown_point(e, b) : 0, 1, sizeof *b->seen);
}

bool fast_buffers_reserve(sinkproof_engine *e, size_t rows, size_t logit_rows, size_t keys,
                          size_t spans, sinkproof_error *error) {
    fast_buffers *b = &e->b;
    if (!workers_reserve(e, rows, error)) return false;
    if (rows <= b->rows && logit_rows <= b->logit_rows && keys <= b->keys && spans <= b->spans)
        return true;
    fast_buffers grown = {.rows = max2(rows, b->rows),
                          .logit_rows = max2(logit_rows, b->logit_rows),
                          .keys = keys,
                          .spans = max2(spans, b->spans)};
    cutter from = {NULL, 0};
    place_buffers(e, &grown, &from);
    sinkproof_pages pages;
    if (!sinkproof_pages_new(from.used, SINKPROOF_LARGE_PAGES, "activations", &pages, error))
        return false;
    fast_buffers_free(b);
    from = (cutter){pages.data, 0};
    place_buffers(e, &grown, &from);
    grown.pages = pages;
    *b = grown;
    return true;
}

void fast_buffers_free(fast_buffers *buffers) {
    sinkproof_pages_free(&buffers->pages);
    *buffers = (fast_buffers){.rows = 0};
}
