// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// RMSNorm (bound.rmsnorm): float32 engines with every order of the sum, the mean by division or by
// a reciprocal, rsqrt with the largest declared error or 1/sqrtf, the scale multiplied before or
// after, under the policies that store f32 and bf16. The truth is inside the set of real-f64.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20251203;
enum { MOST = 2880 };
static const double EPS = 1e-5;

typedef enum input_kind {
    GAUSS,
    ZERO,
    ONE_LARGE,
    TINY,
    HUGE_SPREAD,
    ALL_EQUAL,
    SUBNORMAL,
    INPUTS
} input_kind;
static const char *const input_names[INPUTS] = {"gauss",  "zero",      "one of 2^12", "tiny",
                                                "spread", "all equal", "subnormal"};

static void fill(uint64_t *state, input_kind kind, sinkproof_format format, size_t d, double *x,
                 double *scale) {
    double level = kind == TINY ? 1e-4 : kind == SUBNORMAL ? 0x1p-128 : 1;
    for (size_t i = 0; i < d; i++) {
        x[i] = draw_from(state, format, level);
        if (kind == ZERO) x[i] = 0;
        if (kind == HUGE_SPREAD) x[i] = sinkproof_round(format, ldexp(x[i], (int)(i % 41) - 20));
        if (kind == ALL_EQUAL && i > 0) x[i] = x[0];
        scale[i] = sinkproof_round(SINKPROOF_BF16, 1 + 0.5 * draw_gauss(state));
    }
    if (kind == ONE_LARGE) x[draw_below(state, d)] *= 4096;
}

// ---- the engine --------------------------------------------------------------------------------

typedef struct variant {
    summation order;
    bool fused, reciprocal_mean, root_divided, divided, scale_first;
    leaning lean;
} variant;

static variant draw_variant(uint64_t *state) {
    uint64_t w = draw(state);
    return (variant){
        (summation)(w % ORDERS),     w >> 8 & 1, w >> 9 & 1, w >> 10 & 1, w >> 11 & 1, w >> 12 & 1,
        (leaning)((w >> 16) % LEANS)};
}

static void engine(uint64_t *state, const variant *v, double declared, size_t d, const double *x,
                   const double *scale, float *y) {
    static float x_f[MOST];
    for (size_t i = 0; i < d; i++) x_f[i] = (float)x[i];
    float sum = engine_dot(state, v->order, v->fused, d, x_f, x_f, NULL, false);
    float mean = v->reciprocal_mean ? sum * (1.0f / (float)d) : sum / (float)d;
    float square = mean + (float)EPS;
    float root = v->root_divided ? 1.0f / sqrtf(square)
                                 : within_ulps(state, 1 / sqrt((double)square), declared, v->lean);
    for (size_t i = 0; i < d; i++) {
        float w = (float)scale[i];
        if (v->divided)
            y[i] = v->scale_first ? x_f[i] * w / sqrtf(square) : x_f[i] / sqrtf(square) * w;
        else
            y[i] = v->scale_first ? x_f[i] * w * root : x_f[i] * root * w;
    }
}

// ---- inside under every policy -----------------------------------------------------------------

static void engines_inside(const char *policy_name, input_kind kind) {
    static const size_t dims[] = {1, 2, 64, 2880};
    static double x[MOST], scale[MOST];
    static sinkproof_honest x_k[MOST], y_k[MOST];
    static float y[MOST];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_format stored = policy.at[AT_A1].format;
    uint64_t state = SEED + (uint64_t)kind;
    tally t = {0};
    for (size_t i = 0; i < 4; i++) {
        size_t d = dims[i], rows = d > 1000 ? 4 : d > 10 ? 60 : 400;
        sinkproof_setting s = sinkproof_setting_for(&policy, rows * d, STANDARD_RATE);
        for (size_t r = 0; r < rows; r++) {
            fill(&state, kind, stored, d, x, scale);
            for (size_t k = 0; k < d; k++) x_k[k] = sinkproof_exact_set(x[k]);
            double common;
            sinkproof_honest_rmsnorm(&s, AT_A1, &(sinkproof_norm){d, scale, EPS}, x_k, y_k,
                                     &common);
            for (int e = 0; e < 12; e++) {
                variant v = draw_variant(&state);
                engine(&state, &v, policy.ulp[SINKPROOF_RSQRT], d, x, scale, y);
                for (size_t k = 0; k < d; k++) meet(&t, &y_k[k], sinkproof_round(stored, y[k]));
            }
        }
    }
    char what[80];
    snprintf(what, sizeof what, "%s, %s", policy_name, input_names[kind]);
    inside_ok(&t, "bound.rmsnorm", what);
}

// One element, everything pushed up at once: rsqrt two ulp too large where an ulp weighs most (the
// root is just above a power of two), then products that round up.
static void everything_up(void) {
    enum { DRAWS = 200000 };
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, DRAWS, STANDARD_RATE);
    uint64_t state = SEED + 39;
    tally t = {0};
    for (int i = 0; i < DRAWS; i++) {
        double x = (float)(1 - 0.02 * draw_unit(&state)), common;
        double scale = (float)(1 + 0.02 * draw_unit(&state));
        sinkproof_honest in = sinkproof_exact_set(x), out;
        sinkproof_honest_rmsnorm(&s, AT_A1, &(sinkproof_norm){1, &scale, EPS}, &in, &out, &common);
        variant v = {.order = FORWARD, .lean = i % 2 ? LEAN_UP : LEAN_DOWN};
        v.scale_first = i % 4 < 2;
        float y;
        engine(&state, &v, policy.ulp[SINKPROOF_RSQRT], 1, &x, &scale, &y);
        meet(&t, &out, y);
    }
    inside_ok(&t, "bound.rmsnorm", "one element, every error one way");
}

