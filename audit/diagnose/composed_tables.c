// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Codes and scales of MXFP4 by another table: a product is a sum of one part for each code (or each
// scale), and least squares give the number that each stands for.
#include "audit/diagnose/composed_values.h"
#include "audit/diagnose/normal_equations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = 32, EACH_GROUP = 24, BLOCK = 32 };

typedef struct tables {
    composing *c;
    operation o;
    bool of_scales;
    size_t groups;
    int exponents[MOST_GROUPS]; // of the scales, by group
    size_t n, *at;
    double *rows; // [n][groups + 1]: the parts, and the value
} tables;

static size_t group_of_scale(tables *t, float scale) {
    int exponent = scale > 0 ? ilogbf(scale) : -127;
    for (size_t g = 0; g < t->groups; g++)
        if (t->exponents[g] == exponent) return g;
    if (t->groups == MOST_GROUPS) return MOST_GROUPS;
    t->exponents[t->groups] = exponent;
    return t->groups++;
}

// Elements outside, spread over the point.
static bool draw(tables *t) {
    const composing *c = t->c;
    size_t want = MOST_GROUPS * EACH_GROUP, outside = 0, seen = 0;
    for (size_t at = 0; at < c->elements; at++) outside += c->marks[at];
    t->at = malloc((want + 1) * sizeof *t->at);
    t->rows = calloc(want * (MOST_GROUPS + 1), sizeof *t->rows);
    if (t->at == NULL || t->rows == NULL) return fail_for_memory(c->s);
    for (size_t at = 0; at < c->elements && t->n < want; at++)
        if (c->marks[at] && seen++ * want >= t->n * outside) t->at[t->n++] = at;
    return true;
}

// The parts of one element. Returns false if it has too many groups, or no memory.
static bool split(tables *t, size_t s, double *row_c, float *scale_b) {
    const composing *c = t->c;
    const sinkproof_matrix *stack = &t->o.weights[0];
    sinkproof_place place =
        sinkproof_place_of(c->s->trials.config, c->point, c->n, c->chosen_nk, t->at[s]);
    size_t e = place.along[ALONG_EXPERTS], i = place.along[ALONG_ROWS];
    size_t slot = c->point == TRACE_M9 ? place.along[ALONG_SLOTS] : 0, cols = stack->cols;
    if (e == SIZE_MAX) return false;
    const double *x = &t->o.x[0][i * t->o.width[0] + slot * cols];
    sinkproof_matrix one = sinkproof_matrix_at(stack, e);
    sinkproof_matrix_row(&one, place.along[ALONG_COORDINATES], row_c);
    if (!sinkproof_matrix_scales(&one, place.along[ALONG_COORDINATES], scale_b)) return false;
    double *parts = &t->rows[s * (MOST_GROUPS + 1)];
    for (size_t col = 0; col < cols; col++) {
        double scale = scale_b[col / BLOCK];
        size_t g = t->of_scales ? group_of_scale(t, scale_b[col / BLOCK])
                                : sinkproof_code_index(row_c[col] / scale);
        if (g >= MOST_GROUPS) return false;
        parts[g] += x[col] * (t->of_scales ? row_c[col] : scale);
    }
    parts[MOST_GROUPS] = c->v[t->at[s]];
    return true;
}

// What each group stands for, by least squares; NAN where the elements do not tell. Returns false
// if memory runs out.
static bool solve(const tables *t, double *by_g) {
    size_t m = t->groups;
    double *a = calloc(m * m + 1, sizeof *a);
    if (a == NULL) return false;
    memset(by_g, 0, m * sizeof *by_g);
    for (size_t s = 0; s < t->n; s++) {
        const double *row = &t->rows[s * (MOST_GROUPS + 1)];
        for (size_t i = 0; i < m; i++) {
            for (size_t j = i; j < m; j++) a[i * m + j] += row[i] * row[j];
            by_g[i] += row[i] * row[MOST_GROUPS];
        }
    }
    solve_normal(m, a, by_g, NORMAL_DEPENDENT);
    for (size_t i = 0; i < m; i++)
        if (!(a[i * m + i] > 0)) by_g[i] = NAN;
    free(a);
    return true;
}

