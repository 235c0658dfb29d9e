// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The clamped SwiGLU (bound.swiglu): float32 engines that divide or multiply by a reciprocal, in
// several associations where the policy leaves them open, exp with the largest declared error,
// gates at and around the clamp. The truth is inside the set of real-f64.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20251229;

static sinkproof_config released(void) {
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    return config;
}

// Numbers of either side of each branch, then drawn ones.
static double draw_input(uint64_t *state, sinkproof_format format, bool gate) {
    double ulp = sinkproof_ulp(format, 7);
    const double edges[] = {-100,     -60, -7 - ulp, -7,      -7 + ulp, -1,      -0x1p-20, 0,
                            0x1p-100, 1,   2.5,      7 - ulp, 7,        7 + ulp, 100};
    uint64_t kind = draw(state) % 4;
    if (kind == 0) return edges[draw_below(state, sizeof edges / sizeof *edges)];
    if (kind == 1 && gate) return sinkproof_round(format, -60 * draw_unit(state));
    if (kind == 2 && !gate) // u + 1 cancels
        return sinkproof_round(format, -1 + ldexp(draw_gauss(state), -(int)(draw(state) % 30)));
    return draw_from(state, format, 4);
}

// ---- the engine ---------------------------------------------------------------------------------

typedef enum association {
    SIGMOID,
    DIVIDED,
    EXP_OVER,
    UP_FIRST,
    FUSED_UP,
    ALL_OVER,
    FORMS
} association;

typedef struct variant {
    association form;
    leaning lean;
    bool exact_alpha, reciprocal;
    double declared;
    int keep; // bit k: leave out optional rounding k
} variant;

static variant draw_variant(uint64_t *state, const sinkproof_policy *policy) {
    uint64_t w = draw(state);
    return (variant){.form = (association)(w % FORMS),
                     .lean = (leaning)((w >> 8) % LEANS),
                     .exact_alpha = (w >> 16 & 1) && policy->at[AT_M8_ALPHA].optional,
                     .reciprocal = w >> 17 & 1,
                     .declared = policy->ulp[SINKPROOF_EXP],
                     .keep = (int)(w >> 32)};
}

static float stored(const sinkproof_policy *policy, const variant *v, sinkproof_point point,
                    float x) {
    sinkproof_rounding at = policy->at[point];
    bool keep = at.optional && (v->keep >> (point - AT_M8_ALPHA) & 1);
    return keep ? x : (float)sinkproof_round(at.format, x);
}

static float exp_of(uint64_t *state, const variant *v, float t) {
    return fmaxf(within_ulps(state, exp((double)t), t == 0 ? 0 : v->declared, v->lean), 0);
}

static float over(const variant *v, float a, float b) {
    return v->reciprocal ? a * (1 / b) : a / b;
}

// Forms that evaluate everything in one expression are for policies that fix no point inside.
static double one_expression(const variant *v, float g, float up, float e) {
    float one_up = up + 1;
    if (v->form == UP_FIRST) return g * (one_up * over(v, 1, 1 + e));
    if (v->form == FUSED_UP) {
        float swish = over(v, g, 1 + e);
        return fmaf(swish, up, swish);
    }
    return over(v, g * one_up, 1 + e);
}

static double engine(uint64_t *state, const variant *v, const sinkproof_policy *policy,
                     double alpha, float gate, float up) {
    float g = gate > 7 ? 7 : gate, l = up > 7 ? 7 : up < -7 ? -7 : up;
    float t = v->exact_alpha ? (float)(alpha * (double)g) : (float)alpha * g;
    t = stored(policy, v, AT_M8_SCALED, t);
    float e = exp_of(state, v, -t);
    bool open = policy->at[AT_M8_SWISH].optional;
    double y;
    if (open && v->form >= UP_FIRST) {
        y = one_expression(v, g, l, e);
    } else {
        float swish;
        if (open && v->form == DIVIDED) {
            swish = over(v, g, 1 + e);
        } else {
            float grown = v->form == EXP_OVER && t < 0 ? exp_of(state, v, t) : 0;
            float sigmoid =
                v->form == EXP_OVER && t < 0 ? over(v, grown, 1 + grown) : over(v, 1, 1 + e);
            swish = g * stored(policy, v, AT_M8_SIGMOID, sigmoid);
        }
        swish = stored(policy, v, AT_M8_SWISH, swish);
        y = swish * stored(policy, v, AT_M8_UP, l + 1);
    }
    return sinkproof_round(policy->at[AT_M8].format, y);
}

