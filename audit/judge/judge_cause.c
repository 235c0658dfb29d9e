// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Searches for one change of the policy that explains a failure: known mistakes and known freedoms
// are tried in turn.
#include "audit/judge/judge_cause.h"

#include "audit/judge/judge_candidates.h"
#include "audit/judge/judge_evidence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The known mistakes and freedoms that a single override states, each with the point that it
// touches.
static const struct single_override {
    const char *text, *meaning;
    sinkproof_trace_point points[3];
    size_t n_points;
} overrides[] = {
    {"M8.alpha=bf16", "the constant 1.702 is rounded to bfloat16 (1.703125)", {TRACE_M8}, 1},
    {"yarn=truncate",
     "the ends of the YaRN ramp are rounded to whole dimensions",
     {TRACE_A4_Q, TRACE_A4_K},
     2},
    {"A9.max=bf16", "the row's maximum is subtracted in bfloat16", {TRACE_A9, TRACE_A10}, 2},
    {"A9.max=real",
     "the row's maximum is subtracted without a rounding to bfloat16",
     {TRACE_A9, TRACE_A10},
     2},
    {"M11.sum=bf16", "the sum over experts is kept in bfloat16", {TRACE_M11, TRACE_M12}, 2},
};

// Whether the values at `from` reach `point` without passing another traced point.
static bool point_reaches_unseen(const sinkproof_model *model, const sinkproof_trace *trace,
                                 sinkproof_trace_point from, sinkproof_trace_point point,
                                 size_t layer) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    if (point == from) return true;
    size_t n = sinkproof_trace_inputs(sinkproof_model_config(model), point, layer, inputs);
    for (size_t i = 0; i < n; i++)
        if (sinkproof_trace_find(trace, inputs[i].point, inputs[i].layer) == NULL &&
            point_reaches_unseen(model, trace, from, inputs[i].point, inputs[i].layer))
            return true;
    return false;
}

// Whether the override reaches every failing point; otherwise it cannot explain the failure.
static bool reaches_failures(const sinkproof_model *model, const sinkproof_trace *trace,
                             const struct single_override *s, const sinkproof_judgement *j) {
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        bool touched = r->verdict < SINKPROOF_VERDICT_SUSPICIOUS;
        for (size_t p = 0; p < s->n_points; p++)
            touched =
                touched || point_reaches_unseen(model, trace, s->points[p], r->point, r->layer);
        if (!touched) return false;
    }
    return true;
}

// Whether two policies differ in nothing but the name: such an override changes nothing.
static bool same_policy(const sinkproof_policy *a, const sinkproof_policy *b) {
    sinkproof_policy renamed = *a;
    memcpy(renamed.name, b->name, sizeof renamed.name);
    return memcmp(&renamed, b, sizeof renamed) == 0; // a parsed policy has no stray bytes
}

void sinkproof_cause_begin(sinkproof_cause *cause, const sinkproof_judgement *j) {
    *cause = (sinkproof_cause){.n = 0};
    snprintf(cause->policy, sizeof cause->policy, "%s", j->policy.name);
    cause->at = strlen(cause->policy) + 1;
}

// Appends `between` and `text`. Returns false if they do not fit.
static bool append_text(char *to, size_t size, const char *between, const char *text) {
    size_t used = strlen(to);
    int length = snprintf(to + used, size - used, "%s%s", between, text);
    return length >= 0 && (size_t)length < size - used;
}

bool sinkproof_cause_add(sinkproof_cause *cause, const char *override, const char *meaning) {
    return append_text(cause->policy, sizeof cause->policy, ",", override) &&
           append_text(cause->meaning, sizeof cause->meaning, cause->n++ > 0 ? ";\n " : "",
                       meaning);
}

bool sinkproof_cause_explains(const sinkproof_model *model, const sinkproof_trace *trace,
                              const sinkproof_judge_options *options, const sinkproof_judgement *j,
                              const sinkproof_cause *cause) {
    sinkproof_refusal refusal = {.points = ~0u, .beyond = 0}; // one element outside is enough
    sinkproof_judge_options how = *options;
    sinkproof_policy policy;
    sinkproof_judgement k;
    how.refusal = &refusal;
    if (!sinkproof_policy_parse(cause->policy, &policy, NULL) || same_policy(&policy, &j->policy))
        return false;
    if (!sinkproof_judge(model, trace, &policy, &how, &k, NULL)) return false;
    bool honest = !refusal.refused && k.verdict <= SINKPROOF_VERDICT_WITHIN;
    sinkproof_judgement_free(&k);
    return honest;
}

