// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// GELU by tanh (gelu.tanh, bound.gelu). Inside the set: the reference, the enclosed value, and
// float32 engines that group the factors in several ways, with the largest declared errors of tanh
// and pow; under hf-bf16, engines that round every step to bfloat16. Outside: the exact GELU and
// other mistakes.
#include "tests/shared/bounds_engine.h"

#include "proofs/truth/truth.h"
#include "ref/stages.h"

static const uint64_t SEED = 20260119;

static double draw_input(uint64_t *state, sinkproof_format format) {
    static const double edges[] = {0, -0.0, 1, -1, 10, -10, 100, -100, 0x1p-60, -0x1p-60, -5.5, 4};
    uint64_t kind = draw(state) % 8;
    if (kind == 0) return edges[draw_below(state, sizeof edges / sizeof *edges)];
    return draw_from(state, format, kind < 3 ? 0.1 : kind < 7 ? 2 : 12);
}

static void test_reference(void) {
    sinkproof_policy policy = policy_named("real-f64");
    sinkproof_setting s = sinkproof_setting_for(&policy, 20000, STANDARD_RATE);
    uint64_t state = SEED;
    tally t = {0}, enclosed = {0};
    arb_t in, out;
    balls_init(in, out);
    for (int i = 0; i < 20000; i++) {
        double x = draw_input(&state, SINKPROOF_F32);
        sinkproof_honest set = sinkproof_honest_gelu(&s, sinkproof_exact_set(x));
        meet(&t, &set, sinkproof_gelu_one(&policy, x));
        if (i % 16 != 0) continue;
        arb_set_d(in, x);
        sinkproof_truth_gelu_tanh(out, in, 1, 200);
        meet(&enclosed, &set, arf_get_d(arb_midref(out), ARF_RND_NEAR));
    }
    balls_clear(in, out);
    inside_ok(&t, "gelu.tanh bound.gelu", "ref in binary64");
    inside_ok(&enclosed, "gelu.tanh bound.gelu", "the enclosed value");
}

static float tanh_of(uint64_t *state, const sinkproof_policy *p, leaning lean, float t) {
    float y = within_ulps(state, tanh((double)t), t == 0 ? 0 : p->ulp[SINKPROOF_TANH], lean);
    return y > 1 ? 1 : y < -1 ? -1 : y;
}

static float engine(uint64_t *state, const sinkproof_policy *p, int form, leaning lean, float x) {
    const float c = 0.044715f, root = 0.7978845608028654f;
    float cube =
        form & 1 ? within_ulps(state, pow((double)x, 3), x == 0 ? 0 : p->ulp[SINKPROOF_POW], lean)
                 : x * x * x;
    float inner = form / 2 % 3 == 0   ? root * (x + c * cube)
                  : form / 2 % 3 == 1 ? x * (root + root * c * (x * x))
                                      : root * x * fmaf(c * x, x, 1);
    float one = 1 + tanh_of(state, p, lean, inner);
    return form / 6 % 2 == 0 ? 0.5f * x * one : x * (0.5f * one);
}

static void engines_inside(const char *policy_name) {
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_format stored = policy.at[AT_M8].format;
    sinkproof_setting s = sinkproof_setting_for(&policy, 40000, STANDARD_RATE);
    uint64_t state = SEED + 1;
    tally t = {0};
    for (int i = 0; i < 40000; i++) {
        float x = (float)draw_input(&state, stored);
        sinkproof_honest set = sinkproof_honest_gelu(&s, sinkproof_exact_set(x));
        meet(&t, &set,
             sinkproof_round(stored, engine(&state, &policy, i % 12, (leaning)(i % LEANS), x)));
    }
    inside_ok(&t, "bound.gelu", policy_name);
}

// A model that makes every step a tensor of bfloat16, as transformers does.
static void steps_inside(void) {
    sinkproof_policy policy = policy_named("hf-bf16");
    sinkproof_setting s = sinkproof_setting_for(&policy, 40000, STANDARD_RATE);
    uint64_t state = SEED + 2;
    size_t apart = 0, single = 0;
    tally t = {0};
    for (int i = 0; i < 40000; i++) {
        double x = draw_input(&state, SINKPROOF_BF16);
        sinkproof_format b = SINKPROOF_BF16;
        double cube = sinkproof_round(b, (float)(sinkproof_round(b, x * x) * x));
        double sum = sinkproof_round(b, x + sinkproof_round(b, (float)0.044715f * cube));
        double inner = sinkproof_round(b, (double)0.7978845608028654f * sum);
        double one = sinkproof_round(b, 1 + sinkproof_round(b, (double)tanhf((float)inner)));
        double y = sinkproof_round(b, 0.5 * x * one);
        sinkproof_honest set = sinkproof_honest_gelu(&s, sinkproof_exact_set(x));
        meet(&t, &set, y);
        single += set.lo == set.hi;
        apart += sinkproof_gelu_one(&policy, x) != y;
    }
    inside_ok(&t, "gelu.tanh bound.gelu", "every step in bfloat16");
    ok(apart == 0 && single == 40000,
       "gelu.tanh bound.gelu ref under hf-bf16 worst=%zu bound=0, sets of one value: %zu of 40000",
       apart, single);
}

typedef double wrong(double x);
static double exact(double x) {
    return x / 2 * (1 + erf(x / sqrt(2)));
}
static double no_cube(double x) {
    return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * x));
}
static double by_sigmoid(double x) {
    return x / (1 + exp(-1.702 * x));
}
static double relu(double x) {
    return x > 0 ? x : 0;
}

static void mistakes_outside(const char *policy_name) {
    static const struct {
        const char *name;
        wrong *of;
    } mistakes[] = {{"the exact GELU", exact},
                    {"no cubic term", no_cube},
                    {"x sigmoid(1.702 x)", by_sigmoid},
                    {"ReLU", relu}};
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_format stored = policy.at[AT_M8].format;
    sinkproof_setting s = sinkproof_setting_for(&policy, 2000, STANDARD_RATE);
    for (size_t m = 0; m < sizeof mistakes / sizeof *mistakes; m++) {
        uint64_t state = SEED + 3;
        size_t outside = 0;
        for (int i = 0; i < 2000; i++) {
            double x = draw_from(&state, stored, 2);
            double y = sinkproof_round(stored, mistakes[m].of(x));
            sinkproof_honest set = sinkproof_honest_gelu(&s, sinkproof_exact_set(x));
            outside += !(y >= set.lo && y <= set.hi);
        }
        ok(outside > 100, "bound.gelu %s, %s: %zu of 2000 outside", policy_name, mistakes[m].name,
           outside);
    }
}

int main(void) {
    test_reference();
    engines_inside("f32");
    engines_inside("bf16");
    steps_inside();
    mistakes_outside("f32");
    mistakes_outside("hf-bf16");
    return tap_done();
}
