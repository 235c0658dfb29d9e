// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Norms of another kind: the mean square times a number, another epsilon. For each row, least
// squares give the number that multiplies the definition's result; what this number is of the row's
// mean square tells the two.
#include "audit/diagnose/composed_norms.h"

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

static void fit_row(const composing *c, const sinkproof_region *region, norm_rows *rows, size_t i) {
    double mm = 0, mv = 0, vv = 0;
    bool some = region != NULL && region->along[ALONG_COORDINATES].end != 0;
    for (size_t k = i * rows->d; k < (i + 1) * rows->d; k++) {
        rows->square_n[i] += rows->x[k] * rows->x[k] / (double)rows->d;
        if (some && !sinkproof_indices_hold(&region->along[ALONG_COORDINATES], k % rows->d))
            continue;
        mm += c->mid[k] * c->mid[k], mv += c->mid[k] * c->v[k], vv += c->v[k] * c->v[k];
    }
    double least = (double)rows->d * c->least * c->least;
    rows->factor_n[i] = mm > 0 ? mv / mm : 0;
    double rest = vv - mv * rows->factor_n[i];
    rows->fits_n[i] = rows->factor_n[i] > 0 && rest <= vv * c->step * c->step * 2 + 64 * least;
}

bool norm_rows_read(composing *c, const sinkproof_region *region, norm_rows *rows, bool *known) {
    const sinkproof_config *config = c->s->trials.config;
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    *rows = (norm_rows){.d = c->elements / c->n, .n = c->n};
    *known = false;
    if (!sinkproof_trace_point_is_norm(c->point)) return true;
    rows->layer = c->place < config->n_layers ? c->place : 0;
    sinkproof_trace_inputs(config, c->point, rows->layer, inputs);
    const sinkproof_tensor *x =
        sinkproof_trace_find(c->s->trials.suspect.trace, inputs[0].point, inputs[0].layer);
    if (x == NULL || sinkproof_tensor_elements(x) != c->elements) return true;
    rows->x = calloc(c->elements + 2 * c->n, sizeof *rows->x);
    rows->fits_n = calloc(c->n, sizeof *rows->fits_n);
    if (rows->x == NULL || rows->fits_n == NULL) return fail_for_memory(c->s);
    rows->square_n = rows->x + c->elements, rows->factor_n = rows->square_n + c->n;
    for (size_t at = 0; at < c->elements; at++) rows->x[at] = sinkproof_tensor_value(x, at);
    for (size_t i = 0; i < c->n; i++) fit_row(c, region, rows, i);
    *known = true;
    return true;
}

