// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The study: the truth, the sets, the derivatives, the engines, and what follows for each position.
#include "audit/studies/next/next_internal.h"

#include "base/splitmix.h"
#include "base/words.h"
#include "proofs/truth/forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *next_fate_name(next_fate fate) {
    static const char *const names[] = {"certified", "changed", "open", "unknown"};
    return names[fate];
}

// ---- the truth

static void tell(const next_options *o, const char *what, size_t done, size_t total) {
    if (o->progress != NULL) o->progress(o->context, what, done, total);
}

typedef struct telling {
    const next_options *options;
    size_t layers;
} telling;

// The end of a layer.
static void tell_layer(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    const telling *t = context;
    (void)values;
    if (strcmp(place->point, "M12") == 0)
        tell(t->options, "truth, layer", place->layer + 1, t->layers);
}

static size_t largest_other(arb_srcptr logit_v, size_t vocab, size_t but) {
    size_t best = but == 0 && vocab > 1 ? 1 : 0;
    for (size_t v = 0; v < vocab; v++)
        if (v != but && arf_cmp(arb_midref(logit_v + v), arb_midref(logit_v + best)) > 0) best = v;
    return best;
}

static void take_truth(next_position *at, arb_srcptr logit_v, size_t vocab, bool routed,
                       slong bits) {
    bool certified;
    arb_t gap;
    arf_t least;
    arb_init(gap);
    arf_init(least);
    at->argmax = sinkproof_truth_argmax(logit_v, vocab, &certified, gap, bits);
    at->runner = largest_other(logit_v, vocab, at->argmax);
    arb_get_lbound_arf(least, gap, 53);
    at->margin = routed && certified ? arf_get_d(least, ARF_RND_DOWN) : NAN;
    arf_clear(least);
    arb_clear(gap);
}

static bool find_truth(const next_prompt *p, const next_options *o, next_study *study,
                       sinkproof_error *error) {
    telling progress = {o, study->n_layers};
    sinkproof_truth_hooks hooks = {.see = tell_layer, .context = &progress};
    sinkproof_truth_request request = {.model = p->model,
                                       .n = p->n,
                                       .tokens_n = p->tokens_n,
                                       .bits = o->bits,
                                       .threads = o->threads,
                                       .hooks = &hooks};
    sinkproof_truth_result result;
    if (!sinkproof_truth_forward(&request, &result, error)) return false;
    study->choices = result.routing.choices;
    study->truth_ambiguous = result.routing.ambiguous;
    for (size_t i = 0; i < p->n; i++)
        take_truth(&study->at_n[i], result.logits_nv + i * result.vocab, result.vocab,
                   result.routing.ambiguous == 0, o->bits);
    sinkproof_truth_result_clear(&result);
    return true;
}

// ---- the run over the reals, in binary64

static bool run_over_reals(const next_prompt *p, sinkproof_activations **real,
                           sinkproof_error *error) {
    sinkproof_policy policy;
    sinkproof_policy_known("real-f64", &policy);
    if (!sinkproof_activations_new(p->config, p->n, p->tokens_n, real, error)) return false;
    sinkproof_session *session = sinkproof_session_new(p->model, &policy);
    bool good =
        session != NULL
            ? sinkproof_forward(session, p->n, p->tokens_n, NULL, &(*real)->observer, error)
            : sinkproof_fail(error, "no memory to run %s", sinkproof_counted(p->n, "token").text);
    sinkproof_session_free(session);
    return good;
}

// ---- engines

typedef struct job {
    next_engine engine;
    next_map against;
    bool good;
    sinkproof_error error;
} job;

// Engine k: the first `draws` are drawn, the others are steered against a position each.
static void run_job(const next_prompt *p, const next_options *o, const sinkproof_activations *real,
                    const next_radii *radii, next_study *study, size_t k, job *j) {
    size_t i = o->last ? p->n - 1 : k - o->draws;
    bool steered = k >= o->draws;
    j->good = true;
    if (steered) {
        next_position *at = &study->at_n[i];
        j->good = next_map_new(&j->against, study->n_layers) ||
                  sinkproof_fail(&j->error, "no memory for derivatives");
        j->good = j->good &&
                  next_derivatives(p, real, i, radii, at, o->steer ? &j->against : NULL, &j->error);
        if (o->steer) j->engine.against = &j->against;
    }
    if (j->good && (!steered || o->steer)) j->good = next_engine_run(&j->engine, &j->error);
    next_map_free(&j->against);
}

static void hear(next_study *study, const job *j) {
    for (size_t i = 0; i < study->n; i++) {
        next_position *at = &study->at_n[i];
        const next_said *said = &j->engine.said_n[i];
        if (!(said->margin >= at->least)) at->least = said->margin;
        if (said->token == at->argmax) continue;
        if (at->changed++ == 0) at->changed_to = said->token;
    }
    study->flips += j->engine.flips;
}

