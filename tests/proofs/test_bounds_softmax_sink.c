// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The softmax with a sink (bound.softmax-sink) and the weighted values after it (bound.value):
// float32 engines with every order of the sum, exp with the largest declared error, division or a
// reciprocal, and, where the policy is generic, a running maximum with rescaling as in flash
// kernels.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20251215;
enum { MOST = 2880 };

// ---- rows of scores -----------------------------------------------------------------------------

typedef enum score_kind {
    GAUSS,
    EQUAL,
    SPREAD_300,
    RISING,  // every key is a new maximum: the most rescalings
    FALLING, // none is
    SCORES
} score_kind;
static const char *const score_names[SCORES] = {"gauss", "equal", "spread 300", "rising",
                                                "falling"};
static const double sinks[] = {0, -1.3, 40, 100, -100, -INFINITY, 7.7};
enum { SINKS = sizeof sinks / sizeof *sinks };

static void fill(uint64_t *state, score_kind kind, sinkproof_format format, size_t n, double *z) {
    double level = draw_from(state, format, 3);
    for (size_t j = 0; j < n; j++) {
        double place = (double)j / (double)n;
        z[j] = kind == EQUAL        ? level
               : kind == SPREAD_300 ? 300 * (draw_unit(state) - 0.5)
               : kind == RISING     ? level + 3 * place
               : kind == FALLING    ? level - 3 * place
                                    : 3 * draw_gauss(state);
        z[j] = sinkproof_round(format, z[j]);
    }
}

// ---- the engine ---------------------------------------------------------------------------------

typedef struct variant {
    summation order;
    leaning lean;
    bool reciprocal, online, sink_last, rescaled_numerators, subtract_in_storage;
    size_t block; // keys per step of the running maximum
    double declared;
} variant;

static variant draw_variant(uint64_t *state, const sinkproof_policy *policy) {
    static const size_t steps[] = {1, 1, 2, 16, 64, 128};
    uint64_t w = draw(state);
    bool generic = sinkproof_policy_admits(policy, SINKPROOF_FORM_OF_A9, SINKPROOF_A9_RUNNING_MAX);
    sinkproof_rounding max = policy->at[AT_A9_MAX];
    return (variant){.order = (summation)(w % ORDERS),
                     .lean = (leaning)(w >> 8) % LEANS,
                     .reciprocal = w >> 16 & 1,
                     .online = generic && (w >> 17 & 1),
                     .sink_last = w >> 18 & 1,
                     .rescaled_numerators = w >> 19 & 1,
                     .subtract_in_storage =
                         max.format != SINKPROOF_REAL && (!max.optional || (w >> 20 & 1)),
                     .block = steps[(w >> 24) % 6],
                     .declared = policy->ulp[SINKPROOF_EXP]};
}

static float exp_of(uint64_t *state, const variant *v, float t) {
    // No exponential is negative, and exp(0) = 1.
    return fmaxf(within_ulps(state, exp((double)t), t == 0 ? 0 : v->declared, v->lean), 0);
}

// Numerators e_j of n keys and the sink (index n), and their sum, with the maximum known first.
static float two_pass(uint64_t *state, const variant *v, const sinkproof_policy *policy, size_t n,
                      const float *z, float *e) {
    float m = -INFINITY;
    for (size_t j = 0; j <= n; j++) m = fmaxf(m, z[j]);
    for (size_t j = 0; j <= n; j++) {
        float t = z[j] - m;
        if (v->subtract_in_storage) t = (float)sinkproof_round(policy->at[AT_A9_MAX].format, t);
        e[j] = exp_of(state, v, t);
    }
    return engine_sum(state, v->order, n + 1, e);
}

// One pass: keys in blocks, the sink first or last, the sum rescaled at each new maximum.
static float running_maximum(uint64_t *state, const variant *v, size_t n, const float *z,
                             float *e) {
    float m = v->sink_last ? -INFINITY : z[n], sum = v->sink_last || m == -INFINITY ? 0 : 1;
    e[n] = sum;
    for (size_t j = 0; j < n + (v->sink_last ? 1 : 0);) {
        size_t end = j < n && j + v->block < n ? j + v->block : j < n ? n : n + 1;
        float next = m;
        for (size_t k = j; k < end; k++) next = fmaxf(next, z[k]);
        float factor = m == next ? 1 : exp_of(state, v, m - next);
        float part = 0;
        for (size_t k = j; k < end; k++) {
            e[k] = next == -INFINITY ? 0 : exp_of(state, v, z[k] - next);
            part += e[k];
        }
        for (size_t k = 0; k < j; k++) e[k] *= factor;
        if (!v->sink_last) e[n] *= factor;
        sum = fmaf(sum, factor, part);
        m = next, j = end;
    }
    if (!v->rescaled_numerators)
        for (size_t j = 0; j <= n; j++) e[j] = exp_of(state, v, z[j] - m);
    return sum;
}

