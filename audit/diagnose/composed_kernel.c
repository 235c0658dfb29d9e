// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/composed_kernel.h"
#include "audit/diagnose/roundings.h"

#include <math.h>
#include <stdlib.h>

// ---- roundings of the policy

const double *kernel_table(composing *c, size_t n, const double *numbers) {
    const sinkproof_policy *p = c->s->trials.suspect.policy;
    double *all = calloc(KERNEL_HEADER + n, sizeof *all);
    const double *kept = NULL;
    if (all == NULL) {
        fail_for_memory(c->s);
        return NULL;
    }
    all[KERNEL_SCORES] =
        policy_roundoff(p, AT_A5) + policy_roundoff(p, AT_A6) + policy_roundoff(p, AT_A9_MAX);
    all[KERNEL_TERMS] = policy_roundoff(p, AT_A5_Q) + policy_roundoff(p, AT_A5_K);
    all[KERNEL_WEIGHTS] = policy_roundoff(p, AT_A9) + policy_roundoff(p, AT_A9_UNNORM) +
                          policy_roundoff(p, AT_A11_WEIGHTS);
    all[KERNEL_VALUES] = policy_roundoff(p, AT_A11_V);
    for (size_t i = 0; i < n; i++) all[KERNEL_HEADER + i] = numbers[i];
    kept = composing_keep_numbers(c, KERNEL_HEADER + n, all);
    free(all);
    return kept;
}

// ---- trials

static bool is_one_sequence(const composing *c) {
    const sinkproof_trace *trace = c->s->trials.suspect.trace;
    return c->n >= 8 && sinkproof_trace_first(trace) == 0 && sinkproof_trace_sequences(trace) <= 1;
}

bool kernel_is_asked(const composing *c) {
    enum { MOST_TERMS = 1 << 23 }; // of all scores: some ten are made of them in a second
    const sinkproof_config *config = c->s->trials.config;
    double terms = (double)c->n * (double)c->n * (double)(config->n_heads * config->head_dim);
    return c->point == TRACE_A11 && terms <= MOST_TERMS && is_one_sequence(c) &&
           c->elements == c->n * config->n_heads * config->head_dim;
}

bool kernel_scores_are_asked(const composing *c) {
    return c->point == TRACE_A6 && is_one_sequence(c) && c->report->rank == 3 &&
           c->elements == c->s->trials.config->n_heads * c->n * c->n;
}

static bool is_near(composing *c, const made_kind *made, bool *fine) {
    sinkproof_making of = composing_making(c);
    double *y = calloc(2 * c->elements + 1, sizeof *y);
    size_t far = 0;
    of.numbers = made->numbers, of.table = made->table, of.x = c->mid;
    *fine = y != NULL || fail_for_memory(c->s);
    bool near = *fine && made->make(&of, y, y + c->elements);
    for (size_t at = 0; near && at < c->elements; at++) far += !value_is_near(c, at, y[at]);
    free(y);
    size_t parts = c->step > 0x1p-12 ? 8 : 64; // roundings between hide more
    return near && parts * far <= c->elements;
}

bool kernel_try(const operation *o, const made_kind *made) {
    if (o->c->found != NULL) return true;
    bool fine, near = is_near(o->c, made, &fine);
    return near ? composing_try_made(o, made) : fine;
}
