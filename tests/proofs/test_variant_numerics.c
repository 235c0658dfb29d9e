// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Numerical differences between designs of attention, each on an instance: what overflows without a
// shift, what cancels, what the corner of a divisor does, what a learned key costs in a cache of
// float16. Lines behind "# output" are shown in the book.
#include "base/splitmix.h"
#include "proofs/bounds/variants.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/lattice.h"
#include "tests/shared/tap.h"

#include <string.h>

enum { BITS = 128 };

static const sinkproof_format formats[] = {SINKPROOF_F32, SINKPROOF_BF16, SINKPROOF_F16};
static const char *const format_names[] = {"float32", "bfloat16", "float16"};

// ---- where e^(p s) overflows

// Whether e^(p s), rounded to the format, is infinite; decided in balls. The smallest number that
// is rounded to infinity is half a step above the largest.
static bool overflows(sinkproof_format format, double largest, double s, double p) {
    double step = largest - sinkproof_round(format, largest * (1 - 0x1p-8));
    while (sinkproof_round(format, largest - step / 2) < largest) step /= 2;
    arb_t e, limit;
    balls_init(e, limit);
    arb_set_d(e, s);
    arb_set_d(limit, p);
    arb_mul(e, e, limit, BITS);
    arb_exp(e, e, BITS);
    arb_set_d(limit, largest + step / 2);
    must(!arb_overlaps(e, limit));
    bool beyond = arb_gt(e, limit);
    balls_clear(e, limit);
    return beyond;
}

static double largest_of(sinkproof_format format) {
    return format == SINKPROOF_F16 ? 65504 : format == SINKPROOF_F32 ? 0x1.fffffep127 : 0x1.fep127;
}

// The last score of the format whose exponential is a number, by bisection over its numbers.
static double last_score(sinkproof_format format, double p) {
    double lo = 0, hi = 128, largest = largest_of(format);
    while (true) {
        double mid = sinkproof_round(format, (lo + hi) / 2);
        if (mid == lo || mid == hi) break;
        if (overflows(format, largest, mid, p))
            hi = mid;
        else
            lo = mid;
    }
    return lo;
}

static void overflow(void) {
    static const double powers[] = {1, 2, 3};
    bool right = true;
    for (int p = 0; p < 3; p++)
        for (int f = 0; f < 3; f++) {
            double last = last_score(formats[f], powers[p]);
            double after = last + sinkproof_ulp(formats[f], last);
            right = right && !overflows(formats[f], largest_of(formats[f]), last, powers[p]) &&
                    overflows(formats[f], largest_of(formats[f]), after, powers[p]);
            if (formats[f] == SINKPROOF_F32) // and the machine's own says the same
                right = right && isfinite((float)exp(powers[p] * last)) &&
                        isinf((float)exp(powers[p] * after));
            note("output design-overflow| e^(%gs) in %s: the last score %.9g, infinite from %.9g",
                 powers[p], format_names[f], last, after);
        }
    ok(right, "norm.power the last scores whose powers are numbers, of three formats");
    sinkproof_policy policy;
    must(sinkproof_policy_known("f32", &policy));
    for (int k = 0; k < 2; k++) { // the reference shifts; so does every honest set
        const sinkproof_variant *v = sinkproof_variant_find(k == 0 ? "power-3" : "softmax");
        double s_j[4] = {300, 299, 100, 0}, sim[4], z, alpha[4];
        bool seen[4] = {true, true, true, false};
        sinkproof_honest known[4], set[4];
        sinkproof_setting s = sinkproof_setting_for(&policy, 4, 1e-9);
        for (int j = 0; j < 4; j++) known[j] = sinkproof_exact_set(s_j[j]);
        variant_divide(&policy, v, 4, seen, s_j, sim, &z, alpha);
        must(sinkproof_honest_variant_weights(&s, v, 4, seen, known, set));
        ok(isfinite(z) && alpha[0] >= set[0].lo && alpha[0] <= set[0].hi && set[0].hi < 1,
           "bound.similarity %s of scores of 300, shifted: its first weight is %.6f", v->name,
           alpha[0]);
    }
}

