// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The catalogue at a place: a known mistake in one expert, one head, some positions.
#include "audit/diagnose/composed.h"

static bool try_in_region(composing *c, const known_mistake *what, const sinkproof_region *region) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    m->what = what, m->region = *region, m->mistake.points = what->points;
    composed_name(m, "%s", what->id);
    composed_say(m, "%s", what->text);
    composed_say_region(c, m);
    return composing_try(c, m);
}

bool compose_places(composing *c) {
    bool fine = true;
    for (size_t r = 0; r < c->n_regions && c->found == NULL; r++) {
        if (sinkproof_region_is_whole(&c->regions[r])) continue;
        for (size_t i = 0; fine && i < c->s->n_candidates; i++) {
            const candidate *known = &c->s->of[i];
            if (!known->alone && (known->reached & point_bit(c->point)) != 0)
                fine = try_in_region(c, known->what.mistakes[0], &c->regions[r]);
        }
    }
    return fine;
}
