// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Scales of a norm that are its own in other places, or times a number plus another. The scales
// that the engine used are fitted to the rows, coordinate by coordinate.
#include "audit/diagnose/composed_norms.h"
#include "audit/diagnose/composed_values.h"
#include "audit/diagnose/places.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct fitted_scales {
    composing *c;
    norm_rows rows;
    sinkproof_slot slot;
    double *own_d, *used_d; // NAN: nothing tells
} fitted_scales;

// The numbers: what multiplies the scales, what is added, and the format of the sum.
enum { TIMES, PLUS, FORMAT };

static bool scale_by_sum(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    mistake_weight_edit *e = add_weight_edit(s, k->slots);
    if (e == NULL) return false;
    e->reading.factor = m->numbers[TIMES], e->reading.addend = m->numbers[PLUS];
    if (m->numbers[FORMAT] <= 0) return true;
    e = add_weight_edit(s, k->slots);
    if (e != NULL) e->rewritten = true, e->kept = (sinkproof_format)m->numbers[FORMAT];
    return e != NULL;
}

// The scales under which the rows are near, by least squares over them.
static void fit_scales(fitted_scales *f) {
    const composing *c = f->c;
    size_t d = f->rows.d;
    double eps = c->s->trials.config->rms_eps;
    for (size_t k = 0; k < d; k++) {
        double xx = 0, xv = 0;
        for (size_t i = 0; i < f->rows.n; i++) {
            double x = f->rows.x[i * d + k] / sqrt(f->rows.square_n[i] + eps);
            xx += x * x, xv += x * c->v[i * d + k];
        }
        f->used_d[k] = xx > 0 ? xv / xx : NAN;
    }
}

static bool rows_are_near(const fitted_scales *f) {
    const composing *c = f->c;
    size_t d = f->rows.d, far = 0;
    double eps = c->s->trials.config->rms_eps;
    for (size_t i = 0; i < f->rows.n; i++)
        for (size_t k = 0; k < d; k++) {
            double x = f->rows.x[i * d + k] / sqrt(f->rows.square_n[i] + eps);
            far += !value_is_near(c, i * d + k, x * f->used_d[k]);
        }
    return 8 * far <= c->elements;
}

static bool is_scale(const fitted_scales *f, size_t k, double scale) {
    return fabs(f->used_d[k] - scale) <= 2 * f->c->step * fabs(scale);
}

// ---- other places

static bool reads_so(const fitted_scales *f, const sinkproof_from *from) {
    size_t far = 0, d = f->rows.d;
    for (size_t k = 0; k < d && 16 * far <= d; k++) {
        size_t at = sinkproof_from_index(from, k, d);
        far += at >= d || !is_scale(f, k, f->own_d[at]);
    }
    return 16 * far <= d;
}

static bool try_places(fitted_scales *f, sinkproof_from from, const char *id, const char *text) {
    composing *c = f->c;
    if (c->found != NULL || !reads_so(f, &from)) return true;
    bool fine = true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->edit =
            (mistake_weight_edit){.slots = 1u << f->slot, .rewritten = true, .column_from = from};
        m->region = c->regions[r];
        composed_name(m, "%s-%s", sinkproof_slot_name(f->slot), id);
        composed_say(m, "%s are read %s", composed_slot_words(f->slot), text);
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static bool try_all_places(fitted_scales *f) {
    size_t d = f->rows.d;
    bool fine = true;
    char id[40], text[160];
    for (size_t by = 1; by < d && fine; by++) {
        bool before = 2 * by > d;
        snprintf(id, sizeof id, "rolled+%zu", by);
        snprintf(text, sizeof text, "%s %s, in a circle",
                 sinkproof_counted(before ? d - by : by, "place").text, before ? "before" : "on");
        fine = try_places(f, (sinkproof_from){.source = SINKPROOF_FROM_ROLLED, .by = (long)by}, id,
                          text);
        if (!fine || by < 2) continue;
        snprintf(id, sizeof id, "modulo-%zu", by);
        snprintf(text, sizeof text,
                 "at the number of the coordinate modulo %zu: the first %zu again and again", by,
                 by);
        fine =
            try_places(f,
                       (sinkproof_from){
                           .source = SINKPROOF_FROM_RULE, .by = (long)by, .rule = read_from_modulo},
                       id, text);
    }
    return fine;
}

// ---- a factor and an addend

static bool fit_sum(const fitted_scales *f, double *times, double *plus) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t k = 0; k < f->rows.d; k++) {
        double own = f->own_d[k], used = f->used_d[k];
        if (!isfinite(used)) continue;
        n++, x += own, y += used, xx += own * own, xy += own * used;
    }
    double across = n * xx - x * x;
    if (!(across > 1e-9 * n * xx)) return false;
    *times = (n * xy - x * y) / across, *plus = (y - *times * x) / n;
    size_t far = 0;
    for (size_t k = 0; k < f->rows.d; k++) far += !is_scale(f, k, *times * f->own_d[k] + *plus);
    return 16 * far <= f->rows.d;
}

