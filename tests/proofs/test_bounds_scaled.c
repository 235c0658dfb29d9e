// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Numbers that a product reads in eight bits or four (bound.scaled). Inside their sets: quantisers
// in float32 that find the scale and the quotient in several ways and keep the number of a code
// exactly, in float32 or in bfloat16. Outside: codes beside theirs, a scale that is forgotten, that
// of another head, of other numbers, the other layout of eight bits. TF32, whose ties go either
// way.
#include "tests/shared/bounds_engine.h"

#include "proofs/bounds/scaled.h"

#include <stdlib.h>

static const uint64_t SEED = 20261127;

enum { TOKENS = 6, HEADS = 3, DIM = 64, ROW = HEADS * DIM, COUNT = TOKENS * ROW, ROUNDS = 40 };

// ---- codes, by a search in a table of their own

typedef struct codes {
    sinkproof_format format;
    size_t count;
    float value[160]; // from 0 on
} codes;

static codes e4m3_codes(void) {
    codes c = {.format = SINKPROOF_E4M3};
    for (int k = 0; k < 8; k++) c.value[c.count++] = (float)k / 512;
    for (int e = -6; e <= 8; e++)
        for (int k = 8; k < (e == 8 ? 15 : 16); k++) c.value[c.count++] = ldexpf((float)k, e - 3);
    return c;
}
static codes e5m2_codes(void) {
    codes c = {.format = SINKPROOF_E5M2};
    for (int k = 0; k < 4; k++) c.value[c.count++] = ldexpf((float)k, -16);
    for (int e = -14; e <= 15; e++)
        for (int k = 4; k < 8; k++) c.value[c.count++] = ldexpf((float)k, e - 2);
    return c;
}
static codes int8_codes(void) {
    codes c = {.format = SINKPROOF_INT8};
    while (c.count < 128) c.value[c.count] = (float)c.count, c.count++;
    return c;
}
static codes e2m1_codes(void) {
    return (codes){SINKPROOF_E2M1, 8, {0, 0.5f, 1, 1.5f, 2, 3, 4, 6}};
}

// The place of the nearest code; of two that are as near the even one.
static size_t nearest(const codes *c, float t) {
    size_t best = 0;
    for (size_t k = 1; k < c->count; k++) {
        double d = fabs((double)fabsf(t) - (double)c->value[k]);
        double of_best = fabs((double)fabsf(t) - (double)c->value[best]);
        if (d < of_best || (!(of_best < d) && k % 2 == 0)) best = k;
    }
    return best;
}

// ---- quantisers

typedef enum quotient { DIVIDES, BY_RECIPROCAL, BY_ROUNDED_RECIPROCAL, QUOTIENTS } quotient;
typedef enum kept { EXACT, IN_F32, IN_BF16, KEPT } kept;

static float scale_of(quotient how, float amax, float largest) {
    return how == BY_ROUNDED_RECIPROCAL ? amax * (1 / largest) : amax / largest;
}
static float divide(quotient how, float x, float scale) {
    return scale == 0 ? 0 : how == DIVIDES ? x / scale : x * (1 / scale);
}
static double keep(kept how, double code, double scale) {
    double number = code * scale;
    if (how == EXACT) return number;
    number = (double)(float)number;
    return how == IN_BF16 ? sinkproof_round(SINKPROOF_BF16, number) : number;
}

// What shares a scale with the number i.
static bool same_group(sinkproof_scale scale, size_t i, size_t k) {
    bool token = i / ROW == k / ROW, head = i / DIM % HEADS == k / DIM % HEADS;
    if (scale == SINKPROOF_SCALE_OF_TENSOR) return true;
    if (scale == SINKPROOF_SCALE_OF_HEAD) return head;
    return token && (scale == SINKPROOF_SCALE_OF_TOKEN || head);
}

static float amax_of(sinkproof_scale scale, const float *x, size_t i) {
    float amax = 0;
    for (size_t k = 0; k < COUNT; k++)
        if (same_group(scale, i, k)) amax = fmaxf(amax, fabsf(x[k]));
    return amax;
}

static float block_amax(const float *x, size_t i, size_t length) {
    float amax = 0;
    for (size_t k = i / length * length; k < (i / length + 1) * length; k++)
        amax = fmaxf(amax, fabsf(x[k]));
    return amax;
}

typedef struct way {
    quotient quotient;
    kept kept;
} way;

// The code of x_i, with its sign, and its scale.
typedef struct coded {
    double sign;
    size_t place;
    float scale;
} coded;

static coded code_of(const codes *c, sinkproof_scale group, quotient how, const float *x,
                     size_t i) {
    float largest = c->value[c->count - 1];
    float scale = scale_of(how, amax_of(group, x, i), largest);
    return (coded){x[i] < 0 ? -1 : 1, nearest(c, divide(how, x[i], scale)), scale};
}

