// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The bounds, computed again in long double from the book's formulas. A bound that became wider
// than its derivation still holds, but it finds fewer mistakes. So every end, variance and bias of
// the sets must be the stated one, up to the K roundings of its evaluation in binary64, gamma_K.
// The settings combine a binary64 inner format with u = 2^-24, so that nothing is rounded on the
// way and each term of a bound is far above the noise.
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20260117;
enum { DRAWS = 400 };
// ---- bound.dot-likely: n roundings on the way to x --------------------------------------------

static void roundings(void) {
    uint64_t state = SEED;
    distance d = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_policy policy = real_policy("definition");
        if (i % 2) policy.inside = SINKPROOF_F32;
        sinkproof_setting s = setting(&policy);
        s.odds = i % 3 == 0 ? 1 : 30;
        // Around zero the ends are the widths themselves; tiny ones show the underflow.
        double size = i % 4 == 3 ? 0x1p-130 : 1, n = (double)(1 + draw_below(&state, 300));
        double a = size * draw_unit(&state), b = size * draw_unit(&state);
        sinkproof_honest x = {-a, b, -a / 2, b / 4, i % 5 ? b / 8 : 0, a * a, 0, 0, 0};
        sinkproof_honest y = sinkproof_honest_roundings(&s, x, n);
        real u = 0x1p-24L, worst = gamma_of(n, u), grown = 1 + worst;
        real under = n * (real)sinkproof_format_underflow(policy.inside) * grown;
        real likely = fminl(worst, sqrtl(2 * (real)s.odds * n) * u * grown);
        real wide = fmax(a, b) * worst + under, narrow = fmax(a / 2, b / 4) * likely + under;
        near(&d, x.lo - y.lo, wide, wide + a, 8), near(&d, y.hi - x.hi, wide, wide + b, 8);
        near(&d, x.likely_lo - y.likely_lo, narrow, narrow + a, 8);
        near(&d, y.likely_hi - x.likely_hi, narrow, narrow + b, 8);
        real var = (real)x.var + n * u * u * x.mid * x.mid / 3;
        near(&d, y.var, var, var, 8), near(&d, y.spread, var, var, 8);
    }
    report(&d, "bound.dot-likely", "n roundings", SEED);
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting none = setting(&policy);
    none.u = 0;
    sinkproof_honest x = draw_set(&state, 1), y = sinkproof_honest_roundings(&none, x, 9);
    ok(memcmp(&x, &y, sizeof x) == 0, "bound.dot-likely no rounding, no width");
    // An end at zero is an end like any other; a set that is zero alone is exact.
    none.u = 0x1p-24;
    x = (sinkproof_honest){.hi = 1, .likely_hi = 1, .mid = 0.5};
    y = sinkproof_honest_roundings(&none, x, 9);
    x = sinkproof_exact_set(0);
    sinkproof_honest z = sinkproof_honest_roundings(&none, x, 9);
    ok(y.lo < 0 && y.hi > 1 && y.likely_lo < 0 && memcmp(&x, &z, sizeof x) == 0,
       "bound.dot-likely a set with one end at zero is widened");
    // n u = 1 - 2^-53, rounded up, is 1: nothing is bounded any more.
    ok(sinkproof_gamma(0x1p53 - 1, 0x1p-53) == INFINITY, "bound.dot gamma at n u = 1");
}

// All orders of n whole numbers: their squared partial sums add up to what the book says, exactly.
// Six times either side is a whole number.
static long long all_orders(size_t n, long long *x, long long sum) {
    if (n == 0) return 0;
    long long squares = 0, count = 1;
    for (size_t k = 2; k < n; k++) count *= (long long)k; // orders of those before the last
    for (size_t last = 0; last < n; last++) {
        long long kept = x[last];
        x[last] = x[n - 1], x[n - 1] = kept;
        squares += count * sum * sum + all_orders(n - 1, x, sum - kept);
        x[n - 1] = x[last], x[last] = kept;
    }
    return squares;
}

