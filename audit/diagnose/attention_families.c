// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The families of guesses at what is wrong in attention. A family is one kind of mistake, with all
// of its numbers.
#include "audit/diagnose/attention_hunt.h"

#include <math.h>

#define LN2   0.6931471805599453
#define LOG2E 1.4426950408889634

// ---- sizes and positions

// Each up to 64 or so; of many keys multiples of 16, then of larger powers of two.
static size_t next_size(size_t size) {
    size_t unit = 1;
    while (size >= 64 * unit) unit *= 2;
    return unit < 16 && size >= 64 ? (size + 16) / 16 * 16 : (size + unit) / unit * unit;
}

// ---- the families

static const sinkproof_attending defined = SINKPROOF_ATTENDING;

static void guess_sink_count(hunt *h) {
    sinkproof_attending m = defined;
    for (int count = 0; count <= 16; count++)
        if (m.sink_count = count, count != 1) hunt_offer(h, &m);
    hunt_offer_fitted(h, &m, &m.sink_count, true, 64);
}

static void guess_sink_parts(hunt *h) {
    sinkproof_attending m = defined;
    m.sink_per_part = true;
    for (m.part = 1; m.part < h->view->n; m.part = next_size(m.part)) {
        m.parting = SINKPROOF_PARTS_OF, hunt_offer(h, &m);
        m.parting = SINKPROOF_PARTS_AT, hunt_offer(h, &m);
        if (m.part < 2 || m.part > 64) continue;
        m.parting = SINKPROOF_PARTS_EQUAL, hunt_offer(h, &m);
        m.parting = SINKPROOF_PARTS_OF_ALL, hunt_offer(h, &m);
    }
}

static void guess_sink_heads(hunt *h) {
    sinkproof_attending m = defined;
    for (int c = SINKPROOF_HEAD_SHIFTED; c <= SINKPROOF_HEAD_ROW; c++) {
        bool by = c == SINKPROOF_HEAD_SHIFTED || c == SINKPROOF_HEAD_ROW;
        m.sink.choice = (sinkproof_head_choice)c;
        for (m.sink.by = c == SINKPROOF_HEAD_SHIFTED; m.sink.by < (by ? h->view->heads : 1);
             m.sink.by++)
            hunt_offer(h, &m);
    }
}

static void guess_sink_times(hunt *h) {
    sinkproof_attending m = defined;
    const double root = sqrt((double)h->view->dim),
                 times[] = {LOG2E, LN2, root, 1 / root, -1, 2, 0};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        m.sink_times = times[i], hunt_offer(h, &m);
    hunt_offer_fitted(h, &m, &m.sink_times, false, 8);
}

static void guess_window(hunt *h) {
    sinkproof_attending m = defined;
    size_t n = h->view->n, window = h->view->config->window;
    for (size_t w = 1; w < n && window > 0; w = next_size(w)) {
        m.window_by = (ptrdiff_t)w - (ptrdiff_t)window;
        m.window = SINKPROOF_WINDOW_DEFINED;
        if (h->view->sight.layer_window > 0 && w != window) hunt_offer(h, &m);
        m.window = SINKPROOF_WINDOW_ON;
        if (h->view->sight.layer_window == 0) hunt_offer(h, &m);
    }
    m = defined, m.window = SINKPROOF_WINDOW_OFF;
    if (h->view->sight.layer_window > 0) hunt_offer(h, &m);
}

static void guess_later(hunt *h) {
    sinkproof_attending m = defined;
    for (m.later = 1; m.later < h->view->n; m.later = next_size(m.later)) hunt_offer(h, &m);
}

// Rows from a position on see no key before it, or before another one.
static void guess_first_key(hunt *h) {
    sinkproof_attending m = defined;
    for (m.from = 1; m.from + 1 < h->view->n; m.from = next_size(m.from)) {
        m.first_row = 0, hunt_offer(h, &m);
        m.first_row = m.from, hunt_offer(h, &m);
    }
    m.first_row = 0, m.from = h->view->n, hunt_offer(h, &m);
}

