// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A sigmoid from a rounded e^|t| (bound.sigmoid-exp). Inside the set: engines with the largest
// error that their policy declares, at gates of any size and where the exponential overflows.
// Outside: an engine that rounds the exponential where no policy says so, and an engine that
// computes its sigmoid in another way where the policy does. Mistakes are found under the policy
// mlx, and every end is the stated one.
#include "ref/stages.h"
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20261122;

static sinkproof_config released(void) {
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    return config;
}

// A gate of either side of each branch, then of any size to `most`.
static float draw_gate(uint64_t *state, sinkproof_format format, double most) {
    const double edges[] = {-most, -60, -7, -0x1p-20, 0, 0x1p-20, 1, 6.96875, 7, 7.0625, most};
    uint64_t kind = draw(state) % 8;
    double x = kind == 0 ? edges[draw_below(state, sizeof edges / sizeof *edges)]
                         : draw_gauss(state) * (kind < 6 ? 3 : most / 3);
    return (float)sinkproof_round(format, x);
}

// ---- engines --------------------------------------------------------------------------------

// What an engine does: an exponential that errs and leans, of |t| or of -t, rounded or not; and the
// mistakes that it makes.
typedef struct engine {
    const char *name;
    bool of_minus_t, kept;
    double alpha;
    bool alpha_kept, both_sides, no_clamp, up_free, no_one, swapped, upside_down, half_argument;
} engine;

static float rounded(const sinkproof_policy *policy, sinkproof_point point, float x) {
    return (float)round_at(policy, point, x);
}

// The exponential errs by as much as the policy declares, and leans as it likes.
static float exp_of(uint64_t *state, const sinkproof_policy *policy, leaning lean, float x) {
    double ulps = policy->ulp[SINKPROOF_EXP] + policy->exp_growth * fabs((double)x);
    return fmaxf(within_ulps(state, exp((double)x), x == 0 ? 0 : ulps, lean), 0);
}

static float sigmoid_of(uint64_t *state, const sinkproof_policy *policy, const engine *e, float t) {
    leaning lean = (leaning)(draw(state) % LEANS);
    float x = exp_of(state, policy, lean, e->of_minus_t ? -t : fabsf(t));
    if (!e->kept) x = rounded(policy, AT_M8_EXP, x);
    float part = 1 / (1 + x);
    if (e->of_minus_t) return part;
    return (t < 0) == !e->upside_down ? part : 1 - part;
}

static double run(uint64_t *state, const sinkproof_policy *policy, const engine *e, float gate,
                  float up) {
    float g = e->swapped ? up : gate, l = e->swapped ? gate : up;
    if (!e->no_clamp && g > 7) g = 7;
    if (e->both_sides && g < -7) g = -7;
    if (!e->up_free) l = l > 7 ? 7 : l < -7 ? -7 : l;
    float alpha = (float)(e->alpha > 0 ? e->alpha : 1.702);
    if (!e->alpha_kept) alpha = rounded(policy, AT_M8_ALPHA, alpha);
    float t = rounded(policy, AT_M8_SCALED, alpha * g);
    if (e->half_argument) t = t / 2;
    float sigmoid = rounded(policy, AT_M8_SIGMOID, sigmoid_of(state, policy, e, t));
    float swish = rounded(policy, AT_M8_SWISH, g * sigmoid);
    float one_up = e->no_one ? l : rounded(policy, AT_M8_UP, l + 1);
    return round_at(policy, AT_M8, swish * one_up);
}