static void orders(void) {
    uint64_t state = SEED + 6;
    size_t wrong = 0;
    for (int i = 0; i < DRAWS; i++) {
        size_t n = 1 + draw_below(&state, 7);
        long long x[7], sum = 0, squares = 0, count = 1;
        for (size_t k = 0; k < n; k++) {
            x[k] = (long long)draw_below(&state, 201) - 100, count *= (long long)k + 1;
            sum += x[k], squares += x[k] * x[k];
        }
        long long stated = count * ((long long)n + 1) * (2 * sum * sum + squares);
        wrong += 6 * all_orders(n, x, sum) != stated;
    }
    ok(wrong == 0, "bound.dot-likely squared partial sums over all orders worst=%zu bound=0 of=%d",
       wrong, DRAWS);
}

// ---- moe.sum: the set of the mixture -----------------------------------------------------------

// Known weights and outputs whose products and sums are exact, so that only what the policy says
// rounds: the running sum in order, or any order in the inside format, or either.
static void mixture(void) {
    enum { CHOICES = 4 };
    uint64_t state = SEED + 5;
    distance d = {0};
    size_t wrong = 0, compared = 0;
    for (int i = 0; i < 4 * DRAWS; i++) {
        sinkproof_policy policy = real_policy("definition");
        bool products = i & 1, last = i >> 1 & 1;
        int sums = (i >> 2) % 3; // 0: in registers, 1: fixed, 2: optional
        if (products) policy.at[AT_M11_PROD].format = SINKPROOF_BF16;
        if (last) policy.at[AT_M11].format = SINKPROOF_BF16;
        policy.at[AT_M11_SUM] = (sinkproof_rounding){
            .format = sums > 0 ? SINKPROOF_BF16 : SINKPROOF_REAL, .optional = sums == 2};
        sinkproof_setting s = setting(&policy);
        size_t k = 1 + draw_below(&state, CHOICES);
        sinkproof_honest w[CHOICES], y[CHOICES];
        real plain = 0, total = 0;
        double ordered = 0, least = 0, most = 0; // rounded each time; or as one likes
        for (size_t e = 0; e < k; e++) {
            w[e] = sinkproof_exact_set(draw_dyadic(&state));
            y[e] = sinkproof_exact_set(draw_dyadic(&state) + 0x1p-9);
            double p = w[e].mid * y[e].mid;
            if (products) p = sinkproof_round(SINKPROOF_BF16, p);
            plain += p, total += fabs(p);
            ordered = sinkproof_round(SINKPROOF_BF16, ordered + p);
            least += p, most += p;
            least = fmin(least, sinkproof_round(SINKPROOF_BF16, least));
            most = fmax(most, sinkproof_round(SINKPROOF_BF16, most));
        }
        sinkproof_honest m = sinkproof_honest_mixture(&s, k, w, y);
        real width = sums == 1 ? 0 : gamma_of((real)k, 0x1p-24L) * total;
        real mid = sums == 1 ? ordered : plain, lo = mid - width, hi = mid + width;
        if (sums == 2) lo = fminl(lo, least), hi = fmaxl(hi, most);
        if (last) { // rounded: the ends are bfloat16, exactly
            wrong += m.lo != sinkproof_round(SINKPROOF_BF16, (double)lo);
            wrong += m.hi != sinkproof_round(SINKPROOF_BF16, (double)hi);
            wrong += m.mid != sinkproof_round(SINKPROOF_BF16, (double)mid);
        } else {
            near(&d, m.lo, lo, total, 8), near(&d, m.hi, hi, total, 8),
                near(&d, m.mid, mid, total, 1);
        }
        compared++;
    }
    report(&d, "moe.sum", "the mixture's ends", SEED);
    ok(wrong == 0, "moe.sum the mixture's ends rounded worst=%zu bound=0 of=%zu", wrong, compared);
}

int main(void) {
    mixture();
    roundings();
    orders();
    return tap_done();
}
