// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The families of guesses at the keys and values that attention reads: which, and as what.
#include "audit/diagnose/attention_hunt.h"
#include "audit/judge/judge_read_source.h"

static const sinkproof_attending defined = SINKPROOF_ATTENDING;

// ---- what a query sees

void guess_window(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    size_t n = h->view->keys, window = h->view->config->window;
    for (size_t w = 1; w < n && window > 0; w = hunt_next_size(w)) {
        m.window_by = (ptrdiff_t)w - (ptrdiff_t)window;
        m.window = SINKPROOF_WINDOW_DEFINED;
        if (h->view->layer_window > 0 && w != window) hunt_offer(h, &m);
        m.window = SINKPROOF_WINDOW_ON;
        if (h->view->layer_window == 0) hunt_offer(h, &m);
    }
    m = defined, m.window = SINKPROOF_WINDOW_OFF;
    if (h->view->layer_window > 0) hunt_offer(h, &m);
}

void guess_later(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    for (m.later = 1; m.later < h->view->keys; m.later = hunt_next_size(m.later)) {
        m.window = SINKPROOF_WINDOW_DEFINED, hunt_offer(h, &m);
        m.window = SINKPROOF_WINDOW_OFF;
        if (h->view->layer_window > 0) hunt_offer(h, &m);
    }
}

// Rows from a position on see no key before it, or before another one.
void guess_first_key(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    for (m.from = 1; m.from + 1 < h->view->keys; m.from = hunt_next_size(m.from)) {
        m.first_row = 0, hunt_offer(h, &m);
        m.first_row = attention_row_from(h->view, m.from);
        if (h->view->plain && m.first_row > 0) hunt_offer(h, &m);
    }
    m.first_row = 0, m.from = h->view->keys, hunt_offer(h, &m);
}

// What a query sees in whole blocks.
void guess_blocks(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    for (size_t unit = 2; unit < h->view->keys; unit = hunt_next_size(unit)) {
        m = defined, m.block = unit;
        // one boundary is told by another family
        if (2 * unit < h->view->keys) hunt_offer(h, &m);
        m.block_window = true;
        if (h->view->layer_window > 0) hunt_offer(h, &m);
        m = defined, m.row_unit = unit, hunt_offer(h, &m);
        m = defined, m.window_unit = unit;
        if (h->view->layer_window > 0) hunt_offer(h, &m);
    }
}

// Tiles of rows: the keys of some tiles before the query's own, or all keys of its own. The first
// tile may be of another length, as the first pass over a prompt is.
static void offer_tilings(hunt *h, size_t first, size_t rows) {
    sinkproof_attending m = defined;
    m.tiling = (sinkproof_tiling){.first = first, .rows = rows};
    // with two tiles, rows of the second see no key before it: another family tells that
    for (m.tiling.before = first == rows; m.tiling.before <= 4; m.tiling.before++)
        if (first + rows < h->view->keys && first + m.tiling.before * rows < h->view->keys)
            hunt_offer(h, &m);
    m.tiling.before = 0, m.tiling.later = true;
    if (first != rows) hunt_offer(h, &m); // one length is told by another family
    m.tiling.later = false, m.tiling.anew = true, hunt_offer(h, &m);
}

void guess_tiles(hunt *h, const family_arguments *of) {
    size_t keys = h->view->keys, begin = attention_first_failing(h->view);
    (void)of;
    for (size_t rows = 2; rows < keys; rows = hunt_next_size(rows)) {
        offer_tilings(h, rows, rows);
        for (size_t back = 0; back < rows && back <= begin && h->view->plain; back++)
            if (begin - back > 1 && (begin - back) % rows != 0)
                offer_tilings(h, begin - back, rows);
    }
}

void guess_prefix(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    for (m.prefix = 2; m.prefix < h->view->keys; m.prefix = hunt_next_size(m.prefix))
        hunt_offer(h, &m);
}

void guess_across(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    m.across = true;
    if (sinkproof_trace_sequences(h->view->of->trace) > 1) hunt_offer(h, &m);
}

// The window, and the first keys of all beside it.
void guess_first_keys_kept(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    size_t window = h->view->config->window, n = h->view->keys;
    m.window = SINKPROOF_WINDOW_OFF;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_BEHIND};
    // of the window any number of first keys; of windows of other lengths a few
    for (m.cache.count = 1; m.cache.count < n; m.cache.count = hunt_next_size(m.cache.count))
        for (m.cache.first = 1; m.cache.first + m.cache.count < n;
             m.cache.first = hunt_next_size(m.cache.first))
            if (m.cache.count == window || m.cache.first <= 16) hunt_offer(h, &m);
}

// ---- keys that are left out, counted otherwise, or read as zeros