static void engine(uint64_t *state, const variant *v, const sinkproof_policy *policy, size_t n,
                   const float *z, float *alpha) {
    static float e[MOST + 1];
    float sum =
        v->online ? running_maximum(state, v, n, z, e) : two_pass(state, v, policy, n, z, e);
    float reciprocal = 1 / sum;
    for (size_t j = 0; j <= n; j++) alpha[j] = v->reciprocal ? e[j] * reciprocal : e[j] / sum;
}

// ---- inside under every policy ----------------------------------------------------------------

// What the tensor holds: an optional rounding may be left out.
static double stored(const sinkproof_policy *policy, sinkproof_point point, double v, bool keep) {
    sinkproof_rounding at = policy->at[point];
    return at.optional && keep ? v : sinkproof_round(at.format, v);
}

static void engines_inside(const char *policy_name, score_kind kind) {
    static const size_t keys[] = {1, 2, 17, 128, 1500};
    static double z[MOST];
    static float z_f[MOST + 1], alpha[MOST + 1];
    static sinkproof_honest z_k[MOST], a_k[MOST + 1];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_format format = policy.at[AT_A6].format;
    uint64_t state = SEED + (uint64_t)kind;
    tally t = {.floor = 0x1p-120};
    for (size_t i = 0; i < 5; i++) {
        size_t n = keys[i], rows = n > 1000 ? SINKS : n > 100 ? 2 * SINKS : 20 * SINKS;
        sinkproof_setting s = sinkproof_setting_for(&policy, rows * (n + 1), STANDARD_RATE);
        for (size_t r = 0; r < rows; r++) {
            fill(&state, kind, format, n, z);
            double b = sinks[r % SINKS], common;
            b = sinkproof_round(format, b);
            for (size_t j = 0; j < n; j++) z_k[j] = sinkproof_exact_set(z[j]), z_f[j] = (float)z[j];
            z_f[n] = (float)b;
            must(sinkproof_honest_softmax(&s, AT_A9, n, z_k, sinkproof_exact_set(b), a_k, &common));
            for (int e = 0; e < 8; e++) {
                variant v = draw_variant(&state, &policy);
                if (v.online && v.block == 1 && n > 1000 && e > 1) v.block = 64; // n^2 rescalings
                engine(&state, &v, &policy, n, z_f, alpha);
                for (size_t j = 0; j <= n; j++)
                    meet(&t, &a_k[j], stored(&policy, AT_A9, alpha[j], e % 2));
            }
        }
    }
    char what[80];
    snprintf(what, sizeof what, "%s, %s", policy_name, score_names[kind]);
    inside_ok(&t, "bound.softmax-sink", what);
}

// The router's softmax over the chosen logits only: no sink, no running maximum.
static void router_weights(const char *policy_name) {
    static double z[MOST];
    static float z_f[MOST + 1], w[MOST + 1];
    static sinkproof_honest z_k[MOST], w_k[MOST + 1];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_format format = policy.at[AT_M2].format;
    sinkproof_setting s = sinkproof_setting_for(&policy, 4000, STANDARD_RATE);
    uint64_t state = SEED + 30;
    tally t = {.floor = 0x1p-120};
    for (int r = 0; r < 1000; r++) {
        size_t n = r % 5 == 0 ? 1 + draw_below(&state, 64) : 4;
        double common;
        fill(&state, (score_kind)(r % SCORES), format, n, z);
        for (size_t j = 0; j < n; j++) z_k[j] = sinkproof_exact_set(z[j]), z_f[j] = (float)z[j];
        z_f[n] = -INFINITY;
        must(sinkproof_honest_softmax(&s, AT_M4, n, z_k, sinkproof_exact_set(-INFINITY), w_k,
                                      &common));
        for (int e = 0; e < 8; e++) {
            variant v = draw_variant(&state, &policy);
            v.online = v.subtract_in_storage = false;
            engine(&state, &v, &policy, n, z_f, w);
            for (size_t j = 0; j < n; j++) meet(&t, &w_k[j], stored(&policy, AT_M4, w[j], e % 2));
        }
    }
    char what[80];
    snprintf(what, sizeof what, "router, %s", policy_name);
    inside_ok(&t, "bound.softmax-sink", what);
}

