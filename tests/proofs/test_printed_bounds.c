// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The bounds as the book prints them, against float32 computations whose inputs, order and
// roundings are drawn. Beside each figure stands a second one: how often the draws leave the bound
// if one of its terms is removed. So a missing term would be seen.
#include "tests/shared/formulas.h"

enum { DRAWS = 200000, MOST_KEYS = 8 };
static const real U = 0x1p-24L, TINY = 0x1p-150L; // float32: unit roundoff, half the smallest
static const uint64_t SEED = 20260122;

typedef struct drawn {
    double worst;            // share of the bound
    size_t outside, without; // beyond the bound, and beyond it without one term
} drawn;

static void against(drawn *t, real error, real bound, real less) {
    double share = error == 0 ? 0 : (double)(error / bound);
    if (!(share <= t->worst) && t->worst == t->worst) t->worst = share;
    t->outside += !(error <= bound), t->without += !(error <= less);
}

static void told(const drawn *t, const char *id, const char *term) {
    ok(t->outside == 0 && t->worst <= 1,
       "%s as printed, float32 worst=%.3g bound=1 outside=%zu of=%d seed=%llu", id, t->worst,
       t->outside, DRAWS, (unsigned long long)SEED);
    ok(t->without > 0, "%s without %s is left in %zu of %d draws", id, term, t->without, DRAWS);
}

// Sizes of 2^-4 to 2^4; seldom numbers whose products underflow.
static float draw_float(uint64_t *state, bool tiny) {
    int scale = (int)draw_below(state, 9) - 4 - (tiny ? 70 : 0);
    return (float)ldexp(draw_gauss(state), scale);
}

// x is off by as much as `size` of itself, often by nothing.
static float moved(uint64_t *state, float x, float size) {
    return draw(state) % 3 ? x * (1 + size * (float)(2 * draw_unit(state) - 1)) : x;
}

// ---- bound.value -------------------------------------------------------------------------------

// o = sum_j alpha_j v_j from operands that are off, in a drawn order, with FMA or without.
static void value(void) {
    uint64_t state = SEED;
    drawn t = {0};
    for (int i = 0; i < DRAWS; i++) {
        size_t n = 1 + draw_below(&state, MOST_KEYS);
        bool fused = draw(&state) % 2, tiny = i % 50 == 0;
        float size = (float)ldexp(1, -(int)draw_below(&state, 30)), sum = 0;
        real truth = 0, a = 0, r = 0, r_less = 0;
        for (size_t j = 0; j < n; j++) {
            float alpha = fabsf(draw_float(&state, tiny)), v = draw_float(&state, tiny);
            float alpha_here = moved(&state, alpha, size), v_here = moved(&state, v, size);
            real d_alpha = fabsl((real)alpha_here - alpha), d_v = fabsl((real)v_here - v);
            truth += (real)alpha * v, a += fabsl((real)alpha * v);
            r += d_alpha * fabsf(v) + fabsf(alpha) * d_v + d_alpha * d_v;
            r_less += d_alpha * fabsf(v);
            sum = fused ? fmaf(alpha_here, v_here, sum) : sum + alpha_here * v_here;
        }
        real g = gamma_of((real)n, U), under = (real)n * (1 + g) * TINY;
        against(&t, fabsl(sum - truth), g * (a + r) + r + under, g * (a + r) + r_less + under);
    }
    told(&t, "bound.value", "|dv|");
}

// ---- bound.swiglu ------------------------------------------------------------------------------

static real sigmoid_of(real t) {
    return 1 / (1 + expl(-t));
}

