// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Quotients that err by as much as a policy declares (bound.quotient), in every step that has one:
// weights, an output that is divided at its end, the gate of the sink, a running sum in float16,
// parts that are merged, experts' weights over all experts, the activation, a norm's mean, another
// design's weights. Each engine divides, or multiplies by a reciprocal, all to one side or at
// random. It is inside, and an engine that errs four times as much is outside somewhere.
#include "proofs/bounds/variants.h"
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20261129;
enum { KEYS = 40, DIM = 4, EXPERTS = 12, CHOSEN = 4, ROWS = 800 };

typedef struct divider {
    uint64_t *state;
    leaning lean;
    bool inverts; // multiplies by a reciprocal
    double div, rcp;
} divider;

static float over(const divider *d, float a, float b) {
    if (!d->inverts) return within_ulps(d->state, (double)a / (double)b, d->div, d->lean);
    return a * within_ulps(d->state, 1 / (double)b, d->rcp, d->lean);
}

static float exp_of(float x) { // the float32 number nearest to it
    return (float)exp((double)x);
}

// ---- the engines, each with its inputs, and their sets ------------------------------------------

static struct inputs {
    size_t n;
    float z[KEYS + 1], v[KEYS][DIM], x[KEYS], gate, up;
    int32_t chosen[CHOSEN];
} in;

static void draw_row_of_scores(const divider *d) {
    in.n = 1 + draw_below(d->state, draw_below(d->state, 2) ? KEYS : 2);
    for (size_t j = 0; j <= in.n; j++) in.z[j] = (float)(2 * draw_gauss(d->state));
    for (size_t j = 0; j < in.n; j++)
        for (size_t c = 0; c < DIM; c++) in.v[j][c] = (float)draw_from(d->state, SINKPROOF_BF16, 1);
}

static float exponentials(size_t n, float *e_j) {
    float m = -INFINITY, sum = 0;
    for (size_t j = 0; j < n; j++) m = fmaxf(m, in.z[j]);
    for (size_t j = 0; j < n; j++) sum += e_j[j] = exp_of(in.z[j] - m);
    return sum;
}

static size_t weights(const divider *d, double *y) {
    float e_j[KEYS + 1];
    draw_row_of_scores(d);
    float sum = exponentials(in.n + 1, e_j);
    for (size_t j = 0; j <= in.n; j++) y[j] = (double)over(d, e_j[j], sum);
    return in.n + 1;
}
static void sets_of_weights(const sinkproof_setting *s, sinkproof_honest *set) {
    sinkproof_honest z_j[KEYS + 1];
    double common;
    for (size_t j = 0; j <= in.n; j++) z_j[j] = sinkproof_exact_set((double)in.z[j]);
    must(sinkproof_honest_softmax(s, AT_A9, in.n, z_j, z_j[in.n], set, &common));
}

// The keys' own softmax, times sigmoid(LSE - b).
static size_t gated_weights(const divider *d, double *y) {
    float e_j[KEYS + 1], m = -INFINITY;
    draw_row_of_scores(d);
    float sum = exponentials(in.n, e_j), b = in.z[in.n];
    for (size_t j = 0; j < in.n; j++) m = fmaxf(m, in.z[j]);
    float lse = m + (float)log((double)sum), gate = over(d, 1, 1 + exp_of(b - lse));
    for (size_t j = 0; j < in.n; j++) y[j] = (double)(over(d, e_j[j], sum) * gate);
    y[in.n] = (double)over(d, 1, 1 + exp_of(lse - b));
    return in.n + 1;
}

// One division at the end.
static size_t output(const divider *d, double *y) {
    float e_j[KEYS + 1], o[DIM] = {0};
    draw_row_of_scores(d);
    float sum = exponentials(in.n + 1, e_j);
    for (size_t j = 0; j < in.n; j++)
        for (size_t c = 0; c < DIM; c++) o[c] += e_j[j] * in.v[j][c];
    for (size_t c = 0; c < DIM; c++) y[c] = (double)over(d, o[c], sum);
    return DIM;
}

