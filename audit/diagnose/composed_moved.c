// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A point that is right but for a factor, or whose parts stand in each other's place: rows that are
// those of another position, heads that are exchanged, what is zero, negated or scaled.
#include "audit/diagnose/composed_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *point_name(const composing *c) {
    return sinkproof_trace_point_name(c->point);
}

static composed_mistake *moved_new(composing *c, const sinkproof_region *region) {
    composed_mistake *m = composing_new(c);
    if (m != NULL)
        m->moving = (sinkproof_moving){
            .on = true, .point = c->point, .region = *region, .along = ALONG_ROWS, .factor = 1};
    return m;
}

void composed_say_moved(const composing *c, composed_mistake *m) {
    m->region = m->moving.region;
    composed_say_region(c, m);
    memset(&m->region, 0, sizeof m->region);
}

bool composing_try_fitted(composing *c, const sinkproof_moving *how, size_t fitted, const char *id,
                          const char *text) {
    bool fine = true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->moving = *how, m->moving.region = c->regions[r];
        if (fitted > 0) m->fitted = &m->moving.numbers[fitted];
        composed_name(m, "%s-%s", point_name(c), id);
        composed_say(m, "%s %s", point_name(c), text);
        composed_say_moved(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

bool composing_try_moving(composing *c, const sinkproof_moving *how, const char *id,
                          const char *text) {
    return composing_try_fitted(c, how, 0, id, text);
}

// ---- a factor

static bool is_all_zero(const composing *c, const sinkproof_region *region) {
    bool zero = true;
    for (size_t at = 0; zero && at < c->elements; at++)
        zero = c->v[at] == 0 || !composing_holds(c, region, at);
    return zero;
}

static bool try_zero(composing *c, const sinkproof_region *region) {
    composed_mistake *m = moved_new(c, region);
    if (m == NULL) return false;
    m->moving.from.source = SINKPROOF_FROM_NOWHERE;
    composed_name(m, "%s-zero", point_name(c));
    composed_say(m, "%s is zero", point_name(c));
    composed_say_moved(c, m);
    return composing_try(c, m);
}

// Where all numbers are 0, a weight that is left out or a factor that is 0 says more than is known.
bool compose_zeros(composing *c) {
    if (c->point != TRACE_A11) return true; // elsewhere factors are asked early
    for (size_t r = 0; r < c->n_regions && c->found == NULL; r++)
        if (is_all_zero(c, &c->regions[r]) && !try_zero(c, &c->regions[r])) return false;
    return true;
}

static bool try_factor(composing *c, const sinkproof_region *region, const chosen_number *by) {
    composed_mistake *m = moved_new(c, region);
    if (m == NULL) return false;
    m->moving.factor = by->value, m->by = m->fitted = &m->moving.factor;
    composed_name(m, "%s-times-%s", point_name(c), by->text);
    if (by->value == -1)
        composed_say(m, "%s has the opposite sign", point_name(c));
    else
        composed_say(m, "%s is multiplied by %s", point_name(c), by->text);
    composed_say_moved(c, m);
    return composing_try(c, m);
}

static bool try_addend(composing *c, const sinkproof_region *region, const chosen_number *by) {
    composed_mistake *m = moved_new(c, region);
    if (m == NULL) return false;
    m->moving.addend = by->value, m->fitted = &m->moving.addend;
    composed_name(m, "%s-plus-%s", point_name(c), by->text);
    composed_say(m, "%s is added to every element of %s", by->text, point_name(c));
    composed_say_moved(c, m);
    return composing_try(c, m);
}

typedef bool number_try(composing *c, const sinkproof_region *region, const chosen_number *by);

static bool try_numbers(composing *c, const sinkproof_region *region, const double *base,
                        const double *with, double none, number_try *attempt) {
    fitted_range t;
    chosen_number by[FIT_CHOICES];
    bool fine = true;
    if (!fit_number(c, region, base, with, &t) || !t.good) return true;
    size_t n = fit_choose(c, &t, by);
    for (size_t i = 0; i < n && fine && c->found == NULL; i++)
        if (by[i].value != none && by[i].value != 0) fine = attempt(c, region, &by[i]);
    return fine;
}

static bool try_factors_in(composing *c, const sinkproof_region *region) {
    double *on = calloc(c->elements, sizeof *on);
    if (on == NULL) return fail_for_memory(c->s);
    for (size_t at = 0; at < c->elements; at++) on[at] = c->mid[at] + 1;
    bool fine = try_numbers(c, region, NULL, c->mid, 1, try_factor);
    if (fine && c->found == NULL) fine = try_numbers(c, region, c->mid, on, 0, try_addend);
    free(on);
    return fine;
}

bool compose_factors(composing *c) {
    bool fine = !sinkproof_trace_point_is_index(c->point), zero = !fine;
    if (!fine) return true;
    for (size_t r = 0; fine && r < c->n_regions && c->found == NULL; r++) {
        zero = is_all_zero(c, &c->regions[r]);
        fine = zero ? try_zero(c, &c->regions[r]) : try_factors_in(c, &c->regions[r]);
    }
    return fine;
}

// ---- parts in other places

// The elements of a dimension's index i, in the order of the others.
typedef struct unit_view {
    const composing *c;
    sinkproof_dimension along;
    size_t size, each; // indices; elements of one
    size_t *at;        // [size, each]
} unit_view;

static bool units_find(composing *c, sinkproof_dimension along, unit_view *u) {
    size_t size = sinkproof_region_size(c->s->trials.config, c->point, c->n, along);
    *u = (unit_view){
        .c = c, .along = along, .size = size, .each = size > 0 ? c->elements / size : 0};
    u->at = calloc(c->elements + 1, sizeof *u->at);
    size_t *count = calloc(size + 1, sizeof *count);
    bool fine = u->at != NULL && count != NULL;
    for (size_t at = 0; fine && size > 0 && at < c->elements; at++) {
        size_t i =
            sinkproof_place_of(c->s->trials.config, c->point, c->n, c->chosen_nk, at).along[along];
        if (i < size && count[i] < u->each) u->at[i * u->each + count[i]++] = at;
    }
    free(count);
    return fine || fail_for_memory(c->s);
}

static bool unit_fails(const unit_view *u, size_t i) {
    bool fails = false;
    for (size_t k = 0; !fails && k < u->each; k++) fails = u->c->marks[u->at[i * u->each + k]];
    return fails;
}

// How far the values at index i are from those that belong at `from`, over their size; `factor`:
// of least squares.
static double unit_distance(const unit_view *u, size_t i, size_t from, double *factor) {
    const composing *c = u->c;
    double mm = 0, mv = 0, vv = 0;
    for (size_t k = 0; k < u->each; k++) {
        double v = c->v[u->at[i * u->each + k]], m = c->mid[u->at[from * u->each + k]];
        mm += m * m, mv += m * v, vv += v * v;
    }
    *factor = mm > 0 ? mv / mm : 0;
    return vv > 0 && mm > 0 ? sqrt(fmax(0, 1 - mv / mm * (mv / vv))) : 1;
}

// The index whose values stand at i; SIZE_MAX: none is near.
static size_t unit_source(const unit_view *u, size_t i, double *factor) {
    const double near = 0.05; // only a guess: the judge decides
    double best = near;
    size_t found = SIZE_MAX;
    for (size_t from = 0; from < u->size; from++) {
        double times, distance = unit_distance(u, i, from, &times);
        if (distance >= best) continue;
        best = distance, found = from, *factor = times;
    }
    return found;
}

// The words for an index `by` places on.
static void say_shift(composed_mistake *m, const char *what, long by, bool circle) {
    if (by == 1 || by == -1)
        composed_say(m, "the %s %s", by > 0 ? "next" : "previous", what);
    else
        composed_say(m, "the %s %ld places %s", what, labs(by), by > 0 ? "on" : "before");
    if (circle) composed_say(m, ", in a circle");
}

static void say_rule(const composing *c, composed_mistake *m, const char *what,
                     sinkproof_source source, long by, long size) {
    composed_say(m, "each %s of %s holds ", what, point_name(c));
    if (m->moving.factor < 0) composed_say(m, "with the opposite sign ");
    if (source == SINKPROOF_FROM_FIXED)
        composed_say(m, "what belongs to %s %ld", what, by);
    else if (source == SINKPROOF_FROM_MIRRORED && by + 1 == size)
        composed_say(m, "what belongs to the %s at the same distance from the other end", what);
    else if (source == SINKPROOF_FROM_MIRRORED)
        composed_say(m, "what belongs to the %s whose number is %ld minus its own", what, by);
    else {
        composed_say(m, "what belongs to ");
        say_shift(m, what, by, source == SINKPROOF_FROM_ROLLED);
    }
}

static bool try_source(composing *c, const unit_view *u, const sinkproof_region *region,
                       const sinkproof_from *from, double factor) {
    const sinkproof_source source = from->source;
    const long by = from->by;
    static const char *const words[] = {
        [ALONG_ROWS] = "position", [ALONG_HEADS] = "head",     [ALONG_GROUPS] = "key/value head",
        [ALONG_SLOTS] = "slot",    [ALONG_EXPERTS] = "expert", [ALONG_COORDINATES] = "coordinate",
        [ALONG_KEYS] = "key"};
    const char *what = words[u->along];
    composed_mistake *m = moved_new(c, region);
    if (m == NULL) return false;
    m->moving.along = u->along, m->moving.from = *from;
    composed_name(m, "%s-%s-%s%+ld", point_name(c), what,
                  source == SINKPROOF_FROM_FIXED      ? "fixed"
                  : source == SINKPROOF_FROM_MIRRORED ? "mirrored"
                                                      : "shifted",
                  by);
    if (fabs(factor + 1) < 0.05) m->moving.factor = -1, composed_name(m, "-negated");
    const sinkproof_indices *in = &region->along[u->along];
    bool one = in->end == in->first + 1, two = in->end == in->first + 2 && in->step < 2;
    bool negated = m->moving.factor < 0;
    long size = (long)u->size, away = ((by % size) + size) % size;
    if (one && source == SINKPROOF_FROM_FIXED)
        composed_say(m, "%s %zu of %s holds %swhat belongs to %s %ld", what, in->first,
                     point_name(c), negated ? "with the opposite sign " : "", what, by);
    else if (two && source == SINKPROOF_FROM_MIRRORED && !negated)
        composed_say(m, "%ss %zu and %zu of %s are exchanged", what, in->first, in->first + 1,
                     point_name(c));
    else if (source == SINKPROOF_FROM_ROLLED && from->size == 0 && 2 * away == size && !negated)
        composed_say(m, "the two halves of the %ss of %s are exchanged", what, point_name(c));
    else
        say_rule(c, m, what, source, by, size);
    composed_say_moved(c, m);
    return composing_try(c, m);
}

// The units that fail, as far as they are asked, and a source of each.
typedef struct asked_units {
    size_t n, i[12], from[12];
    double factor;
} asked_units;

// Whether each unit that is asked, but one if there are many, holds what the rule says: units that
// are alike (positions of the same token) have several sources.
static bool rule_holds(const unit_view *u, const sinkproof_from *rule, const asked_units *a) {
    const double near = 0.05;
    size_t far = 0;
    for (size_t k = 0; k < a->n; k++) {
        double factor;
        size_t from = sinkproof_from_index(rule, a->i[k], u->size);
        far += from == SIZE_MAX || unit_distance(u, a->i[k], from, &factor) >= near;
    }
    return far <= (a->n > 4 ? 1 : 0);
}

static bool rule_is_new(const sinkproof_from *tried, size_t n, const sinkproof_from *rule) {
    bool is_new = true;
    for (size_t i = 0; i < n; i++)
        is_new = is_new && (tried[i].source != rule->source || tried[i].by != rule->by ||
                            tried[i].size != rule->size || tried[i].first != rule->first);
    return is_new;
}

static long nearer_way(long by, long size) {
    by = (by % size + size) % size;
    return 2 * by > size ? by - size : by;
}

// Tries the rules that a source allows, where the others hold them too: a place that stays, a
// shift, a circle (of all places, or of those in the region), an order that is mirrored.
static bool try_rules(composing *c, const unit_view *u, const sinkproof_region *region,
                      const asked_units *a) {
    enum { KINDS = 5 };
    sinkproof_from tried[sizeof a->i / sizeof a->i[0] * KINDS];
    const sinkproof_indices *in = &region->along[u->along];
    size_t n = 0, part = in->end > in->first && in->step < 2 ? in->end - in->first : 0;
    bool fine = true;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t k = 0; k < a->n && fine && c->found == NULL; k++) {
            long i = (long)a->i[k], from = (long)a->from[k], by = from - i;
            const sinkproof_from rules[KINDS] = {
                {.source = SINKPROOF_FROM_FIXED, .by = from},
                {.source = SINKPROOF_FROM_SHIFTED, .by = by},
                {.source = SINKPROOF_FROM_ROLLED, .by = nearer_way(by, (long)u->size)},
                {.source = SINKPROOF_FROM_ROLLED,
                 .by = part > 0 ? nearer_way(by, (long)part) : 0,
                 .first = in->first,
                 .size = part},
                {.source = SINKPROOF_FROM_MIRRORED, .by = from + i}};
            if (kind == 3 && (part < 3 || part == u->size)) continue;
            if (!rule_is_new(tried, n, &rules[kind]) || !rule_holds(u, &rules[kind], a)) continue;
            tried[n++] = rules[kind];
            fine = try_source(c, u, region, &rules[kind], a->factor);
        }
    return fine;
}

static bool try_units(composing *c, sinkproof_dimension along) {
    asked_units a = {.factor = 1};
    unit_view u;
    bool fine = units_find(c, along, &u);
    for (size_t k = 0; fine && k < u.size && a.n < sizeof a.i / sizeof a.i[0]; k++) {
        if (!unit_fails(&u, k)) continue;
        a.i[a.n] = k, a.from[a.n] = unit_source(&u, k, &a.factor);
        a.n += a.from[a.n] != SIZE_MAX && a.from[a.n] != k;
    }
    for (size_t r = 0; fine && a.n > 0 && r < c->n_regions && c->found == NULL; r++)
        fine = try_rules(c, &u, &c->regions[r], &a);
    free(u.at);
    return fine;
}

bool compose_moved(composing *c) {
    static const sinkproof_dimension order[] = {ALONG_HEADS, ALONG_GROUPS, ALONG_ROWS, ALONG_SLOTS,
                                                ALONG_COORDINATES};
    bool fine = true;
    for (size_t d = 0; d < sizeof order / sizeof order[0] && fine && c->found == NULL; d++) {
        sinkproof_dimension along = order[d];
        size_t size = sinkproof_region_size(c->s->trials.config, c->point, c->n, along);
        bool heads = sinkproof_region_size(c->s->trials.config, c->point, c->n, ALONG_HEADS) > 0;
        if (size < 2 || (along == ALONG_GROUPS && heads)) continue;
        if (along == ALONG_COORDINATES && size > 512) continue;
        fine = try_units(c, along);
    }
    return fine;
}
