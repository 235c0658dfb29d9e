// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/judge/judge_evidence.h"

#include "ref/scaled.h"

#include <math.h>
#include <stdlib.h>

// ---- policies without a choice

static bool rounding_is_open(const sinkproof_policy *policy, int point) {
    sinkproof_rounding at = policy->at[point];
    return at.optional &&
           (sinkproof_unit_roundoff(at.format) > sinkproof_unit_roundoff(policy->inside) ||
            sinkproof_is_scaled(at));
}

bool sinkproof_policy_is_open(const sinkproof_policy *policy) {
    bool open = false;
    for (int p = 0; p < AT_POINTS; p++)
        open = open || rounding_is_open(policy, p) || policy->unrounded[p];
    return open;
}

void sinkproof_policy_settle(sinkproof_policy *policy, bool rounded) {
    for (int p = 0; p < AT_POINTS; p++) {
        if (!rounded && rounding_is_open(policy, p)) policy->at[p].format = SINKPROOF_REAL;
        policy->at[p].optional = false;
        if (rounded) policy->unrounded[p] = false;
    }
    for (int s = 0; s < SINKPROOF_FORMED_COUNT; s++)
        policy->forms[s] &= -policy->forms[s]; // keeps the first admitted form
}

// ---- the evidence of each element

// flags; SEEN and MOVED are shifted by 2 for the second emulation
enum { OUTSIDE = 1, BOUNDED = 2, SEEN = 4, MOVED = 8 };

// The declared sets of one point, and the flags of its elements.
typedef struct point_evidence {
    size_t elements;
    bool zeros; // elements that were not passed are 0: weights of masked keys
    double (*ends)[2];
    uint8_t *flags;
} point_evidence;

typedef struct seen {
    const sinkproof_evidence_question *q;
    sinkproof_evidence_variant variant;
    point_evidence of[TRACE_POINTS];
} seen;

static int variant_bit_shift(sinkproof_evidence_variant variant) {
    return variant == SINKPROOF_VARIANT_UNROUNDED ? 2 : 0;
}

static bool ends_contain(const double ends[2], double x) {
    return x >= ends[0] && x <= ends[1]; // NaN is outside
}

static void see_piece_element(void *context, sinkproof_trace_point point, size_t layer, size_t at,
                              double v, const sinkproof_honest *set) {
    seen *s = context;
    point_evidence *e = &s->of[point];
    if (e->flags == NULL || layer != s->q->place || at >= e->elements) return;
    if (s->variant == SINKPROOF_VARIANT_DECLARED) {
        bool bounded = isfinite(set->lo) && isfinite(set->hi);
        e->ends[at][0] = set->lo, e->ends[at][1] = set->hi;
        e->flags[at] = (uint8_t)(bounded ? BOUNDED : 0);
        if (bounded && !ends_contain(e->ends[at], v)) e->flags[at] |= OUTSIDE;
        return;
    }
    int moved = SEEN | (ends_contain(e->ends[at], set->mid) ? 0 : MOVED);
    e->flags[at] = (uint8_t)(e->flags[at] | moved << variant_bit_shift(s->variant));
}

static bool is_attention_weight(sinkproof_trace_point point) {
    return point == TRACE_A9 || point == TRACE_A10;
}

static bool evidence_begin(seen *s, sinkproof_error *error) {
    const sinkproof_judgement *j = s->q->judgement;
    bool fine = true;
    for (size_t i = 0; fine && i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        bool layered = sinkproof_trace_point_is_layered(r->point);
        if ((layered ? r->layer : s->q->config->n_layers) != s->q->place) continue;
        if (s->q->stretch->doing[s->q->place][r->point] != DOING_JUDGED) continue;
        point_evidence *e = &s->of[r->point];
        e->elements = 1, e->zeros = is_attention_weight(r->point);
        for (size_t d = 0; d < r->rank; d++) e->elements *= r->shape[d];
        e->ends = calloc(e->elements, sizeof *e->ends);
        e->flags = calloc(e->elements, 1);
        for (size_t at = 0; e->zeros && e->flags != NULL && at < e->elements; at++)
            e->flags[at] = BOUNDED; // [0, 0]
        fine = e->ends != NULL && e->flags != NULL;
    }
    return fine || sinkproof_fail(error, "no memory for the evidence of a supposition");
}

static void evidence_end(seen *s) {
    for (int p = 0; p < TRACE_POINTS; p++) free(s->of[p].ends), free(s->of[p].flags);
}

static void evidence_count(const point_evidence *e, bool open, sinkproof_evidence *evidence) {
    for (size_t at = 0; at < e->elements; at++) {
        int flags = e->flags[at];
        bool all = true, any = false;
        if ((flags & BOUNDED) == 0) continue;
        for (int v = 0; v <= open; v++) {
            bool shown = flags >> 2 * v & SEEN;
            bool moved = shown ? flags >> 2 * v & MOVED : e->zeros && !ends_contain(e->ends[at], 0);
            if (shown || e->zeros) all = all && moved, any = any || moved;
        }
        evidence->outside += flags & OUTSIDE;
        evidence->moved_outside += (flags & OUTSIDE) != 0 && any;
        evidence->moved_inside += (flags & OUTSIDE) == 0 && all && any;
    }
}

bool sinkproof_evidence_add(const sinkproof_evidence_question *q, sinkproof_evidence *evidence,
                            sinkproof_error *error) {
    seen s = {.q = q};
    const sinkproof_judge_options how = {
        .stretch = q->stretch,
        .rows = q->rows,
        .region = q->region != NULL && !sinkproof_region_is_whole(q->region) ? q->region : NULL,
        .witness = see_piece_element,
        .witnessing = &s};
    bool fine = evidence_begin(&s, error);
    for (int v = 0; fine && v <= 1 + q->open; v++) {
        s.variant = (sinkproof_evidence_variant)v;
        fine = q->judge(q->context, s.variant, &how, error);
    }
    for (int p = 0; fine && p < TRACE_POINTS; p++) evidence_count(&s.of[p], q->open, evidence);
    evidence_end(&s);
    return fine;
}

bool sinkproof_evidence_tells(const sinkproof_evidence *e) {
    if (e->outside == 0) return true; // indices and unbounded sets are not asked
    return e->moved_outside > 0 && e->moved_outside >= e->moved_inside &&
           2 * e->moved_outside >= e->outside;
}
