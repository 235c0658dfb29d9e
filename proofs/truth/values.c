// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The head's output over the reals: o_d = sum_j alpha_j v_jd over the visible keys. The weights sum
// to 1 - alpha_sink and are not renormalised.
#include "proofs/truth/truth.h"

//> sink.attn-values law.constant-value
void sinkproof_truth_values(arb_ptr out_d, arb_srcptr alpha_j, arb_srcptr v_jd, size_t n_keys,
                            size_t stride, size_t head_dim, slong bits) {
    for (size_t d = 0; d < head_dim; d++)
        arb_dot(out_d + d, NULL, 0, alpha_j, 1, v_jd + d, (slong)stride, (slong)n_keys, bits);
}
//< sink.attn-values law.constant-value

void truth_mpfr_values(mpfr_ptr out_d, mpfr_srcptr alpha_j, mpfr_srcptr v_jd, size_t n_keys,
                       size_t stride, size_t head_dim, mpfr_prec_t bits) {
    mpfr_t sum;
    mpfr_init2(sum, bits);
    for (size_t d = 0; d < head_dim; d++) {
        mpfr_set_zero(sum, 1);
        for (size_t j = 0; j < n_keys; j++)
            mpfr_fma(sum, alpha_j + j, v_jd + j * stride + d, sum, MPFR_RNDN);
        mpfr_set(out_d + d, sum, MPFR_RNDN);
    }
    mpfr_clear(sum);
}
