// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Spread (stat.spread): its threshold against exact binomial tails; how often it accuses honest
// sums and norms, in every order; what it finds, which is low bits drawn at random, down to as few
// as it states; and what it does not find.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20260301;

static bool spreads(const sinkproof_spread_result *r) {
    return r->part >= 0 && !(r->mean <= r->limit);
}

// ---- the threshold
// ---------------------------------------------------------------------------------

// P(Binomial(n, p) >= k)
static long double binomial_tail(int n, long double p, int k) {
    long double tail = 0;
    for (int i = k; i <= n; i++)
        tail += expl(lgammal(n + 1) - lgammal(i + 1) - lgammal(n - i + 1) + i * logl(p) +
                     (n - i) * log1pl(-p));
    return tail;
}

// Units that are M with probability mu / M and else 0: the law with the heaviest tail.
static void threshold_holds(void) {
    long double worst = 0, least = 1;
    size_t checked = 0;
    for (double most = 4; most <= 1024; most *= 4) {
        for (int n = 100; n <= 20000; n *= 4) {
            for (double odds = 2; odds <= 24; odds += 11) {
                double a = spread_reach(n, most, odds), r = a / n;
                double back = (r * log(r) - r + 1) * n / most;
                int k = (int)ceil(a / most);
                long double p = k > n ? 0 : binomial_tail(n, 1 / (long double)most, k);
                worst = keep_worst_long(worst, p / expl(-odds));
                least = keep_least_long(least, back / odds), checked++;
            }
        }
    }
    ok(worst <= 1 && least >= 1 - 0x1p-40 && least < 1 + 0x1p-20,
       "stat.spread odds of the heaviest tail over those stated worst=%.3Lg bound=1 of=%zu (the "
       "threshold solves its equation to %.2Lg)",
       worst, checked, fabsl(least - 1));
}

static void nothing_free(void) {
    quarter_spread none[SPREAD_QUARTERS] = {{0}};
    sinkproof_spread_result r;
    spread_judge(none, 1, 1e-9, &r);
    ok(r.part == -1 && r.mean == 0 && r.limit == INFINITY && r.noise == INFINITY,
       "stat.spread nothing free, nothing to say");
}

// ---- honest tensors by the model
// ---------------------------------------------------------------------

enum { ROWS = 80, COLS = 40 };

// Errors uniform with the whole declared variance: the largest mean. `kinds` > 0: so many rows,
// again and again. `lean`: a bias of twice the deviation, all of it used.
static sinkproof_drift_result honest_tensor(uint64_t *state, size_t kinds, bool lean, bool shares,
                                            double noise, double rate) {
    static sinkproof_honest x[ROWS][COLS];
    static double v[ROWS][COLS];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * COLS, STANDARD_RATE);
    sinkproof_drift drift = {0};
    for (size_t r = 0; r < (kinds > 0 ? kinds : ROWS); r++) {
        double factor = shares ? 0x1p-18 * draw_gauss(state) : 0;
        for (size_t i = 0; i < COLS; i++) {
            double c = draw_gauss(state), e = 0x1p-22 * (fabs(c) + 0.1);
            double own = e * sqrt(3) * (2 * draw_unit(state) - 1) + factor * c;
            own += noise * sinkproof_ulp(SINKPROOF_F32, c) * sqrt(3) * (2 * draw_unit(state) - 1);
            x[r][i] = sinkproof_set_around(c, 99 * e, e * sqrt(6 * s.odds), e * e, 0);
            v[r][i] = c + own;
            if (lean) x[r][i] = sinkproof_honest_declared(x[r][i], 0, 2 * e), v[r][i] += 2 * e;
        }
    }
    for (size_t r = 0; r < ROWS; r++) {
        size_t k = kinds > 0 ? r % kinds : r;
        sinkproof_drift_row(&drift, COLS, v[k], x[k], shares ? 0x1p-36 : 0, (double)r / ROWS);
    }
    sinkproof_drift_result result;
    must(sinkproof_drift_judge(&drift, rate, &result));
    sinkproof_drift_free(&drift);
    return result;
}

// P(Binomial(TENSORS, 1/10) >= 75) < 1e-3 times 1e-9: so many are no accident.
static void false_alarms(size_t kinds, bool lean, bool shares) {
    enum { TENSORS = 300, BOUND = 75 };
    uint64_t state = SEED + 10 + kinds;
    size_t alarms = 0;
    double worst = 0;
    for (int i = 0; i < TENSORS; i++) {
        sinkproof_drift_result r = honest_tensor(&state, kinds, lean, shares, 0, 0.1);
        alarms += spreads(&r.spread);
        worst = sinkproof_keep_worst(worst, r.spread.mean / r.spread.limit);
    }
    ok(alarms < BOUND && worst > 0.01,
       "stat.spread false alarms%s%s%s worst=%zu bound=%d of=%d at rate 0.1 (largest mean/limit "
       "%.2f)",
       kinds > 0 ? ", rows that repeat" : "", lean ? ", leaning as declared" : "",
       shares ? ", rows that share a factor" : "", alarms, BOUND, TENSORS, worst);
}

