// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Asks failing calls one by one about one mistake: an element outside refutes it. What the calls
// show of its difference is counted over all of them.
#include "audit/diagnose/call_causes.h"

#include "audit/diagnose/attention_screen.h"
#include "audit/diagnose/seen_sets.h"
#include "audit/diagnose/trial.h"
#include "audit/trace/trace_points.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A call that is judged, and the suppositions on it.
typedef struct asked_call {
    place_trials trials;
    sinkproof_judgement judgement;
    size_t place;
} asked_call;

typedef struct asking {
    size_t n, n_passing;
    asked_call of[CAUSES_MOST_CALLS], passing[CAUSES_MOST_PASSING];
    sinkproof_stretch stretch;
    sinkproof_diagnose_options options;
} asking;

typedef enum answer { ANSWER_REFUTED, ANSWER_NOTHING, ANSWER_EXPLAINED } answer;

// Adds a call to those that fail or to those that pass, if there is room.
static void asking_keep(asking *q, asked_call *a) {
    bool fails = a->judgement.first != NULL;
    size_t *n = fails ? &q->n : &q->n_passing;
    if (*n == (fails ? CAUSES_MOST_CALLS : CAUSES_MOST_PASSING)) {
        sinkproof_judgement_free(&a->judgement);
        return;
    }
    asked_call *kept = &(fails ? q->of : q->passing)[(*n)++];
    *kept = *a;
    kept->trials.j = &kept->judgement;
}

// Judges a call under the policy.
static bool asking_add(asking *q, const sinkproof_kernel_call *call, const sinkproof_policy *policy,
                       double rate, sinkproof_error *error) {
    asked_call made, *a = &made;
    const sinkproof_config *config = sinkproof_model_config(call->model);
    const sinkproof_judge_options how = {.rate = rate, .stretch = &q->stretch};
    bool fresh = true;
    *a = (asked_call){.place = 0};
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_trace_point point = (sinkproof_trace_point)p;
        if ((call->points >> p & 1) == 0) continue;
        sinkproof_stretch_to(&q->stretch, config, policy, call->trace, point, 0, fresh);
        if (!sinkproof_trace_point_is_layered(point)) a->place = config->n_layers;
        fresh = false;
    }
    if (!sinkproof_judge(call->model, call->trace, policy, &how, &a->judgement, error))
        return false;
    a->trials = (place_trials){.suspect = {.model = call->model,
                                           .trace = call->trace,
                                           .policy = policy,
                                           .rate = rate,
                                           .settled = SINKPROOF_VARIANT_DECLARED,
                                           .call = true,
                                           .pass = call->pass},
                               .config = config,
                               .options = &q->options,
                               .stretch = &q->stretch,
                               .error = error};
    asking_keep(q, a);
    return true;
}

static bool ask_call(asked_call *a, const known_mistake *mistake, sinkproof_evidence *evidence,
                     answer *said) {
    mistake_trial t = {.what = {1, {mistake}}};
    bool possible;
    *said = ANSWER_REFUTED;
    if (!trial_try_points(&a->trials, a->place, ~0u, 0, &t, &possible)) return false;
    size_t outside = 0;
    for (int p = 0; p < TRACE_POINTS; p++) outside += (t.reached >> p & 1) != 0 ? t.outside[p] : 0;
    if (!possible || t.refused || t.breaks || outside > 0) return true;
    *said = (t.reached & ~t.inside) == 0 ? ANSWER_EXPLAINED : ANSWER_NOTHING;
    return trial_add_evidence(&a->trials, a->place, &t, evidence);
}

// Asks a call about a mistake that can occur in it. Where the mistake needs a row at which a second
// piece begins, this is the first row with an element outside, or one of a few before it, whose
// sets may hold what it computed.
static bool ask_possible(asked_call *a, const known_mistake *mistake, sinkproof_evidence *evidence,
                         answer *said) {
    enum { EARLIER = 8 };
    const mistakes_together what = {1, {mistake}};
    unsigned failing = failing_points(&a->trials, a->place);
    sinkproof_rows rows;
    *said = ANSWER_REFUTED;
    a->trials.suspect.piece = 0;
    if (failing & ~failing_points_reached(&a->trials, a->place, &what)) return true;
    if (suspect_can_suppose(&a->trials.suspect, mistake))
        return ask_call(a, mistake, evidence, said);
    a->trials.suspect.piece = 1;
    if (a->trials.suspect.pass > 0 || !suspect_can_suppose(&a->trials.suspect, mistake))
        return true;
    if (!failing_rows_find(&a->trials, a->place, a->judgement.first->point, &rows)) return false;
    for (size_t back = 0; *said == ANSWER_REFUTED && back < EARLIER && back < rows.first; back++) {
        a->trials.suspect.piece = rows.first - back;
        if (!ask_call(a, mistake, evidence, said)) return false;
    }
    return true;
}

// Counts the passing calls that the mistake puts outside.
static bool ask_passing(asking *q, const known_mistake *mistake, sinkproof_call_cause *cause) {
    for (size_t i = 0; i < q->n_passing; i++) {
        asked_call *a = &q->passing[i];
        mistake_trial t = {.what = {1, {mistake}}};
        bool possible = suspect_can_suppose(&a->trials.suspect, mistake);
        if (possible && !trial_try_points(&a->trials, a->place, ~0u, 0, &t, &possible))
            return false;
        cause->against += possible && t.refused;
    }
    return true;
}

