// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A stage's set of results contains what the stage computes from any values in its operands' sets.
// The operands' sets range from as narrow as roundings leave them to as wide as binary32. No end of
// a set is NaN. An element whose error may lean without bound is not judged by its scatter. 0.6 CPU
// seconds.
#include "proofs/bounds/variants.h"
#include "ref/stages.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20261124;
enum { ROUNDS = 1500, SIZE = 16, CHOSEN = 3, D = 8 };

typedef enum stage {
    GELU,
    SWIGLU,
    RMSNORM,
    LAYERNORM,
    MIXTURE,
    EXPERT_WEIGHTS,
    SOFTMAX,
    PRODUCTS,
    ROTATION,
    ACCUMULATED,
    FLASH,
    DESIGNS,
    STAGES
} stage;

static const char *const ids[STAGES] = {[GELU] = "bound.gelu",
                                        [SWIGLU] = "bound.swiglu bound.sigmoid-exp bound.form-tanh",
                                        [RMSNORM] = "bound.rmsnorm",
                                        [LAYERNORM] = "bound.layernorm",
                                        [MIXTURE] = "moe.sum",
                                        [EXPERT_WEIGHTS] = "bound.form-router",
                                        [SOFTMAX] = "bound.softmax-sink",
                                        [PRODUCTS] = "bound.dot",
                                        [ROTATION] = "bound.rope",
                                        [ACCUMULATED] = "bound.accumulator",
                                        [FLASH] = "bound.accumulator bound.form-running-max",
                                        [DESIGNS] = "bound.similarity"};

// ---- sets and values in them
// ----------------------------------------------------------------------

// Up to 2^top in size; its exponent is as likely as any other.
static double draw_wild(uint64_t *state, int top) {
    double x = ldexp(1 + draw_unit(state), (int)draw_below(state, (uint64_t)(2 * top)) - top);
    uint64_t kind = draw_below(state, 8);
    if (kind == 0) return 0;
    if (kind == 1) return draw_gauss(state);
    return draw(state) % 2 ? -x : x;
}

static sinkproof_honest set_between(double lo, double hi, double mid) {
    double width = hi - lo;
    sinkproof_honest x = {lo, hi, lo, hi, mid, width * width / 12, 0, width / 64, 0};
    x.spread = x.var;
    return x;
}

static sinkproof_honest draw_set(uint64_t *state, int top) {
    double a, r;
    switch (draw_below(state, 4)) {
    case 0:
        return sinkproof_exact_set((float)draw_wild(state, top));
    case 1:
        a = draw_wild(state, top), r = draw_wild(state, top);
        return set_between(fmin(a, r), fmax(a, r), draw(state) % 2 ? a : r);
    case 2: // relatively narrow
        a = draw_gauss(state) * ldexp(1, (int)draw_below(state, 8));
        r = ldexp(draw_unit(state), -(int)draw_below(state, 12)) * fabs(a);
        return set_between(a - r, a + r, a);
    default: // of any width, around a usual number
        a = 8 * draw_gauss(state), r = ldexp(draw_unit(state), 6 - (int)draw_below(state, 30));
        return set_between(a - r, a + r, a);
    }
}

static sinkproof_honest value_in(uint64_t *state, sinkproof_honest x) {
    double inside = x.lo + (x.hi - x.lo) * draw_unit(state);
    double all[] = {x.lo, x.hi, x.mid, inside >= x.lo && inside <= x.hi ? inside : x.lo};
    return sinkproof_exact_set(all[draw_below(state, 4)]);
}

// ---- the stages
// -----------------------------------------------------------------------------------

typedef struct place {
    double scale[D], shift[D], c[D / 2], s[D / 2]; // known to all
    sinkproof_config config;
    sinkproof_variant design;
    bool seen[D];
} place;

