// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The truth of the backward pass: each stage's gradients as balls (doc/34-backward.md).
//
// Every function has two uses. Of SIZES false, it encloses the gradient. Of SIZES true, with inputs
// that are absolute values, every difference is a sum: it gives the sum of the sizes of all terms,
// by which the rounding of any order of evaluation is measured (grad.rounded).
#ifndef SINKPROOF_TRUTH_BACKWARD_H
#define SINKPROOF_TRUTH_BACKWARD_H

#include "proofs/truth/truth.h"

// Adds to dx_nc, dw_rc and db_r; any may be NULL.
void sinkproof_truth_linear_backward(arb_ptr dx_nc, arb_ptr dw_rc, arb_ptr db_r,
                                     const sinkproof_matrix *w_rc, arb_srcptr x_nc,
                                     arb_srcptr dy_nr, size_t n, bool sizes, slong bits);

// Of one token; adds to dx_c and dscale_c.
void sinkproof_truth_rmsnorm_backward(arb_ptr dx_c, arb_ptr dscale_c, arb_srcptr scale_c,
                                      double eps, arb_srcptr x_c, arb_srcptr dy_c, size_t cols,
                                      bool sizes, slong bits);

// Of one head of a token, whose pairs turn by cosines and sines that have the concentration.
void sinkproof_truth_rope_backward(arb_ptr dx_d, arb_srcptr dy_d, arb_srcptr cos_d,
                                   arb_srcptr sin_d, size_t half, bool sizes, slong bits);

// Of one query over its visible keys. dalpha_j is set, dv_jd added to.
void sinkproof_truth_values_backward(arb_ptr dalpha_j, arb_ptr dv_jd, arb_srcptr alpha_j,
                                     arb_srcptr v_jd, arb_srcptr do_d, size_t n_keys, size_t stride,
                                     size_t head_dim, slong bits);

// D = sum_j alpha_j dalpha_j, over the keys.
void sinkproof_truth_delta(arb_t delta, arb_srcptr alpha_j, arb_srcptr dalpha_j, size_t n_keys,
                           slong bits);

// ds_j and db of one query, given D.
void sinkproof_truth_softmax_sink_backward(arb_ptr ds_j, arb_t db, arb_srcptr alpha_j,
                                           const arb_t alpha_sink, arb_srcptr dalpha_j,
                                           const arb_t delta, size_t n_keys, bool sizes,
                                           slong bits);

// Adds what a row's log-sum-exp has: with the sink inside, or of the keys alone.
void truth_lse_backward(arb_ptr ds_j, arb_t db, arb_srcptr alpha_j, const arb_t alpha_sink,
                        const arb_t dlse, bool with_sink, size_t n_keys, slong bits);

// Of one query over its visible keys; adds to dq_d and dk_jd.
void sinkproof_truth_scores_backward(arb_ptr dq_d, arb_ptr dk_jd, arb_srcptr q_d, arb_srcptr k_jd,
                                     arb_srcptr ds_j, size_t n_keys, size_t stride, size_t head_dim,
                                     slong bits);

// Of one activation. Where a clamp's ball holds its limit, the enclosure holds both sides.
void sinkproof_truth_swiglu_backward(arb_t dgate, arb_t dup, sinkproof_swiglu_numbers numbers,
                                     const arb_t gate, const arb_t up, const arb_t dact, bool sizes,
                                     slong bits);

// Of one token's mixture.
void sinkproof_truth_mixture_backward(arb_ptr dweights_k, arb_ptr ddown_kc, arb_srcptr weights_k,
                                      arb_srcptr down_kc, arb_srcptr dout_c, size_t n_chosen,
                                      size_t hidden, slong bits);

// Of -log softmax(z)_target, over `count` tokens that have one.
void sinkproof_truth_cross_entropy_backward(arb_ptr dz_v, arb_srcptr z_v, size_t vocab,
                                            size_t target, size_t count, bool sizes, slong bits);

#endif
