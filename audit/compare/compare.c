// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Compares two traces, point by point.
#include "audit/compare/compare.h"

#include "audit/trace/trace_points.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// One of the two traces: a file of tensors with the names of the trace format.
typedef struct side {
    const char *path;
    const sinkproof_safetensors *file;
    const sinkproof_tensor *tokens, *positions;
    size_t n, n_layers;
} side;

static const sinkproof_tensor *side_find_tensor(const side *s, sinkproof_trace_point point,
                                                size_t layer) {
    char name[SINKPROOF_TRACE_NAME];
    sinkproof_trace_name(point, layer, name);
    return sinkproof_safetensors_find(s->file, name);
}

static bool is_row_with_length(const sinkproof_tensor *t, size_t n) {
    return t != NULL && t->rank == 1 && t->shape[0] == n;
}

static bool side_of(side *s, const char *path, const sinkproof_safetensors *file,
                    sinkproof_error *error) {
    *s = (side){.path = path, .file = file};
    const char *format = sinkproof_safetensors_metadata(s->file, "format");
    s->tokens = sinkproof_safetensors_find(s->file, "tokens");
    s->positions = sinkproof_safetensors_find(s->file, "positions");
    s->n = s->tokens != NULL && s->tokens->rank == 1 ? s->tokens->shape[0] : 0;
    if (format == NULL || strcmp(format, "sinkproof-trace-1") != 0 || s->n == 0 ||
        !is_row_with_length(s->positions, s->n))
        return sinkproof_fail(error,
                              "%.900s: expected a trace (format sinkproof-trace-1) with tokens and "
                              "positions [n]",
                              path);
    for (size_t i = 0; i < sinkproof_safetensors_count(s->file); i++) {
        sinkproof_trace_point point;
        size_t layer;
        const char *name = sinkproof_safetensors_at(s->file, i)->name;
        if (sinkproof_trace_name_parse(name, &point, &layer) && layer + 1 > s->n_layers &&
            sinkproof_trace_point_is_layered(point))
            s->n_layers = layer + 1;
    }
    return true;
}

// ---- which tokens' experts differ ------------------------------------------------------------

static bool shapes_are_equal(const sinkproof_tensor *x, const sinkproof_tensor *y) {
    return x->rank == y->rank && memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0;
}

// Marks the tokens whose experts differ in this layer, order included, and returns their number.
static size_t find_rerouted_tokens(const side *a, const side *b, size_t layer, bool *differs_n) {
    const sinkproof_tensor *x = side_find_tensor(a, TRACE_M3, layer);
    const sinkproof_tensor *y = side_find_tensor(b, TRACE_M3, layer);
    size_t count = 0;
    memset(differs_n, 0, a->n * sizeof *differs_n);
    if (x == NULL || y == NULL || !shapes_are_equal(x, y) || x->rank != 2 || x->shape[0] != a->n)
        return 0;
    for (size_t i = 0; i < a->n; i++) {
        for (size_t j = i * x->shape[1]; j < (i + 1) * x->shape[1]; j++)
            differs_n[i] =
                differs_n[i] || sinkproof_tensor_value(x, j) != sinkproof_tensor_value(y, j);
        count += differs_n[i];
    }
    return count;
}

// Whether a point's rows belong to the chosen experts.
static bool point_has_chosen_rows(sinkproof_trace_point point) {
    return point >= TRACE_M4 && point <= TRACE_M10;
}

// ---- one point -------------------------------------------------------------------------------

static bool numbers_equal(double x, double y) {
    return x == y || (isnan(x) && isnan(y));
}

// The coarser of the two formats, which the enumeration lists from the finest to the coarsest.
static sinkproof_format coarser_format(const sinkproof_tensor *x, const sinkproof_tensor *y) {
    sinkproof_format p = sinkproof_trace_format(x->dtype), q = sinkproof_trace_format(y->dtype);
    return p > q ? p : q;
}

