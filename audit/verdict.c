// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Settling a point: the engine's values against their honest sets, then in their place.
#include "audit/command.h"
#include "audit/judge_internal.h"
#include "audit/trace_points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *sinkproof_verdict_name(sinkproof_verdict verdict) {
    static const char *const names[] = {"absent", "exact", "within", "suspicious", "bug"};
    return names[verdict];
}

void *sinkproof_grab(size_t count, size_t size) {
    void *p = calloc(count > 0 ? count : 1, size);
    if (p == NULL) {
        fprintf(stderr, "sinkproof judge: out of memory for %zu elements of %zu bytes\n", count,
                size);
        exit(SINKPROOF_BAD_INPUT);
    }
    return p;
}

sinkproof_setting sinkproof_walk_setting(const sinkproof_walk *walk, size_t elements) {
    return sinkproof_setting_for(walk->policy, elements, walk->rate, walk->end_to_end);
}

// Bins of a quarter of an octave: the exponent and the two bits behind it, from 2^-32 on.
enum { FIRST_BIN = (1023 - 32) * 4 };

void sinkproof_histogram_add(sinkproof_histogram *histogram, double x) {
    uint64_t pattern;
    memcpy(&pattern, &x, sizeof pattern);
    int bin = x > 0 ? (int)(pattern >> 50) - FIRST_BIN : 0;
    bin = bin < 0 ? 0 : bin >= SINKPROOF_HISTOGRAM ? SINKPROOF_HISTOGRAM - 1 : bin;
    histogram->counts[bin]++;
    histogram->total++;
}

double sinkproof_histogram_median(const sinkproof_histogram *histogram) {
    size_t below = 0;
    for (int bin = 0; bin < SINKPROOF_HISTOGRAM; bin++) {
        below += histogram->counts[bin];
        if (2 * below >= histogram->total && below > 0) // the bin's middle
            return bin == 0 ? 0 : ldexp(1 + (bin % 4 + 0.5) / 4, bin / 4 - 32);
    }
    return 0;
}

static sinkproof_point_report *report_for(sinkproof_walk *walk, sinkproof_trace_point point,
                                          size_t layer, const sinkproof_tensor *tensor) {
    bool layered = sinkproof_trace_point_is_layered(point);
    int *slot =
        &walk->report_of[(layered ? layer : walk->config->n_layers) * SINKPROOF_TRACE_POINTS +
                         (size_t)point];
    sinkproof_judgement *judgement = walk->judgement;
    if (*slot < 0) {
        *slot = (int)judgement->n_reports++;
        sinkproof_point_report *report = &judgement->reports[*slot];
        *report = (sinkproof_point_report){.point = point, .layer = layer, .rank = tensor->rank};
        memcpy(report->shape, tensor->shape, sizeof report->shape);
        sinkproof_trace_name(point, layer, report->name);
    }
    return &judgement->reports[*slot];
}

static void compare_element(sinkproof_point_report *report, sinkproof_format format, size_t at,
                            double v, const sinkproof_honest *x) {
    report->elements++;
    bool inside = v >= x->lo && v <= x->hi; // NaN is outside
    bool likely = v >= x->likely_lo && v <= x->likely_hi;
    double radius = sinkproof_radius(x), ulp = sinkproof_ulp(format, x->mid);
    if (x->lo != x->hi) {
        report->several++;
        sinkproof_histogram_add(&report->shares, fabs(v - x->mid) / radius);
    }
    sinkproof_histogram_add(&report->widths, sinkproof_likely_radius(x) / ulp);
    double share = v == x->mid ? 0 : fabs(v - x->mid) / radius, excess = share;
    if (!inside) {
        report->outside++;
        double gap = v > x->hi ? v - x->hi : x->lo - v;
        excess = 1e6 + gap / ulp; // any element outside ranks before every one inside
        if (!(excess < 1e300)) excess = 1e300;
        if (excess > report->worst_excess) report->excess_ulp = gap / ulp;
    } else if (!likely) {
        report->unlikely++;
        excess = 1e3 + share;
    }
    if (inside && share > report->share_worst) report->share_worst = share;
    if (excess > report->worst_excess || report->elements == 1) {
        report->worst_excess = excess;
        report->worst_at = at, report->worst_value = v, report->worst_set = *x;
    }
}

static void compare(sinkproof_walk *walk, sinkproof_point_report *report, sinkproof_format format,
                    size_t offset, size_t count, sinkproof_honest *x, const double *v,
                    double common, double where) {
    for (size_t i = 0; i < count; i++) {
        x[i] = sinkproof_honest_rounded(format, x[i]); // to what the tensor is stored in
        compare_element(report, format, offset + i, v[i], &x[i]);
        double error = v[i] - x[i].mid;
        if (isfinite(error)) report->local_square += error * error;
    }
    // In binary64 the emulation is no sharper than the engine: drift has nothing to say.
    if (walk->policy->inside == SINKPROOF_F32)
        sinkproof_drift_row(&report->drift_sums, count, v, x, common, where);
}

bool sinkproof_settle(sinkproof_walk *walk, sinkproof_trace_point point, size_t layer,
                      size_t offset, size_t count, sinkproof_honest *x, double common,
                      double where) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(walk->trace, point, layer);
    if (tensor == NULL) return false;
    sinkproof_point_report *report = report_for(walk, point, layer, tensor);
    double *v = sinkproof_grab(count, sizeof *v);
    for (size_t i = 0; i < count; i++) v[i] = sinkproof_tensor_value(tensor, offset + i);
    if (walk->end_to_end) {
        for (size_t i = 0; i < count; i++) {
            double error = v[i] - x[i].mid;
            report->truth_square += x[i].mid * x[i].mid;
            report->inherited_square += error * error;
        }
    } else {
        compare(walk, report, sinkproof_trace_format(tensor->dtype), offset, count, x, v, common,
                where);
        for (size_t i = 0; i < count; i++) x[i] = sinkproof_known(v[i]);
    }
    free(v);
    return true;
}

