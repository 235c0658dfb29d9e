// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The log-sum-exp of a row of scores, which fused kernels return beside their output. Engines have
// it with the sink or without it; where the metadata do not say which, the tensor is compared as
// both, and the reports that fit better are kept, one choice for the whole trace.
#include "audit/judge/judge_internal.h"

#include <stdlib.h>

bool judge_lse(judge_part *part, const sinkproof_setting *s, const lse_row *row) {
    static const sinkproof_trace_point points[] = {TRACE_LSE, TRACE_LSE_KEYS};
    const judge_pass *pass = part->pass;
    size_t heads = pass->config->n_heads;
    bool by_token = sinkproof_trace_lse_by_token(pass->trace);
    for (size_t k = 0; k < 2; k++) {
        if (!point_is_traced(pass, points[k], part->layer)) continue;
        const trace_piece piece = {.point = points[k],
                                   .offset = by_token ? row->i * heads + row->h
                                                      : row->h * pass->n + row->i,
                                   .count = 1,
                                   .token = row->i};
        sinkproof_honest x = sinkproof_unknown_set(0);
        if (row->z_j != NULL &&
            !sinkproof_honest_lse(s, row->seen, row->z_j, row->b, points[k] == TRACE_LSE, &x))
            return false;
        piece_compare(part, &piece, &x);
    }
    return true;
}

void judge_settle_lse(judge_pass *pass) {
    sinkproof_judgement *j = pass->judgement;
    bool traced = false;
    for (size_t l = 0; l < pass->config->n_layers; l++)
        for (int keys = 0; keys < 2; keys++) {
            const sinkproof_point_report *r =
                pass->report_of[l * TRACE_POINTS + (keys ? TRACE_LSE_KEYS : TRACE_LSE)];
            j->lse_outside[keys] += r != NULL ? r->outside : 0;
            traced = traced || r != NULL;
        }
    j->lse = sinkproof_trace_lse(pass->trace);
    if (!traced || j->lse != SINKPROOF_LSE_UNSAID) return;
    bool keys = j->lse_outside[1] < j->lse_outside[0];
    j->lse_tried = true;
    j->lse = keys ? SINKPROOF_LSE_KEYS : SINKPROOF_LSE_WITH_SINK;
    for (size_t l = 0; l < pass->config->n_layers; l++) {
        sinkproof_point_report **left =
            &pass->report_of[l * TRACE_POINTS + (keys ? TRACE_LSE : TRACE_LSE_KEYS)];
        sinkproof_point_report **kept =
            &pass->report_of[l * TRACE_POINTS + (keys ? TRACE_LSE_KEYS : TRACE_LSE)];
        if (*kept == NULL) continue; // the layer's tensor is named for its kind
        report_free(*left);
        *left = NULL;
    }
}
