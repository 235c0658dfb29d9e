// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rows of a point that are mixed with a neighbour's, or multiplied by a number that depends on the
// position; numbers of small size that are lost.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- a neighbour's row. numbers: places on, its weight, what is left of the own row

enum { BY, WEIGHT, OWN };

static bool make_mixed(const sinkproof_making *of, double *y, double *width) {
    size_t each = of->all / of->n;
    double a = of->numbers[OWN], b = of->numbers[WEIGHT];
    for (size_t at = 0; at < of->all; at++) {
        long from = (long)at + (long)of->numbers[BY] * (long)each;
        if (from < 0 || from >= (long)of->all) continue;
        y[at] = a * of->x[at] + b * of->x[from];
        if (of->radius == NULL) continue;
        width[at] = fabs(a) * of->radius[at] + fabs(b) * of->radius[from];
    }
    return true;
}

static bool try_mixed(const operation *o, double *with, long by, bool kept) {
    composing *c = o->c;
    size_t each = c->elements / c->n;
    fitted_range t;
    chosen_number chosen[FIT_CHOICES];
    for (size_t at = 0; at < c->elements; at++) {
        long from = (long)at + by * (long)each;
        bool there = from >= 0 && from < (long)c->elements;
        with[at] = !there ? c->mid[at] : c->mid[from] + (kept ? c->mid[at] : 0);
    }
    if (!fit_number(c, &c->regions[0], c->mid, with, &t) || !t.good) return true;
    size_t n = fit_choose(c, &t, chosen);
    bool fine = true;
    for (size_t i = 0; i < n && fine && c->found == NULL; i++) {
        double b = chosen[i].value;
        made_kind made = {.make = make_mixed, .numbers = {(double)by, b, kept ? 1 : 1 - b}};
        const char *whose = by < 0 ? "before" : "after it";
        if (b == 0) continue;
        snprintf(made.id, sizeof made.id, "mixed%+ld-%.20s%s", by, chosen[i].text,
                 kept ? "-too" : "");
        if (kept)
            snprintf(made.text, sizeof made.text, "has the row of the position %s added, times %s",
                     whose, chosen[i].text);
        else
            snprintf(made.text, sizeof made.text,
                     "is mixed with the row of the position %s, which has the weight %s", whose,
                     chosen[i].text);
        fine = composing_try_made(o, &made);
    }
    return fine;
}

// ---- a factor of each row. numbers: the rule, and a and b of a + b i

typedef enum factor_rule {
    STRAIGHT,
    INVERSE,
    ROOT_INVERSE,
    NUMBER,
    ROOT,
    SHARE,
    FACTOR_RULES
} factor_rule;

static double factor_at(const sinkproof_making *of, size_t row) {
    double i = (double)row;
    switch ((factor_rule)of->numbers[0]) {
    case INVERSE:
        return 1 / (i + 1);
    case ROOT_INVERSE:
        return 1 / sqrt(i + 1);
    case NUMBER:
        return i + 1;
    case ROOT:
        return sqrt(i + 1);
    case SHARE:
        return (i + 1) / (double)of->n;
    default:
        return of->numbers[1] + of->numbers[2] * i;
    }
}

static bool make_factors(const sinkproof_making *of, double *y, double *width) {
    size_t each = of->all / of->n;
    for (size_t at = 0; at < of->all; at++) {
        double by = factor_at(of, at / each);
        y[at] = by * of->x[at];
        if (of->radius != NULL) width[at] = fabs(by) * of->radius[at];
    }
    return true;
}

// a and b of least squares over the factors of the rows.
static bool fit_line(const composing *c, fitted_range *a, fitted_range *b) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    size_t each = c->elements / c->n;
    for (size_t i = 0; i < c->n; i++) {
        double mm = 0, mv = 0;
        for (size_t at = i * each; at < (i + 1) * each; at++)
            mm += c->mid[at] * c->mid[at], mv += c->mid[at] * c->v[at];
        if (!(mm > 0)) continue;
        double w = sqrt(mm), f = mv / mm, at = (double)i;
        n += w, x += w * at, y += w * f, xx += w * at * at, xy += w * at * f;
    }
    double across = n * xx - x * x;
    if (!(across > 0)) return false;
    b->best = (n * xy - x * y) / across, a->best = (y - b->best * x) / n;
    double apart = fmax(c->step, 1e-6);
    *a = (fitted_range){.lo = a->best - apart, .hi = a->best + apart, .best = a->best};
    *b = (fitted_range){.lo = b->best * (1 - apart), .hi = b->best * (1 + apart), .best = b->best};
    return isfinite(a->best) && b->best != 0;
}

