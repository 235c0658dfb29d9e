// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rows of weights near their bounds (verify_near.h): exponentials, logarithms and their sums in
// float32, each function with its whole declared error, on the side that adds up.
#include "audit/verify/verify_near.h"

#include "fast/lanes/exp.h"
#include "fast/lanes/lanes.h"
#include "proofs/bounds/one_minus.h"
#include "proofs/bounds/variants.h"
#include "proofs/truth/truth.h"
#include "proofs/truth/variants.h"

enum { MOST = 200, DRAWS = 200 };
static const double RATE = 1e-9;
static const float LOG2_E = 0x1.715476p0f;

// The weights of n keys and a sink, z_j [n + 1], that an engine left, beside their set under a
// policy and the enclosed truth.
static void compare_weights(verify_measure *result, const char *policy, size_t n, const double *z_j,
                            const double *value_j) {
    sinkproof_policy p = policy_named(policy);
    sinkproof_setting s = sinkproof_setting_for(&p, n + 1, RATE);
    sinkproof_honest *known = calloc(2 * n + 2, sizeof *known), *set = known + n + 1;
    double common;
    must(known != NULL);
    for (size_t j = 0; j <= n; j++) known[j] = sinkproof_exact_set(z_j[j]);
    arb_ptr in = balls_from_doubles(z_j, n + 1), truth = _arb_vec_init((slong)n + 1);
    sinkproof_truth_softmax_sink(truth, truth + n, in, n, in + n, VERIFY_BITS);
    must(sinkproof_honest_softmax(&s, AT_A9, n, known, known[n], set, &common));
    verify_add_set_values(result, truth, set, value_j, n + 1);
    _arb_vec_clear(in, (slong)n + 1);
    _arb_vec_clear(truth, (slong)n + 1);
    free(known);
}

// ---- exponentials -------------------------------------------------------------------------------

// 2^(z log2 e - m log2 e): one product is fused, the other rounded.
static float exp2_at_limit(float z, float m, int side) {
    return farthest_float(exp2((double)fmaf(z, LOG2_E, -(m * LOG2_E))), DECLARED, side);
}

// One key far below its sink: the weight is a quotient of two exponentials, up to roundings. It
// errs by the errors of both, to opposite sides, and by the rounding of the argument.
static void one_key(verify_measure *result, uint64_t *seed, const char *policy, double near,
                    double far, double ulps, double growth) {
    for (int round = 0; round < DRAWS; round++) {
        float b = (float)(between(seed, 1, 2) * 0x1p-20), z = (float)-between(seed, near, far);
        float t = z - b; // and rounded
        int side = (double)t > (double)z - (double)b ? 1 : -1;
        float e = exp_at_limit(t, ulps + growth * fabs((double)t), side);
        float e_b = exp_at_limit(0, ulps, -side), sum = e + e_b;
        const double z_j[2] = {(double)z, (double)b},
                     value[2] = {(double)(e / sum), (double)(e_b / sum)};
        compare_weights(result, policy, 1, z_j, value);
    }
}

void verify_near_exp(verify_measure *result, uint64_t seed) {
    one_key(result, &seed, "f32,A9.form=definition", 32, 34, DECLARED, 0);
}
// A coarse exponential, just above 1/16: the roundings are small compared with its declared error.
void verify_near_exp_declared(verify_measure *result, uint64_t seed) {
    one_key(result, &seed, "f32,A9.form=definition,exp=64ulp", 2.7, 2.772, 64, 0);
}
// The same for exponentials that are rounded before they are multiplied by the values.
void verify_near_unnormalised(verify_measure *result, uint64_t seed) {
    one_key(result, &seed, "f32,A9.form=definition,A9.unnorm=f32?,exp=64ulp", 2.7, 2.772, 64, 0);
}
void verify_near_exp_growing(verify_measure *result, uint64_t seed) {
    one_key(result, &seed, "f32,A9.form=definition,exp=3ulp+0.62|x|", 60, 62, 3, 0.62);
}

