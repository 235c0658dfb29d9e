// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Drift (stat.drift): how often it accuses honest tensors, counted over thousands of them at a rate
// that is high enough to count; and whether it finds what it promises to find, namely a factor
// slightly above its own limit, an accumulator that truncates, and an epsilon that is ten times too
// small.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20260112;

// ---- honest tensors by the model: errors of the size and shape that the sets declare
// -------------

static sinkproof_drift_result concluded(sinkproof_drift *drift, double rate) {
    sinkproof_drift_result r;
    must(sinkproof_drift_judge(drift, rate, &r));
    sinkproof_drift_free(drift);
    return r;
}

typedef enum law_kind { OWN, COMMON, STEPS, STEPS_COMMON, LEANING, LAWS } law_kind;
static const char *const law_names[LAWS] = {"independent", "shared by rows", "rare steps",
                                            "rare steps shared by rows", "leaning as declared"};

enum { ROWS = 80, COLS = 20 };

// One row: sets and honest values. Errors are uniform, of standard deviation sigma relative to
// `scale`; STEPS rounds both to bf16, so that most errors vanish and a few are whole steps.
static void honest_row(uint64_t *state, law_kind kind, const sinkproof_setting *s,
                       sinkproof_honest *x, double *v, double *common) {
    const double declared = 0x1p-22;
    double sigma = kind == STEPS || kind == STEPS_COMMON ? 0x1p-16 : 0x1p-22;
    bool shares = kind == COMMON || kind == STEPS_COMMON;
    double shared = shares ? 0x1p-19 * sqrt(3) * (2 * draw_unit(state) - 1) : 0;
    *common = shares ? 0x1p-38 : 0;
    for (size_t i = 0; i < COLS; i++) {
        double y = draw_gauss(state), size = fabs(y) + 0.1;
        double own = sigma * size * sqrt(3) * (2 * draw_unit(state) - 1);
        double likely = sigma * size * sqrt(2 * s->odds) + (shares ? 0x1p-18 * fabs(y) : 0);
        v[i] = y + own + shared * y;
        x[i] = sinkproof_set_around(y, 4 * likely, likely, sigma * sigma * size * size, 0);
        if (kind == LEANING) {
            x[i] = sinkproof_honest_declared(x[i], declared, 0);
            v[i] += declared * y;
        }
        if (kind == STEPS || kind == STEPS_COMMON) {
            x[i] = sinkproof_honest_at(s, AT_A4, x[i]);
            v[i] = sinkproof_round(SINKPROOF_BF16, v[i]);
        }
    }
}

static sinkproof_drift_result honest_tensor(uint64_t *state, law_kind kind, double rate,
                                            double factor) {
    sinkproof_policy policy = policy_named("openai-bf16");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * COLS, STANDARD_RATE);
    static sinkproof_honest x[COLS];
    static double v[COLS];
    sinkproof_drift drift = {0};
    for (size_t r = 0; r < ROWS; r++) {
        double common;
        honest_row(state, kind, &s, x, v, &common);
        for (size_t i = 0; i < COLS; i++) v[i] *= factor;
        sinkproof_drift_row(&drift, COLS, v, x, common, (double)r / (double)ROWS);
    }
    return concluded(&drift, rate);
}

static bool suspicious(const sinkproof_drift_result *r) {
    return sinkproof_drift_leans(r);
}

static void false_alarms(law_kind kind) {
    enum { TENSORS = 1000 };
    const double rate = 1e-2;
    uint64_t state = SEED + (uint64_t)kind;
    size_t alarms = 0, bound = most_alarms(TENSORS, rate);
    double worst = 0;
    for (int i = 0; i < TENSORS; i++) {
        sinkproof_drift_result r = honest_tensor(&state, kind, rate, 1);
        alarms += suspicious(&r);
        if (r.bin >= 0) worst = sinkproof_keep_worst(worst, fabs(r.gain) / r.limit);
    }
    ok(alarms < bound,
       "stat.drift false alarms, errors %s worst=%zu bound=%zu of=%d at rate %g "
       "(largest gain/limit %.2f)",
       law_names[kind], alarms, bound, TENSORS, rate, worst);
}

// A factor 1.6 times the limit: the honest noise, about a seventh of the limit, cannot hide it.
static void factor_is_caught(law_kind kind) {
    enum { TENSORS = 200 };
    uint64_t state = SEED + 20 + (uint64_t)kind;
    size_t missed = 0;
    double smallest = 0;
    for (int i = 0; i < TENSORS; i++) {
        uint64_t again = state;
        sinkproof_drift_result r = honest_tensor(&state, kind, STANDARD_RATE, 1);
        smallest = sinkproof_keep_worst(smallest, r.smallest);
        r = honest_tensor(&again, kind, STANDARD_RATE, 1 + 1.6 * r.smallest);
        missed += !suspicious(&r);
    }
    ok(missed == 0,
       "stat.drift power, a factor 1.6 times the limit, errors %s worst=%zu bound=0 of=%d "
       "(limit %.2g)",
       law_names[kind], missed, TENSORS, smallest);
}