// The first keys of all left out, and the last ones of a window, are told by another family; and
// without a window the first keys that are seen are those of the cache.
static bool is_told_otherwise(const hunt *h, const sinkproof_cache_read *c) {
    size_t window = h->view->sight.layer_window;
    if (c->kind == SINKPROOF_CACHE_SEEN) return window == 0;
    // keys behind the last query that fails
    if (c->kind == SINKPROOF_CACHE_FIXED && c->first + c->count > h->view->end_row) return true;
    if (c->times != 0) return false;
    return c->kind == SINKPROOF_CACHE_FIXED ? c->first == 0 && window == 0
                                            : window > 0 && c->first + c->count >= window;
}

// Keys left out, read twice, or read as zeros.
static void guess_keys_counted(hunt *h, sinkproof_cache_kind kind, double times, unsigned zeros) {
    sinkproof_attending m = defined;
    size_t n = h->view->n;
    m.cache = (sinkproof_cache_read){.kind = kind, .times = times, .zeros = zeros != 0};
    m.cache.moved = zeros;
    for (m.cache.count = 1; m.cache.count < n; m.cache.count = next_size(m.cache.count)) {
        // one key anywhere; pages of short caches anywhere, of long ones at their multiples
        size_t step = n <= 128 || m.cache.count == 1 ? 1 : m.cache.count;
        for (m.cache.first = 0; m.cache.first + m.cache.count <= n; m.cache.first += step)
            if (!is_told_otherwise(h, &m.cache)) {
                m.cache.spared = false, hunt_offer(h, &m);
                m.cache.spared = kind == SINKPROOF_CACHE_FIXED && times == 0;
                if (m.cache.spared) hunt_offer(h, &m);
            }
    }
}
static void guess_keys_left_out(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_FIXED, 0, 0);
}
static void guess_last_keys_left_out(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_BEFORE, 0, 0);
}
static void guess_first_keys_left_out(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_SEEN, 0, 0);
}
static void guess_keys_twice(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_FIXED, 2, 0);
}
static void guess_last_keys_twice(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_BEFORE, 2, 0);
}
static void guess_first_keys_twice(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_SEEN, 2, 0);
}
static void guess_keys_zero(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_FIXED, 1, SINKPROOF_CACHE_KEYS | SINKPROOF_CACHE_VALUES);
}
static void guess_last_keys_zero(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_BEFORE, 1, SINKPROOF_CACHE_KEYS | SINKPROOF_CACHE_VALUES);
}

static void guess_values_zero(hunt *h) {
    guess_keys_counted(h, SINKPROOF_CACHE_FIXED, 1, SINKPROOF_CACHE_VALUES);
}

// Pages that hold a neighbour's keys, or those of a window before: a write that was lost.
static void guess_pages(hunt *h, unsigned moved) {
    sinkproof_attending m = defined;
    size_t n = h->view->n, window = h->view->config->window;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = moved};
    for (m.cache.count = 1; m.cache.count < n; m.cache.count = next_size(m.cache.count)) {
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
}
static void guess_pages_of_both(hunt *h) {
    guess_pages(h, SINKPROOF_CACHE_KEYS | SINKPROOF_CACHE_VALUES);
}
static void guess_pages_of_keys(hunt *h) {
    guess_pages(h, SINKPROOF_CACHE_KEYS);
}
static void guess_pages_of_values(hunt *h) {
    guess_pages(h, SINKPROOF_CACHE_VALUES);
}

// One key that stands in the place of another.
static void guess_key_for_another(hunt *h) {
    sinkproof_attending m = defined;
    size_t n = h->view->n < 256 ? h->view->n : 0;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .count = 1, .times = 1};
    m.cache.moved = SINKPROOF_CACHE_KEYS | SINKPROOF_CACHE_VALUES;
    for (m.cache.first = 0; m.cache.first < n; m.cache.first++)
        for (size_t from = 0; from < n; from++)
            if (m.cache.by = (ptrdiff_t)from - (ptrdiff_t)m.cache.first, m.cache.by != 0)
                hunt_offer(h, &m);
}

