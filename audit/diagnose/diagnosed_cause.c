// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/diagnosed_cause.h"

enum { MOST = 64 }; // overrides

// Mistakes whose overrides are stated already.
typedef struct stated {
    const sinkproof_mistake *all[MOST];
    size_t n;
} stated;

static bool is_stated(const stated *s, const sinkproof_mistake *m) {
    bool found = false;
    for (size_t i = 0; i < s->n; i++) found = found || s->all[i] == m;
    return found;
}

static bool state(stated *s, const sinkproof_mistake *m, sinkproof_cause *cause) {
    if (is_stated(s, m)) return true;
    if (s->n == MOST || !sinkproof_cause_add(cause, m->override, m->text)) return false;
    s->all[s->n++] = m;
    return true;
}

static bool is_of_overrides(const sinkproof_explanation *what) {
    bool all = what->n > 0;
    for (size_t i = 0; i < what->n; i++) all = all && what->mistakes[i]->override != NULL;
    return all;
}

// The first of its explanations that overrides state.
static bool state_finding(stated *s, const sinkproof_finding_of *f, sinkproof_cause *cause) {
    const sinkproof_explanation *what = f->alike, *end = f->alike + f->n_alike;
    while (what < end && !is_of_overrides(what)) what++;
    bool fine = what < end;
    for (size_t i = 0; fine && i < what->n; i++) fine = state(s, what->mistakes[i], cause);
    return fine;
}

bool sinkproof_diagnosed_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                               const sinkproof_judge_options *options,
                               const sinkproof_judgement *judgement,
                               const sinkproof_diagnosis *diagnosis, sinkproof_cause *cause) {
    stated s = {.n = 0};
    bool fine = diagnosis->n > 0;
    sinkproof_cause_begin(cause, judgement);
    for (size_t i = 0; fine && i < diagnosis->n; i++)
        fine = state_finding(&s, &diagnosis->findings[i], cause);
    return fine && sinkproof_cause_explains(model, trace, options, judgement, cause);
}