// ---- real sums
// --------------------------------------------------------------------------------------

enum { N_X = 6, N_W = 80, K = 2880 };

typedef struct product {
    float x[N_X * K], w[N_W * K];
    sinkproof_honest x_k[N_X * K], w_k[N_W * K], y[N_X * N_W];
} product;

static void fill_product(uint64_t *state, product *p, sinkproof_format format, double outlier) {
    for (size_t k = 0; k < N_X * K; k++) {
        p->x[k] = (float)draw_from(state, format, k % K == 7 ? outlier : 1);
        p->x_k[k] = sinkproof_exact_set(p->x[k]);
    }
    for (size_t k = 0; k < N_W * K; k++) {
        p->w[k] = (float)draw_from(state, SINKPROOF_BF16, 0.02);
        p->w_k[k] = sinkproof_exact_set(p->w[k]);
    }
}

// Towards zero after every addition: what an accumulator without rounding does.
static float truncating_dot(size_t n, const float *a, const float *b) {
    float sum = 0;
    for (size_t k = 0; k < n; k++) {
        double exact = (double)sum + (double)a[k] * (double)b[k];
        sum = (float)exact;
        if (fabs((double)sum) > fabs(exact)) sum = nextafterf(sum, 0);
    }
    return sum;
}

static sinkproof_drift_result judged_product(uint64_t *state, product *p, bool truncating,
                                             bool exact_order, double rate) {
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, N_X * N_W, STANDARD_RATE);
    sinkproof_planes x = sinkproof_planes_new(p->x_k, N_X, K, K);
    sinkproof_planes w = sinkproof_planes_new(p->w_k, N_W, K, K);
    must(sinkproof_honest_products(&s, &x, &w, NULL, NULL, p->y, N_W));
    sinkproof_planes_free(&x), sinkproof_planes_free(&w);
    sinkproof_drift drift = {0};
    static double v[N_W];
    summation order = exact_order ? FORWARD : (summation)draw_below(state, RANDOM_ORDER);
    for (size_t i = 0; i < N_X; i++) {
        for (size_t r = 0; r < N_W; r++) {
            sinkproof_honest *y = &p->y[i * N_W + r];
            *y = sinkproof_honest_at(&s, AT_A2, sinkproof_honest_inside(&s, *y));
            const float *a = p->x + i * K, *b = p->w + r * K;
            v[r] = truncating ? truncating_dot(K, a, b)
                              : engine_dot(state, order, r % 2, K, a, b, NULL, false);
        }
        sinkproof_drift_row(&drift, N_W, v, &p->y[i * N_W], 0, (double)i / (double)N_X);
    }
    return concluded(&drift, rate);
}

static void real_sums(double outlier) {
    enum { TENSORS = 32 };
    static product p;
    uint64_t state = SEED + 40;
    size_t alarms = 0;
    double worst = 0;
    for (int i = 0; i < TENSORS; i++) {
        if (i % 4 == 0) fill_product(&state, &p, i % 8 ? SINKPROOF_F32 : SINKPROOF_BF16, outlier);
        for (size_t k = 0; k < N_X * K; k++) { // signs turned: other partial sums
            if (draw(&state) % 2) p.x[k] = -p.x[k], p.x_k[k] = sinkproof_exact_set(p.x[k]);
        }
        sinkproof_drift_result r = judged_product(&state, &p, false, i % 2, STANDARD_RATE);
        alarms += suspicious(&r);
        worst = sinkproof_keep_worst(worst, fabs(r.gain) / r.limit);
    }
    ok(alarms == 0,
       "stat.drift honest sums of 2880 float32 products, one channel of %g worst=%.2f "
       "bound=1 alarms=%zu of=%d",
       outlier, worst, alarms, TENSORS);
}

static void truncation_is_caught(void) {
    enum { TENSORS = 5 };
    static product p;
    uint64_t state = SEED + 41;
    double least = INFINITY;
    for (int i = 0; i < TENSORS; i++) {
        fill_product(&state, &p, i % 2 ? SINKPROOF_F32 : SINKPROOF_BF16, 1);
        sinkproof_drift_result r = judged_product(&state, &p, true, true, STANDARD_RATE);
        least = sinkproof_keep_least(least, fabs(r.gain) / r.limit);
    }
    ok(least > 1,
       "stat.drift power, sums rounded towards zero, K=2880 least gain/limit=%.3g bound=1", least);
}

