// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's norms: A1, M1 and F1.
#include "audit/judge/judge_internal.h"

#include "model/slots.h"

#include <stdlib.h>
#include <string.h>

enum { TOKENS = 16 }; // tokens of a part

typedef struct norm_work {
    sinkproof_trace_point point;
    size_t d;                        // row length
    const double *scale_d, *shift_d; // shift_d NULL: RMSNorm
    const sinkproof_honest *x_nd;
    sinkproof_honest *y_nd;
} norm_work;

static void norm_token(judge_part *part, size_t i, void *of) {
    const norm_work *w = of;
    const judge_pass *pass = part->pass;
    size_t d = w->d;
    sinkproof_setting s = pass_setting(pass, pass->n * d);
    sinkproof_point at;
    sinkproof_honest *y_d = &w->y_nd[i * d];
    sinkproof_honest *x_d = part_allocate(part, d, sizeof *x_d);
    double common = 0;
    if (x_d == NULL) return;
    memcpy(x_d, &w->x_nd[i * d], d * sizeof *x_d);
    const sinkproof_norm norm = {d, w->scale_d, meant_norm(pass, &s, d, x_d)};
    sinkproof_trace_rounding(w->point, &at);
    if (w->shift_d != NULL)
        sinkproof_honest_layernorm(&s, at, &norm, w->shift_d, x_d, y_d);
    else
        sinkproof_honest_rmsnorm(&s, at, &norm, x_d, y_d, &common);
    free(x_d);
    const trace_piece piece = {
        .point = w->point, .offset = i * d, .count = d, .token = i, .common = common};
    piece_compare(part, &piece, y_d);
}

void layer_norm_weights(const judge_pass *pass, size_t layer, sinkproof_trace_point point,
                        sinkproof_matrix *scale, sinkproof_matrix *shift) {
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    size_t n = sinkproof_trace_weights(pass->config, point, slots);
    *scale = sinkproof_model_slot(pass->model, layer, slots[0]);
    *shift = n > 1 ? sinkproof_model_slot(pass->model, layer, slots[1]) : (sinkproof_matrix){0};
}

bool judge_norm(judge_pass *pass, size_t layer, sinkproof_trace_point point,
                const sinkproof_honest *x_nd, sinkproof_honest *y_nd) {
    if (judge_skips_or_reads(pass, point, layer, y_nd)) return true;
    bool centres = pass->config->norm == SINKPROOF_LAYERNORM;
    sinkproof_matrix scale, shift;
    layer_norm_weights(pass, layer, point, &scale, &shift);
    double *scale_d = vector_decode(&scale), *shift_d = centres ? vector_decode(&shift) : NULL;
    norm_work w = {point, scale.cols, scale_d, shift_d, x_nd, y_nd};
    bool fine = scale_d != NULL && (shift_d != NULL || !centres) &&
                judge_each_token(pass, layer, TOKENS, norm_token, &w);
    free(scale_d);
    free(shift_d);
    return fine;
}