void norm_rows_free(norm_rows *rows) {
    free(rows->x);
    free(rows->fits_n);
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

const char *composed_norm_words(const composing *c) {
    return c->point == TRACE_A1   ? "the norm before attention"
           : c->point == TRACE_M1 ? "the norm before the experts"
                                  : "the last norm";
}

composed_mistake *composed_norm_new(composing *c, mistake_suppose *operate,
                                    const sinkproof_region *region) {
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    sinkproof_trace_weights(c->s->trials.config, c->point, slots);
    m->operate = operate, m->region = *region;
    m->mistake.slots = 1u << slots[0];
    return m;
}

// numbers: what multiplies the mean square, and epsilon.
static composed_mistake *norm_new(composing *c, double times, double eps,
                                  const sinkproof_region *region) {
    composed_mistake *m = composed_norm_new(c, norm_otherwise, region);
    if (m != NULL) m->numbers[0] = times, m->numbers[1] = eps;
    return m;
}

static bool try_times(composing *c, double times, double d, const sinkproof_region *region,
                      const char *text) {
    composed_mistake *m = norm_new(c, times, c->s->trials.config->rms_eps, region);
    if (m == NULL) return false;
    composed_name(m, "%s-mean-square-times-%.6g", sinkproof_trace_point_name(c->point), times);
    if (times == d)
        composed_say(m, "the sum of squares in %s is not divided by their number",
                     composed_norm_words(c));
    else if (times == d / (d - 1))
        composed_say(m, "the sum of squares in %s is divided by n - 1 (%g), not by n",
                     composed_norm_words(c), d - 1);
    else if (fabs(d / times - nearbyint(d / times)) < 1e-6 * d / times && times < 1)
        composed_say(m,
                     "the sum of squares in %s is divided by %g, not by %g, the width: the mean "
                     "square is multiplied by %s",
                     composed_norm_words(c), d / times, d, text);
    else
        composed_say(m, "the mean square in %s is multiplied by %s", composed_norm_words(c), text);
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_eps(composing *c, double eps, const char *text, const sinkproof_region *region) {
    composed_mistake *m = norm_new(c, 1, eps, region);
    if (m == NULL) return false;
    composed_name(m, "%s-eps-%s", sinkproof_trace_point_name(c->point), text);
    composed_say(m, "the epsilon of %s is %s", composed_norm_words(c), text);
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
    composed_mistake *probe = norm_new(c, 1, eps, region);
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

const sinkproof_region *norm_region_of_coordinates(const composing *c, size_t *r) {
    while (*r < c->n_regions) {
        const sinkproof_region *region = &c->regions[(*r)++];
        if (region->along[ALONG_COORDINATES].end != 0) return region;
    }
    return NULL;
}

bool compose_norms(composing *c) {
    norm_rows rows;
    bool known, fine = norm_rows_read(c, NULL, &rows, &known);
    for (size_t r = 0; r < c->n_regions && known && fine && c->found == NULL; r++)
        fine = try_fit(c, &rows, &c->regions[r]);
    norm_rows_free(&rows);
    const sinkproof_region *some;
    for (size_t r = 0; fine && known && c->found == NULL;) {
        some = norm_region_of_coordinates(c, &r);
        if (some == NULL) break;
        fine = norm_rows_read(c, some, &rows, &known);
        if (fine && known) fine = try_fit(c, &rows, some);
        norm_rows_free(&rows);
    }
    return fine;
}

// ---- what a row is divided by

enum { SOME_ROWS = 64 }; // of many

const sinkproof_region *norm_divisors_region(const norm_divisors *s, size_t r) {
    if (s->only != NULL) return r == 0 ? s->only : NULL;
    return r < s->c->n_regions ? &s->c->regions[r] : NULL;
}

bool norm_divisors_read(composing *c, const sinkproof_region *only, norm_divisors *s, bool *known) {
    *s = (norm_divisors){.c = c, .only = only};
    bool fine = norm_rows_read(c, only, &s->rows, known);
    if (!fine || !*known) return fine;
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    sinkproof_trace_weights(c->s->trials.config, c->point, slots);
    sinkproof_matrix scales =
        sinkproof_model_slot(c->s->trials.suspect.model, s->rows.layer, slots[0]);
    s->scale_d = calloc(3 * s->rows.d, sizeof *s->scale_d);
    if (s->scale_d == NULL) return fail_for_memory(c->s);
    s->lo_d = s->scale_d + s->rows.d, s->hi_d = s->lo_d + s->rows.d;
    if (scales.cols == s->rows.d) sinkproof_matrix_row(&scales, 0, s->scale_d);
    return true;
}

void norm_divisors_free(norm_divisors *s) {
    free(s->scale_d);
    norm_rows_free(&s->rows);
}

bool norm_divisors_are_near(const norm_divisors *s, sinkproof_norm_squares *of,
                            const double *numbers, const double *table) {
    const composing *c = s->c;
    double near = fmax(2 * c->step, 1e-4), eps = c->s->trials.config->rms_eps;
    size_t rows = 0, far = 0, step = s->rows.n > SOME_ROWS ? s->rows.n / SOME_ROWS : 1;
    for (size_t i = 0; i < s->rows.n && 8 * far <= s->rows.n / step; i += step) {
        const sinkproof_norm_question q = {.trace = c->s->trials.suspect.trace,
                                           .config = c->s->trials.config,
                                           .point = c->point,
                                           .layer = c->place,
                                           .n = s->rows.n,
                                           .d = s->rows.d,
                                           .token = i,
                                           .x_nd = s->rows.x,
                                           .scale_d = s->scale_d,
                                           .eps = eps,
                                           .numbers = numbers,
                                           .table = table};
        double factor = s->rows.factor_n[i];
        bool outside = false;
        for (size_t k = 0; k < s->rows.d && !outside; k++) outside = c->marks[i * s->rows.d + k];
        if (!outside) continue;
        double implied = (s->rows.square_n[i] + eps) / (factor * factor);
        rows++;
        far += !s->rows.fits_n[i] || !of(&q, s->lo_d, s->hi_d) ||
               !(implied > s->lo_d[0] * (1 - near) && implied < s->hi_d[0] * (1 + near));
    }
    return rows > 0 && 8 * far <= rows;
}
