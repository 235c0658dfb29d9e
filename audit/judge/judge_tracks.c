// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What is measured of the tracks at a point: in 2-norms, and beside certified truth.
#include "audit/judge/judge_tracks.h"

#include <stdlib.h>

size_t tracks_width(const tracks *t, sinkproof_trace_point point) {
    return sinkproof_trace_elements(t->pass->config, point, 1);
}

void tracks_add(sinkproof_errors *sum, const sinkproof_errors *more) {
    sum->truth += more->truth, sum->error += more->error;
    sum->local += more->local, sum->inherited += more->inherited;
}

sinkproof_errors tracks_measure(const sinkproof_tensor *tensor, size_t offset, size_t count,
                                const double *truth, double *local) {
    sinkproof_errors e = {0};
    for (size_t i = 0; i < count; i++) {
        double v = sinkproof_tensor_value(tensor, offset + i), here = v - local[i];
        double whole = v - truth[i], before = local[i] - truth[i];
        e.truth += truth[i] * truth[i], e.error += whole * whole;
        e.local += here * here, e.inherited += before * before;
        local[i] = v;
    }
    return e;
}

sinkproof_errors *tracks_errors(const tracks *t, sinkproof_trace_point point, size_t layer) {
    const sinkproof_judgement *j = t->pass->judgement;
    bool layered = sinkproof_trace_point_is_layered(point);
    for (size_t i = 0; i < j->n_reports; i++)
        if (j->reports[i].point == point && (!layered || j->reports[i].layer == layer))
            return &j->reports[i].errors;
    return NULL;
}

// ---- against certified truth (judge_certified.h)

bool tracks_balls(const tracks *t, sinkproof_trace_point point, size_t layer, truth_balls *balls) {
    return t->truth != NULL && sinkproof_truth_file_find(t->truth, point, layer, balls);
}

void tracks_conclude(const tracks *t, const sinkproof_tensor *tensor, sinkproof_trace_point point,
                     size_t layer, const certified_row *rows, size_t m, size_t other) {
    sinkproof_judgement *j = t->pass->judgement;
    certified_append(j->certified, &j->policy, tensor, point, layer, rows, m, other);
}

bool tracks_certify(const tracks *t, sinkproof_trace_point point, size_t layer, size_t width,
                    bool of_slots, double *x) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(t->pass->trace, point, layer);
    truth_balls balls;
    if (tensor == NULL || tracks_errors(t, point, layer) == NULL ||
        !tracks_balls(t, point, layer, &balls))
        return true;
    certified_row *row_n = calloc(t->n, sizeof *row_n);
    size_t other = 0;
    if (row_n == NULL) return false;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < t->n; i++)
        if (!of_slots || !t->other_n[i])
            certified_measure(&row_n[i], tensor, &balls, i * width, width,
                              x != NULL ? &x[(2 * t->n + i) * width] : NULL);
    for (size_t i = 0; i < t->n; i++) other += of_slots && t->other_n[i];
    tracks_conclude(t, tensor, point, layer, row_n, t->n, other);
    free(row_n);
    return true;
}

void tracks_compare_choice(tracks *t, size_t layer, size_t i, const int32_t *chosen_k) {
    const sinkproof_tensor *m3 = sinkproof_trace_find(t->truth->trace, TRACE_M3, layer);
    t->other_n[i] =
        certified_choice(t->pass->judgement->certified, m3, i, t->pass->config->n_chosen, chosen_k);
}

bool tracks_compare(const tracks *t, sinkproof_trace_point point, size_t layer, size_t width,
                    bool of_slots, double *x) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(t->pass->trace, point, layer);
    sinkproof_errors *sum = tracks_errors(t, point, layer);
    if (tensor == NULL || sum == NULL) return true;
    sinkproof_errors *row_n = calloc(t->n, sizeof *row_n);
    if (row_n == NULL) return false;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < t->n; i++)
        if (!of_slots || !t->open_n[i])
            row_n[i] =
                tracks_measure(tensor, i * width, width, &x[i * width], &x[(t->n + i) * width]);
    for (size_t i = 0; i < t->n; i++) tracks_add(sum, &row_n[i]); // in order, for any threads
    free(row_n);
    return tracks_certify(t, point, layer, width, of_slots, x);
}