// Two parts of the keys, the sink in the first, merged.
static size_t merged(const divider *d, double *y) {
    draw_row_of_scores(d);
    float o[2][DIM] = {{0}}, lse[2], all = 0, w[2];
    size_t cut = in.n / 2;
    for (int p = 0; p < 2; p++) {
        float m = p == 0 ? in.z[in.n] : -INFINITY, sum = 0, e_j[KEYS];
        for (size_t j = p ? cut : 0; j < (p ? in.n : cut); j++) m = fmaxf(m, in.z[j]);
        if (p == 0) sum = exp_of(in.z[in.n] - m);
        for (size_t j = p ? cut : 0; j < (p ? in.n : cut); j++) {
            sum += e_j[j] = exp_of(in.z[j] - m);
            for (size_t c = 0; c < DIM; c++) o[p][c] += e_j[j] * in.v[j][c];
        }
        for (size_t c = 0; c < DIM; c++) o[p][c] = over(d, o[p][c], sum);
        lse[p] = m + (float)log((double)sum);
    }
    for (int p = 0; p < 2; p++) all += w[p] = exp_of(lse[p] - fmaxf(lse[0], lse[1]));
    for (size_t c = 0; c < DIM; c++)
        y[c] = (double)(over(d, w[0], all) * o[0][c] + over(d, w[1], all) * o[1][c]);
    return DIM;
}

static void sets_of_output(const sinkproof_setting *s, sinkproof_honest *set) {
    sinkproof_honest z_j[KEYS + 1], a_j[KEYS + 1], v_dj[DIM * KEYS];
    double terms = (double)in.n;
    sets_of_weights(s, a_j);
    for (size_t j = 0; j <= in.n; j++) z_j[j] = sinkproof_exact_set((double)in.z[j]);
    for (size_t j = 0; j < in.n; j++)
        for (size_t c = 0; c < DIM; c++)
            v_dj[c * in.n + j] = sinkproof_exact_set((double)in.v[j][c]);
    sinkproof_planes w = sinkproof_planes_new(a_j, 1, in.n, in.n),
                     v = sinkproof_planes_new(v_dj, DIM, in.n, in.n);
    must(sinkproof_honest_products(s, &w, &v, &terms, NULL, set, DIM));
    if (sinkproof_honest_merges_parts(s->policy)) {
        double error = sinkproof_honest_merge_error(s, in.n, z_j, z_j[in.n]);
        must(sinkproof_honest_merged(s, &w, &v, &terms, &error, set, DIM));
    }
    sinkproof_honest_finish(s, AT_A11, DIM, set);
    sinkproof_planes_free(&w), sinkproof_planes_free(&v);
}

// A running sum in float16 of one key; values have 11 bits, so that only the division errs.
static size_t flash(const divider *d, double *y) {
    draw_row_of_scores(d);
    in.n = 1;
    float z = in.z[0], b = in.z[1], m = fmaxf(z, b), sum = exp_of(z - m) + exp_of(b - m);
    for (size_t c = 0; c < DIM; c++) y[c] = (double)over(d, in.v[0][c] * exp_of(z - m), sum);
    return DIM;
}
static void sets_of_flash(const sinkproof_setting *s, sinkproof_honest *set) {
    sinkproof_honest z = sinkproof_exact_set((double)in.z[0]), v_d[DIM];
    for (size_t c = 0; c < DIM; c++) v_d[c] = sinkproof_exact_set((double)in.v[0][c]);
    const sinkproof_flash f = {1, DIM, DIM, &z, v_d, sinkproof_exact_set((double)in.z[1])};
    sinkproof_accumulator a = sinkproof_accumulator_at(s->policy, AT_A11_TERM, AT_A11_ACC);
    must(sinkproof_honest_flash(s, &a, &f, set));
}

