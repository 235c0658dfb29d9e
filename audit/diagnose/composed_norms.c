// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Norms of another kind: the mean square times a number, another epsilon, no root, the mean square
// of some coordinates. For each row, least squares give the number that multiplies the definition's
// result; what this number is of the row's mean square tells the kind.
#include "audit/diagnose/composed_fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// y = scale x / sqrt(times (mean square) + eps): scales over sqrt(times), with eps over times.
static bool norm_otherwise(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    double times = m->numbers[0];
    mistake_weight_edit *e = times != 1 ? add_weight_edit(s, k->slots) : NULL;
    if (times != 1 && e == NULL) return false;
    if (e != NULL) e->reading.factor = 1 / sqrt(times);
    s->config.rms_eps = m->numbers[1] / times;
    return true;
}

// Where epsilon is added.
enum { EPS_INSIDE, EPS_OUTSIDE, EPS_NOWHERE };

static bool norm_by_other_coordinates(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    s->meaning.norm_over = (sinkproof_norm_over)m->numbers[0];
    s->meaning.norm_parts = (size_t)m->numbers[1];
    s->meaning.eps_outside = m->numbers[2] == EPS_OUTSIDE;
    if (m->numbers[2] == EPS_NOWHERE) s->config.rms_eps = 0;
    if (m->numbers[0] != SINKPROOF_NORM_TWICE) return true;
    mistake_weight_edit *e = add_weight_edit(s, k->slots);
    if (e != NULL) e->rewritten = true, e->change.kind = SINKPROOF_CHANGE_SQUARE;
    return e != NULL;
}

// The mean square of each row of the input, and the fitted factor of the row.
typedef struct norm_rows {
    size_t d, n;
    double *square_n, *factor_n;
    bool *fits_n; // the row is the definition's, but for the factor
} norm_rows;

static void fit_row(const composing *c, const sinkproof_tensor *x, norm_rows *rows, size_t i) {
    double mm = 0, mv = 0, vv = 0;
    for (size_t k = i * rows->d; k < (i + 1) * rows->d; k++) {
        double value = sinkproof_tensor_value(x, k);
        rows->square_n[i] += value * value / (double)rows->d;
        mm += c->mid[k] * c->mid[k], mv += c->mid[k] * c->v[k], vv += c->v[k] * c->v[k];
    }
    double least = (double)rows->d * c->least * c->least;
    rows->factor_n[i] = mm > 0 ? mv / mm : 0;
    double rest = vv - mv * rows->factor_n[i];
    rows->fits_n[i] = rows->factor_n[i] > 0 && rest <= vv * c->step * c->step * 2 + 64 * least;
}

// times and eps of (mean square) times + eps = ((mean square) + own eps) / factor^2, by least
// squares over the rows that fit. Returns false if they do not tell.
static bool fit_times(const norm_rows *rows, double own, double *times, double *eps) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t i = 0; i < rows->n; i++) {
        double square = rows->square_n[i], f = rows->factor_n[i];
        if (!rows->fits_n[i]) continue;
        double weight = 1 / ((square + own) * (square + own)), to = (square + own) / (f * f);
        n += weight, x += weight * square, y += weight * to;
        xx += weight * square * square, xy += weight * square * to;
    }
    double across = n * xx - x * x;
    if (!(n > 0) || !(across > 1e-12 * n * xx)) return false;
    *times = (n * xy - x * y) / across;
    *eps = (y - *times * x) / n;
    return true;
}

static const char *norm_words(const composing *c) {
    return c->point == TRACE_A1   ? "the norm before attention"
           : c->point == TRACE_M1 ? "the norm before the experts"
                                  : "the last norm";
}

static composed_mistake *norm_new(composing *c, mistake_suppose *operate, double a, double b,
                                  const sinkproof_region *region) {
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    sinkproof_trace_weights(c->s->trials.config, c->point, slots);
    m->operate = operate, m->numbers[0] = a, m->numbers[1] = b, m->region = *region;
    m->mistake.slots = 1u << slots[0];
    return m;
}

