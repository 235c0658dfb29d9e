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

static size_t gap(size_t a, size_t b) {
    return a < b ? b - a : a - b;
}

static bool have_in_common(size_t rank, const size_t *shape, size_t a, size_t b) {
    size_t a_d[SINKPROOF_MAX_RANK], b_d[SINKPROOF_MAX_RANK];
    bool common = false;
    sinkproof_trace_index(rank, shape, a, a_d);
    sinkproof_trace_index(rank, shape, b, b_d);
    for (size_t d = 0; d < rank; d++) {
        common = common || (shape[d] > 1 && a_d[d] == b_d[d]);
        for (size_t e = 0; e < d; e++)
            common = common ||
                     (shape[d] > 1 && shape[e] > 1 && gap(a_d[d], b_d[d]) == gap(a_d[e], b_d[e]));
    }
    return common;
}

bool sinkproof_marks_are_isolated(const sinkproof_point_report *r, const uint8_t *marks) {
    enum { FEW = 16 };
    size_t elements = 1, n = 0, at[FEW];
    for (size_t d = 0; d < r->rank; d++) elements *= r->shape[d];
    for (size_t i = 0; i < elements; i++) {
        if (!marks[i]) continue;
        if (n == FEW) return false;
        for (size_t other = 0; other < n; other++)
            if (have_in_common(r->rank, r->shape, at[other], i)) return false;
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

static double step_of(const sinkproof_trials *s, const sinkproof_point_report *r) {
    sinkproof_point at;
    bool rounds = sinkproof_trace_rounding(r->point, &at);
    sinkproof_format format = rounds ? s->suspect.policy->at[at].format : SINKPROOF_F32;
    if (format == SINKPROOF_REAL || format >= SINKPROOF_FORMATS) format = s->suspect.policy->inside;
    return sinkproof_ulp(format, r->worst_set.mid);
}

static bool is_a_step(const sinkproof_trials *s, const sinkproof_point_report *r) {
    double v = r->worst_value;
    return fmax(r->worst_set.lo - v, v - r->worst_set.hi) <= step_of(s, r);
}

// Whether x is extreme among elements `first`, first + step, ... of a tensor: no other element is
// as large, or no other element is as small.
static bool is_at_an_end(const sinkproof_tensor *t, size_t first, size_t step, size_t at, double x,
                         bool sizes) {
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
static bool is_made_of_ends(const sinkproof_trials *s, const sinkproof_point_report *r, size_t at) {
    const sinkproof_tensor *up =
        sinkproof_trace_find(s->suspect.trace, SINKPROOF_TRACE_M6, r->layer);
    bool ends = up == NULL;
    for (size_t which = 0; !ends && which < 2; which++) {
        size_t place = 2 * at + which;
        ends = is_at_an_end(up, which, 2, place, sinkproof_tensor_value(up, place), false);
    }
    return ends;
}

static bool is_extreme(const sinkproof_trials *s, const sinkproof_point_report *r) {
    const sinkproof_tensor *t = sinkproof_trace_find(s->suspect.trace, r->point, r->layer);
    bool limited = r->point == SINKPROOF_TRACE_M8 && s->config->activation == SINKPROOF_SWIGLU;
    if (t == NULL) return true;
    return is_at_an_end(t, 0, 1, r->worst_at, fabs(r->worst_set.mid), true) ||
           (limited && is_made_of_ends(s, r, r->worst_at));
}

static bool isolated_at(const sinkproof_trials *s, const sinkproof_point_report *r,
                        size_t *isolated, sinkproof_isolation *isolation) {
    *isolated = 0, *isolation = SINKPROOF_ISOLATED;
    if (!may_be_isolated(r)) return true;
    uint8_t *marks = sinkproof_marks_of(s, r);
    if (marks == NULL) return false;
    if (sinkproof_marks_are_isolated(r, marks)) *isolated = r->outside;
    free(marks);
    if (!isfinite(r->worst_value))
        *isolation = SINKPROOF_ISOLATED_NAN;
    else if (is_a_step(s, r))
        *isolation = SINKPROOF_ISOLATED_STEP;
    else if (is_extreme(s, r))
        *isolation = SINKPROOF_ISOLATED_EXTREME;
    return true;
}

bool sinkproof_all_isolated(const sinkproof_trials *s, size_t place, unsigned points, bool *all) {
    *all = points != 0;
    for (int p = 0; p < SINKPROOF_TRACE_POINTS && *all; p++) {
        sinkproof_isolation isolation;
        size_t isolated;
        if ((points >> p & 1) == 0) continue;
        const sinkproof_point_report *r = sinkproof_report_at(s, (sinkproof_trace_point)p, place);
        if (!isolated_at(s, r, &isolated, &isolation)) return false;
        *all = isolated > 0;
    }
    return true;
}

// The isolated element of a point among the findings; NULL: there is none.
static const sinkproof_point_report *found_isolated(const sinkproof_trials *s,
                                                    const sinkproof_diagnosis *d,
                                                    const sinkproof_input *input) {
    bool layered = sinkproof_trace_point_is_layered(input->point);
    size_t place = layered ? input->layer : s->config->n_layers;
    for (size_t i = 0; i < d->n; i++)
        if (d->findings[i].isolated == 1 && (d->findings[i].points >> input->point & 1) &&
            d->findings[i].layers[place])
            return sinkproof_report_at(s, input->point, place);
    return NULL;
}

// Whether later positions read the point: keys and values are read by later queries, any other
// number only at its own position.
static bool is_read_later(sinkproof_trace_point point) {
    return point == SINKPROOF_TRACE_A2_K || point == SINKPROOF_TRACE_A2_V ||
           point == SINKPROOF_TRACE_A4_K;
}

static bool follows_from(const sinkproof_trials *s, const sinkproof_diagnosis *d,
                         const sinkproof_point_report *r, bool *follows) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t n = sinkproof_trace_inputs(s->config, r->point, r->layer, inputs);
    *follows = false;
    for (size_t i = 0; i < n && !*follows; i++) {
        const sinkproof_point_report *from = found_isolated(s, d, &inputs[i]);
        size_t at[SINKPROOF_MAX_RANK];
        sinkproof_rows rows;
        if (from == NULL) continue;
        sinkproof_trace_index(from->rank, from->shape, from->worst_at, at);
        size_t position = at[sinkproof_trace_point_is_by_head(from->point)];
        if (!sinkproof_failing_rows(s, sinkproof_place_of(s, r), r->point, &rows)) return false;
        *follows =
            rows.first >= position && (rows.end == position + 1 || is_read_later(from->point));
    }
    return true;
}

bool sinkproof_stands_apart(const sinkproof_trials *s, const sinkproof_diagnosis *d,
                            const sinkproof_point_report *r, sinkproof_finding_of *f) {
    bool follows;
    if (!follows_from(s, d, r, &follows)) return false;
    if (follows) f->limit = SINKPROOF_LIMIT_FOLLOWS;
    f->elements = r->elements;
    return follows || isolated_at(s, r, &f->isolated, &f->isolation);
}

bool sinkproof_diagnosis_isolates(const sinkproof_diagnosis *d) {
    bool all = d->n > 0;
    for (size_t i = 0; i < d->n; i++)
        all =
            all && (d->findings[i].isolated > 0 || d->findings[i].limit == SINKPROOF_LIMIT_FOLLOWS);
    return all;
}
