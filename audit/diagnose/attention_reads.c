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

// The row of a head at position `at`, rotated.
static void turn_row(const attention_view *view, const sinkproof_read_as *read, size_t at,
                     const double *x, double *y) {
    size_t half = view->dim / 2;
    double by = read->turn_scaled ? sinkproof_yarn_concentration(view->config) : 1;
    double angle = (double)at * read->turn_times + read->turn_by;
    for (size_t p = 0; p < half; p++) {
        double c = by * cos(angle * view->frequency_p[p]),
               s = by * sin(angle * view->frequency_p[p]);
        y[p] = x[p] * c - x[p + half] * s, y[p + half] = x[p + half] * c + x[p] * s;
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

// Whether a row of a head is read by itself: no number of another one matters.
static bool is_read_by_rows(const sinkproof_read_as *read) {
    const sinkproof_rounding how = {.format = read->format, .scale = read->scale};
    bool own_scale = !sinkproof_is_scaled(how) || read->scale == SINKPROOF_SCALE_NONE ||
                     read->scale == SINKPROOF_SCALE_OF_TOKEN_HEAD;
    bool changed = read->change.kind != SINKPROOF_UNCHANGED;
    return own_scale && read->scale_from == SINKPROOF_SCALE_FROM_OWN && read->layer_by == 0 &&
           !read->not_turned && read->map != SINKPROOF_MAP_CENTRED &&
           read->map != SINKPROOF_MAP_HEADS && (!changed || read->map == SINKPROOF_MAP_NONE);
}

static double largest_of(const attention_view *view, unsigned of) {
    return of == SINKPROOF_READ_QUERIES ? view->largest_q
           : of == SINKPROOF_CACHE_KEYS ? view->largest_k
                                        : view->largest_v;
}

static void map_row(const attention_view *view, const sinkproof_read_as *read,
                    const attention_numbers *n, size_t at) {
    size_t d = view->dim, row = at / d / n->heads;
    if (read->map == SINKPROOF_MAP_TURNED)
        turn_row(view, read, n->first + row, n->x + at, n->y + at);
    else if (read->map == SINKPROOF_MAP_ORDER || read->map == SINKPROOF_MAP_LAYOUT)
        for (size_t k = at; k < at + d; k++)
            n->y[k] = n->x[sinkproof_read_place(read, n->rows, n->heads, d, k)];
    else
        memcpy(n->y + at, n->x + at, d * sizeof *n->y);
}

static void make_row(const attention_view *view, const sinkproof_read_as *read, unsigned of,
                     const attention_numbers *n, size_t at) {
    const sinkproof_rounding how = {.format = read->format, .scale = read->scale};
    double *y = n->y + at;
    map_row(view, read, n, at);
    if (read->change.kind != SINKPROOF_UNCHANGED)
        sinkproof_change_row(&read->change, largest_of(view, of), view->dim, y, y);
    sinkproof_scaled_read(how, 1, 1, view->dim, y);
}

static double group_largest(const scale_groups *of, const double *x) {
    double largest = 0;
    for (size_t r = 0; r < of->runs; r++)
        for (size_t k = 0; k < of->run; k++) largest = fmax(largest, fabs(x[r * of->stride + k]));
    return largest;
}

// Reads y by the scales of other groups in the place of their own. Returns false if memory runs
// out.
static bool read_under_other_scales(const sinkproof_read_as *read, const attention_numbers *n,
                                    size_t d) {
    const sinkproof_rounding how = {.format = read->format, .scale = read->scale};
    scale_groups of = sinkproof_scale_groups(read->scale, n->rows, n->heads, d);
    double *largest_g = malloc((of.count + 1) * sizeof *largest_g);
    if (largest_g == NULL) return false;
    for (size_t g = 0; g < of.count; g++) largest_g[g] = group_largest(&of, n->y + g * of.step);
    sinkproof_scaled_read(how, n->rows, n->heads, d, n->y);
    for (size_t g = 0; g < of.count; g++) {
        size_t from = sinkproof_scale_source(read, n->heads, of.count, g);
        double by = from != g && largest_g[g] > 0 ? largest_g[from] / largest_g[g] : 1;
        for (size_t r = 0; r < of.runs; r++)
            for (size_t k = 0; k < of.run; k++) n->y[g * of.step + r * of.stride + k] *= by;
    }
    free(largest_g);
    return true;
}

// Numbers of another layer stand as they are: only what becomes of each is read otherwise.
// Returns false if memory runs out.
static bool make_all_rows(const attention_view *view, const sinkproof_read_as *read, unsigned of,
                          const attention_numbers *n) {
    const sinkproof_rounding how = {.format = read->format, .scale = read->scale};
    size_t d = view->dim, count = n->rows * n->heads * d;
    sinkproof_tensor source;
    double largest = 0;
    bool there =
        (read->layer_by != 0 || read->not_turned) &&
        sinkproof_read_source(read, view->config, view->of->trace, of, view->of->layer, &source) &&
        sinkproof_tensor_elements(&source) == count;
    if (read->map == SINKPROOF_MAP_CENTRED || read->map == SINKPROOF_MAP_HEADS)
        take_means(read->map == SINKPROOF_MAP_HEADS, n->rows, n->heads, d, n->x, n->y);
    else
        for (size_t at = 0; at < count; at += d) map_row(view, read, n, at);
    for (size_t i = 0; there && i < count; i++) n->y[i] = sinkproof_tensor_value(&source, i);
    for (size_t at = 0; at < count; at++) largest = fmax(largest, fabs(n->y[at]));
    for (size_t at = 0; read->change.kind != SINKPROOF_UNCHANGED && at < count; at += d)
        sinkproof_change_row(&read->change, largest, d, n->y + at, n->y + at);
    if (read->scale_from != SINKPROOF_SCALE_FROM_OWN) return read_under_other_scales(read, n, d);
    sinkproof_scaled_read(how, n->rows, n->heads, d, n->y);
    return true;
}

static attention_numbers *numbers_of(attention_reads *r, unsigned of) {
    return of == SINKPROOF_READ_QUERIES ? &r->q : of == SINKPROOF_CACHE_KEYS ? &r->k : &r->v;
}

const double *attention_read_row(const attention_view *view, unsigned of, size_t row, size_t head) {
    attention_reads r = view->read;
    const attention_numbers *n = numbers_of(&r, of);
    size_t i = row * n->heads + head;
    if (n->made != NULL && !n->made[i]) {
        make_row(view, &view->read.as, of, n, i * view->dim);
        n->made[i] = true;
    }
    return n->y + i * view->dim;
}

// Returns false if memory runs out.
static bool open_numbers(const attention_view *view, const sinkproof_read_as *read, unsigned of,
                         attention_numbers *n) {
    bool queries = of == SINKPROOF_READ_QUERIES;
    bool by_rows = is_read_by_rows(read);
    *n = (attention_numbers){.x = queries                      ? view->q_nhd
                                  : of == SINKPROOF_CACHE_KEYS ? view->k_cgd
                                                               : view->v_cgd,
                             .first = queries ? view->begin : view->from,
                             .rows = queries ? view->n : view->columns - view->from,
                             .heads = queries ? view->heads : view->groups};
    size_t count = n->rows * n->heads;
    n->y = malloc((count * view->dim + 1) * sizeof *n->y);
    if (by_rows) n->made = calloc(count + 1, sizeof *n->made);
    if (n->y == NULL || (by_rows && n->made == NULL)) return false;
    return by_rows || make_all_rows(view, read, of, n);
}

static void free_numbers(attention_numbers *n) {
    free(n->y);
    free(n->made);
}

void attention_view_forget(attention_view *view) {
    attention_reads *r = &view->read;
    free_numbers(&r->q);
    free_numbers(&r->k);
    free_numbers(&r->v);
    *r = (attention_reads){.as = {.of = 0}};
}

bool attention_view_reads(attention_view *view, const sinkproof_read_as *read) {
    static const unsigned each[] = {SINKPROOF_READ_QUERIES, SINKPROOF_CACHE_KEYS,
                                    SINKPROOF_CACHE_VALUES};
    attention_reads *r = &view->read;
    sinkproof_read_as as = *read;
    as.times = 1, as.value_times = 0;
    if (read->of == 0 || memcmp(&r->as, &as, sizeof as) == 0) return true;
    attention_view_forget(view);
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        if ((read->of & each[i]) != 0 && !open_numbers(view, read, each[i], numbers_of(r, each[i])))
            return false;
    r->as = as;
    return true;
}