// The first keys of all left out, and the last ones of a window, are told by another family; and
// without a window the first keys that are seen are those of the cache.
static bool is_told_otherwise(const hunt *h, const sinkproof_cache_read *c) {
    size_t window = h->view->layer_window;
    if (c->kind == SINKPROOF_CACHE_SEEN) return window == 0 || c->first + c->count > window;
    // keys behind the last query that fails
    if (c->kind == SINKPROOF_CACHE_FIXED && c->first + c->count > h->view->end_row) return true;
    if (c->times != 0) return false;
    return c->kind == SINKPROOF_CACHE_FIXED ? c->first == 0 && window == 0
                                            : window > 0 && c->first + c->count >= window;
}

void guess_keys_counted(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    size_t n = h->view->keys;
    m.cache = (sinkproof_cache_read){
        .kind = of->kind, .times = of->times, .zeros = of->zeros, .unsummed = of->unsummed};
    m.cache.moved = of->moved;
    for (m.cache.count = 1; m.cache.count < n; m.cache.count = hunt_next_size(m.cache.count)) {
        // one key anywhere; pages of short caches anywhere, of long ones at their multiples
        size_t step = n <= 128 || m.cache.count == 1 ? 1 : m.cache.count;
        for (m.cache.first = 0; m.cache.first + m.cache.count <= n; m.cache.first += step)
            if (!is_told_otherwise(h, &m.cache)) {
                m.cache.spared = false, hunt_offer(h, &m);
                m.cache.spared = of->kind == SINKPROOF_CACHE_FIXED && of->times == 0;
                if (m.cache.spared) hunt_offer(h, &m);
            }
    }
}

// Every second, third, ... key is not seen, or all but those: ranks or stripes that are lost. Some
// query loses two keys, or one key alone would be the simpler cause.
void guess_stripes(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    m.cache = (sinkproof_cache_read){
        .kind = of->kind, .times = of->times, .moved = of->moved, .zeros = of->zeros};
    m.cache.unsummed = of->unsummed;
    bool lost = of->kind == SINKPROOF_CACHE_FIXED && of->times == 0 && of->moved == 0;
    for (m.cache.step = 2; m.cache.step <= 16; m.cache.step++)
        // keys that are lost from one on: those of every second step
        for (m.cache.first = 0;
             m.cache.first < (lost && m.cache.step <= 4 ? h->view->keys : m.cache.step);
             m.cache.first++) {
            m.cache.count = h->view->keys - m.cache.first;
            size_t window = of->kind == SINKPROOF_CACHE_BEFORE ? h->view->layer_window : 0;
            for (int how = 0; how < 4; how++) {
                if (window > 0 && m.cache.first + m.cache.step >= window) continue; // one key
                m.cache.spared = how % 2 != 0, m.cache.rest = how / 2 != 0;
                if (m.cache.first >= m.cache.step && (m.cache.rest || !m.cache.spared)) continue;
                if (m.cache.rest && m.cache.step == 2) continue; // the others of two
                if (m.cache.first + m.cache.step + (how % 2 != 0) < h->view->keys)
                    hunt_offer(h, &m);
            }
        }
}

// ---- keys in the places of others

// Whole pages that hold those of any other page, or are exchanged with it; and a ring of slots.
static void offer_far_pages(hunt *h, unsigned moved) {
    sinkproof_attending m = defined;
    size_t n = h->view->keys;
    for (size_t size = 2; size < n; size *= 2) {
        m.cache = (sinkproof_cache_read){
            .kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = moved, .count = size};
        for (size_t page = 0; (page + 1) * size <= n && n / size <= 64; page++)
            for (size_t from = 0; (from + 1) * size <= n; from++) {
                m.cache.first = page * size, m.cache.exchanged = false;
                m.cache.by = ((ptrdiff_t)from - (ptrdiff_t)page) * (ptrdiff_t)size;
                if (from + 1 == page || from == page || from == page + 1)
                    continue; // told elsewhere
                hunt_offer(h, &m);
                m.cache.exchanged = true;
                if (from > page) hunt_offer(h, &m);
            }
    }
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_RING, .times = 1, .moved = moved};
    for (m.cache.count = 2; m.cache.count < n; m.cache.count = hunt_next_size(m.cache.count))
        hunt_offer(h, &m);
}