// ---- does the trace show what the policy makes different? (judge_evidence.h)

typedef struct other_policy {
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    const sinkproof_policy *declared, *supposed;
    double rate;
} other_policy;

static bool judge_variant(void *context, sinkproof_evidence_variant variant,
                          const sinkproof_judge_options *how, sinkproof_error *error) {
    const other_policy *of = context;
    sinkproof_judge_options o = *how;
    sinkproof_judgement under;
    o.rate = of->rate;
    sinkproof_policy policy =
        *(variant == SINKPROOF_VARIANT_DECLARED ? of->declared : of->supposed);
    if (variant != SINKPROOF_VARIANT_DECLARED)
        sinkproof_policy_settle(&policy, variant == SINKPROOF_VARIANT_ROUNDED);
    if (!sinkproof_judge(of->model, of->trace, &policy, &o, &under, error)) return false;
    sinkproof_judgement_free(&under);
    return true;
}

// Marks what must be computed to judge the failing points of a place. Returns false if none fails.
static bool stretch_to_failing(const sinkproof_judgement *j, const sinkproof_config *config,
                               const sinkproof_trace *trace, size_t place,
                               sinkproof_stretch *stretch) {
    bool fresh = true;
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        bool layered = sinkproof_trace_point_is_layered(r->point);
        if (r->outside == 0 || (layered ? r->layer : config->n_layers) != place) continue;
        sinkproof_stretch_to(stretch, config, &j->policy, trace, r->point, r->layer, fresh);
        fresh = false;
    }
    return !fresh;
}

static bool trace_distinguishes(const sinkproof_model *model, const sinkproof_trace *trace,
                                const sinkproof_judge_options *options,
                                const sinkproof_judgement *j, const sinkproof_cause *cause) {
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_policy supposed;
    sinkproof_evidence evidence = {0, 0, 0};
    sinkproof_stretch *stretch = malloc(sizeof *stretch);
    bool fine = stretch != NULL && sinkproof_policy_parse(cause->policy, &supposed, NULL);
    other_policy of = {model, trace, &j->policy, &supposed, options->rate};
    for (size_t place = 0; fine && place <= config->n_layers; place++) {
        if (!stretch_to_failing(j, config, trace, place, stretch)) continue;
        const sinkproof_evidence_question question = {.config = config,
                                                      .judgement = j,
                                                      .place = place,
                                                      .stretch = stretch,
                                                      .open = sinkproof_policy_is_open(&supposed),
                                                      .judge = judge_variant,
                                                      .context = &of};
        fine = sinkproof_evidence_add(&question, &evidence, NULL);
    }
    free(stretch);
    return fine && sinkproof_evidence_tells(&evidence);
}

bool sinkproof_judge_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options, const sinkproof_judgement *j,
                           sinkproof_cause *cause) {
    if (j->verdict <= SINKPROOF_VERDICT_UNDECIDED) return false; // nothing to explain
    for (size_t c = 0; c < sizeof overrides / sizeof overrides[0]; c++) {
        if (!reaches_failures(model, trace, &overrides[c], j)) continue;
        sinkproof_cause_begin(cause, j);
        if (sinkproof_cause_add(cause, overrides[c].text, overrides[c].meaning) &&
            sinkproof_cause_explains(model, trace, options, j, cause) &&
            trace_distinguishes(model, trace, options, j, cause))
            return true;
    }
    return false;
}

// Whether no point has more than one element outside. A stray write leaves such a trace, and a more
// permissive policy would accept it like any other value.
static bool no_point_has_two_outside(const sinkproof_judgement *j) {
    size_t most = 0;
    for (size_t i = 0; i < j->n_reports; i++)
        most = j->reports[i].outside > most ? j->reports[i].outside : most;
    return most == 1;
}

bool sinkproof_judge_other_policy(const sinkproof_model *model, const sinkproof_trace *trace,
                                  const sinkproof_judge_options *options,
                                  const sinkproof_judgement *j, sinkproof_cause *cause) {
    const char *narrower;
    const char *const *names =
        sinkproof_candidates_for(trace, sinkproof_model_config(model), &narrower);
    bool found = false;
    if (j->verdict <= SINKPROOF_VERDICT_UNDECIDED || no_point_has_two_outside(j)) return false;
    for (; *names != NULL && !found; names++) {
        *cause = (sinkproof_cause){.n = 0};
        snprintf(cause->policy, sizeof cause->policy, "%s", *names);
        found = sinkproof_cause_explains(model, trace, options, j, cause) &&
                trace_distinguishes(model, trace, options, j, cause);
    }
    return found;
}
