// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The catalogue at a place: a known mistake in one expert, one head, some positions.
#include "audit/diagnose/composed_fit.h"

#include <string.h>

// The points at which the mistake acts and which show at the point in question.
static unsigned points_shown(const composing *c, const known_mistake *what) {
    const unsigned attention = point_bit(TRACE_A9) | point_bit(TRACE_A11); // one operation
    unsigned points = 0;
    if (what->points & attention) return what->points;
    for (int p = 0; p < TRACE_POINTS; p++)
        if ((what->points >> p & 1) != 0 && composing_reaches(c, (sinkproof_trace_point)p))
            points |= 1u << p;
    return points;
}

static bool try_in_region(composing *c, const known_mistake *what, const sinkproof_region *region) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    m->what = what, m->region = *region, m->mistake.points = points_shown(c, what);
    composed_name(m, "%s", what->id);
    composed_say(m, "%s", what->text);
    if (m->mistake.points != what->points) {
        composed_name(m, "@%s", sinkproof_trace_point_name(c->point));
        composed_say(m, ", at %s alone", sinkproof_trace_point_name(c->point));
    }
    composed_say_region(c, m);
    return composing_try(c, m);
}

// What borrows from other experts is said of each expert; composed_weights.c says whose one has.
static bool is_of_each_expert(const known_mistake *what) {
    return strncmp(what->id, "expert-", strlen("expert-")) == 0;
}

// In the whole of the point only a mistake that acts at other points too.
bool compose_places(composing *c) {
    bool fine = true;
    for (size_t r = 0; r < c->n_ranges && c->found == NULL; r++) {
        bool whole = sinkproof_region_is_whole(&c->regions[r]);
        for (size_t i = 0; fine && i < c->s->n_candidates; i++) {
            const candidate *known = &c->s->of[i];
            const known_mistake *what = known->what.mistakes[0];
            if (known->alone || (known->reached & point_bit(c->point)) == 0) continue;
            if (c->regions[r].along[ALONG_EXPERTS].end != 0 && is_of_each_expert(what)) continue;
            if (whole && points_shown(c, what) == what->points) continue;
            fine = try_in_region(c, what, &c->regions[r]);
        }
    }
    return fine;
}
