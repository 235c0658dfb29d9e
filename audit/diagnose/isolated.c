// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Isolated elements: elements outside that have nothing in common. A wrong operation makes every
// element of its point differ, or all of some rows, columns, heads or distances. A single wrong
// number among many right ones is what a stray write, a race or failed memory leaves. There are two
// exceptions. An operation may err by less than the width of its sets, and a rounding after it may
// show the error once: the element is then outside by one step of that rounding. Or an operation
// may err only at an end of its range, a limit or an overflow that one element alone reaches: then
// no element inside is as large or as small, nor computed from numbers as large or as small.
#include "audit/diagnose/trial.h"

#include "audit/trace/trace_points.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static size_t index_gap(size_t a, size_t b) {
    return a < b ? b - a : a - b;
}

static bool share_an_index(size_t rank, const size_t *shape, size_t a, size_t b) {
    size_t a_d[SINKPROOF_MAX_RANK], b_d[SINKPROOF_MAX_RANK];
    bool common = false;
    sinkproof_trace_index(rank, shape, a, a_d);
    sinkproof_trace_index(rank, shape, b, b_d);
    for (size_t d = 0; d < rank; d++) {
        common = common || (shape[d] > 1 && a_d[d] == b_d[d]);
        for (size_t e = 0; e < d; e++)
            common = common || (shape[d] > 1 && shape[e] > 1 &&
                                index_gap(a_d[d], b_d[d]) == index_gap(a_d[e], b_d[e]));
    }
    return common;
}

bool marks_are_isolated(const sinkproof_point_report *r, const uint8_t *marks) {
    enum { FEW = 16 };
    size_t elements = 1, n = 0, at[FEW];
    for (size_t d = 0; d < r->rank; d++) elements *= r->shape[d];
    for (size_t i = 0; i < elements; i++) {
        if (!marks[i]) continue;
        if (n == FEW) return false;
        for (size_t other = 0; other < n; other++)
            if (share_an_index(r->rank, r->shape, at[other], i)) return false;
        at[n++] = i;
    }
    return n > 0 && n < elements;
}

// Each row must have one more element, which is inside; of indices a wrong choice changes only one.
static bool may_be_isolated(const sinkproof_point_report *r) {
    size_t least = SIZE_MAX, elements = 1;
    for (size_t d = 0; d < r->rank; d++) {
        elements *= r->shape[d];
        if (r->shape[d] > 1 && r->shape[d] < least) least = r->shape[d];
    }
    return r->outside > 0 && r->outside <= least && r->outside < elements &&
           !sinkproof_trace_point_is_index(r->point);
}

static double point_format_step(const place_trials *s, const sinkproof_point_report *r) {
    sinkproof_point at;
    bool rounds = sinkproof_trace_rounding(r->point, &at);
    sinkproof_format format = rounds ? s->suspect.policy->at[at].format : SINKPROOF_F32;
    if (format == SINKPROOF_REAL || format >= SINKPROOF_FORMATS) format = s->suspect.policy->inside;
    return sinkproof_ulp(format, r->worst_set.mid);
}

static bool is_one_step_outside(const place_trials *s, const sinkproof_point_report *r) {
    double v = r->worst_value;
    return fmax(r->worst_set.lo - v, v - r->worst_set.hi) <= point_format_step(s, r);
}

// Whether x is extreme among elements `first`, first + step, ... of a tensor: no other element is
// as large, or no other element is as small.
static bool is_extreme_along(const sinkproof_tensor *t, size_t first, size_t step, size_t at,
                             double x, bool sizes) {
    bool above = false, below = false;
    for (size_t i = first; i < sinkproof_tensor_elements(t); i += step) {
        double other = sinkproof_tensor_value(t, i);
        if (sizes) other = fabs(other);
        if (i == at || !isfinite(other)) continue;
        above = above || other >= x, below = below || other <= x;
    }
    return !(above && below);
}

// Whether an activation's gate or up is extreme; both are clamped, and they are neighbours in M6.
static bool is_made_from_extremes(const place_trials *s, const sinkproof_point_report *r,
                                  size_t at) {
    const sinkproof_tensor *up = sinkproof_trace_find(s->suspect.trace, TRACE_M6, r->layer);
    bool ends = up == NULL;
    for (size_t which = 0; !ends && which < 2; which++) {
        size_t place = 2 * at + which;
        ends = is_extreme_along(up, which, 2, place, sinkproof_tensor_value(up, place), false);
    }
    return ends;
}

