// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// RMSNorm: against the formula in long double within a derived bound; the scale before the one
// rounding; zeros.
#include "tests/shared/reference.h"

#include <math.h>

enum { HIDDEN = 2880 };

// A sum of squares carries gamma_hidden, its mean, eps and root u/2 + ... : halved by the root;
// 1/, two products: in all (hidden + 2)/2 + 4 roundings.
static void test_real(void) {
    sinkproof_policy policy = policy_of("real-f64");
    static double x[HIDDEN], scale[HIDDEN], out[HIDDEN], work[HIDDEN];
    uint64_t state = 7;
    double worst = 0, bound = gamma53((HIDDEN + 2) / 2.0 + 4), eps = 1e-5;
    for (int trial = 0; trial < 20; trial++) {
        fill_reals(&state, ldexp(1, 2 * trial - 20), HIDDEN, x);
        fill_reals(&state, 3, HIDDEN, scale);
        sinkproof_matrix m = matrix_of(scale, 1, 1, HIDDEN);
        sinkproof_rmsnorm(&policy, AT_A1, &m, eps, 1, x, out, work);
        long double sum = 0;
        for (size_t c = 0; c < HIDDEN; c++) sum += (long double)x[c] * x[c];
        long double rms = sqrtl(sum / (double)HIDDEN + eps);
        for (size_t c = 0; c < HIDDEN; c++) {
            long double exact = x[c] / rms * scale[c];
            keep_worst(&worst, (double)(fabsl(out[c] - exact) / fabsl(exact)));
        }
    }
    ok(worst <= bound, "rmsnorm.forward ref worst=%.3g bound=%.3g seed=7", worst, bound);
}

// x = (r, -r, r, ...) with r = 4 has rms 4 when eps = 0: the result is the scale, exactly.
static void test_exact(void) {
    sinkproof_policy policy = policy_of("openai-bf16");
    double x[96], scale[96], out[96], work[96];
    size_t wrong = 0;
    for (size_t c = 0; c < 96; c++) x[c] = c % 2 == 0 ? 4 : -4;
    for (size_t c = 0; c < 96; c++) scale[c] = 1 + (double)(c % 64) / 128;
    sinkproof_matrix m = matrix_of(scale, 1, 1, 96);
    sinkproof_rmsnorm(&policy, AT_A1, &m, 0, 1, x, out, work);
    for (size_t c = 0; c < 96; c++) wrong += out[c] != (c % 2 == 0 ? scale[c] : -scale[c]);
    ok(wrong == 0, "rmsnorm.forward exact signs worst=%zu bound=0", wrong);
}

// Casting before the scale is another model: some element must tell them apart, and ours is the
// one rounded once.
static void test_order(void) {
    sinkproof_policy policy = policy_of("openai-bf16"), real = policy_of("real-f64");
    double x[96], scale[96], out[96], exact[96], work[96];
    uint64_t state = 11;
    size_t wrong = 0, apart = 0;
    for (size_t c = 0; c < 96; c++) x[c] = sinkproof_round(SINKPROOF_BF16, next_real(&state, 2));
    for (size_t c = 0; c < 96; c++)
        scale[c] = sinkproof_round(SINKPROOF_BF16, next_real(&state, 2));
    double one[96];
    for (size_t c = 0; c < 96; c++) one[c] = 1;
    sinkproof_matrix m = matrix_of(scale, 1, 1, 96), unit = matrix_of(one, 1, 1, 96);
    sinkproof_rmsnorm(&policy, AT_A1, &m, 1e-5, 1, x, out, work);
    sinkproof_rmsnorm(&real, AT_A1, &m, 1e-5, 1, x, exact, work);
    for (size_t c = 0; c < 96; c++) wrong += out[c] != sinkproof_round(SINKPROOF_BF16, exact[c]);
    sinkproof_rmsnorm(&policy, AT_A1, &unit, 1e-5, 1, x, exact, work);
    for (size_t c = 0; c < 96; c++)
        apart += out[c] != sinkproof_round(SINKPROOF_BF16, exact[c] * scale[c]);
    ok(wrong == 0 && apart > 0,
       "rmsnorm.forward scale before the cast worst=%zu bound=0 (%zu of 96 would differ)", wrong,
       apart);
}

static void test_zeros(void) {
    sinkproof_policy policy = policy_of("f32");
    double x[32] = {0}, scale[32], out[32], work[32];
    for (size_t c = 0; c < 32; c++) scale[c] = 1;
    sinkproof_matrix m = matrix_of(scale, 1, 1, 32);
    sinkproof_rmsnorm(&policy, AT_F1, &m, 1e-5, 1, x, out, work);
    ok(differing(32, x, out) == 0, "rmsnorm.forward of zeros is zeros");
}

int main(void) {
    test_real();
    test_exact();
    test_order();
    test_zeros();
    return tap_done();
}
