// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Chooses the cases of a stage: every length and width around the edges of tiles and windows, each
// recipe, each size of a sink, heads in every ratio, one pass and several; then random sizes. Also
// lists the smaller cases to which a failing one is reduced.
#include "audit/plugin/drill.h"
#include "base/splitmix.h"

#include <stdlib.h>

#define COUNT(list) (sizeof list / sizeof *list)

static const size_t lengths[] = {1,  2,  3,  7,  8,  9,  15,  16,  17,
                                 31, 32, 33, 63, 64, 65, 127, 128, 129};
static const size_t few_lengths[] = {1, 2, 17, 33};
static const size_t widths[] = {2,  4,  14, 15, 16, 17,  30,  31, 32,
                                33, 63, 64, 65, 96, 127, 128, 129};
static const size_t windows[] = {1, 2, 7, 8, 16, 17, 32, 64, 128};
static const size_t dims[] = {16, 32, 64, 80, 96, 128, 256};
static const size_t ratios[][2] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {8, 1},  {2, 2},
                                   {4, 2}, {6, 2}, {8, 2}, {5, 5}, {12, 4}, {16, 2}};
static const size_t routes[][2] = {{1, 1}, {2, 1}, {3, 2}, {5, 4}, {8, 4}, {32, 4}, {17, 8}};
static const size_t chunks[] = {1, 7, 16, 17};
enum { DRAWS = 32 };

// A plan under construction.
typedef struct planner {
    sinkproof_plan *plan;
    const sinkproof_case *base;
    bool fixed, whole, failed;
    uint64_t state;
} planner;

static void put(planner *p, sinkproof_case c) {
    sinkproof_plan *plan = p->plan;
    const sinkproof_case *base = p->base;
    if ((c.stage->recipes >> c.recipe & 1) == 0 || p->failed) return;
    if (p->whole) c.chunk = 0;
    if (p->fixed) { // the sizes of a given model
        c.heads = base->heads, c.kv = base->kv, c.dim = base->dim, c.hidden = base->hidden;
        c.inter = base->inter, c.experts = base->experts, c.chosen = base->chosen;
        c.vocab = base->vocab;
        c.window = c.window > 0 ? base->window : 0;
    }
    c.seed = base->seed + plan->count;
    sinkproof_case_settle(&c);
    if (plan->count == plan->room) {
        size_t room = 2 * plan->room + 64;
        sinkproof_case *more = realloc(plan->cases, room * sizeof *more);
        p->failed = more == NULL;
        if (more == NULL) return;
        plan->cases = more;
        plan->room = room;
    }
    plan->cases[plan->count++] = c;
}

static void each_recipe(planner *p, sinkproof_case c) {
    for (int r = 0; r < SINKPROOF_RECIPES; r++) {
        c.recipe = (sinkproof_recipe)r;
        put(p, c);
    }
}

// Lengths around the window's, with keys at its edges that outweigh all others.
static void around_windows(planner *p) {
    for (size_t w = 0; w < (p->fixed ? 1 : COUNT(windows)); w++) {
        sinkproof_case c = *p->base;
        if (!p->fixed) c.window = windows[w];
        if (c.window == 0) continue;
        const size_t beside[] = {c.window, c.window + 1, 2 * c.window + 1};
        for (size_t i = 0; i < COUNT(beside) && beside[i] <= 300; i++) {
            c.n = beside[i];
            c.recipe = SINKPROOF_RISING, put(p, c);
            c.recipe = SINKPROOF_FALLING, put(p, c);
            c.recipe = SINKPROOF_RANDOM, put(p, c);
        }
    }
}

static void over_keys(planner *p) {
    sinkproof_case c = *p->base;
    c.window = 0;
    for (size_t i = 0; i < COUNT(lengths); i++) {
        c.n = lengths[i];
        c.recipe = SINKPROOF_RANDOM, put(p, c);
        c.recipe = SINKPROOF_RISING, put(p, c);
    }
    c.recipe = SINKPROOF_RANDOM;
    c.n = 257, put(p, c); // beyond a span of 256 keys
    around_windows(p);
    for (size_t i = 0; i < COUNT(chunks); i++)
        for (size_t w = 0; w < 2; w++) {
            sinkproof_case in_passes = *p->base;
            in_passes.chunk = chunks[i];
            in_passes.window = w * 16;
            in_passes.n = 2 * chunks[i] + 35;
            put(p, in_passes);
        }
}

static void over_sinks(planner *p) {
    static const size_t beside[] = {1, 33};
    for (int s = 0; s < SINKPROOF_SINK_PLACES; s++)
        for (size_t i = 0; i < COUNT(beside); i++)
            for (size_t w = 0; w < 2; w++) {
                sinkproof_case c = *p->base;
                c.sinks = (sinkproof_sink_place)s;
                c.n = beside[i];
                c.window = w * 16;
                put(p, c);
                c.recipe = SINKPROOF_HUGE, put(p, c);
            }
}

static void over_heads(planner *p) {
    for (size_t i = 0; i < COUNT(ratios); i++)
        for (size_t n = 1; n < COUNT(few_lengths); n++) {
            sinkproof_case c = *p->base;
            c.heads = ratios[i][0];
            c.kv = ratios[i][1];
            c.n = few_lengths[n];
            put(p, c);
        }
    for (size_t i = 0; i < COUNT(dims); i++) {
        sinkproof_case c = *p->base;
        c.dim = dims[i];
        put(p, c);
        c.recipe = SINKPROOF_EXACT, put(p, c);
    }
}