static void draw_rows(uint64_t *state, bool ties, float *x) {
    for (size_t i = 0; i < COUNT; i++) {
        double spread = ldexp(1, (int)(i / DIM % HEADS)); // heads and tokens of several sizes
        x[i] = (float)draw_from(state, SINKPROOF_BF16, spread * (double)(1 + i / ROW));
        if (ties) x[i] = (float)((double)draw_below(state, 896) - 448) / 2;
        if (draw_below(state, 50) == 0) x[i] = 0;
    }
    if (ties)
        for (size_t i = 0; i < COUNT; i += DIM) x[i] = 448;
}

static void read_sets(const sinkproof_setting *s, const char *word, const float *x,
                      sinkproof_honest *set) {
    char text[64];
    snprintf(text, sizeof text, "bf16,A5.k=%s", word);
    sinkproof_policy policy = policy_named(text);
    for (size_t i = 0; i < COUNT; i++) set[i] = sinkproof_exact_set((double)x[i]);
    must(sinkproof_honest_scaled(s, AT_A5_K, policy.at[AT_A5_K], TOKENS, HEADS, DIM, set));
}

static bool inside(const sinkproof_honest *set, double v) {
    return v >= set->lo && v <= set->hi;
}

// ---- scales of float32

typedef struct tallied {
    size_t checked, outside, neighbours, admitted, forgotten, of_head, layout;
} tallied;

static void tally_honest(const codes *c, sinkproof_scale group, const float *x, size_t i,
                         const sinkproof_honest *set, tallied *t) {
    for (int q = 0; q < QUOTIENTS; q++) {
        coded v = code_of(c, group, (quotient)q, x, i);
        for (int k = 0; k < KEPT; k++) {
            double number = keep((kept)k, v.sign * (double)c->value[v.place], (double)v.scale);
            t->checked++, t->outside += !inside(set, number);
        }
    }
}

static void tally_mistakes(const codes *c, const codes *other, sinkproof_scale group,
                           const float *x, size_t i, const sinkproof_honest *set, tallied *t) {
    coded v = code_of(c, group, DIVIDES, x, i);
    if (x[i] == 0) return;
    double code = v.sign * (double)c->value[v.place], scale = (double)v.scale;
    t->neighbours++;
    if (v.place > 0) t->admitted += inside(set, v.sign * (double)c->value[v.place - 1] * scale);
    if (v.place + 1 < c->count)
        t->admitted += inside(set, v.sign * (double)c->value[v.place + 1] * scale);
    t->forgotten += !inside(set, code);
    float wrong = scale_of(DIVIDES, amax_of(group, x, (i + DIM) % COUNT), c->value[c->count - 1]);
    t->of_head += !inside(set, code * (double)wrong);
    coded w = code_of(other, group, DIVIDES, x, i);
    t->layout += !inside(set, w.sign * (double)other->value[w.place] * (double)w.scale);
}

static void scaled_rows(void) {
    const codes all[] = {e4m3_codes(), e5m2_codes(), int8_codes(), e2m1_codes()};
    static const char *const groups[SINKPROOF_SCALES] = {NULL,   NULL,    "tensor",
                                                         "head", "token", "token-head"};
    sinkproof_policy policy = policy_named("bf16");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, STANDARD_RATE);
    uint64_t state = SEED;
    for (size_t f = 0; f < 4; f++)
        for (int g = SINKPROOF_SCALE_OF_TENSOR; g < SINKPROOF_SCALES; g++) {
            char word[40];
            snprintf(word, sizeof word, "%s(%s)", sinkproof_format_name(all[f].format), groups[g]);
            tallied t = {0};
            for (int round = 0; round < 4; round++) {
                static float x[COUNT];
                static sinkproof_honest set[COUNT];
                draw_rows(&state, round % 2 == 1, x);
                read_sets(&s, word, x, set);
                for (size_t i = 0; i < COUNT; i += 5) {
                    const codes *other = &all[f == 0 ? 1 : 0];
                    sinkproof_scale group = (sinkproof_scale)g;
                    tally_honest(&all[f], group, x, i, &set[i], &t);
                    if (round % 2 == 0) tally_mistakes(&all[f], other, group, x, i, &set[i], &t);
                }
            }
            bool one = g == SINKPROOF_SCALE_OF_TENSOR || g == SINKPROOF_SCALE_OF_TOKEN;
            ok(t.outside == 0 && t.checked > 1000,
               "bound.scaled %s: quantisers worst=%zu bound=0 outside of=%zu", word, t.outside,
               t.checked);
            ok(t.admitted * 50 <= t.neighbours,
               "bound.scaled %s: codes beside worst=%zu bound=%zu admitted", word, t.admitted,
               t.neighbours / 50);
            ok(t.forgotten * 10 >= t.neighbours * 6,
               "bound.scaled %s: a scale that is forgotten is seen in %zu of %zu", word,
               t.forgotten, t.neighbours);
            ok(one || t.of_head * 10 >= t.neighbours * 6,
               "bound.scaled %s: the scale of another head is seen in %zu of %zu", word, t.of_head,
               t.neighbours);
            ok(t.layout * 10 >= t.neighbours * 4,
               "bound.scaled %s: another format is seen in %zu of %zu", word, t.layout,
               t.neighbours);
        }
}