// `runs` of an engine that computes under one policy, within the sets of another.
static tally met(const char *computed, const char *judged, const engine *e, size_t runs) {
    sinkproof_policy own = policy_named(computed), other = policy_named(judged);
    sinkproof_config config = released();
    sinkproof_setting s = sinkproof_setting_for(&other, runs, STANDARD_RATE);
    sinkproof_format format = own.at[AT_M8].format;
    uint64_t state = SEED;
    tally t = {.floor = 0x1p-120};
    for (size_t i = 0; i < runs; i++) {
        float gate = draw_gate(&state, format, format == SINKPROOF_F16 ? 60 : 150);
        float up = (float)draw_from(&state, format, 4);
        sinkproof_honest z = sinkproof_honest_swiglu(&s, config.swiglu, sinkproof_exact_set(gate),
                                                     sinkproof_exact_set(up));
        meet(&t, &z, run(&state, &own, e, gate, up));
    }
    return t;
}

static void engines_inside(void) {
    static const char *const policies[] = {
        "mlx",
        "mlx,M8.alpha=bf16",
        "f16,M8.exp=f16,M8.scaled=f16,M8.sigmoid=f16,M8.swish=f16,M8.up=f16",
        "f32,M8.form=sigmoid,M8.exp=bf16",
        "f32,M8.form=sigmoid,M8.exp=f16",
        "f32,M8.form=sigmoid,M8.exp=f32",
        "f32,M8.form=sigmoid,M8.exp=bf16?",
        "f32,M8.exp=bf16"};
    const engine honest = {.name = "honest"};
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        tally t = met(policies[p], policies[p], &honest, 12000);
        inside_ok(&t, "bound.sigmoid-exp", policies[p]);
    }
    const engine kept = {.name = "kept", .kept = true},
                 definition = {.name = "definition", .of_minus_t = true, .kept = true};
    tally t = met("f32", "f32,M8.form=sigmoid", &kept, 12000);
    inside_ok(&t, "bound.sigmoid-exp", "not rounded it is no wider than the definition");
    t = met("f32", "f32,M8.form=sigmoid,M8.exp=bf16?", &definition, 12000);
    inside_ok(&t, "bound.sigmoid-exp", "an optional rounding leaves the definition");
}

static void outside(const char *what, tally t) {
    ok(t.outside > 0, "bound.sigmoid-exp %s: outside=%zu of=%zu", what, t.outside, t.checked);
}

static void narrow(void) {
    const engine honest = {.name = "honest"}, kept = {.name = "kept", .kept = true};
    const engine of_minus_t = {.name = "of -t", .of_minus_t = true};
    outside("rounded, and no policy says so", met("f32,M8.exp=bf16", "f32", &honest, 4000));
    outside("not rounded, where it is fixed", met("mlx", "mlx", &kept, 4000));
    outside("e^-t rounded in place of e^|t|", met("mlx", "mlx", &of_minus_t, 4000));
    tally t = met("mlx", "mlx", &honest, 12000);
    ok(t.several * 10 < t.checked,
       "bound.sigmoid-exp of mlx most sets are single values: %zu of %zu are not", t.several,
       t.checked);
}

// The mistakes that can be made in the activation, each alone.
static void mistakes_under_mlx(void) {
    static const engine mistakes[] = {
        {.name = "alpha 1.7", .alpha = 1.7, .alpha_kept = true},
        {.name = "alpha in bf16", .alpha = 1.703125},
        {.name = "alpha 1", .alpha = 1},
        {.name = "gate clamped on both sides", .both_sides = true},
        {.name = "gate not clamped", .no_clamp = true},
        {.name = "up not clamped", .up_free = true},
        {.name = "no + 1", .no_one = true},
        {.name = "gate and up swapped", .swapped = true},
        {.name = "sigmoid of the other sign", .upside_down = true},
        {.name = "half the argument", .half_argument = true},
    };
    for (size_t m = 0; m < sizeof mistakes / sizeof *mistakes; m++)
        outside(mistakes[m].name, met("mlx", "mlx", &mistakes[m], 4000));
}

// ---- every end --------------------------------------------------------------------------------

static real stored(const sinkproof_policy *policy, real x) {
    return round_at(policy, AT_M8_EXP, (double)x);
}

