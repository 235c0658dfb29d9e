// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// By how much honest rounding can lower a margin, to first order. The run over the reals is judged
// as if it were an engine's trace: the set of each element, computed from its own inputs over the
// reals, says how far honest rounding takes this one operation from its real value. Times the
// derivative of the margin with respect to that element, summed over all, this is the most that all
// roundings together take, if nothing but first order counts. Both factors are in binary64, and a
// choice of experts has no derivative: estimated.
#include "audit/judge/judge.h"
#include "audit/sinkproof.h"
#include "audit/studies/next/next_internal.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool next_map_new(next_map *map, size_t n_layers) {
    *map = (next_map){n_layers, calloc(n_layers * TRACE_POINTS, sizeof *map->at_lp)};
    return map->at_lp != NULL;
}

void next_map_free(next_map *map) {
    for (size_t s = 0; map->at_lp != NULL && s < map->n_layers * TRACE_POINTS; s++)
        free(map->at_lp[s]);
    free(map->at_lp);
    *map = (next_map){0, NULL};
}

// ---- the honest rounding of each operation

static double farther(double v, double lo, double hi) {
    return fmax(sinkproof_add_up(hi, -v), sinkproof_add_up(v, -lo));
}

static void see_radius(void *context, sinkproof_trace_point point, size_t layer, size_t at,
                       double v, const sinkproof_honest *set) {
    next_radii *r = context;
    if (!sinkproof_trace_point_is_layered(point)) layer = 0;
    double *worst = *next_map_at(&r->worst, point, layer);
    double *likely = *next_map_at(&r->likely, point, layer);
    if (worst == NULL || likely == NULL) return;
    worst[at] = farther(v, set->lo, set->hi);
    likely[at] = farther(v, set->likely_lo, set->likely_hi);
}

// Adds a point of the run over the reals to the trace, and room for its radii.
static bool add_point(const next_prompt *p, const sinkproof_activations *real,
                      sinkproof_trace_point point, size_t layer, next_radii *radii,
                      sinkproof_trace_builder *builder, sinkproof_error *error) {
    const double *values = sinkproof_activations_at(real, layer, point);
    char name[SINKPROOF_TRACE_NAME];
    size_t shape[3], rank = sinkproof_trace_shape(p->config, point, p->n, shape);
    size_t count = sinkproof_trace_elements(p->config, point, p->n);
    if (values == NULL) return true;
    sinkproof_trace_name(point, layer, name);
    if (!sinkproof_trace_point_is_index(point)) {
        double **worst = next_map_at(&radii->worst, point, layer);
        double **likely = next_map_at(&radii->likely, point, layer);
        *worst = calloc(count, sizeof **worst), *likely = calloc(count, sizeof **likely);
        if (*worst == NULL || *likely == NULL)
            return sinkproof_fail(error, "no memory for the sets of %s", name);
        return sinkproof_trace_builder_add(builder, name, "F64", rank, shape, values, error);
    }
    int32_t *whole = malloc(count * sizeof *whole);
    if (whole == NULL) return sinkproof_fail(error, "no memory for the experts of %s", name);
    for (size_t i = 0; i < count; i++) whole[i] = (int32_t)values[i];
    bool good = sinkproof_trace_builder_add(builder, name, "I32", rank, shape, whole, error);
    free(whole);
    return good;
}

bool next_radii_new(const next_prompt *p, double rate, const sinkproof_activations *real,
                    next_radii *radii, sinkproof_error *error) {
    sinkproof_trace_builder *builder = NULL;
    sinkproof_trace *trace = NULL;
    sinkproof_judgement judgement;
    *radii = (next_radii){.worst = {0, NULL}};
    bool good =
        next_map_new(&radii->worst, real->n_layers) && next_map_new(&radii->likely, real->n_layers);
    if (!good) sinkproof_fail(error, "no memory for sets");
    good = good && sinkproof_trace_builder_new(p->model, "the reals", NULL, p->n, p->tokens_n,
                                               &builder, error);
    for (size_t layer = 0; good && layer < real->n_layers; layer++)
        for (int point = 0; good && point < TRACE_POINTS; point++)
            good = add_point(p, real, (sinkproof_trace_point)point, layer, radii, builder, error);
    good = good && sinkproof_trace_builder_finish(builder, &trace, error);
    if (builder != NULL) sinkproof_trace_builder_free(builder);
    const sinkproof_judge_options how = {.rate = rate, .witness = see_radius, .witnessing = radii};
    if (good) good = sinkproof_judge(p->model, trace, p->policy, &how, &judgement, error);
    if (good) sinkproof_judgement_free(&judgement);
    if (trace != NULL) sinkproof_trace_close(trace);
    if (!good) next_radii_free(radii);
    return good;
}