// All keys, all values, or the last key, of some keys before or behind.
static void guess_keys_shifted(hunt *h) {
    sinkproof_attending m = defined;
    for (unsigned moved = SINKPROOF_CACHE_KEYS; moved <= 3; moved++)
        for (ptrdiff_t by = -8; by <= 8; by++) {
            if (by == 0) continue;
            m.cache =
                (sinkproof_cache_read){.kind = SINKPROOF_CACHE_FIXED, .times = 1, .moved = moved};
            m.cache.count = h->view->n, m.cache.by = by, hunt_offer(h, &m);
            m.cache.circle = true, hunt_offer(h, &m);
            m.cache.circle = false;
            m.cache.kind = SINKPROOF_CACHE_BEFORE, m.cache.count = 1, hunt_offer(h, &m);
        }
}

static void guess_groups(hunt *h) {
    sinkproof_attending m = defined;
    for (int c = SINKPROOF_GROUP_SHIFTED; c <= SINKPROOF_GROUP_ONE; c++)
        for (size_t by = c == SINKPROOF_GROUP_SHIFTED || c == SINKPROOF_GROUP_UNEVEN;
             by < (c == SINKPROOF_GROUP_UNEVEN ? h->view->heads : h->view->groups); by++) {
            m.group = (sinkproof_group_choice)c, m.group_by = by;
            size_t each = h->view->heads / h->view->groups;
            bool again = (c == SINKPROOF_GROUP_MODULUS && by > 0) ||
                         (c == SINKPROOF_GROUP_UNEVEN && by % each == 0);
            // of two, the other one
            again = again || (c == SINKPROOF_GROUP_ONE && h->view->groups == 2 &&
                              (h->view->end_head <= h->view->heads / 2 ||
                               h->view->first_head >= h->view->heads / 2));
            if (h->view->groups > 1 && !again) hunt_offer(h, &m);
        }
}

static void guess_heads(hunt *h) {
    sinkproof_attending m = defined;
    for (int c = SINKPROOF_HEAD_SHIFTED; c < SINKPROOF_HEAD_ROW; c++)
        for (size_t by = c == SINKPROOF_HEAD_SHIFTED;
             by < (c == SINKPROOF_HEAD_SHIFTED ? h->view->heads : 1); by++)
            m.head = (sinkproof_head_from){(sinkproof_head_choice)c, by}, hunt_offer(h, &m);
}

static void guess_score_times(hunt *h) {
    sinkproof_attending m = defined;
    hunt_offer_fitted(h, &m, &m.score_times, true, 1e6);
}

static void guess_output_times(hunt *h) {
    sinkproof_attending m = defined;
    hunt_offer_fitted(h, &m, &m.output_times, false, 1e6);
}

static void guess_logits_times(hunt *h) {
    sinkproof_attending m = defined;
    hunt_offer_fitted(h, &m, &m.logits_times, true, 1e6);
}

static void guess_score_limit(hunt *h) {
    sinkproof_attending m = defined;
    for (int half = 1; half <= 100; half++) m.score_limit = half / 2.0, hunt_offer(h, &m);
}

static void guess_sink_made(hunt *h) {
    sinkproof_attending m = defined;
    for (int made = SINKPROOF_SINK_ABSOLUTE; made <= SINKPROOF_SINK_E5M2; made++)
        m.sink_made = (sinkproof_sink_made)made, hunt_offer(h, &m);
    m = defined, m.sink_on_key = true, hunt_offer(h, &m);
    m = defined, m.gates = 1, hunt_offer(h, &m);
}

// What a query sees in whole blocks.
static void guess_blocks(hunt *h) {
    sinkproof_attending m = defined;
    for (size_t unit = 2; unit < h->view->n; unit = next_size(unit)) {
        m = defined, m.block = unit;
        // one boundary is told by another family
        if (2 * unit < h->view->n) hunt_offer(h, &m);
        m = defined, m.row_unit = unit, hunt_offer(h, &m);
        m = defined, m.window_unit = unit;
        if (h->view->sight.layer_window > 0) hunt_offer(h, &m);
    }
}