static bool try_times(composing *c, double times, double d, const sinkproof_region *region,
                      const char *text) {
    composed_mistake *m = norm_new(c, norm_otherwise, times, c->s->trials.config->rms_eps, region);
    if (m == NULL) return false;
    composed_name(m, "%s-mean-square-times-%.6g", sinkproof_trace_point_name(c->point), times);
    if (times == d)
        composed_say(m, "the sum of squares in %s is not divided by their number", norm_words(c));
    else if (times == d / (d - 1))
        composed_say(m, "the sum of squares in %s is divided by n - 1 (%g), not by n",
                     norm_words(c), d - 1);
    else
        composed_say(m, "the mean square in %s is multiplied by %s", norm_words(c), text);
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_eps(composing *c, double eps, const char *text, const sinkproof_region *region) {
    composed_mistake *m = norm_new(c, norm_otherwise, 1, eps, region);
    if (m == NULL) return false;
    composed_name(m, "%s-eps-%s", sinkproof_trace_point_name(c->point), text);
    composed_say(m, "the epsilon of %s is %s", norm_words(c), text);
    composed_say_region(c, m);
    return composing_try(c, m);
}

static size_t count_for_eps(composing *c, void *of, double eps, bool *fine) {
    composed_mistake *probe = of;
    probe->numbers[1] = eps;
    return eps >= 0 ? composing_count(c, &probe->mistake, fine) : SIZE_MAX;
}

// Rounded rows tell epsilon only roughly: the number that leaves no element outside is sought.
static bool try_counted_eps(composing *c, double eps, const sinkproof_region *region) {
    composed_mistake *probe = norm_new(c, norm_otherwise, 1, eps, region);
    fitted_range t = {.lo = 0.75 * eps, .hi = 1.25 * eps, .best = eps};
    if (probe == NULL || !fit_by_count(c, count_for_eps, probe, &t)) return false;
    chosen_number by[FIT_CHOICES];
    size_t n = fit_choose(c, &t, by);
    bool fine = true;
    for (size_t i = 0; i < n && fine && c->found == NULL; i++)
        if (by[i].value >= t.lo && by[i].value <= t.hi)
            fine = try_eps(c, by[i].value, by[i].text, region);
    return fine;
}

static bool try_fit(composing *c, const norm_rows *rows, const sinkproof_region *region) {
    double own = c->s->trials.config->rms_eps, d = (double)rows->d, times, eps;
    char text[32];
    bool fine = true;
    if (!fit_times(rows, own, &times, &eps)) return true;
    const fitted_range t = {.lo = times * (1 - 1e-3), .hi = times * (1 + 1e-3), .best = times};
    if (fabs(times / d - 1) < 0.05) fine = try_times(c, d, d, region, "");
    if (fine && c->found == NULL && fabs(times * (d - 1) / d - 1) < 0.002)
        fine = try_times(c, d / (d - 1), d, region, "");
    if (fine && c->found == NULL && fabs(times - 1) > 0.002) {
        chosen_number by[FIT_CHOICES];
        size_t n = fit_choose(c, &t, by);
        for (size_t i = 0; i < n && fine && c->found == NULL; i++)
            if (by[i].value > 0 && by[i].value != 1)
                fine = try_times(c, by[i].value, d, region, by[i].text);
    }
    for (int digits = 1; digits <= 4 && fine && c->found == NULL && eps > 0; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, eps);
        if (fabs(times - 1) < 0.01) fine = try_eps(c, strtod(text, NULL), text, region);
    }
    bool rounded = c->step > 0x1p-12 && eps > 0 && fabs(times - 1) < 0.1;
    return fine && (c->found != NULL || !rounded || try_counted_eps(c, eps, region));
}

