// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks roundings in other places and functions with other errors (bound.norm-rounded,
// bound.unnormalised, bound.unrounded, bound.exp-growing, bound.quotient, bound.form-running-angle,
// bound.form-scaled-first): float32 arithmetic as in engines, against the enclosed real value,
// within the set of a policy that admits it. The policies make the rounding optional, so that the
// real value is inside.
#include "audit/verify/verify_near.h"

#include "proofs/bounds/bounds.h"
#include "proofs/truth/truth.h"
#include "ref/stages.h"

#include <math.h>

enum { ROUNDS = 60, MOST = 200, DIM = VERIFY_TURNED, HALF = DIM / 2 };
static const double RATE = 1e-9;

static float narrow_to_bf16(float x) {
    return (float)sinkproof_round(SINKPROOF_BF16, (double)x);
}

// ---- a norm rounded before its weight --------------------------------------------------------

void verify_norm_rounded(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32,A1.norm=bf16?");
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 1, MOST);
        double scale[MOST], x[MOST], value[MOST], common;
        float square = 0;
        sinkproof_honest known[MOST], set[MOST];
        for (size_t i = 0; i < n; i++) {
            scale[i] = (float)between(&seed, -2, 2), x[i] = (float)between(&seed, -30, 30);
            known[i] = sinkproof_exact_set(x[i]);
            square += (float)x[i] * (float)x[i];
        }
        float root = 1 / sqrtf(square / (float)n + 1e-5f);
        for (size_t i = 0; i < n; i++) {
            float normed = (float)x[i] * root;
            value[i] = (round % 3 > 0 ? narrow_to_bf16(normed) : normed) * (float)scale[i];
        }
        sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_F64,
                              .count = 1,
                              .rows = 1,
                              .cols = n,
                              .data = (const uint8_t *)scale,
                              .stack_stride = n,
                              .row_stride = n,
                              .col_stride = 1};
        arb_ptr in = balls_from_doubles(x, n), truth = _arb_vec_init((slong)n);
        sinkproof_truth_rmsnorm(truth, in, 1, &w, 1e-5, VERIFY_BITS);
        sinkproof_setting s = sinkproof_setting_for(&policy, n, RATE);
        sinkproof_honest_rmsnorm(&s, AT_A1, &(sinkproof_norm){n, scale, 1e-5}, known, set, &common);
        verify_add_set_values(result, truth, set, value, n);
        _arb_vec_clear(in, (slong)n);
        _arb_vec_clear(truth, (slong)n);
    }
}

// ---- weights ---------------------------------------------------------------------------------

// The exponentials of n scores and of the sink, shifted by the row's maximum.
typedef float (*exponential)(float x);

static float exp_by_exp2(float x) { // 2^(x log2 e), the product rounded
    return exp2f(x * 0x1.715476p0f);
}

static void measure_weights(verify_measure *result, uint64_t seed, const char *name,
                            exponential e_to, bool rounds) {
    sinkproof_policy policy = policy_named(name);
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 1, MOST);
        double spread = round % 3 == 0 ? 60 : 4, z[MOST + 1], value[MOST + 1], common;
        float m = -INFINITY, sum = 0, e[MOST + 1];
        sinkproof_honest known[MOST], set[MOST + 1];
        for (size_t j = 0; j <= n; j++) {
            float score = (float)between(&seed, -spread, spread);
            z[j] = score, m = score > m ? score : m;
            if (j < n) known[j] = sinkproof_exact_set(z[j]);
        }
        for (size_t j = 0; j <= n; j++) sum += e[j] = e_to((float)z[j] - m);
        for (size_t j = 0; j <= n; j++)
            value[j] = (rounds && j < n && round % 2 ? narrow_to_bf16(e[j]) : e[j]) / sum;
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

void verify_unnormalised(verify_measure *result, uint64_t seed) {
    measure_weights(result, seed, "f32,A9.form=definition,A9.unnorm=bf16?", expf, true);
}
void verify_exp_growing(verify_measure *result, uint64_t seed) {
    measure_weights(result, seed, "f32,A9.form=definition,exp=3ulp+0.62|x|", exp_by_exp2, false);
}