// ---- RMSNorm
// ---------------------------------------------------------------------------------------

enum { D = 2880, NORM_ROWS = 300 };

// y = x / sqrt(mean + eps) scale in float32, summed in the given order.
static void norm_engine(uint64_t *state, summation order, float eps, const double *x,
                        const double *scale, double *y) {
    static float x_f[D];
    for (size_t i = 0; i < D; i++) x_f[i] = (float)x[i];
    float mean = engine_dot(state, order, false, D, x_f, x_f, NULL, false) / (float)D;
    float root = 1.0f / sqrtf(mean + eps);
    for (size_t i = 0; i < D; i++) y[i] = x_f[i] * root * (float)scale[i];
}

static sinkproof_drift_result judged_norm(uint64_t *state, summation order, float eps,
                                          sinkproof_format format, double level, double outlier,
                                          size_t rows) {
    static double x[D], scale[D], y[D];
    static sinkproof_honest x_k[D], y_k[D];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, rows * D, STANDARD_RATE);
    sinkproof_drift drift = {0};
    static double normal[2 * D];
    if (normal[0] == 0)
        for (size_t i = 0; i < 2 * D; i++) normal[i] = draw_gauss(state);
    for (size_t r = 0; r < rows; r++) {
        double size = level * (0.9 + 0.2 * draw_unit(state));
        size_t shift = draw_below(state, D);
        for (size_t i = 0; i < D; i++) {
            double sign = draw(state) % 2 ? -1 : 1;
            x[i] = sinkproof_round(format, sign * size * normal[i + shift]);
            scale[i] = sinkproof_round(SINKPROOF_BF16, 1 + normal[i] / 4);
        }
        x[11] *= outlier;
        for (size_t i = 0; i < D; i++) x_k[i] = sinkproof_exact_set(x[i]);
        double common;
        sinkproof_honest_rmsnorm(&s, AT_A1, &(sinkproof_norm){D, scale, 1e-5}, x_k, y_k, &common);
        norm_engine(state, order, eps, x, scale, y);
        sinkproof_drift_row(&drift, D, y, y_k, common, (double)r / (double)rows);
    }
    return concluded(&drift, STANDARD_RATE);
}

static void honest_norms(sinkproof_format format, double outlier) {
    uint64_t state = SEED + 50;
    double worst = 0;
    size_t alarms = 0, tensors = 0;
    int worst_bin = -1, worst_order = -1;
    for (summation order = 0; order < RANDOM_ORDER; order++) {
        sinkproof_drift_result r = judged_norm(&state, order, 1e-5f, format, 1, outlier, 50);
        alarms += suspicious(&r), tensors++;
        if (sinkproof_is_worse(worst, fabs(r.gain) / r.limit))
            worst = fabs(r.gain) / r.limit, worst_bin = r.bin, worst_order = (int)order;
    }
    ok(alarms == 0,
       "stat.drift honest RMSNorm of %s, one channel times %g worst=%.2f bound=1 "
       "alarms=%zu of=%zu (%s, order %d)",
       sinkproof_format_name(format), outlier, worst, alarms, tensors,
       sinkproof_drift_bin_name(worst_bin), worst_order);
}

static void wrong_epsilon_is_caught(void) {
    uint64_t state = SEED + 51;
    double least = INFINITY, limit = 0;
    for (int i = 0; i < 3; i++) {
        static const summation orders[] = {FORWARD, LANES_16, PAIRWISE};
        sinkproof_drift_result r =
            judged_norm(&state, orders[i], 1e-6f, SINKPROOF_F32, 1, 1, NORM_ROWS);
        least = sinkproof_keep_least(least, fabs(r.gain) / r.limit),
        limit = sinkproof_keep_worst(limit, r.smallest);
    }
    ok(least > 1,
       "stat.drift power, RMSNorm with eps 1e-6 for 1e-5, 300 rows least gain/limit=%.3g "
       "bound=1 (limit %.2g)",
       least, limit);
}

int main(void) {
    for (law_kind kind = 0; kind < LAWS; kind++) false_alarms(kind);
    for (law_kind kind = 0; kind < LAWS; kind++) factor_is_caught(kind);
    real_sums(1);
    real_sums(1000);
    truncation_is_caught();
    honest_norms(SINKPROOF_F32, 1);
    honest_norms(SINKPROOF_BF16, 1);
    honest_norms(SINKPROOF_BF16, 1000);
    wrong_epsilon_is_caught();
    return tap_done();
}
