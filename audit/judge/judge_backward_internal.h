// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the files that judge gradients.
#ifndef SINKPROOF_JUDGE_BACKWARD_INTERNAL_H
#define SINKPROOF_JUDGE_BACKWARD_INTERNAL_H

#include "audit/judge/judge_backward.h"
#include "proofs/bounds/gradient_sums.h"

typedef sinkproof_near near_set;
typedef sinkproof_gradient_terms gradient_terms;

// One gradient while it is judged.
typedef struct backward_pass {
    const sinkproof_model *model; // with its weights as the policy stores them
    const sinkproof_config *config;
    const sinkproof_trace *trace;
    const sinkproof_policy *policy;
    const sinkproof_backward_meaning *meaning;
    sinkproof_gradient_arithmetic arithmetic;
    size_t n;
    size_t first_row, end_row; // of a weight's matrix, or stack of matrices, which is asked for
    char missing[160];         // the first input that the trace lacks, in words
    bool failed;               // out of memory
} backward_pass;

// ---- reading (judge_backward_read.c). NULL: the trace lacks it, and `missing` says so; or no
// memory.

// `count` zeroed elements; NULL marks the pass as failed.
void *backward_allocate(backward_pass *pass, size_t count, size_t size);

// A point of the forward pass as what goes back may read it, and a gradient of a point.
near_set *backward_read_point(backward_pass *pass, sinkproof_trace_point point, size_t layer);
near_set *backward_read_gradient(backward_pass *pass, sinkproof_trace_point point, size_t layer);
// The same of a point that the residual sum passes on unchanged: the first of two that is traced.
near_set *backward_read_passed(backward_pass *pass, sinkproof_trace_point point,
                               sinkproof_trace_point residual, size_t layer);
bool backward_has_gradient(const backward_pass *pass, sinkproof_trace_point point, size_t layer);
// Whether the loss reads a point itself, so that its gradient has a share that nothing tells.
bool backward_loss_reads(const backward_pass *pass, sinkproof_trace_point point, size_t layer);
bool backward_loss_is_cross_entropy(const backward_pass *pass);
// Says what is missing, if nothing was said before. Returns NULL.
void *backward_lacks(backward_pass *pass, const char *what, const char *name);
// A part of a weight, decoded, [rows, cols], as a product may read it.
near_set *backward_read_weight(backward_pass *pass, const sinkproof_matrix *matrix, size_t part);

// ---- a tensor of sums

typedef struct backward_sums {
    size_t n;
    gradient_terms *terms; // [n]
} backward_sums;
bool backward_sums_new(backward_pass *pass, size_t n, backward_sums *sums);
// Frees the sums; each with the roundings that a term passes. NULL: the pass has failed.
near_set *backward_sums_finish(backward_pass *pass, backward_sums *sums, double terms,
                               double roundings, double narrow);
// The same of sums whose terms an index gathered, as of an expert's weight or a word's row: an
// engine may add them up in the narrow format, one after the other. added: the terms of each
// `width` sums.
near_set *backward_sums_gathered(backward_pass *pass, backward_sums *sums, size_t width,
                                 const size_t *added, double more);

// dx_tc += sum_r W_rc dy_tr, and dw_rc += sum_t dy_tr x_tc, where row t of dy begins at t stride.
void backward_add_inputs(size_t n, size_t rows, size_t cols, const near_set *w_rc,
                         const near_set *dy_tr, gradient_terms *dx_tc);
void backward_add_weights(size_t n, size_t rows, size_t cols, const near_set *dy_tr, size_t stride,
                          const near_set *x_tc, gradient_terms *dw_rc);

// ---- the stages: the sets of a gradient, or NULL

near_set *backward_point_sets(backward_pass *pass, sinkproof_trace_point point, size_t layer,
                              const char **statement);
near_set *backward_weight_sets(backward_pass *pass, sinkproof_slot slot, size_t layer,
                               const char **statement);
// judge_backward_attention.c: one of dA9, dA10, dA6, dA4.q, dA4.k and dA2.v, and dsink.
near_set *backward_attention_sets(backward_pass *pass, sinkproof_trace_point point, size_t layer);
near_set *backward_sink_sets(backward_pass *pass, size_t layer);
// judge_backward_norm.c: of `rows` rows; dx with the residual stream's share, which may be NULL.
near_set *backward_norm_inputs(backward_pass *pass, const sinkproof_matrix *scale, size_t rows,
                               const near_set *x, const near_set *dy, const near_set *passed);
near_set *backward_norm_scale(backward_pass *pass, size_t width, size_t rows, const near_set *x,
                              const near_set *dy);
near_set *backward_rotated(backward_pass *pass, size_t heads, const near_set *dy_nhd);
// judge_backward_experts.c
near_set *backward_experts_sets(backward_pass *pass, sinkproof_trace_point point, size_t layer);
near_set *backward_experts_weight(backward_pass *pass, sinkproof_slot slot, size_t layer);
near_set *backward_cross_entropy(backward_pass *pass);

#endif