// Pages that hold a neighbour's keys, or those of a window before: a write that was lost.
void guess_pages(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    size_t n = h->view->keys, window = h->view->config->window;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = of->moved};
    for (m.cache.count = 1; m.cache.count < n; m.cache.count = hunt_next_size(m.cache.count)) {
        const ptrdiff_t page = (ptrdiff_t)m.cache.count, by[] = {-page, page, -(ptrdiff_t)window};
        size_t step = n <= 64 ? 1 : m.cache.count;
        for (size_t i = 0; i < (window > 0 ? 3 : 2); i++)
            for (m.cache.first = 0; m.cache.first + m.cache.count <= n; m.cache.first += step)
                m.cache.by = by[i], hunt_offer(h, &m);
        m.cache.exchanged = true, m.cache.by = 0;
        for (m.cache.first = 0; m.cache.first + 2 * m.cache.count <= n; m.cache.first += step)
            hunt_offer(h, &m);
        m.cache.exchanged = false;
    }
    offer_far_pages(h, of->moved);
}

// One key that stands in the place of another.
void guess_key_for_another(hunt *h, const family_arguments *of) {
    (void)of;
    sinkproof_attending m = defined;
    size_t n = h->view->keys < 256 ? h->view->keys : 0;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .count = 1, .times = 1};
    m.cache.moved = SINKPROOF_CACHE_KEYS | SINKPROOF_CACHE_VALUES;
    for (m.cache.first = 0; m.cache.first < n; m.cache.first++)
        for (size_t from = 0; from < n; from++)
            if (m.cache.by = (ptrdiff_t)from - (ptrdiff_t)m.cache.first, m.cache.by != 0)
                hunt_offer(h, &m);
}

// All keys, all values, or the last key, of some keys before or behind.
void guess_keys_shifted(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    for (unsigned moved = SINKPROOF_CACHE_KEYS; moved <= 3; moved++)
        for (ptrdiff_t by = -8; by <= 8; by++) {
            if (by == 0) continue;
            m.cache = (sinkproof_cache_read){
                .kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = moved, .spared = of->spared};
            m.cache.count = h->view->keys, m.cache.by = by, hunt_offer(h, &m);
            m.cache.circle = true;
            if (!of->spared) hunt_offer(h, &m);
            m.cache.circle = false;
            m.cache.kind = SINKPROOF_CACHE_BEFORE, m.cache.count = 1;
            if (!of->spared) hunt_offer(h, &m);
        }
}

// of->moved: 0, of keys and values.
void guess_groups(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    size_t groups = h->view->groups, heads = h->view->heads, each = heads / groups;
    m.group_of = of->moved, m.group_spared = of->spared;
    for (int c = SINKPROOF_GROUP_SHIFTED; c <= SINKPROOF_GROUP_ONE; c++)
        for (size_t by = c == SINKPROOF_GROUP_SHIFTED || c == SINKPROOF_GROUP_UNEVEN;
             by < (c == SINKPROOF_GROUP_UNEVEN ? heads : groups); by++) {
            m.group = (sinkproof_group_choice)c, m.group_by = by;
            bool again = (c == SINKPROOF_GROUP_MODULUS && by > 0) ||
                         (c == SINKPROOF_GROUP_UNEVEN && by % each == 0);
            // of two, the other one
            again = again || (c == SINKPROOF_GROUP_ONE && groups == 2 &&
                              (h->view->end_head <= heads / 2 || h->view->first_head >= heads / 2));
            if (groups > 1 && !again) hunt_offer(h, &m);
        }
}

// ---- numbers from elsewhere, and those that are rounded or multiplied when they are read

// Whether the trace has all that is read so.
static bool has_sources(const hunt *h, const sinkproof_read_as *read) {
    const attention_view *v = h->view;
    sinkproof_tensor source;
    bool all = true;
    for (unsigned of = 1; of <= SINKPROOF_READ_QUERIES; of *= 2)
        if (read->of & of)
            all = all &&
                  sinkproof_read_source(read, v->config, v->of->trace, of, v->of->layer, &source);
    return all;
}

// Those of another layer, or without their rotation.
void guess_sources(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    m.read.spared = of->spared;
    for (m.read.of = 1; m.read.of < 2 * SINKPROOF_READ_QUERIES; m.read.of++) {
        if (of->spared && (m.read.of & SINKPROOF_READ_QUERIES) != 0) continue;
        m.read.not_turned = false;
        for (m.read.layer_by = -4; m.read.layer_by <= 4; m.read.layer_by++)
            if (m.read.layer_by != 0 && has_sources(h, &m.read)) hunt_offer(h, &m);
        m.read.layer_by = 0, m.read.not_turned = true;
        if ((m.read.of & SINKPROOF_CACHE_VALUES) == 0 && has_sources(h, &m.read)) hunt_offer(h, &m);
    }
}

// What a rounding is offered with: a factor, as it is without the rounding, and its misfit.
typedef struct read_factor {
    bool of_values; // of keys and values that are both rounded, the values alone
    double start, misfit;
} read_factor;

