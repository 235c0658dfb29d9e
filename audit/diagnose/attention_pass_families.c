// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The families of guesses at a cache that is filled pass by pass, and at masks that know of passes.
// What is compared are the counts of the keys (attention_tables.h): thousands of rules cost no
// emulation.
#include "audit/diagnose/attention_hunt.h"
#include "audit/diagnose/attention_tables.h"

#include <stdlib.h>

static const sinkproof_attending defined = SINKPROOF_ATTENDING;

enum { OFFERED = 12, PASSES = 1024, CACHED_PASSES = 16 };

typedef struct pass_search {
    hunt *h;
    const key_table *table;
    size_t offered;
    sinkproof_attending of[OFFERED];
    // the passes that the rows which fail allow
    size_t n_passes;
    sinkproof_row_passes passes[PASSES];
} pass_search;

// Whether a simpler rule reads the same.
static bool is_offered(const pass_search *s, const sinkproof_attending *how) {
    for (size_t i = 0; i < s->offered; i++)
        if (key_table_same(s->table, &s->of[i], how)) return true;
    return false;
}

static void try_rule(pass_search *s, const sinkproof_attending *how) {
    if (s->offered == OFFERED || !key_table_holds(s->table, how) || is_offered(s, how)) return;
    s->of[s->offered++] = *how;
    hunt_offer(s->h, how);
}

// ---- the passes

// Whether rows begin or cease to fail at a row, or behind it: a pass may begin there.
static bool may_begin(const pass_search *s, size_t row) {
    return row > 0 && ((row < s->table->n && s->table->turns[row]) ||
                       (row + 1 < s->table->n && s->table->turns[row + 1]));
}

static void add_passes(pass_search *s, size_t first, size_t rows, size_t single) {
    const sinkproof_row_passes p = {first, rows, single};
    bool fits = false;
    for (size_t row = first; row < s->table->n && !fits; row++)
        fits = sinkproof_row_pass_begin(&p, row) == row && may_begin(s, row);
    if (fits && s->n_passes < PASSES) s->passes[s->n_passes++] = p;
}

// The passes of the calls that the trace names, if they are of one length behind the first, and
// then single tokens; first 0: they are not, or it names none.
static sinkproof_row_passes named_passes(const attention_view *v) {
    const uint8_t *calls = v->plain ? sinkproof_trace_calls(v->of->trace) : NULL;
    sinkproof_row_passes p = {v->begin, 0, v->keys};
    size_t row = 0;
    if (calls == NULL) return (sinkproof_row_passes){0, 0, 0};
    for (row = p.first == 0; p.first == 0 && row < v->n && !calls[row];) row++;
    if (p.first == 0) p.first = row;
    if (row == v->n) return (sinkproof_row_passes){v->keys, v->keys, v->keys};
    for (p.rows = 1; row + p.rows < v->n && !calls[row + p.rows];) p.rows++;
    for (size_t at = v->n; at-- > row && calls[at];)
        if ((at - row) % p.rows == 0) p.single = v->begin + at;
    for (; row < v->n; row++)
        if ((sinkproof_row_pass_begin(&p, v->begin + row) == v->begin + row) != (calls[row] != 0))
            return (sinkproof_row_passes){0, 0, 0};
    return p;
}

// A prompt and single tokens; passes of one length; the same and then single tokens; and passes
// whose first one has another length. The simplest come first.
static void list_passes(pass_search *s) {
    size_t n = s->h->view->keys, at = attention_first_failing(s->h->view);
    sinkproof_row_passes named = named_passes(s->h->view);
    if (named.first > 0) s->passes[s->n_passes++] = named;
    s->passes[s->n_passes++] = (sinkproof_row_passes){n, n, n}; // all rows are one pass
    for (size_t back = 0; back < at && back <= 32; back++) add_passes(s, at - back, 1, at - back);
    for (size_t rows = 2; rows < n; rows++) add_passes(s, rows, rows, n);
    for (size_t rows = 2; rows < n; rows++)
        for (size_t single = 2 * rows; single < n; single += rows)
            add_passes(s, rows, rows, single);
    for (size_t first = 1; first < n; first++)
        for (size_t rows = 2; may_begin(s, first) && first + rows < n + rows / 2; rows++) {
            if (rows == first) continue;
            add_passes(s, first, rows, n);
            for (size_t single = first + rows; single < n; single += rows)
                add_passes(s, first, rows, single);
        }
}