// y_i of x_i; how many.
static size_t results(const sinkproof_setting *s, stage of, const place *p,
                      const sinkproof_honest *x, sinkproof_honest *y) {
    sinkproof_norm norm = {D, p->scale, 1e-5};
    int32_t chosen_k[CHOSEN] = {2, 0, 5};
    sinkproof_honest c[D / 2], sine[D / 2];
    double common, terms[2] = {4, 4};
    sinkproof_accumulator a = sinkproof_accumulator_at(s->policy, AT_A11_TERM, AT_A11_ACC);
    switch (of) {
    case GELU:
        y[0] = sinkproof_honest_gelu(s, x[0]);
        return 1;
    case SWIGLU:
        y[0] = sinkproof_honest_swiglu(s, p->config.swiglu, x[0], x[1]);
        return 1;
    case RMSNORM:
        sinkproof_honest_rmsnorm(s, AT_A1, &norm, x, y, &common);
        return D;
    case LAYERNORM:
        sinkproof_honest_layernorm(s, AT_A1, &norm, p->shift, x, y);
        return D;
    case MIXTURE:
        y[0] = sinkproof_honest_mixture(s, 4, x, x + 4);
        return 1;
    case EXPERT_WEIGHTS:
        return sinkproof_honest_expert_weights(s, D, x, CHOSEN, chosen_k, y, &common) ? CHOSEN : 0;
    case SOFTMAX:
        return sinkproof_honest_softmax(s, AT_A9, D - 1, x, x[D - 1], y, &common) ? D : 0;
    case PRODUCTS: {
        sinkproof_planes rows = sinkproof_planes_new(x, 2, 4, 4),
                         other = sinkproof_planes_new(x + D, 1, 4, 4);
        bool done = sinkproof_honest_products(s, &rows, &other, terms, p->shift, y, 1);
        sinkproof_planes_free(&rows);
        sinkproof_planes_free(&other);
        return done ? 2 : 0;
    }
    case ACCUMULATED: {
        sinkproof_planes row = sinkproof_planes_new(x, 1, D, D),
                         other = sinkproof_planes_new(x + D, 1, D, D);
        bool done = sinkproof_honest_accumulated(s, &a, &row, &other, NULL, false, y, 1);
        sinkproof_planes_free(&row);
        sinkproof_planes_free(&other);
        return done;
    }
    case FLASH: {
        sinkproof_flash f = {D - 1, 1, 1, x, x + D, x[D - 1]};
        return sinkproof_is_running(&a) && sinkproof_honest_flash(s, &a, &f, y);
    }
    case DESIGNS:
        return sinkproof_honest_variant_weights(s, &p->design, D, p->seen, x, y) ? D : 0;
    default:
        for (int d = 0; d < D / 2; d++)
            c[d] = sinkproof_exact_set(p->c[d]), sine[d] = sinkproof_exact_set(p->s[d]);
        sinkproof_honest_rotate(s, D, x, c, sine, y);
        return D;
    }
}

typedef struct held {
    size_t asked, outside;
} held;

static void compare(held *t, const char *policy, sinkproof_honest set, double value) {
    bool ends = set.lo <= set.hi && set.likely_lo <= set.likely_hi;
    if (value != value) return; // no number: the emulation met infinity less infinity
    t->asked++;
    if (ends && value >= set.lo && value <= set.hi) return;
    if (t->outside++ < 3) note("%s: %a outside of [%a, %a]", policy, value, set.lo, set.hi);
}

// Of known values the emulation and the ends of their sets, in the sets of what may be these
// values.
static void compare_sets(held *t, const char *policy, size_t n, const sinkproof_honest *y_i,
                         const sinkproof_honest *known_i) {
    for (size_t i = 0; i < n; i++) {
        compare(t, policy, y_i[i], known_i[i].mid);
        compare(t, policy, y_i[i], known_i[i].lo);
        compare(t, policy, y_i[i], known_i[i].hi);
    }
}

// Any similarity with any divisor.
static sinkproof_variant draw_design(uint64_t *state) {
    static const double by[] = {1, 2, 3, 0.5, 1.5};
    return (sinkproof_variant){
        .similarity = (sinkproof_similarity)draw_below(state, SINKPROOF_SIMILARITY_SCORE + 1),
        .divisor = (sinkproof_divisor)draw_below(state, SINKPROOF_DIVISOR_AT_LEAST_1 + 1),
        .divisor_by = by[draw_below(state, 5)]};
}

static void inclusion(void) {
    static const char *const policies[] = {"real-f64",
                                           "real-f64,A9.form=base-2",
                                           "real-f64,A9.form=lse-subtracted",
                                           "f32",
                                           "f32,M8.form=tanh",
                                           "openai-bf16",
                                           "hf-bf16",
                                           "llama-cpp-flash",
                                           "mlx",
                                           "bf16",
                                           "onnxruntime,A9.form=base-2",
                                           "f32,A9.form=running-max,A11.acc=f16",
                                           "bf16,A11.term=bf16,A11.acc=bf16"};
    static const int tops[] = {3, 8, 20, 60, 100, 127};
    held all[STAGES] = {{0, 0}};
    uint64_t state = SEED;
    place p;
    if (!sinkproof_config_named("gpt-oss-20b", &p.config)) abort();
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        sinkproof_policy policy = policy_named(policies[k]);
        sinkproof_setting s = sinkproof_setting_for(&policy, 1000, 1e-6);
        for (int round = 0; round < ROUNDS; round++) {
            sinkproof_honest x[SIZE], at[SIZE], y[SIZE], one[SIZE];
            int top = tops[draw_below(&state, sizeof tops / sizeof *tops)];
            for (int d = 0; d < D; d++)
                p.scale[d] = draw_gauss(&state), p.shift[d] = draw_gauss(&state);
            p.design = draw_design(&state);
            for (int d = 0; d < D; d++) p.seen[d] = d == 0 || draw(&state) % 4 > 0;
            for (int d = 0; d < D / 2; d++) p.c[d] = cos(round + d), p.s[d] = sin(round + d);
            for (int d = 0; d < SIZE; d++)
                x[d] = draw_set(&state, top), at[d] = value_in(&state, x[d]);
            for (stage of = 0; of < STAGES; of++) {
                size_t n = results(&s, of, &p, x, y);
                if (results(&s, of, &p, at, one) != n) n = 0;
                for (size_t i = 0; i < n; i++) compare(&all[of], policies[k], y[i], one[i].mid);
            }
        }
    }
    for (stage of = 0; of < STAGES; of++)
        ok(all[of].asked > 1000 && all[of].outside == 0,
           "%s %zu results of values in drawn sets, in theirs: outside worst=%zu bound=0 seed=%llu",
           ids[of], all[of].asked, all[of].outside, (unsigned long long)SEED);
}

