// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The arrays of a call: points, gradients of points, gradients of weights. And what a forward pass
// hands to the pass that goes back.
#include "audit/plugin/drill.h"
#include "model/round.h"
#include "ref/backward/backward.h"
#include "ref/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool array_is_gradient(array_id id) {
    return id >= ARRAY_GRADIENTS;
}

bool array_point(array_id id, sinkproof_trace_point *point) {
    *point = (sinkproof_trace_point)(array_is_gradient(id) ? id - ARRAY_GRADIENTS : id);
    return id < ARRAY_WEIGHTS;
}

const char *array_name(array_id id, char name[ARRAY_NAME]) {
    sinkproof_trace_point point;
    if (array_point(id, &point))
        snprintf(name, ARRAY_NAME, "%s%s", array_is_gradient(id) ? "d" : "",
                 sinkproof_trace_point_name(point));
    else
        sinkproof_gradient_name((sinkproof_slot)(id - ARRAY_WEIGHTS), name);
    return name;
}

size_t weight_shape(const sinkproof_config *config, sinkproof_slot slot,
                    size_t shape[SINKPROOF_RANK]) {
    size_t count, rows, cols, rank = 0;
    sinkproof_slot_shape(slot, config, &count, &rows, &cols);
    if (sinkproof_slot_is_stacked(slot, config)) shape[rank++] = count;
    if (!sinkproof_slot_is_vector(slot, config)) shape[rank++] = rows;
    shape[rank++] = cols;
    return rank;
}

size_t array_shape(const sinkproof_config *config, array_id id, size_t n,
                   size_t shape[SINKPROOF_RANK]) {
    sinkproof_trace_point point;
    return array_point(id, &point)
               ? sinkproof_trace_shape(config, point, n, shape)
               : weight_shape(config, (sinkproof_slot)(id - ARRAY_WEIGHTS), shape);
}

size_t array_count(const call_arrays *a, array_id id) {
    size_t shape[SINKPROOF_RANK], count = 1, rank = array_shape(&a->config, id, a->n, shape);
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    return count;
}

sinkproof_dtype array_dtype(const sinkproof_policy *policy, array_id id) {
    sinkproof_trace_point point;
    sinkproof_point at;
    if (!array_point(id, &point)) return SINKPROOF_DTYPE_F32;
    if (!sinkproof_trace_rounding(point, &at)) return SINKPROOF_DTYPE_I32;
    sinkproof_format format = policy->at[at].format;
    if (format == SINKPROOF_BF16) return SINKPROOF_DTYPE_BF16;
    return format == SINKPROOF_F16 ? SINKPROOF_DTYPE_F16 : SINKPROOF_DTYPE_F32;
}

sinkproof_dtype weight_dtype(const sinkproof_policy *policy, const stage_row *stage) {
    sinkproof_dtype beside = array_dtype(policy, stage->from[0]);
    return beside == SINKPROOF_DTYPE_BF16 ? beside : SINKPROOF_DTYPE_F32;
}

bool array_make(call_arrays *a, array_id id) {
    size_t count = array_count(a, id);
    a->at[id] = malloc(count * sizeof *a->at[id]);
    for (size_t i = 0; a->at[id] != NULL && i < count; i++) a->at[id][i] = NAN;
    return a->at[id] != NULL;
}

float number_as_stored(sinkproof_format format, double x) {
    double narrow = sinkproof_round(SINKPROOF_F32, x);
    double y = format == SINKPROOF_REAL ? narrow : sinkproof_round(format, narrow);
    return (float)(isinf(y) && isfinite(x) ? copysign(sinkproof_format_largest(format), x) : y);
}

// ---- the forward pass ------------------------------------------------------------------------

// One head in binary64.
typedef struct head_room {
    double *q_id, *k_jd, *v_jd, *o_id, *b_i, *s_ij, *alpha_ij;
} head_room;

static bool head_room_new(size_t n, size_t dim, head_room *r) {
    *r = (head_room){.q_id = calloc(n * dim, sizeof *r->q_id),
                     .k_jd = calloc(n * dim, sizeof *r->k_jd),
                     .v_jd = calloc(n * dim, sizeof *r->v_jd),
                     .o_id = calloc(n * dim, sizeof *r->o_id),
                     .b_i = calloc(n, sizeof *r->b_i),
                     .s_ij = calloc(n * n, sizeof *r->s_ij),
                     .alpha_ij = calloc(n * (n + 1), sizeof *r->alpha_ij)};
    return r->q_id != NULL && r->k_jd != NULL && r->v_jd != NULL && r->o_id != NULL &&
           r->b_i != NULL && r->s_ij != NULL && r->alpha_ij != NULL;
}

static void head_room_free(head_room *r) {
    free(r->q_id);
    free(r->k_jd);
    free(r->v_jd);
    free(r->o_id);
    free(r->b_i);
    free(r->s_ij);
    free(r->alpha_ij);
}

// x [n, heads, dim] of one head.
static void take_head(const float *x, size_t n, size_t heads, size_t h, size_t dim, double *head) {
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < dim; d++) head[i * dim + d] = x[(i * heads + h) * dim + d];
}

static double log_sum_exp(const double *s_j, size_t first, size_t last, double sink) {
    double most = sink, sum = 0;
    for (size_t j = first; j <= last; j++) most = fmax(most, s_j[j]);
    for (size_t j = first; j <= last; j++) sum += exp(s_j[j] - most);
    return most + log(sum + exp(sink - most));
}

static void forward_head(const stage_case *c, const sinkproof_policy *real, call_arrays *a,
                         size_t h, head_room *r) {
    size_t n = c->n, dim = c->dim, g = h / (c->heads / c->kv);
    const sinkproof_block block = {n, n, 0, c->window, dim, dim, dim};
    take_head(a->at[TRACE_A4_Q], n, c->heads, h, dim, r->q_id);
    take_head(a->at[TRACE_A4_K], n, c->kv, g, dim, r->k_jd);
    take_head(a->at[TRACE_A2_V], n, c->kv, g, dim, r->v_jd);
    for (size_t i = 0; i < n; i++) r->b_i[i] = a->weight[SINKPROOF_SINKS][h];
    sinkproof_scores(real, &block, r->q_id, r->k_jd, r->s_ij);
    sinkproof_softmax_sink(real, &block, r->b_i, r->s_ij, r->alpha_ij);
    sinkproof_values(real, &block, r->alpha_ij, r->v_jd, r->o_id);
    for (size_t i = 0; i < n; i++)
        a->at[TRACE_LSE][h * n + i] =
            (float)log_sum_exp(r->s_ij + i * n, sinkproof_mask_first(c->window, i), i, r->b_i[i]);
}

bool fill_forward(const stage_case *c, const sinkproof_policy *policy, call_arrays *a) {
    sinkproof_policy real;
    sinkproof_point at = AT_POINTS;
    head_room r = {.q_id = NULL};
    bool good = sinkproof_policy_known("real-f64", &real) && head_room_new(c->n, c->dim, &r);
    sinkproof_trace_rounding(TRACE_A11, &at);
    for (size_t h = 0; good && h < c->heads; h++) {
        forward_head(c, &real, a, h, &r);
        for (size_t i = 0; i < c->n; i++)
            for (size_t d = 0; d < c->dim; d++)
                a->at[TRACE_A11][(i * c->heads + h) * c->dim + d] =
                    number_as_stored(policy->at[at].format, r.o_id[i * c->dim + d]);
    }
    head_room_free(&r);
    return good;
}
