// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Logits over the reals: the final RMSNorm, then one row of the unembedding per vocabulary
// entry; no bias, no soft-cap.
#include "proofs/truth/truth.h"

void truth_unembed(arb_ptr logit_nv, arb_ptr normed_nc, arb_srcptr x_nc, size_t n,
                   const sinkproof_matrix *norm_c, const sinkproof_matrix *w_vc, double eps,
                   slong bits) {
    sinkproof_truth_rmsnorm(normed_nc, x_nc, n, norm_c, eps, bits);
    sinkproof_truth_linear(logit_nv, normed_nc, n, w_vc, NULL, bits);
}

void truth_mpfr_unembed(mpfr_ptr logit_v, mpfr_srcptr x_c, const sinkproof_matrix *norm_c,
                        const sinkproof_matrix *w_vc, double eps, mpfr_prec_t bits) {
    mpfr_ptr normed_c = truth_mpfr_vector(norm_c->cols, bits);
    truth_mpfr_rmsnorm(normed_c, x_c, norm_c, eps, bits);
    truth_mpfr_linear(logit_v, normed_c, w_vc, NULL, bits);
    truth_mpfr_vector_free(normed_c, norm_c->cols);
}