// Noise a tenth above what is said to be seen, on errors half as large as they may be.
static void noise_is_seen(bool shares) {
    enum { TENSORS = 50 };
    uint64_t state = SEED + 20;
    size_t missed = 0;
    double noise = 0;
    for (int i = 0; i < TENSORS; i++) {
        uint64_t again = state;
        sinkproof_drift_result r = honest_tensor(&state, 0, false, shares, 0, STANDARD_RATE);
        noise = r.spread.noise;
        r = honest_tensor(&again, 0, false, shares, 1.1 * noise, STANDARD_RATE);
        missed += !spreads(&r.spread);
    }
    ok(missed == 0,
       "stat.spread power, noise 1.1 times what is seen%s worst=%zu bound=0 of=%d (%.3g ulp)",
       shares ? ", rows that share a factor" : "", missed, TENSORS, noise);
}

// ---- real sums and norms, and low bits drawn at random
// -------------------------------------------------

// The low bits of a float32, new ones for old.
static double redrawn(uint64_t *state, double v, int bits) {
    float f = (float)v;
    uint32_t pattern, low = ((uint32_t)1 << bits) - 1;
    memcpy(&pattern, &f, sizeof pattern);
    pattern = (pattern & ~low) | ((uint32_t)draw(state) & low);
    memcpy(&f, &pattern, sizeof f);
    return (double)f;
}

// Every addition rounds up or down at random, by what is left: unbiased.
static float stochastic_dot(uint64_t *state, size_t n, const float *a, const float *b) {
    float sum = 0;
    for (size_t k = 0; k < n; k++) {
        double exact = (double)sum + (double)a[k] * (double)b[k];
        float near = (float)exact,
              far = nextafterf(near, (double)near < exact ? INFINITY : -INFINITY);
        double step = fabs((double)far - (double)near), off = fabs(exact - (double)near);
        sum = step > 0 && draw_unit(state) * step < off ? far : near;
    }
    return sum;
}

enum { N_X = 12, N_W = 100, MOST_K = 2880, STOCHASTIC = ORDERS };

// x[i] w[r] with an outlier in the first channel, in one order; `bits` > 0: low bits redrawn.
static sinkproof_spread_result judged_sums(uint64_t *state, size_t k_all, double outlier, int order,
                                           int bits) {
    static float x[N_X * MOST_K], w[N_W * MOST_K];
    static sinkproof_honest x_k[N_X * MOST_K], w_k[N_W * MOST_K], y[N_X * N_W];
    for (size_t k = 0; k < N_X * k_all; k++) {
        x[k] = (float)draw_from(state, SINKPROOF_F32, k % k_all == 0 ? outlier : 1);
        x_k[k] = sinkproof_exact_set(x[k]);
    }
    for (size_t k = 0; k < N_W * k_all; k++) {
        w[k] = (float)draw_from(state, SINKPROOF_BF16, 0.02);
        w_k[k] = sinkproof_exact_set(w[k]);
    }
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, N_X * N_W, STANDARD_RATE);
    sinkproof_planes p = sinkproof_planes_new(x_k, N_X, k_all, k_all);
    sinkproof_planes q = sinkproof_planes_new(w_k, N_W, k_all, k_all);
    must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, y, N_W));
    sinkproof_planes_free(&p), sinkproof_planes_free(&q);
    sinkproof_drift drift = {0};
    for (size_t i = 0; i < N_X; i++) {
        double v[N_W];
        for (size_t r = 0; r < N_W; r++) {
            sinkproof_honest *set = &y[i * N_W + r];
            *set = sinkproof_honest_at(&s, AT_A2, sinkproof_honest_inside(&s, *set));
            *set = sinkproof_honest_rounded(SINKPROOF_F32, *set);
            const float *a = x + i * k_all, *b = w + r * k_all;
            v[r] = order == STOCHASTIC
                       ? stochastic_dot(state, k_all, a, b)
                       : engine_dot(state, (summation)order, r % 2, k_all, a, b, NULL, false);
            if (bits > 0) v[r] = redrawn(state, v[r], bits);
        }
        sinkproof_drift_row(&drift, N_W, v, &y[i * N_W], 0, (double)i / N_X);
    }
    sinkproof_drift_result result;
    must(sinkproof_drift_judge(&drift, STANDARD_RATE, &result));
    sinkproof_drift_free(&drift);
    return result.spread;
}

// The fewest random low bits in place of the true ones that are such a noise: k of them, uniform
// and independent, have a variance of 2 (4^k - 1) / 12 ulp^2.
static int fewest_bits(const sinkproof_spread_result *result) {
    int k = 1;
    while (k < 24 && !((ldexp(1, 2 * k) - 1) / 6 >= result->noise * result->noise)) k++;
    return k;
}

