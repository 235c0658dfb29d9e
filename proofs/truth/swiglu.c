// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The experts' activation over the reals: with g = min(gate, limit) and u = clamp(up, limit),
//     y = (u + 1) g sigmoid(alpha g).
// The gate is clamped from above only. alpha and limit are the decimal numbers.
#include "proofs/truth/truth.h"

#include <math.h>

// 1 / (1 + e^-x), written with the exponential that stays below 1.
static void sigmoid(arb_t out, const arb_t x, slong bits) {
    arb_t e;
    arb_init(e);
    bool negative = arf_sgn(arb_midref(x)) < 0;
    if (negative)
        arb_exp(e, x, bits);
    else {
        arb_neg(e, x);
        arb_exp(e, e, bits);
    }
    arb_add_ui(out, e, 1, bits);
    if (negative)
        arb_div(out, e, out, bits);
    else
        arb_inv(out, out, bits);
    arb_clear(e);
}

// min(x, bound) and max(x, bound); arb_min and arb_max round even a ball that does not touch the
// bound.
static void clamp_above(arb_t out, const arb_t x, const arb_t bound, slong bits) {
    if (arb_le(x, bound))
        arb_set(out, x);
    else
        arb_min(out, x, bound, bits);
}

static void clamp_below(arb_t out, const arb_t x, const arb_t bound, slong bits) {
    if (arb_ge(x, bound))
        arb_set(out, x);
    else
        arb_max(out, x, bound, bits);
}

//> swiglu.clamped
void sinkproof_truth_swiglu(arb_ptr out_i, arb_srcptr u_2i, size_t inter,
                            sinkproof_swiglu_numbers numbers, slong bits) {
    arb_t gate, up, a, bound, offset, t;
    balls_init(gate, up, a, bound, offset, t);
    arb_set_d(offset, numbers.offset);
    sinkproof_truth_decimal(a, numbers.alpha, bits);
    if (isinf(numbers.limit))
        arb_pos_inf(bound);
    else
        sinkproof_truth_decimal(bound, numbers.limit, bits);
    for (size_t i = 0; i < inter; i++) {
        clamp_above(gate, u_2i + 2 * i, bound, bits);
        clamp_above(up, u_2i + 2 * i + 1, bound, bits);
        arb_neg(t, bound);
        clamp_below(up, up, t, bits);
        arb_mul(t, a, gate, bits);
        sigmoid(t, t, bits);
        arb_mul(t, t, gate, bits);
        arb_add(up, up, offset, bits);
        arb_mul(out_i + i, t, up, bits);
    }
    balls_clear(gate, up, a, bound, offset, t);
}
//< swiglu.clamped

void truth_mpfr_swiglu(mpfr_ptr out_i, mpfr_srcptr u_2i, size_t inter,
                       sinkproof_swiglu_numbers numbers, mpfr_prec_t bits) {
    char text[40];
    mpfr_t gate, up, a, bound, t;
    mpfr_inits2(bits, gate, up, a, bound, t, (mpfr_ptr)0);
    truth_decimal_text(numbers.alpha, text);
    mpfr_set_str(a, text, 10, MPFR_RNDN);
    truth_decimal_text(numbers.limit, text);
    if (isinf(numbers.limit))
        mpfr_set_inf(bound, 1);
    else
        mpfr_set_str(bound, text, 10, MPFR_RNDN);
    for (size_t i = 0; i < inter; i++) {
        mpfr_min(gate, u_2i + 2 * i, bound, MPFR_RNDN);
        mpfr_min(up, u_2i + 2 * i + 1, bound, MPFR_RNDN);
        mpfr_neg(t, bound, MPFR_RNDN);
        mpfr_max(up, up, t, MPFR_RNDN);
        mpfr_mul(t, a, gate, MPFR_RNDN); // gate / (1 + e^(-alpha gate))
        mpfr_neg(t, t, MPFR_RNDN);
        mpfr_exp(t, t, MPFR_RNDN);
        mpfr_add_ui(t, t, 1, MPFR_RNDN);
        mpfr_div(t, gate, t, MPFR_RNDN);
        mpfr_add_d(up, up, numbers.offset, MPFR_RNDN);
        mpfr_mul(out_i + i, t, up, MPFR_RNDN);
    }
    mpfr_clears(gate, up, a, bound, t, (mpfr_ptr)0);
}