// The input is a bridged point: the engine's x is anywhere in its sets.
static void inputs_with_freedom(void) {
    enum { D = 64, ROWS = 400 };
    static double x[D], own[D], scale[D];
    static sinkproof_honest x_k[D], y_k[D];
    static float y[D];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * D, STANDARD_RATE);
    uint64_t state = SEED + 40;
    tally t = {0};
    for (int r = 0; r < ROWS; r++) {
        fill(&state, (input_kind)(r % SUBNORMAL), SINKPROOF_F32, D, x, scale);
        for (size_t k = 0; k < D; k++) {
            double w = ldexp(fabs(x[k]) + 1e-6, -8 - r % 16);
            x_k[k] = sinkproof_set_around(x[k], w, w, 0, 0);
            double to = r % 3 == 0 ? 1 : r % 3 == 1 ? -1 : 2 * draw_unit(&state) - 1;
            own[k] = (float)(x[k] + to * w * 0.999);
            if (own[k] > x_k[k].hi || own[k] < x_k[k].lo) own[k] = x[k];
        }
        double common;
        sinkproof_honest_rmsnorm(&s, AT_A1, &(sinkproof_norm){D, scale, EPS}, x_k, y_k, &common);
        for (int e = 0; e < 8; e++) {
            variant v = draw_variant(&state);
            engine(&state, &v, policy.ulp[SINKPROOF_RSQRT], D, own, scale, y);
            for (size_t k = 0; k < D; k++) meet(&t, &y_k[k], y[k]);
        }
    }
    inside_ok(&t, "bound.rmsnorm", "inputs with freedom");
}

// ---- the truth --------------------------------------------------------------------------------

static void truth_inside(void) {
    enum { D = 64, ROWS = 200 };
    static double x[D], scale[D];
    static sinkproof_honest x_k[D], y_k[D];
    sinkproof_policy policy = policy_named("real-f64");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * D, STANDARD_RATE);
    uint64_t state = SEED + 41;
    size_t outside = 0;
    double worst = 0;
    arb_ptr in = _arb_vec_init(D), out = _arb_vec_init(D);
    for (int r = 0; r < ROWS; r++) {
        fill(&state, (input_kind)(r % INPUTS), SINKPROOF_F32, D, x, scale);
        sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_F64,
                              .count = 1,
                              .rows = 1,
                              .cols = D,
                              .data = (const uint8_t *)scale,
                              .stack_stride = D,
                              .row_stride = D,
                              .col_stride = 1,
                              .name = "scale"};
        for (size_t k = 0; k < D; k++) x_k[k] = sinkproof_exact_set(x[k]), arb_set_d(in + k, x[k]);
        double common;
        sinkproof_honest_rmsnorm(&s, AT_A1, &(sinkproof_norm){D, scale, EPS}, x_k, y_k, &common);
        sinkproof_truth_rmsnorm(out, in, 1, &w, EPS, 200);
        for (size_t k = 0; k < D; k++) {
            outside += !set_holds(&y_k[k], out + k);
            double v = arf_get_d(arb_midref(out + k), ARF_RND_NEAR);
            worst = sinkproof_keep_worst(worst, share_of(&y_k[k], v));
        }
    }
    _arb_vec_clear(in, D), _arb_vec_clear(out, D);
    ok(outside == 0,
       "bound.rmsnorm the truth in the set of real-f64 worst=%.3g bound=1 outside=%zu", worst,
       outside);
}

// ---- the likely set -----------------------------------------------------------------------------

static void likely_set_holds(void) {
    enum { D = 2880, ROWS = 300 };
    static double x[D], scale[D];
    static sinkproof_honest x_k[D], y_k[D];
    static float y[D];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * D, STANDARD_RATE);
    uint64_t state = SEED + 42;
    tally t = {0};
    double worst = 0, narrower = INFINITY;
    for (int r = 0; r < ROWS; r++) {
        fill(&state, r % 4 == 3 ? ONE_LARGE : GAUSS, r % 2 ? SINKPROOF_F32 : SINKPROOF_BF16, D, x,
             scale);
        for (size_t k = 0; k < D; k++) x_k[k] = sinkproof_exact_set(x[k]);
        double common;
        sinkproof_honest_rmsnorm(&s, AT_A1, &(sinkproof_norm){D, scale, EPS}, x_k, y_k, &common);
        variant v = draw_variant(&state);
        if (r % 3 == 0) v.order = FORWARD;
        engine(&state, &v, policy.ulp[SINKPROOF_RSQRT], D, x, scale, y);
        for (size_t k = 0; k < D; k++) {
            meet(&t, &y_k[k], y[k]);
            if (y_k[k].mid == 0) continue;
            double radius = likely_radius(&y_k[k]);
            worst = sinkproof_keep_worst(worst, fabs(y[k] - y_k[k].mid) / radius);
            narrower = sinkproof_keep_least(narrower, sinkproof_radius(&y_k[k]) / radius);
        }
    }
    ok(t.unlikely == 0,
       "bound.dot-likely rmsnorm worst=%.3f bound=1 unlikely=%zu of=%zu narrower=%.1f", worst,
       t.unlikely, t.checked, narrower);
}

int main(void) {
    static const char *const policies[] = {"f32", "openai-bf16", "hf-bf16", "bf16"};
    for (size_t p = 0; p < 4; p++)
        for (input_kind kind = 0; kind < INPUTS; kind++) engines_inside(policies[p], kind);
    everything_up();
    inputs_with_freedom();
    truth_inside();
    likely_set_holds();
    return tap_done();
}