// ---- blocks

// MXFP8: the power of two from the exponent field, or from the logarithm rounded up.
static void powers_of_two(void) {
    const codes c = e4m3_codes();
    sinkproof_policy policy = policy_named("bf16");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, STANDARD_RATE);
    uint64_t state = SEED + 1;
    size_t outside = 0, single = 0, checked = 0, rule = 0, code = 0;
    for (int round = 0; round < ROUNDS; round++) {
        static float x[COUNT];
        static sinkproof_honest by_floor[COUNT], up[COUNT];
        draw_rows(&state, false, x);
        read_sets(&s, "mxfp8", x, by_floor), read_sets(&s, "mxfp8-up", x, up);
        for (size_t i = 0; i < COUNT; i++) {
            float amax = block_amax(x, i, 32);
            if (amax == 0 || x[i] == 0) continue;
            int e = (int)floor(log2((double)amax)) - 8, above = (int)ceil(log2((double)amax / 448));
            size_t low = nearest(&c, ldexpf(x[i], -e)), high = nearest(&c, ldexpf(x[i], -above));
            double sign = x[i] < 0 ? -1 : 1, of_low = sign * ldexp((double)c.value[low], e),
                   of_high = sign * ldexp((double)c.value[high], above);
            checked++, outside += !inside(&by_floor[i], of_low) + !inside(&up[i], of_high);
            single += by_floor[i].lo == by_floor[i].hi && up[i].lo == up[i].hi;
            rule += of_low != of_high && inside(&by_floor[i], of_high);
            code += low > 0 && inside(&by_floor[i], sign * ldexp((double)c.value[low - 1], e));
        }
    }
    ok(outside == 0, "bound.scaled mxfp8 by both rules worst=%zu bound=0 outside of=%zu", outside,
       checked);
    ok(single == checked && rule == 0 && code == 0,
       "bound.scaled mxfp8: %zu of %zu sets are one number, of one rule", single, checked);
}

// NVFP4: eight-bit scales of blocks of 16 under one of the tensor.
static void scales_of_scales(void) {
    const codes c = e2m1_codes(), scales = e4m3_codes();
    sinkproof_policy policy = policy_named("bf16");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, STANDARD_RATE);
    uint64_t state = SEED + 2;
    size_t outside = 0, checked = 0, beside = 0, forgotten = 0;
    for (int round = 0; round < ROUNDS; round++) {
        static float x[COUNT];
        static sinkproof_honest set[COUNT];
        draw_rows(&state, false, x);
        read_sets(&s, "nvfp4(tensor)", x, set);
        float amax = amax_of(SINKPROOF_SCALE_OF_TENSOR, x, 0);
        float all = 448 * 6 / amax, one = amax / (448 * 6); // an inverse, or the scale itself
        for (size_t i = 0; i < COUNT; i++) {
            float block = block_amax(x, i, 16);
            size_t by = round % 2 == 0 ? nearest(&scales, all * (block * (1 / 6.0f)))
                                       : nearest(&scales, block / 6 / one);
            float scale = scales.value[by];
            if (scale == 0 || x[i] == 0) continue;
            float t = round % 2 == 0 ? x[i] * (all / scale) : x[i] / (scale * one);
            size_t code = nearest(&c, t);
            double sign = x[i] < 0 ? -1 : 1, number = (double)c.value[code] * (double)scale * sign;
            checked++,
                outside +=
                !inside(&set[i], keep(round % 4 < 2 ? IN_BF16 : EXACT, number, 1 / (double)all));
            beside += code > 0 && inside(&set[i], (double)c.value[code - 1] * (double)scale * sign *
                                                      (double)one);
            forgotten += code > 0 && !inside(&set[i], number);
        }
    }
    ok(outside == 0, "bound.scaled nvfp4(tensor) worst=%zu bound=0 outside of=%zu", outside,
       checked);
    ok(beside * 200 <= checked && forgotten * 2 >= checked,
       "bound.scaled nvfp4(tensor): codes beside worst=%zu bound=%zu, no tensor's scale %zu of %zu",
       beside, checked / 200, forgotten, checked);
}

// ---- sets that are no numbers

