// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradient of a row where its sink has nothing or all to rounding, and the clamps at their
// limits.
#include "proofs/bounds/honest.h"
#include "proofs/truth/backward.h"
#include "ref/backward/backward.h"
#include "tests/shared/tap.h"

#include <math.h>

enum { KEYS = 5, DIM = 3, BITS = 256 };

static const double s_j[KEYS] = {0.5, -1.25, 2, 0, 1.75};
static const double v_jd[KEYS * DIM] = {1, -2, 3, 0.5, 4, -1, 2, 2, -3, 1.5, -0.5, 1, -4, 3, 2};
static const double do_d[DIM] = {0.75, -1.5, 2};

typedef struct row_gradient {
    double alpha[KEYS + 1], o[DIM], ds[KEYS], db, lse[KEYS];
} row_gradient;

// The last query of KEYS keys, by the reference; and what its keys' log-sum-exp has.
static row_gradient go_back(double b) {
    row_gradient r;
    sinkproof_policy policy;
    sinkproof_policy_known("real-f64", &policy);
    sinkproof_block block = {.rows = 1,
                             .keys = KEYS,
                             .first = KEYS - 1,
                             .head_dim = DIM,
                             .q_stride = DIM,
                             .kv_stride = DIM};
    double dalpha[KEYS], dv[KEYS * DIM] = {0}, one = 1, nothing = 0;
    sinkproof_softmax_sink(&policy, &block, &b, s_j, r.alpha);
    sinkproof_values(&policy, &block, r.alpha, v_jd, r.o);
    sinkproof_values_backward(&block, r.alpha, v_jd, do_d, dalpha, dv);
    sinkproof_softmax_sink_backward(&block, r.alpha, r.o, do_d, dalpha, r.ds, &r.db);
    for (size_t j = 0; j < KEYS; j++) r.lse[j] = 0;
    sinkproof_lse_backward(&block, false, s_j, r.alpha, &one, r.lse, &nothing);
    return r;
}

// dL/db over the reals.
static void true_sink_gradient(double b, arb_t db) {
    arb_ptr z = _arb_vec_init(KEYS + 1), a = _arb_vec_init(KEYS + 1), da = _arb_vec_init(KEYS);
    arb_ptr ds = _arb_vec_init(KEYS), t = _arb_vec_init(3);
    for (size_t j = 0; j < KEYS; j++) arb_set_d(z + j, s_j[j]);
    arb_set_d(z + KEYS, b);
    sinkproof_truth_softmax_sink(a, a + KEYS, z, KEYS, z + KEYS, BITS);
    for (size_t j = 0; j < KEYS; j++)
        for (size_t d = 0; d < DIM; d++) {
            arb_set_d(t, do_d[d]), arb_set_d(t + 1, v_jd[j * DIM + d]);
            arb_addmul(da + j, t, t + 1, BITS);
        }
    sinkproof_truth_delta(t + 2, a, da, KEYS, BITS);
    sinkproof_truth_softmax_sink_backward(ds, db, a, a + KEYS, da, t + 2, KEYS, false, BITS);
    _arb_vec_clear(z, KEYS + 1), _arb_vec_clear(a, KEYS + 1), _arb_vec_clear(da, KEYS);
    _arb_vec_clear(ds, KEYS), _arb_vec_clear(t, 3);
}

static void at_the_ends(void) {
    row_gradient none = go_back(-800), all = go_back(800);
    ok(none.alpha[KEYS] == 0 && none.db == 0 && none.o[0] != 0,
       "grad.vanishing a sink whose weight underflows has the gradient 0");
    bool zero = all.alpha[KEYS] == 1 && all.db == 0;
    double sum = 0;
    for (size_t j = 0; j < KEYS; j++) zero = zero && all.ds[j] == 0, sum += all.lse[j];
    ok(zero, "grad.vanishing where the sink has all weight, nothing has a gradient");
    ok(fabs(sum - 1) <= sinkproof_gamma(2 * KEYS + 8, 0x1p-53),
       "grad.lse of the keys alone, where the sink has all weight: weights that sum to 1: off by "
       "%.2g",
       fabs(sum - 1));
}