static bool try_sum(fitted_scales *f, double times, double plus, sinkproof_format format,
                    const sinkproof_region *region) {
    composing *c = f->c;
    composed_mistake *m = composed_norm_new(c, scale_by_sum, region);
    if (m == NULL) return false;
    m->numbers[TIMES] = times, m->numbers[PLUS] = plus, m->numbers[FORMAT] = format;
    bool one = !(times < 1) && !(times > 1) && !(plus < 1) && !(plus > 1);
    if (one) // the catalogue's, whose sum is not rounded
        composed_name(m, "norm-plus-one");
    else
        composed_name(m, "%s-scales-times-%g-plus-%g%s", sinkproof_trace_point_name(c->point),
                      times, plus, format == SINKPROOF_BF16 ? "-bf16" : "");
    composed_say(m, "%s have ", composed_slot_words(f->slot));
    if (times < 1 || times > 1) composed_say(m, "%g times their numbers, and ", times);
    composed_say(m, "%g added%s", plus,
                 format == SINKPROOF_BF16 ? ", and the sum is rounded to bfloat16" : "");
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_sums(fitted_scales *f) {
    composing *c = f->c;
    double times, plus;
    bool fine = true;
    if (!fit_sum(f, &times, &plus)) return true;
    for (int digits = 1; digits <= 5; digits++) {
        char text[40];
        snprintf(text, sizeof text, "%.*g", digits, times);
        double t = strtod(text, NULL);
        if (fabs(times - 1) < 4 * c->step) t = 1;
        snprintf(text, sizeof text, "%.*g", digits, plus);
        double p = strtod(text, NULL);
        if (fabs(p) < c->step) continue; // a factor alone: compose_weight_factors
        for (int narrow = 0; narrow < 2; narrow++)
            for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++)
                fine = try_sum(f, t, p, narrow ? SINKPROOF_BF16 : SINKPROOF_REAL, &c->regions[r]);
    }
    return fine;
}

bool compose_norm_scales(composing *c) {
    enum { FEWEST_ROWS = 4 };
    fitted_scales f = {.c = c};
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    bool known, fine = norm_rows_read(c, NULL, &f.rows, &known);
    if (fine && known && f.rows.n >= FEWEST_ROWS) {
        sinkproof_trace_weights(c->s->trials.config, c->point, slots);
        f.slot = slots[0];
        sinkproof_matrix own =
            sinkproof_model_slot(c->s->trials.suspect.model, f.rows.layer, slots[0]);
        f.own_d = calloc(2 * f.rows.d, sizeof *f.own_d);
        fine = f.own_d != NULL || fail_for_memory(c->s);
        f.used_d = f.own_d != NULL ? f.own_d + f.rows.d : NULL;
        if (fine && own.cols == f.rows.d) {
            sinkproof_matrix_row(&own, 0, f.own_d);
            fit_scales(&f);
            if (rows_are_near(&f)) fine = try_sums(&f) && try_all_places(&f);
        }
        free(f.own_d);
    }
    norm_rows_free(&f.rows);
    return fine;
}
