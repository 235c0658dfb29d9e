// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Heads, slots, positions or coordinates that are averaged, or added, in the point or in an input.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>

typedef enum average_kind {
    OF_ALL,
    OF_PAIRS,  // 2 i and 2 i + 1
    OF_HALVES, // i and i + half
    WITH_NEXT, // i and i + 1
    WITH_LAST, // i and i - 1
    UP_TO,     // 0 .. i
    AVERAGES
} average_kind;

enum { ALONG, KIND, SUM }; // the numbers

// Whether unit j is averaged into unit i.
static bool is_averaged(average_kind kind, size_t i, size_t j, size_t size) {
    return kind == OF_ALL      ? true
           : kind == OF_PAIRS  ? i / 2 == j / 2
           : kind == OF_HALVES ? i % (size / 2) == j % (size / 2)
           : kind == WITH_NEXT ? j == i || j == i + 1
           : kind == WITH_LAST ? j == i || j + 1 == i
                               : j <= i;
}

// The elements between two units that are neighbours.
static size_t unit_stride(const sinkproof_making *of, sinkproof_dimension along) {
    size_t shape[SINKPROOF_MAX_RANK],
        rank = sinkproof_trace_shape(of->config, of->point, of->n, shape);
    if (along == ALONG_COORDINATES) return 1;
    return along == ALONG_ROWS ? of->all / of->n : rank == 3 ? shape[2] : 1;
}

static bool make_average(const sinkproof_making *of, double *y, double *width) {
    sinkproof_dimension along = (sinkproof_dimension)of->numbers[ALONG];
    average_kind kind = (average_kind)of->numbers[KIND];
    size_t size = sinkproof_region_size(of->config, of->point, of->n, along);
    size_t stride = unit_stride(of, along);
    for (size_t at = 0; at < of->all; at++) {
        size_t i = at / stride % size;
        double sum = 0, radius = 0, count = 0;
        bool halves = kind == OF_HALVES, wide = kind == OF_ALL || kind == UP_TO || halves;
        size_t step = halves ? size / 2 : 1; // of a vocabulary, a square would take minutes
        size_t first = halves ? i % step : wide || i == 0 ? 0 : i - 1;
        for (size_t j = first; j < (wide ? size : i + 2) && j < size; j += step) {
            if (!is_averaged(kind, i, j, size)) continue;
            size_t from = at - i * stride + j * stride;
            sum += of->x[from], count++;
            if (of->radius != NULL) radius += of->radius[from];
        }
        double over = of->numbers[SUM] != 0 ? 1 : count;
        y[at] = sum / over;
        if (of->radius != NULL) width[at] = radius / over;
    }
    return true;
}

static bool try_average(const operation *o, int input, sinkproof_dimension along, average_kind kind,
                        bool sum) {
    static const char *const of[AVERAGES] = {[OF_ALL] = "of all %ss",
                                             [OF_PAIRS] = "of %ss 2i and 2i + 1",
                                             [OF_HALVES] = "of %ss i and i + half",
                                             [WITH_NEXT] = "of the %s and the next one",
                                             [WITH_LAST] = "of the %s and the one before",
                                             [UP_TO] = "of all %ss up to it"};
    static const char *const words[SINKPROOF_DIMENSIONS] = {
        [ALONG_ROWS] = "position", [ALONG_HEADS] = "head",     [ALONG_GROUPS] = "key/value head",
        [ALONG_SLOTS] = "slot",    [ALONG_EXPERTS] = "expert", [ALONG_COORDINATES] = "coordinate",
        [ALONG_KEYS] = "key"};
    char which[80];
    made_kind made = {.make = make_average,
                      .numbers = {[ALONG] = along, [KIND] = kind, [SUM] = sum}};
    snprintf(which, sizeof which, of[kind], words[along]);
    snprintf(made.id, sizeof made.id, "%s-%s-%d", words[along], sum ? "sum" : "mean", (int)kind);
    snprintf(made.text, sizeof made.text, "%s the %s %s in the place of each",
             input < 0 ? "holds" : "as", sum ? "sum" : "mean", which);
    return input < 0 ? composing_try_made(o, &made)
                     : composing_try_made_input(o, (size_t)input, &made);
}

static bool try_averages(const operation *o, int input, sinkproof_trace_point point) {
    static const sinkproof_dimension order[] = {ALONG_HEADS, ALONG_GROUPS, ALONG_SLOTS, ALONG_ROWS,
                                                ALONG_COORDINATES};
    const sinkproof_config *config = o->c->s->trials.config;
    bool fine = true;
    for (size_t d = 0; d < sizeof order / sizeof order[0]; d++)
        for (int i = 0; i < 2 * AVERAGES && fine && o->c->found == NULL; i++) {
            average_kind kind = (average_kind)(i / 2);
            size_t size = sinkproof_region_size(config, point, o->c->n, order[d]);
            bool heads = sinkproof_region_size(config, point, o->c->n, ALONG_HEADS) > 0;
            bool wide = kind == OF_ALL || kind == UP_TO;
            if (size < 2 || (order[d] == ALONG_GROUPS && heads)) continue;
            if (wide && size > 128) continue; // a square of the units
            if (kind == OF_HALVES && size % 2 != 0) continue;
            fine = try_average(o, input, order[d], kind, i % 2 == 1);
        }
    return fine;
}

bool compose_averages(composing *c) {
    operation o;
    enum { MOST_ELEMENTS = 1 << 20 };
    if (sinkproof_trace_point_is_by_head(c->point) || c->point == TRACE_A11 ||
        c->elements > MOST_ELEMENTS)
        return true;
    bool fine = operation_read(c, &o) && try_averages(&o, -1, c->point);
    for (size_t i = 0; fine && o.whole && i < o.n_inputs && c->found == NULL; i++)
        if (o.inputs[i].point != TRACE_M3 && composed_input_words(o.inputs[i].point) != NULL &&
            o.width[i] * c->n <= MOST_ELEMENTS)
            fine = try_averages(&o, (int)i, o.inputs[i].point);
    operation_free(&o);
    return fine;
}
