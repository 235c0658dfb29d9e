// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The stages of the lane arithmetic, one file each, and their shared functions. Their arguments are
// those of ref/stages.h: binary64 arrays that hold float32 numbers. fast/lanes/lanes.h defines the
// order of their operations.
#ifndef SINKPROOF_LANES_STAGES_H
#define SINKPROOF_LANES_STAGES_H

#include "fast/lanes/lanes.h"

// One block of `linear`: sum_c w_c x_c over its 32 columns, from 0, odd before even.
float lanes_block_sum(const float *w_c, const float *x_c);

// to_c[32] = the columns of block b, zeros beyond n. Column c lies at from[c stride].
void lanes_gather_block(size_t n, size_t b, const double *from, size_t stride, float *to_c);

// The sixteen partial sums of sum16 into one; lane_l is overwritten.
float lanes_fold(float *lane_l);

// y_nr = W_r x_n (+ b_r), rounded at `point`; bias may be NULL. work: sinkproof_linear_work
// doubles.
void lanes_linear(const sinkproof_policy *policy, sinkproof_point point, size_t n,
                  const sinkproof_matrix *weight_rc, const sinkproof_matrix *bias_r,
                  const double *x_nc, double *y_nr, double *work);

void lanes_rmsnorm(const sinkproof_policy *policy, sinkproof_point point,
                   const sinkproof_matrix *scale, double eps, size_t n, const double *x_nc,
                   double *out_nc, double *work);
void lanes_qkv(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
               const double *t_nc, double *q_nhd, double *k_ngd, double *v_ngd, double *work);
void lanes_rope(const sinkproof_policy *policy, size_t n, size_t n_heads, size_t head_dim,
                const double *cos_nd, const double *sin_nd, double *x_nhd);
void lanes_scores(const sinkproof_policy *policy, const sinkproof_block *block, const double *q_id,
                  const double *k_jd, double *s_ij);
void lanes_attention(const sinkproof_policy *policy, const sinkproof_block *block,
                     const double *b_i, const double *q_id, const double *k_jd, const double *v_jd,
                     double *o_id);
void lanes_output(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                  const double *o_nhd, double *out_nc, double *work);
void lanes_router(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                  size_t n_chosen, const double *t_nc, double *logits_ne, int32_t *chosen_nk,
                  double *weights_nk, double *work);
// The activation of one pair, in float32.
float lanes_swiglu(sinkproof_swiglu_numbers numbers, float gate, float up);
void lanes_activate(const sinkproof_policy *policy, sinkproof_swiglu_numbers numbers, size_t n,
                    const double *gate_up_2n, double *act_n);
void lanes_experts(const sinkproof_policy *policy, const sinkproof_config *config,
                   const sinkproof_layer *layer, size_t n, const double *t_nc,
                   const int32_t *chosen_nk, const sinkproof_expert_outputs *out, double *work);
void lanes_mixture(const sinkproof_policy *policy, size_t n, size_t n_chosen, size_t hidden,
                   const int32_t *chosen_nk, const double *weights_nk, const double *down_nkc,
                   double *out_nc);
void lanes_unembed(const sinkproof_policy *policy, const sinkproof_matrix *unembedding, size_t n,
                   const double *x_nc, double *logits_nv, double *work);

#endif