// Scores that are a bridged point: the engine's are anywhere in their sets.
static void scores_with_freedom(void) {
    enum { N = 40, ROWS = 1500 };
    static double z[N];
    static float own[N + 1], alpha[N + 1];
    static sinkproof_honest z_k[N], a_k[N + 1];
    sinkproof_policy policy = policy_named("f32,A9.form=definition|running-max");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * N, STANDARD_RATE);
    uint64_t state = SEED + 40;
    tally t = {.floor = 0x1p-120};
    for (int r = 0; r < ROWS; r++) {
        fill(&state, (score_kind)(r % SCORES), SINKPROOF_F32, N, z);
        double b = sinks[r % SINKS], width = ldexp(1, -2 - r % 20), common;
        size_t favoured = draw_below(&state, N); // one key up, the others down, or the reverse
        for (size_t j = 0; j < N; j++) {
            z_k[j] = sinkproof_set_around(z[j], width, width, 0, 0);
            double to = (j == favoured) == (r % 2 == 0) ? 1 : -1;
            own[j] = (float)(z[j] + to * width * 0.99999);
            if (own[j] > z_k[j].hi || own[j] < z_k[j].lo) own[j] = (float)z[j];
        }
        own[N] = (float)b;
        must(sinkproof_honest_softmax(&s, AT_A9, N, z_k, sinkproof_exact_set(b), a_k, &common));
        for (int e = 0; e < 4; e++) {
            variant v = draw_variant(&state, &policy);
            engine(&state, &v, &policy, N, own, alpha);
            for (size_t j = 0; j <= N; j++) meet(&t, &a_k[j], alpha[j]);
        }
    }
    inside_ok(&t, "bound.softmax-sink", "scores with freedom");
}

// ---- values -------------------------------------------------------------------------------------

// A flash kernel's output: numerators times values, rescaled with the sum, divided once at the end;
// or weights first, as eager attention does. The weights are not in the trace.
static void weighted_values(const char *policy_name) {
    enum { N = 300, D = 3, ROWS = 300 };
    static double z[N];
    static float z_f[N + 1], e[N + 1], value[N];
    static sinkproof_honest z_k[N], a_k[N + 1], v_k[D * N], out[D];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_format format = policy.at[AT_A6].format;
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * D, STANDARD_RATE);
    uint64_t state = SEED + 41;
    tally t = {0};
    for (int r = 0; r < ROWS; r++) {
        size_t n = r % 3 == 0 ? N : 1 + draw_below(&state, N);
        double b = sinkproof_round(format, sinks[r % SINKS]), common;
        fill(&state, (score_kind)(r % SCORES), format, n, z);
        for (size_t j = 0; j < n; j++) z_k[j] = sinkproof_exact_set(z[j]), z_f[j] = (float)z[j];
        for (size_t k = 0; k < D * n; k++)
            v_k[k] = sinkproof_exact_set(draw_from(&state, format, 1));
        z_f[n] = (float)b;
        must(sinkproof_honest_softmax(&s, AT_A9, n, z_k, sinkproof_exact_set(b), a_k, &common));
        sinkproof_planes p = sinkproof_planes_new(a_k, 1, n, n);
        sinkproof_planes q = sinkproof_planes_new(v_k, D, n, n);
        must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, out, D));
        sinkproof_planes_free(&p), sinkproof_planes_free(&q);
        for (size_t d = 0; d < D; d++) {
            out[d] = sinkproof_honest_at(&s, AT_A11, sinkproof_honest_inside(&s, out[d]));
            for (size_t j = 0; j < n; j++) value[j] = (float)v_k[d * n + j].mid;
            variant v = draw_variant(&state, &policy);
            v.rescaled_numerators = true;
            float sum = v.online ? running_maximum(&state, &v, n, z_f, e)
                                 : two_pass(&state, &v, &policy, n, z_f, e);
            float o;
            if (v.online) {
                o = engine_dot(&state, v.order, v.reciprocal, n, e, value, NULL, false) / sum;
            } else {
                for (size_t j = 0; j < n; j++)
                    e[j] = (float)stored(&policy, AT_A9, e[j] / sum, r % 2);
                o = engine_dot(&state, v.order, v.reciprocal, n, e, value, NULL, false);
            }
            meet(&t, &out[d], sinkproof_round(policy.at[AT_A11].format, o));
        }
    }
    inside_ok(&t, "bound.value", policy_name);
}

// ---- the truth ----------------------------------------------------------------------------------