// The softmax over all experts, and the chosen over their sum.
static size_t experts(const divider *d, double *y) {
    float e_e[EXPERTS + 1], p_k[CHOSEN], chosen = 0;
    in.n = EXPERTS;
    for (size_t e = 0; e < EXPERTS; e++) in.z[e] = (float)draw_gauss(d->state);
    float sum = exponentials(EXPERTS, e_e);
    for (size_t k = 0; k < CHOSEN; k++) {
        in.chosen[k] = (int32_t)(3 * k + draw_below(d->state, 3));
        divider either = *d; // one expert to one side, the others to the other
        if (k == 0 && d->lean == LEAN_UP) either.lean = LEAN_DOWN;
        if (k == 0 && d->lean == LEAN_DOWN) either.lean = LEAN_UP;
        chosen += p_k[k] = over(&either, e_e[in.chosen[k]], sum);
    }
    for (size_t k = 0; k < CHOSEN; k++) y[k] = (double)over(d, p_k[k], chosen);
    return CHOSEN;
}
static void sets_of_experts(const sinkproof_setting *s, sinkproof_honest *set) {
    sinkproof_honest g_e[EXPERTS];
    double common;
    for (size_t e = 0; e < EXPERTS; e++) g_e[e] = sinkproof_exact_set((double)in.z[e]);
    must(sinkproof_honest_expert_weights(s, EXPERTS, g_e, CHOSEN, in.chosen, set, &common));
}

// g sigma(1.702 g) (u + 1), the sigmoid as 1 / (1 + e^-t), over it, or e^t / (1 + e^t).
static size_t activation(const divider *d, double *y) {
    in.gate = (float)(3 * draw_gauss(d->state)), in.up = (float)draw_gauss(d->state);
    float g = fminf(in.gate, 7), l = fmaxf(-7, fminf(in.up, 7)), t = 1.702f * g, swish;
    switch (draw_below(d->state, 3)) {
    case 0:
        swish = g * over(d, 1, 1 + exp_of(-t));
        break;
    case 1:
        swish = over(d, g, 1 + exp_of(-t));
        break;
    default:
        swish = g * over(d, exp_of(t), 1 + exp_of(t));
    }
    *y = (double)(swish * (l + 1));
    return 1;
}
static void set_of_activation(const sinkproof_setting *s, sinkproof_honest *set) {
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    *set = sinkproof_honest_swiglu(s, config.swiglu, sinkproof_exact_set((double)in.gate),
                                   sinkproof_exact_set((double)in.up));
}

