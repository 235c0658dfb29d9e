// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The rotation (bound.rope): float32 engines whose pow, cos and sin have the largest declared
// errors, engines that keep binary64 where the policy lets them, fused or separate products, at
// positions from 0 to the end of the context. The truth is inside the set of real-f64.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20251222;
static const double positions[] = {0, 1, 2, 127, 4095, 131071};
enum { POSITIONS = sizeof positions / sizeof *positions, MOST = 64 };

// Configurations whose ramps end in different places.
typedef struct rope_shape {
    const char *name;
    sinkproof_config config;
} rope_shape;

enum { SHAPES = 5 };

static void shapes_fill(rope_shape *shapes) {
    for (int i = 0; i < SHAPES; i++)
        if (!sinkproof_config_named("gpt-oss-20b", &shapes[i].config)) abort();
    shapes[0].name = "gpt-oss-20b";
    shapes[1].name = "truncated ramp", shapes[1].config.rotation.truncate = true;
    shapes[2].name = "factor 1", shapes[2].config.rotation.factor = 1;
    shapes[3].name = "head of 2", shapes[3].config.head_dim = 2;
    shapes[4].name = "rope.llama3 Llama 3";
    shapes[4].config.rotation = (sinkproof_rotation){.kind = SINKPROOF_LLAMA3_ROTATION,
                                                     .theta = 500000,
                                                     .factor = 8,
                                                     .beta_fast = 4,
                                                     .beta_slow = 1,
                                                     .original_context = 8192};
}

// ---- the engine
// -----------------------------------------------------------------------------------

typedef struct variant {
    leaning pow_lean, wave_lean;
    bool precise, fused, keep_products, keep_table; // what an optional rounding point may leave out
} variant;

static variant draw_variant(uint64_t *state) {
    uint64_t w = draw(state);
    return (variant){.pow_lean = (leaning)(w % LEANS),
                     .wave_lean = (leaning)((w >> 8) % LEANS),
                     .precise = w >> 16 & 1,
                     .fused = w >> 17 & 1,
                     .keep_products = w >> 18 & 1,
                     .keep_table = w >> 19 & 1};
}

static bool is_optional(const sinkproof_policy *policy, sinkproof_point point) {
    return policy->at[point].optional;
}

static void ramp_ends(const sinkproof_config *c, double *low, double *high) {
    const double two_pi = 6.283185307179586;
    double base = 2 * log(c->rotation.theta), d = (double)c->head_dim;
    *low = d * log((double)c->rotation.original_context / (c->rotation.beta_fast * two_pi)) / base;
    *high = d * log((double)c->rotation.original_context / (c->rotation.beta_slow * two_pi)) / base;
    if (c->rotation.truncate) *low = floor(*low), *high = ceil(*high);
    *low = fmax(*low, 0), *high = fmin(*high, d - 1);
    if (*low == *high) *high += 0.001;
}

// Llama 3's frequency as transformers computes it, in float32: by cases.
static double llama3_frequency(const sinkproof_rotation *r, float trained) {
    float wave = 6.2831855f / trained, context = (float)r->original_context,
          slow = (float)r->beta_slow, fast = (float)r->beta_fast, factor = (float)r->factor;
    if (wave > context / slow) return trained / factor;
    if (wave < context / fast) return trained;
    float keep = (context / wave - slow) / (fast - slow);
    return (1 - keep) * trained / factor + keep * trained;
}

// Every step of the published computation in float32.
static double stepped_frequency(uint64_t *state, const variant *v, const sinkproof_policy *policy,
                                const sinkproof_config *c, size_t i) {
    double low, high;
    ramp_ends(c, &low, &high);
    float exponent = (float)(2 * i) / (float)c->head_dim;
    double declared = i == 0 ? 0 : policy->ulp[SINKPROOF_POW];
    float power = within_ulps(state, pow(c->rotation.theta, (double)exponent), declared,
                              declared < 1 ? LEAN_NEAREST : v->pow_lean);
    if (c->rotation.kind == SINKPROOF_LLAMA3_ROTATION)
        return llama3_frequency(&c->rotation, 1.0f / power);
    float slow = 1.0f / ((float)c->rotation.factor * power), fast = 1.0f / power;
    float ramp = ((float)i - (float)low) / (float)(high - low);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    float keep = 1 - ramp;
    return slow * (1 - keep) + fast * keep;
}

