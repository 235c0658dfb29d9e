// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest sets of the logits, end to end. The judge computes the set of a point from those of
// its inputs where a trace lacks them. Of a trace that holds the logits alone it so computes, from
// the tokens on, the sets of everything that an honest engine may hold. They are intervals, and
// grow from operation to operation as if all roundings hurt; where the experts are not certain, or
// a set has no bound, nothing is known behind.
#include "audit/judge/judge.h"
#include "audit/sinkproof.h"
#include "audit/studies/next/next_internal.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"

#include <math.h>
#include <stdlib.h>

// The ends of each set of one point.
typedef struct ends {
    sinkproof_trace_point point;
    size_t count;
    double *lo, *hi;
    size_t open; // of the layer: tokens whose experts are not certain
} ends;

static void see_set(void *context, sinkproof_trace_point point, size_t layer, size_t at, double v,
                    const sinkproof_honest *set) {
    ends *e = context;
    (void)layer, (void)v;
    if (point != e->point || at >= e->count) return;
    e->lo[at] = set->lo, e->hi[at] = set->hi;
}

// A trace of zeros at one point: its sets do not depend on what the trace holds there.
static bool make_trace(const next_prompt *p, const ends *e, size_t layer, sinkproof_trace **trace,
                       sinkproof_error *error) {
    sinkproof_trace_builder *builder;
    char name[SINKPROOF_TRACE_NAME];
    size_t shape[3], rank = sinkproof_trace_shape(p->config, e->point, p->n, shape);
    double *zeros = calloc(e->count, sizeof *zeros);
    sinkproof_trace_name(e->point, layer, name);
    if (zeros == NULL)
        return sinkproof_fail(error, "no memory for the sets of %s",
                              sinkproof_counted(e->count, "number").text);
    bool good =
        sinkproof_trace_builder_new(p->model, "any", NULL, p->n, p->tokens_n, &builder, error);
    if (good) {
        good = sinkproof_trace_builder_add(builder, name, "F64", rank, shape, zeros, error) &&
               sinkproof_trace_builder_finish(builder, trace, error);
        sinkproof_trace_builder_free(builder);
    }
    free(zeros);
    return good;
}

// Fills the ends; an element that the judge does not reach has none.
static bool find_ends(const next_prompt *p, size_t layer, double rate, ends *e,
                      sinkproof_error *error) {
    sinkproof_trace *trace = NULL;
    sinkproof_judgement judgement;
    sinkproof_stretch *stretch = malloc(sizeof *stretch);
    e->count = sinkproof_trace_elements(p->config, e->point, p->n);
    e->lo = malloc(e->count * sizeof *e->lo), e->hi = malloc(e->count * sizeof *e->hi);
    bool good = stretch != NULL && e->lo != NULL && e->hi != NULL;
    if (!good) sinkproof_fail(error, "no memory for sets");
    for (size_t i = 0; good && i < e->count; i++) e->lo[i] = -INFINITY, e->hi[i] = INFINITY;
    good = good && make_trace(p, e, layer, &trace, error);
    if (good) {
        sinkproof_stretch_to(stretch, p->config, p->policy, trace, e->point, layer, true);
        const sinkproof_judge_options how = {
            .rate = rate, .stretch = stretch, .witness = see_set, .witnessing = e};
        good = sinkproof_judge(p->model, trace, p->policy, &how, &judgement, error);
        if (good) {
            e->open = judgement.open != NULL ? judgement.open[layer] : 0;
            sinkproof_judgement_free(&judgement);
        }
    }
    if (trace != NULL) sinkproof_trace_close(trace);
    free(stretch);
    return good;
}

static void ends_free(ends *e) {
    free(e->lo);
    free(e->hi);
}

// The first layers at whose end all elements of the residual stream have a bound, and one has.
static bool count_bounded_layers(const next_prompt *p, double rate, next_study *study,
                                 sinkproof_error *error) {
    bool good = true, all = true, some = true;
    for (size_t layer = 0; good && some && layer < study->n_layers; layer++) {
        ends e = {.point = TRACE_M12};
        good = find_ends(p, layer, rate, &e, error);
        size_t bounded = 0;
        for (size_t i = 0; good && i < e.count; i++)
            bounded += isfinite(e.lo[i]) && isfinite(e.hi[i]);
        all = all && bounded == e.count, some = bounded > 0;
        if (good && all) study->all_bounded++;
        if (good && some) study->some_bounded++;
        if (good && e.open > 0 && study->open_tokens == 0)
            study->open_layer = layer, study->open_tokens = e.open;
        ends_free(&e);
    }
    return good;
}

// The truth's token has at least its lower end, every other at most its upper end.
double next_margin_kept(const double *lo_v, const double *hi_v, size_t vocab, size_t token) {
    double most = -INFINITY;
    for (size_t v = 0; v < vocab; v++)
        if (v != token && !(hi_v[v] <= most)) most = hi_v[v];
    return isfinite(lo_v[token]) && isfinite(most) ? add_down(lo_v[token], -most) : -INFINITY;
}

bool next_sets(const next_prompt *p, double rate, next_study *study, sinkproof_error *error) {
    for (size_t i = 0; i < study->n; i++) study->at_n[i].kept = -INFINITY;
    if (!count_bounded_layers(p, rate, study, error)) return false;
    if (study->some_bounded < study->n_layers) return true; // nothing is known of any logit
    ends e = {.point = TRACE_F2};
    bool good = find_ends(p, 0, rate, &e, error);
    size_t vocab = p->config->vocab;
    for (size_t i = 0; good && i < study->n; i++)
        study->at_n[i].kept =
            next_margin_kept(e.lo + i * vocab, e.hi + i * vocab, vocab, study->at_n[i].argmax);
    ends_free(&e);
    return good;
}
