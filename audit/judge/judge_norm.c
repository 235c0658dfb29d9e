// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's norms: A1, M1 and F1.
#include "audit/judge/judge_internal.h"

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

bool judge_norm(judge_pass *pass, const sinkproof_walk_step *step, sinkproof_honest *y_nd) {
    const sinkproof_matrix *w = step->weights;
    bool centres = w[1].count > 0;
    double *scale_d = vector_decode(&w[0]), *shift_d = centres ? vector_decode(&w[1]) : NULL;
    norm_work work = {step->point, w[0].cols, scale_d, shift_d, step_input(pass, step, 0), y_nd};
    bool fine = scale_d != NULL && (shift_d != NULL || !centres) &&
                judge_each_token(pass, step_place(pass, step), TOKENS, norm_token, &work);
    free(scale_d);
    free(shift_d);
    return fine;
}