// ---- the worst element's inputs, as hex floats

static double traced(const sinkproof_walk *walk, sinkproof_trace_point point, size_t layer,
                     size_t at) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(walk->trace, point, layer);
    return tensor != NULL && at < sinkproof_tensor_elements(tensor)
               ? sinkproof_tensor_value(tensor, at)
               : NAN;
}

// "0x1.8p+1", or that the trace does not hold it.
typedef struct hex_text {
    char text[32];
} hex_text;

static hex_text shown(double x) {
    hex_text h;
    if (isnan(x))
        snprintf(h.text, sizeof h.text, "not traced");
    else
        snprintf(h.text, sizeof h.text, "%a", x);
    return h;
}

// A9, A10: which column it is, and the logit behind it.
static void describe_weight(const sinkproof_walk *walk, const sinkproof_point_report *r, char *out,
                            size_t size) {
    size_t last = r->shape[2], row = r->worst_at / last, j = r->worst_at % last;
    size_t i = row % r->shape[1], h = row / r->shape[1];
    sinkproof_layer layer = sinkproof_model_layer(walk->model, r->layer);
    double *sinks = sinkproof_decoded(&layer.sinks);
    bool seen = j >= sinkproof_first_key(walk->config, r->layer, i) && j <= i;
    if (j == walk->n)
        snprintf(out, size, "the sink, logit %s", shown(sinks[h]).text);
    else
        snprintf(out, size, "a %s key, score %s; sink logit %s", seen ? "visible" : "masked",
                 shown(traced(walk, SINKPROOF_TRACE_A6, r->layer, row * walk->n + j)).text,
                 shown(sinks[h]).text);
    free(sinks);
}

// A1, M1, F1: the element and its row's mean square.
static void describe_norm(const sinkproof_walk *walk, const sinkproof_point_report *r, char *out,
                          size_t size) {
    bool first = r->point == SINKPROOF_TRACE_A1 && r->layer == 0;
    sinkproof_trace_point before = first                            ? SINKPROOF_TRACE_T0
                                   : r->point == SINKPROOF_TRACE_M1 ? SINKPROOF_TRACE_A13
                                                                    : SINKPROOF_TRACE_M12;
    size_t l = r->layer, last = r->shape[1], row = r->worst_at / last;
    if (r->point == SINKPROOF_TRACE_A1 && !first) l--;
    if (r->point == SINKPROOF_TRACE_F1) l = walk->config->n_layers - 1;
    double square = 0;
    for (size_t d = 0; d < last; d++) {
        double x = traced(walk, before, l, row * last + d);
        square += x * x;
    }
    snprintf(out, size, "x %s, mean square %s", shown(traced(walk, before, l, r->worst_at)).text,
             shown(square / (double)last).text);
}

// A4: the pair that was turned.
static void describe_pair(const sinkproof_walk *walk, const sinkproof_point_report *r, char *out,
                          size_t size) {
    sinkproof_trace_point before =
        r->point == SINKPROOF_TRACE_A4_Q ? SINKPROOF_TRACE_A2_Q : SINKPROOF_TRACE_A2_K;
    size_t last = r->shape[2], half = last / 2, row = r->worst_at / last;
    size_t pair = r->worst_at % last % half;
    snprintf(out, size, "pair %zu: x1 %s, x2 %s, position %d", pair,
             shown(traced(walk, before, r->layer, row * last + pair)).text,
             shown(traced(walk, before, r->layer, row * last + pair + half)).text,
             (int)sinkproof_trace_positions(walk->trace)[row / r->shape[1]]);
}

void sinkproof_describe_inputs(const sinkproof_walk *walk, sinkproof_point_report *r) {
    char *out = r->worst_inputs;
    size_t size = sizeof r->worst_inputs, at = r->worst_at, l = r->layer;
    switch (r->point) {
    case SINKPROOF_TRACE_A1:
    case SINKPROOF_TRACE_M1:
    case SINKPROOF_TRACE_F1:
        describe_norm(walk, r, out, size);
        return;
    case SINKPROOF_TRACE_A4_Q:
    case SINKPROOF_TRACE_A4_K:
        describe_pair(walk, r, out, size);
        return;
    case SINKPROOF_TRACE_A9:
    case SINKPROOF_TRACE_A10:
        describe_weight(walk, r, out, size);
        return;
    case SINKPROOF_TRACE_A13:
        snprintf(out, size, "residual %s, attention %s",
                 shown(l > 0 ? traced(walk, SINKPROOF_TRACE_M12, l - 1, at)
                             : traced(walk, SINKPROOF_TRACE_T0, 0, at))
                     .text,
                 shown(traced(walk, SINKPROOF_TRACE_A12, l, at)).text);
        return;
    case SINKPROOF_TRACE_M8: // gate and up are neighbours in M6
        snprintf(out, size, "gate %s, up %s",
                 shown(traced(walk, SINKPROOF_TRACE_M6, l, 2 * at)).text,
                 shown(traced(walk, SINKPROOF_TRACE_M6, l, 2 * at + 1)).text);
        return;
    case SINKPROOF_TRACE_M12:
        snprintf(out, size, "residual %s, mixture %s",
                 shown(traced(walk, SINKPROOF_TRACE_A13, l, at)).text,
                 shown(traced(walk, SINKPROOF_TRACE_M11, l, at)).text);
        return;
    default: // a sum of many products: the set says all
        out[0] = '\0';
    }
}
