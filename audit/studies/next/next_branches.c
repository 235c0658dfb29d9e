// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// All runs that an honest engine can make, where they are few. A policy that fixes its roundings
// and the order of its sums leaves one value to nearly every element: its honest set, from inputs
// that are numbers, is a single value. So the run of an honest engine is followed element by
// element. Where a set holds several numbers of the point's format, each is followed: a branch. If
// no set on the way holds anything else, every honest engine's run is one of the branches, up to
// the logits, whose sets say what margin is kept.
//
// A branch is the reference's run with the numbers that were chosen. That it is the only one with
// them is not taken from the reference: the judge's sets say it, for every element.
#include "audit/judge/judge.h"
#include "audit/sinkproof.h"
#include "audit/studies/next/next_internal.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHOSEN = 24, MOST_VALUES = 4 };

typedef struct element {
    sinkproof_trace_point point;
    size_t layer, at;
    double value;
} element;

typedef struct branching {
    const next_prompt *p;
    sinkproof_model *kept; // the model with its weights as the policy stores them
    size_t most, leaves;   // branches
    size_t n_chosen;
    element chosen[MOST_CHOSEN];
    double *kept_n; // [n]: the least margin that a branch keeps
    const next_position *position_n;
    sinkproof_error *error;
    bool failed; // not for want of certainty: memory, a trace that is refused
} branching;

// The order of the forward pass.
static size_t place_of(const branching *b, sinkproof_trace_point point, size_t layer) {
    if (point == TRACE_T0) return 0;
    if (!sinkproof_trace_point_is_layered(point)) layer = b->p->config->n_layers;
    return 1 + layer * TRACE_POINTS + (size_t)point;
}

// ---- the run of a branch, as a trace

// The points at which the reference goes on from another number. The trace of a branch has these
// and the logits. The judge bridges the others: their sets are inputs of the next. F1 is bridged
// too: its numbers meet in the logits alone, whose sets need no single value.
static bool can_be_put(sinkproof_trace_point point) {
    return point <= TRACE_A4_K || (point >= TRACE_A11 && point <= TRACE_M1) || point == TRACE_M4 ||
           (point >= TRACE_M10 && point < TRACE_F1);
}

typedef struct taking {
    branching *b;
    sinkproof_trace_builder *builder;
    bool good;
} taking;

static void put_chosen(void *context, const char *name, size_t rank, const size_t *shape,
                       double *values) {
    const taking *t = context;
    sinkproof_trace_point point;
    size_t layer;
    (void)rank, (void)shape;
    if (!sinkproof_trace_name_parse(name, &point, &layer)) return;
    for (size_t k = 0; k < t->b->n_chosen; k++) {
        const element *e = &t->b->chosen[k];
        if (e->point == point && e->layer == layer) values[e->at] = e->value;
    }
}

static void take_point(void *context, const char *name, size_t rank, const size_t *shape,
                       const double *values) {
    taking *t = context;
    sinkproof_trace_point point;
    size_t layer;
    if (!t->good || !sinkproof_trace_name_parse(name, &point, &layer)) return;
    if (!can_be_put(point) && point != TRACE_F2) return;
    t->good =
        sinkproof_trace_builder_add(t->builder, name, "F64", rank, shape, values, t->b->error);
}

static sinkproof_trace *trace_of_branch(branching *b) {
    const next_prompt *p = b->p;
    taking t = {.b = b};
    sinkproof_trace *trace = NULL;
    sinkproof_session *session = sinkproof_session_new(b->kept, p->policy);
    sinkproof_observer observer = {.see = take_point, .replace = put_chosen, .context = &t};
    t.good = session != NULL && sinkproof_trace_builder_new(p->model, "a branch", NULL, p->n,
                                                            p->tokens_n, &t.builder, b->error);
    if (session == NULL) sinkproof_fail(b->error, "no memory for a branch");
    if (t.good)
        t.good = sinkproof_forward(session, p->n, p->tokens_n, NULL, &observer, b->error) && t.good;
    if (t.good) t.good = sinkproof_trace_builder_finish(t.builder, &trace, b->error);
    if (t.builder != NULL) sinkproof_trace_builder_free(t.builder);
    sinkproof_session_free(session);
    b->failed = b->failed || !t.good;
    return trace;
}

// ---- its sets

typedef struct looking {
    const branching *b;
    size_t *seen_lp; // [layers + 1, points]: elements that were seen
    bool off;       // a single value that the branch does not have: the reference is no such engine
    size_t several; // elements with several values
    element first;  // in the order of the forward pass, with several values
    double hi;      // from first.value
    double *lo, *hi_nv; // the ends of F2
} looking;

static bool is_chosen(const branching *b, sinkproof_trace_point point, size_t layer, size_t at) {
    for (size_t k = 0; k < b->n_chosen; k++)
        if (b->chosen[k].point == point && b->chosen[k].layer == layer && b->chosen[k].at == at)
            return true;
    return false;
}

static void note_several(looking *l, sinkproof_trace_point point, size_t layer, size_t at,
                         const sinkproof_honest *set) {
    size_t place = place_of(l->b, point, layer);
    size_t before = l->several++ > 0 ? place_of(l->b, l->first.point, l->first.layer) : SIZE_MAX;
    if (place > before || (place == before && at >= l->first.at)) return;
    l->first = (element){point, layer, at, set->lo};
    l->hi = set->hi;
}