static bool try_factors(const operation *o) {
    static const char *const texts[FACTOR_RULES] = {[INVERSE] = "1/(i + 1)",
                                                    [ROOT_INVERSE] = "1/sqrt(i + 1)",
                                                    [NUMBER] = "i + 1",
                                                    [ROOT] = "sqrt(i + 1)",
                                                    [SHARE] = "(i + 1)/n"};
    bool fine = true;
    fitted_range a, b;
    chosen_number one[FIT_CHOICES], other[FIT_CHOICES];
    for (int rule = INVERSE; rule < FACTOR_RULES && fine && o->c->found == NULL; rule++) {
        made_kind made = {.make = make_factors, .numbers = {rule}};
        snprintf(made.id, sizeof made.id, "by-position-%d", rule);
        snprintf(made.text, sizeof made.text,
                 "is multiplied by a number that depends on the position i: %s", texts[rule]);
        fine = composing_try_made(o, &made);
    }
    if (!fine || o->c->found != NULL || !fit_line(o->c, &a, &b)) return fine;
    if (fit_choose(o->c, &a, one) == 0 || fit_choose(o->c, &b, other) == 0) return true;
    made_kind made = {.make = make_factors, .numbers = {STRAIGHT, one[0].value, other[0].value}};
    snprintf(made.id, sizeof made.id, "by-position-%.16s-%.16s", one[0].text, other[0].text);
    snprintf(made.text, sizeof made.text,
             "is multiplied by a number that depends on the position i: %.40s + i times %.40s",
             one[0].text, other[0].text);
    return composing_try_made(o, &made);
}

// ---- small numbers

static bool make_flushed(const sinkproof_making *of, double *y, double *width) {
    for (size_t at = 0; at < of->all; at++)
        if (fabs(of->x[at]) < of->numbers[0]) y[at] = width[at] = 0;
    return true;
}

// Zeros whose numbers are all smaller than those that are kept.
static bool try_flushed(const operation *o) {
    const composing *c = o->c;
    double lost = 0, kept = INFINITY, limit = 0;
    char text[32];
    for (size_t at = 0; at < c->elements; at++) {
        double size = fabs(c->mid[at]);
        if (c->marks[at] && c->v[at] != 0) return true;
        if (c->marks[at]) lost = fmax(lost, size);
        if (c->v[at] != 0) kept = fmin(kept, size);
    }
    if (lost == 0 || !(kept > lost)) return true;
    for (int digits = 1; digits < 8; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (lost + kept) / 2);
        limit = strtod(text, NULL);
        if (limit > lost && limit <= kept) break;
    }
    made_kind made = {.make = make_flushed, .numbers = {limit}};
    snprintf(made.id, sizeof made.id, "flushed-%s", text);
    snprintf(made.text, sizeof made.text, "is 0 where its size is below a limit (about %s)", text);
    return composing_try_made(o, &made);
}

bool compose_elements(composing *c) {
    operation o;
    if (sinkproof_trace_point_is_by_head(c->point) || c->point == TRACE_A11) return true;
    bool fine = operation_read(c, &o);
    double *with = malloc((c->elements + 1) * sizeof *with);
    if (fine && with == NULL) fine = fail_for_memory(c->s);
    for (int i = 0; i < 4 && fine && c->n > 1 && c->found == NULL; i++)
        fine = try_mixed(&o, with, i % 2 == 0 ? -1 : 1, i >= 2);
    if (fine && c->found == NULL) fine = try_flushed(&o);
    if (fine && c->found == NULL && c->n > 2) fine = try_factors(&o);
    free(with);
    operation_free(&o);
    return fine;
}
