// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The set of GELU as the book states it (bound.gelu), written out a second time in long double:
// its ends and variance to within the K roundings of their evaluation, gamma_K; and where each of
// its steps alone is rounded, that step's numbers.
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20260125;
static const real U = 0x1p-24L, LIBM = 0x1p-50L;

// The value where the step `point` alone is rounded to bfloat16.
static real stepped(sinkproof_point point, double x) {
    static const sinkproof_point points[] = {
        SINKPROOF_AT_M8_SQUARE, SINKPROOF_AT_M8_CUBE, SINKPROOF_AT_M8_CUBIC, SINKPROOF_AT_M8_SUM,
        SINKPROOF_AT_M8_INNER,  SINKPROOF_AT_M8_TANH, SINKPROOF_AT_M8_ONE};
    real t = 0;
    for (int i = 0; i < 7; i++) {
        if (i == 0) t = (real)x * x;
        if (i == 1) t *= x;
        if (i == 2) t *= 0.044715L;
        if (i == 3) t += x;
        if (i == 4) t *= sqrtl(2 / acosl(-1));
        if (i == 5) t = tanhl(t);
        if (i == 6) t += 1;
        if (points[i] == point) t = sinkproof_round(SINKPROOF_BF16, (double)t);
    }
    return t * x / 2;
}

static void steps(void) {
    uint64_t state = SEED;
    distance d = {0};
    for (int p = SINKPROOF_AT_M8_SQUARE; p <= SINKPROOF_AT_M8_ONE; p++) {
        sinkproof_policy policy = real_policy("definition");
        policy.at[p] = (sinkproof_rounding){SINKPROOF_BF16, false};
        sinkproof_setting s = setting(&policy);
        for (int i = 0; i < 200; i++) {
            double x = 3 * (2 * draw_unit(&state) - 1);
            sinkproof_honest y = sinkproof_honest_gelu(&s, sinkproof_known(x));
            // 1 + tanh loses of a small result what it has of 1.
            near(&d, y.mid, stepped((sinkproof_point)p, x), fabs(x), 60);
        }
    }
    report(&d, "bound.gelu", "one step rounded", SEED);
}

typedef struct ends {
    real lo, hi;
} ends;

static ends wider(ends t, real relative) {
    real by = fmaxl(fabsl(t.lo), fabsl(t.hi)) * relative;
    return (ends){t.lo - by, t.hi + by};
}

// The argument's size, whichever way its factors are grouped; `inner_fixed`: one bfloat16 number.
static ends argument(const sinkproof_policy *p, real x, bool inner_fixed) {
    real size = fabsl(x), pow = p->ulp[SINKPROOF_POW] * 2 * U, held = U + LIBM;
    real c = 0.044715L * size * size * size, f = sqrtl(2 / acosl(-1));
    ends t = {f * (1 - held) * (size + c * (1 - held) * (1 - pow)),
              f * (1 + held) * (size + c * (1 + held) * (1 + pow))};
    t = wider(t, gamma_of(4, U));
    if (inner_fixed)
        t = (ends){sinkproof_round(SINKPROOF_BF16, (double)t.lo),
                   sinkproof_round(SINKPROOF_BF16, (double)t.hi)};
    return x < 0 ? (ends){-t.hi, -t.lo} : t;
}

static void ends_of(bool inner_fixed) {
    uint64_t state = SEED + 1;
    distance d = {0}, vars = {0};
    sinkproof_policy policy = real_policy("definition");
    if (inner_fixed) policy.at[SINKPROOF_AT_M8_INNER] = (sinkproof_rounding){SINKPROOF_BF16, false};
    sinkproof_setting s = setting(&policy);
    real declared = policy.ulp[SINKPROOF_TANH] * 2 * U;
    for (int i = 0; i < 2000; i++) {
        double x = (i % 4 ? 3 : 20) * (2 * draw_unit(&state) - 1);
        sinkproof_honest y = sinkproof_honest_gelu(&s, sinkproof_known(x));
        ends t = argument(&policy, x, inner_fixed), b = {tanhl(t.lo), tanhl(t.hi)};
        real reach = fmaxl(fabsl(b.lo), fabsl(b.hi)) * declared;
        b = wider(b, declared + LIBM);
        b.lo = fmaxl(0, 1 + b.lo), b.hi += 1; // tanh is not below -1
        ends z =
            wider(x < 0 ? (ends){b.hi * x / 2, b.lo * x / 2} : (ends){b.lo * x / 2, b.hi * x / 2},
                  gamma_of(2, U));
        near(&d, y.lo, z.lo, fabs(x), 60), near(&d, y.hi, z.hi, fabs(x), 60);
        if (inner_fixed) continue; // a step's own scatter: what the rounding makes of it
        real f = sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x), slope = 1 - powl(tanhl(f), 2);
        real var = (4 * U * U / 3 * f * f * slope * slope + reach * reach) * x * x / 4;
        near(&vars, y.var, var, (1 + f * f) * x * x * U * U + 2 * var, 60);
    }
    report(&d, "bound.gelu", inner_fixed ? "ends, the argument rounded" : "ends", SEED);
    if (!inner_fixed) report(&vars, "bound.gelu", "variance", SEED);
}

int main(void) {
    steps();
    ends_of(false);
    ends_of(true);
    return tap_done();
}