static void offer_read(hunt *h, sinkproof_attending *m, const read_factor *by) {
    enum { LESS = 2 }; // so much less is the misfit with the rounding, or it is not needed
    double *number = by != NULL && by->of_values ? &m->read.value_times : &m->read.times;
    double was = *number;
    if (by == NULL)
        hunt_offer_cached(h, m);
    else
        hunt_offer_fitted_from(h, m, number, by->start, by->misfit / LESS);
    *number = was;
}

// Formats of few bits, with each scale that they may have.
static void offer_formats(hunt *h, sinkproof_attending *m, const read_factor *by) {
    static const sinkproof_format formats[] = {SINKPROOF_E4M3,  SINKPROOF_E5M2, SINKPROOF_INT8,
                                               SINKPROOF_E2M1,  SINKPROOF_BF16, SINKPROOF_F16,
                                               SINKPROOF_MXFP8, SINKPROOF_NVFP4};
    static const sinkproof_scale scales[] = {SINKPROOF_SCALE_NONE, SINKPROOF_SCALE_OF_TOKEN_HEAD,
                                             SINKPROOF_SCALE_OF_HEAD, SINKPROOF_SCALE_OF_TENSOR,
                                             SINKPROOF_SCALE_OF_TOKEN};
    bool alone = m->read.of == SINKPROOF_READ_WEIGHTS;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
        for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
            bool blocks = formats[f] == SINKPROOF_MXFP8 || formats[f] == SINKPROOF_NVFP4;
            bool plain = formats[f] == SINKPROOF_BF16 || formats[f] == SINKPROOF_F16;
            bool none = scales[i] == SINKPROOF_SCALE_NONE;
            if ((blocks || plain) && !none) continue;
            if (none && (formats[f] == SINKPROOF_INT8 || formats[f] == SINKPROOF_E2M1)) continue;
            if (alone && i > 1) continue;
            m->read.format = formats[f], m->read.scale = scales[i];
            offer_read(h, m, by);
        }
    m->read.format = SINKPROOF_REAL, m->read.scale = SINKPROOF_SCALE_NONE;
}

// The same with a factor that is not 1, of keys, queries and values or of the values alone.
static void offer_scaled_formats(hunt *h, sinkproof_attending *m, bool of_values) {
    read_factor by = {.of_values = of_values};
    double *number = of_values ? &m->read.value_times : &m->read.times;
    by.misfit = hunt_fit(h, m, number), by.start = *number;
    m->read.times = 1, m->read.value_times = 0;
    if (by.misfit < h->definition - (double)h->view->n_failing / 2) offer_formats(h, m, &by);
}

// of->moved: of what. Of queries, keys and values a scale that is lost may be any; a rounding is to
// a format of few bits, of a row, a head or all; and both together.
void guess_reads(hunt *h, const family_arguments *of) {
    bool alone = of->moved == SINKPROOF_READ_WEIGHTS;
    sinkproof_attending m = defined;
    m.read.of = of->moved, m.read.spared = of->spared;
    offer_formats(h, &m, NULL);
    // in all rows alike a factor of the scores, or of the output, is simpler
    if (of->spared && !alone) hunt_offer_cached_fitted(h, &m, &m.read.times);
    if (of->spared && of->moved == 3)
        hunt_offer_fitted_two(h, &m, &m.read.times, &m.read.value_times, false);
    m.read.times = 1, m.read.value_times = 0;
    if (!alone) offer_scaled_formats(h, &m, false);
    if (of->moved == 3) offer_scaled_formats(h, &m, true);
}

// Codes of few bits that are multiplied by the scale of another head or token.
void guess_other_scales(hunt *h, const family_arguments *of) {
    static const sinkproof_format formats[] = {SINKPROOF_E4M3, SINKPROOF_E5M2, SINKPROOF_INT8};
    static const sinkproof_scale scales[] = {SINKPROOF_SCALE_OF_HEAD, SINKPROOF_SCALE_OF_TOKEN,
                                             SINKPROOF_SCALE_OF_TOKEN_HEAD};
    sinkproof_attending m = defined;
    m.read.of = of->moved, m.read.spared = of->spared;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
        for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
            for (int from = SINKPROOF_SCALE_FROM_FIRST; from <= SINKPROOF_SCALE_FROM_AFTER;
                 from++) {
                bool both = scales[i] == SINKPROOF_SCALE_OF_TOKEN_HEAD;
                if (from == SINKPROOF_SCALE_FROM_HEAD && !both) continue;
                m.read.format = formats[f], m.read.scale = scales[i];
                m.read.scale_from = (sinkproof_scale_from)from;
                hunt_offer_cached(h, &m);
            }
}