static const double ones[KEYS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static size_t norm(const divider *d, double *y) {
    float sum = 0;
    in.n = 1 + draw_below(d->state, 6);
    for (size_t c = 0; c < in.n; c++) {
        in.x[c] = (float)draw_gauss(d->state);
        sum += in.x[c] * in.x[c];
    }
    float root = (float)(1 / sqrt((double)(over(d, sum, (float)in.n) + 1e-5f)));
    for (size_t c = 0; c < in.n; c++) y[c] = (double)(in.x[c] * root);
    return in.n;
}
static void sets_of_norm(const sinkproof_setting *s, sinkproof_honest *set) {
    sinkproof_honest x_c[KEYS];
    double common;
    for (size_t c = 0; c < in.n; c++) x_c[c] = sinkproof_exact_set((double)in.x[c]);
    sinkproof_honest_rmsnorm(s, AT_A1, &(sinkproof_norm){in.n, ones, 1e-5}, x_c, set, &common);
}

// Sigmoids over their sum.
static const sinkproof_variant sigmoids = {.similarity = SINKPROOF_SIMILARITY_SIGMOID,
                                           .divisor = SINKPROOF_DIVISOR_SUM};
static size_t design(const divider *d, double *y) {
    float sim_j[KEYS], sum = 0;
    draw_row_of_scores(d);
    for (size_t j = 0; j < in.n; j++) {
        divider either = *d;
        if (j == 0 && d->lean == LEAN_UP) either.lean = LEAN_DOWN;
        if (j == 0 && d->lean == LEAN_DOWN) either.lean = LEAN_UP;
        sum += sim_j[j] = over(&either, 1, 1 + exp_of(-in.z[j]));
    }
    for (size_t j = 0; j < in.n; j++) y[j] = (double)over(d, sim_j[j], sum);
    return in.n;
}
static void sets_of_design(const sinkproof_setting *s, sinkproof_honest *set) {
    sinkproof_honest z_j[KEYS];
    bool seen[KEYS];
    for (size_t j = 0; j < in.n; j++) z_j[j] = sinkproof_exact_set((double)in.z[j]), seen[j] = true;
    must(sinkproof_honest_variant_weights(s, &sigmoids, in.n, seen, z_j, set));
}

// ---- each of them -------------------------------------------------------------------------------

static const struct step {
    const char *name, *ids, *policy;
    size_t (*engine)(const divider *d, double *y);
    void (*sets)(const sinkproof_setting *s, sinkproof_honest *set);
    double floor; // share of the set that coarse quotients reach
} steps[] = {
    {"weights", "bound.softmax-sink", "A9.form=definition", weights, sets_of_weights, 0.9},
    {"weights of a gate", "bound.form-lse", "A9.form=lse-gated,log=0.5ulp", gated_weights,
     sets_of_weights, 0.9},
    {"an output divided once", "bound.value", "A9=real,A9.form=definition", output, sets_of_output,
     0.9},
    {"a running sum in float16", "bound.accumulator", "A9.form=running-max,A11.acc=f16", flash,
     sets_of_flash, 0.9},
    {"parts, merged", "bound.parts-merged", "A9=real,A9.form=definition,A11.part=f32?,log=0.5ulp",
     merged, sets_of_output, 0.3},
    {"experts over all", "bound.form-router", "M4.form=softmax-all-renormalised", experts,
     sets_of_experts, 0.7},
    {"the activation", "bound.swiglu", "M8.form=sigmoid", activation, set_of_activation, 0.9},
    {"a norm's mean", "bound.rmsnorm", "rsqrt=0.5ulp", norm, sets_of_norm, 0.9},
    {"sigmoids over their sum", "bound.similarity", "A9.form=definition", design, sets_of_design,
     0.7},
};
enum { STEPS = sizeof steps / sizeof *steps };

static const struct declared {
    const char *text;
    double div, rcp;
} declared[] = {{"div=2ulp", 2, 0.5},
                {"rcp=1ulp", 0.5, 1},
                {"div=2ulp,rcp=1ulp", 2, 1},
                {"div=256ulp", 256, 0.5},
                {"rcp=256ulp", 0.5, 256}};
enum { DECLARED = sizeof declared / sizeof *declared, FIRST_COARSE = 3 };

static sinkproof_policy policy_of(const struct step *step, const char *quotients) {
    char text[160];
    snprintf(text, sizeof text, "f32,exp=0.5ulp,%s%s%s", step->policy,
             quotients[0] != '\0' ? "," : "", quotients);
    return policy_named(text);
}

// How an engine under a declaration lies in the sets of the same or of another one.
static tally drawn(const struct step *step, const struct declared *how, double times,
                   const char *judged) {
    uint64_t state = SEED;
    tally t = {0};
    sinkproof_policy policy = policy_of(step, judged);
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS, STANDARD_RATE);
    for (int i = 0; i < ROWS; i++) {
        sinkproof_honest set[KEYS + 1];
        double y[KEYS + 1];
        divider d = {&state, (leaning)(i % LEANS), i / 4 % 2, how->div * times, how->rcp * times};
        size_t n = step->engine(&d, y);
        step->sets(&s, set);
        for (size_t j = 0; j < n; j++) meet(&t, &set[j], y[j]);
    }
    return t;
}

static void engines_inside(const struct step *step) {
    char ids[60], name[100];
    snprintf(ids, sizeof ids, "bound.quotient %s", step->ids);
    for (size_t k = 0; k < DECLARED; k++) {
        const struct declared *how = &declared[k];
        snprintf(name, sizeof name, "%s under %s", step->name, how->text);
        tally own = drawn(step, how, 1, how->text);
        inside_ok(&own, ids, name);
        if (k < FIRST_COARSE) continue;
        tally slip = drawn(step, how, 4, how->text), bare = drawn(step, how, 1, "");
        ok(own.unlikely == 0 && own.worst > step->floor, "%s %s: all likely, reached=%.3g floor=%g",
           ids, name, own.worst, step->floor);
        ok(slip.outside > 0 && bare.outside > 0,
           "%s %s: four times as far is outside=%zu, without its word outside=%zu of=%zu", ids,
           name, slip.outside, bare.outside, own.checked);
    }
}