// Weights that are divided with 1.9 ulp, or multiplied by a reciprocal of 0.95 ulp, as on a GPU.
void verify_quotient(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32,A9.form=definition,div=2ulp,rcp=1ulp");
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = sinkproof_draw_from_to(&seed, 1, MOST);
        double z[MOST + 1], value[MOST + 1], common;
        float m = -INFINITY, sum = 0, e[MOST + 1];
        sinkproof_honest known[MOST + 1], set[MOST + 1];
        for (size_t j = 0; j <= n; j++) {
            float score = (float)between(&seed, -4, 4);
            z[j] = score, m = score > m ? score : m, known[j] = sinkproof_exact_set(z[j]);
        }
        for (size_t j = 0; j <= n; j++) sum += e[j] = expf((float)z[j] - m);
        int side = round % 4 < 2 ? 1 : -1;
        float inverse = farthest_float(1 / (double)sum, 0.95, side);
        for (size_t j = 0; j <= n; j++)
            value[j] = round % 2 ? (double)(e[j] * inverse)
                                 : (double)farthest_float((double)e[j] / (double)sum, 1.9, side);
        arb_ptr in = balls_from_doubles(z, n + 1), truth = _arb_vec_init((slong)n + 1);
        sinkproof_truth_softmax_sink(truth, truth + n, in, n, in + n, VERIFY_BITS);
        sinkproof_setting s = sinkproof_setting_for(&policy, n + 1, RATE);
        must(sinkproof_honest_softmax(&s, AT_A9, n, known, known[n], set, &common));
        verify_add_set_values(result, truth, set, value, n + 1);
        _arb_vec_clear(in, (slong)n + 1);
        _arb_vec_clear(truth, (slong)n + 1);
    }
}

// ---- a value read before it is rounded -------------------------------------------------------

// The value before rounding is enclosed; the stored value is one rounding away, and may be read
// too.
static void measure_unrounded(verify_measure *result, uint64_t seed, bool as_stored) {
    static const sinkproof_format formats[] = {SINKPROOF_BF16, SINKPROOF_F16, SINKPROOF_F32};
    for (int round = 0; round < 10 * ROUNDS; round++) {
        sinkproof_format format = formats[round % 3];
        double at_hand =
            between(&seed, -1, 1) * exp2((int)sinkproof_draw_from_to(&seed, 0, 20) - 10);
        double stored = sinkproof_round(format, at_hand), width = fabs(at_hand) * 0x1p-20;
        sinkproof_honest known = sinkproof_exact_set(at_hand);
        known.lo -= width, known.hi += width;
        sinkproof_honest set = sinkproof_honest_read(format, stored, known);
        double end = stored > at_hand ? known.lo : known.hi;
        if (sinkproof_round(format, end) != stored) end = at_hand;
        arb_ptr truth = balls_from_doubles(&at_hand, 1);
        verify_add_set_values(result, truth, &set, as_stored ? &stored : &end, 1);
        _arb_vec_clear(truth, 1);
    }
}

void verify_unrounded(verify_measure *result, uint64_t seed) {
    measure_unrounded(result, seed, true);
}
// The unrounded value at the end of its interval that is farther from the stored value.
void verify_near_unrounded(verify_measure *result, uint64_t seed) {
    measure_unrounded(result, seed, false);
}

// ---- rotations -------------------------------------------------------------------------------

sinkproof_config verify_turned_config(void) {
    return (sinkproof_config){.head_dim = DIM,
                              .rotation.theta = 150000,
                              .rotation.factor = 32,
                              .rotation.beta_fast = 32,
                              .rotation.beta_slow = 1,
                              .rotation.original_context = 4096,
                              .rotation.truncate = true}; // its ends are whole numbers
}