// One key beside a sink of nearly the same score: its numerator is 1, its weight just above a half.
// An ulp is the largest share of a number there. The weight is computed as a quotient, and as a
// product with a reciprocal.
void verify_near_quotient(verify_measure *result, uint64_t seed) {
    enum { ULPS = 256 };
    for (int round = 0; round < DRAWS; round++) {
        float z = (float)(between(&seed, 1, 2) * 0x1p-10);
        float e_b = expf(-z), sum = 1 + e_b, share = farthest_float(1 / (double)sum, ULPS, 1);
        const double z_j[2] = {(double)z, 0}, value[2] = {(double)share, (double)(e_b / sum)};
        const char *const policy[] = {"f32,A9.form=definition,div=256ulp",
                                      "f32,A9.form=definition,rcp=256ulp"};
        compare_weights(result, policy[round % 2], 1, z_j, value);
    }
}

// The exponential of the optimized path at and around the argument of its largest error, which a
// search over all arguments found (make exhaustive).
void verify_near_exp_lanes(verify_measure *result, uint64_t seed) {
    (void)seed;
    arb_t e;
    arb_init(e);
    float x = -0x1.765026p+2f;
    for (int k = 0; k < 16; k++) {
        double value = (double)sinkproof_lanes_exp(x), here = exp((double)x);
        arb_set_d(e, (double)x);
        arb_exp(e, e, VERIFY_BITS);
        verify_add_enclosed(result, sinkproof_truth_distance(e, value),
                            SINKPROOF_EXP_ULP * sinkproof_ulp(SINKPROOF_F32, here));
        x = nextafterf(x, 0);
    }
    arb_clear(e);
}

// ---- rows whose sum is lost ---------------------------------------------------------------------

// e^(z - m) in an engine, with its whole declared error to one side.
typedef float (*exponential)(float z, float m, int side);

static float exp_natural(float z, float m, int side) {
    return exp_at_limit(z - m, DECLARED, side);
}

// The largest score whose exponential, next to the score 0, an engine may compute as `most` or
// less.
static float lost_below(exponential e_to, float most) {
    float z = logf(most) - 0x1p-16f;
    while (e_to(nextafterf(z, 0), 0, -1) <= most) z = nextafterf(z, 0);
    return z;
}

// The sink and one key of score 0, and keys whose exponentials are at most half a step of the sum,
// 2: all of them are lost.
static void lost_sum(verify_measure *result, uint64_t *seed, const char *policy, exponential e_to) {
    float low = lost_below(e_to, 0x1p-23f);
    for (int round = 0; round < 4; round++) {
        size_t n = sinkproof_draw_from_to(seed, MOST - 50, MOST);
        double z_j[MOST + 1], value[MOST + 1];
        float e_j[MOST + 1], sum = 1;
        for (size_t j = 0; j <= n; j++) {
            z_j[j] = j == 0 || j == n ? 0 : (double)low;
            e_j[j] = j == 0 || j == n ? 1 : e_to(low, 0, -1);
        }
        for (size_t j = 0; j < n; j++) sum += e_j[j];
        for (size_t j = 0; j <= n; j++) value[j] = (double)(e_j[j] / sum);
        compare_weights(result, policy, n, z_j, value);
    }
}

void verify_near_softmax(verify_measure *result, uint64_t seed) {
    lost_sum(result, &seed, "f32,A9.form=definition", exp_natural);
}
void verify_near_base2_sum(verify_measure *result, uint64_t seed) {
    lost_sum(result, &seed, "f32,A9.form=base-2", exp2_at_limit);
}

// ---- forms --------------------------------------------------------------------------------------

// Base 2 at large scores, whose products with log2(e) round to coarse steps: a key and its sink are
// close, one exponent is rounded up and the other down.
void verify_near_base2(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < 2 * DRAWS; round++) {
        float z = (float)between(&seed, 88.75, 92), b = (float)((double)z + between(&seed, 4, 6));
        float m = b * LOG2_E, y = fmaf(z, LOG2_E, 0), far = y - m;
        int side = round % 2 ? 1 : -1;
        float e = farthest_float(exp2((double)far), DECLARED, side), sum = e + 1;
        const double z_j[2] = {(double)z, (double)b},
                     value[2] = {(double)(e / sum), (double)(1 / sum)};
        compare_weights(result, "f32,A9.form=base-2", 1, z_j, value);
    }
}