static bool run_jobs(const next_prompt *p, const next_options *o, const sinkproof_activations *real,
                     const next_radii *radii, bool derivatives, next_study *study,
                     sinkproof_error *error) {
    size_t n_jobs = o->draws + (derivatives ? (o->last ? 1 : p->n) : 0), done = 0;
    job *jobs = calloc(n_jobs + 1, sizeof *jobs);
    next_said *said = calloc((n_jobs + 1) * p->n, sizeof *said);
    const double **chosen_l = calloc(study->n_layers, sizeof *chosen_l);
    bool good = jobs != NULL && said != NULL && chosen_l != NULL;
    if (!good) sinkproof_fail(error, "no memory for %s", sinkproof_counted(n_jobs, "engine").text);
    for (size_t l = 0; good && l < study->n_layers; l++)
        chosen_l[l] = sinkproof_activations_at(real, l, TRACE_M3);
    for (size_t k = 0; good && k < n_jobs; k++)
        jobs[k].engine = (next_engine){.prompt = p,
                                       .position_n = study->at_n,
                                       .seed = sinkproof_draw_nth(o->seed, k),
                                       .chosen_l = p->config->dense ? NULL : chosen_l,
                                       .said_n = said + k * p->n};
#pragma omp parallel for schedule(dynamic, 1) if (good)
    for (size_t k = 0; k < (good ? n_jobs : 0); k++) {
        run_job(p, o, real, radii, study, k, &jobs[k]);
#pragma omp critical(next_progress)
        tell(o, "engine", ++done, n_jobs);
    }
    for (size_t k = 0; good && k < n_jobs; k++) {
        bool ran = k < o->draws || o->steer;
        good = jobs[k].good;
        if (!good) *error = jobs[k].error;
        if (!good || !ran) continue;
        hear(study, &jobs[k]);
        study->engines++, study->steered += k >= o->draws;
    }
    free(jobs);
    free(said);
    free(chosen_l);
    return good;
}

// ---- the study

static void decide(next_study *study) {
    for (size_t i = 0; i < study->n; i++) {
        next_position *at = &study->at_n[i];
        bool known = at->margin == at->margin;
        at->fate = !known            ? NEXT_UNKNOWN
                   : at->changed > 0 ? NEXT_CHANGED
                   : at->kept > 0    ? NEXT_CERTIFIED
                                     : NEXT_OPEN;
        study->count[at->fate]++;
        study->broken += known && at->changed > 0 && at->kept > 0;
        bool kept = known && at->fate != NEXT_CHANGED;
        study->estimated += kept && at->worst == at->worst;
        study->beyond_worst += kept && at->worst < at->margin;
        study->beyond_likely += kept && at->likely < at->margin;
    }
}

bool sinkproof_next_run(const sinkproof_model *model, size_t n, const int32_t *tokens_n,
                        const sinkproof_policy *policy, const next_options *options,
                        next_study *study, sinkproof_error *error) {
    const next_prompt p = {model, sinkproof_model_config(model), policy, n, tokens_n};
    sinkproof_activations *real = NULL;
    next_radii radii = {.worst = {0, NULL}};
    sinkproof_error unserved;
    bool serves = sinkproof_backward_serves(p.config, &unserved);
    bool derivatives = serves && (options->derivative || options->steer);
    *study = (next_study){.n = n,
                          .n_layers = p.config->n_layers,
                          .rate = options->rate,
                          .at_n = calloc(n + 1, sizeof *study->at_n)};
    bool good = study->at_n != NULL || sinkproof_fail(error, "no memory for a study");
    for (size_t i = 0; good && i < n; i++)
        study->at_n[i] =
            (next_position){.token = tokens_n[i], .worst = NAN, .likely = NAN, .least = INFINITY};
    good = good && sinkproof_model_fits(model, policy->weights, error) &&
           find_truth(&p, options, study, error) && next_sets(&p, options->rate, study, error) &&
           next_branches(&p, options->branches, study, error) && run_over_reals(&p, &real, error);
    if (good && derivatives && options->derivative)
        good = next_radii_new(&p, options->rate, real, &radii, error);
    good = good && run_jobs(&p, options, real, radii.worst.at_lp != NULL ? &radii : NULL,
                            derivatives, study, error);
    if (good) decide(study);
    next_radii_free(&radii);
    if (real != NULL) sinkproof_activations_free(real);
    if (!good) sinkproof_next_free(study);
    return good;
}

void sinkproof_next_free(next_study *study) {
    free(study->at_n);
    *study = (next_study){.n = 0};
}
