// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's norms: A1, M1 and F1.
#include "audit/judge/judge_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 16 }; // tokens of a part

typedef struct norm_work {
    sinkproof_trace_point point;
    size_t n, rows, d;               // tokens; of each: rows, each of length d
    const double *scale_d, *shift_d; // shift_d NULL: RMSNorm
    const sinkproof_honest *x_nd;
    sinkproof_honest *y_nd;
    double *mid_nd; // the middles of x_nd; NULL: the norm is as defined
    // Whether the rounding before the weight is optional, and the policies that fix it.
    bool either;
    sinkproof_policy once, twice;
} norm_work;

static void normed_row(const norm_work *w, sinkproof_setting s, const sinkproof_policy *policy,
                       const sinkproof_norm *norm, const sinkproof_honest *x_d,
                       sinkproof_honest *y_d, double *common) {
    sinkproof_point at;
    s.policy = policy;
    sinkproof_trace_rounding(w->point, &at);
    if (w->shift_d != NULL)
        sinkproof_honest_layernorm(&s, at, norm, w->shift_d, x_d, y_d);
    else
        sinkproof_honest_rmsnorm(&s, at, norm, x_d, y_d, common);
}

// A kernel rounds all elements of a row before their weight, or none. y_d holds the sets of both
// (bound.norm-rounded); it is narrowed to those of the kernel that the trace's row shows: the one
// with fewer elements outside. A row that is inside both shows neither.
static void narrow_to_one_kernel(judge_part *part, const norm_work *w, const sinkproof_setting *s,
                                 const trace_piece *piece, const sinkproof_norm *norm,
                                 const sinkproof_honest *x_d, sinkproof_honest *y_d) {
    sinkproof_honest *once_d = part_allocate(part, w->d, sizeof *once_d);
    sinkproof_honest *twice_d = part_allocate(part, w->d, sizeof *twice_d);
    double common;
    if (once_d != NULL && twice_d != NULL) {
        normed_row(w, *s, &w->once, norm, x_d, once_d, &common);
        normed_row(w, *s, &w->twice, norm, x_d, twice_d, &common);
        size_t once = piece_outside(part, piece, once_d);
        size_t twice = piece_outside(part, piece, twice_d);
        if (once + twice > 0) memcpy(y_d, once <= twice ? once_d : twice_d, w->d * sizeof *y_d);
    }
    free(once_d);
    free(twice_d);
}

// A norm over another number: the scales take the quotient of the roots, and epsilon is in them.
// The squares of these numbers are [lo_d, hi_d]; y_d is the hull of the sets of both.
static void norm_otherwise(judge_part *part, const norm_work *w, size_t token,
                           const sinkproof_honest *x_d, sinkproof_norm *norm, trace_piece *piece,
                           sinkproof_honest *y_d) {
    const judge_pass *pass = part->pass;
    size_t d = w->d;
    sinkproof_setting s = pass_setting(pass, pass->n * w->rows * d);
    double *ends_d = part_allocate(part, 3 * d, sizeof *ends_d), *scale_d = ends_d + 2 * d, own = 0;
    sinkproof_honest *other_d = part_allocate(part, d, sizeof *other_d);
    const sinkproof_norm_question q = {.trace = pass->trace,
                                       .config = pass->config,
                                       .point = w->point,
                                       .layer = part->layer,
                                       .n = pass->n,
                                       .d = d,
                                       .token = token,
                                       .x_nd = w->mid_nd,
                                       .scale_d = w->scale_d,
                                       .eps = pass->config->rms_eps,
                                       .numbers = pass->meaning->norm_numbers,
                                       .table = pass->meaning->norm_table};
    bool fine = ends_d != NULL && other_d != NULL;
    bool known = fine && pass->meaning->norm_squares(&q, ends_d, ends_d + d);
    for (size_t i = 0; i < d; i++) own += x_d[i].mid * x_d[i].mid / (double)d;
    norm->scale_d = scale_d, norm->eps = 0;
    for (int end = 0; end < 2 && known && own > 0; end++) {
        for (size_t i = 0; i < d; i++)
            scale_d[i] = w->scale_d[i] * sqrt(own / ends_d[(size_t)end * d + i]);
        sinkproof_honest *to_d = end == 0 ? y_d : other_d;
        normed_row(w, s, s.policy, norm, x_d, to_d, &piece->common);
        if (w->either) narrow_to_one_kernel(part, w, &s, piece, norm, x_d, to_d);
        for (size_t i = 0; i < d && end == 1; i++) y_d[i] = sinkproof_honest_hull(y_d[i], to_d[i]);
    }
    for (size_t i = 0; i < d && !known; i++) y_d[i] = sinkproof_unknown_set(0);
    free(ends_d);
    free(other_d);
}

