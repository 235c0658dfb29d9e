// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Honest sets of gradients, written a second time in long double: the bound of a sum whose value
// and size were computed (grad.rounded), of a sum of products of sets, of alpha (dalpha - D), and
// of a sink. Most middles are 0, so that no end is rounded at another size than that of the radius.
#include "proofs/bounds/gradients.h"
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20261127;
enum { DRAWS = 300, MOST = 40 };

static real least_of(double u) {
    return u > 0x1p-53 ? 0x1p-126L : 0x1p-1022L;
}

static real widest(real a, real b) {
    return a > b ? a : b;
}

// (gamma_K + mu) z (1 + 2 mu) + K (1 + gamma_K) eta, mu = gamma_own at 2^-53.
static real stated_radius(real size, real own, real k, double u) {
    real mu = gamma_of(own, 0x1p-53L), engine = gamma_of(k, u);
    return (engine + mu) * size * (1 + 2 * mu) + k * (1 + engine) * least_of(u);
}

static void sums(void) {
    static const double units[] = {0x1p-8, 0x1p-11, 0x1p-24, 0x1p-53};
    uint64_t state = SEED;
    distance around = {0}, lost = {0};
    for (int i = 0; i < DRAWS; i++) {
        double u = units[i % 4], size = fabs(draw_dyadic(&state));
        double own = (double)((uint64_t)1 << draw_below(&state, 24));
        double k = (double)draw_below(&state, u == 0x1p-8 ? 200 : 1500);
        sinkproof_honest set = sinkproof_honest_gradient(0, size, own, k, u);
        real stated = stated_radius(size, own, k, u);
        // gamma makes 10, and those of K u stand over 1 - K u; a step up is 2.
        double own_roundings = 20 + 4 / (1 - k * u);
        near(&around, set.hi, stated, stated, own_roundings);
        near(&around, -set.lo, stated, stated, own_roundings);
        set = sinkproof_honest_gradient(0, 0, own, k, u); // what underflows, alone
        stated = stated_radius(0, own, k, u);
        near(&lost, set.hi, stated, stated + 0x1p-1070L, own_roundings);
    }
    report(&around, "grad.rounded", "a sum with its own roundings", SEED);
    report(&lost, "grad.rounded", "what underflows in a sum", SEED);
    sinkproof_honest beyond = sinkproof_honest_gradient(1, 1, 1, 256, 0x1p-8);
    ok(isinf(beyond.hi) && isinf(beyond.lo), "grad.rounded K u = 1: nothing is known");
}

// mid - a ... mid + b
static sinkproof_honest drawn_set(uint64_t *state, double mid) {
    sinkproof_honest x = draw_set(state, mid);
    return (sinkproof_honest){x.lo, x.hi, x.lo, x.hi, x.mid, 0, 0, 0, 0};
}
static real size_of(sinkproof_honest x) {
    return widest(fabsl((real)x.lo), fabsl((real)x.hi));
}
static real radius_of(sinkproof_honest x) {
    return widest((real)x.hi - x.mid, (real)x.mid - x.lo);
}

// Pairs of terms whose middles cancel, the sets of each its own.
static size_t draw_terms(uint64_t *state, sinkproof_honest *x, sinkproof_honest *y) {
    size_t n = 2 + 2 * draw_below(state, MOST / 2 - 1);
    for (size_t k = 0; k < n; k += 2) {
        double a = draw_dyadic(state), b = draw_dyadic(state);
        x[k] = drawn_set(state, a), y[k] = drawn_set(state, b);
        x[k + 1] = drawn_set(state, a), y[k + 1] = drawn_set(state, -b);
    }
    return n;
}

static real stated_sum(size_t n, const sinkproof_honest *x, const sinkproof_honest *y, double u) {
    real size = 0, open = 0;
    for (size_t k = 0; k < n; k++) {
        size += size_of(x[k]) * size_of(y[k]);
        open += radius_of(x[k]) * size_of(y[k]) + size_of(x[k]) * radius_of(y[k]);
    }
    return stated_radius(size, (real)n + 1, (real)n + 1, u) + open;
}