// ---- what is seen

static void try_sights(pass_search *s, const sinkproof_row_passes *p) {
    sinkproof_attending m = defined;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_PASSES, .times = 1};
    m.passes.of = *p;
    for (int cached = SINKPROOF_SIGHT_DEFINED; cached <= SINKPROOF_SIGHT_BUT_ONE; cached++)
        for (int own = SINKPROOF_SIGHT_DEFINED; own <= SINKPROOF_SIGHT_LATER; own++) {
            bool as_defined = cached == SINKPROOF_SIGHT_DEFINED && own == SINKPROOF_SIGHT_DEFINED;
            bool same = cached == SINKPROOF_SIGHT_ALL || own == SINKPROOF_SIGHT_LOCAL ||
                        own == SINKPROOF_SIGHT_BUT_ONE;
            if (as_defined || same) continue;
            m.passes.cached = (sinkproof_pass_sight)cached;
            m.passes.own = (sinkproof_pass_sight)own;
            m.first_row = 0, try_rule(s, &m);
            m.first_row =
                attention_row_from(s->h->view, p->first); // or in all passes but the first
            bool later = m.first_row > 0 && p->first < s->h->view->keys;
            if (own != SINKPROOF_SIGHT_DEFINED && later) try_rule(s, &m);
        }
    if (s->h->view->layer_window == 0) return;
    m.first_row = 0, m.passes.cached = SINKPROOF_SIGHT_LOCAL_WINDOW;
    m.passes.own = SINKPROOF_SIGHT_LOCAL_WINDOW, try_rule(s, &m);
    m.passes.own = SINKPROOF_SIGHT_DEFINED, try_rule(s, &m);
}

// As if a query of a later pass stood elsewhere.
static void try_elsewhere(pass_search *s, const sinkproof_row_passes *p) {
    static const sinkproof_pass_sight owns[] = {SINKPROOF_SIGHT_NONE, SINKPROOF_SIGHT_OWN,
                                                SINKPROOF_SIGHT_DEFINED};
    sinkproof_attending m = defined;
    size_t n = s->h->view->keys;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_PASSES, .times = 1};
    m.passes.of = *p, m.first_row = attention_row_from(s->h->view, p->first);
    for (int before = 0; before < 2; before++)
        for (m.passes.number = before; m.passes.number < (before ? 17 : n); m.passes.number++)
            for (size_t i = 0; i < sizeof owns / sizeof owns[0]; i++) {
                m.passes.cached = before ? SINKPROOF_SIGHT_BEFORE : SINKPROOF_SIGHT_OF_ROW;
                m.passes.own = owns[i];
                try_rule(s, &m);
            }
}

// ---- what stands in the slots

static bool has_number(sinkproof_slots slots) {
    return slots <= SINKPROOF_SLOTS_EARLIER || slots == SINKPROOF_SLOTS_WHOLE_PAGES;
}

static void try_slots(pass_search *s, const sinkproof_row_passes *p) {
    sinkproof_attending m = defined;
    size_t n = s->h->view->keys;
    m.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_PASSES, .times = 1};
    m.passes.of = *p;
    for (int slots = SINKPROOF_SLOTS_RING; slots < SINKPROOF_SLOT_KINDS; slots++)
        for (int how = 0; how < 5; how++) {
            m.passes.slots = (sinkproof_slots)slots;
            m.passes.own_direct = how % 2 != 0, m.passes.left_out = how / 2 == 1;
            m.passes.first_direct = how == 4;
            if (how == 4 && (slots != SINKPROOF_SLOTS_RING || p->first >= n)) continue;
            bool never_empty =
                slots <= SINKPROOF_SLOTS_RING_FIRST || slots == SINKPROOF_SLOTS_EXTRA;
            if (m.passes.left_out && never_empty) continue;
            bool numbered = has_number(m.passes.slots);
            m.passes.number = slots == SINKPROOF_SLOTS_EXTRA ? 0 : 1;
            for (; m.passes.number < (numbered ? n : 2); m.passes.number++) try_rule(s, &m);
        }
}

// ---- empty slots, from the first row that fails on: earlier rows came in one pass

static void try_empty_slots(pass_search *s) {
    sinkproof_attending m = defined;
    m.zero_keys = 1, m.first_row = s->h->view->first_row;
    for (int kind = SINKPROOF_EMPTY_TAIL; kind <= SINKPROOF_EMPTY_NEXT; kind++)
        for (m.summing.unit = 2;
             m.summing.unit < s->h->view->keys && attention_first_failing(s->h->view) > 0;
             m.summing.unit++)
            m.summing.empty = (sinkproof_empty_slots)kind, try_rule(s, &m);
}

