// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The findings that a search collects.
#include "audit/diagnose/search.h"

#include "proofs/bounds/worst.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool budget_is_spent(const search *s) {
    return s->trials.tried >= s->allowed;
}

bool fail_for_memory(const search *s) {
    return sinkproof_fail(s->trials.error, "no memory for a diagnosis");
}

diagnosed_finding *add_finding(search *s, size_t place, unsigned points) {
    diagnosed_finding *grown =
        realloc(s->out->findings, (s->out->n + 1) * sizeof *s->out->findings);
    if (grown == NULL) {
        fail_for_memory(s);
        return NULL;
    }
    s->out->findings = grown;
    diagnosed_finding *f = &grown[s->out->n++];
    *f = (diagnosed_finding){.layer = place, .points = points, .next_bounds = INFINITY};
    f->point = (sinkproof_trace_point)__builtin_ctz(points);
    f->layers[place] = true;
    return f;
}

unsigned findings_give(search *s, size_t place, unsigned points) {
    unsigned given = 0;
    for (size_t i = 0; i < s->out->n;) {
        diagnosed_finding *f = &s->out->findings[i];
        size_t layers = 0;
        for (size_t l = 0; l <= SINKPROOF_MAX_LAYERS; l++) layers += f->layers[l];
        if (layers != 1 || !f->layers[place] || (f->points & ~points) != 0) {
            i++;
            continue;
        }
        given |= f->points;
        memmove(f, f + 1, (--s->out->n - i) * sizeof *f);
    }
    return given;
}

void finding_add_alike(diagnosed_finding *f, const mistakes_together *what) {
    if (f->n_alike < DIAGNOSE_MOST_ALIKE)
        f->alike[f->n_alike++] = *what;
    else
        f->more_alike++;
}

void keep_if_nearer(diagnosed_finding *f, const mistake_trial *t) {
    double worst = 0;
    if (t->refused || (t->reached & f->points) == 0) return;
    for (int p = 0; p < TRACE_POINTS; p++)
        if (f->points >> p & 1) worst = sinkproof_keep_worst(worst, t->bounds[p]);
    if (worst == 0 || !(worst < f->next_bounds)) return;
    f->next = t->what;
    f->next_bounds = worst;
}

bool trial_explains(const mistake_trial *t, unsigned points) {
    return !t->refused && !t->breaks && ((points | t->reached) & ~t->inside) == 0;
}