// Exponentials less a maximum that is not known, of a score that is: an engine rounds another
// difference than the emulation, and takes the exponential of one that may be larger.
static void another_maximum(void) {
    static const char *const policies[] = {"real-f64", "f32", "f32,exp=1ulp+0.5|x|"};
    static const sinkproof_divisor divisors[] = {SINKPROOF_DIVISOR_SCALED, SINKPROOF_DIVISOR_POWER};
    enum { KEYS = 2 };
    const bool seen[KEYS] = {true, true};
    held all = {0, 0};
    uint64_t state = SEED + 2;
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        sinkproof_policy policy = policy_named(policies[k]);
        sinkproof_setting s = sinkproof_setting_for(&policy, 1000, 1e-6);
        for (int round = 0; round < ROUNDS; round++) {
            const sinkproof_variant design = {.similarity = SINKPROOF_SIMILARITY_EXP,
                                              .divisor = divisors[round % 2],
                                              .divisor_by = 2};
            double from = 20 * draw_unit(&state), to = from + 30 * draw_unit(&state);
            double low = round / 6 % 2 ? -30 : -90; // of which the exponential may be flushed
            double ends[] = {from, to, from + (to - from) * draw_unit(&state)};
            sinkproof_honest x[KEYS] = {set_between(from, to, ends[draw_below(&state, 3)]),
                                        sinkproof_exact_set((float)(low * draw_unit(&state)))};
            sinkproof_honest at[KEYS] = {sinkproof_exact_set(ends[round % 3]), x[1]}, y[KEYS],
                             one[KEYS];
            must(sinkproof_honest_variant_weights(&s, &design, KEYS, seen, x, y));
            must(sinkproof_honest_variant_weights(&s, &design, KEYS, seen, at, one));
            compare_sets(&all, policies[k], KEYS, y, one);
        }
    }
    ok(all.asked > 1000 && all.outside == 0,
       "bound.similarity %zu weights below maxima that are not known: outside worst=%zu bound=0 "
       "seed=%llu",
       all.asked, all.outside, (unsigned long long)SEED);
}

// The same of the softmax, the sink as the maximum too: what an exponential may flush, or lose
// below the smallest number of the format that it is kept in, it loses beside the engine's own.
static void another_maximum_of_softmax(void) {
    static const char *const policies[] = {"f32", "f32,A9.form=base-2", "f32,A9.form=any",
                                           "f32,A9.unnorm=f16", "f32,A9.unnorm=bf16"};
    enum { KEYS = 2 };
    held all = {0, 0};
    uint64_t state = SEED + 3;
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        sinkproof_policy policy = policy_named(policies[k]);
        sinkproof_setting s = sinkproof_setting_for(&policy, 1000, 1e-6);
        for (int round = 0; round < 4 * ROUNDS; round++) {
            double width = ldexp(30, -(int)draw_below(&state, 20)) * draw_unit(&state);
            double from = 20 * draw_unit(&state), to = from + width, low = round % 2 ? -10 : -70;
            double ends[] = {from, to, from + (to - from) * draw_unit(&state)}, common;
            sinkproof_honest x[KEYS + 1], at[KEYS + 1], y[KEYS + 1], one[KEYS + 1];
            size_t open = round % 3 == 0 ? KEYS : 0; // which is the maximum
            for (size_t j = 0; j <= KEYS; j++)
                x[j] = at[j] = sinkproof_exact_set((float)(low * draw_unit(&state)));
            x[open] = set_between(from, to, ends[draw_below(&state, 3)]);
            at[open] = sinkproof_exact_set(ends[draw_below(&state, 3)]);
            must(sinkproof_honest_softmax(&s, AT_A9, KEYS, x, x[KEYS], y, &common));
            must(sinkproof_honest_softmax(&s, AT_A9, KEYS, at, at[KEYS], one, &common));
            compare_sets(&all, policies[k], KEYS + 1, y, one);
        }
    }
    ok(all.asked > 1000 && all.outside == 0,
       "bound.exp bound.form-base2 bound.unnormalised bound.softmax-sink %zu weights beside maxima "
       "that are not known: outside worst=%zu bound=0 seed=%llu",
       all.asked, all.outside, (unsigned long long)SEED);
}