// The window, and the first keys of all beside it.
static void guess_first_keys_kept(hunt *h) {
    sinkproof_attending m = defined;
    m.window = SINKPROOF_WINDOW_OFF;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_BEHIND};
    m.cache.count = h->view->config->window;
    for (m.cache.first = 1; m.cache.first < h->view->n && m.cache.count > 0;
         m.cache.first = next_size(m.cache.first))
        hunt_offer(h, &m);
}

static void guess_renormalised(hunt *h) {
    sinkproof_attending m = defined;
    m.renormalised = true;
    hunt_offer(h, &m);
}

// The gate of the sink from a log-sum-exp in another base. Off by a number, it counts the sink more
// often or less.
static void guess_gate(hunt *h) {
    sinkproof_attending m = defined;
    const double exponents[] = {LN2, LOG2E};
    m.merging.on = m.merging.sink_beside = true;
    for (size_t i = 0; i < 2; i++) m.merging.exponent = exponents[i], hunt_offer(h, &m);
    hunt_offer_fitted(h, &m, &m.merging.exponent, true, 4);
}

// Parts merged by wrong log-sum-exps.
static void offer_merges(hunt *h, sinkproof_attending *m) {
    const double exponents[] = {1, LN2, LOG2E, 0};
    sinkproof_merging *how = &m->merging;
    how->on = true;
    for (int divides = SINKPROOF_IN_NONE; divides <= SINKPROOF_IN_ALL; divides++)
        for (int in_lse = SINKPROOF_IN_NONE; in_lse <= SINKPROOF_IN_ALL; in_lse++)
            for (int i = 0; i < 8; i++) {
                how->sink_divides = (sinkproof_in_parts)divides;
                how->sink_in_lse = (sinkproof_in_parts)in_lse;
                how->sink_beside = i >= 4;
                how->exponent = exponents[i % 4];
                bool consistent = divides == in_lse && how->exponent == 1;
                bool same = how->exponent == 0 && in_lse != SINKPROOF_IN_NONE;
                if (!consistent && !same && !(how->sink_beside && (in_lse != 0 || divides != 0)))
                    hunt_offer(h, m);
            }
}
static void guess_merges(hunt *h, sinkproof_parting parting, size_t least, size_t most) {
    sinkproof_attending m = defined;
    m.parting = parting;
    for (m.part = least; m.part < h->view->n && m.part <= most; m.part = next_size(m.part))
        offer_merges(h, &m);
}
static void guess_two_parts(hunt *h) {
    guess_merges(h, SINKPROOF_PARTS_AT, 1, SIZE_MAX);
}
static void guess_tiles(hunt *h) {
    guess_merges(h, SINKPROOF_PARTS_OF, 1, SIZE_MAX);
}
static void guess_equal_parts(hunt *h) {
    guess_merges(h, SINKPROOF_PARTS_EQUAL, 2, 64);
}
static void guess_parts_of_all(hunt *h) {
    guess_merges(h, SINKPROOF_PARTS_OF_ALL, 2, 64);
}

// From the few guesses to the many.
static guess_family *const families[] = {guess_sink_count,
                                         guess_sink_times,
                                         guess_sink_heads,
                                         guess_renormalised,
                                         guess_gate,
                                         guess_score_times,
                                         guess_logits_times,
                                         guess_score_limit,
                                         guess_sink_made,
                                         guess_blocks,
                                         guess_first_keys_kept,
                                         guess_values_zero,
                                         guess_output_times,
                                         guess_groups,
                                         guess_heads,
                                         guess_window,
                                         guess_later,
                                         guess_first_key,
                                         guess_sink_parts,
                                         guess_keys_shifted,
                                         guess_last_keys_left_out,
                                         guess_last_keys_twice,
                                         guess_first_keys_left_out,
                                         guess_first_keys_twice,
                                         guess_keys_left_out,
                                         guess_keys_twice,
                                         guess_keys_zero,
                                         guess_last_keys_zero,
                                         guess_pages_of_both,
                                         guess_pages_of_values,
                                         guess_pages_of_keys,
                                         guess_equal_parts,
                                         guess_parts_of_all,
                                         guess_two_parts,
                                         guess_tiles,
                                         guess_key_for_another};

guess_family *attention_family(size_t i) {
    return i < sizeof families / sizeof families[0] ? families[i] : NULL;
}