// ---- inside under every policy ------------------------------------------------------------------

static void engines_inside(const char *policy_name, bool only_steps) {
    enum { DRAWS = 25000 };
    sinkproof_config config = released();
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_format format = policy.at[AT_M8].format;
    sinkproof_setting s = sinkproof_setting_for(&policy, DRAWS, STANDARD_RATE);
    uint64_t state = SEED;
    tally by_form[FORMS];
    memset(by_form, 0, sizeof by_form);
    for (int i = 0; i < DRAWS; i++) {
        double gate = draw_input(&state, format, true), up = draw_input(&state, format, false);
        sinkproof_honest z = sinkproof_honest_swiglu(&s, config.swiglu, sinkproof_exact_set(gate),
                                                     sinkproof_exact_set(up));
        for (int e = 0; e < 6; e++) {
            variant v = draw_variant(&state, &policy);
            double y = engine(&state, &v, &policy, config.swiglu.alpha, (float)gate, (float)up);
            by_form[v.form].floor = 0x1p-120;
            meet(&by_form[v.form], &z, y);
        }
    }
    static const char *const forms[FORMS] = {"1/(1+e)",   "g/(1+e)",    "e/(1+e)",
                                             "g((u+1)s)", "fma(s,u,s)", "g(u+1)/(1+e)"};
    for (int f = 0; f < (only_steps ? 1 : FORMS); f++) {
        char what[120];
        snprintf(what, sizeof what, "%s, %s", policy_name, forms[f]);
        inside_ok(&by_form[f], "bound.swiglu", what);
    }
}

static void inputs_with_freedom(void) {
    enum { DRAWS = 20000 };
    sinkproof_config config = released();
    sinkproof_policy policy = policy_named("f32,M8.form=sigmoid");
    sinkproof_setting s = sinkproof_setting_for(&policy, DRAWS, STANDARD_RATE);
    uint64_t state = SEED + 1;
    tally t = {.floor = 0x1p-120};
    for (int i = 0; i < DRAWS; i++) {
        double x[2] = {draw_input(&state, SINKPROOF_F32, true),
                       draw_input(&state, SINKPROOF_F32, false)};
        sinkproof_honest x_k[2];
        float own[2];
        for (int k = 0; k < 2; k++) {
            double width = (fabs(x[k]) + 1) * ldexp(1, -2 - i % 20);
            x_k[k] = sinkproof_set_around(x[k], width, width, 0, 0);
            own[k] = (float)(x[k] + (2 * draw_unit(&state) - 1) * width);
            if (own[k] > x_k[k].hi || own[k] < x_k[k].lo) own[k] = (float)x[k];
        }
        sinkproof_honest z = sinkproof_honest_swiglu(&s, config.swiglu, x_k[0], x_k[1]);
        variant v = draw_variant(&state, &policy);
        meet(&t, &z, engine(&state, &v, &policy, config.swiglu.alpha, own[0], own[1]));
    }
    inside_ok(&t, "bound.swiglu", "inputs with freedom");
}

static void truth_inside(void) {
    enum { DRAWS = 4000 };
    sinkproof_config config = released();
    sinkproof_policy policy = policy_named("real-f64");
    sinkproof_setting s = sinkproof_setting_for(&policy, DRAWS, STANDARD_RATE);
    uint64_t state = SEED + 2;
    size_t outside = 0;
    double worst = 0, worst_gate = 0;
    arb_ptr in = _arb_vec_init(2);
    arb_t out;
    arb_init(out);
    for (int i = 0; i < DRAWS; i++) {
        double gate = draw_input(&state, i % 2 ? SINKPROOF_F64 : SINKPROOF_F32, true);
        double up = draw_input(&state, i % 2 ? SINKPROOF_F64 : SINKPROOF_F32, false);
        arb_set_d(in, gate), arb_set_d(in + 1, up);
        sinkproof_truth_swiglu(out, in, 1, config.swiglu, 300);
        sinkproof_honest z = sinkproof_honest_swiglu(&s, config.swiglu, sinkproof_exact_set(gate),
                                                     sinkproof_exact_set(up));
        outside += !set_holds(&z, out);
        if (z.lo == z.hi) continue;
        double share = share_of(&z, arf_get_d(arb_midref(out), ARF_RND_NEAR));
        if (sinkproof_is_worse(worst, share)) worst = share, worst_gate = gate;
    }
    arb_clear(out), _arb_vec_clear(in, 2);
    ok(outside == 0,
       "bound.swiglu the truth in the set of real-f64 worst=%.3g bound=1 outside=%zu at gate %a",
       worst, outside, worst_gate);
}

