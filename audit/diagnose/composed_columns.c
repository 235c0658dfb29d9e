// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A number of its own for each coordinate, the same in all rows: a factor of the point, of what a
// residual adds, or what is added. Least squares over the rows give the numbers.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum column_kind { FACTORS, FACTORS_OF_TERM, ADDENDS } column_kind;
enum { KIND, INPUT }; // the numbers; INPUT: of a residual, the term

static bool make_columns(const sinkproof_making *of, double *y, double *width) {
    size_t d = of->all / of->n;
    const sinkproof_tensor *term = NULL, *other = NULL;
    if (of->table == NULL) return false;
    if (of->numbers[KIND] == FACTORS_OF_TERM) {
        sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
        sinkproof_trace_inputs(of->config, of->point, of->layer, inputs);
        const sinkproof_input *in = &inputs[(size_t)of->numbers[INPUT]];
        term = sinkproof_trace_find(of->trace, in->point, in->layer);
        in = &inputs[1 - (size_t)of->numbers[INPUT]];
        other = sinkproof_trace_find(of->trace, in->point, in->layer);
        if (term == NULL || sinkproof_tensor_elements(term) != of->all || other == NULL ||
            sinkproof_tensor_elements(other) != of->all)
            return false;
    }
    for (size_t at = 0; at < of->all; at++) {
        double by = of->table[2 * (at % d)], error = of->table[2 * (at % d) + 1];
        double x = term != NULL ? sinkproof_tensor_value(term, at) : of->x[at];
        bool adds = of->numbers[KIND] == ADDENDS;
        y[at] = term != NULL ? sinkproof_tensor_value(other, at) + by * x : adds ? x + by : by * x;
        width[at] = error * (adds ? 1 : fabs(x));
        if (of->radius != NULL && term == NULL) width[at] += fmax(fabs(by), 1) * of->radius[at];
    }
    return true;
}

// For each coordinate the number, by least squares over the rows, and its error; x NULL: an addend.
// Returns false where the rows do not follow it.
static bool fit_columns(const composing *c, const double *base, const double *x, double *table) {
    size_t d = c->elements / c->n, far = 0;
    double most = 0;
    for (size_t k = 0; k < d; k++) {
        double xx = 0, xy = 0;
        for (size_t i = 0; i < c->n; i++) {
            double one = x != NULL ? x[i * d + k] : 1;
            xx += one * one, xy += one * (c->v[i * d + k] - (base != NULL ? base[i * d + k] : 0));
        }
        table[2 * k] = xx > 0 ? xy / xx : x != NULL;
        most = fmax(most, fabs(table[2 * k]));
        double sizes = 0;
        for (size_t i = 0; i < c->n; i++) sizes = fmax(sizes, fabs(c->v[i * d + k]));
        // of least squares, and in narrow formats of a product that is rounded
        double apart = c->step > 0x1p-12 ? c->step : c->step / 2;
        table[2 * k + 1] = apart * (x != NULL ? fabs(table[2 * k]) : sizes / sqrt((double)c->n));
        for (size_t i = 0; i < c->n; i++) {
            double one = x != NULL ? x[i * d + k] : 1;
            double value = (base != NULL ? base[i * d + k] : 0) + table[2 * k] * one;
            far += !value_is_near(c, i * d + k, value);
        }
    }
    return isfinite(most) && 8 * far <= c->elements;
}

static void range_of(const double *table, size_t d, double *least, double *most) {
    *least = INFINITY, *most = -INFINITY;
    for (size_t k = 0; k < d; k++)
        *least = fmin(*least, table[2 * k]), *most = fmax(*most, table[2 * k]);
}

static bool try_table(const operation *o, column_kind kind, size_t input, const double *table,
                      const char *text) {
    composing *c = o->c;
    made_kind made = {.make = make_columns, .numbers = {[KIND] = kind, [INPUT] = (double)input}};
    made.table = composing_keep_numbers(c, 2 * (c->elements / c->n), table);
    if (made.table == NULL) return false;
    snprintf(made.id, sizeof made.id, "columns-%d-%zu", kind, input);
    snprintf(made.text, sizeof made.text, "%s", text);
    return composing_try_made(o, &made);
}

