// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which forms an engine may have computed: the trace judged again with one stage fixed to one form.
// A form that fits is not proved, one that does not is refuted.
#include "audit/judge/judge.h"

// Whether a point's values come from the stage; flash kernels show A11 alone of the attention.
static bool is_of(sinkproof_formed stage, sinkproof_trace_point point) {
    switch (stage) {
    case SINKPROOF_FORM_OF_A9:
        return point == SINKPROOF_TRACE_A9 || point == SINKPROOF_TRACE_A10 ||
               point == SINKPROOF_TRACE_A11;
    case SINKPROOF_FORM_OF_M4:
        return point == SINKPROOF_TRACE_M4;
    default:
        return point == SINKPROOF_TRACE_M8;
    }
}

// Several forms are admitted, and a point that tells between them is traced and decided.
static bool can_tell(const sinkproof_judgement *j, sinkproof_formed stage) {
    unsigned admitted = j->policy.forms[stage];
    bool told = false;
    for (size_t i = 0; i < j->n_reports; i++)
        told = told || (is_of(stage, j->reports[i].point) &&
                        j->reports[i].verdict <= SINKPROOF_VERDICT_WITHIN);
    return told && (admitted & (admitted - 1)) != 0;
}

// Progress of one judgement among several.
typedef struct among {
    const sinkproof_judge_options *whole;
    size_t done, all;
} among;

static void show_among(void *context, double share) {
    const among *a = context;
    a->whole->progress(a->whole->context, ((double)a->done + share) / (double)a->all);
}

static bool judge_form(const sinkproof_model *model, const sinkproof_trace *trace,
                       const sinkproof_policy *declared, sinkproof_formed stage, int form, among *a,
                       bool *fits, sinkproof_error *error) {
    sinkproof_policy policy = *declared;
    sinkproof_judgement j;
    sinkproof_judge_options how = {a->whole->rate, false,
                                   a->whole->progress != NULL ? show_among : NULL, a};
    policy.forms[stage] = 1u << form;
    if (!sinkproof_judge(model, trace, &policy, &how, &j, error)) return false;
    *fits = j.verdict <= SINKPROOF_VERDICT_WITHIN;
    sinkproof_judgement_free(&j);
    a->done++;
    return true;
}

bool sinkproof_judge_forms(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options, sinkproof_judgement *j,
                           sinkproof_error *error) {
    among a = {options, 0, 0};
    if (j->verdict > SINKPROOF_VERDICT_WITHIN) return true;
    for (int s = 0; s < SINKPROOF_FORMED_COUNT; s++) {
        j->forms_asked[s] = can_tell(j, (sinkproof_formed)s);
        if (j->forms_asked[s]) a.all += (size_t)__builtin_popcount(j->policy.forms[s]);
    }
    for (int s = 0; s < SINKPROOF_FORMED_COUNT; s++) {
        sinkproof_formed stage = (sinkproof_formed)s;
        for (int form = 0; j->forms_asked[s] && sinkproof_form_name(stage, form) != NULL; form++) {
            bool fits = false;
            if (sinkproof_policy_admits(&j->policy, stage, form) &&
                !judge_form(model, trace, &j->policy, stage, form, &a, &fits, error))
                return false;
            j->forms_fitting[s] |= (unsigned)fits << form;
        }
    }
    return true;
}