static void compare_point(const sinkproof_tensor *x, const sinkproof_tensor *y,
                          const bool *left_out_n, sinkproof_difference *d) {
    sinkproof_format format = coarser_format(x, y);
    size_t row = left_out_n != NULL ? d->elements / x->shape[0] : 1;
    double gaps = 0, sizes = 0;
    for (size_t i = 0; i < d->elements; i++) {
        if (left_out_n != NULL && left_out_n[i / row]) {
            d->left_out++;
            continue;
        }
        double p = sinkproof_tensor_value(x, i), q = sinkproof_tensor_value(y, i);
        if (!numbers_equal(p, q) && d->differing++ == 0) d->first = i, d->a = p, d->b = q;
        if (!isfinite(p) || !isfinite(q)) {
            if (!numbers_equal(p, q)) d->largest = d->ulp = INFINITY;
            continue;
        }
        double gap = fabs(p - q), ulp = gap / sinkproof_ulp(format, p);
        gaps += gap * gap, sizes += p * p;
        if (gap > d->largest) d->largest = gap;
        if (ulp > d->ulp) d->ulp = ulp;
    }
    d->relative = !(d->largest < INFINITY) || (sizes == 0 && gaps > 0) ? INFINITY
                  : sizes > 0                                          ? sqrt(gaps / sizes)
                                                                       : 0;
    if (sinkproof_trace_point_is_index(d->point))
        d->ulp = NAN, d->relative = (double)d->differing / (double)d->elements;
}

static bool compare_traced_point(const side *a, const side *b, sinkproof_trace_point point,
                                 size_t layer, const bool *differs_n, sinkproof_comparison *c,
                                 sinkproof_error *error) {
    const sinkproof_tensor *x = side_find_tensor(a, point, layer),
                           *y = side_find_tensor(b, point, layer);
    c->only_a += x != NULL && y == NULL, c->only_b += x == NULL && y != NULL;
    if (x == NULL || y == NULL) return true;
    sinkproof_difference *d = &c->points[c->n_points++];
    *d = (sinkproof_difference){.point = point,
                                .layer = layer,
                                .elements = sinkproof_tensor_elements(x),
                                .rank = x->rank,
                                .error_a = NAN,
                                .error_b = NAN};
    memcpy(d->shape, x->shape, sizeof d->shape);
    sinkproof_trace_name(point, layer, d->name);
    bool rows = !point_has_chosen_rows(point) || (x->rank > 0 && x->shape[0] == a->n);
    if (!shapes_are_equal(x, y) || !rows)
        return sinkproof_fail(error,
                              "%.400s and %.400s: expected one shape of tensor '%s', its rows "
                              "the tokens; found another",
                              a->path, b->path, d->name);
    compare_point(x, y, point_has_chosen_rows(point) ? differs_n : NULL, d);
    return true;
}

// ---- the whole -------------------------------------------------------------------------------

static bool check_same_run(const side *a, const side *b, sinkproof_error *error) {
    if (a->n != b->n)
        return sinkproof_fail(error, "%.400s has %s, %.400s has %zu", a->path,
                              sinkproof_counted(a->n, "token").text, b->path, b->n);
    for (size_t i = 0; i < a->n; i++) {
        double s = sinkproof_tensor_value(a->tokens, i), t = sinkproof_tensor_value(b->tokens, i);
        double p = sinkproof_tensor_value(a->positions, i),
               q = sinkproof_tensor_value(b->positions, i);
        if (s != t || p != q)
            return sinkproof_fail(error,
                                  "%.400s has token %g at position %g, %.400s has %g at %g: other "
                                  "runs cannot be compared",
                                  a->path, s, p, b->path, t, q);
    }
    return true;
}

static sinkproof_note models_note(const side *a, const side *b) {
    sinkproof_note note = {""};
    const char *of_a = sinkproof_safetensors_metadata(a->file, "model");
    const char *of_b = sinkproof_safetensors_metadata(b->file, "model");
    if (sinkproof_is_fingerprint(of_a) && sinkproof_is_fingerprint(of_b) &&
        strcasecmp(of_a, of_b) != 0)
        snprintf(note.text, sizeof note.text,
                 "Two models: by its metadata A is of the fingerprint %s, B of %s.", of_a, of_b);
    return note;
}

// T0, the layers in order, then F1 and F2.
static bool compare_all_points(const side *a, const side *b, size_t n_layers, bool *differs_n,
                               sinkproof_comparison *c, sinkproof_error *error) {
    memset(differs_n, 0, a->n * sizeof *differs_n);
    if (!compare_traced_point(a, b, TRACE_T0, 0, differs_n, c, error)) return false;
    for (size_t l = 0; l < n_layers; l++) {
        c->rerouted += find_rerouted_tokens(a, b, l, differs_n);
        for (int p = 0; p < TRACE_POINTS; p++)
            if (sinkproof_trace_point_is_layered((sinkproof_trace_point)p) &&
                !compare_traced_point(a, b, (sinkproof_trace_point)p, l, differs_n, c, error))
                return false;
    }
    return compare_traced_point(a, b, TRACE_F1, 0, differs_n, c, error) &&
           compare_traced_point(a, b, TRACE_F2, 0, differs_n, c, error);
}