// Adds an explanation; one with nothing against it takes the place of those that have.
// Two that are said alike are one.
static void causes_add(sinkproof_call_causes *causes, const sinkproof_call_cause *cause) {
    for (size_t i = 0; i < causes->n; i++)
        if (strcmp(causes->alike[i].id, cause->id) == 0) return;
    bool clear = causes->n > 0 && causes->alike[0].against == 0;
    if (clear && cause->against > 0) return;
    if (!clear && cause->against == 0) causes->n = causes->more = 0;
    if (causes->n < CAUSES_MOST_ALIKE)
        causes->alike[causes->n++] = *cause;
    else
        causes->more++;
}

static bool ask_mistake(asking *q, const known_mistake *mistake, sinkproof_call_causes *causes) {
    sinkproof_call_cause cause = {.piece = 0};
    snprintf(cause.id, sizeof cause.id, "%s", mistake->id);
    snprintf(cause.text, sizeof cause.text, "%s", mistake->text);
    sinkproof_evidence evidence = {0, 0, 0};
    for (size_t i = 0; i < q->n; i++) {
        answer said;
        asked_call *a = &q->of[i];
        if (!ask_possible(a, mistake, &evidence, &said)) return false;
        if (i == 0) cause.piece = a->trials.suspect.piece, cause.rows = a->judgement.n_tokens;
        if (said == ANSWER_REFUTED) return true;
        cause.explained += said == ANSWER_EXPLAINED;
    }
    if (cause.explained == 0 || !sinkproof_evidence_tells(&evidence)) return true;
    if (!ask_passing(q, mistake, &cause)) return false;
    causes_add(causes, &cause);
    return true;
}

static bool ask_mistakes(asking *q, bool alone, sinkproof_call_causes *causes) {
    bool fine = true;
    for (size_t m = 0; fine && m < mistake_count(); m++)
        if (mistake_stands_alone(mistake_at(m)) == alone)
            fine = ask_mistake(q, mistake_at(m), causes);
    return fine;
}

// ---- attention whose weights no call shows

static bool guess_call_causes(asking *q, const asked_call *a, attention_guesses *guesses) {
    const suspect_engine *e = &a->trials.suspect;
    size_t n = a->judgement.n_tokens;
    seen_sets seen = {.point = TRACE_A11,
                      .elements = sinkproof_trace_elements(a->trials.config, TRACE_A11, n)};
    const sinkproof_judge_options how = {
        .rate = e->rate, .stretch = &q->stretch, .witness = see_sets, .witnessing = &seen};
    sinkproof_judgement again;
    attention_memory memory[2] = {0};
    seen.v = calloc(3 * seen.elements + 1, sizeof *seen.v);
    seen.lo = seen.v + seen.elements, seen.hi = seen.lo + seen.elements;
    sinkproof_stretch_to(&q->stretch, a->trials.config, e->policy, e->trace, TRACE_A11, 0, true);
    bool fine = seen.v != NULL &&
                sinkproof_judge(e->model, e->trace, e->policy, &how, &again, a->trials.error);
    if (fine) {
        const attention_point of = {.model = e->model,
                                    .trace = e->trace,
                                    .policy = e->policy,
                                    .point = TRACE_A11,
                                    .n = n,
                                    .v = seen.v,
                                    .lo = seen.lo,
                                    .hi = seen.hi};
        sinkproof_judgement_free(&again);
        fine = attention_guess_causes(&of, memory, guesses);
    }
    free(seen.v);
    return fine || sinkproof_fail(a->trials.error, "no memory for the cause of failing calls");
}

// The failing call with the most queries.
static const asked_call *largest_call(const asking *q) {
    const asked_call *largest = NULL;
    size_t most = 0;
    for (size_t i = 0; i < q->n; i++) {
        size_t queries = q->of[i].judgement.n_tokens * q->of[i].trials.config->n_heads;
        bool core = q->of[i].judgement.first->point == TRACE_A11;
        if (core && queries > most) most = queries, largest = &q->of[i];
    }
    return largest;
}

static bool ask_attention(asking *q, sinkproof_call_causes *causes) {
    const asked_call *a = largest_call(q);
    attention_guesses guesses = {.n = 0};
    if (a == NULL) return true;
    if (!guess_call_causes(q, a, &guesses)) return false;
    for (size_t i = 0; i < guesses.n; i++) {
        attention_mistake m;
        if (causes->n > 0 && !attention_guess_is_near(&guesses, i, ATTENTION_SAMPLES)) break;
        attention_mistake_make(&m, &guesses.of[i].how, a->trials.config, a->trials.suspect.trace);
        if (!ask_mistake(q, &m.mistake, causes)) return false;
    }
    return true;
}

bool sinkproof_find_call_causes(const sinkproof_kernel_call *calls, size_t n,
                                const sinkproof_policy *policy, double rate,
                                sinkproof_call_causes *causes, sinkproof_error *error) {
    asking *q = calloc(1, sizeof *q);
    bool fine = q != NULL || sinkproof_fail(error, "no memory for the cause of failing calls");
    *causes = (sinkproof_call_causes){.asked = 0};
    for (size_t i = 0; fine && i < n; i++) fine = asking_add(q, &calls[i], policy, rate, error);
    if (fine) causes->asked = q->n, causes->passing = q->n_passing;
    fine = fine && (q->n == 0 || ask_mistakes(q, false, causes));
    if (fine && q->n > 0 && causes->n == 0) fine = ask_attention(q, causes);
    if (fine && q->n > 0 && causes->n == 0) fine = ask_mistakes(q, true, causes);
    for (size_t i = 0; q != NULL && i < q->n; i++) sinkproof_judgement_free(&q->of[i].judgement);
    for (size_t i = 0; q != NULL && i < q->n_passing; i++)
        sinkproof_judgement_free(&q->passing[i].judgement);
    free(q);
    return fine;
}