static void swiglu(void) {
    uint64_t state = SEED + 1;
    const float alpha = 1.702f, limit = 7;
    const real e = 0x1p-23L; // expf of one ulp, two unit roundoffs
    drawn gate = {0}, whole = {0};
    for (int i = 0; i < DRAWS; i++) {
        float raw = (float)(40 * (draw_unit(&state) - 0.7)), up = draw_float(&state, false);
        float g = fminf(raw, limit), l = fmaxf(-limit, fminf(up, limit));
        float t = alpha * g, exponential = expf(-t), sigma = 1 / (1 + exponential);
        float h = g * sigma, one_up = l + 1, y = h * one_up;
        real drift = U * fabsl((real)alpha * g), big = expl(-(real)t), tail = big / (1 + big);
        real kappa = e * tail + TINY, sigma_true = sigmoid_of((real)alpha * g);
        real b = expl(drift) * (1 + U) / ((1 - U) * (1 - kappa)) - 1;
        real no_tail = expl(drift) * (1 + U) / (1 - U) - 1;
        real no_drift = (1 + U) / ((1 - U) * (1 - kappa)) - 1, here = 0x1p-60L; // of long double
        against(&gate, fabsl(sigma - sigma_true), (b + here) * sigma_true,
                fminl(no_tail, no_drift) * sigma_true);
        real size = fabsl(g * sigma_true * (1 + (real)l)), steps = (1 + U) * (1 + U) * (1 + U);
        real under = (1 + U) * (1 + U) * TINY * fabsl(1 + (real)l) + TINY;
        against(&whole, fabsl(y - g * sigma_true * (1 + (real)l)),
                ((1 + b) * steps - 1 + here) * size + under, (steps - 1) * size + under);
    }
    told(&gate, "bound.swiglu the sigmoid,", "the tail or the argument's rounding");
    told(&whole, "bound.swiglu the activation,", "the sigmoid's error");
}

// ---- bound.dot-likely --------------------------------------------------------------------------

// Roundings of +u or -u, as a coin falls: how many of the draws are beyond lambda sqrt(W), and W as
// the theorem adds it up: squares of u times the largest that each rounded number can be.
static void odds(void) {
    uint64_t state = SEED + 2;
    enum { TERMS = 12 };
    const double u = 0x1p-8, levels[] = {0.5, 1, 2, 3};
    double x[TERMS];
    for (int k = 0; k < TERMS; k++) x[k] = fabs(draw_gauss(&state)); // sums as large as they can be
    for (size_t level = 0; level < sizeof levels / sizeof *levels; level++) {
        double exact = x[0], top = fabs(x[0]), walk = 0, last_only = 0;
        for (int k = 1; k < TERMS; k++) {
            top += fabs(x[k]), exact += x[k], last_only = u * top * u * top;
            walk += last_only, top *= 1 + u;
        }
        double limit = sqrt(2 * levels[level] * walk), low = sqrt(2 * levels[level] * last_only);
        size_t beyond = 0, without = 0;
        for (int i = 0; i < DRAWS; i++) {
            double sum = x[0];
            for (int k = 1; k < TERMS; k++) sum = (sum + x[k]) * (draw(&state) % 2 ? 1 + u : 1 - u);
            beyond += !(fabs(sum - exact) < limit), without += !(fabs(sum - exact) < low);
        }
        double stated = 2 * exp(-levels[level]);
        ok((double)beyond <= stated * DRAWS,
           "bound.dot-likely one order worst=%.3g bound=%.3g, the share beyond (%zu where the last "
           "rounding alone is counted) draws=%d seed=%llu",
           (double)beyond / DRAWS, stated, without, DRAWS, (unsigned long long)SEED);
    }
}

// n roundings of one number by coins: lambda sqrt(n) u (1 + u)^n |x|.
static void again(void) {
    uint64_t state = SEED + 3;
    const double u = 0x1p-8;
    for (int n = 1; n <= 64; n *= 4) {
        double stated = 2 * exp(-1.0), limit = sqrt(2.0 * n) * u * pow(1 + u, n);
        size_t beyond = 0;
        for (int i = 0; i < DRAWS; i++) {
            double x = 1;
            for (int k = 0; k < n; k++) x *= draw(&state) % 2 ? 1 + u : 1 - u;
            beyond += !(fabs(x - 1) < limit);
        }
        ok((double)beyond <= stated * DRAWS,
           "bound.dot-likely %d roundings of one number worst=%.3g bound=%.3g draws=%d seed=%llu",
           n, (double)beyond / DRAWS, stated, DRAWS, (unsigned long long)SEED);
    }
}

int main(void) {
    value();
    swiglu();
    odds();
    again();
    return tap_done();
}