// Such errors as GPUs have, four times as far: a weight alone shows them.
static void small_ones_are_seen(void) {
    for (size_t k = 0; k < FIRST_COARSE; k++) {
        tally slip = drawn(&steps[0], &declared[k], 4, declared[k].text);
        ok(slip.outside > 0,
           "bound.quotient weights under %s, four times as far: outside=%zu of=%zu",
           declared[k].text, slip.outside, slip.checked);
    }
}

// Two numerators of 1: the weight is a half, where an ulp is the largest share of a number.
static void bound_is_reached(void) {
    static const char *const texts[] = {"div=256ulp", "rcp=256ulp"};
    for (int k = 0; k < 2; k++) {
        sinkproof_policy policy = policy_of(&steps[0], texts[k]);
        sinkproof_setting s = sinkproof_setting_for(&policy, 2, STANDARD_RATE);
        sinkproof_honest set[2];
        in.n = 1, in.z[0] = in.z[1] = 0;
        sets_of_weights(&s, set);
        double above = share_of(&set[0], 0.5 + 256 * 0x1p-24);
        ok(above > 0.98 && above <= 1, "bound.quotient %s is reached=%.3g floor=0.98", texts[k],
           above);
    }
}

// Four merges on a way: four quotients and four products, where nothing is declared twelve
// roundings.
static void merges_as_stated(void) {
    uint64_t state = SEED + 5;
    distance d = {0};
    for (int i = 0; i < 200; i++) {
        const struct declared *how = &declared[i % DECLARED];
        sinkproof_policy bare = policy_of(&steps[4], ""), own = policy_of(&steps[4], how->text);
        sinkproof_setting s = sinkproof_setting_for(&bare, ROWS, STANDARD_RATE), t = s;
        t.policy = &own;
        divider none = {&state, LEAN_NEAREST, false, 0.5, 0.5};
        sinkproof_honest z_j[KEYS + 1];
        draw_row_of_scores(&none);
        for (size_t j = 0; j <= in.n; j++) z_j[j] = sinkproof_exact_set((double)in.z[j]);
        real rounded = 1 + (real)sinkproof_honest_merge_error(&s, in.n, z_j, z_j[in.n]);
        double found = sinkproof_honest_merge_error(&t, in.n, z_j, z_j[in.n]);
        real quotient = 1 + quotient_of(&own, s.u), four = quotient * quotient;
        real stated = rounded * (1 + gamma_of(4, s.u)) * four * four / (1 + gamma_of(12, s.u)) - 1;
        near(&d, found, stated, stated, 0x1p20L); // beside 1, binary64 keeps 2^-33 of it
    }
    report(&d, "bound.quotient bound.parts-merged", "the error of a merge", SEED + 5);
}

// Without a word nothing changes, and half an ulp is no word.
static void default_is_rounded(void) {
    size_t apart = 0;
    for (size_t k = 0; k < STEPS; k++) {
        uint64_t state = SEED + k;
        sinkproof_policy bare = policy_of(&steps[k], ""),
                         half = policy_of(&steps[k], "div=0.5ulp,rcp=0.5ulp");
        sinkproof_setting s = sinkproof_setting_for(&bare, ROWS, STANDARD_RATE), t = s;
        t.policy = &half;
        for (int i = 0; i < 50; i++) {
            sinkproof_honest set[KEYS + 1], same[KEYS + 1];
            double y[KEYS + 1];
            divider d = {&state, LEAN_NEAREST, false, 0.5, 0.5};
            size_t n = steps[k].engine(&d, y);
            steps[k].sets(&s, set), steps[k].sets(&t, same);
            apart += memcmp(set, same, n * sizeof *set) != 0;
        }
    }
    ok(apart == 0, "bound.quotient half an ulp is a rounding, sets that differ worst=%zu bound=0",
       apart);
}

int main(void) {
    for (size_t k = 0; k < STEPS; k++) engines_inside(&steps[k]);
    small_ones_are_seen();
    bound_is_reached();
    merges_as_stated();
    default_is_rounded();
    return tap_done();
}