static bool compare_sides(const side *a, const side *b, sinkproof_comparison *c,
                          sinkproof_error *error) {
    size_t n_layers = a->n_layers > b->n_layers ? a->n_layers : b->n_layers;
    size_t most = sinkproof_safetensors_count(a->file); // an upper bound of the common tensors
    bool *differs_n = malloc(a->n * sizeof *differs_n);
    c->points = malloc(most * sizeof *c->points);
    bool good =
        differs_n != NULL && c->points != NULL
            ? check_same_run(a, b, error) && compare_all_points(a, b, n_layers, differs_n, c, error)
            : sinkproof_fail(error, "no memory to compare two traces");
    free(differs_n);
    c->note = models_note(a, b);
    return good;
}

static bool compare_files(const char *const paths[2], const sinkproof_safetensors *const files[2],
                          sinkproof_comparison *comparison, sinkproof_error *error) {
    side sides[2];
    *comparison = (sinkproof_comparison){.n_points = 0};
    bool good = side_of(&sides[0], paths[0], files[0], error) &&
                side_of(&sides[1], paths[1], files[1], error) &&
                compare_sides(&sides[0], &sides[1], comparison, error);
    if (!good) sinkproof_comparison_free(comparison);
    return good;
}

bool sinkproof_compare_traces(const char *a, const char *b, sinkproof_comparison *comparison,
                              sinkproof_error *error) {
    sinkproof_safetensors *files[2] = {NULL, NULL};
    *comparison = (sinkproof_comparison){.n_points = 0};
    bool good = sinkproof_safetensors_open(a, &files[0], error) &&
                sinkproof_safetensors_open(b, &files[1], error) &&
                compare_files((const char *const[]){a, b},
                              (const sinkproof_safetensors *const[]){files[0], files[1]},
                              comparison, error);
    for (int s = 0; s < 2; s++)
        if (files[s] != NULL) sinkproof_safetensors_close(files[s]);
    return good;
}

bool sinkproof_compare_opened(const sinkproof_trace *a, const sinkproof_trace *b,
                              sinkproof_comparison *comparison, sinkproof_error *error) {
    return compare_files(
        (const char *const[]){sinkproof_trace_path(a), sinkproof_trace_path(b)},
        (const sinkproof_safetensors *const[]){sinkproof_trace_file(a), sinkproof_trace_file(b)},
        comparison, error);
}

static bool compare_with_truth(const sinkproof_model *model, const sinkproof_trace *trace,
                               bool is_a, sinkproof_comparison *c, sinkproof_error *error) {
    sinkproof_policy policy; // errors are against the reals, so that any policy gives the same
    sinkproof_policy_known("f32", &policy);
    sinkproof_judge_options how = {.rate = 1e-9, .end_to_end = true};
    sinkproof_judgement j;
    if (!sinkproof_judge(model, trace, &policy, &how, &j, error)) return false;
    for (size_t i = 0; i < c->n_points; i++)
        for (size_t r = 0; r < j.n_reports; r++) {
            const sinkproof_errors *e = &j.reports[r].errors;
            if (strcmp(j.reports[r].name, c->points[i].name) != 0 || !(e->truth > 0)) continue;
            double relative = sqrt(e->error / e->truth);
            if (is_a)
                c->points[i].error_a = relative;
            else
                c->points[i].error_b = relative;
        }
    sinkproof_judgement_free(&j);
    return true;
}

bool sinkproof_compare_truth(const sinkproof_model *model, const sinkproof_trace *a,
                             const sinkproof_trace *b, sinkproof_comparison *comparison,
                             sinkproof_error *error) {
    return compare_with_truth(model, a, true, comparison, error) &&
           compare_with_truth(model, b, false, comparison, error);
}

void sinkproof_comparison_free(sinkproof_comparison *comparison) {
    free(comparison->points);
    *comparison = (sinkproof_comparison){.n_points = 0};
}