// The sink has all weight to rounding, and the gradient has its bits; 1 - alpha_s has lost them.
static void bits_are_kept(void) {
    arb_t truth;
    arb_init(truth);
    double worst = 0;
    bool lost = true;
    for (double b = 42; b <= 700; b += 20.5) {
        row_gradient r = go_back(b);
        double size = 0;
        true_sink_gradient(b, truth);
        for (size_t j = 0; j < KEYS; j++)
            for (size_t d = 0; d < DIM; d++) size += fabs(r.alpha[j] * do_d[d] * v_jd[j * DIM + d]);
        // An exponential of s - b is off by the rounding of s - b and 2 of its own; then a sum, a
        // quotient, the sums over keys and coordinates, a product.
        double bound = sinkproof_gamma(b + 2 + KEYS + 2 + KEYS + DIM + 4, 0x1p-53) * size;
        worst = fmax(worst, sinkproof_truth_distance(truth, r.db) / bound);
        lost = lost && 1 - r.alpha[KEYS] == 0 && r.db != 0;
    }
    ok(worst <= 1 && lost,
       "grad.vanishing with alpha_s = 1 to rounding the sink's gradient has its bits: worst=%.3g "
       "bound=1",
       worst);
    arb_clear(truth);
}

static void clamps(void) {
    sinkproof_swiglu_numbers numbers = {1.702, 7, 1};
    double dgate, dup, other;
    sinkproof_swiglu_backward(numbers, 7, 7, 1, &dgate, &dup);
    ok(dgate != 0 && dup != 0, "grad.swiglu at a limit itself the gradient passes");
    sinkproof_swiglu_backward(numbers, nextafter(7, 8), nextafter(7, 8), 1, &dgate, &dup);
    ok(dgate == 0 && dup == 0, "grad.swiglu beyond a limit nothing passes");
    sinkproof_swiglu_backward(numbers, 1, -7, 1, &other, &dup);
    sinkproof_swiglu_backward(numbers, 1, nextafter(-7, -8), 1, &other, &dgate);
    ok(dup != 0 && dgate == 0, "grad.swiglu an up below its limit passes nothing, at it all");
    sinkproof_swiglu_backward(numbers, -50, 2, 1, &dgate, &dup);
    ok(dgate != 0, "grad.swiglu a gate far below zero is not clamped: it has a gradient");
    sinkproof_swiglu_backward(numbers, -1e300, 2, 1, &dgate, &dup);
    ok(dgate == 0 && dup == 0, "grad.swiglu a gate whose exponential overflows has 0, never NaN");
}

// Equal logits: log(vocab), whatever they are; and a target that is certain, 0.
static void losses(void) {
    enum { VOCAB = 8 };
    double equal[2 * VOCAB], sure[VOCAB] = {-900, 40, -900, -900, -900, -900, -900, -900};
    double d[2 * VOCAB];
    const int32_t next[2] = {5, -1}, second = 1;
    for (size_t v = 0; v < 2 * VOCAB; v++) equal[v] = 3.25;
    ok(sinkproof_cross_entropy(2, VOCAB, equal, next, d) == log(VOCAB) && d[5] == -0.875 &&
           d[0] == 0.125 && d[VOCAB] == 0,
       "grad.cross-entropy equal logits: the loss is log(vocab)");
    ok(sinkproof_cross_entropy(1, VOCAB, sure, &second, d) == 0 && d[1] == 0 && d[0] == 0,
       "grad.cross-entropy a certain target: loss and gradient are 0");
    ok(isnan(sinkproof_cross_entropy(1, VOCAB, sure, &next[1], d)) && d[0] == 0,
       "grad.cross-entropy no target: no loss");
}

int main(void) {
    losses();
    at_the_ends();
    bits_are_kept();
    clamps();
    return tap_done();
}
