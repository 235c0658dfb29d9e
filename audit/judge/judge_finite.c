// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/judge/judge_finite.h"

#include "audit/judge/judge_report.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"

#include <stdio.h>

const sinkproof_point_report *judgement_report(const sinkproof_judgement *j,
                                               sinkproof_trace_point point, size_t layer) {
    bool layered = sinkproof_trace_point_is_layered(point);
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        if (r->point == point && (!layered || r->layer == layer)) return r;
    }
    return NULL;
}

held_kind held_outside(const sinkproof_judgement *j, sinkproof_trace_point point, size_t layer) {
    bool layered = sinkproof_trace_point_is_layered(point);
    size_t at = layered ? layer : j->n_layers;
    return j->held != NULL ? (held_kind)j->held[at * TRACE_POINTS + (size_t)point] : HELD_NOT;
}

typedef size_t counter(const sinkproof_point_report *r);
static size_t report_infinities(const sinkproof_point_report *r) {
    return r->infinities;
}
static size_t report_nans(const sinkproof_point_report *r) {
    return r->nans;
}

static const sinkproof_point_report *first_report_with(const sinkproof_judgement *j,
                                                       counter *count) {
    for (size_t i = 0; i < j->n_reports; i++)
        if (count(&j->reports[i]) > 0) return &j->reports[i];
    return NULL;
}

// "NaN: 01.A12 is the first point, 3 of 64 elements, the first at (2, 17)"
static int say_first(const sinkproof_point_report *r, const char *what, size_t count, size_t at,
                     char *text, size_t size) {
    return snprintf(text, size, "%s: %s is the first point, %zu of %s, the first at (%s)", what,
                    r->name, count, sinkproof_counted(r->elements, "element").text,
                    sinkproof_trace_index_text(r->rank, r->shape, at).text);
}

// Names the range of the policy's numbers at the point: that of its rounding, or of the inner
// format.
static int say_largest(const sinkproof_judgement *j, const sinkproof_point_report *r, char *text,
                       size_t size) {
    sinkproof_point at;
    sinkproof_format format = SINKPROOF_REAL;
    if (sinkproof_trace_rounding(r->point, &at)) format = j->policy.at[at].format;
    if (format == SINKPROOF_REAL) format = j->policy.inside;
    return snprintf(text, size, "; %s ends at %.6g.\n", sinkproof_format_name(format),
                    sinkproof_format_largest(format));
}

void sinkproof_not_finite_text(const sinkproof_judgement *j, char text[SINKPROOF_NOT_FINITE_TEXT]) {
    const sinkproof_point_report *infinite = first_report_with(j, report_infinities);
    const sinkproof_point_report *nan = first_report_with(j, report_nans);
    size_t size = SINKPROOF_NOT_FINITE_TEXT, used = 0;
    text[0] = '\0';
    if (infinite != NULL) {
        used += (size_t)say_first(infinite, "Infinite", infinite->infinities,
                                  infinite->first_infinity, text, size);
        used += (size_t)say_largest(j, infinite, text + used, size - used);
    }
    if (nan == NULL) return;
    used += (size_t)say_first(nan, "NaN", nan->nans, nan->first_nan, text + used, size - used);
    snprintf(text + used, size - used, ".\n");
}

bool input_is_not_finite(const sinkproof_config *config, const sinkproof_judgement *j,
                         sinkproof_trace_point point, size_t layer) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t n = sinkproof_trace_inputs(config, point, layer, inputs);
    for (size_t i = 0; i < n; i++) {
        const sinkproof_point_report *r = judgement_report(j, inputs[i].point, inputs[i].layer);
        held_kind held = held_outside(j, inputs[i].point, inputs[i].layer);
        bool behind = r != NULL ? r->infinities + r->nans > 0
                      : held != HELD_NOT
                          ? held == HELD_NOT_FINITE
                          : input_is_not_finite(config, j, inputs[i].point, inputs[i].layer);
        if (behind) return true;
    }
    return false;
}