// x_d: room for a row.
static void norm_row(judge_part *part, const norm_work *w, size_t token, size_t row,
                     sinkproof_honest *x_d) {
    const judge_pass *pass = part->pass;
    size_t d = w->d, at = (token * w->rows + row) * d;
    sinkproof_setting s = pass_setting(pass, pass->n * w->rows * d);
    sinkproof_honest *y_d = &w->y_nd[at];
    trace_piece piece = {.point = w->point, .offset = at, .count = d, .token = token};
    memcpy(x_d, &w->x_nd[at], d * sizeof *x_d);
    sinkproof_norm norm = {d, w->scale_d, meant_norm(pass, &s, d, x_d)};
    if (w->mid_nd != NULL)
        norm_otherwise(part, w, token, x_d, &norm, &piece, y_d);
    else
        normed_row(w, s, s.policy, &norm, x_d, y_d, &piece.common);
    if (w->either && w->mid_nd == NULL) narrow_to_one_kernel(part, w, &s, &piece, &norm, x_d, y_d);
    piece_compare(part, &piece, y_d);
}

static void norm_token(judge_part *part, size_t i, void *of) {
    const norm_work *w = of;
    sinkproof_honest *x_d = part_allocate(part, w->d, sizeof *x_d);
    for (size_t row = 0; x_d != NULL && row < w->rows; row++) norm_row(part, w, i, row, x_d);
    free(x_d);
}

// Whether the trace can show which of the two kernels computed a row.
static void set_kernels(const judge_pass *pass, norm_work *w, size_t place) {
    sinkproof_point at;
    sinkproof_trace_rounding(w->point, &at);
    sinkproof_point before = sinkproof_point_before_weight(at);
    w->once = w->twice = pass->before;
    w->once.at[before] = (sinkproof_rounding){.format = SINKPROOF_REAL};
    w->twice.at[before].optional = false;
    w->either = pass->before.at[before].optional && point_is_traced(pass, w->point, place);
}

bool judge_norm(judge_pass *pass, const sinkproof_walk_step *step, sinkproof_honest *y_nd) {
    const sinkproof_matrix *w = step->weights;
    bool centres = w[1].count > 0;
    double *scale_d = vector_decode(&w[0]), *shift_d = centres ? vector_decode(&w[1]) : NULL;
    norm_work work = {.point = step->point,
                      .n = pass->n,
                      .rows = sinkproof_trace_elements(pass->config, step->point, 1) / w[0].cols,
                      .d = w[0].cols,
                      .scale_d = scale_d,
                      .shift_d = shift_d,
                      .x_nd = step_input(pass, step, 0),
                      .y_nd = y_nd};
    set_kernels(pass, &work, step_place(pass, step));
    size_t all = pass->n * work.d;
    bool otherwise = pass->meaning->norm_squares != NULL && work.rows == 1;
    if (otherwise) work.mid_nd = malloc(all * sizeof *work.mid_nd);
    for (size_t i = 0; work.mid_nd != NULL && i < all; i++) work.mid_nd[i] = work.x_nd[i].mid;
    bool fine = scale_d != NULL && (shift_d != NULL || !centres) &&
                (work.mid_nd != NULL || !otherwise) &&
                judge_each_token(pass, step_place(pass, step), TOKENS, norm_token, &work);
    free(scale_d);
    free(shift_d);
    free(work.mid_nd);
    return fine;
}
