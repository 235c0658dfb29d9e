// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sums of squares in binary64 with what rounding may have cost them: a term has at most six
// relative errors of half an epsilon, the sum of n terms n - 1 more, and a square may underflow.
#include "audit/judge/judge_certified.h"

#include "audit/trace/trace_points.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double above(double x, size_t terms) {
    return x * (1 + ((double)terms + 8) * DBL_EPSILON) + ((double)terms + 1) * DBL_MIN;
}

static double below(double x, size_t terms) {
    double least = x * (1 - ((double)terms + 8) * DBL_EPSILON) - ((double)terms + 1) * DBL_MIN;
    return least > 0 ? least : 0;
}

// Bounds of |x| where the truth lies within r of x; the difference x had one rounding.
static certified_span distance(double x, double r) {
    if (x == 0 && r == 0) return (certified_span){0, 0};
    double lo = below(fabs(x), 0) - r;
    return (certified_span){lo > 0 ? below(lo, 0) : 0, above(fabs(x) + r, 0)};
}

static void keep_largest(certified_row *row, certified_span error, size_t at) {
    if (row->elements == 0 || error.hi > row->worst.hi) row->worst_at = at;
    row->worst.lo = fmax(row->worst.lo, error.lo), row->worst.hi = fmax(row->worst.hi, error.hi);
}

static double size_of(double x) {
    return isnan(x) ? INFINITY : fabs(x);
}

void certified_measure(certified_row *row, const sinkproof_tensor *engine, const truth_balls *truth,
                       size_t offset, size_t count, double *stage_i) {
    for (size_t i = 0; i < count; i++) {
        double v = sinkproof_tensor_value(engine, offset + i);
        double m = sinkproof_tensor_value(truth->midpoint, offset + i);
        double r = sinkproof_tensor_value(truth->radius, offset + i);
        double here = stage_i != NULL ? size_of(v - stage_i[i]) : NAN;
        double before = stage_i != NULL ? size_of(stage_i[i] - m) : NAN;
        certified_span error = {INFINITY, INFINITY}, size = {0, INFINITY};
        if (isfinite(r)) size = distance(m, r);
        if (isfinite(v))
            error = isfinite(r) ? distance(v - m, r) : size;
        else
            row->not_finite++;
        keep_largest(row, error, offset + i);
        row->elements++;
        row->size.lo += size.lo * size.lo, row->size.hi += size.hi * size.hi;
        row->error.lo += error.lo * error.lo, row->error.hi += error.hi * error.hi;
        row->middle += m * m;
        row->local += here * here, row->inherited += before * before;
        row->local_worst = fmax(row->local_worst, here);
        row->inherited_worst = fmax(row->inherited_worst, before);
        if (stage_i != NULL) stage_i[i] = v;
    }
}

void certified_add(certified_row *into, const certified_row *more) {
    if (more->elements == 0) return;
    keep_largest(into, more->worst, more->worst_at);
    into->elements += more->elements, into->not_finite += more->not_finite;
    into->size.lo += more->size.lo, into->size.hi += more->size.hi;
    into->error.lo += more->error.lo, into->error.hi += more->error.hi;
    into->middle += more->middle;
    into->local += more->local, into->inherited += more->inherited;
    into->local_worst = fmax(into->local_worst, more->local_worst);
    into->inherited_worst = fmax(into->inherited_worst, more->inherited_worst);
}

// Bounds of the quotient of two non-negative numbers.
static certified_span quotient(certified_span x, certified_span y) {
    if (x.hi == 0) return x;
    return (certified_span){y.hi > 0 && isfinite(y.hi) ? below(x.lo / y.hi, 0) : 0,
                            y.lo > 0 ? above(x.hi / y.lo, 0) : INFINITY};
}

static certified_span root(certified_span x) {
    return (certified_span){below(sqrt(x.lo), 0), above(sqrt(x.hi), 0)};
}

