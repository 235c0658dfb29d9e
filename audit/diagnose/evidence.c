// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Tests whether a trace shows the difference that mistakes make (audit/judge/judge_evidence.h): one
// mistake is compared with an engine without it, and each of two mistakes with an engine that has
// only the other.
#include "audit/diagnose/trial.h"

typedef struct supposed {
    place_trials *trials;
    mistakes_together declared, what;
} supposed;

static bool judge_variant(void *context, sinkproof_evidence_variant variant,
                          const sinkproof_judge_options *how, sinkproof_error *error) {
    const supposed *of = context;
    const mistakes_together *e = variant == SINKPROOF_VARIANT_DECLARED ? &of->declared : &of->what;
    suspect_engine suspect = of->trials->suspect;
    sinkproof_judgement under;
    bool possible;
    suspect.settled = variant;
    if (!suspect_suppose_all(&suspect, e->n, e->mistakes, how, &under, &possible, error))
        return false;
    of->trials->tried++;
    if (possible) sinkproof_judgement_free(&under);
    return true;
}

static bool add_evidence(place_trials *s, size_t place, const mistake_trial *t,
                         const mistakes_together *declared, sinkproof_evidence *evidence) {
    supposed of = {s, *declared, t->what};
    sinkproof_region region = suspect_region(&s->suspect, t->what.n, t->what.mistakes);
    const sinkproof_evidence_question question = {.config = s->config,
                                                  .judgement = s->j,
                                                  .place = place,
                                                  .stretch = s->stretch,
                                                  .rows = t->rows.end > 0 ? &t->rows : NULL,
                                                  .region = &region,
                                                  .open =
                                                      sinkproof_policy_is_open(s->suspect.policy),
                                                  .judge = judge_variant,
                                                  .context = &of};
    return sinkproof_evidence_add(&question, evidence, s->error);
}

static bool ask_evidence(place_trials *s, size_t place, const mistake_trial *t,
                         const mistakes_together *declared, bool *tells) {
    sinkproof_evidence evidence = {0, 0, 0};
    if (!add_evidence(s, place, t, declared, &evidence)) return false;
    *tells = *tells && sinkproof_evidence_tells(&evidence);
    return true;
}

bool trial_add_evidence(place_trials *s, size_t place, const mistake_trial *t,
                        sinkproof_evidence *evidence) {
    const mistakes_together none = {0};
    return add_evidence(s, place, t, &none, evidence);
}

bool trial_shows_difference(place_trials *s, size_t place, const mistake_trial *t, bool *tells) {
    const mistakes_together none = {0};
    *tells = true;
    if (t->what.n == 1) return ask_evidence(s, place, t, &none, tells);
    for (size_t m = 0; m < t->what.n && *tells; m++) {
        const mistakes_together other = {1, {t->what.mistakes[1 - m]}};
        if (!ask_evidence(s, place, t, &other, tells)) return false;
    }
    return true;
}