static bool try_over(composing *c, sinkproof_norm_over over, size_t parts, const char *text,
                     const sinkproof_region *region, int eps) {
    composed_mistake *m = norm_new(c, norm_by_other_coordinates, over, (double)parts, region);
    if (m == NULL) return false;
    m->numbers[2] = eps;
    composed_name(m, "%s-norm-%d-%zu%s", sinkproof_trace_point_name(c->point), (int)over, parts,
                  eps == EPS_OUTSIDE   ? "+eps"
                  : eps == EPS_NOWHERE ? "-eps"
                                       : "");
    composed_say(m, "%s %s%s", norm_words(c), text,
                 eps == EPS_OUTSIDE   ? ", plus epsilon"
                 : eps == EPS_NOWHERE ? ", without epsilon"
                                      : "");
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_parts(composing *c, const sinkproof_region *region) {
    static const struct {
        sinkproof_norm_over over;
        const char *text;
    } of[] = {{SINKPROOF_NORM_PARTS, "normalises each of %zu equal parts of the coordinates alone"},
              {SINKPROOF_NORM_FIRST, "takes the mean square of the first 1/%zu of the coordinates"},
              {SINKPROOF_NORM_LAST, "takes the mean square of the last 1/%zu of the coordinates"}};
    const size_t counts[] = {2, 3, 4, 6, 8, 16, c->s->trials.config->n_heads};
    size_t d = c->elements / c->n;
    bool fine = true;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (size_t k = 0; k < sizeof counts / sizeof counts[0] && fine && c->found == NULL; k++) {
            char text[120];
            if (d % counts[k] != 0) continue;
            snprintf(text, sizeof text, of[i].text, counts[k]);
            fine = try_over(c, of[i].over, counts[k], text, region, EPS_INSIDE);
        }
    return fine;
}

static bool try_kinds(composing *c, const sinkproof_region *region) {
    static const struct {
        sinkproof_norm_over over;
        bool outside; // epsilon is also asked outside of a root
        const char *text;
    } kinds[] = {
        {SINKPROOF_NORM_SQUARE, false, "divides by the mean square itself: the root is missing"},
        {SINKPROOF_NORM_NONE, false,
         "is left out but for its scales: rows are not divided by their root mean square"},
        {SINKPROOF_NORM_TWICE, false, "is applied twice"},
        {SINKPROOF_NORM_SPREAD, false,
         "divides by the standard deviation, and the mean is not subtracted"},
        {SINKPROOF_NORM_ROW_BEFORE, false,
         "divides each row by the root mean square of the row before"},
        {SINKPROOF_NORM_ROW, false, "divides each row by the root mean square of the first row"},
        {SINKPROOF_NORM_LARGEST, true, "divides by the largest absolute value in the row"},
        {SINKPROOF_NORM_SIZES, true,
         "divides by the mean of the absolute values, not by the root of the mean square"}};
    bool fine = true;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && fine && c->found == NULL; i++) {
        for (int eps = EPS_INSIDE; eps <= (kinds[i].outside ? EPS_NOWHERE : EPS_INSIDE); eps++)
            if (fine && c->found == NULL)
                fine = try_over(c, kinds[i].over, 0, kinds[i].text, region, eps);
    }
    return fine && (c->found != NULL || try_parts(c, region));
}

bool compose_norms(composing *c) {
    const sinkproof_config *config = c->s->trials.config;
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    if (!sinkproof_trace_point_is_norm(c->point)) return true;
    sinkproof_trace_inputs(config, c->point, c->place < config->n_layers ? c->place : 0, inputs);
    const sinkproof_tensor *x =
        sinkproof_trace_find(c->s->trials.suspect.trace, inputs[0].point, inputs[0].layer);
    norm_rows rows = {.d = c->elements / c->n, .n = c->n};
    if (x == NULL || sinkproof_tensor_elements(x) != c->elements) return true;
    rows.square_n = calloc(c->n, sizeof *rows.square_n);
    rows.factor_n = calloc(c->n, sizeof *rows.factor_n);
    rows.fits_n = calloc(c->n, sizeof *rows.fits_n);
    bool fine = rows.square_n != NULL && rows.factor_n != NULL && rows.fits_n != NULL;
    if (!fine) fail_for_memory(c->s);
    for (size_t i = 0; fine && i < c->n; i++) fit_row(c, x, &rows, i);
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        fine = try_fit(c, &rows, &c->regions[r]);
        if (fine && c->found == NULL) fine = try_kinds(c, &c->regions[r]);
    }
    free(rows.square_n);
    free(rows.factor_n);
    free(rows.fits_n);
    return fine;
}
