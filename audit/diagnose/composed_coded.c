// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Numbers that a product has in codes: its input in codes of eight bits whose scale, quotient and
// product are themselves rounded to the trace's narrow format; and the partial sums of ranks, which
// are rounded before they are added.
#include "audit/diagnose/composed_product.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- the input in codes

enum { CODE, UNIT, FORMAT }; // the numbers: of a code, of a group (0: the row), of the arithmetic

typedef struct code_kind {
    sinkproof_format format; // SINKPROOF_REAL: whole numbers
    double largest;
    const char *id, *words;
} code_kind;
static const code_kind codes[] = {
    {SINKPROOF_REAL, 127, "int8", "eight-bit integers (int8)"},
    {SINKPROOF_REAL, 128, "int8-128", "eight-bit integers (int8, by the largest over 128)"},
    {SINKPROOF_E4M3, 448, "e4m3", "E4M3 (fp8)"},
    {SINKPROOF_REAL, 7, "int4", "four-bit integers (int4)"}};
enum { CODES = sizeof codes / sizeof codes[0] };

static bool make_coded(const sinkproof_making *of, double *y, double *width) {
    const code_kind *code = &codes[(size_t)of->numbers[CODE]];
    sinkproof_format format = (sinkproof_format)of->numbers[FORMAT];
    size_t row = of->n > 0 ? of->all / of->n : 0,
           unit = of->numbers[UNIT] > 0 ? (size_t)of->numbers[UNIT] : row;
    (void)width;
    if (unit == 0 || row % unit != 0) return false;
    for (size_t first = 0; first < of->all; first += unit) {
        double largest = 0;
        for (size_t at = first; at < first + unit; at++) largest = fmax(largest, fabs(of->x[at]));
        double scale = sinkproof_round(format, largest / code->largest);
        for (size_t at = first; at < first + unit && scale > 0; at++) {
            double q = sinkproof_round(format, of->x[at] / scale);
            q = code->format == SINKPROOF_REAL ? nearbyint(q) : sinkproof_round(code->format, q);
            y[at] = sinkproof_round(format, q * scale);
        }
    }
    return true;
}

static bool try_codes(const operation *o) {
    static const size_t units[] = {0, 128, 64, 32};
    bool fine = true;
    for (size_t code = 0; code < CODES && fine; code++)
        for (size_t u = 0; u < 4 && fine && o->c->found == NULL; u++) {
            made_kind made = {.make = make_coded};
            if (units[u] > 0 && o->width[0] % units[u] != 0) continue;
            made.numbers[CODE] = (double)code, made.numbers[UNIT] = (double)units[u];
            made.numbers[FORMAT] = SINKPROOF_BF16;
            snprintf(made.id, sizeof made.id, "codes-%s-%zu", codes[code].id, units[u]);
            snprintf(made.text, sizeof made.text, "rounded to %s, with one scale for each %s",
                     codes[code].words, u == 0 ? "token" : "group");
            if (u > 0)
                snprintf(made.text, sizeof made.text,
                         "rounded to %s, with one scale for each group of %zu", codes[code].words,
                         units[u]);
            fine = composing_try_made_input(o, 0, &made);
        }
    return fine;
}

// ---- partial sums

enum { PARTS, TO, MULTIPLE };

static bool make_part_sums(const sinkproof_making *of, double *y, double *width) {
    dense_product p;
    size_t parts = (size_t)of->numbers[PARTS];
    sinkproof_format to = (sinkproof_format)of->numbers[TO];
    bool known, fine = dense_product_read(of, &p, &known) && known && p.ins % parts == 0;
    for (size_t at = 0; fine && at < of->all; at++) {
        size_t i = at / p.outs, r = at % p.outs, each = p.ins / parts;
        double radius = of->radius != NULL ? of->radius[at] : 0;
        y[at] = p.b_r[r], width[at] = 2 * radius;
        for (size_t k = 0; k < parts; k++) {
            double sum = 0;
            for (size_t c = k * each; c < (k + 1) * each; c++)
                sum += p.x_nc[i * p.ins + c] * p.w_rc[r * p.ins + c];
            // in a narrow format the sum is rounded to that first
            double near = radius + dense_rounding(of, sum);
            double lo = sinkproof_round(to, sum - near), hi = sinkproof_round(to, sum + near);
            y[at] += lo / 2 + hi / 2, width[at] += (hi - lo) / 2;
        }
        width[at] += 2 * dense_rounding(of, y[at]);
    }
    dense_product_free(&p);
    return fine;
}

static bool try_part_sums(const operation *o) {
    static const struct {
        sinkproof_format to;
        const char *id, *words;
    } formats[] = {{SINKPROOF_E4M3, "e4m3", "E4M3 (fp8)"},
                   {SINKPROOF_E5M2, "e5m2", "E5M2 (fp8)"},
                   {SINKPROOF_BF16, "bf16", "bfloat16"},
                   {SINKPROOF_F16, "f16", "binary16"}};
    bool fine = true, narrow = o->c->step > 0x1p-12;
    for (size_t f = 0; f < (narrow ? 2 : 4); f++)
        for (size_t parts = 1; parts <= 8 && fine && o->c->found == NULL; parts *= 2) {
            made_kind made = {.make = make_part_sums};
            if (o->weights[0].cols % parts != 0) continue;
            made.numbers[PARTS] = (double)parts, made.numbers[TO] = formats[f].to;
            snprintf(made.id, sizeof made.id, "sums-of-%zu-ranks-%s", parts, formats[f].id);
            if (parts == 1)
                snprintf(made.text, sizeof made.text,
                         "is rounded to %s before the bias is added to it", formats[f].words);
            else
                snprintf(made.text, sizeof made.text,
                         "is the sum of the partial sums of %s (equal parts of the input), "
                         "each rounded to %s before they are added",
                         sinkproof_counted(parts, "rank").text, formats[f].words);
            fine = composing_try_made(o, &made);
        }
    return fine;
}

bool compose_coded(composing *c) {
    operation o;
    bool product, fine = operation_read(c, &o);
    product = o.kind == SINKPROOF_LINEAR || o.kind == SINKPROOF_MULTIPLY;
    if (fine && product && o.whole && o.n > 0) {
        if (dense_product_is(c->point)) fine = try_part_sums(&o);
        if (fine && c->found == NULL && c->step > 0x1p-12) fine = try_codes(&o);
    }
    operation_free(&o);
    return fine;
}
