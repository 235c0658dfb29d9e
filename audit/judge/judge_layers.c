// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Drift of a point over its layers together (stat.drift-pooled): a lean that is plausible in each
// single layer may be implausible in all of them. Only layers without a finding of their own are
// pooled, so that one broken layer accuses no other; a finding is charged to the layers that lean
// the same way.
#include "audit/judge/judge_internal.h"

#include <math.h>
#include <stdlib.h>

static bool report_is_pooled(const sinkproof_point_report *r, sinkproof_trace_point point) {
    return r->point == point && r->verdict < SINKPROOF_VERDICT_SUSPICIOUS && r->drift.bin >= 0;
}

// `layers` has room for all reports.
static bool pool_layers(sinkproof_judgement *j, sinkproof_trace_point point,
                        const sinkproof_drift **layers) {
    sinkproof_drift_result together;
    size_t n = 0;
    for (size_t i = 0; i < j->n_reports; i++)
        if (report_is_pooled(&j->reports[i], point)) layers[n++] = &j->reports[i].drift_sums;
    if (n < 2) return true;
    if (!sinkproof_drift_pooled(n, layers, j->rate, &together)) return false;
    bool leans = sinkproof_drift_leans(&together);
    for (size_t i = 0; i < j->n_reports; i++) {
        sinkproof_point_report *r = &j->reports[i];
        if (!report_is_pooled(r, point)) continue;
        double own = sinkproof_drift_gain(&r->drift_sums, together.bin);
        r->layers_together = n, r->together = together;
        r->leans_together = leans && own != 0 && (own < 0) == (together.gain < 0);
    }
    for (size_t i = 0; i < j->n_reports; i++)
        if (j->reports[i].leans_together && j->reports[i].point == point)
            j->reports[i].verdict = SINKPROOF_VERDICT_SUSPICIOUS;
    return true;
}

bool judge_layers_together(sinkproof_judgement *j) {
    const sinkproof_drift **layers = malloc((j->n_reports + 1) * sizeof *layers);
    bool fine = layers != NULL;
    for (int p = 0; fine && p < TRACE_POINTS; p++)
        if (sinkproof_trace_point_is_layered((sinkproof_trace_point)p))
            fine = pool_layers(j, (sinkproof_trace_point)p, layers);
    free(layers);
    return fine;
}