// A set's codes hold those of every number in it, also where the largest number is open.
static void wide_sets(void) {
    static const char *const words[] = {"e4m3(head)", "int8(token)", "mxfp8",    "nvfp4(tensor)",
                                        "e4m3",       "tf32",        "e5m2-inf", "e4m3(0.3)?"};
    sinkproof_policy policy = policy_named("bf16");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, STANDARD_RATE);
    uint64_t state = SEED + 3;
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        size_t outside = 0, mids = 0;
        char text[64];
        snprintf(text, sizeof text, "bf16,A5.k=%s", words[w]);
        sinkproof_rounding how = policy_named(text).at[AT_A5_K];
        for (int round = 0; round < ROUNDS; round++) {
            static float x[COUNT];
            static sinkproof_honest set[COUNT];
            static double v[COUNT];
            draw_rows(&state, false, x);
            for (size_t i = 0; i < COUNT; i++) {
                double width = fabs((double)x[i]) * ldexp(1, -1 - (int)draw_below(&state, 30));
                double lo = (double)x[i] - width, hi = (double)x[i] + width;
                set[i] = (sinkproof_honest){
                    .lo = lo, .hi = hi, .likely_lo = lo, .likely_hi = hi, .mid = (double)x[i]};
                v[i] = fmin(lo + draw_unit(&state) * 2 * width, hi);
            }
            must(sinkproof_honest_scaled(&s, AT_A5_K, how, TOKENS, HEADS, DIM, set));
            if (!how.optional || round % 2 == 0) sinkproof_scaled_read(how, TOKENS, HEADS, DIM, v);
            for (size_t i = 0; i < COUNT; i++)
                outside += !inside(&set[i], v[i]), mids += !inside(&set[i], set[i].mid);
        }
        ok(outside == 0 && mids == 0, "bound.scaled %s of sets worst=%zu bound=0", words[w],
           outside + mids);
    }
}

// Without a limit nothing is known; a number beyond the largest is the largest, or NaN.
static void ends_of_range(void) {
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, STANDARD_RATE);
    const char *const words[] = {"e4m3", "e4m3-nan", "e4m3(head)", "mxfp8", "nvfp4", "tf32"};
    size_t unknown = 0, single = 0, nan = 0, finite = 0;
    for (int w = 0; w < 6; w++) {
        char text[64];
        snprintf(text, sizeof text, "f32,A5.k=%s", words[w]);
        sinkproof_rounding how = policy_named(text).at[AT_A5_K];
        sinkproof_honest x = sinkproof_unknown_set(1), zero = sinkproof_exact_set(0);
        sinkproof_honest big = sinkproof_exact_set(500);
        must(sinkproof_honest_scaled(&s, AT_A5_K, how, 1, 1, 1, &x));
        must(sinkproof_honest_scaled(&s, AT_A5_K, how, 1, 1, 1, &zero));
        must(sinkproof_honest_scaled(&s, AT_A5_K, how, 1, 1, 1, &big));
        unknown += sinkproof_is_unknown(&x), single += zero.lo == 0 && zero.hi == 0;
        nan += sinkproof_is_unknown(&big);
        finite += w == 0 && big.lo == 448 && big.hi == 448;
    }
    ok(unknown == 6 && single == 6 && nan == 1 && finite == 1,
       "bound.scaled what is unknown stays so, 500 is 448 or NaN: %zu %zu %zu", unknown, single,
       nan);
}

// ---- TF32

static void ties_of_tf32(void) {
    uint64_t state = SEED + 4;
    size_t outside = 0, several = 0, cut = 0, ties = 0;
    for (int round = 0; round < 4000; round++) {
        double x = (double)(float)draw_from(&state, SINKPROOF_F32, 3);
        double step = sinkproof_ulp(SINKPROOF_TF32, x), below = trunc(x / step) * step;
        bool tie = round % 2 == 0;
        if (tie) x = below + copysign(step / 2, x), ties++;
        sinkproof_honest set = sinkproof_honest_rounded(SINKPROOF_TF32, sinkproof_exact_set(x));
        sinkproof_honest down =
            sinkproof_honest_rounded(SINKPROOF_TF32_CUT, sinkproof_exact_set(x));
        outside += !inside(&set, sinkproof_round(SINKPROOF_TF32, x));
        outside += !inside(&set, sinkproof_round(SINKPROOF_TF32_EVEN, x));
        several += (set.lo < set.hi) == tie;
        cut += down.lo == down.hi && down.lo == below;
    }
    ok(outside == 0, "bound.operands tf32 ties either way worst=%zu bound=0", outside);
    ok(several == 4000 && cut == 4000,
       "bound.operands tf32: %zu ties have two values, all others one, and what is cut has one",
       ties);
}

int main(void) {
    scaled_rows();
    powers_of_two();
    scales_of_scales();
    wide_sets();
    ends_of_range();
    ties_of_tf32();
    return tap_done();
}