static void truth_inside(void) {
    enum { N = 100, ROWS = 420 };
    static double z[N];
    static sinkproof_honest z_k[N], a_k[N + 1];
    sinkproof_policy policy = policy_named("real-f64");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * N, STANDARD_RATE);
    uint64_t state = SEED + 42;
    size_t outside = 0;
    double worst = 0;
    arb_ptr z_b = _arb_vec_init(N), a_b = _arb_vec_init(N + 1);
    arb_t sink;
    arb_init(sink);
    for (int r = 0; r < ROWS; r++) {
        size_t n = r % 4 == 0 ? 1 : N;
        double b = sinks[r % SINKS], common;
        fill(&state, (score_kind)(r % SCORES), r % 2 ? SINKPROOF_F32 : SINKPROOF_F64, n, z);
        for (size_t j = 0; j < n; j++) z_k[j] = sinkproof_exact_set(z[j]), arb_set_d(z_b + j, z[j]);
        arb_set_d(sink, b);
        must(sinkproof_honest_softmax(&s, AT_A9, n, z_k, sinkproof_exact_set(b), a_k, &common));
        sinkproof_truth_softmax_sink(a_b, a_b + n, z_b, n, sink, 300);
        for (size_t j = 0; j <= n; j++) {
            outside += !set_holds(&a_k[j], a_b + j);
            double v = arf_get_d(arb_midref(a_b + j), ARF_RND_NEAR);
            if (a_k[j].lo != a_k[j].hi) worst = sinkproof_keep_worst(worst, share_of(&a_k[j], v));
        }
    }
    arb_clear(sink), _arb_vec_clear(z_b, N), _arb_vec_clear(a_b, N + 1);
    ok(outside == 0,
       "bound.softmax-sink the truth in the set of real-f64 worst=%.3g bound=1 outside=%zu", worst,
       outside);
}

// ---- the likely set -----------------------------------------------------------------------------

static void likely_set_holds(bool online, sinkproof_format format) {
    enum { N = 1500, ROWS = 150 };
    static double z[N];
    static float z_f[N + 1], alpha[N + 1];
    static sinkproof_honest z_k[N], a_k[N + 1];
    sinkproof_policy policy = policy_named("f32,A9.form=definition|running-max");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * N, STANDARD_RATE);
    uint64_t state = SEED + 43;
    tally t = {0};
    double worst = 0, narrower = INFINITY;
    for (int r = 0; r < ROWS; r++) {
        double b = sinks[r % 2], common;
        fill(&state, GAUSS, format, N, z);
        if (r % 3 == 0) // weights of nearly one size
            for (size_t j = 0; j < N; j++) z[j] = sinkproof_round(format, z[j] / 30);
        for (size_t j = 0; j < N; j++) z_k[j] = sinkproof_exact_set(z[j]), z_f[j] = (float)z[j];
        z_f[N] = (float)b;
        must(sinkproof_honest_softmax(&s, AT_A9, N, z_k, sinkproof_exact_set(b), a_k, &common));
        variant v = draw_variant(&state, &policy);
        v.online = online;
        if (r % 2) v.order = FORWARD;
        engine(&state, &v, &policy, N, z_f, alpha);
        for (size_t j = 0; j <= N; j++) {
            meet(&t, &a_k[j], alpha[j]);
            double radius = likely_radius(&a_k[j]);
            worst = sinkproof_keep_worst(worst, fabs(alpha[j] - a_k[j].mid) / radius);
            narrower = sinkproof_keep_least(narrower, sinkproof_radius(&a_k[j]) / radius);
        }
    }
    ok(t.unlikely == 0,
       "bound.dot-likely softmax %s of %s scores worst=%.3f bound=1 unlikely=%zu of=%zu "
       "narrower=%.1f",
       online ? "with a running maximum" : "in two passes", sinkproof_format_name(format), worst,
       t.unlikely, t.checked, narrower);
}

int main(void) {
    static const char *const policies[] = {"f32,A9.form=definition|running-max", "openai-bf16",
                                           "hf-bf16", "bf16,A9.form=definition|running-max"};
    for (size_t p = 0; p < 4; p++)
        for (score_kind kind = 0; kind < SCORES; kind++) engines_inside(policies[p], kind);
    for (score_kind kind = 0; kind < SCORES; kind++) // two passes, nothing hidden by a rounding
        engines_inside("openai-bf16,A6=f32,A8=f32,A9=f32", kind);
    for (size_t p = 0; p < 4; p++) router_weights(policies[p]);
    scores_with_freedom();
    for (size_t p = 0; p < 4; p++) weighted_values(policies[p]);
    truth_inside();
    likely_set_holds(false, SINKPROOF_F32);
    likely_set_holds(false, SINKPROOF_BF16);
    likely_set_holds(true, SINKPROOF_F32);
    return tap_done();
}
