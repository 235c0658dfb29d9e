// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A point that holds in a part of it, bit for bit, what the same point of another layer holds: a
// buffer that was not written, or a wrong one that was read.
#include "audit/diagnose/composed.h"

#include <stdlib.h>

enum { LAYERS = 4 }; // in both directions

// Whether every element outside has the value of the other layer, and not all have one value.
static bool is_of_layer(const composing *c, const sinkproof_tensor *other) {
    bool all = true, several = false;
    double first = 0;
    for (size_t at = 0, n = 0; all && at < c->elements; at++) {
        if (!c->marks[at]) continue;
        all = c->v[at] == sinkproof_tensor_value(other, at);
        if (n++ == 0) first = c->v[at];
        several = several || c->v[at] != first;
    }
    return all && several;
}

static bool try_layer(composing *c, int by, const sinkproof_region *region) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    const char *point = sinkproof_trace_point_name(c->point);
    int size = by < 0 ? -by : by;
    m->moving = (sinkproof_moving){.on = true,
                                   .point = c->point,
                                   .region = *region,
                                   .plus = c->point,
                                   .plus_times = 1,
                                   .plus_layer_by = by};
    m->region = *region;
    composed_name(m, "%s-of-layer%+d", point, by);
    composed_say(m, "%s holds what the layer ", point);
    if (size > 1) composed_say(m, "%d ", size);
    composed_say(m, "%s has: a stale buffer, or a wrong one", by < 0 ? "before" : "after");
    composed_say_region(c, m);
    return composing_try(c, m);
}

bool compose_stale(composing *c) {
    const sinkproof_config *config = c->s->trials.config;
    if (!sinkproof_trace_point_is_layered(c->point)) return true;
    for (int step = 0; step < 2 * LAYERS && c->found == NULL; step++) {
        int by = step % 2 == 0 ? -1 - step / 2 : 1 + step / 2;
        long from = (long)c->place + by;
        if (from < 0 || from >= (long)config->n_layers) continue;
        const sinkproof_tensor *other =
            sinkproof_trace_find(c->s->trials.suspect.trace, c->point, (size_t)from);
        if (other == NULL || sinkproof_tensor_elements(other) != c->elements) continue;
        if (!is_of_layer(c, other)) continue;
        for (size_t r = 0; r < c->n_regions && c->found == NULL; r++)
            if (!try_layer(c, by, &c->regions[r])) return false;
    }
    return true;
}