static void honest_sums(size_t k_all, double outlier) {
    uint64_t state = SEED + 30 + k_all;
    double worst = 0, mean = 0;
    size_t alarms = 0;
    for (int order = 0; order < ORDERS; order++) {
        if (order == RANDOM_TREE && k_all > 1000) continue; // as in test_bounds_linear, and slow
        sinkproof_spread_result r = judged_sums(&state, k_all, outlier, order, 0);
        alarms += spreads(&r);
        worst = sinkproof_keep_worst(worst, r.mean / r.limit),
        mean = sinkproof_keep_worst(mean, r.mean);
    }
    ok(alarms == 0,
       "stat.spread honest sums of %zu products in every order, the first of %g: worst=%.3g "
       "bound=1 "
       "(squares %.3g of their variance)",
       k_all, outlier, worst, mean);
}

static void low_bits_of_sums(size_t k_all) {
    uint64_t state = SEED + 40 + k_all;
    sinkproof_spread_result r = judged_sums(&state, k_all, 1, FORWARD, 0);
    int bits = fewest_bits(&r);
    sinkproof_spread_result seen = judged_sums(&state, k_all, 1, FORWARD, bits);
    sinkproof_spread_result adds = judged_sums(&state, k_all, 1, STOCHASTIC, 0);
    ok(spreads(&seen) && bits < 24,
       "stat.spread power, sums of %zu: %d low bits drawn at random, mean/limit=%.3g bound=1 "
       "(noise "
       "of %.3g ulp is seen; additions that round at random: %.2g, %s)",
       k_all, bits, seen.mean / seen.limit, r.noise, adds.mean / adds.limit,
       spreads(&adds) ? "seen" : "not seen");
}

enum { D = 2880, NORM_ROWS = 60 };

static sinkproof_spread_result judged_norms(uint64_t *state, size_t d, summation order, int bits) {
    static double x[D], scale[D], y[D];
    static sinkproof_honest x_k[D], y_k[D];
    static float x_f[D];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, NORM_ROWS * d, STANDARD_RATE);
    sinkproof_drift drift = {0};
    for (size_t r = 0; r < NORM_ROWS; r++) {
        for (size_t i = 0; i < d; i++) {
            x[i] = draw_from(state, SINKPROOF_F32, i == 5 ? 50 : 1);
            scale[i] = draw_from(state, SINKPROOF_BF16, 1);
            x_f[i] = (float)x[i], x_k[i] = sinkproof_exact_set(x[i]);
        }
        double common;
        sinkproof_honest_rmsnorm(&s, AT_A1, &(sinkproof_norm){d, scale, 1e-5}, x_k, y_k, &common);
        float mean = engine_dot(state, order, false, d, x_f, x_f, NULL, false) / (float)d;
        float root = 1.0f / sqrtf(mean + 1e-5f);
        for (size_t i = 0; i < d; i++) {
            y[i] = x_f[i] * root * (float)scale[i];
            if (bits > 0) y[i] = redrawn(state, y[i], bits);
            y_k[i] = sinkproof_honest_rounded(SINKPROOF_F32, y_k[i]);
        }
        sinkproof_drift_row(&drift, d, y, y_k, common, (double)r / NORM_ROWS);
    }
    sinkproof_drift_result result;
    must(sinkproof_drift_judge(&drift, STANDARD_RATE, &result));
    sinkproof_drift_free(&drift);
    return result.spread;
}

static void norms(size_t d) {
    uint64_t state = SEED + 50;
    double worst = 0;
    size_t alarms = 0;
    int bits = 0;
    for (summation order = 0; order < RANDOM_ORDER; order++) {
        sinkproof_spread_result r = judged_norms(&state, d, order, 0);
        alarms += spreads(&r), worst = sinkproof_keep_worst(worst, r.mean / r.limit);
        bits = fewest_bits(&r);
    }
    sinkproof_spread_result r = judged_norms(&state, d, FORWARD, bits);
    ok(alarms == 0 && spreads(&r) && bits <= 4,
       "stat.spread RMSNorm of %zu: honest worst=%.3g bound=1; %d low bits drawn at random, "
       "mean/limit=%.3g",
       d, worst, bits, r.mean / r.limit);
}

int main(void) {
    threshold_holds();
    nothing_free();
    false_alarms(0, false, false);
    false_alarms(0, true, false);
    false_alarms(0, false, true);
    false_alarms(3, false, false);
    false_alarms(1, true, false);
    noise_is_seen(false);
    noise_is_seen(true);
    static const size_t widths[] = {4, 96, 640, MOST_K};
    for (int i = 0; i < 4; i++) {
        honest_sums(widths[i], 1);
        honest_sums(widths[i], 1000);
        low_bits_of_sums(widths[i]);
    }
    norms(96);
    norms(D);
    return tap_done();
}
