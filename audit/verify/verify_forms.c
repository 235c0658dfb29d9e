// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks the forms in which kernels evaluate weights and activations (bound.form-*), processors
// that read subnormal numbers as zero (bound.ftz) and sums close to overflow (bound.overflow):
// float32 arithmetic as engines ship it, against the enclosed real value, within the set derived
// for the form.
#include "audit/verify/verify_near.h"

#include "proofs/bounds/bounds.h"
#include "proofs/truth/truth.h"
#include "ref/stages.h"

#include <float.h>
#include <math.h>

enum { ROWS = 24, MOST_KEYS = 200 };
static const double RATE = 1e-9;
static const float LOG2_E = 0x1.715476p0f;

// ---- the attention weights ----------------------------------------------------------------------

// Fills alpha[n + 1] from n scores and the sink, z[n].
typedef void (*form)(size_t n, const float *z, float *alpha);

static float largest_float(size_t n, const float *z) {
    float m = -INFINITY;
    for (size_t j = 0; j < n; j++) m = z[j] > m ? z[j] : m;
    return m;
}

static float sum_floats(size_t n, const float *e) {
    float sum = 0;
    for (size_t j = 0; j < n; j++) sum += e[j];
    return sum;
}

static void measure_form(verify_measure *result, uint64_t seed, const char *name, form run) {
    sinkproof_policy policy = policy_named(name);
    for (size_t round = 0; round < ROWS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 1, MOST_KEYS);
        double spread = round % 3 == 0 ? 100 : 4, level = round % 4 == 0 ? 175 : 0, common;
        double z[MOST_KEYS + 1], value[MOST_KEYS + 1];
        float z_j[MOST_KEYS + 1], alpha[MOST_KEYS + 1];
        sinkproof_honest known[MOST_KEYS], set[MOST_KEYS + 1];
        for (size_t j = 0; j <= n; j++) {
            z_j[j] = (float)(level + between(&seed, -spread, spread));
            z[j] = z_j[j];
            if (j < n) known[j] = sinkproof_exact_set(z[j]);
        }
        run(n, z_j, alpha);
        for (size_t j = 0; j <= n; j++) value[j] = alpha[j];
        arb_ptr in = balls_from_doubles(z, n + 1), truth = _arb_vec_init((slong)n + 1);
        sinkproof_truth_softmax_sink(truth, truth + n, in, n, in + n, VERIFY_BITS);
        sinkproof_setting s = sinkproof_setting_for(&policy, n + 1, RATE);
        must(
            sinkproof_honest_softmax(&s, AT_A9, n, known, sinkproof_exact_set(z[n]), set, &common));
        verify_add_set_values(result, truth, set, value, n + 1);
        _arb_vec_clear(in, (slong)n + 1);
        _arb_vec_clear(truth, (slong)n + 1);
    }
}

static void base_2(size_t n, const float *z, float *alpha) {
    float m = largest_float(n + 1, z) * LOG2_E;
    for (size_t j = 0; j <= n; j++) alpha[j] = exp2f(fmaf(z[j], LOG2_E, -m));
    float sum = sum_floats(n + 1, alpha);
    for (size_t j = 0; j <= n; j++) alpha[j] /= sum;
}

// Blocks of 32 keys; all sums are rescaled at a new maximum; the sink comes last.
static void running_max(size_t n, const float *z, float *alpha) {
    float m = -INFINITY, sum = 0;
    for (size_t first = 0, end; first <= n; first = end) {
        end = first + 32 < n ? first + 32 : first < n ? n : n + 1;
        float part = largest_float(end - first, z + first), next = part > m ? part : m;
        float factor = m == next ? 1 : expf(m - next);
        for (size_t j = 0; j < first; j++) alpha[j] *= factor;
        for (size_t j = first; j < end; j++) alpha[j] = expf(z[j] - next);
        sum = fmaf(sum, factor, sum_floats(end - first, alpha + first)), m = next;
    }
    for (size_t j = 0; j <= n; j++) alpha[j] /= sum;
}

static float log_sum_exp(size_t n, const float *z) {
    float m = largest_float(n, z), sum = 0;
    for (size_t j = 0; j < n; j++) sum += expf(z[j] - m);
    return m + logf(sum);
}

static void lse_subtracted(size_t n, const float *z, float *alpha) {
    float all = log_sum_exp(n + 1, z);
    for (size_t j = 0; j <= n; j++) alpha[j] = expf(z[j] - all);
}

