// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How much a guess has to suppose: of guesses that the queries do not tell apart the one that
// supposes least is asked, and told, first.
#include "audit/diagnose/attention_hunt.h"

// What a size supposes: kernels and caches are cut by powers of two and by multiples of eight.
static unsigned size_cost(size_t size) {
    if (size == 0) return 0;
    return (size & (size - 1)) == 0 || size % 8 == 0 ? 1
           : size % 4 == 0                           ? 2
           : size % 2 == 0                           ? 3
                                                     : 4;
}

// A prompt and single tokens, or passes of one length, are the usual ones; each number more is one
// more supposition. All rows are one pass where the first one has them all.
static unsigned passes_cost(const sinkproof_row_passes *p, size_t rows) {
    if (p->first == 0 || p->first >= rows) return 0;
    unsigned cost = 1;
    if (p->single > p->first && p->rows != p->first) cost += 1;
    if (p->single > p->first && p->single < rows) cost += 1;
    // the end of the last pass is the trace's: a length that ends there is no number more
    bool fits =
        p->rows > 0 && (p->single < rows ? p->single - p->first : rows - p->first) % p->rows == 0;
    return cost + (p->single > p->first && !fits);
}

static unsigned sight_cost(sinkproof_pass_sight sight, size_t number) {
    return (sight != SINKPROOF_SIGHT_DEFINED) +
           (sight >= SINKPROOF_SIGHT_OF_ROW ? size_cost(number) : 0);
}

// More than any rule supposes.
enum { WITHOUT_RULE = 100 };

static unsigned cache_cost(const sinkproof_attending *m, size_t rows) {
    const sinkproof_cache_read *c = &m->cache;
    const sinkproof_pass_read *p = &m->passes;
    size_t by = (size_t)(c->by < 0 ? -c->by : c->by);
    unsigned cost = c->spared + c->circle + c->seen + c->edge + c->exchanged + (c->steps > 0);
    switch (c->kind) {
    case SINKPROOF_CACHE_NONE:
        return passes_cost(&p->of, rows);
    case SINKPROOF_CACHE_PASSES:
        cost += passes_cost(&p->of, rows) + sight_cost(p->cached, p->number);
        // one rule for all keys is one supposition
        if (p->own != p->cached) cost += sight_cost(p->own, 0);
        if (p->slots != SINKPROOF_SLOTS_OWN)
            cost += 1 + p->own_direct + p->left_out + p->first_direct;
        if (p->slots != SINKPROOF_SLOTS_OWN && p->number > 1) cost += size_cost(p->number);
        return cost;
    case SINKPROOF_CACHE_FIXED:
        cost += c->count >= rows ? 0 : c->first == 0 || c->count == 1 ? 1 : 2;
        return cost + (by > 0) + (c->step > 1 ? size_cost(c->step) : 0) + c->rest;
    case SINKPROOF_CACHE_BEFORE:
    case SINKPROOF_CACHE_SEEN:
        return cost + (c->first > 0) + (c->count > 1) + (by > 0) + (c->step > 1) + c->rest;
    case SINKPROOF_CACHE_BEHIND:
        return cost + 1 + (m->window != SINKPROOF_WINDOW_DEFINED);
    case SINKPROOF_CACHE_RING:
        return cost + size_cost(c->count);
    case SINKPROOF_CACHE_TREE:
        return cost + 2;
    case SINKPROOF_CACHE_DOCUMENTS:
        return cost + (unsigned)m->access.cuts;
    case SINKPROOF_CACHE_STRETCHES:
        return cost + (unsigned)m->access.cuts / 2 + m->access.earlier;
    case SINKPROOF_CACHE_LISTED: // what the counts are, with no rule
        return cost + WITHOUT_RULE;
    case SINKPROOF_CACHE_TILE:
    case SINKPROOF_CACHE_REMAINDER:
    case SINKPROOF_CACHE_EDGE:
    case SINKPROOF_CACHE_ORDER:
        break;
    }
    return cost + 1 + size_cost(c->count) + (c->kind != SINKPROOF_CACHE_ORDER && by > 0);
}

static unsigned mask_cost(const sinkproof_attending *m) {
    const sinkproof_tiling *t = &m->tiling;
    unsigned cost = size_cost(m->window_unit) + size_cost(m->row_unit) + size_cost(m->row_tile);
    cost += m->row_tile_end + size_cost(m->block) + (m->from > 0) + (m->prefix > 0);
    if (t->rows > 0) cost += size_cost(t->rows) + 2 * (t->first != t->rows) + (t->before > 0);
    return cost + (m->window_by != 0) + (m->later > 0);
}

unsigned attention_cost(const sinkproof_attending *m, size_t rows) {
    unsigned place = (m->first_row > 0) + 3 * (m->end_row > 0) + (m->row_step > 0);
    place += 2 * (m->first_head > 0 || m->end_head > 0 || m->heads != 0);
    return place + cache_cost(m, rows) + mask_cost(m) + (m->part > 1 ? size_cost(m->part) : 0) +
           (m->parts_kept != SINKPROOF_KEPT_ALL);
}
