// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How many numbers a cause in attention is told by: of causes that the trace does not tell apart,
// the one with the fewest is told first. What holds at all rows and heads, or follows the passes in
// which rows came, needs no place of its own.
#include "audit/diagnose/attention_screen.h"

#include <stdlib.h>

// A size that no kernel has: it fits by chance more often than one of a block.
static size_t size_numbers(size_t size) {
    return size == 0 ? 0 : size % 4 == 0 || size < 4 ? 1 : 2;
}

static size_t place_numbers(const sinkproof_attending *m) {
    size_t n = (m->first_row > 0) + 2u * (m->end_row > 0) + 2u * (m->row_step > 0);
    if (m->heads != 0) return n + (size_t)__builtin_popcountll(m->heads);
    return n + (m->first_head > 0) + (m->end_head > 0);
}

// rows: those of the trace, which no number says.
static size_t pass_numbers(const sinkproof_pass_read *p, size_t rows) {
    bool one_by_one = p->of.single == p->of.first, ends = p->of.single < rows && !one_by_one;
    bool other_first = !one_by_one && p->of.rows != p->of.first;
    return 1u + other_first + ends + (p->number > 1);
}

static size_t cache_numbers(const sinkproof_cache_read *c) {
    size_t by = (size_t)labs((long)c->by);
    if (c->kind == SINKPROOF_CACHE_NONE) return 0;
    size_t times = c->times != 0 && c->times != 1; // left out, or once: no number
    return times + (c->first > 0) + size_numbers(c->count) + (by > 0) + (c->step > 0) +
           (c->steps > 0);
}

size_t attention_cause_numbers(const sinkproof_attending *m, size_t rows) {
    size_t n = place_numbers(m) + (m->times_error > 0);
    bool passes = m->cache.kind == SINKPROOF_CACHE_PASSES;
    n += passes ? pass_numbers(&m->passes, rows) : cache_numbers(&m->cache);
    n += size_numbers(m->window_unit) + size_numbers(m->row_unit) + size_numbers(m->row_tile);
    n += size_numbers(m->block) + size_numbers(m->prefix) + size_numbers(m->part);
    n += size_numbers(m->tiling.rows) + (m->tiling.first != m->tiling.rows);
    return n + (m->window_by != 0) + (m->later > 0) + (m->from > 0) + (m->part_begin > 0);
}