static void gate_by(float keys, size_t n, const float *z, float *alpha) {
    float m = largest_float(n, z), gate = 1 / (1 + expf(z[n] - keys));
    for (size_t j = 0; j < n; j++) alpha[j] = expf(z[j] - m);
    float sum = sum_floats(n, alpha);
    for (size_t j = 0; j < n; j++) alpha[j] = alpha[j] / sum * gate;
    alpha[n] = 1 / (1 + expf(keys - z[n]));
}

static void lse_gated(size_t n, const float *z, float *alpha) {
    gate_by(log_sum_exp(n, z), n, z, alpha);
}

static void lse_rounded(size_t n, const float *z, float *alpha) {
    gate_by((float)sinkproof_round(SINKPROOF_BF16, log_sum_exp(n, z)), n, z, alpha);
}

void verify_form_base2(verify_measure *result, uint64_t seed) {
    measure_form(result, seed, "f32,A9.form=base-2", base_2);
}
void verify_form_running_max(verify_measure *result, uint64_t seed) {
    measure_form(result, seed, "f32,A9.form=running-max", running_max);
}
void verify_form_lse(verify_measure *result, uint64_t seed) {
    measure_form(result, seed, "f32,A9.form=lse-subtracted", lse_subtracted);
    measure_form(result, seed + 1, "f32,A9.form=lse-gated", lse_gated);
}

void verify_lse_rounded(verify_measure *result, uint64_t seed) {
    measure_form(result, seed, "f32,A9.form=lse-gated,A9.lse=bf16?", lse_rounded);
}

// ---- the experts --------------------------------------------------------------------------------

void verify_compare_chosen(verify_measure *result, const sinkproof_setting *s, size_t experts,
                           const double *g_e, size_t chosen, const int32_t *chosen_k,
                           const double *value_k) {
    sinkproof_honest *known_e = calloc(experts + chosen, sizeof *known_e), *set_k;
    size_t *index_k = calloc(chosen, sizeof *index_k);
    double common;
    must(known_e != NULL && index_k != NULL);
    set_k = known_e + experts;
    for (size_t e = 0; e < experts; e++) known_e[e] = sinkproof_exact_set(g_e[e]);
    for (size_t k = 0; k < chosen; k++) index_k[k] = (size_t)chosen_k[k];
    arb_ptr in = balls_from_doubles(g_e, experts), truth = _arb_vec_init((slong)chosen);
    sinkproof_truth_router_weights(truth, index_k, in, chosen, VERIFY_BITS);
    must(sinkproof_honest_expert_weights(s, experts, known_e, chosen, chosen_k, set_k, &common));
    verify_add_set_values(result, truth, set_k, value_k, chosen);
    _arb_vec_clear(in, (slong)experts);
    _arb_vec_clear(truth, (slong)chosen);
    free(known_e);
    free(index_k);
}

// A softmax over all experts; the chosen weights are divided by their own sum.
void verify_form_router(verify_measure *result, uint64_t seed) {
    enum { EXPERTS = 16, CHOSEN = 4 };
    sinkproof_policy policy = policy_named("f32,M4.form=softmax-all-renormalised");
    sinkproof_setting s = sinkproof_setting_for(&policy, CHOSEN, RATE);
    for (size_t round = 0; round < 4 * ROWS; round++) {
        double g[EXPERTS], value[CHOSEN];
        float z[EXPERTS], chosen_sum = 0;
        int32_t chosen[CHOSEN];
        for (size_t e = 0; e < EXPERTS; e++) g[e] = z[e] = (float)between(&seed, -6, 6);
        sinkproof_router_choose(EXPERTS, CHOSEN, g, chosen);
        float m = largest_float(EXPERTS, z);
        for (size_t e = 0; e < EXPERTS; e++) z[e] = expf(z[e] - m);
        float sum = sum_floats(EXPERTS, z);
        for (size_t k = 0; k < CHOSEN; k++) chosen_sum += z[chosen[k]] / sum;
        for (size_t k = 0; k < CHOSEN; k++) value[k] = (double)(z[chosen[k]] / sum / chosen_sum);
        verify_compare_chosen(result, &s, EXPERTS, g, CHOSEN, chosen, value);
    }
}

// Compares an activation computed from gate and up with the truth and its set.
static void compare_activation(verify_measure *result, const sinkproof_setting *s,
                               const sinkproof_config *config, double gate, double up,
                               double value) {
    double u[2] = {gate, up};
    arb_ptr in = balls_from_doubles(u, 2), truth = _arb_vec_init(1);
    sinkproof_truth_swiglu(truth, in, 1, config->swiglu, VERIFY_BITS);
    sinkproof_honest set = sinkproof_honest_swiglu(s, config->swiglu, sinkproof_exact_set(gate),
                                                   sinkproof_exact_set(up));
    verify_add_set_values(result, truth, &set, &value, 1);
    _arb_vec_clear(in, 2);
    _arb_vec_clear(truth, 1);
}

