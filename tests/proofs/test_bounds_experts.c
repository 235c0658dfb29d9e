// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The mixture of the chosen experts (bound.dot with few terms). Inside the set: float32 engines in
// every order, also where outputs cancel, and engines that add expert by expert in the storage
// format, where the policy requires or allows it. The truth is inside the set of real-f64.
#include "proofs/bounds/worst.h"
#include "ref/stages.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20260105;
enum { MOST = SINKPROOF_MAX_CHOSEN };

static void fill(uint64_t *state, sinkproof_format format, size_t k, double *w, double *d) {
    double sum = 0, level = ldexp(1, (int)(draw(state) % 20) - 10);
    bool cancels = draw(state) % 3 == 0, tiny = draw(state) % 16 == 0;
    for (size_t e = 0; e < k; e++) w[e] = exp(2 * draw_gauss(state)), sum += w[e];
    for (size_t e = 0; e < k; e++) {
        w[e] = sinkproof_round(format, w[e] / sum);
        d[e] = draw_from(state, format, level);
        if (cancels && e % 2 == 1) d[e] = sinkproof_round(format, -d[e - 1] * w[e - 1] / w[e]);
        d[e] = fmin(fmax(d[e], -1024), 1024); // f16 ends at 65504
        if (tiny) d[e] = sinkproof_round(format, d[e] * 0x1p-128);
    }
}

static float stored(const sinkproof_policy *policy, sinkproof_point point, bool keep, float x) {
    sinkproof_rounding at = policy->at[point];
    return at.optional && keep ? x : (float)sinkproof_round(at.format, x);
}

// Ascending experts into an accumulator of the storage format, or one float32 sum of any order.
static float engine(uint64_t *state, const sinkproof_policy *policy, size_t k, const double *w,
                    const double *d) {
    float w_f[MOST], d_f[MOST], p[MOST];
    uint64_t variant = draw(state);
    bool keep_products = variant & 1, keep_sums = variant >> 1 & 1;
    sinkproof_rounding product = policy->at[AT_M11_PROD];
    sinkproof_rounding running = policy->at[AT_M11_SUM];
    for (size_t e = 0; e < k; e++) {
        w_f[e] = (float)w[e], d_f[e] = (float)d[e];
        p[e] = stored(policy, AT_M11_PROD, keep_products, w_f[e] * d_f[e]);
    }
    summation order = (summation)((variant >> 8) % ORDERS);
    bool in_registers = running.format == SINKPROOF_REAL || (running.optional && keep_sums);
    bool fuse = product.format == SINKPROOF_REAL || (product.optional && keep_products);
    float y;
    if (in_registers && fuse) {
        y = engine_dot(state, order, variant >> 16 & 1, k, w_f, d_f, NULL, false);
    } else if (in_registers) {
        y = engine_sum(state, order, k, p);
    } else {
        y = p[0];
        for (size_t e = 1; e < k; e++) y = (float)sinkproof_round(running.format, y + p[e]);
    }
    return stored(policy, AT_M11, variant >> 20 & 1, y);
}

static void engines_inside(const char *policy_name) {
    enum { DRAWS = 12000 };
    double w[MOST], d[MOST];
    sinkproof_honest w_k[MOST], d_k[MOST];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_format format = policy.at[AT_M10].format;
    sinkproof_setting s = sinkproof_setting_for(&policy, DRAWS, STANDARD_RATE);
    uint64_t state = SEED;
    tally t = {.floor = 0x1p-120};
    for (int i = 0; i < DRAWS; i++) {
        size_t k = i % 8 == 0 ? 1 + draw_below(&state, MOST) : i % 8 == 1 ? 2 : 4;
        fill(&state, format, k, w, d);
        for (size_t e = 0; e < k; e++)
            w_k[e] = sinkproof_exact_set(w[e]), d_k[e] = sinkproof_exact_set(d[e]);
        sinkproof_honest y = sinkproof_honest_mixture(&s, k, w_k, d_k);
        for (int e = 0; e < 8; e++) meet(&t, &y, engine(&state, &policy, k, w, d));
    }
    char what[80];
    snprintf(what, sizeof what, "mixture, %s", policy_name);
    inside_ok(&t, "bound.dot", what);
}

