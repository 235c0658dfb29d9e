// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/diagnosed_cause.h"

enum { MOST = 64 }; // most overrides

// The mistakes whose overrides are already part of the policy.
typedef struct stated {
    const known_mistake *all[MOST];
    size_t n;
} stated;

static bool is_stated(const stated *s, const known_mistake *m) {
    bool found = false;
    for (size_t i = 0; i < s->n; i++) found = found || s->all[i] == m;
    return found;
}

static bool state_mistake(stated *s, const known_mistake *m, sinkproof_cause *cause) {
    if (is_stated(s, m)) return true;
    if (s->n == MOST || !sinkproof_cause_add(cause, m->override, m->text)) return false;
    s->all[s->n++] = m;
    return true;
}

static bool all_are_overrides(const mistakes_together *what) {
    bool all = what->n > 0;
    for (size_t i = 0; i < what->n; i++) all = all && what->mistakes[i]->override != NULL;
    return all;
}

// Adds explanation `number` of those that overrides state, or the last one.
static bool state_finding(stated *s, const diagnosed_finding *f, size_t number,
                          sinkproof_cause *cause) {
    const mistakes_together *what = NULL;
    for (size_t a = 0, n = 0; a < f->n_alike && n <= number; a++)
        if (all_are_overrides(&f->alike[a])) what = &f->alike[a], n++;
    bool fine = what != NULL;
    for (size_t i = 0; fine && i < what->n; i++) fine = state_mistake(s, what->mistakes[i], cause);
    return fine;
}

static bool state_all(const sinkproof_diagnosis *d, size_t number, sinkproof_cause *cause) {
    stated s = {.n = 0};
    bool fine = d->n > 0;
    for (size_t i = 0; fine && i < d->n; i++)
        fine = state_finding(&s, &d->findings[i], number, cause);
    return fine;
}

bool sinkproof_diagnosed_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                               const sinkproof_judge_options *options,
                               const sinkproof_judgement *judgement,
                               const sinkproof_diagnosis *diagnosis, sinkproof_cause *cause) {
    size_t most = 0;
    bool found = false;
    for (size_t i = 0; i < diagnosis->n; i++)
        most = diagnosis->findings[i].n_alike > most ? diagnosis->findings[i].n_alike : most;
    for (size_t number = 0; number < most && !found; number++) {
        sinkproof_cause_begin(cause, judgement);
        found = state_all(diagnosis, number, cause) &&
                sinkproof_cause_explains(model, trace, options, judgement, cause);
    }
    return found;
}