// n, n s, (n s) s, ...: the angle of each pair by repeated products, interpolated by the ramp.
static void running_angles(const sinkproof_config *config, int32_t position, float angle[HALF]) {
    double low, high;
    sinkproof_yarn_range(config, true, &low, &high);
    float ratio = powf((float)config->rotation.theta, -2.0f / DIM), theta = (float)position;
    for (size_t i = 0; i < HALF; i++, theta *= ratio) {
        float ramp = ((float)i - (float)low) / (float)(high - low);
        float keep = 1 - fminf(fmaxf(ramp, 0), 1);
        angle[i] = theta * (1 / (float)config->rotation.factor) * (1 - keep) + theta * keep;
    }
}

// Float32 tables of one position from its angles, times a factor; x is turned by them.
static void turn_pair_table(const float angle[HALF], float factor, const double *x, float before,
                            double y[DIM]) {
    for (size_t i = 0; i < HALF; i++) {
        float c = cosf(angle[i]) * factor, s = sinf(angle[i]) * factor;
        float a = (float)x[i] * before, b = (float)x[i + HALF] * before;
        y[i] = a * c - b * s, y[i + HALF] = b * c + a * s;
    }
}

void verify_compare_turned(verify_measure *result, const sinkproof_policy *policy,
                           const sinkproof_config *config, int32_t position, bool first,
                           const float *angle_i, const double *x_d) {
    double y[DIM];
    float concentration = (float)sinkproof_yarn_concentration(config);
    sinkproof_honest known[DIM], set[DIM], work[2 * DIM], table[4][HALF];
    sinkproof_setting s = sinkproof_setting_for(policy, DIM, RATE);
    for (size_t d = 0; d < DIM; d++) known[d] = sinkproof_exact_set(x_d[d]);
    turn_pair_table(angle_i, first ? 1 : concentration, x_d, first ? concentration : 1, y);
    sinkproof_truth_yarn yarn;
    sinkproof_truth_yarn_init(&yarn, config, VERIFY_BITS);
    arb_ptr in = balls_from_doubles(x_d, DIM), truth = _arb_vec_init(DIM);
    sinkproof_truth_rope(truth, in, 1, 1, &position, &yarn, VERIFY_BITS);
    sinkproof_honest_rope_table(&s, config, position, table[0], table[1]);
    sinkproof_honest_rope_plain(&s, config, position, table[2], table[3]);
    const sinkproof_turns turns = first ? (sinkproof_turns){NULL, NULL, table[2], table[3]}
                                        : (sinkproof_turns){table[0], table[1], NULL, NULL};
    sinkproof_honest_turn(&s, config, &turns, known, work, set);
    verify_add_set_values(result, truth, set, y, DIM);
    _arb_vec_clear(in, DIM);
    _arb_vec_clear(truth, DIM);
    sinkproof_truth_yarn_clear(&yarn);
}

static void measure_rotation(verify_measure *result, uint64_t *seed, const char *name,
                             int32_t position, bool running, bool first) {
    sinkproof_policy policy = policy_named(name);
    sinkproof_config config = verify_turned_config();
    double freq[HALF], x[DIM];
    float angle[HALF];
    for (size_t d = 0; d < DIM; d++) x[d] = (float)between(seed, -4, 4);
    sinkproof_yarn_frequencies(&policy, &config, freq);
    for (size_t i = 0; i < HALF; i++) angle[i] = (float)position * (float)freq[i];
    if (running) running_angles(&config, position, angle);
    verify_compare_turned(result, &policy, &config, position, first, angle, x);
}

static const int32_t positions[] = {0, 1, 2, 127, 1000, 4095};

// The same next to powers: their angle is near the real one, from which the product drifts away.
void verify_running_angle(verify_measure *result, uint64_t seed) {
    for (size_t p = 0; p < sizeof positions / sizeof *positions; p++)
        measure_rotation(result, &seed, "f32,A4.freq.form=powers|running-product", positions[p],
                         true, false);
}
void verify_scaled_first(verify_measure *result, uint64_t seed) {
    for (size_t p = 0; p < sizeof positions / sizeof *positions; p++)
        measure_rotation(result, &seed, "f32,A4.form=scaled-first", positions[p], false, true);
}