// ---- signed weights cancel

typedef struct seen_error {
    double error, half; // of the first result, and of its set
} seen_error;

static seen_error first_value(const char *name, size_t n, const double *alpha_j, const double *v_j,
                              double exact) {
    sinkproof_policy policy;
    sinkproof_honest o;
    sinkproof_variant_head head = {.dim = 1};
    float sum = 0;
    must(sinkproof_policy_known("f32", &policy));
    sinkproof_setting s = sinkproof_setting_for(&policy, n, 1e-9);
    double *column_j = calloc(n + 1, sizeof *column_j);
    must(column_j != NULL);
    memcpy(column_j, alpha_j, n * sizeof *column_j);
    must(sinkproof_honest_variant_values(&s, sinkproof_variant_find(name), &head, n, column_j, v_j,
                                         &o));
    for (size_t j = 0; j < n; j++) sum += (float)alpha_j[j] * (float)v_j[j];
    free(column_j);
    must(sum >= o.lo && sum <= o.hi);
    return (seen_error){fabs(sum - exact), sinkproof_radius(&o)};
}

static void cancellation(void) {
    // Three keys whose scores are 2^24, 1, -2^24, exactly: every value is 1.
    const double s_j[] = {0x1p24, 1, -0x1p24}, v_j[] = {1, 1, 1};
    double alpha_j[4], sim[4], z;
    bool seen[4] = {true, true, true, false};
    double with_column[4] = {s_j[0], s_j[1], s_j[2], 0};
    sinkproof_policy policy;
    must(sinkproof_policy_known("f32", &policy));
    variant_divide(&policy, sinkproof_variant_find("softmax"), 4, seen, with_column, sim, &z,
                   alpha_j);
    seen_error signs = first_value("identity", 3, s_j, v_j, 1);
    seen_error softmax = first_value("softmax", 3, alpha_j, v_j, 1);
    double condition = 0x1p25 + 1; // sum |s v| / |sum s v|
    note("output design-cancel| identity: error %g of 1, condition %.0f, bound %.3g", signs.error,
         condition, signs.half);
    note("output design-cancel| softmax:  error %g of 1, condition 1, bound %.3g", softmax.error,
         softmax.half);
    ok(signs.error == 1 && signs.error <= signs.half && softmax.error == 0 &&
           softmax.half < 0x1p-20,
       "bound.dot scores of either sign cancel: identity loses every digit, softmax none, "
       "worst=%.3g bound=%.3g",
       signs.error, signs.half);
}

// ---- the corner of max(|sum|, 1)

// Sums of 64 terms of either sign in float32 in both directions, their exact sums near 1.
static void corner(void) {
    double worst = 0, most = 0;
    uint64_t state = 11;
    size_t across = 0, cases = 400;
    for (size_t k = 0; k < cases; k++) {
        double x[64], exact = 0, sizes = 0;
        float up = 0, down = 0;
        for (int j = 0; j < 63; j++) { // few bits: their sum is exact in binary64
            x[j] = (double)(int64_t)(sinkproof_draw(&state) >> 40) * 0x1p-20 - 8;
            exact += x[j];
        }
        x[63] = sinkproof_round(SINKPROOF_F32, 1 - exact + ((double)k - 200) * 0x1p-20);
        exact += x[63];
        for (int j = 0; j < 64; j++) {
            sizes += fabs(x[j]);
            up += (float)x[j];
            down += (float)x[63 - j];
        }
        double z = fmax(fabs(exact), 1), bound = sinkproof_gamma(63, 0x1p-24) * sizes;
        double off =
            fmax(fabs(fmax(fabs((double)up), 1) - z), fabs(fmax(fabs((double)down), 1) - z));
        across += (fabs((double)up) > 1) != (fabs(exact) > 1);
        worst = sinkproof_keep_worst(worst, off / bound);
        most = sinkproof_keep_worst(most, off);
    }
    note("output design-corner| %zu sums near 1, %zu on the other side of the corner in float32:",
         cases, across);
    note("output design-corner| the divisor is off by %.3g at most, %.2g of the bound of its sum",
         most, worst);
    ok(across > 0 && worst <= 1,
       "norm.max-one bound.dot the corner of max(|sum|, 1) passes an error on and adds none, "
       "across=%zu worst=%.3g bound=1",
       across, worst);
}