static void conclude(certified_point *point, const certified_row *rows, size_t n) {
    double local = 0, inherited = 0;
    certified_span sum = {0, 0};
    for (size_t i = 0; i < n; i++) {
        const certified_row *r = &rows[i];
        certified_span size = {below(r->size.lo, r->elements), above(r->size.hi, r->elements)};
        certified_span error = {below(r->error.lo, r->elements), above(r->error.hi, r->elements)};
        point->not_finite += r->not_finite;
        if (r->elements == 0) continue;
        if (r->size.hi == 0) { // or its square is
            point->zero++;
            continue;
        }
        double width = (double)r->elements;
        if (r->worst.hi == 0) error = (certified_span){0, 0};
        certified_span share = quotient(error, size);
        certified_span mean = {below(size.lo / width, 0), above(size.hi / width, 0)};
        certified_span worst = quotient(r->worst, root(mean));
        if (point->rows == 0 || worst.hi > point->worst.hi) point->worst_at = r->worst_at;
        point->worst.lo = fmax(point->worst.lo, worst.lo);
        point->worst.hi = fmax(point->worst.hi, worst.hi);
        sum.lo += share.lo, sum.hi += share.hi;
        local += r->local / r->middle, inherited += r->inherited / r->middle;
        double unit = sqrt(r->middle / width);
        point->local_worst = fmax(point->local_worst, r->local_worst / unit);
        point->inherited_worst = fmax(point->inherited_worst, r->inherited_worst / unit);
        point->rows++;
    }
    double compared = point->rows > 0 ? (double)point->rows : 1;
    sum = (certified_span){below(sum.lo, point->rows), above(sum.hi, point->rows)};
    point->rms = root((certified_span){below(sum.lo / compared, 0), above(sum.hi / compared, 0)});
    if (point->worst.hi == 0) point->rms = point->worst;
    if (isnan(local)) point->local_worst = point->inherited_worst = NAN; // no stage
    point->local_rms = sqrt(local / compared), point->inherited_rms = sqrt(inherited / compared);
}

void certified_append(certified_comparison *comparison, const sinkproof_policy *policy,
                      const sinkproof_tensor *tensor, sinkproof_trace_point point, size_t layer,
                      const certified_row *rows, size_t n, size_t other) {
    certified_point *p = &comparison->points[comparison->n_points++];
    sinkproof_point at;
    *p = (certified_point){.point = point, .layer = layer, .rank = tensor->rank, .other = other};
    p->format = sinkproof_trace_rounding(point, &at) ? policy->at[at].format : SINKPROOF_REAL;
    if (!(sinkproof_unit_roundoff(p->format) > 0))
        p->format = sinkproof_trace_format(tensor->dtype);
    snprintf(p->name, sizeof p->name, "%s", tensor->name);
    memcpy(p->shape, tensor->shape, sizeof p->shape);
    conclude(p, rows, n);
}

bool certified_choice(certified_comparison *comparison, const sinkproof_tensor *m3, size_t i,
                      size_t k, const int32_t *chosen_k) {
    size_t found = 0;
    bool differs = m3 == NULL || chosen_k[0] < 0;
    if (differs) return true;
    for (size_t s = 0; s < k; s++) {
        double truth = sinkproof_tensor_value(m3, i * k + s);
        differs = differs || truth != chosen_k[s];
        for (size_t other = 0; other < k; other++) found += truth == chosen_k[other];
    }
    comparison->choices++;
    comparison->otherwise += found < k;
    return differs;
}

// The token whose logit is certainly the largest; `vocab` if none is.
static size_t certain_argmax(const truth_balls *truth, size_t from, size_t vocab) {
    size_t best = 0;
    double least = -INFINITY;
    for (size_t v = 0; v < vocab; v++) {
        double m = sinkproof_tensor_value(truth->midpoint, from + v);
        double end = nextafter(m - sinkproof_tensor_value(truth->radius, from + v), -INFINITY);
        if (end > least) least = end, best = v;
    }
    for (size_t v = 0; v < vocab; v++) {
        double m = sinkproof_tensor_value(truth->midpoint, from + v);
        double end = nextafter(m + sinkproof_tensor_value(truth->radius, from + v), INFINITY);
        if (v != best && !(end < least)) return vocab;
    }
    return best;
}

certified_argmax certified_argmaxes(const sinkproof_tensor *f2, const truth_balls *truth, size_t n,
                                    size_t vocab) {
    certified_argmax a = {.tokens = n};
    for (size_t i = 0; i < n; i++) {
        size_t certain = certain_argmax(truth, i * vocab, vocab), as_large = 0;
        if (certain == vocab) {
            a.open++;
            continue;
        }
        double own = sinkproof_tensor_value(f2, i * vocab + certain);
        bool larger = false, nan = false;
        for (size_t v = 0; v < vocab; v++) {
            double x = sinkproof_tensor_value(f2, i * vocab + v);
            larger = larger || x > own, nan = nan || isnan(x), as_large += x == own;
        }
        if (larger && !nan && a.differs++ == 0) a.first_differs = i;
        a.nans += nan, a.ties += !nan && !larger && as_large > 1;
        a.agrees += !nan && !larger && as_large == 1;
    }
    return a;
}

certified_comparison *certified_new(const truth_file *truth, size_t points) {
    certified_comparison *c = calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    c->encloses = sinkproof_truth_file_encloses(truth);
    c->points = calloc(points + 1, sizeof *c->points);
    if (c->points != NULL) return c;
    free(c);
    return NULL;
}

void certified_free(certified_comparison *comparison) {
    if (comparison != NULL) free(comparison->points);
    free(comparison);
}
