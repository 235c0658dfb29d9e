// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The bounds of weights at their edges, computed again from their formulas (test_bound_formulas.c
// says how): exponentials that are rounded before they are multiplied by the values, experts'
// weights, a value that is also available unrounded, and one minus the sink's weight.
#include "proofs/bounds/one_minus.h"
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20260414;
enum { MOST = 10 };

// ---- bound.softmax-sink: exponentials that are rounded ------------------------------------------

// Known logits below 0 and a largest one of 0, so that the shift is known; 2^-24 is the roundoff.
static void compare_kept(distance *d, const sinkproof_policy *policy, size_t n,
                         const sinkproof_honest *z) {
    sinkproof_setting s = setting(policy);
    sinkproof_honest alpha[MOST + 1];
    double common, terms[MOST + 1];
    must(sinkproof_honest_softmax(&s, AT_A9, n, z, z[n], alpha, &common));
    real u = 0x1p-24L, declared = policy->ulp[SINKPROOF_EXP] * 2 * u, total = 0, k = 60;
    real all_lo = 0, all_hi = 0, e[MOST + 1][2];
    for (size_t j = 0; j <= n; j++) {
        real mid = expl(z[j].mid), eta = expm1l(fabsl(z[j].mid) * (u + 0x1p-52L));
        eta += eta * declared + declared + 0x1p-50L;
        e[j][0] = mid * (1 - eta), e[j][1] = mid * (1 + eta), terms[j] = (double)mid;
        total += mid, all_lo += e[j][0], all_hi += e[j][1];
    }
    real lean = 2 * declared + lean_of(n + 1, terms, (double)total) / total;
    real two = gamma_of(2, u), count = (real)n + 1, here = gamma_of(2 * count + 8, 0x1p-53L);
    real g = gamma_of(count - 1, u) + 2 * here;
    for (size_t j = 0; j <= n; j++) {
        real own = z[j].mid * (real)z[j].mid * u * u / 3, mid = expl(z[j].mid), bias = 0;
        sinkproof_honest kept = sinkproof_exact_set((double)mid);
        kept.lo = (double)e[j][0], kept.hi = (double)e[j][1];
        kept.likely_lo = kept.lo, kept.likely_hi = kept.hi, kept.var = (double)(mid * mid * own);
        if (j < n) kept = sinkproof_honest_at(&s, AT_A9_UNNORM, kept);
        real a = kept.mid / total, lo = kept.lo / all_hi, hi = kept.hi / all_lo;
        real most = INFINITY;
        if (j == n) { // the sink meets no value
            lo = e[j][0] / (e[j][0] + (all_hi - e[j][1]));
            hi = e[j][1] / (e[j][1] + (all_lo - e[j][0])), most = 1 + 2 * u;
        }
        bias = a * lean + (j < n ? kept.bias / total : 0);
        real var = a > 0 ? kept.var / (total * total) + a * a * 2 * u * u / 3 : 0;
        near(d, alpha[j].mid, a, a, k), near(d, alpha[j].var, var, var, 100 * k);
        near(d, alpha[j].bias, a > 0 ? bias : 0, bias, k);
        near(d, alpha[j].lo, lo * (1 - two) / (1 + g), lo, k);
        near(d, alpha[j].hi, fminl(hi * (1 + two) / (1 - g), most), hi, k);
    }
}

static void kept(void) {
    uint64_t state = SEED;
    distance d = {0};
    const sinkproof_format formats[] = {SINKPROOF_BF16, SINKPROOF_F16};
    for (int i = 0; i < 400; i++) {
        sinkproof_policy policy = real_policy("definition");
        policy.at[AT_A9_UNNORM] =
            (sinkproof_rounding){.format = formats[i % 2], .optional = i / 2 % 2};
        sinkproof_honest z[MOST + 1];
        size_t n = 1 + draw_below(&state, MOST);
        for (size_t j = 0; j <= n; j++)
            z[j] = sinkproof_exact_set(-(double)draw_below(&state, i % 5 ? 64 : 200) / 8);
        z[draw_below(&state, n + 1)] = sinkproof_exact_set(0);
        compare_kept(&d, &policy, n, z);
    }
    report(&d, "bound.softmax-sink", "exponentials that are rounded", SEED);
}

// ---- bound.unrounded, bound.one-minus, bound.form-router ----------------------------------------

