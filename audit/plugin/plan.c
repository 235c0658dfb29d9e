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
    case_plan *plan;
    const stage_case *base;
    bool fixed, failed;
    uint64_t state;
} planner;

static void plan_put_case(planner *p, stage_case c) {
    case_plan *plan = p->plan;
    const stage_case *base = p->base;
    if ((c.stage->recipes >> c.recipe & 1) == 0 || p->failed) return;
    if (p->fixed) { // the sizes of a given model
        c.heads = base->heads, c.kv = base->kv, c.dim = base->dim, c.hidden = base->hidden;
        c.inter = base->inter, c.experts = base->experts, c.chosen = base->chosen;
        c.vocab = base->vocab;
        c.window = c.window > 0 ? base->window : 0;
    }
    c.seed = base->seed + plan->count;
    case_settle_unknown(&c);
    if (plan->count == plan->room) {
        size_t room = 2 * plan->room + 64;
        stage_case *more = realloc(plan->cases, room * sizeof *more);
        p->failed = more == NULL;
        if (more == NULL) return;
        plan->cases = more;
        plan->room = room;
    }
    plan->cases[plan->count++] = c;
}

static void plan_recipes(planner *p, stage_case c) {
    for (int r = 0; r < RECIPE_COUNT; r++) {
        c.recipe = (input_recipe)r;
        plan_put_case(p, c);
    }
}

// Lengths around the window's, with keys at its edges that outweigh all others.
static void plan_windows(planner *p) {
    for (size_t w = 0; w < (p->fixed ? 1 : COUNT(windows)); w++) {
        stage_case c = *p->base;
        if (!p->fixed) c.window = windows[w];
        if (c.window == 0) continue;
        const size_t beside[] = {c.window, c.window + 1, 2 * c.window + 1};
        for (size_t i = 0; i < COUNT(beside) && beside[i] <= 300; i++) {
            c.n = beside[i];
            c.recipe = RECIPE_RISING, plan_put_case(p, c);
            c.recipe = RECIPE_FALLING, plan_put_case(p, c);
            c.recipe = RECIPE_RANDOM, plan_put_case(p, c);
        }
    }
}

static void plan_keys(planner *p) {
    stage_case c = *p->base;
    c.window = 0;
    for (size_t i = 0; i < COUNT(lengths); i++) {
        c.n = lengths[i];
        c.recipe = RECIPE_RANDOM, plan_put_case(p, c);
        c.recipe = RECIPE_RISING, plan_put_case(p, c);
    }
    c.recipe = RECIPE_RANDOM;
    c.n = 257, plan_put_case(p, c); // beyond a span of 256 keys
    plan_windows(p);
    bool passes = (p->base->stage->knows & STAGE_KNOWS_PASSES) != 0;
    for (size_t i = 0; passes && i < COUNT(chunks); i++)
        for (size_t w = 0; w < 2; w++) {
            stage_case in_passes = *p->base;
            in_passes.chunk = chunks[i];
            in_passes.window = w * 16;
            in_passes.n = 2 * chunks[i] + 35;
            plan_put_case(p, in_passes);
        }
}

static void plan_sinks(planner *p) {
    static const size_t beside[] = {1, 33};
    for (int s = 0; s <= SINK_FAR_ABOVE; s++)
        for (size_t i = 0; i < COUNT(beside); i++)
            for (size_t w = 0; w < 2; w++) {
                stage_case c = *p->base;
                c.sinks = (sink_place)s;
                c.n = beside[i];
                c.window = w * 16;
                plan_put_case(p, c);
                c.recipe = RECIPE_HUGE, plan_put_case(p, c);
            }
}

static void plan_heads(planner *p) {
    for (size_t i = 0; i < COUNT(ratios); i++)
        for (size_t n = 1; n < COUNT(few_lengths); n++) {
            stage_case c = *p->base;
            c.heads = ratios[i][0];
            c.kv = ratios[i][1];
            c.n = few_lengths[n];
            plan_put_case(p, c);
        }
    for (size_t i = 0; i < COUNT(dims); i++) {
        stage_case c = *p->base;
        c.dim = dims[i];
        plan_put_case(p, c);
        c.recipe = RECIPE_EXACT, plan_put_case(p, c);
    }
}

static void plan_widths(planner *p) {
    for (size_t i = 0; i < COUNT(widths); i++)
        for (size_t n = 0; n < COUNT(few_lengths); n += 2) {
            stage_case c = *p->base;
            c.n = few_lengths[n];
            c.hidden = c.inter = c.vocab = widths[i];
            plan_put_case(p, c);
            c.recipe = RECIPE_EXACT, plan_put_case(p, c);
            c.recipe = RECIPE_LIMITS, plan_put_case(p, c);
        }
    for (size_t i = 0; i < COUNT(widths); i++) { // one size wide, the others narrow
        stage_case c = *p->base;
        c.hidden = widths[i], plan_put_case(p, c);
        c = *p->base;
        c.inter = c.vocab = widths[i], plan_put_case(p, c);
    }
}

static void plan_routes(planner *p) {
    for (size_t i = 0; i < COUNT(routes); i++)
        for (size_t n = 0; n < COUNT(few_lengths); n++) {
            stage_case c = *p->base;
            c.experts = routes[i][0];
            c.chosen = routes[i][1];
            c.n = few_lengths[n];
            plan_put_case(p, c);
            c.recipe = RECIPE_TIES, plan_put_case(p, c);
        }
}