static bool is_extreme(const place_trials *s, const sinkproof_point_report *r) {
    const sinkproof_tensor *t = sinkproof_trace_find(s->suspect.trace, r->point, r->layer);
    bool limited = r->point == TRACE_M8 && s->config->activation == SINKPROOF_SWIGLU;
    if (t == NULL) return true;
    return is_extreme_along(t, 0, 1, r->worst_at, fabs(r->worst_set.mid), true) ||
           (limited && is_made_from_extremes(s, r, r->worst_at));
}

static bool isolated_at(const place_trials *s, const sinkproof_point_report *r, size_t *isolated,
                        isolation_kind *isolation) {
    *isolated = 0, *isolation = ISOLATED_PLAIN;
    if (!may_be_isolated(r)) return true;
    uint8_t *marks = mark_outside_elements(s, r);
    if (marks == NULL) return false;
    if (marks_are_isolated(r, marks)) *isolated = r->outside;
    free(marks);
    if (!isfinite(r->worst_value))
        *isolation = ISOLATED_NAN;
    else if (is_one_step_outside(s, r))
        *isolation = ISOLATED_STEP;
    else if (is_extreme(s, r))
        *isolation = ISOLATED_EXTREME;
    return true;
}

bool points_are_isolated(const place_trials *s, size_t place, unsigned points, bool *all) {
    *all = points != 0;
    for (int p = 0; p < TRACE_POINTS && *all; p++) {
        isolation_kind isolation;
        size_t isolated;
        if ((points >> p & 1) == 0) continue;
        const sinkproof_point_report *r = place_report(s, (sinkproof_trace_point)p, place);
        if (!isolated_at(s, r, &isolated, &isolation)) return false;
        *all = isolated > 0;
    }
    return true;
}

// The isolated element of a point among the findings; NULL: there is none.
static const sinkproof_point_report *was_found_isolated(const place_trials *s,
                                                        const sinkproof_diagnosis *d,
                                                        const sinkproof_input *input) {
    bool layered = sinkproof_trace_point_is_layered(input->point);
    size_t place = layered ? input->layer : s->config->n_layers;
    for (size_t i = 0; i < d->n; i++)
        if (d->findings[i].isolated == 1 && (d->findings[i].points >> input->point & 1) &&
            d->findings[i].layers[place])
            return place_report(s, input->point, place);
    return NULL;
}

// Whether later positions read the point: keys and values are read by later queries, any other
// number only at its own position.
static bool is_read_later(sinkproof_trace_point point) {
    return point == TRACE_A2_K || point == TRACE_A2_V || point == TRACE_A4_K;
}

static bool follows_from(const place_trials *s, const sinkproof_diagnosis *d,
                         const sinkproof_point_report *r, bool *follows) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t n = sinkproof_trace_inputs(s->config, r->point, r->layer, inputs);
    *follows = false;
    for (size_t i = 0; i < n && !*follows; i++) {
        const sinkproof_point_report *from = was_found_isolated(s, d, &inputs[i]);
        size_t at[SINKPROOF_MAX_RANK];
        sinkproof_rows rows;
        if (from == NULL) continue;
        sinkproof_trace_index(from->rank, from->shape, from->worst_at, at);
        size_t position = at[!from->rows_first];
        if (!failing_rows_find(s, report_place(s, r), r->point, &rows)) return false;
        *follows =
            rows.first >= position && (rows.end == position + 1 || is_read_later(from->point));
    }
    return true;
}

bool point_stands_apart(const place_trials *s, const sinkproof_diagnosis *d,
                        const sinkproof_point_report *r, diagnosed_finding *f) {
    bool follows;
    if (!follows_from(s, d, r, &follows)) return false;
    if (follows) f->limit = LIMIT_FOLLOWS;
    f->elements = r->elements;
    return follows || isolated_at(s, r, &f->isolated, &f->isolation);
}

bool sinkproof_diagnosis_isolates(const sinkproof_diagnosis *d) {
    bool all = d->n > 0;
    for (size_t i = 0; i < d->n; i++)
        all = all && (d->findings[i].isolated > 0 || d->findings[i].limit == LIMIT_FOLLOWS);
    return all;
}