static double precise_frequency(const sinkproof_config *c, size_t i) {
    double low, high;
    ramp_ends(c, &low, &high);
    double power = pow(c->rotation.theta, 2 * (double)i / (double)c->head_dim);
    if (c->rotation.kind == SINKPROOF_LLAMA3_ROTATION) {
        const sinkproof_rotation *r = &c->rotation;
        double turns = (double)r->original_context / (6.283185307179586 * power);
        double keep = fmin(fmax((turns - r->beta_slow) / (r->beta_fast - r->beta_slow), 0), 1);
        return ((1 - keep) / r->factor + keep) / power;
    }
    double ramp = fmin(fmax(((double)i - low) / (high - low), 0), 1);
    return ramp / (c->rotation.factor * power) + (1 - ramp) / power;
}

static void engine_table(uint64_t *state, const variant *v, const sinkproof_policy *policy,
                         const sinkproof_config *c, double position, double *c_p, double *s_p) {
    bool carries = c->rotation.factor > 1 && c->rotation.kind == SINKPROOF_YARN;
    double concentration = carries ? 0.1 * log(c->rotation.factor) + 1 : 1;
    bool precise = v->precise && is_optional(policy, AT_A4_ANGLE);
    sinkproof_rounding at = policy->at[AT_A4_COS];
    for (size_t p = 0; p < c->head_dim / 2; p++) {
        double angle =
            precise ? position * precise_frequency(c, p)
                    : (double)((float)position * (float)stepped_frequency(state, v, policy, c, p));
        double ulps = policy->ulp[SINKPROOF_SINCOS];
        float cosine = within_ulps(state, cos(angle), ulps, v->wave_lean);
        float sine = within_ulps(state, sin(angle), ulps, v->wave_lean);
        c_p[p] = cosine * (float)concentration, s_p[p] = sine * (float)concentration;
        if (v->keep_table && at.optional) continue;
        c_p[p] = sinkproof_round(at.format, c_p[p]), s_p[p] = sinkproof_round(at.format, s_p[p]);
    }
}

// a b + c d: products rounded as the policy says, or one of them fused into the sum.
static double turned(const variant *v, const sinkproof_policy *policy, double a, double b, double c,
                     double d) {
    sinkproof_rounding at = policy->at[AT_A4_PROD];
    float ab = (float)a * (float)b, cd = (float)c * (float)d;
    bool keep = at.optional && v->keep_products;
    if (keep && v->fused) return fmaf((float)a, (float)b, cd);
    if (!keep) {
        ab = (float)sinkproof_round(at.format, ab);
        cd = (float)sinkproof_round(at.format, cd);
    }
    return ab + cd;
}

// ---- inside under every policy
// ---------------------------------------------------------------------

