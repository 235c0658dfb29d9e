// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Scores that are multiplied by a number of each query's position, or to which a number is added
// that depends on the distance between query and key alone. Least squares over the heads and keys
// give the numbers; rules of the position are compared with them.
#include "audit/diagnose/composed_made.h"
#include "audit/diagnose/composed_score_rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BY_DISTANCE }; // a number: not by position

static bool make_scores(const sinkproof_making *of, double *y, double *width) {
    size_t n = of->n;
    const sinkproof_tensor *v = sinkproof_trace_find(of->trace, of->point, of->layer);
    if (of->table == NULL || v == NULL || of->all != of->config->n_heads * n * n) return false;
    for (size_t at = 0; at < of->all; at++) {
        size_t i = at / n % n, j = at % n;
        bool adds = of->numbers[BY_DISTANCE] != 0;
        double number = adds ? (j <= i ? of->table[2 * (i - j)] : 0) : of->table[2 * i],
               error = adds ? (j <= i ? of->table[2 * (i - j) + 1] : 0) : of->table[2 * i + 1];
        y[at] = adds ? of->x[at] + number : of->x[at] * number;
        width[at] = error * (adds ? 1 : fabs(of->x[at]));
        // scores that are masked have no sets, and are not looked at
        bool masked = of->radius != NULL && of->x[at] == 0 && of->radius[at] == 0;
        if (masked) y[at] = sinkproof_tensor_value(v, at), width[at] = 0;
        if (of->radius != NULL) width[at] += fmax(adds ? 1 : fabs(number), 1) * of->radius[at];
    }
    return true;
}

// The number of each row, or of each distance, and its error. Returns false where the scores do not
// follow it.
static bool fit_numbers(const composing *c, bool by_distance, double *table) {
    size_t n = c->n, far = 0, all = 0;
    double *sum = calloc(2 * n + 1, sizeof *sum), *size = sum + n;
    if (sum == NULL) return false;
    for (size_t i = 0; i < n; i++) table[2 * i] = !by_distance, table[2 * i + 1] = 0;
    for (size_t at = 0; at < c->elements; at++) {
        size_t i = at / n % n, j = at % n, to = by_distance ? i - j : i;
        double x = by_distance ? 1 : c->mid[at];
        if (j > i || !isfinite(c->mid[at]) || !isfinite(c->v[at]) || !isfinite(c->hi[at])) continue;
        sum[to] += x * (c->v[at] - (by_distance ? c->mid[at] : 0)), size[to] += x * x;
    }
    for (size_t i = 0; i < n; i++) {
        if (size[i] > 0) table[2 * i] = sum[i] / size[i];
        table[2 * i + 1] = 2 * c->step * fabs(table[2 * i]);
    }
    for (size_t at = 0; at < c->elements; at++) {
        size_t i = at / n % n, j = at % n;
        if (j > i || !c->marks[at]) continue;
        double y = by_distance ? c->mid[at] + table[2 * (i - j)] : c->mid[at] * table[2 * i];
        far += !value_is_near(c, at, y), all++;
    }
    free(sum);
    return all > 0 && 64 * far <= all;
}

static bool try_numbers(const operation *o, bool by_distance, const double *table, const char *id,
                        const char *text) {
    made_kind made = {.make = make_scores, .numbers = {[BY_DISTANCE] = by_distance}};
    if (o->c->found != NULL) return true;
    made.table = composing_keep_numbers(o->c, 2 * o->c->n, table);
    snprintf(made.id, sizeof made.id, "%s", id);
    snprintf(made.text, sizeof made.text, "%s", text);
    return made.table != NULL && composing_try_made(o, &made);
}

static bool try_rules(const operation *o, const double *table) {
    composing *c = o->c;
    double *of_row = malloc((c->n + 1) * sizeof *of_row);
    bool fine = of_row != NULL || fail_for_memory(c->s);
    score_rule rule = {0};
    for (size_t i = 0; fine && i < c->n; i++) of_row[i] = table[2 * i];
    while (fine && c->found == NULL && score_rule_next(c->n, 1e-4 + 4 * c->step, of_row, &rule)) {
        char text[200];
        snprintf(text, sizeof text, "is multiplied by %s", rule.text);
        fine = try_numbers(o, false, table, rule.id, text);
    }
    free(of_row);
    return fine &&
           try_numbers(
               o, false, table, "by-position",
               "is multiplied by a number of its own for each query's position, the same in "
               "all heads");
}

bool compose_score_tables(composing *c) {
    operation o;
    double *table = NULL;
    bool plain = sinkproof_trace_first(c->s->trials.suspect.trace) == 0 &&
                 sinkproof_trace_sequences(c->s->trials.suspect.trace) <= 1;
    if (c->point != TRACE_A6 || !plain || c->n < 8 || c->report->rank != 3) return true;
    if (c->elements != c->s->trials.config->n_heads * c->n * c->n) return true;
    bool fine = operation_read(c, &o);
    table = malloc((2 * c->n + 1) * sizeof *table);
    fine = fine && (table != NULL || fail_for_memory(c->s));
    if (fine && o.n > 0 && fit_numbers(c, false, table)) fine = try_rules(&o, table);
    if (fine && o.n > 0 && c->found == NULL && fit_numbers(c, true, table))
        fine = try_numbers(&o, true, table, "by-distance",
                           "has a number added that depends on the distance between query and key "
                           "alone, the same in all heads (a bias of relative positions)");
    free(table);
    operation_free(&o);
    return fine;
}