#define ANY(p, list) (list)[sinkproof_draw_from_to(&(p)->state, 0, COUNT(list) - 1)]

static void plan_drawn_cases(planner *p) {
    for (int i = 0; i < DRAWS; i++) {
        stage_case c = *p->base;
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
        c.sinks = (sink_place)sinkproof_draw_from_to(&p->state, 0, SINK_FAR_ABOVE);
        plan_put_case(p, c);
    }
}

// The heads of the released models: a prompt, chunks and single tokens over a cache.
static void plan_released(planner *p) {
    static const size_t passes[][2] = {{16, 0}, {1, 0}, {16, 16}, {1, 16}, {0, 16}, {0, 0}};
    for (size_t i = 0; i < COUNT(passes); i++) {
        stage_case c = *p->base;
        c.heads = 64, c.kv = 8, c.dim = 64;
        c.n = 20;
        c.chunk = passes[i][0];
        c.window = passes[i][1];
        if (c.chunk > 0 && (c.stage->knows & STAGE_KNOWS_PASSES) == 0) continue;
        plan_put_case(p, c);
    }
}

// The last call: a plan that is cut keeps it.
static void plan_overflowing_sinks(planner *p) {
    stage_case c = *p->base;
    c.sinks = SINK_OVERFLOWING;
    c.window = 0;
    plan_put_case(p, c);
}

bool plan_add_stage_cases(const stage_case *base, bool fixed, case_plan *plan,
                          sinkproof_error *error) {
    planner p = {plan, base, fixed, false, base->seed};
    unsigned knows = base->stage->knows;
    for (size_t i = 0; i < COUNT(few_lengths); i++) {
        stage_case c = *base;
        c.n = few_lengths[i];
        plan_recipes(&p, c);
    }
    if ((knows & STAGE_KNOWS_KEYS) != 0) plan_keys(&p);
    if ((knows & STAGE_KNOWS_SINKS) != 0) plan_sinks(&p);
    if ((knows & STAGE_KNOWS_HEADS) != 0 && !fixed) plan_heads(&p);
    if ((knows & (STAGE_KNOWS_HIDDEN | STAGE_KNOWS_INTER)) != 0 && !fixed) plan_widths(&p);
    if ((knows & STAGE_KNOWS_EXPERTS) != 0 && !fixed) plan_routes(&p);
    if (!fixed) plan_drawn_cases(&p);
    if ((knows & STAGE_KNOWS_KEYS) != 0 && !fixed) plan_released(&p);
    if ((knows & STAGE_KNOWS_SINKS) != 0) plan_overflowing_sinks(&p);
    return !p.failed || sinkproof_fail(error, "no memory for a plan of calls");
}

static void mark_spread(const case_plan *plan, size_t from, bool passes, size_t of, size_t keep,
                        bool *kept) {
    size_t at = 0;
    for (size_t i = from; i < plan->count && of > 0; i++) {
        if ((plan->cases[i].chunk > 0) != passes) continue;
        kept[i - from] = (at + 1) * keep / of > at * keep / of;
        at++;
    }
}

bool plan_keep_some(case_plan *plan, size_t from, size_t limit, sinkproof_error *error) {
    size_t all = plan->count - from, passes = 0, to = from;
    if (all <= limit) return true;
    bool *kept = calloc(all, sizeof *kept);
    if (kept == NULL) return sinkproof_fail(error, "no memory for a plan of calls");
    for (size_t i = from; i < plan->count; i++) passes += plan->cases[i].chunk > 0;
    size_t cached = passes < limit / 3 ? passes : limit / 3;
    if (all - passes < limit - cached) cached = limit - (all - passes);
    mark_spread(plan, from, true, passes, cached, kept);
    mark_spread(plan, from, false, all - passes, limit - cached, kept);
    for (size_t i = from; i < plan->count; i++)
        if (kept[i - from]) plan->cases[to++] = plan->cases[i];
    plan->count = to;
    free(kept);
    return true;
}

// ---- smaller ones ----------------------------------------------------------------------------

// Adds c with one size set to `value`, if that is smaller and valid.
static void add_case_with_less(const stage_case *c, size_t sinkproof_case_member, size_t value,
                               stage_case *smaller, size_t *count) {
    stage_case s = *c;
    size_t *at = (size_t *)(void *)((char *)&s + sinkproof_case_member);
    if (value >= *at || *count == CASE_SMALLER) return;
    *at = value;
    stage_case settled = s;
    case_settle_unknown(&settled);
    bool fits = s.heads % s.kv == 0 && s.chosen <= s.experts && s.chunk < s.n + (s.chunk == 0);
    if (fits && *(size_t *)(void *)((char *)&settled + sinkproof_case_member) == value)
        smaller[(*count)++] = s;
}
#define LESS(member, value)                                                                        \
    add_case_with_less(c, offsetof(stage_case, member), value, smaller, &count)

size_t case_list_smaller(const stage_case *c, stage_case smaller[CASE_SMALLER]) {
    size_t count = 0;
    LESS(chunk, 0);
    LESS(chunk, 1);
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
