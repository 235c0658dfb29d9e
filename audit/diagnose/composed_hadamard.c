// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Numbers that are rotated by a Hadamard matrix, in blocks, as quantisers spread outliers: the
// point's, where the rotation is not undone, or an input's, where the weights are not rotated.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK, TIMES, STEP }; // the numbers

// Multiplies a block by the Hadamard matrix of entries 1 and -1, by additions of halves.
static void rotate(double *x, size_t block) {
    for (size_t half = 1; half < block; half *= 2)
        for (size_t i = 0; i < block; i++) {
            if (i & half) continue;
            double a = x[i], b = x[i + half];
            x[i] = a + b, x[i + half] = a - b;
        }
}

static bool make_rotated(const sinkproof_making *of, double *y, double *width) {
    size_t block = (size_t)of->numbers[BLOCK];
    double times = of->numbers[TIMES];
    if (of->all % block != 0) return false;
    for (size_t first = 0; first < of->all; first += block) {
        double sizes = 0, radii = 0;
        for (size_t at = first; at < first + block; at++) {
            y[at] = of->x[at];
            sizes += fabs(of->x[at]);
            if (of->radius != NULL) radii += of->radius[at];
        }
        rotate(y + first, block);
        for (size_t at = first; at < first + block; at++) {
            y[at] *= times;
            width[at] = times * (radii + sizes * of->numbers[STEP]);
        }
    }
    return true;
}

// input -1: the point itself.
static bool try_rotated(const operation *o, int input, size_t row) {
    bool fine = true;
    for (size_t block = 4; block <= row && fine && o->c->found == NULL; block *= 2) {
        const double times[] = {1 / sqrt((double)block), 1, 1 / (double)block};
        static const char *const words[] = {"", ", without its factor 1/sqrt(n)",
                                            ", divided by n in the place of sqrt(n)"};
        if (row % block != 0) break;
        for (size_t k = 0; k < 3 && fine && o->c->found == NULL; k++) {
            made_kind made = {.make = make_rotated,
                              .numbers = {(double)block, times[k], 0x1p-24 * 8}};
            snprintf(made.id, sizeof made.id, "hadamard-%zu-%zu", block, k);
            snprintf(made.text, sizeof made.text,
                     "%s by a Hadamard matrix in each block of %zu%s: a rotation that %s",
                     input < 0 ? "is multiplied" : "multiplied", block, words[k],
                     input < 0 ? "is not undone" : "the weights are not made for");
            fine = input < 0 ? composing_try_made(o, &made)
                             : composing_try_made_input(o, (size_t)input, &made);
        }
    }
    return fine;
}

bool compose_hadamard(composing *c) {
    operation o;
    bool core = c->point == TRACE_A6 || c->point == TRACE_A9 || c->point == TRACE_A10 ||
                c->point == TRACE_A11;
    if (core) return true; // the causes of attention know what it reads
    if (c->report->rank == 0 || sinkproof_trace_point_is_index(c->point)) return true;
    size_t row = c->report->shape[c->report->rank - 1];
    bool fine = operation_read(c, &o);
    bool product = fine && (o.kind == SINKPROOF_LINEAR || o.kind == SINKPROOF_MULTIPLY);
    if (fine) fine = try_rotated(&o, -1, row);
    if (product && fine && o.whole && c->found == NULL)
        fine = try_rotated(&o, 0, o.weights[0].cols);
    operation_free(&o);
    return fine;
}
