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

static double square_mean(const sinkproof_honest *x, size_t first, size_t n) {
    double square = 0;
    for (size_t i = first; i < first + n; i++) square += x[i].mid * x[i].mid / (double)n;
    return square;
}

// The square of what the norm is meant to divide element i of a row by, epsilon included.
static double meant_square(const sinkproof_meaning *m, const norm_work *w,
                           const sinkproof_honest *x_d, size_t token, size_t i, double eps) {
    size_t d = w->d, each = m->norm_parts > 0 && m->norm_parts <= d ? d / m->norm_parts : d;
    const sinkproof_honest *before_d = token > 0 ? &w->x_nd[(token - 1) * d] : x_d;
    double largest = 0, sizes = 0, mean = 0, scaled = 0, own = square_mean(x_d, 0, d);
    for (size_t k = 0; k < d; k++) {
        largest = fmax(largest, fabs(x_d[k].mid));
        sizes += fabs(x_d[k].mid) / (double)d, mean += x_d[k].mid / (double)d;
        scaled += fabs(w->scale_d[k]) * x_d[k].mid * x_d[k].mid / (double)d;
    }
    if (m->eps_outside && m->norm_over == SINKPROOF_NORM_LARGEST) return pow(largest + eps, 2);
    if (m->eps_outside && m->norm_over == SINKPROOF_NORM_SIZES) return pow(sizes + eps, 2);
    switch (m->norm_over) {
    case SINKPROOF_NORM_OWN:
        break;
    case SINKPROOF_NORM_SQUARE:
        return pow(square_mean(x_d, 0, d) + eps, 2);
    case SINKPROOF_NORM_ROW_BEFORE:
        return square_mean(before_d, 0, d) + eps;
    case SINKPROOF_NORM_LARGEST:
        return largest * largest + eps;
    case SINKPROOF_NORM_SIZES:
        return sizes * sizes + eps;
    case SINKPROOF_NORM_PARTS:
        return square_mean(x_d, i / each * each, each) + eps;
    case SINKPROOF_NORM_FIRST:
        return square_mean(x_d, 0, each) + eps;
    case SINKPROOF_NORM_LAST:
        return square_mean(x_d, d - each, each) + eps;
    case SINKPROOF_NORM_NONE:
        return 1;
    case SINKPROOF_NORM_SPREAD:
        return own - mean * mean + eps;
    case SINKPROOF_NORM_TWICE:
        return scaled + eps * (own + eps);
    case SINKPROOF_NORM_ROW:
        return square_mean(&w->x_nd[(m->norm_parts < w->n ? m->norm_parts : 0) * d], 0, d) + eps;
    }
    return own + eps;
}

// A norm over another number: the scales take the quotient of the roots, and epsilon is in them.
static void divide_otherwise(const judge_pass *pass, const norm_work *w, size_t token,
                             const sinkproof_honest *x_d, double *scale_d, sinkproof_norm *norm) {
    size_t d = w->d;
    double own = square_mean(x_d, 0, d), eps = pass->config->rms_eps;
    if (!(own > 0)) return;
    for (size_t i = 0; i < d; i++)
        scale_d[i] = w->scale_d[i] * sqrt(own / meant_square(pass->meaning, w, x_d, token, i, eps));
    norm->scale_d = scale_d, norm->eps = 0;
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
    bool otherwise = pass->meaning->norm_over != SINKPROOF_NORM_OWN && w->rows == 1;
    double *scale_d = otherwise ? part_allocate(part, d, sizeof *scale_d) : NULL;
    if (scale_d != NULL) divide_otherwise(pass, w, token, x_d, scale_d, &norm);
    normed_row(w, s, s.policy, &norm, x_d, y_d, &piece.common);
    if (w->either) narrow_to_one_kernel(part, w, &s, &piece, &norm, x_d, y_d);
    piece_compare(part, &piece, y_d);
    free(scale_d);
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
    bool fine = scale_d != NULL && (shift_d != NULL || !centres) &&
                judge_each_token(pass, step_place(pass, step), TOKENS, norm_token, &work);
    free(scale_d);
    free(shift_d);
    return fine;
}