// ---- what may lean without bound
// ------------------------------------------------------------------

static void unbounded(void) {
    sinkproof_policy policy = policy_named("openai-bf16");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1000, 1e-6);
    size_t wrong = 0, cases = 0;
    for (double x = 0x1p30; x < 0x1p100; x *= 2, cases++) { // x^3 overflows from 2^42 on
        sinkproof_honest y = sinkproof_honest_gelu(&s, sinkproof_exact_set(-x));
        wrong += !(y.var >= 0) || !(y.bias >= 0) || !(y.lo <= 0 && y.hi >= 0);
    }
    ok(wrong == 0, "bound.gelu beyond its cube's range nothing leans: worst=%zu of %zu bound=0",
       wrong, cases);
    sinkproof_honest rare = sinkproof_exact_set(3), zero = sinkproof_exact_set(0);
    rare.order = INFINITY; // steps so rare that nothing is asked
    sinkproof_honest twice = sinkproof_honest_mul(rare, sinkproof_exact_set(2)),
                     none = sinkproof_honest_mul(zero, rare),
                     around = sinkproof_honest_mul(sinkproof_honest_sub(rare, rare), rare),
                     stored = sinkproof_honest_rounded(SINKPROOF_BF16, twice);
    ok(twice.order == INFINITY && none.order == 0 && around.order == INFINITY &&
           stored.order == INFINITY,
       "stat.spread what is not asked is not asked of its products either, but of 0: worst=%g "
       "bound=0",
       none.order);
    double v_i[3] = {1, -1, 1};
    sinkproof_honest x_i[3];
    quarter_spread plain = {0}, with = {0};
    for (int i = 0; i < 3; i++) {
        x_i[i] = sinkproof_exact_set(0);
        x_i[i].lo = x_i[i].likely_lo = -2, x_i[i].hi = x_i[i].likely_hi = 2;
        x_i[i].var = x_i[i].spread = 1;
    }
    spread_add_row(&plain, 2, v_i, x_i, false);
    x_i[2].bias = NAN;
    spread_add_row(&with, 3, v_i, x_i, false);
    bool passed = memcmp(&plain, &with, sizeof with) == 0 && plain.mean == 2;
    x_i[2].bias = INFINITY;
    spread_add_row(&with, 3, v_i, x_i, false);
    ok(passed && with.mean == 4 && with.bias == 0,
       "stat.spread passes over what may lean without bound: worst=%g bound=0", with.bias);
}

// ---- a key as sink
// ---------------------------------------------------------------------------------

// Its logit is one more score: products and sums rounded where the policy rounds those.
static void key_sinks(void) {
    static const char *const policies[] = {"f32,A5.term=f16", "f32,A5.term=bf16,A5.acc=f16",
                                           "f32,A5.acc=bf16", "real-f64,A5=bf16"};
    uint64_t state = SEED + 1;
    size_t wrong = 0, cases = 0;
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        sinkproof_policy policy = policy_named(policies[k]);
        sinkproof_setting s = sinkproof_setting_for(&policy, 1000, 1e-6);
        for (int round = 0; round < 50; round++, cases++) {
            double q_d[D], k_d[D], b;
            sinkproof_honest q[D], set;
            for (int d = 0; d < D; d++)
                q[d] = sinkproof_exact_set(q_d[d] = (float)draw_gauss(&state)),
                k_d[d] = (float)draw_gauss(&state);
            sinkproof_normaliser normaliser = {.key_d = k_d};
            sinkproof_block block = {.head_dim = D, .rows = 1, .q_stride = D, .kv_stride = D};
            sinkproof_sink_logits(&policy, &block, &normaliser, q_d, &b);
            sinkproof_planes query = sinkproof_planes_new(q, 1, D, D);
            bool done = sinkproof_honest_sink_logits(&s, &normaliser, &query, &set);
            bool inside = done && b >= set.lo && b <= set.hi;
            if (!inside && wrong++ < 3)
                note("%s: %a outside of [%a, %a]", policies[k], b, set.lo, set.hi);
            sinkproof_planes_free(&query);
        }
    }
    ok(wrong == 0, "sink.key-bias %zu logits of keys, in their sets: outside worst=%zu bound=0",
       cases, wrong);
}

int main(void) {
    inclusion();
    another_maximum();
    another_maximum_of_softmax();
    key_sinks();
    unbounded();
    return tap_done();
}
