// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the parts: numbers in JSON (null for NaN) and in tables (a dash for NaN), and the
// progress of one input among several. Private to audit/studies/sinks/ and
// audit/studies/mechanism/.
#ifndef SINKPROOF_PART_NUMBERS_H
#define SINKPROOF_PART_NUMBERS_H

#include "audit/studies/sinks/part.h"
#include "model/json_number.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

static inline void part_put_number(json_t *o, const char *name, double x) {
    json_object_set_new(o, name, sinkproof_number_json(x));
}

static inline json_t *part_numbers(size_t n, const double *x_i) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, sinkproof_number_json(x_i[i]));
    return list;
}

static inline json_t *part_count(size_t n) {
    return json_integer((json_int_t)n);
}

static inline json_t *part_ratios(size_t n, const double *over_i, const double *under_i) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list,
                              sinkproof_number_json(over_i[i] == 0 ? 0 : over_i[i] / under_i[i]));
    return list;
}

// A number in a table, or a dash.
typedef struct part_cell {
    char text[24];
} part_cell;

static inline part_cell part_text(const char *format, double x) {
    part_cell c = {"-"};
    if (isnan(x)) return c;
    if (isinf(x))
        snprintf(c.text, sizeof c.text, "inf");
    else
        snprintf(c.text, sizeof c.text, format, x);
    return c;
}

// One input's share of the progress.
typedef struct part_share {
    const sinkproof_sinks_job *job;
    size_t input;
} part_share;

static inline void part_report_share(void *context, double share) {
    part_share *s = context;
    s->job->progress(s->job->progress_context,
                     ((double)s->input + share) / (double)s->job->n_inputs);
}

#endif