static void engines_inside(const char *policy_name, const rope_shape *shape) {
    static sinkproof_honest c_k[MOST], s_k[MOST], x_k[MOST], y_k[MOST];
    static double c_p[MOST], s_p[MOST];
    const sinkproof_config *config = &shape->config;
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_format format = policy.at[AT_A4].format;
    size_t d = config->head_dim, half = d / 2;
    sinkproof_setting s = sinkproof_setting_for(&policy, 1000 * d, STANDARD_RATE);
    uint64_t state = SEED;
    tally table = {0}, rotation = {0};
    for (size_t i = 0; i < POSITIONS; i++) {
        sinkproof_honest_rope_table(&s, config, positions[i], c_k, s_k);
        for (int r = 0; r < 150; r++) {
            variant v = draw_variant(&state);
            engine_table(&state, &v, &policy, config, positions[i], c_p, s_p);
            for (size_t p = 0; p < half; p++) {
                meet(&table, &c_k[p], c_p[p]);
                meet(&table, &s_k[p], s_p[p]);
            }
            for (size_t k = 0; k < d; k++)
                x_k[k] = sinkproof_exact_set(draw_from(&state, format, r % 5 == 0 ? 1000 : 2));
            sinkproof_honest_rotate(&s, d, x_k, c_k, s_k, y_k);
            for (size_t p = 0; p < half; p++) {
                double a = x_k[p].mid, b = x_k[p + half].mid;
                double first = turned(&v, &policy, a, c_p[p], -b, s_p[p]);
                double second = turned(&v, &policy, b, c_p[p], a, s_p[p]);
                meet(&rotation, &y_k[p], sinkproof_round(format, first));
                meet(&rotation, &y_k[p + half], sinkproof_round(format, second));
            }
        }
    }
    char what[80];
    snprintf(what, sizeof what, "table, %s, %s", policy_name, shape->name);
    inside_ok(&table, "bound.rope", what);
    snprintf(what, sizeof what, "rotation, %s, %s", policy_name, shape->name);
    inside_ok(&rotation, "bound.rope", what);
}

// ---- the truth
// ---------------------------------------------------------------------------------------

static void truth_inside(const rope_shape *shape) {
    enum { TURNS = 40 };
    static sinkproof_honest c_k[MOST], s_k[MOST], x_k[MOST], y_k[MOST];
    const sinkproof_config *config = &shape->config;
    sinkproof_policy policy = policy_named("real-f64");
    size_t d = config->head_dim, outside = 0;
    sinkproof_setting s = sinkproof_setting_for(&policy, d, STANDARD_RATE);
    uint64_t state = SEED + 9;
    double worst = 0;
    sinkproof_truth_yarn yarn;
    sinkproof_truth_yarn_init(&yarn, config, 200);
    arb_ptr in = _arb_vec_init((slong)d), out = _arb_vec_init((slong)d);
    for (size_t t = 0; t < POSITIONS + TURNS; t++) {
        int32_t position =
            t < POSITIONS ? (int32_t)positions[t] : (int32_t)draw_below(&state, 131072);
        for (size_t k = 0; k < d; k++) {
            x_k[k] = sinkproof_exact_set(draw_from(&state, SINKPROOF_F32, 2));
            arb_set_d(in + k, x_k[k].mid);
        }
        sinkproof_honest_rope_table(&s, config, position, c_k, s_k);
        sinkproof_honest_rotate(&s, d, x_k, c_k, s_k, y_k);
        sinkproof_truth_rope(out, in, 1, 1, &position, &yarn, 200);
        for (size_t k = 0; k < d; k++) {
            outside += !set_holds(&y_k[k], out + k);
            double v = arf_get_d(arb_midref(out + k), ARF_RND_NEAR);
            worst = sinkproof_keep_worst(worst, share_of(&y_k[k], v));
        }
    }
    _arb_vec_clear(in, (slong)d), _arb_vec_clear(out, (slong)d);
    sinkproof_truth_yarn_clear(&yarn);
    ok(outside == 0,
       "bound.rope the truth in the set of real-f64, %s worst=%.3g bound=1 outside=%zu",
       shape->name, worst, outside);
}

int main(void) {
    static const char *const policies[] = {"f32", "openai-bf16", "hf-bf16", "bf16", "f16"};
    static rope_shape shapes[SHAPES];
    shapes_fill(shapes);
    for (size_t p = 0; p < 5; p++)
        for (int i = 0; i < SHAPES; i++) engines_inside(policies[p], &shapes[i]);
    engines_inside("bf16,pow=0.5ulp", &shapes[0]); // what precise engines need is not pow's error
    engines_inside("f16,pow=0.5ulp", &shapes[1]);
    for (int i = 0; i < SHAPES; i++) truth_inside(&shapes[i]);
    return tap_done();
}