// Every key is a new maximum, which halves the sum by an exponential with its whole declared error:
// the first key's numerator is multiplied by n of them. The set allows as many, to the other side,
// for the sum, most of which is recent. Scores are multiples of 2^-16, a little less than ln 2
// apart. The exponential is coarse, since the default declared error would only equal the
// roundings.
void verify_near_running_max(verify_measure *result, uint64_t seed) {
    enum { KEYS = 100, ULPS = 64 };
    for (int round = 0; round < 4; round++) {
        int side = round % 2 ? 1 : -1;
        float step = (float)(floor(between(&seed, 0.69, 0.693) * 0x1p16) * 0x1p-16);
        float factor = exp_at_limit(-step, ULPS, side), sum = 0;
        double z_j[KEYS + 1], value[KEYS + 1];
        float numerator[KEYS + 1];
        for (size_t j = 0; j <= KEYS; j++) {
            z_j[j] = (double)j * (double)step - 48;
            for (size_t k = 0; k < j; k++) numerator[k] *= factor;
            numerator[j] = 1, sum = fmaf(sum, factor, 1);
        }
        for (size_t j = 0; j <= KEYS; j++) value[j] = (double)(numerator[j] / sum);
        compare_weights(result, "f32,A9.form=running-max,exp=64ulp", KEYS, z_j, value);
    }
}

// exp(z - LSE) with LSE just above 128, where steps are coarse.
void verify_near_lse_subtracted(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < 2 * DRAWS; round++) {
        int side = round % 2 ? 1 : -1;
        float z = (float)between(&seed, 128, 130), b = (float)((double)z + between(&seed, -2, 2));
        float m = z > b ? z : b, e = exp_natural(z, m, side), e_b = exp_natural(b, m, side);
        float lse = m + farthest_float(log((double)(e + e_b)), DECLARED, side);
        const double z_j[2] = {(double)z, (double)b},
                     value[2] = {(double)exp_at_limit(z - lse, DECLARED, -side),
                                 (double)exp_at_limit(b - lse, DECLARED, -side)};
        compare_weights(result, "f32,A9.form=lse-subtracted", 1, z_j, value);
    }
}

// The gate of one key and a sink with nearly all of the weight, LSE just above 128.
void verify_near_lse_gated(verify_measure *result, uint64_t seed) {
    enum { KEYS = 3 };
    for (int round = 0; round < 2 * DRAWS; round++) {
        int side = round % 2 ? 1 : -1;
        double z_j[KEYS + 1], value[KEYS + 1];
        float e_j[KEYS], sum = 0, m = (float)between(&seed, 128, 130);
        for (size_t j = 0; j < KEYS; j++) {
            z_j[j] = j == 0 ? (double)m : (double)(float)((double)m - between(&seed, 0, 1));
            e_j[j] = exp_natural((float)z_j[j], m, side), sum += e_j[j];
        }
        z_j[KEYS] = (double)(float)((double)m + between(&seed, 3, 6));
        float lse = m + farthest_float(log((double)sum), DECLARED, side),
              y = lse - (float)z_j[KEYS];
        float gate = 1 / (1 + exp_at_limit(-y, DECLARED, -side));
        for (size_t j = 0; j < KEYS; j++) value[j] = (double)(e_j[j] / sum * gate);
        value[KEYS] = (double)(1 / (1 + exp_at_limit(y, DECLARED, side)));
        compare_weights(result, "f32,A9.form=lse-gated", KEYS, z_j, value);
    }
}