// ---- what the counts themselves show

// Everywhere, or from the first row that fails on.
static void try_rules(pass_search *s, size_t n, sinkproof_attending *rules) {
    for (size_t i = 0; i < n; i++) {
        size_t offered = s->offered;
        try_rule(s, &rules[i]);
        if (s->offered > offered) continue;
        rules[i].first_row = s->h->view->first_row;
        if (rules[i].first_row > 0) try_rule(s, &rules[i]);
    }
}

// The window of a row of a tile, rounded to whole blocks of keys where that reads other keys.
static void try_rounded_windows(pass_search *s) {
    sinkproof_attending m = defined;
    size_t n = s->h->view->keys;
    for (m.row_tile = 2; m.row_tile < n && s->h->view->layer_window > 0; m.row_tile++)
        for (int end = 0; end < 2; end++) {
            sinkproof_attending plain = defined;
            m.row_tile_end = end != 0;
            plain.row_tile = m.row_tile, plain.row_tile_end = m.row_tile_end;
            for (m.window_unit = 2; m.window_unit < n; m.window_unit++)
                if (key_table_holds(s->table, &m) && !key_table_same(s->table, &m, &plain))
                    try_rule(s, &m);
        }
}

// ---- all of them

// The passes whose cached keys may be read otherwise: every row is one; passes of one length; a
// first and a second one; these and then single tokens. Returns how many.
static size_t cached_passes(const hunt *h, const sinkproof_attending *how,
                            sinkproof_row_passes passes[CACHED_PASSES]) {
    size_t n = h->view->keys, at = attention_first_failing(h->view), count = 0;
    passes[count++] = (sinkproof_row_passes){0, 0, 0};
    if (!how->read.spared || !h->view->plain || at < 2) return count;
    sinkproof_row_passes named = named_passes(h->view);
    if (named.first > 0 && named.first < n) passes[count++] = named;
    passes[count++] = (sinkproof_row_passes){at, at, n};
    if (2 * at < n && n - at > 1) passes[count++] = (sinkproof_row_passes){at, n - at, n};
    // which pages of a layout are whole tells the passes too little
    if (how->read.map == SINKPROOF_MAP_LAYOUT) return count;
    for (size_t rows = 4; at + rows < n && count < CACHED_PASSES; rows += 4)
        passes[count++] = (sinkproof_row_passes){at, rows, at + rows};
    return count;
}

void hunt_offer_cached(hunt *h, const sinkproof_attending *how) {
    sinkproof_row_passes passes[CACHED_PASSES];
    size_t n = cached_passes(h, how, passes);
    sinkproof_attending m = *how;
    for (size_t i = 0; i < n; i++) m.passes.of = passes[i], hunt_offer(h, &m);
}

void hunt_offer_cached_fitted(hunt *h, sinkproof_attending *how, double *number) {
    enum { FITTED = 3 };
    sinkproof_row_passes passes[CACHED_PASSES];
    size_t n = cached_passes(h, how, passes);
    for (size_t i = 0; i < n && i < FITTED; i++)
        how->passes.of = passes[i], hunt_offer_fitted(h, how, number, false, 1e6);
    how->passes.of = passes[0];
}

void guess_passes(hunt *h, const family_arguments *of) {
    key_table table;
    bool there = false;
    (void)of;
    pass_search *s = calloc(1, sizeof *s);
    if (s != NULL && key_table_open(h->view, &table, &there) && there) {
        *s = (pass_search){.h = h, .table = &table};
        sinkproof_attending rules[ACCESS_RULES];
        if (!table.of_tokens) try_empty_slots(s);
        try_rules(s, access_rules(&table, rules), rules);
        if (!table.of_tokens) try_rounded_windows(s);
        list_passes(s);
        for (size_t i = 0; i < s->n_passes && !table.of_tokens; i++) try_sights(s, &s->passes[i]);
        for (size_t i = 0; i < s->n_passes && !table.of_tokens; i++)
            try_elsewhere(s, &s->passes[i]);
        for (size_t i = 0; i < s->n_passes; i++) try_slots(s, &s->passes[i]);
        try_rules(s, access_sets(&table, rules), rules);
        key_table_close(&table);
    }
    free(s);
}