static void products(void) {
    uint64_t state = SEED;
    distance exact = {0}, open = {0}, sink = {0};
    sinkproof_honest x[MOST], y[MOST];
    for (int i = 0; i < DRAWS; i++) {
        double u = i % 2 ? 0x1p-24 : 0x1p-8;
        size_t n = draw_terms(&state, x, y);
        real stated = stated_sum(n, x, y, u);
        sinkproof_honest set = sinkproof_honest_gradient_sum(n, x, 1, y, 1, u);
        near(&open, set.hi, stated, stated, 3 * (double)n + 12);
        near(&open, -set.lo, stated, stated, 3 * (double)n + 12);
        set = sinkproof_honest_sink_gradient(n, x, y, u);
        near(&sink, set.hi, stated, stated, 3 * (double)n + 12);
        for (size_t k = 0; k < n; k++)
            x[k] = sinkproof_exact_set(x[k].mid), y[k] = sinkproof_exact_set(y[k].mid);
        stated = stated_sum(n, x, y, u);
        set = sinkproof_honest_gradient_sum(n, x, 1, y, 1, u);
        near(&exact, set.hi, stated, stated, 3 * (double)n + 12);
    }
    report(&exact, "grad.rounded", "a sum of products", SEED);
    report(&open, "grad.rounded", "a sum of products of sets", SEED);
    report(&sink, "grad.rounded grad.sink", "a sink's gradient", SEED);
}

// The middle is that of -sum, and strides step through columns.
static void middles(void) {
    uint64_t state = SEED;
    bool equal = true;
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_honest x[6], y[9];
        double sum = 0;
        for (int k = 0; k < 6; k++) x[k] = sinkproof_exact_set(draw_dyadic(&state));
        for (int k = 0; k < 9; k++) y[k] = sinkproof_exact_set(draw_dyadic(&state));
        for (int k = 0; k < 3; k++) sum += x[2 * k].mid * y[3 * k].mid;
        equal = equal && sinkproof_honest_gradient_sum(3, x, 2, y, 3, 0x1p-24).mid == sum;
        sum = x[0].mid * y[0].mid + x[1].mid * y[1].mid;
        equal = equal && sinkproof_honest_sink_gradient(2, x, y, 0x1p-24).mid == -sum;
        sum = x[0].mid * (y[0].mid - y[1].mid);
        equal = equal && honest_score_gradient(x[0], y[0], y[1], 0x1p-24).mid == sum;
    }
    ok(equal, "grad.rounded grad.sink the middle of a set is the sum of the middles");
}

// The ends of alpha (dalpha - D) over the reals, in all corners; then two roundings of
// A (|dalpha| + |D|), what underflows, and 2^-51 of it for this evaluation.
static real stated_score(sinkproof_honest a, sinkproof_honest da, sinkproof_honest d, double u) {
    real size = size_of(a) * (size_of(da) + size_of(d)), most = 0;
    real low = (real)da.lo - d.hi, high = (real)da.hi - d.lo, mid = (real)a.mid * (da.mid - d.mid);
    real corner[] = {a.lo * low, a.lo * high, a.hi * low, a.hi * high};
    for (int c = 0; c < 4; c++) most = widest(most, fabsl(corner[c] - mid));
    return most + gamma_of(2, u) * size + 0x1p-51L * size + (4 + 2 * size_of(a)) * least_of(u);
}

static void scores(void) {
    uint64_t state = SEED;
    distance open = {0}, exact = {0};
    for (int i = 0; i < DRAWS; i++) {
        double u = i % 2 ? 0x1p-24 : 0x1p-8, level = draw_dyadic(&state), a = draw_dyadic(&state);
        sinkproof_honest alpha = drawn_set(&state, a), da = drawn_set(&state, level),
                         d = drawn_set(&state, level);
        real stated = stated_score(alpha, da, d, u);
        sinkproof_honest set = honest_score_gradient(alpha, da, d, u);
        near(&open, set.hi, stated, stated, 20);
        near(&open, -set.lo, stated, stated, 20);
        alpha = sinkproof_exact_set(a), da = d = sinkproof_exact_set(level);
        stated = stated_score(alpha, da, d, u);
        near(&exact, honest_score_gradient(alpha, da, d, u).hi, stated, stated, 20);
    }
    report(&open, "grad.rounded grad.softmax", "a score's gradient, of sets", SEED);
    report(&exact, "grad.rounded grad.softmax", "a score's gradient", SEED);
}

int main(void) {
    sums();
    products();
    middles();
    scores();
    return tap_done();
}
