// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention weights with the sink, over the reals:
//     alpha_j = e^(z_j) / (e^b + sum_j' e^(z_j')),  alpha_sink = e^b / (the same).
// The sink logit b is part of the denominator and contributes no value vector.
// Both sides are multiplied by e^(-m), m the largest midpoint: m is an exact number,
// so subtracting it costs no radius, and the sum is at least about 1 (sink.stable).
#include "proofs/truth/truth.h"

static void exp_shifted(arb_t out, const arb_t z, const arf_t shift, slong bits) {
    if (arf_is_neg_inf(arb_midref(z)) && mag_is_finite(arb_radref(z))) {
        arb_zero(out); // e^(-infinity)
        return;
    }
    arb_sub_arf(out, z, shift, bits);
    arb_exp(out, out, bits);
}

void truth_sink_logit(arb_t b, const sinkproof_normaliser *normaliser, arb_srcptr q_d,
                      size_t head_dim, slong bits) {
    if (normaliser->key_d == NULL) {
        arb_set_d(b, normaliser->logit);
        return;
    }
    //> sink.key-bias
    arb_ptr k_d = _arb_vec_init((slong)head_dim); // k*: exact, and not rotated
    for (size_t d = 0; d < head_dim; d++) arb_set_d(k_d + d, normaliser->key_d[d]);
    sinkproof_truth_scores(b, q_d, k_d, 1, head_dim, head_dim, bits);
    _arb_vec_clear(k_d, (slong)head_dim);
    //< sink.key-bias
}

//> sink.alpha sink.mass sink.mass-below-one sink.stable
//> sink.limit sink.gate repeat.sink law.shift
void sinkproof_truth_softmax_sink(arb_ptr alpha_j, arb_t alpha_sink, arb_srcptr z_j, size_t n_keys,
                                  const arb_t sink, slong bits) {
    arf_t shift;
    arb_t sum;
    arf_init(shift);
    arb_init(sum);
    arf_set(shift, arb_midref(sink));
    for (size_t j = 0; j < n_keys; j++)
        if (arf_cmp(arb_midref(z_j + j), shift) > 0) arf_set(shift, arb_midref(z_j + j));
    exp_shifted(alpha_sink, sink, shift, bits);
    arb_set(sum, alpha_sink);
    for (size_t j = 0; j < n_keys; j++) {
        exp_shifted(alpha_j + j, z_j + j, shift, bits);
        arb_add(sum, sum, alpha_j + j, bits);
    }
    for (size_t j = 0; j < n_keys; j++) arb_div(alpha_j + j, alpha_j + j, sum, bits);
    //> sink.alpha-sink
    arb_div(alpha_sink, alpha_sink, sum, bits); // e^b over the same sum
    //< sink.alpha-sink
    arf_clear(shift);
    arb_clear(sum);
}
//< sink.alpha sink.mass sink.mass-below-one sink.stable
//< sink.limit sink.gate repeat.sink law.shift

void truth_mpfr_softmax_sink(mpfr_ptr alpha_j, mpfr_ptr alpha_sink, mpfr_srcptr z_j, size_t n_keys,
                             mpfr_srcptr sink, mpfr_prec_t bits) {
    mpfr_t max, sum, shifted;
    mpfr_inits2(bits, max, sum, shifted, (mpfr_ptr)0);
    mpfr_set(max, sink, MPFR_RNDN);
    for (size_t j = 0; j < n_keys; j++) mpfr_max(max, max, z_j + j, MPFR_RNDN);
    mpfr_sub(shifted, sink, max, MPFR_RNDN);
    mpfr_exp(alpha_sink, shifted, MPFR_RNDN);
    mpfr_set(sum, alpha_sink, MPFR_RNDN);
    for (size_t j = 0; j < n_keys; j++) {
        mpfr_sub(shifted, z_j + j, max, MPFR_RNDN);
        mpfr_exp(alpha_j + j, shifted, MPFR_RNDN);
        mpfr_add(sum, sum, alpha_j + j, MPFR_RNDN);
    }
    for (size_t j = 0; j < n_keys; j++) mpfr_div(alpha_j + j, alpha_j + j, sum, MPFR_RNDN);
    mpfr_div(alpha_sink, alpha_sink, sum, MPFR_RNDN);
    mpfr_clears(max, sum, shifted, (mpfr_ptr)0);
}