// Outputs and weights that are bridged points.
static void inputs_with_freedom(void) {
    enum { DRAWS = 8000, K = 4 };
    double w[K], d[K];
    sinkproof_honest w_k[K], d_k[K];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, DRAWS, STANDARD_RATE);
    uint64_t state = SEED + 1;
    tally t = {.floor = 0x1p-120};
    for (int i = 0; i < DRAWS; i++) {
        fill(&state, SINKPROOF_F32, K, w, d);
        for (size_t e = 0; e < K; e++) {
            double dw = w[e] * ldexp(1, -4 - i % 18), dd = fabs(d[e]) * ldexp(1, -4 - i % 17);
            w_k[e] = sinkproof_set_around(w[e], dw, dw, 0, 0);
            d_k[e] = sinkproof_set_around(d[e], dd, dd, 0, 0);
            double to = i % 3 == 0 ? copysign(1, d[e]) : 2 * draw_unit(&state) - 1;
            w[e] = (float)(w[e] + 0.999 * dw * (i % 3 == 0 ? 1 : to));
            d[e] = (float)(d[e] + 0.999 * dd * to);
            if (w[e] > w_k[e].hi || w[e] < w_k[e].lo) w[e] = w_k[e].mid;
            if (d[e] > d_k[e].hi || d[e] < d_k[e].lo) d[e] = d_k[e].mid;
        }
        sinkproof_honest y = sinkproof_honest_mixture(&s, K, w_k, d_k);
        for (int e = 0; e < 4; e++) meet(&t, &y, engine(&state, &policy, K, w, d));
    }
    inside_ok(&t, "bound.dot", "mixture, inputs with freedom");
}

static void truth_inside(void) {
    enum { DRAWS = 4000 };
    double w[MOST], d[MOST];
    sinkproof_honest w_k[MOST], d_k[MOST];
    sinkproof_policy policy = policy_named("real-f64");
    sinkproof_setting s = sinkproof_setting_for(&policy, DRAWS, STANDARD_RATE);
    uint64_t state = SEED + 2;
    size_t outside = 0;
    double worst = 0;
    arb_ptr w_b = _arb_vec_init(MOST), d_b = _arb_vec_init(MOST);
    arb_t out;
    arf_t end;
    arb_init(out), arf_init(end);
    for (int i = 0; i < DRAWS; i++) {
        size_t k = 1 + draw_below(&state, i % 2 ? 4 : MOST);
        fill(&state, SINKPROOF_F64, k, w, d);
        for (size_t e = 0; e < k; e++) {
            w_k[e] = sinkproof_exact_set(w[e]), d_k[e] = sinkproof_exact_set(d[e]);
            arb_set_d(w_b + e, w[e]), arb_set_d(d_b + e, d[e]);
        }
        sinkproof_honest y = sinkproof_honest_mixture(&s, k, w_k, d_k);
        sinkproof_truth_mixture(out, w_b, d_b, k, 1, 400);
        arf_set_d(end, y.lo);
        outside += !(arf_cmp(end, arb_midref(out)) <= 0);
        arf_set_d(end, y.hi);
        outside += !(arf_cmp(end, arb_midref(out)) >= 0);
        if (y.lo != y.hi)
            worst =
                sinkproof_keep_worst(worst, share_of(&y, arf_get_d(arb_midref(out), ARF_RND_NEAR)));
    }
    arb_clear(out), arf_clear(end);
    _arb_vec_clear(w_b, MOST), _arb_vec_clear(d_b, MOST);
    ok(outside == 0,
       "bound.dot mixture, the truth in the set of real-f64 worst=%.3g bound=1 outside=%zu", worst,
       outside);
}

// ---- weights by a softmax over all experts ------------------------------------------------------