// One key, whose score is LSE: just below the middle of two numbers of bfloat16, or just above.
void verify_near_lse_rounded(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < DRAWS; round++) {
        double off = between(&seed, 1, 2) * 0x1p-12, z = 129.5 + (round % 2 ? off : -off);
        double b = (double)(float)between(&seed, 131, 133);
        float lse = (float)sinkproof_round(SINKPROOF_BF16, z), y = lse - (float)b;
        const double z_j[2] = {(double)(float)z, b},
                     value[2] = {(double)(1 / (1 + expf(-y))), (double)(1 / (1 + expf(y)))};
        compare_weights(result, "f32,A9.form=lse-gated,A9.lse=bf16?", 1, z_j, value);
    }
}

// A softmax over all experts, then the chosen ones divided by their sum: one exponential errs
// upward, all others downward.
void verify_near_router(verify_measure *result, uint64_t seed) {
    enum { EXPERTS = 16, CHOSEN = 4 };
    sinkproof_policy policy = policy_named("f32,M4.form=softmax-all-renormalised");
    sinkproof_setting s = sinkproof_setting_for(&policy, CHOSEN, RATE);
    static const int32_t chosen[CHOSEN] = {0, 1, 2, 3};
    for (int round = 0; round < 2 * DRAWS; round++) {
        int side = round % 2 ? 1 : -1;
        double g[EXPERTS], value[CHOSEN];
        float p_e[EXPERTS], sum = 0, chosen_sum = 0;
        for (size_t e = 0; e < EXPERTS; e++) {
            g[e] = (double)(float)(e == 1   ? 0
                                   : e == 0 ? between(&seed, -2, 0)
                                   : e < 4  ? between(&seed, -9, -8)
                                            : between(&seed, -12, -10));
            p_e[e] = exp_natural((float)g[e], 0, e == 0 ? side : -side), sum += p_e[e];
        }
        for (size_t k = 0; k < CHOSEN; k++) chosen_sum += p_e[k] / sum;
        for (size_t k = 0; k < CHOSEN; k++) value[k] = (double)(p_e[k] / sum / chosen_sum);
        verify_compare_chosen(result, &s, EXPERTS, g, CHOSEN, chosen, value);
    }
}

// ---- one minus the sink's weight ----------------------------------------------------------------

static const double U = 0x1p-24;

// p: the relative error of a sum of n exponentials with their declared errors.
static double sum_error(size_t n) {
    return compound_up(DECLARED * 2 * U, sinkproof_gamma((double)n, U));
}

// 1 - alpha_s for keys z_j [n] and a sink b, and its odds: alpha_s over that.
typedef struct kept {
    arb_t mass;
    double low, odds;
} kept;

static void kept_init(kept *k, size_t n, const float *z_j, float b) {
    arb_t e;
    balls_init(e, k->mass);
    for (size_t j = 0; j < n; j++) {
        arb_set_d(e, (double)z_j[j] - (double)b);
        arb_exp(e, e, VERIFY_BITS);
        arb_add(k->mass, k->mass, e, VERIFY_BITS);
    }
    arb_inv(e, k->mass, VERIFY_BITS);
    k->odds = sinkproof_next_up(arf_get_d(arb_midref(e), ARF_RND_UP));
    arb_add_ui(e, k->mass, 1, VERIFY_BITS);
    arb_div(k->mass, k->mass, e, VERIFY_BITS);
    k->low = arf_get_d(arb_midref(k->mass), ARF_RND_DOWN);
    arb_clear(e);
}

// Ties with respect to the sink's exponential, 1: the denominator is 1, and nothing is left of the
// mass.
void verify_near_subtracted_mass(verify_measure *result, uint64_t seed) {
    float z_j[MOST], low = lost_below(exp_natural, 0x1p-24f);
    size_t n = sinkproof_draw_from_to(&seed, MOST - 50, MOST);
    float sum = 0, den = 1;
    for (size_t j = 0; j < n; j++) z_j[j] = low, den += exp_natural(low, 0, -1);
    kept k;
    kept_init(&k, n, z_j, sum);
    double p = sum_error(n), off = compound_up(U, sinkproof_next_up(p / (1 - p)));
    verify_add_enclosed(result, sinkproof_truth_distance(k.mass, (double)(1 - 1 / den)),
                        sinkproof_mul_down(sinkproof_mass_subtracted(U, off, k.odds), k.low));
    arb_clear(k.mass);
}

