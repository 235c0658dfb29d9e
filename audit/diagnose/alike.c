// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Chooses among several explanations of the same points: an engine rarely has a mistake in one
// layer alone.
#include "audit/diagnose/trial.h"

#include <string.h>

// Whether the mistakes would put a point outside its set that is inside, in a layer other than f's.
static bool mistakes_break_others(place_trials *s, const diagnosed_finding *f,
                                  const mistakes_together *what, bool *breaks) {
    enum { LAYERS = 8 }; // layers that are asked
    size_t asked = 0;
    *breaks = false;
    for (size_t l = 0; l < s->config->n_layers && asked < LAYERS && !*breaks; l++) {
        mistake_trial t = {.what = *what, .rows = f->rows};
        unsigned inside = ~failing_points(s, l);
        bool possible;
        if (f->layers[l] || f->layer == s->config->n_layers) continue;
        if (!trial_try_points(s, l, inside, 0, &t, &possible)) return false;
        *breaks = possible && t.refused;
        asked += possible;
    }
    return true;
}

bool diagnose_prefer_everywhere(place_trials *s, diagnosed_finding *f) {
    mistakes_together kept[DIAGNOSE_MOST_ALIKE];
    size_t n = 0;
    for (size_t a = 0; a < f->n_alike; a++) {
        bool breaks;
        if (!mistakes_break_others(s, f, &f->alike[a], &breaks)) return false;
        if (!breaks) kept[n++] = f->alike[a];
    }
    if (n == 0) return true;
    memcpy(f->alike, kept, n * sizeof *kept);
    f->n_alike = n;
    return true;
}