// The scales that a norm has with these factors, if they are one number.
static bool one_scale(const operation *o, const double *table, double *scale) {
    size_t d = o->c->elements / o->c->n;
    if (o->kind != SINKPROOF_NORM || o->weights[0].cols != d) return false;
    double *scale_d = malloc(d * sizeof *scale_d), sum = 0;
    bool one = scale_d != NULL;
    if (one) sinkproof_matrix_row(&o->weights[0], 0, scale_d);
    for (size_t k = 0; one && k < d; k++) sum += scale_d[k] * table[2 * k] / (double)d;
    for (size_t k = 0; one && k < d; k++)
        one = fabs(scale_d[k] * table[2 * k] - sum) <= 2 * o->c->step * fabs(sum);
    free(scale_d);
    *scale = sum;
    return one;
}

static bool try_factors(const operation *o, double *table) {
    composing *c = o->c;
    double least, most, scale;
    char text[240];
    if (!fit_columns(c, NULL, c->mid, table)) return true;
    range_of(table, c->elements / c->n, &least, &most);
    if (one_scale(o, table, &scale))
        snprintf(text, sizeof text,
                 "has one scale for all coordinates, about %.4g, in the place of "
                 "the norm's scales",
                 scale);
    else if (o->kind == SINKPROOF_NORM)
        snprintf(text, sizeof text,
                 "has other scales than the norm's: each coordinate (channel) is multiplied by a "
                 "number of its own, %.4g to %.4g, as by smoothing factors or other weights",
                 least, most);
    else
        snprintf(text, sizeof text,
                 "is multiplied by a number of its own in each coordinate (a scale for each "
                 "channel), %.4g to %.4g",
                 least, most);
    return try_table(o, FACTORS, 0, table, text);
}

static bool try_term(const operation *o, size_t input, double *table) {
    composing *c = o->c;
    double least, most;
    char text[240];
    if (!fit_columns(c, o->x[1 - input], o->x[input], table)) return true;
    range_of(table, c->elements / c->n, &least, &most);
    snprintf(text, sizeof text,
             "adds %s multiplied by a number of its own in each coordinate (a scale for each "
             "channel), %.4g to %.4g",
             input == 0 ? composed_input_words(o->inputs[0].point) : "the residual", least, most);
    return try_table(o, FACTORS_OF_TERM, input, table, text);
}

static bool try_addends(const operation *o, double *table) {
    composing *c = o->c;
    double least, most;
    char text[240];
    if (!fit_columns(c, c->mid, NULL, table)) return true;
    range_of(table, c->elements / c->n, &least, &most);
    snprintf(text, sizeof text,
             "has one vector added to every row: a number of its own for each coordinate, %.4g to "
             "%.4g",
             least, most);
    return try_table(o, ADDENDS, 0, table, text);
}

bool compose_columns(composing *c) {
    enum { FEWEST_ROWS = 8 };
    operation o;
    size_t d = c->elements / c->n, shape[SINKPROOF_MAX_RANK];
    bool flat = sinkproof_trace_shape(c->s->trials.config, c->point, c->n, shape) == 2;
    if (!flat || c->n < FEWEST_ROWS || sinkproof_trace_point_is_index(c->point)) return true;
    double *table = malloc((2 * d + 1) * sizeof *table);
    bool fine = (table != NULL || fail_for_memory(c->s)) && operation_read(c, &o);
    if (table == NULL) return false;
    bool adds = fine && o.kind == SINKPROOF_ADD && o.whole && o.width[0] == d && o.width[1] == d;
    for (size_t input = 0; input < 2 && adds && fine && c->found == NULL; input++)
        fine = try_term(&o, input, table);
    if (fine && c->found == NULL) fine = try_factors(&o, table);
    if (fine && c->found == NULL) fine = try_addends(&o, table);
    free(table);
    operation_free(&o);
    return fine;
}