// p over all E logits, the chosen k over their sum, as float32 kernels do; `held`: what p is kept
// in. Chosen are the largest.
static void renormalised_engine(uint64_t *state, size_t n, const float *z_e, size_t k,
                                const int32_t *chosen_k, sinkproof_format held, float *w_k) {
    enum { E = 128 };
    float e[E], p[E], m = z_e[chosen_k[0]];
    summation order = (summation)(draw(state) % ORDERS);
    leaning lean = (leaning)(draw(state) % LEANS);
    for (size_t i = 0; i < n; i++) {
        float t = z_e[i] - m;
        e[i] = fmaxf(within_ulps(state, exp((double)t), t == 0 ? 0 : 2, lean), 0);
    }
    float sum = engine_sum(state, order, n, e), reciprocal = 1 / sum;
    bool divides = draw(state) % 2;
    for (size_t i = 0; i < k; i++) {
        float x = e[chosen_k[i]];
        p[i] = (float)sinkproof_round(held, divides ? x / sum : x * reciprocal);
    }
    float of_chosen = engine_sum(state, order, k, p);
    for (size_t i = 0; i < k; i++) w_k[i] = p[i] / of_chosen;
}

static void renormalised_weights(void) {
    enum { E = 128, K = 4, DRAWS = 6000 };
    static const char *const policies[] = {"f32,M4.form=softmax-all-renormalised", "f32",
                                           "f32,M4.form=softmax-after"};
    tally t[3], slip = {0};
    memset(t, 0, sizeof t);
    double wider = 0;
    uint64_t state = SEED + 4;
    for (int i = 0; i < DRAWS; i++) {
        float z[E], w[K], wrong[K];
        sinkproof_honest g[E], set[3][K];
        int32_t chosen[K];
        double common, spread = i % 3 == 0 ? 30 : 2, logits[E];
        size_t n = i % 2 ? E : 32;
        for (size_t e = 0; e < n; e++) {
            logits[e] = draw_from(&state, SINKPROOF_F32, spread);
            z[e] = (float)logits[e], g[e] = sinkproof_exact_set(logits[e]);
        }
        sinkproof_router_choose(n, K, logits, chosen);
        renormalised_engine(&state, n, z, K, chosen, SINKPROOF_F32, w);
        renormalised_engine(&state, n, z, K, chosen, SINKPROOF_BF16, wrong);
        for (int p = 0; p < 3; p++) {
            sinkproof_policy policy = policy_named(policies[p]);
            sinkproof_setting s = sinkproof_setting_for(&policy, DRAWS * K, STANDARD_RATE);
            must(sinkproof_honest_expert_weights(&s, n, g, K, chosen, set[p], &common));
            for (size_t k = 0; k < K; k++) meet(&t[p], &set[p][k], w[k]);
            for (size_t k = 0; k < K && p == 1; k++) meet(&slip, &set[p][k], wrong[k]);
        }
        for (size_t k = 0; k < K; k++)
            if (set[2][k].mid > 0x1p-100)
                wider = sinkproof_keep_worst(wider, sinkproof_radius(&set[1][k]) /
                                                        sinkproof_radius(&set[2][k]));
    }
    inside_ok(&t[0], "bound.form-router", policies[0]);
    inside_ok(&t[1], "bound.form-router", policies[1]);
    ok(t[1].unlikely == 0,
       "bound.form-router is likely: unlikely=%zu, the set at most %.3g "
       "times as wide; %zu of %zu leave the definition's",
       t[1].unlikely, wider, t[2].outside, t[2].checked);
    ok(slip.outside > 0,
       "bound.form-router probabilities in bf16 leave it: outside=%zu "
       "of=%zu",
       slip.outside, slip.checked);
}

int main(void) {
    engines_inside("f32");
    engines_inside("openai-bf16");
    engines_inside("hf-bf16");
    engines_inside("hf-bf16,M11.sum=bf16");
    engines_inside("bf16");
    engines_inside("f16");
    inputs_with_freedom();
    truth_inside();
    renormalised_weights();
    return tap_done();
}
