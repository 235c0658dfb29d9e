// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Activations, rotations and changing rows near their bounds (verify_near.h): each function errs by
// all that is declared, to either side, over many operands; some operands round to the same side
// throughout. Rows are built so that the two terms of a bound have the same sign.
#include "audit/verify/verify_near.h"

#include "proofs/bounds/mixing.h"
#include "proofs/truth/identities.h"
#include "proofs/truth/truth.h"
#include "ref/stages.h"

#include <string.h>

enum { DRAWS = 400, DIM = VERIFY_TURNED, HALF = DIM / 2 };
static const double RATE = 1e-9;

// ---- activations --------------------------------------------------------------------------------

// sigmoid(t) by a function that errs by `ulps` to one side.
typedef float (*sigmoid_form)(float t, double ulps, int side);

static float by_exponential(float t, double ulps, int side) {
    return 1 / (1 + exp_at_limit(-t, ulps, -side));
}
static float by_size(float t, double ulps, int side) { // computed from e^|t|
    float part = 1 / (1 + exp_at_limit(fabsf(t), ulps, t < 0 ? -side : side));
    return t < 0 ? part : 1 - part;
}
static float by_tanh(float t, double ulps, int side) {
    return 0.5f * (1 + farthest_float(tanh(0.5 * (double)t), ulps, side));
}

// Gates from `low` to `high`.
static void measure_activations(verify_measure *result, uint64_t seed, const char *name,
                                double ulps, double low, double high, sigmoid_form form) {
    sinkproof_policy policy = policy_named(name);
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, RATE);
    for (int k = 0; k < DRAWS; k++) {
        int side = k % 2 ? 1 : -1;
        float g = (float)between(&seed, low, high), l = (float)between(&seed, -7, 7);
        double value = (double)(g * form(1.702f * g, ulps, side) * (l + 1)),
               u[2] = {(double)g, (double)l};
        arb_ptr in = balls_from_doubles(u, 2), truth = _arb_vec_init(1);
        sinkproof_truth_swiglu(truth, in, 1, config.swiglu, VERIFY_BITS);
        sinkproof_honest set = sinkproof_honest_swiglu(&s, config.swiglu, sinkproof_exact_set(u[0]),
                                                       sinkproof_exact_set(u[1]));
        verify_add_set_values(result, truth, &set, &value, 1);
        _arb_vec_clear(in, 2);
        _arb_vec_clear(truth, 1);
    }
}

void verify_near_swiglu(verify_measure *result, uint64_t seed) {
    measure_activations(result, seed, "f32,M8.form=sigmoid", DECLARED, -4, -1, by_exponential);
}
void verify_near_swiglu_declared(verify_measure *result, uint64_t seed) {
    measure_activations(result, seed, "f32,M8.form=sigmoid,exp=64ulp", 64, -4, -1, by_exponential);
}
void verify_near_sigmoid_exp(verify_measure *result, uint64_t seed) {
    measure_activations(result, seed, "f32,M8.form=sigmoid,M8.exp=f32,exp=64ulp", 64, -4, -1,
                        by_size);
}
void verify_near_tanh(verify_measure *result, uint64_t seed) {
    measure_activations(result, seed, "f32,M8.form=tanh,tanh=64ulp", 64, -0.75, -0.6, by_tanh);
}

// Numbers for which 1 + tanh is about 1/2, and a coarse tanh, since at 2 ulp its error would only
// equal the roundings.
void verify_near_gelu(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32,tanh=64ulp");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, RATE);
    for (int k = 0; k < DRAWS; k++) {
        int side = k % 2 ? 1 : -1;
        float x = (float)between(&seed, -1, -0.6), cubic = 0.044715f * (x * x * x);
        float t = farthest_float(tanh((double)(0.7978845608f * (x + cubic))), 64, side);
        double v = (double)x, value = (double)(0.5f * x * (1 + t));
        arb_ptr in = balls_from_doubles(&v, 1), truth = _arb_vec_init(1);
        sinkproof_truth_gelu_tanh(truth, in, 1, VERIFY_BITS);
        sinkproof_honest set = sinkproof_honest_gelu(&s, sinkproof_exact_set(v));
        verify_add_set_values(result, truth, &set, &value, 1);
        _arb_vec_clear(in, 1);
        _arb_vec_clear(truth, 1);
    }
}

// ---- rotations ----------------------------------------------------------------------------------

// The share of pair i that keeps its trained frequency.
static float ramp_kept_share(const sinkproof_config *config, size_t i) {
    double low, high;
    sinkproof_yarn_range(config, true, &low, &high);
    float ramp = ((float)i - (float)low) / (float)(high - low);
    return 1 - fminf(fmaxf(ramp, 0), 1);
}

// Angles from powers of theta that err by the declared error of pow.
static void angles_of_powers(const sinkproof_config *c, float position, int side, float *angle_i) {
    for (size_t i = 0; i < HALF; i++) {
        double exponent = (double)(float)(2 * (double)i / DIM);
        float power = i == 0 ? 1 : farthest_float(pow(c->rotation.theta, exponent), DECLARED, side);
        float keep = ramp_kept_share(c, i), slow = 1 / ((float)c->rotation.factor * power),
              fast = 1 / power;
        angle_i[i] = position * (slow * (1 - keep) + fast * keep);
    }
}

// Angles by repeated products with a ratio that errs by the same.
static void angles_of_products(const sinkproof_config *c, float position, int side,
                               float *angle_i) {
    float ratio = farthest_float(pow(c->rotation.theta, -2.0 / DIM), DECLARED, side),
          angle = position;
    for (size_t i = 0; i < HALF; i++, angle *= ratio) {
        float keep = ramp_kept_share(c, i);
        angle_i[i] = angle * (1 / (float)c->rotation.factor) * (1 - keep) + angle * keep;
    }
}

