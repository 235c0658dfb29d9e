// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Inputs of a product that are rounded to codes with a scale that is not their own: that of another
// row, or one number for all rows, measured before (a static scale). What is above the largest code
// is clamped.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum scale_of { ROW_BEFORE, FIRST_ROW, LARGEST_SO_FAR, STATIC, SCALES } scale_of;
enum { WHOSE, CODE, COLS, SCALE }; // the numbers

static const struct {
    const char *name;
    sinkproof_format format; // REAL: whole numbers
    double most;
} codes[] = {{"e4m3", SINKPROOF_E4M3, 448}, {"int8", SINKPROOF_REAL, 127}};
enum { E4M3, INT8, CODES };

static double row_size(const double *x, size_t cols) {
    double most = 0;
    for (size_t c = 0; c < cols; c++) most = fmax(most, fabs(x[c]));
    return most;
}

static void code_row(int code, double scale, size_t cols, const double *x, double *y) {
    double most = codes[code].most;
    for (size_t c = 0; c < cols; c++) {
        double at = (float)(x[c] / scale);
        at = at < most ? at : most; // NaN becomes the largest code
        at = at > -most ? at : -most;
        at = code == INT8 ? nearbyint(at) : sinkproof_round(codes[code].format, at);
        y[c] = (float)(at * scale);
    }
}

static bool make_coded(const sinkproof_making *of, double *y, double *width) {
    size_t cols = (size_t)of->numbers[COLS], rows = of->all / cols;
    int code = (int)of->numbers[CODE];
    double so_far = 0;
    (void)width;
    for (size_t r = 0; r < rows; r++) {
        const double *x = of->x + r * cols;
        so_far = fmax(so_far, row_size(x, cols));
        double size = so_far;
        if (of->numbers[WHOSE] == ROW_BEFORE) size = row_size(r > 0 ? x - cols : x, cols);
        if (of->numbers[WHOSE] == FIRST_ROW) size = row_size(of->x, cols);
        double scale = (float)(size / codes[code].most);
        if (of->numbers[WHOSE] == STATIC) scale = of->numbers[SCALE];
        if (!(scale > 0)) return false;
        code_row(code, scale, cols, x, y + r * cols);
    }
    return true;
}

// ---- trials

static bool try_scale(const operation *o, scale_of whose, int code, double scale) {
    static const char *const words[SCALES] = {
        [ROW_BEFORE] = "that of the row before (a stale scale)",
        [FIRST_ROW] = "that of the first row",
        [LARGEST_SO_FAR] = "that of the largest number so far"};
    made_kind made = {.make = make_coded,
                      .numbers = {whose, code, (double)o->weights[0].cols, scale}};
    if (o->c->found != NULL) return true;
    snprintf(made.id, sizeof made.id, "%s-scale-%d-%.7g", codes[code].name, whose, scale);
    if (whose == STATIC)
        snprintf(made.text, sizeof made.text,
                 "rounded to %s with one scale for all rows, about %.7g, and clamped at %.5g (a "
                 "static scale)",
                 codes[code].name, scale, scale * codes[code].most);
    else
        snprintf(made.text, sizeof made.text,
                 "rounded to %s with a scale that is not the row's own but %s, and clamped",
                 codes[code].name, words[whose]);
    return composing_try_made_input(o, 0, &made);
}

// ---- one scale

typedef struct scale_search {
    const operation *o;
    int code;
    size_t some; // elements of the sample that are asked
    double *y;   // the input as coded, in the rows of the sample
    double own;  // the misfit of the definition
} scale_search;

static double misfit(const scale_search *s, double scale) {
    const operation *o = s->o;
    size_t each = o->c->elements / o->c->n, cols = o->weights[0].cols, wide = o->width[0];
    const operation_change change = {.input = 0, .x = s->y, .edited = SIZE_MAX};
    double apart = 0;
    for (size_t k = 0, last = SIZE_MAX; k < s->some; k++) {
        size_t at = o->at[k * o->n / s->some], i = at / each;
        for (size_t c = 0; i != last && c < wide; c += cols)
            code_row(s->code, scale, cols, o->x[0] + i * wide + c, s->y + i * wide + c);
        last = i;
        double off = (scale > 0 ? operation_value(o, &change, at) : o->c->mid[at]) - o->c->v[at];
        apart += off * off;
    }
    return apart;
}

// The scale in [low, high] that fits best, in `steps` steps of one quotient each.
static double best_scale(const scale_search *s, double low, double high, size_t steps,
                         double *least) {
    double best = low;
    *least = INFINITY;
    for (size_t k = 0; k <= steps; k++) {
        double at = low * pow(high / low, (double)k / (double)steps), one = misfit(s, at);
        if (one < *least) *least = one, best = at;
    }
    return best;
}

// The shortest number that fits as well.
static double shortest_scale(const scale_search *s, double best, double least) {
    for (int digits = 1; digits < 7; digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, best);
        double at = strtod(text, NULL);
        if (misfit(s, at) <= least * 1.5) return at;
    }
    return best;
}

static bool try_static(const operation *o, int code, double largest) {
    enum { OCTAVE = 360, FINE = 40, ZOOMS = 5, FEW = 8 };
    scale_search s = {.o = o, .code = code, .some = o->n < FEW ? o->n : FEW};
    double own = largest / codes[code].most, least;
    // a scale that clamps is smaller; one that is larger by an octave gives the same codes of e4m3
    int octaves = code == E4M3 ? 6 : 5, first = code == E4M3 ? -5 : -3;
    s.y = malloc((o->width[0] * o->c->n + 1) * sizeof *s.y);
    if (s.y == NULL) return fail_for_memory(o->c->s);
    for (size_t k = 0; k < s.some; k++) {
        size_t at = o->at[k * o->n / s.some];
        s.own += pow(o->c->mid[at] - o->c->v[at], 2);
    }
    double low = own * exp2(first), high = low * exp2(octaves);
    double best = best_scale(&s, low, high, OCTAVE * (size_t)octaves, &least);
    bool fine = true;
    if (least < 0.2 * s.own) {
        double around = exp2(1.0 / OCTAVE);
        s.some = o->n;
        for (int zoom = 0; zoom < ZOOMS; zoom++) {
            best = best_scale(&s, best / around, best * around, FINE, &least);
            around = pow(around, 4.0 / FINE);
        }
        for (int by = -6; by <= 6 && fine && o->c->found == NULL; by++) {
            double at = best * exp2(by), one = misfit(&s, at);
            if (code == INT8 ? by != 0 : one > 4 * least + 1e-12 * s.own) continue;
            fine = try_scale(o, STATIC, code, shortest_scale(&s, at, one));
        }
    }
    free(s.y);
    return fine;
}

bool compose_static(composing *c) {
    operation o;
    bool fine = operation_read(c, &o);
    bool product = fine && (o.kind == SINKPROOF_LINEAR || o.kind == SINKPROOF_MULTIPLY) &&
                   c->point != TRACE_F2;
    if (product && o.whole && o.n > 0 && o.width[0] % o.weights[0].cols == 0) {
        double largest = row_size(o.x[0], o.width[0] * c->n);
        for (int code = 0; code < CODES && fine; code++) {
            for (int whose = ROW_BEFORE; whose < STATIC && fine; whose++)
                fine = try_scale(&o, (scale_of)whose, code, 0);
            if (fine && c->found == NULL && largest > 0) fine = try_static(&o, code, largest);
        }
    }
    operation_free(&o);
    return fine;
}