// With alpha = 1, up = 0 and nothing else rounded: y = t sigma, sigma of the two ends of e^|t|.
static void ends(void) {
    uint64_t state = SEED + 1;
    distance d = {0};
    sinkproof_policy policy = real_policy("definition");
    sinkproof_config config = released();
    config.swiglu.alpha = 1, config.swiglu.limit = 1e9;
    policy.at[AT_M8_SWISH].format = SINKPROOF_F64; // no other order of the products
    policy.at[AT_M8_EXP].format = SINKPROOF_BF16;
    sinkproof_setting s = setting(&policy);
    const real u = 0x1p-24L, g = gamma_of(2, u), lost = 0x1p-1022L;
    for (int i = 0; i < 4000; i++) {
        real t = 3 * draw_dyadic(&state), size = expl(fabsl(t)),
             e = policy.ulp[SINKPROOF_EXP] * 2 * u;
        // An end within a few roundings of a tie of bf16 may go either way.
        real lo = stored(&policy, size * (1 - e)), hi = stored(&policy, size * (1 + e));
        if (stored(&policy, size * (1 - e - 0x1p-45L)) !=
                stored(&policy, size * (1 - e + 0x1p-45L)) ||
            stored(&policy, size * (1 + e - 0x1p-45L)) !=
                stored(&policy, size * (1 + e + 0x1p-45L)))
            continue;
        sinkproof_honest y = sinkproof_honest_swiglu(
            &s, config.swiglu, sinkproof_exact_set((double)t), sinkproof_exact_set(0));
        real least = (1 / (1 + hi) - lost) * (1 - g), most = (1 / (1 + lo) + lost) * (1 + g);
        real low = t < 0 ? most : 1 - most, high = t < 0 ? least : 1 - least;
        real first = t < 0 ? t * low : t * low, last = t < 0 ? t * high : t * high;
        near(&d, y.lo, first, 1 + fabsl(first), 90);
        near(&d, y.hi, last, 1 + fabsl(last), 90);
        real emulated = 1 / (1 + stored(&policy, size));
        near(&d, y.mid, t * (t < 0 ? emulated : 1 - emulated), 1, 90);
    }
    report(&d, "bound.sigmoid-exp", "every end", SEED + 1);
}

// A gate with freedom on both sides of 0 may be of either branch, one of one side is of that alone.
static void straddling(void) {
    sinkproof_policy policy = policy_named("real-f64,ftz=none,M8.form=sigmoid,M8.exp=bf16");
    sinkproof_config config = released();
    sinkproof_setting s = {.policy = &policy, .u = 0, .odds = 30};
    const double from[] = {-2, -2, 1, -700, -2000}, to[] = {1, -1, 2, 600, 1800};
    size_t wrong = 0, checked = 0;
    for (size_t k = 0; k < sizeof from / sizeof *from; k++) {
        double middle = (from[k] + to[k]) / 2, half = (to[k] - from[k]) / 2;
        sinkproof_honest gate =
            sinkproof_set_around(middle, half, half / 2, half * half / 9, half / 9);
        sinkproof_honest y =
            sinkproof_honest_swiglu(&s, config.swiglu, gate, sinkproof_exact_set(1));
        wrong += !(y.lo <= y.likely_lo && y.likely_hi <= y.hi && y.lo <= y.mid && y.mid <= y.hi);
        wrong += !(y.var >= 0 && y.bias >= 0 && y.spread >= 0);
        for (int i = 0; i <= 200; i++, checked++) {
            double g = from[k] + (to[k] - from[k]) * i / 200;
            double value = sinkproof_swiglu_one(
                &policy, (sinkproof_swiglu_numbers){config.swiglu.alpha, 7, 1}, g, 1);
            wrong += !(value >= y.lo && value <= y.hi);
        }
    }
    ok(wrong == 0, "bound.sigmoid-exp gates with freedom worst=%zu bound=0 of=%zu", wrong, checked);
}

int main(void) {
    engines_inside();
    narrow();
    mistakes_under_mlx();
    ends();
    straddling();
    return tap_done();
}