static void at_hand(void) {
    size_t wrong = 0;
    const double inf = INFINITY;
    sinkproof_honest any = {-inf, inf, -inf, inf, 0, 0, 0, 0, 0};
    for (int sign = -1; sign <= 1; sign += 2) {
        sinkproof_honest x = sinkproof_honest_read(SINKPROOF_BF16, sign * inf, any);
        wrong += !(x.lo == -inf && x.hi == inf && x.likely_lo == -inf && x.likely_hi == inf);
        wrong += !(x.mid == sign * inf && x.var == 0 && x.spread == 0 && x.bias == 0);
        wrong += !(x.order == 0);
        // A power of two: half a step away from zero, a quarter towards it.
        x = sinkproof_honest_read(SINKPROOF_BF16, sign, any);
        double far = 1 + 0x1p-8, near_by = 1 - 0x1p-9;
        wrong += !(x.lo == (sign > 0 ? near_by : -far) && x.hi == (sign > 0 ? far : -near_by));
        wrong += !(x.bias == 0x1p-8 && x.mid == sign && x.likely_lo == x.lo && x.likely_hi == x.hi);
        // What was at hand is one number, on the very edge of those that round so: it stays.
        x = sinkproof_honest_read(SINKPROOF_BF16, sign, sinkproof_exact_set(sign * far));
        wrong += !(x.lo == fmin(sign, sign * far) && x.hi == fmax(sign, sign * far));
        wrong += x.bias != 0x1p-8;
        x = sinkproof_honest_read(SINKPROOF_BF16, sign,
                                  sinkproof_exact_set(sign * (far + 0x1p-20)));
        wrong += !(x.lo == sign && x.hi == sign && x.bias == 0);
    }
    sinkproof_honest zero = sinkproof_honest_read(SINKPROOF_BF16, 0, any);
    double half = sinkproof_ulp(SINKPROOF_BF16, 0) / 2;
    wrong += !(zero.lo == -half && zero.hi == half && zero.bias == half);
    ok(wrong == 0, "bound.unrounded numbers at hand worst=%zu bound=0", wrong);
    wrong = 0;
    const double u = 0x1p-24, full[] = {1, 1.5, 2};
    for (int i = 0; i < 3; i++) {
        wrong += sinkproof_mass_quotient(u, 0.5, full[i]) != inf;
        wrong += sinkproof_mass_quotient(u, full[i], 0.5) != inf;
        wrong += sinkproof_mass_sigmoid(u, full[i], 0.5, 0.1) != inf;
        wrong += sinkproof_mass_sigmoid(u, 0.5, full[i], 0.1) != inf;
    }
    ok(wrong == 0, "bound.one-minus errors of 1 and more leave nothing worst=%zu bound=0", wrong);
}

// A zero weight may be E of the smallest normal numbers; the router's point is the weights'.
static void router(void) {
    distance d = {0};
    sinkproof_policy policy = real_policy("definition");
    policy.inside = SINKPROOF_F32;
    policy.forms[SINKPROOF_FORM_OF_M4] = 1u << SINKPROOF_M4_ALL_RENORMALISED;
    sinkproof_setting s = setting(&policy);
    sinkproof_honest g[3] = {sinkproof_exact_set(0), sinkproof_exact_set(-3000),
                             sinkproof_exact_set(-4000)};
    for (int first = 0; first < 2; first++) { // the weight that is zero stands first or last
        sinkproof_honest w[3];
        w[2] = sinkproof_exact_set(17);
        double common;
        const int32_t chosen[2] = {first, 1 - first};
        must(sinkproof_honest_expert_weights(&s, 3, g, 2, chosen, w, &common));
        sinkproof_honest tiny = w[1 - first];
        // One flush of its exponential, then three of what the quotient may be made of.
        real stated = 0x1p-126L * (3 + 1);
        near(&d, tiny.hi, stated, stated, 0x1p34L);
        near(&d, w[2].mid, 17, 17, 1);
    }
    for (int coarse = 0; coarse < 2; coarse++) {
        policy.inside = SINKPROOF_F64;
        policy.at[AT_M4].format = coarse ? SINKPROOF_BF16 : SINKPROOF_REAL;
        policy.at[AT_M5_IN].format = coarse ? SINKPROOF_REAL : SINKPROOF_BF16;
        sinkproof_honest w[2],
            h[3] = {sinkproof_exact_set(1), sinkproof_exact_set(0), sinkproof_exact_set(-1)};
        double common;
        must(sinkproof_honest_expert_weights(&s, 3, h, 2, (const int32_t[]){0, 1}, w, &common));
        real first = 1 / (1 + expl(-1)), stated = first;
        if (coarse) stated = sinkproof_round(SINKPROOF_BF16, (double)first);
        near(&d, w[0].mid, stated, stated, 4);
    }
    report(&d, "bound.form-router", "weights that underflow, and their point", SEED);
}

int main(void) {
    kept();
    at_hand();
    router();
    return tap_done();
}
