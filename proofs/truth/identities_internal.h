// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the files of identities: the weights of a head as balls, and the tables.
#ifndef SINKPROOF_TRUTH_IDENTITIES_INTERNAL_H
#define SINKPROOF_TRUTH_IDENTITIES_INTERNAL_H

#include "proofs/truth/identities.h"

extern const sinkproof_identity identities_attention[];
extern const sinkproof_identity identities_sink[];
extern const sinkproof_identity identities_forms[];
extern const sinkproof_identity identities_stages[];
extern const sinkproof_identity identities_model[];
extern const sinkproof_identity identities_first[];
extern const sinkproof_identity identities_repeat[];
extern const sinkproof_identity identities_mixing[];
extern const sinkproof_identity identities_terms[];
extern const sinkproof_identity identities_gradients[];

double *ball_doubles(size_t n); // zeros; aborts if memory runs out

// alpha_j [n] and alpha_s of head h, by the truth of the stage.
void ball_weights(arb_ptr alpha_j, arb_ptr alpha_sink, const sinkproof_ball_instance *m, size_t h,
                  slong bits);
// e^(s_j) [n] of head h, not shifted, since balls do not overflow.
void ball_exps(arb_ptr e_j, const sinkproof_ball_instance *m, size_t h, slong bits);
// e^b of head h.
void ball_exp_sink(arb_ptr e_b, const sinkproof_ball_instance *m, size_t h, slong bits);
// out = sum of x_k.
void ball_sum(arb_ptr out, arb_srcptr x_k, size_t n, slong bits);
// out_d = sum_j w_j (x_gjd + bias_d); bias may be NULL.
void ball_weighted(arb_ptr out_d, const sinkproof_ball_instance *m, size_t g, arb_srcptr w_j,
                   const double *bias_d, slong bits);

#endif