static void over_widths(planner *p) {
    for (size_t i = 0; i < COUNT(widths); i++)
        for (size_t n = 0; n < COUNT(few_lengths); n += 2) {
            sinkproof_case c = *p->base;
            c.n = few_lengths[n];
            c.hidden = c.inter = c.vocab = widths[i];
            put(p, c);
            c.recipe = SINKPROOF_EXACT, put(p, c);
            c.recipe = SINKPROOF_LIMITS, put(p, c);
        }
    for (size_t i = 0; i < COUNT(widths); i++) { // one size wide, the others narrow
        sinkproof_case c = *p->base;
        c.hidden = widths[i], put(p, c);
        c = *p->base;
        c.inter = c.vocab = widths[i], put(p, c);
    }
}

static void over_routes(planner *p) {
    for (size_t i = 0; i < COUNT(routes); i++)
        for (size_t n = 0; n < COUNT(few_lengths); n++) {
            sinkproof_case c = *p->base;
            c.experts = routes[i][0];
            c.chosen = routes[i][1];
            c.n = few_lengths[n];
            put(p, c);
            c.recipe = SINKPROOF_TIES, put(p, c);
        }
}

#define ANY(p, list) (list)[sinkproof_draw_from_to(&(p)->state, 0, COUNT(list) - 1)]

static void drawn(planner *p) {
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_case c = *p->base;
        size_t ratio = sinkproof_draw_from_to(&p->state, 0, COUNT(ratios) - 1);
        size_t route = sinkproof_draw_from_to(&p->state, 0, COUNT(routes) - 1);
        c.n = sinkproof_draw_from_to(&p->state, 1, 100);
        c.heads = ratios[ratio][0];
        c.kv = ratios[ratio][1];
        c.dim = ANY(p, dims);
        c.experts = routes[route][0];
        c.chosen = routes[route][1];
        c.hidden = ANY(p, widths);
        c.inter = ANY(p, widths);
        c.vocab = ANY(p, widths);
        c.window = sinkproof_draw(&p->state) % 2 == 0 ? 0 : ANY(p, windows);
        c.chunk = sinkproof_draw(&p->state) % 4 == 0 ? ANY(p, chunks) + 8 : 0;
        c.sinks =
            (sinkproof_sink_place)sinkproof_draw_from_to(&p->state, 0, SINKPROOF_SINK_PLACES - 1);
        put(p, c);
    }
}

bool sinkproof_plan_add(const sinkproof_case *base, bool fixed, bool whole, sinkproof_plan *plan,
                        sinkproof_error *error) {
    planner p = {plan, base, fixed, whole, false, base->seed};
    unsigned knows = base->stage->knows;
    for (size_t i = 0; i < COUNT(few_lengths); i++) {
        sinkproof_case c = *base;
        c.n = few_lengths[i];
        each_recipe(&p, c);
    }
    if ((knows & SINKPROOF_OF_KEYS) != 0) over_keys(&p);
    if ((knows & SINKPROOF_OF_SINKS) != 0) over_sinks(&p);
    if ((knows & SINKPROOF_OF_HEADS) != 0 && !fixed) over_heads(&p);
    if ((knows & (SINKPROOF_OF_HIDDEN | SINKPROOF_OF_INTER)) != 0 && !fixed) over_widths(&p);
    if ((knows & SINKPROOF_OF_EXPERTS) != 0 && !fixed) over_routes(&p);
    if (!fixed) drawn(&p);
    return !p.failed || sinkproof_fail(error, "no memory for a plan of calls");
}

// ---- smaller ones ----------------------------------------------------------------------------

// Adds c with one size set to `value`, if that is smaller and valid.
static void less(const sinkproof_case *c, size_t sinkproof_case_member, size_t value,
                 sinkproof_case *smaller, size_t *count) {
    sinkproof_case s = *c;
    size_t *at = (size_t *)(void *)((char *)&s + sinkproof_case_member);
    if (value >= *at || *count == SINKPROOF_SMALLER) return;
    *at = value;
    sinkproof_case settled = s;
    sinkproof_case_settle(&settled);
    bool fits = s.heads % s.kv == 0 && s.chosen <= s.experts && s.chunk < s.n + (s.chunk == 0);
    if (fits && *(size_t *)(void *)((char *)&settled + sinkproof_case_member) == value)
        smaller[(*count)++] = s;
}
#define LESS(member, value) less(c, offsetof(sinkproof_case, member), value, smaller, &count)

size_t sinkproof_case_smaller(const sinkproof_case *c, sinkproof_case smaller[SINKPROOF_SMALLER]) {
    size_t count = 0;
    LESS(chunk, 0);
    LESS(n, 1);
    LESS(n, c->n / 2);
    LESS(n, c->n - c->n / 4);
    LESS(n, c->n - 1);
    LESS(window, 0);
    LESS(window, c->window / 2);
    LESS(window, c->window - 1);
    LESS(heads, c->kv);
    LESS(heads, c->heads / 2);
    LESS(heads, c->heads - c->kv);
    LESS(kv, 1);
    LESS(dim, 16);
    LESS(dim, c->dim / 2 / 2 * 2);
    LESS(hidden, c->hidden / 2);
    LESS(hidden, c->hidden - 1);
    LESS(inter, c->inter / 2);
    LESS(inter, c->inter - 1);
    LESS(experts, c->chosen);
    LESS(chosen, 1);
    LESS(vocab, c->vocab / 2);
    LESS(vocab, c->vocab - 1);
    return count;
}