typedef void (*angles)(const sinkproof_config *c, float position, int side, float *angle_i);

// Turns random vectors at far positions, where a frequency's error counts most; the concentration
// is in the tables, or multiplied into the vector first. Where the policy fixes the roundings of
// the frequencies, the real rotation need not be in the set: here they are optional.
static void measure_turned(verify_measure *result, uint64_t seed, const char *name, bool first,
                           angles angles_of) {
    sinkproof_policy policy = policy_named(name);
    sinkproof_config config = verify_turned_config();
    float angle_i[HALF];
    for (int round = 0; round < 4; round++) {
        int32_t position = (int32_t)sinkproof_draw_from_to(&seed, 100000, 131071);
        double x[DIM];
        for (size_t d = 0; d < DIM; d++) x[d] = (double)(float)between(&seed, -4, 4);
        angles_of(&config, (float)position, round % 2 ? 1 : -1, angle_i);
        verify_compare_turned(result, &policy, &config, position, first, angle_i, x);
    }
}

void verify_near_rope(verify_measure *result, uint64_t seed) {
    measure_turned(result, seed, "f32,A4.freq=f32?,A4.angle=f32?", false, angles_of_powers);
}
void verify_near_running_angle(verify_measure *result, uint64_t seed) {
    measure_turned(result, seed, "f32,A4.freq.form=powers|running-product", false,
                   angles_of_products);
}
void verify_near_scaled_first(verify_measure *result, uint64_t seed) {
    measure_turned(result, seed, "f32,A4.form=scaled-first,A4.freq=f32?,A4.angle=f32?", true,
                   angles_of_powers);
}

// ---- rows that change ---------------------------------------------------------------------------

// bound.evict: the identity of a row for which the bound is reached, as one number over the other.
void verify_near_evict(verify_measure *result, uint64_t seed) {
    enum { ROWS = 20 };
    const sinkproof_identity *identity;
    arb_ptr side = _arb_vec_init(2 * SINKPROOF_BALL_DIM), right = side + SINKPROOF_BALL_DIM;
    for (size_t k = 0; (identity = sinkproof_identity_at(k)) != NULL; k++) {
        if (strcmp(identity->id, "bound.evict") != 0 || identity->relation != SINKPROOF_BALL_EQUAL)
            continue;
        for (uint64_t number = 0; number < ROWS; number++) {
            sinkproof_ball_instance m =
                sinkproof_ball_draw((sinkproof_ball_ranges){0, 0, 4, NAN}, seed, number);
            identity->left(side, &m, VERIFY_BITS);
            identity->right(right, &m, VERIFY_BITS);
            for (size_t d = 0; d < m.dim; d++) // equal except for 2^-250: the same binary64 number
                verify_add_enclosed(result, arf_get_d(arb_midref(side + d), ARF_RND_NEAR),
                                    arf_get_d(arb_midref(right + d), ARF_RND_NEAR));
            sinkproof_ball_clear(&m);
        }
    }
    _arb_vec_clear(side, 2 * SINKPROOF_BALL_DIM);
}

// e^s / (1 + e^s)
static void exp_share_ball(arb_t out, double score) {
    arb_set_d(out, -score);
    arb_exp(out, out, VERIFY_BITS);
    arb_add_ui(out, out, 1, VERIFY_BITS);
    arb_inv(out, out, VERIFY_BITS);
}

// bound.quantized-cache: two keys without a sink, with values 1 and -1; the second key's score errs
// by delta and its value by eps, and both move the row's output up from alpha_1 - alpha_0.
void verify_near_quantized_cache(verify_measure *result, uint64_t seed) {
    arb_t after, before, moved, value;
    balls_init(after, before, moved, value);
    for (int k = 0; k < 20; k++) {
        double score = (double)(float)between(&seed, -6, -5);
        double delta = (double)(float)between(&seed, 0.001, 0.01), eps = delta / 4;
        exp_share_ball(before, score);
        exp_share_ball(after, score + delta); // exact: both are binary32 numbers
        arb_set_d(value, 2 + eps);
        arb_mul(moved, value, after, VERIFY_BITS);
        arb_submul_ui(moved, before, 2, VERIFY_BITS); // (1 + eps) a' - (1 - a') - (a - (1 - a))
        double last = arf_get_d(arb_midref(after), ARF_RND_DOWN);
        const double alpha_j[2] = {1 - last, last}, delta_j[2] = {0, delta}, eps_j[2] = {0, eps};
        verify_add_enclosed(result, sinkproof_truth_distance(moved, 0),
                            sinkproof_cache_bound(2, alpha_j, delta_j, eps_j, 0, 1));
    }
    balls_clear(after, before, moved, value);
}

// Numbers half way between two quantized ones.
void verify_near_quantise(verify_measure *result, uint64_t seed) {
    static const int widths[] = {4, 8};
    for (int k = 0; k < 40; k++) {
        int bits = widths[k % 2], limit = (1 << (bits - 1)) - 1;
        double unit = ldexp(1, (int)sinkproof_draw_from_to(&seed, 0, 20) - 10);
        double whole = (double)sinkproof_draw_from_to(&seed, 0, (size_t)limit - 1);
        double x[2] = {unit * limit, unit * (whole + 0.5)}, kept[2];
        double scale = sinkproof_quantise(bits, 2, x, kept);
        for (int i = 0; i < 2; i++)
            verify_add_exact(result, fabs(kept[i] - x[i]), sinkproof_quantise_most(bits, scale));
    }
}