static void see_set(void *context, sinkproof_trace_point point, size_t layer, size_t at, double v,
                    const sinkproof_honest *set) {
    looking *l = context;
    if (!sinkproof_trace_point_is_layered(point)) layer = 0;
    __atomic_fetch_add(&l->seen_lp[layer * TRACE_POINTS + (size_t)point], 1, __ATOMIC_RELAXED);
    if (point == TRACE_F2) {
        l->lo[at] = set->lo, l->hi_nv[at] = set->hi;
        return;
    }
    if (set->lo == set->hi && v == set->lo) return;
    if (is_chosen(l->b, point, layer, at)) return;
#pragma omp critical(next_branch)
    {
        l->off = l->off || set->lo == set->hi;
        if (set->lo != set->hi) note_several(l, point, layer, at, set);
    }
}

// Whether the judge showed each element that an engine's run depends on.
static bool saw_all(const looking *l, const sinkproof_trace *trace) {
    const sinkproof_config *c = l->b->p->config;
    for (size_t layer = 0; layer < c->n_layers; layer++)
        for (int k = 0; k < TRACE_POINTS; k++) {
            sinkproof_trace_point point = (sinkproof_trace_point)k;
            if (!sinkproof_trace_point_is_layered(point) && layer > 0) continue;
            if (sinkproof_trace_find(trace, point, layer) == NULL) continue;
            size_t count = sinkproof_trace_elements(c, point, l->b->p->n);
            if (l->seen_lp[layer * TRACE_POINTS + (size_t)point] != count) return false;
        }
    return true;
}

// Returns false if a run may be none of the branches.
static bool look_at_branch(branching *b, looking *l) {
    sinkproof_trace *trace = trace_of_branch(b);
    sinkproof_judgement judgement;
    const sinkproof_judge_options how = {.rate = 1e-9, .witness = see_set, .witnessing = l};
    if (trace == NULL) return false;
    bool good = sinkproof_judge(b->p->model, trace, b->p->policy, &how, &judgement, b->error);
    b->failed = b->failed || !good;
    if (good) {
        for (size_t layer = 0; layer < b->p->config->n_layers; layer++)
            good = good && judgement.open[layer] == 0;
        sinkproof_judgement_free(&judgement);
    }
    good = good && !l->off && saw_all(l, trace) && b->n_chosen + l->several <= MOST_CHOSEN;
    sinkproof_trace_close(trace);
    return good;
}

// ---- the branches

static void keep_margins(branching *b, const looking *l) {
    size_t vocab = b->p->config->vocab;
    for (size_t i = 0; i < b->p->n; i++) {
        double kept = next_margin_kept(l->lo + i * vocab, l->hi_nv + i * vocab, vocab,
                                       b->position_n[i].argmax);
        if (!(kept >= b->kept_n[i])) b->kept_n[i] = kept;
    }
    b->leaves++;
}

static bool follow(branching *b);

// The numbers of a format from lo to hi: at most MOST_VALUES, or 0 if there are more.
static size_t numbers_between(sinkproof_format format, double lo, double hi,
                              double v[MOST_VALUES]) {
    size_t n = 0;
    for (double x = lo; x <= hi;) {
        if (n == MOST_VALUES) return 0;
        v[n++] = x;
        double next = sinkproof_round(format, x + sinkproof_ulp(format, x));
        if (!(next > x)) return 0;
        x = next;
    }
    return n;
}

// Follows each number of the format at an element with several.
static bool follow_values(branching *b, element first, double hi) {
    sinkproof_point at;
    double v[MOST_VALUES];
    if (!sinkproof_trace_rounding(first.point, &at)) return false;
    sinkproof_rounding rounding = b->p->policy->at[at];
    if (rounding.format == SINKPROOF_REAL || rounding.optional || !isfinite(first.value))
        return false;
    size_t n = numbers_between(rounding.format, first.value, hi, v);
    element *chosen = &b->chosen[b->n_chosen++];
    bool good = n > 0;
    for (size_t k = 0; good && k < n; k++) {
        *chosen = first, chosen->value = v[k];
        good = follow(b);
    }
    b->n_chosen--;
    return good;
}

static bool follow(branching *b) {
    const sinkproof_config *c = b->p->config;
    size_t logits = b->p->n * c->vocab;
    looking l = {.b = b,
                 .seen_lp = calloc((c->n_layers + 1) * TRACE_POINTS, sizeof *l.seen_lp),
                 .lo = malloc(logits * sizeof *l.lo),
                 .hi_nv = malloc(logits * sizeof *l.hi_nv)};
    bool good = l.seen_lp != NULL && l.lo != NULL && l.hi_nv != NULL;
    if (!good) b->failed = true, sinkproof_fail(b->error, "no memory for a branch");
    good = good && b->leaves < b->most && look_at_branch(b, &l);
    if (good && l.several == 0) keep_margins(b, &l);
    free(l.seen_lp);
    free(l.lo);
    free(l.hi_nv);
    return good && (l.several == 0 || follow_values(b, l.first, l.hi));
}

bool next_branches(const next_prompt *p, size_t most, next_study *study, sinkproof_error *error) {
    sinkproof_error unserved;
    branching b = {.p = p,
                   .most = most,
                   .kept_n = malloc(p->n * sizeof *b.kept_n),
                   .kept = sinkproof_model_kept(p->model, p->policy->weights),
                   .position_n = study->at_n,
                   .error = error};
    bool good =
        (b.kept_n != NULL && b.kept != NULL) || sinkproof_fail(error, "no memory for branches");
    for (size_t i = 0; good && i < p->n; i++) b.kept_n[i] = INFINITY;
    if (good && sinkproof_policy_admits_all(p->policy, sinkproof_definitions, &unserved) &&
        follow(&b)) {
        study->branches = b.leaves;
        for (size_t i = 0; i < p->n; i++)
            if (b.kept_n[i] > study->at_n[i].kept) study->at_n[i].kept = b.kept_n[i];
    }
    free(b.kept_n);
    sinkproof_model_close(b.kept);
    return good && !b.failed;
}