// ---- a learned key in a cache of float16

static void short_cache(void) {
    enum { DIM = 64, KEYS = 8, DRAWS = 400 };
    const double u = 0x1p-11;
    double worst = 0, moved = 0, most = 0;
    uint64_t state = 3;
    for (int k = 0; k < DRAWS; k++) {
        double q2 = 0, k2 = 0, b = 0, cached = 0, rest = 0;
        for (int d = 0; d < DIM; d++) {
            double q = (double)(sinkproof_draw(&state) >> 11) * 0x1p-51 - 2;
            double key = (double)(sinkproof_draw(&state) >> 11) * 0x1p-50 - 4;
            q2 += q * q;
            k2 += key * key;
            b += q * key;
            cached += q * sinkproof_round(SINKPROOF_F16, key);
        }
        b /= sqrt(DIM);
        cached /= sqrt(DIM);
        for (int j = 0; j < KEYS; j++)
            rest += exp((double)(sinkproof_draw(&state) >> 11) * 0x1p-52 - 1);
        double bound = u * sqrt(q2 * k2) / sqrt(DIM), off = fabs(cached - b);
        double before = exp(b) / (exp(b) + rest), after = exp(cached) / (exp(cached) + rest);
        double ratio = fabs(log(after / before));
        worst = sinkproof_keep_worst(worst, off / bound);
        moved = sinkproof_keep_worst(moved, ratio / off); // at most the logit's own error
        most = sinkproof_keep_worst(most, fabs(after / before - 1));
    }
    note(
        "output design-cache| %d draws of 64 coordinates: the logit is off by %.2g of the bound at "
        "most,",
        DRAWS, worst);
    note("output design-cache| ln(alpha) by %.3f of that at most; a weight by %.2g %%", moved,
         100 * most);
    // The rounding of binary64 in these sums is below 2^-40 of the bound.
    ok(worst <= 1 && moved <= 1 + 0x1p-20 && most > 0,
       "sink.key-bias a key k* in float16: the logit is off by u |q||k*| / sqrt(d), worst=%.3g "
       "bound=1",
       worst);
    ok(moved <= 1 + 0x1p-20,
       "sink.alpha-sink its weight by a factor of the exponential of that, "
       "worst=%.3g bound=1",
       moved);
}

// ---- a sigmoid that cancels and one that does not

static void sigmoids(void) {
    sinkproof_policy policy;
    must(sinkproof_policy_known("f32", &policy));
    size_t outside = 0, caught = 0, all = 0;
    double worst = 0, last = 0;
    for (double x = -40; x <= 40; x += 0x1p-4) {
        sinkproof_honest set = sinkproof_honest_variant_gate(
            &(sinkproof_setting){.policy = &policy, .u = 0x1p-24, .odds = 60}, x);
        float plain = 1 / (1 + (float)exp(-x)), less = 1 - 1 / (1 + (float)exp(x));
        all++;
        outside += !(plain >= set.lo && plain <= set.hi);
        caught += !(less >= set.lo && less <= set.hi);
        worst = sinkproof_keep_worst(worst, fabs(plain - set.mid) / sinkproof_radius(&set));
        if (less == 0) last = x;
    }
    note("output design-sigmoid| 1 / (1 + e^-s):     %zu of %zu outside", outside, all);
    note("output design-sigmoid| 1 - 1 / (1 + e^s):  %zu of %zu outside, 0 from s = %g down",
         caught, all, last);
    ok(outside == 0 && caught > 0 && last < -16 && worst <= 1,
       "bound.similarity a sigmoid without a difference is honest at every score, worst=%.3g "
       "bound=1",
       worst);
}

int main(void) {
    overflow();
    cancellation();
    corner();
    short_cache();
    sigmoids();
    return tap_done();
}
