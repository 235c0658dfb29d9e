// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sets at the corner cases of their rules: a set without bounds where a function is flat, a
// rounding that leaves its format on either side, variances of exactly 1, a factor that its format
// cannot hold. 0.01 CPU seconds.
#include "proofs/bounds/rope.h"
#include "tests/shared/formulas.h"

#define MADE "bound.swiglu bound.gelu bound.rope"

static bool is_number(const sinkproof_honest *x) {
    return x->lo <= x->hi && x->likely_lo <= x->likely_hi && x->mid == x->mid && x->var >= 0 &&
           x->bias >= 0 && x->order >= 0;
}

// A gate whose order of summation may add anything: where the sigmoid and tanh are flat, infinity
// times 0 is no number, and nothing of the freedom comes through.
static void flat(void) {
    sinkproof_config config;
    must(sinkproof_config_named("gpt-oss-20b", &config));
    config.swiglu.limit = 1e6;
    sinkproof_policy policy = policy_named("real-f64,ftz=none");
    sinkproof_setting s = setting(&policy);
    size_t off = 0, asked = 0;
    for (int side = -1; side <= 1; side += 2)
        for (double size = 500; size <= 5000; size *= 10) {
            sinkproof_honest gate = sinkproof_exact_set(side * size);
            gate.lo -= 1, gate.hi += 1, gate.var = 0.25, gate.order = INFINITY;
            sinkproof_honest y =
                sinkproof_honest_swiglu(&s, config.swiglu, gate, sinkproof_exact_set(0.5));
            off += !is_number(&y);
            y = sinkproof_honest_gelu(&s, gate);
            off += !is_number(&y);
            asked += 2;
        }
    ok(off == 0 && asked > 0,
       "bound.swiglu bound.gelu boundless order where they are flat: "
       "worst=%zu bound=0 of=%zu",
       off, asked);
}

// Where the exponential may leave its format the quotient may be 0 each time, or 1 / (1 + e^|t|):
// that much may lean. With up = 0 the activation is the gate times it.
static void left_the_format(void) {
    sinkproof_config config;
    must(sinkproof_config_named("gpt-oss-20b", &config));
    config.swiglu.alpha = 1, config.swiglu.limit = 100; // no gate here is clamped
    sinkproof_policy policy = policy_named("real-f64,ftz=none,M8.exp=f16?");
    policy.ulp[SINKPROOF_EXP] = 1;
    sinkproof_setting s = setting(&policy);
    size_t off = 0, asked = 0;
    for (double gate = 11.5; gate <= 15; gate += 0.25)
        for (int side = -1; side <= 1; side += 2) {
            sinkproof_honest y = sinkproof_honest_swiglu(
                &s, config.swiglu, sinkproof_exact_set(side * gate), sinkproof_exact_set(0));
            off += !(y.bias >= gate / (1 + exp(gate)) && y.bias < INFINITY);
            asked++;
        }
    ok(off == 0 && asked > 0,
       "bound.sigmoid-exp the lean where e^|t| may be infinite is what is lost: worst=%zu bound=0 "
       "of=%zu",
       off, asked);
}

// An optional rounding: half a step may lean, or all that lies beyond the format, on either side.
static void beyond_the_format(void) {
    sinkproof_policy policy = policy_named("real-f64,ftz=none,M5=f16?");
    sinkproof_setting s = setting(&policy);
    size_t off = 0;
    for (int side = -1; side <= 1; side += 2) {
        sinkproof_honest y = sinkproof_honest_at(&s, AT_M5, sinkproof_exact_set(side * 0x1p17));
        off += !(y.bias == INFINITY);
        y = sinkproof_honest_at(&s, AT_M5, sinkproof_exact_set(side * (1 + 0x1p-13)));
        off += !(y.bias == 0x1p-11);
    }
    ok(off == 0,
       MADE " an optional rounding's lean, in and out of float16: "
            "worst=%zu bound=0",
       off);
}

// A variance of exactly 1 is one like others: of a product, and after a rounding.
static void unit_variance(void) {
    sinkproof_honest x = {-4 - 0x1p-12, 4, -2, 3, 1, 1, 1, 0, 0};
    sinkproof_honest p = sinkproof_honest_mul(x, sinkproof_exact_set(2));
    ok(p.var == 4 && p.spread == 4 && p.order == 0,
       MADE " a product with a variance of 1: var=%.17g order=%.17g", p.var, p.order);
    sinkproof_honest y = sinkproof_honest_rounded(SINKPROOF_BF16, x);
    double ulp = sinkproof_ulp(SINKPROOF_BF16, 1);
    ok(y.var == 1 + fmin(0.8 * ulp, ulp * ulp / 2), MADE " a rounded variance of 1: var=%.17g",
       y.var);
}

// A frequency whose steps are rounded to bfloat16, of a factor of more bits than that: step by
// step.
static void rounded_factor(void) {
    sinkproof_config config;
    must(sinkproof_config_named("gpt-oss-20b", &config));
    sinkproof_policy policy = policy_named("real-f64,ftz=none,A4.freq=bf16");
    sinkproof_setting s = setting(&policy);
    size_t off = 0, differ = 0, pairs = config.head_dim / 2;
#define R(x) sinkproof_round(SINKPROOF_BF16, (x))
    for (int k = 0; k < 16; k++) {
        config.rotation.factor = 32 + k / 16.0 + 0x1p-9;
        double low, high;
        yarn_ramp_ends(&s, &config, &low, &high);
        for (size_t i = 0; i < pairs; i++) {
            double ramp = R(R((double)i - R(low)) / R(high - low));
            ramp = fmin(fmax(ramp, 0), 1);
            double exponent = R(2 * (double)i / (double)config.head_dim);
            double power = R(pow(R(config.rotation.theta), exponent)), keep = R(1 - ramp);
            double told = R(R(R(1 / R(R(config.rotation.factor) * power)) * R(1 - keep)) +
                            R(R(1 / power) * keep));
            double bare = R(R(R(1 / R(config.rotation.factor * power)) * R(1 - keep)) +
                            R(R(1 / power) * keep));
            off += !(honest_product_angle(&s, &config, 1, i).mid == told);
            differ += told != bare;
        }
    }
#undef R
    ok(off == 0 && differ > 0,
       "bound.rope frequencies of a factor that is rounded first: "
       "worst=%zu bound=0, it shows in %zu",
       off, differ);
}

int main(void) {
    flat();
    left_the_format();
    beyond_the_format();
    unit_variance();
    rounded_factor();
    return tap_done();
}
