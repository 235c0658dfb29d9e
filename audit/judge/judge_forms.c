// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Finds the forms that an engine may have computed: the trace is judged again with one stage fixed
// to one form. A form that does not fit is refuted; a form that fits is not proved.
#include "audit/judge/judge.h"

// Whether a point's values come from the stage. Flash kernels show only A11 of the attention.
static bool point_is_made_by(sinkproof_formed stage, sinkproof_trace_point point) {
    switch (stage) {
    case SINKPROOF_FORM_OF_A4_FREQ:
    case SINKPROOF_FORM_OF_A4:
        return point == TRACE_A4_Q || point == TRACE_A4_K;
    case SINKPROOF_FORM_OF_A9:
        return point == TRACE_A9 || point == TRACE_A10 || point == TRACE_A11;
    case SINKPROOF_FORM_OF_M4:
        return point == TRACE_M4;
    default:
        return point == TRACE_M8;
    }
}

// Whether the policy admits several forms of the stage, and a point that can distinguish them is
// traced and decided.
static bool forms_are_distinguishable(const sinkproof_judgement *j, sinkproof_formed stage) {
    unsigned admitted = j->policy.forms[stage];
    bool told = false;
    for (size_t i = 0; i < j->n_reports; i++)
        told = told || (point_is_made_by(stage, j->reports[i].point) &&
                        j->reports[i].verdict <= SINKPROOF_VERDICT_WITHIN);
    return told && (admitted & (admitted - 1)) != 0;
}

// The arguments of every form's judgement, and the number of judgements done and due.
typedef struct questions {
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    const sinkproof_policy *declared;
    const sinkproof_judge_options *options;
    size_t done, all;
} questions;

static void show_share(void *context, double share) {
    const questions *q = context;
    q->options->progress(q->options->context, ((double)q->done + share) / (double)q->all);
}

static bool judge_form(questions *q, sinkproof_formed stage, int form, bool *fits,
                       sinkproof_error *error) {
    sinkproof_policy policy = *q->declared;
    sinkproof_judgement j;
    sinkproof_judge_options how = {.rate = q->options->rate,
                                   .layers = q->options->layers,
                                   .progress = q->options->progress != NULL ? show_share : NULL,
                                   .context = q};
    policy.forms[stage] = 1u << form;
    if (!sinkproof_judge(q->model, q->trace, &policy, &how, &j, error)) return false;
    *fits = j.verdict <= SINKPROOF_VERDICT_WITHIN;
    sinkproof_judgement_free(&j);
    q->done++;
    return true;
}

bool sinkproof_judge_forms(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options, sinkproof_judgement *j,
                           sinkproof_error *error) {
    questions q = {model, trace, &j->policy, options, 0, 0};
    if (j->verdict > SINKPROOF_VERDICT_WITHIN) return true;
    for (int s = 0; s < SINKPROOF_FORMED_COUNT; s++) {
        j->forms_asked[s] = forms_are_distinguishable(j, (sinkproof_formed)s);
        if (j->forms_asked[s]) q.all += (size_t)__builtin_popcount(j->policy.forms[s]);
    }
    for (int s = 0; s < SINKPROOF_FORMED_COUNT; s++) {
        sinkproof_formed stage = (sinkproof_formed)s;
        for (int form = 0; j->forms_asked[s] && sinkproof_form_name(stage, form) != NULL; form++) {
            bool fits = false;
            if (sinkproof_policy_admits(&j->policy, stage, form) &&
                !judge_form(&q, stage, form, &fits, error))
                return false;
            j->forms_fitting[s] |= (unsigned)fits << form;
        }
    }
    return true;
}