// ---- a sigmoid by tanh --------------------------------------------------------------------------

typedef enum by_tanh { SUM_OF_HALVES, HALF_OF_SUM, HALF_GATE, HALF_GATE_FUSED, BY_TANH } by_tanh;

static float tanh_of(uint64_t *state, const variant *v, float x) {
    return within_ulps(state, tanh((double)x), 2, v->lean);
}

static double tanh_engine(uint64_t *state, const variant *v, by_tanh how, float gate, float up,
                          sinkproof_format held) {
    float g = gate > 7 ? 7 : gate, l = up > 7 ? 7 : up < -7 ? -7 : up, h = 0.5f * g;
    float th = tanh_of(state, v, 0.5f * (1.702f * g));
    th = (float)sinkproof_round(held, th);
    float swish = how == SUM_OF_HALVES ? g * (0.5f * th + 0.5f)
                  : how == HALF_OF_SUM ? g * (0.5f * (1 + th))
                  : how == HALF_GATE   ? h * th + h
                                       : fmaf(h, th, h);
    return swish * (l + 1);
}

// Inside under its own form and under any, outside the definition's set at gates of -3 and below;
// tanh held in f16 leaves every set. The set is as wide as the form is coarse, no wider.
static void sigmoid_by_tanh(void) {
    enum { DRAWS = 30000 };
    static const char *const policies[] = {"f32,M8.form=tanh", "f32", "f32,M8.form=sigmoid"};
    sinkproof_config config = released();
    tally t[3], slip = {0};
    memset(t, 0, sizeof t);
    sinkproof_drift drift = {0};
    size_t near_three = 0;
    uint64_t state = SEED + 3;
    for (int i = 0; i < DRAWS; i++) {
        double gate = draw_input(&state, SINKPROOF_F32, true);
        double up = draw_input(&state, SINKPROOF_F32, false);
        variant v = draw_variant(&state, &(sinkproof_policy){0});
        double y =
            tanh_engine(&state, &v, (by_tanh)(i % BY_TANH), (float)gate, (float)up, SINKPROOF_F32);
        double wrong =
            tanh_engine(&state, &v, (by_tanh)(i % BY_TANH), (float)gate, (float)up, SINKPROOF_F16);
        for (int p = 0; p < 3; p++) {
            sinkproof_policy policy = policy_named(policies[p]);
            sinkproof_setting s = sinkproof_setting_for(&policy, DRAWS, STANDARD_RATE);
            sinkproof_honest z = sinkproof_honest_swiglu(
                &s, config.swiglu, sinkproof_exact_set(gate), sinkproof_exact_set(up));
            size_t before = t[p].outside;
            meet(&t[p], &z, y);
            if (p == 2 && gate > -3) near_three += t[p].outside - before;
            if (p == 1) meet(&slip, &z, wrong), sinkproof_drift_row(&drift, 1, &y, &z, 0, 0);
        }
    }
    sinkproof_drift_result r;
    must(sinkproof_drift_judge(&drift, STANDARD_RATE, &r));
    sinkproof_drift_free(&drift);
    inside_ok(&t[0], "bound.form-tanh", policies[0]);
    inside_ok(&t[1], "bound.form-tanh", policies[1]);
    ok(t[1].unlikely == 0 && fabs(r.gain) <= r.limit,
       "bound.form-tanh is likely: unlikely=%zu, and does not drift worst=%.3g bound=%.3g",
       t[1].unlikely, fabs(r.gain), r.limit);
    ok(t[2].outside > 0,
       "bound.form-tanh leaves the definition's set: outside=%zu of=%zu, %zu of "
       "them at gates above -3",
       t[2].outside, t[2].checked, near_three);
    ok(slip.outside > 0, "bound.form-tanh tanh in f16 leaves the widest set: outside=%zu of=%zu",
       slip.outside, slip.checked);
}

int main(void) {
    engines_inside("f32,M8.form=sigmoid", false);
    engines_inside("f32,M8.form=sigmoid,M8.scaled=f32,M8.sigmoid=f32,M8.swish=f32,M8.up=f32", true);
    engines_inside("openai-bf16", true);
    engines_inside("hf-bf16", true);
    engines_inside("bf16,M8.form=sigmoid", false);
    inputs_with_freedom();
    truth_inside();
    sigmoid_by_tanh();
    return tap_done();
}
