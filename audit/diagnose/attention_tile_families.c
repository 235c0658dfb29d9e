// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The families of guesses at the tiles in which a kernel reads keys and values: its last tile, what
// is left behind the last whole one, buffers that still hold an earlier tile, and pointers that are
// some rows late.
#include "audit/diagnose/attention_hunt.h"

static const sinkproof_attending defined = SINKPROOF_ATTENDING;

// The last tile of a query, or what is left of one: not read, read twice, read as zeros, not
// summed, or as those of an earlier tile.
static void offer_last_tile(hunt *h, const family_arguments *of, const sinkproof_cache_read *tile) {
    sinkproof_attending m = defined;
    m.cache = *tile;
    m.cache.times = of->times, m.cache.moved = of->moved;
    m.cache.zeros = of->zeros, m.cache.unsummed = of->unsummed;
    bool stale = of->moved != 0 && !of->zeros;
    // one boundary of tiles is told by keys that stand elsewhere from one on
    if (stale && 2 * tile->count >= h->view->keys) return;
    for (ptrdiff_t tiles = stale; tiles <= (stale ? 3 : 0); tiles++) {
        m.cache.by = -tiles * (ptrdiff_t)tile->count;
        hunt_offer(h, &m);
    }
}

void guess_last_tiles(hunt *h, const family_arguments *of) {
    if (h->view->end_row - h->view->first_row < 2) return; // one row tells no tile
    for (size_t size = 2; size < h->view->keys; size = hunt_next_size(size))
        for (int seen = 0; seen < (h->view->layer_window > 0 ? 2 : 1); seen++)
            for (int kind = SINKPROOF_CACHE_TILE; kind <= SINKPROOF_CACHE_EDGE; kind++) {
                sinkproof_cache_read tile = {.kind = (sinkproof_cache_kind)kind, .count = size};
                if (kind == SINKPROOF_CACHE_EDGE && (seen || h->view->layer_window == 0)) continue;
                tile.seen = seen != 0;
                offer_last_tile(h, of, &tile);
                tile.first = 1;
                if (kind == SINKPROOF_CACHE_TILE) offer_last_tile(h, of, &tile);
            }
}

// All keys from one on are those of an earlier place: a buffer that was not written again.
void guess_keys_again(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    size_t n = h->view->end_row;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = of->moved};
    for (m.cache.first = 1; m.cache.first < n; m.cache.first = hunt_next_size(m.cache.first))
        for (size_t by = 1; by <= m.cache.first; by = hunt_next_size(by)) {
            m.cache.count = h->view->keys - m.cache.first, m.cache.by = -(ptrdiff_t)by;
            hunt_offer(h, &m);
        }
}

// A pointer that is some rows late or early; rows behind the last that is there are zeros, or the
// last one again. What is there grows with each step behind the first pass.
void guess_keys_late(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    size_t n = h->view->keys;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = of->moved};
    m.cache.count = n;
    size_t last = h->view->plain ? n : 1; // in one sequence alone rows have positions
    for (m.cache.by = -4; m.cache.by <= 4; m.cache.by++)
        for (m.cache.steps = 0; m.cache.steps < last;
             m.cache.steps = m.cache.steps == 0 ? 1 : hunt_next_size(m.cache.steps))
            for (int edge = 0; edge < 2; edge++) {
                m.cache.edge = edge != 0;
                bool again = m.cache.steps == 0 && !m.cache.edge; // told by another family
                if (m.cache.by == 0 || again || (m.cache.by < 0 && m.cache.steps > 0)) continue;
                hunt_offer(h, &m);
            }
}

// The weights of keys and sink without their first or their last column.
void guess_columns(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    if (!h->view->plain || h->view->from > 0) return;
    m.columns = SINKPROOF_COLUMNS_WITHOUT_LAST; // without weights it is told by the sink's value
    if (h->view->of->point == TRACE_A10) hunt_offer(h, &m);
    m.columns = SINKPROOF_COLUMNS_WITHOUT_FIRST;
    for (m.steps = 0; m.steps < h->view->keys; m.steps = m.steps == 0 ? 1 : hunt_next_size(m.steps))
        hunt_offer(h, &m);
}

// Keys or values of each tile in another order, as a load or a transposition leaves them.
void guess_tile_orders(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_ORDER, .times = 1, .moved = of->moved};
    for (m.cache.count = 2; m.cache.count < h->view->keys && m.cache.count <= 128;
         m.cache.count = hunt_next_size(m.cache.count))
        for (int order = SINKPROOF_TILE_REVERSED; order <= SINKPROOF_TILE_GATHERED; order++) {
            m.cache.by = order;
            bool alike = m.cache.count == 2 || (m.cache.count < 6 && order > SINKPROOF_TILE_SPREAD);
            if (order == SINKPROOF_TILE_REVERSED || (m.cache.count % 2 == 0 && !alike))
                hunt_offer(h, &m);
        }
}

// The window bounds the sum alone, or the values alone.
void guess_half_windows(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    size_t window = h->view->layer_window;
    (void)of;
    m.window = SINKPROOF_WINDOW_OFF;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_BEFORE, .times = 1, .first = window};
    if (window == 0 || window >= h->view->keys) return;
    m.cache.count = h->view->keys - window;
    m.cache.unsummed = true, hunt_offer(h, &m);
    m.cache.unsummed = false, m.cache.moved = SINKPROOF_CACHE_VALUES, m.cache.zeros = true;
    hunt_offer(h, &m);
}

// The first keys of all, or the last ones of a query, weigh more or less: a number is added to
// their scores.
void guess_keys_favoured(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    m.cache = (sinkproof_cache_read){.kind = of->kind, .times = 1};
    for (m.cache.first = 0; m.cache.first < 2; m.cache.first++)
        for (m.cache.count = 1; m.cache.count <= 4; m.cache.count *= 2)
            hunt_offer_fitted(h, &m, &m.cache.times, true, 1e4);
}