// Whether all but one of eight of the elements are near with these numbers.
static bool groups_are_near(const tables *t, const double *by_g) {
    size_t far = 0;
    for (size_t s = 0; s < t->n; s++) {
        const double *row = &t->rows[s * (MOST_GROUPS + 1)];
        double value = 0;
        for (size_t g = 0; g < t->groups; g++) value += isnan(by_g[g]) ? 0 : by_g[g] * row[g];
        far += !value_is_near(t->c, t->at[s], value);
    }
    return t->n > 2 * t->groups && 8 * far <= t->n;
}

// ---- trials

static bool try_edit(const tables *t, const mistake_weight_edit *edit, const char *id,
                     const char *text) {
    composing *c = t->c;
    bool fine = true;
    // of codes that are no halves the product with the scale may be rounded
    size_t kept = edit->of_codes ? 2 : 1;
    for (size_t r = 0; r < kept * c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->edit = *edit, m->region = c->regions[r / kept];
        if (r % kept == 1) m->edit.kept = SINKPROOF_BF16;
        m->edit.slots = 1u << t->o.slots[0], m->edit.rewritten = true;
        composed_name(m, "%s-%s", sinkproof_slot_name(t->o.slots[0]), id);
        composed_say(m, "%s are read %s", composed_slot_words(t->o.slots[0]), text);
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static const double codes[SINKPROOF_CODES / 2] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

static double code_value(size_t g) {
    double size = codes[g % (SINKPROOF_CODES / 2)];
    return g < SINKPROOF_CODES / 2 ? size : -size;
}

static void name_codes(const double *by_g, char *text, size_t size) {
    bool integers = true, flushed = true, even = true;
    size_t length;
    double largest = 0; // of equal steps: seven of them
    for (size_t g = 0; g < SINKPROOF_CODES; g++) largest = fmax(largest, fabs(by_g[g]));
    for (size_t g = 0; g < SINKPROOF_CODES; g++) {
        double steps = 7 * by_g[g] / largest;
        even = even && fabs(steps - nearbyint(steps)) < 1e-6;
    }
    for (size_t g = 0; g < SINKPROOF_CODES; g++) {
        double number = (double)(g % (SINKPROOF_CODES / 2)), own = code_value(g);
        integers = integers && by_g[g] == (g < SINKPROOF_CODES / 2 ? number : -number);
        flushed = flushed && by_g[g] == (fabs(own) == 0.5 ? 0 : own);
    }
    snprintf(text, size, "%s",
             integers  ? "with codes taken as integers, 0 to 7 with a sign"
             : flushed ? "with the codes of 0.5 (subnormals) taken as 0"
             : even    ? "with codes of a uniform grid of seven equal steps, as int4 has:"
                       : "with another table of codes:");
    for (size_t g = 0; g < SINKPROOF_CODES && !integers && !flushed; g++) {
        length = strlen(text);
        if (by_g[g] == code_value(g)) continue;
        snprintf(text + length, size - length, " %g as %.4g,", code_value(g), by_g[g]);
    }
    length = strlen(text);
    if (length > 0 && text[length - 1] == ',') text[length - 1] = '\0';
}

// A fraction of a small denominator that is near, as grids of equal steps have; or the number.
static double simple_fraction(double x) {
    for (int q = 1; q <= 15; q++) {
        double near = nearbyint(q * x) / q;
        if (fabs(near - x) < 0.01) return near;
    }
    return x;
}

// Numbers of a quarter where they are near one, or of another fraction; those that no element has
// are as defined.
static bool try_codes_near(const tables *t, const double *fitted_g, bool fractions) {
    bool other = false;
    char text[256];
    double by_g[SINKPROOF_CODES];
    for (size_t g = 0; g < SINKPROOF_CODES; g++) {
        double own = code_value(g), fitted = isnan(fitted_g[g]) ? own : fitted_g[g];
        double quarter = nearbyint(4 * fitted) / 4;
        by_g[g] = fractions                       ? simple_fraction(fitted)
                  : fabs(quarter - fitted) < 0.06 ? quarter
                                                  : fitted;
        other = other || by_g[g] != own;
    }
    if (!other || !groups_are_near(t, by_g)) return true;
    const double *kept = (const double *)(const void *)composing_keep_marks(t->c, sizeof by_g,
                                                                            (const uint8_t *)by_g);
    if (kept == NULL) return fail_for_memory(t->c->s);
    name_codes(by_g, text, sizeof text);
    const mistake_weight_edit edit = {.of_codes = true,
                                      .change = {.kind = SINKPROOF_CHANGE_TABLE, .table = kept}};
    return try_edit(t, &edit, "table", text);
}

static bool try_codes(const tables *t, const double *by_g) {
    return try_codes_near(t, by_g, false) && (t->c->found != NULL || try_codes_near(t, by_g, true));
}

static bool try_scales(const tables *t, const double *by_g) {
    enum { SCALES = 255 };
    double factors[SCALES];
    char text[256] = "with other scales:";
    size_t others = 0, numbers = 0;
    for (size_t i = 0; i < SCALES; i++) factors[i] = 1;
    for (size_t g = 0; g < t->groups; g++) {
        double by = isnan(by_g[g]) ? 1 : by_g[g], power = by > 0 ? exp2(nearbyint(log2(by))) : 0;
        if (fabs(by) < 0.02)
            by = 0;
        else if (fabs(by - power) < 0.05 * power)
            by = power;
        factors[t->exponents[g] + 127] = by;
        others += by != 1, numbers++;
        size_t length = strlen(text);
        if (by == 1) continue;
        if (by > 0 && by == power)
            snprintf(text + length, sizeof text - length, " 2^%d as 2^%d,", t->exponents[g],
                     t->exponents[g] + ilogb(by));
        else
            snprintf(text + length, sizeof text - length, " 2^%d times %.4g,", t->exponents[g], by);
    }
    if (others == 0 || numbers < 2) return true;
    text[strlen(text) - 1] = '\0';
    const double *kept = (const double *)(const void *)composing_keep_marks(
        t->c, sizeof factors, (const uint8_t *)factors);
    if (kept == NULL) return fail_for_memory(t->c->s);
    const mistake_weight_edit edit = {.other_scales = true, .scale_factors = kept};
    return try_edit(t, &edit, "scales-by-table", text);
}

static bool try_table(composing *c, tables *t) {
    size_t cols = t->o.weights[0].cols;
    double by_g[MOST_GROUPS], *row_c = malloc((cols + 1) * sizeof *row_c);
    float *scale_b = malloc((cols / BLOCK + 1) * sizeof *scale_b);
    bool fine = (row_c != NULL && scale_b != NULL) || fail_for_memory(c->s);
    bool whole = fine && t->n > 0;
    if (!t->of_scales) t->groups = SINKPROOF_CODES;
    for (size_t s = 0; whole && s < t->n; s++) whole = split(t, s, row_c, scale_b);
    if (whole && solve(t, by_g) && groups_are_near(t, by_g))
        fine = t->of_scales ? try_scales(t, by_g) : try_codes(t, by_g);
    free(row_c);
    free(scale_b);
    return fine;
}

bool compose_tables(composing *c) {
    bool fine = true;
    if ((c->point != TRACE_M5 && c->point != TRACE_M9) || c->chosen_nk == NULL) return true;
    for (int of_scales = 0; of_scales < 2 && fine && c->found == NULL; of_scales++) {
        tables t = {.c = c, .of_scales = of_scales == 1};
        fine = operation_read(c, &t.o);
        bool codes_are_read = fine && t.o.whole && t.o.kind == SINKPROOF_MULTIPLY &&
                              t.o.weights[0].dtype == SINKPROOF_DTYPE_MXFP4;
        if (codes_are_read) fine = draw(&t) && try_table(c, &t);
        free(t.at);
        free(t.rows);
        operation_free(&t.o);
    }
    return fine;
}
