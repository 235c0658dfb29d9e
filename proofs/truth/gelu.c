// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// GELU by tanh over the reals: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), with decimals as
// written.
#include "proofs/truth/truth.h"

//> gelu.tanh
void sinkproof_truth_gelu_tanh(arb_ptr y_n, arb_srcptr x_n, size_t n, slong bits) {
    arb_t root, t;
    balls_init(root, t);
    arb_const_pi(root, bits);
    arb_ui_div(root, 2, root, bits);
    arb_sqrt(root, root, bits);
    for (size_t i = 0; i < n; i++) {
        arb_mul(t, x_n + i, x_n + i, bits);
        arb_mul(t, t, x_n + i, bits);
        arb_mul_ui(t, t, 44715, bits);
        arb_div_ui(t, t, 1000000, bits);
        arb_add(t, t, x_n + i, bits);
        arb_mul(t, t, root, bits);
        arb_tanh(t, t, bits);
        arb_add_ui(t, t, 1, bits);
        arb_mul(t, t, x_n + i, bits);
        arb_mul_2exp_si(y_n + i, t, -1);
    }
    balls_clear(root, t);
}
//< gelu.tanh