// sigmoid(t) = (1 + tanh(t / 2)) / 2
void verify_form_tanh(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32,M8.form=tanh");
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, RATE);
    for (int k = 0; k < 400; k++) {
        float gate = (float)between(&seed, -12, 12), up = (float)between(&seed, -12, 12);
        float g = gate > 7 ? 7 : gate, l = up > 7 ? 7 : up < -7 ? -7 : up;
        float y = g * (0.5f * (1 + tanhf(0.5f * (1.702f * g)))) * (l + 1);
        compare_activation(result, &s, &config, gate, up, y);
    }
}

// Computed from e^|t|, which is rounded to bfloat16 or not.
void verify_sigmoid_exp(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32,M8.form=sigmoid,M8.exp=bf16?");
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, RATE);
    for (int k = 0; k < 400; k++) {
        float gate = (float)between(&seed, -12, 12), up = (float)between(&seed, -12, 12);
        float g = gate > 7 ? 7 : gate, l = up > 7 ? 7 : up < -7 ? -7 : up, t = 1.702f * g;
        double size = expf(fabsf(t));
        float e = (float)(k % 2 ? sinkproof_round(SINKPROOF_BF16, size) : size), part = 1 / (1 + e);
        float y = g * (t < 0 ? part : 1 - part) * (l + 1);
        compare_activation(result, &s, &config, gate, up, y);
    }
}

// ---- subnormal numbers read as zero, results flushed --------------------------------------------

static float flushed_to_zero(float x) {
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

// Products with weights that the sink has made small: sum_k w_k v_k, n <= MOST_KEYS.
void verify_ftz(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, RATE);
    for (size_t round = 0; round < 4 * ROWS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 1, MOST_KEYS);
        double w[MOST_KEYS], v[MOST_KEYS], shift = round % 2 ? -88 : between(&seed, -100, 0);
        sinkproof_honest w_k[MOST_KEYS], v_k[MOST_KEYS], set;
        float sum = 0;
        for (size_t k = 0; k < n; k++) {
            float a = (float)exp(shift + between(&seed, -2, 2)), b = (float)between(&seed, -2, 2);
            w[k] = a, w_k[k] = sinkproof_exact_set(a);
            v[k] = b, v_k[k] = sinkproof_exact_set(b);
            sum = flushed_to_zero(sum + flushed_to_zero(flushed_to_zero(a) * flushed_to_zero(b)));
        }
        sinkproof_planes p = sinkproof_planes_new(w_k, 1, n, n);
        sinkproof_planes q = sinkproof_planes_new(v_k, 1, n, n);
        must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, &set, 1));
        sinkproof_planes_free(&p);
        sinkproof_planes_free(&q);
        arb_ptr a = balls_from_doubles(w, n), b = balls_from_doubles(v, n),
                truth = _arb_vec_init(1);
        sinkproof_truth_values(truth, a, b, n, 1, 1, VERIFY_BITS);
        double value = sum;
        verify_add_set_values(result, truth, &set, &value, 1);
        _arb_vec_clear(a, (slong)n);
        _arb_vec_clear(b, (slong)n);
        _arb_vec_clear(truth, 1);
    }
}

// Sums of numbers whose sizes add up to about the largest float: where the set is bounded, every
// intermediate result is below the largest float; where it is unbounded, an infinite result is
// inside.
void verify_overflow(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, RATE);
    for (size_t round = 0; round < 4 * ROWS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 4, MOST_KEYS);
        sinkproof_honest w_k[MOST_KEYS], v_k[MOST_KEYS], set;
        double share = between(&seed, 0.8, 1.2), least = round % 2 ? -1 : 0.5;
        float sum = 0, most = 0;
        for (size_t k = 0; k < n; k++) {
            float a = (float)(share * FLT_MAX / (double)n * between(&seed, least, 1.5));
            w_k[k] = sinkproof_exact_set((double)a), v_k[k] = sinkproof_exact_set(1);
            sum += a, most = fmaxf(most, fabsf(sum));
        }
        sinkproof_planes p = sinkproof_planes_new(w_k, 1, n, n);
        sinkproof_planes q = sinkproof_planes_new(v_k, 1, n, n);
        must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, &set, 1));
        sinkproof_planes_free(&p);
        sinkproof_planes_free(&q);
        bool bounded = set.lo > -INFINITY && set.hi < INFINITY;
        bool inside = set.lo <= (double)sum && (double)sum <= set.hi;
        verify_add_exact(result, !inside ? INFINITY : bounded ? (double)most : 0, FLT_MAX);
    }
}
