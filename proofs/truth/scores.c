// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Scaled scores over the reals: s_ijh = q_ih . k_jg(h) / sqrt(head_dim), before mask and sink.
#include "proofs/truth/truth.h"

//> attn.score
void sinkproof_truth_scores(arb_ptr z_j, arb_srcptr q_d, arb_srcptr k_jd, size_t n_keys,
                            size_t stride, size_t head_dim, slong bits) {
    arb_t scale;
    arb_init(scale);
    arb_sqrt_ui(scale, head_dim, bits);
    for (size_t j = 0; j < n_keys; j++) {
        arb_dot(z_j + j, NULL, 0, q_d, 1, k_jd + j * stride, 1, (slong)head_dim, bits);
        arb_div(z_j + j, z_j + j, scale, bits);
    }
    arb_clear(scale);
}
//< attn.score

void truth_mpfr_scores(mpfr_ptr z_j, mpfr_srcptr q_d, mpfr_srcptr k_jd, size_t n_keys,
                       size_t stride, size_t head_dim, mpfr_prec_t bits) {
    mpfr_t root, sum;
    mpfr_inits2(bits, root, sum, (mpfr_ptr)0);
    mpfr_sqrt_ui(root, head_dim, MPFR_RNDN);
    for (size_t j = 0; j < n_keys; j++) {
        mpfr_set_zero(sum, 1);
        for (size_t d = 0; d < head_dim; d++)
            mpfr_fma(sum, q_d + d, k_jd + j * stride + d, sum, MPFR_RNDN);
        mpfr_div(z_j + j, sum, root, MPFR_RNDN);
    }
    mpfr_clears(root, sum, (mpfr_ptr)0);
}