void next_radii_free(next_radii *radii) {
    next_map_free(&radii->worst);
    next_map_free(&radii->likely);
}

// ---- derivatives

typedef struct derivatives {
    const next_prompt *p;
    const next_radii *radii;
    double worst, squares; // sums so far
    next_map *kept;
    bool failed;
} derivatives;

static void add_element(derivatives *d, double slope, double worst, double likely) {
    if (slope == 0) return; // a masked key has no bound, and no effect
    d->worst += fabs(slope) * worst;
    d->squares += slope * likely * (slope * likely);
}

// Rows of `slopes` slopes meet rows of `columns` radii: slope k belongs to radius k.
static void meet_radii(derivatives *d, sinkproof_trace_point point, size_t layer, size_t count,
                       size_t slopes, const double *slope, size_t columns) {
    if (d->radii == NULL) return;
    const double *worst = *next_map_at(&d->radii->worst, point, layer);
    const double *likely = *next_map_at(&d->radii->likely, point, layer);
    if (worst == NULL || likely == NULL) return;
    for (size_t i = 0; i < count; i++) {
        size_t at = i / slopes * columns + i % slopes;
        add_element(d, slope[i], worst[at], likely[at]);
    }
}

static void keep_slopes(derivatives *d, sinkproof_trace_point point, size_t layer, size_t count,
                        const double *slope) {
    if (d->kept == NULL || !next_engine_draws(point)) return;
    double **kept = next_map_at(d->kept, point, layer);
    if (*kept == NULL) *kept = malloc(count * sizeof **kept);
    d->failed = d->failed || *kept == NULL;
    if (*kept != NULL) memcpy(*kept, slope, count * sizeof **kept);
}

// A point with the derivative of another: what is added to it is not weighed.
static void see_derivative_of(derivatives *d, sinkproof_trace_point point, size_t layer,
                              size_t count, const double *slope) {
    if (!sinkproof_trace_point_exists(d->p->config, point, layer)) return;
    if (sinkproof_trace_elements(d->p->config, point, d->p->n) != count) return;
    meet_radii(d, point, layer, count, count, slope, count);
    keep_slopes(d, point, layer, count, slope);
}

static void see_derivative(void *context, const char *name, size_t rank, const size_t *shape,
                           const double *values) {
    derivatives *d = context;
    char of[SINKPROOF_TRACE_NAME];
    const char *mark = strchr(name, 'd');
    sinkproof_trace_point point;
    size_t layer, count = 1, n = d->p->n;
    if (mark == NULL || strlen(name) >= sizeof of) return;
    snprintf(of, sizeof of, "%.*s%s", (int)(mark - name), name, mark + 1);
    if (!sinkproof_trace_name_parse(of, &point, &layer)) return; // of a weight
    for (size_t r = 0; r < rank; r++) count *= shape[r];
    see_derivative_of(d, point, layer, count, values);
    if (point == TRACE_A13) see_derivative_of(d, TRACE_A12, layer, count, values);
    if (point == TRACE_M12) see_derivative_of(d, TRACE_M11, layer, count, values);
    if (point == TRACE_M6) see_derivative_of(d, TRACE_M5, layer, count, values);
    if (point == TRACE_M10) see_derivative_of(d, TRACE_M9, layer, count, values);
    if (point == TRACE_A10) meet_radii(d, TRACE_A9, layer, count, n, values, n + 1);
}

bool next_derivatives(const next_prompt *p, const sinkproof_activations *real, size_t i,
                      const next_radii *radii, next_position *position, next_map *kept,
                      sinkproof_error *error) {
    size_t vocab = p->config->vocab;
    double *dlogits_nv = calloc(p->n * vocab, sizeof *dlogits_nv);
    derivatives d = {.p = p, .radii = radii, .kept = kept};
    if (dlogits_nv == NULL)
        return sinkproof_fail(error, "no memory for the derivatives of %s",
                              sinkproof_counted(p->n * vocab, "logit").text);
    dlogits_nv[i * vocab + position->argmax] = 1;
    dlogits_nv[i * vocab + position->runner] = -1;
    const sinkproof_loss_gradients loss = {.dlogits_nv = dlogits_nv};
    const sinkproof_gradient_observer observer = {see_derivative, &d};
    bool good = sinkproof_backward(p->model, real, &loss, &observer, error);
    free(dlogits_nv);
    if (good && d.failed) good = sinkproof_fail(error, "no memory for derivatives");
    if (good && radii != NULL) position->worst = d.worst, position->likely = sqrt(d.squares);
    return good;
}
