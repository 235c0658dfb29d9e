// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weight of one key beside a larger sink, where the declared error of exp grows so fast with
// its argument that the exponent errs by more than 27 (bound.exp): the largest exponential,
// computed again, for the likely and the worst ends; and what is lost where the exponential itself
// is 0. 0.01 CPU seconds.
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20261123;

typedef struct wide {
    double b;             // the sink's logit
    sinkproof_honest z;   // of the key, less b
    real declared, grows; // exp errs by declared + grows |x|, relatively
} wide;

static const real ROUNDOFF = 0x1p-80L; // of the engine: below what shows

static real growth(const wide *w) {
    return w->grows / (1 - w->declared - 800 * w->grows) * (1 + 0x1p-50L);
}

static real error_of(const wide *w) {
    real far = fmaxl(fabsl(w->z.lo), fabsl(w->z.hi)), v = ROUNDOFF + 0x1p-52L;
    return far * v + growth(w) * fminl(far * (1 + v), 800);
}

// b with b / (1 - a - 800 b) = each, of so few bits that 1 - a - 800 b is exact.
static real grows_for(real each, real a) {
    return floorl(each * (1 - a) / (1 + 800 * each) * 0x1p30L) * 0x1p-30L;
}

// e^t at most, t below 0 and off by so much; exp here loses all below 2^-1074, and the smallest
// normal number is flushed.
static real most(const wide *w, real t) {
    real error = error_of(w), eta = expm1l(error) * (1 + w->declared) + w->declared + 0x1p-50L;
    if (eta < 0x1p40L)
        return (real)exp((double)t) * (1 + eta) + 0x1p-1022L + 0x1p-1074L * (1 + eta);
    real reach = t + error + (fabsl(t) + error) * 0x1p-50L;
    return expl(reach) * (1 + w->declared) * (1 + 0x1p-50L) + 0x1p-1022L;
}

static real weight(const wide *w, real t) {
    real e = most(w, t), here = gamma_of(12, 0x1p-53L), sum = 2 * here; // of the sum and here
    real sink = 1 - (w->declared + 0x1p-50L);
    return e / (e + sink * (1 - here)) / (1 - sum);
}

static void compare(const wide *w, real k, distance *d) {
    sinkproof_policy policy = real_policy("definition");
    policy.ulp[SINKPROOF_EXP] = (double)(w->declared / (2 * ROUNDOFF));
    policy.exp_growth = (double)(w->grows / (2 * ROUNDOFF));
    sinkproof_setting s = {.policy = &policy, .u = (double)ROUNDOFF, .odds = 30};
    const sinkproof_honest *z = &w->z;
    sinkproof_honest alpha[2], key = {z->lo + w->b,
                                      z->hi + w->b,
                                      z->likely_lo + w->b,
                                      z->likely_hi + w->b,
                                      z->mid + w->b,
                                      0,
                                      0,
                                      0,
                                      0};
    double common;
    must(sinkproof_honest_softmax(&s, AT_A9, 1, &key, sinkproof_exact_set(w->b), alpha, &common));
    real hi = weight(w, w->z.hi), likely = weight(w, w->z.likely_hi);
    near(d, alpha[0].hi, hi, hi, k), near(d, alpha[0].likely_hi, likely, likely, k);
    near(d, alpha[0].lo, 0, 0, 1), near(d, alpha[0].likely_lo, 0, 0, 1);
}

int main(void) {
    distance errors = {0}, lost = {0};
    uint64_t state = SEED;
    for (int i = 0; i < 200; i++) {
        real error = 28.5L + (real)(i % 8), mid = -40 - (real)draw_below(&state, 100);
        wide w = {.b = i % 5 - 2.5, .declared = i % 2 ? 0x1p-6L : 0x1p-20L};
        double m = (double)mid, near_hi = (double)draw_below(&state, 64) / 16;
        w.z = (sinkproof_honest){m - 1, m + near_hi, m - 0.5, m + near_hi / 2, m, 0, 0, 0, 0};
        real each = error / (1 - mid);
        w.grows = grows_for(each, w.declared);
        // The sums and quotients, the exponent's two sums, and what makes its error.
        compare(&w, 60 + fabsl(mid + error) + 4 + 4 * error, &errors);
    }
    report(&errors, "bound.exp bound.exp-growing", "errors of an exponent beyond 27", SEED);
    for (int i = 0; i < 40; i++) {
        wide w = {.declared = 0x1p-20L, .z = sinkproof_exact_set(-746 - i)};
        real each = 27 / (746 + (real)i);
        w.grows = grows_for(each, w.declared);
        compare(&w, 60 + 6 * 27, &lost);
    }
    report(&lost, "bound.exp", "what exp here loses, times the error", SEED);
    return tap_done();
}
