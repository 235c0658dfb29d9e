// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Settling a point: the engine's values against their honest sets, then in their place.
#include "audit/judge_internal.h"

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
        fprintf(stderr, "sinkproof judge: out of memory\n");
        abort();
    }
    return p;
}

sinkproof_setting sinkproof_walk_setting(const sinkproof_walk *walk, size_t elements) {
    return sinkproof_setting_for(walk->policy, elements, walk->rate, walk->end_to_end);
}

void sinkproof_histogram_add(sinkproof_histogram *histogram, double x) {
    double place = x > 0 ? 4 * (log2(x) + 32) : 0;
    int bin = place < 0 ? 0 : place >= SINKPROOF_HISTOGRAM ? SINKPROOF_HISTOGRAM - 1 : (int)place;
    histogram->counts[bin]++;
    histogram->total++;
}

double sinkproof_histogram_median(const sinkproof_histogram *histogram) {
    size_t below = 0;
    for (int bin = 0; bin < SINKPROOF_HISTOGRAM; bin++) {
        below += histogram->counts[bin];
        if (2 * below >= histogram->total && below > 0)
            return bin == 0 ? 0 : exp2((bin + 0.5) / 4 - 32);
    }
    return 0;
}

static sinkproof_format format_of(sinkproof_dtype dtype) {
    switch (dtype) {
    case SINKPROOF_DTYPE_BF16:
        return SINKPROOF_BF16;
    case SINKPROOF_DTYPE_F16:
        return SINKPROOF_F16;
    case SINKPROOF_DTYPE_F32:
        return SINKPROOF_F32;
    default:
        return SINKPROOF_F64;
    }
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
        if (layered)
            snprintf(report->name, sizeof report->name, "%02zu.%s", layer,
                     sinkproof_trace_point_name(point));
        else
            snprintf(report->name, sizeof report->name, "%s", sinkproof_trace_point_name(point));
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
        compare(walk, report, format_of(tensor->dtype), offset, count, x, v, common, where);
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

void sinkproof_describe_inputs(const sinkproof_walk *walk, sinkproof_point_report *report) {
    size_t at = report->worst_at, l = report->layer, width = walk->config->inter;
    char *out = report->worst_inputs;
    size_t size = sizeof report->worst_inputs;
    size_t last = report->rank > 0 ? report->shape[report->rank - 1] : 1;
    size_t half = last / 2, row = at / last, column = at % last;
    sinkproof_trace_point before = SINKPROOF_TRACE_T0;
    switch (report->point) {
    case SINKPROOF_TRACE_M8:
        snprintf(out, size, "gate %a, up %a",
                 traced(walk, SINKPROOF_TRACE_M6, l, row * 2 * width + 2 * column),
                 traced(walk, SINKPROOF_TRACE_M6, l, row * 2 * width + 2 * column + 1));
        return;
    case SINKPROOF_TRACE_A4_Q:
    case SINKPROOF_TRACE_A4_K:
        before =
            report->point == SINKPROOF_TRACE_A4_Q ? SINKPROOF_TRACE_A2_Q : SINKPROOF_TRACE_A2_K;
        column %= half;
        snprintf(out, size, "pair %zu: x1 %a, x2 %a, position %d", column,
                 traced(walk, before, l, row * last + column),
                 traced(walk, before, l, row * last + column + half),
                 (int)sinkproof_trace_positions(walk->trace)[row / report->shape[1]]);
        return;
    case SINKPROOF_TRACE_A13:
        if (l > 0) before = SINKPROOF_TRACE_M12;
        snprintf(out, size, "residual %a, attention %a",
                 traced(walk, before, l > 0 ? l - 1 : 0, at),
                 traced(walk, SINKPROOF_TRACE_A12, l, at));
        return;
    case SINKPROOF_TRACE_M12:
        snprintf(out, size, "residual %a, mixture %a", traced(walk, SINKPROOF_TRACE_A13, l, at),
                 traced(walk, SINKPROOF_TRACE_M11, l, at));
        return;
    case SINKPROOF_TRACE_A9:
    case SINKPROOF_TRACE_A10: {
        size_t i = report->shape[1] > 0 ? row % report->shape[1] : 0, h = row / report->shape[1];
        sinkproof_layer layer = sinkproof_model_layer(walk->model, l);
        double *sinks = sinkproof_decoded(&layer.sinks);
        bool seen = column >= sinkproof_first_key(walk->config, l, i) && column <= i;
        const char *what = column == walk->n ? "the sink" : seen ? "a visible key" : "a masked key";
        snprintf(out, size, "%s; sink logit %a, score %a", what, sinks[h],
                 traced(walk, SINKPROOF_TRACE_A6, l, row * walk->n + column));
        free(sinks);
        return;
    }
    case SINKPROOF_TRACE_A1:
        before = l > 0 ? SINKPROOF_TRACE_M12 : SINKPROOF_TRACE_T0;
        break;
    case SINKPROOF_TRACE_M1:
        before = SINKPROOF_TRACE_A13;
        break;
    case SINKPROOF_TRACE_F1:
        before = SINKPROOF_TRACE_M12;
        l = walk->config->n_layers - 1;
        break;
    default:
        out[0] = '\0';
        return;
    }
    size_t from = report->point == SINKPROOF_TRACE_A1 && l > 0 ? l - 1 : l;
    double square = 0;
    for (size_t d = 0; d < last; d++) {
        double x = traced(walk, before, from, row * last + d);
        square += x * x;
    }
    snprintf(out, size, "x %a, mean square %a", traced(walk, before, from, at),
             square / (double)last);
}
