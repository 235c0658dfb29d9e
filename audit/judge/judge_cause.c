// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What one change of the policy explains: known mistakes and known freedoms, tried on what fails.
#include "audit/judge/judge_cause.h"

#include "audit/judge/judge_candidates.h"

#include <stdio.h>
#include <string.h>

// Known mistakes and known freedoms that one override states, and the points that each touches.
static const struct single_override {
    const char *text, *meaning;
    sinkproof_trace_point points[3];
    size_t n_points;
} overrides[] = {
    {"M8.alpha=bf16",
     "the constant 1.702 is rounded to bfloat16 (1.703125)",
     {SINKPROOF_TRACE_M8},
     1},
    {"yarn=truncate",
     "the ends of the YaRN ramp are rounded to whole dimensions",
     {SINKPROOF_TRACE_A4_Q, SINKPROOF_TRACE_A4_K},
     2},
    {"A9.max=bf16",
     "the row's maximum is subtracted in bfloat16",
     {SINKPROOF_TRACE_A9, SINKPROOF_TRACE_A10},
     2},
    {"A9.max=real",
     "the row's maximum is subtracted without a rounding to bfloat16",
     {SINKPROOF_TRACE_A9, SINKPROOF_TRACE_A10},
     2},
    {"M11.sum=bf16?",
     "the sum over experts is kept in bfloat16",
     {SINKPROOF_TRACE_M11, SINKPROOF_TRACE_M12},
     2},
};

// Does what is computed at `from` reach a point of the trace with nothing traced in between?
static bool reaches(const sinkproof_model *model, const sinkproof_trace *trace,
                    sinkproof_trace_point from, sinkproof_trace_point point, size_t layer) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    if (point == from) return true;
    size_t n = sinkproof_trace_inputs(sinkproof_model_config(model), point, layer, inputs);
    for (size_t i = 0; i < n; i++)
        if (sinkproof_trace_find(trace, inputs[i].point, inputs[i].layer) == NULL &&
            reaches(model, trace, from, inputs[i].point, inputs[i].layer))
            return true;
    return false;
}

// An override can explain what fails only if it reaches each of those points.
static bool reaches_failures(const sinkproof_model *model, const sinkproof_trace *trace,
                             const struct single_override *s, const sinkproof_judgement *j) {
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        bool touched = r->verdict < SINKPROOF_VERDICT_SUSPICIOUS;
        for (size_t p = 0; p < s->n_points; p++)
            touched = touched || reaches(model, trace, s->points[p], r->point, r->layer);
        if (!touched) return false;
    }
    return true;
}

// An override that repeats what a policy says changes nothing.
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

// Text behind what is there; false: it does not fit.
static bool append(char *to, size_t size, const char *between, const char *text) {
    size_t used = strlen(to);
    int length = snprintf(to + used, size - used, "%s%s", between, text);
    return length >= 0 && (size_t)length < size - used;
}

bool sinkproof_cause_add(sinkproof_cause *cause, const char *override, const char *meaning) {
    return append(cause->policy, sizeof cause->policy, ",", override) &&
           append(cause->meaning, sizeof cause->meaning, cause->n++ > 0 ? ";\n " : "", meaning);
}

bool sinkproof_cause_explains(const sinkproof_model *model, const sinkproof_trace *trace,
                              const sinkproof_judge_options *options, const sinkproof_judgement *j,
                              const sinkproof_cause *cause) {
    sinkproof_refusal refusal = {.points = ~0u, .beyond = 0}; // one element settles it
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

bool sinkproof_judge_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options, const sinkproof_judgement *j,
                           sinkproof_cause *cause) {
    if (j->verdict <= SINKPROOF_VERDICT_UNDECIDED) return false; // nothing to explain
    for (size_t c = 0; c < sizeof overrides / sizeof overrides[0]; c++) {
        if (!reaches_failures(model, trace, &overrides[c], j)) continue;
        sinkproof_cause_begin(cause, j);
        if (sinkproof_cause_add(cause, overrides[c].text, overrides[c].meaning) &&
            sinkproof_cause_explains(model, trace, options, j, cause))
            return true;
    }
    return false;
}

bool sinkproof_judge_other_policy(const sinkproof_model *model, const sinkproof_trace *trace,
                                  const sinkproof_judge_options *options,
                                  const sinkproof_judgement *j, sinkproof_cause *cause) {
    const char *narrower;
    const char *const *names =
        sinkproof_candidates_for(trace, sinkproof_model_config(model), &narrower);
    bool found = false;
    if (j->verdict <= SINKPROOF_VERDICT_UNDECIDED) return false;
    for (; *names != NULL && !found; names++) {
        *cause = (sinkproof_cause){.n = 0};
        snprintf(cause->policy, sizeof cause->policy, "%s", *names);
        found = sinkproof_cause_explains(model, trace, options, j, cause);
    }
    return found;
}
