// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What one change of the policy explains: known mistakes and known freedoms, tried on what fails.
#include "audit/judge/judge_cause.h"

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

// Would a policy explain everything that fails under j's? Then the exit code would be 0.
static bool explains(const sinkproof_model *model, const sinkproof_trace *trace,
                     const sinkproof_judge_options *options, const sinkproof_judgement *j,
                     const char *text) {
    sinkproof_policy policy;
    sinkproof_judgement k;
    if (!sinkproof_policy_parse(text, &policy, NULL) || same_policy(&policy, &j->policy))
        return false;
    if (!sinkproof_judge(model, trace, &policy, options, &k, NULL)) return false;
    bool honest = k.verdict <= SINKPROOF_VERDICT_WITHIN;
    sinkproof_judgement_free(&k);
    return honest;
}

bool sinkproof_judge_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options, const sinkproof_judgement *j,
                           sinkproof_cause *found) {
    if (j->verdict <= SINKPROOF_VERDICT_UNDECIDED) return false; // nothing to explain
    for (size_t c = 0; c < sizeof overrides / sizeof overrides[0]; c++) {
        if (!reaches_failures(model, trace, &overrides[c], j)) continue;
        *found = (sinkproof_cause){.override = overrides[c].text, .meaning = overrides[c].meaning};
        snprintf(found->policy, sizeof found->policy, "%s,%s", j->policy.name, overrides[c].text);
        if (explains(model, trace, options, j, found->policy)) return true;
    }
    *found = (sinkproof_cause){.policy = "bf16-operands",
                               .meaning =
                                   "the operands of every matrix product are rounded to bfloat16"};
    bool wide = j->policy.at[SINKPROOF_AT_A13].format == SINKPROOF_F32;
    return wide && explains(model, trace, options, j, found->policy);
}