// A sum that is lost beside its first term, under a much larger sink: the denominator is exact, so
// that at most half of the bound is reached.
void verify_near_mass_quotient(verify_measure *result, uint64_t seed) {
    float z_j[MOST], sum = 0;
    size_t n = sinkproof_draw_from_to(&seed, MOST - 50, MOST);
    const float b = 0x1.0a2b1p3f; // just below 12 ln 2: the first exponential is just above 2^-12
    const float low = lost_below(exp_natural, 0x1p-36f) + b;
    for (size_t j = 0; j < n; j++) {
        z_j[j] = j == 0 ? 0 : low;
        sum += exp_natural(z_j[j], b, -1);
    }
    kept k;
    kept_init(&k, n, z_j, b);
    double p = sum_error(n);
    verify_add_enclosed(result, sinkproof_truth_distance(k.mass, (double)(sum / (1 + sum))),
                        sinkproof_mul_down(sinkproof_mass_quotient(U, p, p), k.low));
    arb_clear(k.mass);
}

// sigmoid(log n - b): logarithm, exponential and their difference err to the same side.
void verify_near_mass_sigmoid(verify_measure *result, uint64_t seed) {
    for (int round = 0; round < 100; round++) {
        static const float zero[MOST];
        int side = round % 2 ? 1 : -1;
        size_t n = sinkproof_draw_from_to(&seed, 2, MOST);
        float b = (float)between(&seed, 8, 12),
              log_n = farthest_float(log((double)n), DECLARED, side);
        float y = log_n - b, value = 1 / (1 + exp_at_limit(-y, DECLARED, -side));
        kept k;
        kept_init(&k, n, zero, b);
        double delta = DECLARED * sinkproof_ulp(SINKPROOF_F32, log((double)n)) +
                       0.5 * sinkproof_ulp(SINKPROOF_F32, (double)y);
        double bound = sinkproof_mass_sigmoid(U, U, DECLARED * 2 * U, delta);
        verify_add_enclosed(result, sinkproof_truth_distance(k.mass, (double)value),
                            sinkproof_mul_down(bound, k.low));
        arb_clear(k.mass);
    }
}

// ---- designs ------------------------------------------------------------------------------------

// Sigmoids over their sum: two of score 0, 1/2 each, and others that are lost in the sum.
void verify_near_similarity(verify_measure *result, uint64_t seed) {
    const sinkproof_variant *variant = sinkproof_variant_find("sigmoid-norm");
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, MOST, RATE);
    float low = lost_below(exp_natural, 0x1p-24f);
    for (int round = 0; round < 4; round++) {
        size_t n = sinkproof_draw_from_to(&seed, MOST - 50, MOST);
        double z_j[MOST], value[MOST];
        float sim_j[MOST], sum = 0;
        bool seen[MOST];
        sinkproof_honest known[MOST], set[MOST];
        for (size_t j = 0; j < n; j++) {
            z_j[j] = j < 2 ? 0 : (double)low, seen[j] = true,
            known[j] = sinkproof_exact_set(z_j[j]);
            sim_j[j] = j < 2 ? 0.5f : 1 / (1 + exp_at_limit(-low, DECLARED, 1)), sum += sim_j[j];
        }
        for (size_t j = 0; j < n; j++) value[j] = (double)(sim_j[j] / sum);
        arb_ptr in = balls_from_doubles(z_j, n), truth = _arb_vec_init((slong)n);
        sinkproof_truth_variant_weights(truth, variant, n, seen, in, VERIFY_BITS);
        must(sinkproof_honest_variant_weights(&s, variant, n, seen, known, set));
        verify_add_set_values(result, truth, set, value, n);
        _arb_vec_clear(in, (slong)n);
        _arb_vec_clear(truth, (slong)n);
    }
}
