// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Queries, keys and values as a guess reads them, for all queries that are looked at.
#include "audit/diagnose/attention_screen.h"
#include "audit/judge/judge_read_source.h"
#include "ref/scaled.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- what is made of x[rows, heads, head_dim]; as judge_read_maps.c does of sets

static void turn_numbers(const attention_view *view, const sinkproof_read_as *read, size_t first,
                         size_t rows, size_t heads, const double *x, double *y) {
    size_t d = view->dim, half = d / 2;
    double by = read->turn_scaled ? sinkproof_yarn_concentration(view->config) : 1;
    for (size_t i = 0; i < rows; i++)
        for (size_t p = 0; p < half; p++) {
            double angle = ((double)(first + i) * read->turn_times + read->turn_by);
            double c = by * cos(angle * view->frequency_p[p]),
                   s = by * sin(angle * view->frequency_p[p]);
            for (size_t h = 0; h < heads; h++) {
                size_t at = (i * heads + h) * d + p;
                y[at] = x[at] * c - x[at + half] * s, y[at + half] = x[at + half] * c + x[at] * s;
            }
        }
}

static void take_means(bool heads_alike, size_t rows, size_t heads, size_t d, const double *x,
                       double *y) {
    size_t width = heads * d, count = heads_alike ? heads : rows, stride = heads_alike ? d : width;
    for (size_t at = 0; at < rows * width; at++) {
        size_t from = heads_alike ? at - at % width + at % d : at % width;
        double sum = 0;
        for (size_t i = 0; i < count && (heads_alike || at < width); i++)
            sum += x[from + i * stride];
        y[at] = heads_alike  ? sum / (double)count
                : at < width ? x[at] - sum / (double)rows
                             : x[at] - (x[from] - y[from]);
    }
}

// Returns false if memory runs out.
static bool map_numbers(const attention_view *view, const sinkproof_read_as *read, size_t first,
                        size_t rows, size_t heads, double *y) {
    size_t d = view->dim, count = rows * heads * d;
    double *x = malloc((count + 1) * sizeof *x), largest = 0;
    if (x == NULL) return false;
    memcpy(x, y, count * sizeof *x);
    if (read->map == SINKPROOF_MAP_TURNED)
        turn_numbers(view, read, first, rows, heads, x, y);
    else if (read->map > SINKPROOF_MAP_LAYOUT)
        take_means(read->map == SINKPROOF_MAP_HEADS, rows, heads, d, x, y);
    else if (read->map != SINKPROOF_MAP_NONE)
        for (size_t at = 0; at < count; at++)
            y[at] = x[sinkproof_read_place(read, rows, heads, d, at)];
    free(x);
    if (read->change.kind == SINKPROOF_UNCHANGED) return true;
    for (size_t at = 0; at < count; at++) largest = fmax(largest, fabs(y[at]));
    for (size_t r = 0; r < rows * heads; r++)
        sinkproof_change_row(&read->change, largest, d, y + r * d, y + r * d);
    return true;
}

// Numbers as they are read otherwise; NULL if memory runs out.
static double *read_otherwise(const attention_view *view, const sinkproof_read_as *read,
                              unsigned of, const double *x, size_t first, size_t rows,
                              size_t heads) {
    const sinkproof_rounding how = {.format = read->format, .scale = read->scale};
    size_t count = rows * heads * view->dim;
    double *y = malloc((count + 1) * sizeof *y);
    if (y == NULL) return NULL;
    memcpy(y, x, count * sizeof *y);
    const sinkproof_tensor *tensor = NULL;
    if (read->layer_by != 0 || read->not_turned)
        tensor = sinkproof_read_source(read, view->config, view->of->trace, of, view->of->layer);
    for (size_t i = 0; tensor != NULL && i < count; i++) y[i] = sinkproof_tensor_value(tensor, i);
    if (!map_numbers(view, read, first, rows, heads, y)) {
        free(y);
        return NULL;
    }
    sinkproof_scaled_read(how, rows, heads, view->dim, y);
    bool own = of == SINKPROOF_CACHE_VALUES && read->value_times != 0;
    for (size_t i = 0; i < count; i++) y[i] *= own ? read->value_times : read->times;
    return y;
}

void attention_view_forget(attention_view *view) {
    attention_reads *r = &view->read;
    free(r->q);
    free(r->k);
    free(r->v);
    *r = (attention_reads){.as = {.of = 0}};
}

bool attention_view_reads(attention_view *view, const sinkproof_read_as *read) {
    attention_reads *r = &view->read;
    size_t keys = view->columns - view->from;
    if (read->of == 0) return true;
    if (memcmp(&r->as, read, sizeof *read) == 0) return true;
    attention_view_forget(view);
    if (read->of & SINKPROOF_READ_QUERIES)
        r->q = read_otherwise(view, read, SINKPROOF_READ_QUERIES, view->q_nhd, 0, view->n,
                              view->heads);
    if (read->of & SINKPROOF_CACHE_KEYS)
        r->k = read_otherwise(view, read, SINKPROOF_CACHE_KEYS, view->k_cgd, view->from, keys,
                              view->groups);
    if (read->of & SINKPROOF_CACHE_VALUES)
        r->v = read_otherwise(view, read, SINKPROOF_CACHE_VALUES, view->v_cgd, view->from, keys,
                              view->groups);
    bool fine = (r->q != NULL || (read->of & SINKPROOF_READ_QUERIES) == 0) &&
                (r->k != NULL || (read->of & SINKPROOF_CACHE_KEYS) == 0) &&
                (r->v != NULL || (read->of & SINKPROOF_CACHE_VALUES) == 0);
    if (fine) r->as = *read;
    return fine;
}
