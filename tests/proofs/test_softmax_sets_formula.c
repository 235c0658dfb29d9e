// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Cases of the softmax's set that test_softmax_formula leaves open: a maximum that is subtracted
// and rounded first, for logits that are sets; rows without any known number, and where such rows
// begin; sums and rescalings whose relative error may reach 1; exponentials that are rounded before
// they are multiplied by the values; variances. 0.1 CPU seconds.
#include "tests/shared/sets.h"
#include "tests/shared/softmax_stated.h"

#include <float.h>

static const uint64_t SEED = 20261123;
enum { SOME = 12 };

static sinkproof_honest wide_set(double lo, double hi) {
    sinkproof_honest x = {lo, hi, lo, hi, lo + (hi - lo) / 2, 0, 0, 0, 0};
    if (lo == -INFINITY) x.mid = hi;
    return x;
}

// ---- the maximum first --------------------------------------------------------------------------

// z - m of each entry that there is, rounded inside and at A9.max, and never above 0.
static void differences(const sinkproof_setting *s, size_t n, const sinkproof_honest *z_j,
                        sinkproof_honest *t_j) {
    sinkproof_honest m = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, 0, 0, 0, 0};
    for (size_t j = 0; j < n; j++) {
        if (z_j[j].lo > m.lo) m.lo = z_j[j].lo;
        if (z_j[j].hi > m.hi) m.hi = z_j[j].hi;
        if (z_j[j].likely_lo > m.likely_lo) m.likely_lo = z_j[j].likely_lo;
        if (z_j[j].likely_hi > m.likely_hi) m.likely_hi = z_j[j].likely_hi;
        if (z_j[j].mid > m.mid) m.mid = z_j[j].mid;
    }
    for (size_t j = 0; j < n; j++) {
        t_j[j] = z_j[j];
        if (z_j[j].mid == -INFINITY) continue;
        sinkproof_honest inside = sinkproof_honest_inside(s, sinkproof_honest_sub(z_j[j], m));
        t_j[j] = sinkproof_honest_at(s, AT_A9_MAX, inside);
        if (t_j[j].hi > 0) t_j[j].hi = 0;
        if (t_j[j].likely_hi > 0) t_j[j].likely_hi = 0;
    }
}

static void maximum_first(void) {
    uint64_t state = SEED;
    size_t apart = 0, values = 0, clipped = 0;
    for (int i = 0; i < 300; i++) {
        sinkproof_policy rounds = real_policy(i % 2 ? "running-max" : "definition");
        rounds.inside = SINKPROOF_F32;
        sinkproof_policy plain = rounds;
        rounds.at[AT_A9_MAX] = (sinkproof_rounding){
            .format = i % 3 ? SINKPROOF_BF16 : SINKPROOF_F32, .optional = i % 5 == 0};
        sinkproof_setting with = setting(&rounds), without = setting(&plain);
        size_t n = draw_below(&state, SOME);
        sinkproof_honest z_j[SOME + 2], t_j[SOME + 1], found_j[SOME + 1], want_j[SOME + 1];
        for (size_t j = 0; j <= n; j++) {
            z_j[j] = draw_set(&state, draw_dyadic(&state));
            if (draw_below(&state, 3) == 0)
                z_j[j] = sinkproof_exact_set(draw_dyadic(&state) + 0x1p-9);
            if (j > 0 && draw_below(&state, 6) == 0) z_j[j] = sinkproof_exact_set(-INFINITY);
        }
        z_j[n + 1] = sinkproof_exact_set(-INFINITY);
        double common, common_plain;
        differences(&with, n + 1, z_j, t_j);
        for (size_t j = 0; j <= n; j++) clipped += t_j[j].hi == 0 && t_j[j].lo < 0;
        must(sinkproof_honest_softmax(&with, AT_A9, n, z_j, z_j[n], found_j, &common));
        must(sinkproof_honest_softmax(&without, AT_A9, n, t_j, t_j[n], want_j, &common_plain));
        for (size_t j = 0; j <= n; j++, values++) apart += !same(&found_j[j], &want_j[j]);
        apart += common != common_plain;
    }
    ok(apart == 0 && clipped > 0,
       "bound.softmax-sink bound.exp A9.max: the weights are those of the rounded differences, "
       "worst=%zu bound=0 values=%zu seed=%llu, %zu ends at 0",
       apart, values, (unsigned long long)SEED, clipped);
}

// ---- rows of which nothing is known -------------------------------------------------------------

// What exp(z - LSE) makes of the largest score, or 1 and the quotient's roundings.
static real most_of(const sinkproof_setting *s, const char *form, size_t n,
                    const sinkproof_honest *z_j, const sinkproof_honest *b, real kept) {
    real u = s->u, declared = s->policy->ulp[SINKPROOF_EXP] * 2 * u;
    real of_log = s->policy->ulp[SINKPROOF_LOG] * 2 * u, sum = logl((real)n + 1), top = 0;
    if (b->hi != -INFINITY) top = fmaxl(fabsl((real)b->lo), fabsl((real)b->hi));
    for (size_t j = 0; j < n; j++)
        top = fmaxl(top, fmaxl(fabsl((real)z_j[j].lo), fabsl((real)z_j[j].hi)));
    if (strstr(form, "lse-subtracted") == NULL) return (1 + 2 * u) * (1 + kept);
    real lse = gamma_of(2, u) * (top + sum + 1) + of_log * (sum + 1) + declared;
    real x = lse * (1 + u) + gamma_of(1, u) * (sum + 1) + 2 * top * (u + 0x1p-52L);
    real g = gamma_of((real)n, u);
    if (!(x < 1) || !(g < 1)) return DBL_MAX;
    return fmaxl((1 + 2 * u) * (1 + kept), (1 + declared) / ((1 - x) * (1 - g)));
}

static bool knows_nothing(const sinkproof_honest *a) {
    return a->lo == 0 && a->likely_lo == 0 && a->mid == 0.5 && a->likely_hi == a->hi &&
           a->var == 0 && a->spread == 0 && a->bias == INFINITY && a->order == 0;
}

static void nothing(const char *form, double u, size_t n, sinkproof_honest *z_j, sinkproof_honest b,
                    double kept, distance *d, size_t *wrong) {
    sinkproof_policy policy = real_policy(form);
    if (kept > 0) policy.at[AT_A9_UNNORM].format = SINKPROOF_BF16;
    sinkproof_setting s = {.policy = &policy, .u = u, .odds = 30};
    sinkproof_honest *alpha_j = calloc(n + 1, sizeof *alpha_j);
    double common = 7;
    must(alpha_j != NULL);
    z_j[n] = sinkproof_exact_set(1e6); // no key
    must(sinkproof_honest_softmax(&s, AT_A9, n, z_j, b, alpha_j, &common));
    real most = most_of(&s, form, n, z_j, &b, kept);
    for (size_t j = 0; j <= n; j++) {
        *wrong += !knows_nothing(&alpha_j[j]) || common != 0;
        near(d, alpha_j[j].hi, most, most < DBL_MAX ? most * most : 0, 60); // of 1 / (1 - x)
    }
    free(alpha_j);
}

static void unknown_rows(void) {
    enum { LONG = 4096 };
    static sinkproof_honest z_j[LONG + 1];
    const char *const forms[] = {"definition", "lse-subtracted", "definition|lse-subtracted"};
    distance d = {0};
    size_t wrong = 0;
    for (size_t f = 0; f < 3; f++)
        for (int i = 0; i < 8; i++) {
            for (size_t j = 0; j < 5; j++) z_j[j] = sinkproof_exact_set(-0.25 * (double)j - 0.5);
            sinkproof_honest none = sinkproof_exact_set(-INFINITY), some = sinkproof_exact_set(3);
            double reach = i == 7 ? 0 : ldexp(1, 2 * i);
            z_j[1] = wide_set(-512 - reach, i < 4 ? reach : -reach);
            nothing(forms[f], 0x1p-24, 5, z_j, i % 2 ? none : some, 0, &d, &wrong);
            z_j[1] = sinkproof_exact_set(-2);
            nothing(forms[f], 0x1p-24, 5, z_j, wide_set(-600, -80), 0, &d, &wrong);
            nothing(forms[f], 0x1p-24, 5, z_j, wide_set(-INFINITY, 3), 0, &d, &wrong);
            nothing(forms[f], 0x1p-24, 0, z_j, wide_set(-512, 0), 0, &d, &wrong);
            if (f != 1) nothing(forms[f], 0x1p-24, 5, z_j, wide_set(-512, 0), 0x1p-8, &d, &wrong);
        }
    // Errors of the exponent above one, and sums that may be anything: (1 - x)(1 - g) > 0 again.
    for (size_t j = 0; j < LONG; j++) z_j[j] = sinkproof_exact_set(-1);
    for (int i = 0; i <= 40; i++) {
        z_j[0] = wide_set(-600 - 40 * i, 0);
        nothing("lse-subtracted", 0.65 / LONG, LONG, z_j, sinkproof_exact_set(0), 0, &d, &wrong);
        nothing("lse-subtracted", 0x1p-13 * i / 40, LONG, z_j, sinkproof_exact_set(0), 0, &d,
                &wrong);
        nothing("lse-subtracted", 0x1p-10 * i / 40, 8, z_j, sinkproof_exact_set(0), 0, &d, &wrong);
    }
    report(&d, "bound.softmax-sink bound.form-lse", "the most that a weight of an unknown row is",
           SEED);
    ok(wrong == 0,
       "bound.softmax-sink weights of an unknown row are anything from 0 on: worst=%zu "
       "bound=0",
       wrong);
    // Rounded where weights are.
    sinkproof_policy policy = real_policy("definition");
    policy.at[AT_A9].format = SINKPROOF_BF16;
    sinkproof_setting s = setting(&policy);
    sinkproof_honest one = wide_set(-512, 0), alpha_j[2];
    double common;
    must(sinkproof_honest_softmax(&s, AT_A9, 1, &one, sinkproof_exact_set(0), alpha_j, &common));
    ok(alpha_j[0].lo == 0 && alpha_j[0].hi == 1,
       "bound.softmax-sink an unknown row's weights are "
       "rounded: worst=%.17g bound=1",
       alpha_j[0].hi);
}

// Two keys and a sink: NaN where one may be infinity, or none may be more than -infinity.
static void where_nan_begins(void) {
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    const sinkproof_honest none = sinkproof_exact_set(-INFINITY),
                           all = sinkproof_exact_set(INFINITY);
    const sinkproof_honest one = sinkproof_exact_set(1), open = wide_set(0, INFINITY);
    const sinkproof_honest below = wide_set(-INFINITY, 0);
    const struct {
        sinkproof_honest z[2], b;
        bool nan;
    } rows[] = {
        {{one, one}, one, false},    {{one, all}, one, true},     {{open, one}, one, true},
        {{one, one}, all, true},     {{one, one}, open, true},    {{none, none}, none, true},
        {{none, one}, none, false},  {{one, none}, none, false},  {{none, none}, one, false},
        {{none, below}, none, true}, {{none, none}, below, true}, {{below, one}, none, false}};
    size_t wrong = 0, cases = sizeof rows / sizeof *rows;
    for (size_t k = 0; k < cases; k++) {
        sinkproof_honest alpha_j[3];
        const sinkproof_honest z_j[3] = {rows[k].z[0], rows[k].z[1], all}; // two, and no more
        double common = 7;
        must(sinkproof_honest_softmax(&s, AT_A9, 2, z_j, rows[k].b, alpha_j, &common));
        for (size_t j = 0; j < 3; j++)
            wrong += sinkproof_is_unknown(&alpha_j[j]) != rows[k].nan ||
                     (rows[k].nan && (common != 0 || alpha_j[j].mid != 0.5));
    }
    ok(wrong == 0, "bound.overflow rows of weights that may be NaN: worst=%zu bound=0 of=%zu",
       wrong, cases);
}

// A set of 2^9 is one of which nothing is known; a narrower one, and no sink at all, is not.
static void where_it_begins(void) {
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    double below = nextafter(512, 0), common;
    const struct {
        sinkproof_honest z, b;
        bool unknown;
    } all[] = {
        {wide_set(-512, 0), sinkproof_exact_set(0), true},
        {wide_set(-below, 0), sinkproof_exact_set(0), false},
        {wide_set(-1000, -400), sinkproof_exact_set(0), true},
        {sinkproof_exact_set(0), wide_set(-512, 0), true},
        {sinkproof_exact_set(0), wide_set(-below, 0), false},
        {sinkproof_exact_set(0), wide_set(-256, 256), true},
        {sinkproof_exact_set(0), wide_set(-900, -389), false}, // 511
        {sinkproof_exact_set(0), sinkproof_exact_set(-INFINITY), false},
        {sinkproof_exact_set(700), sinkproof_exact_set(-700), false},
    };
    size_t wrong = 0, cases = sizeof all / sizeof *all;
    for (size_t k = 0; k < cases; k++) {
        sinkproof_honest alpha_j[2];
        must(sinkproof_honest_softmax(&s, AT_A9, 1, &all[k].z, all[k].b, alpha_j, &common));
        wrong += (knows_nothing(&alpha_j[0]) && knows_nothing(&alpha_j[1])) != all[k].unknown;
    }
    ok(wrong == 0, "bound.softmax-sink where nothing is known begins: worst=%zu bound=0 of=%zu",
       wrong, cases);
}

// ---- rows of known logits -----------------------------------------------------------------------

static void known_rows(void) {
    uint64_t state = SEED + 1;
    distance ends_d = {0}, var_d = {0}, kept_d = {0}, kept_var_d = {0};
    for (int i = 0; i < 400; i++) {
        row r = {.n = draw_below(&state, SOME), .u = 0x1p-24L, .declared = 0x1p-20L, .odds = 30};
        r.running = i % 4 == 1, r.base_2 = i % 4 == 2, r.steep = true;
        for (size_t j = 0; j <= r.n; j++) r.z[j] = sinkproof_exact_set(draw_dyadic(&state));
        r.b = sinkproof_exact_set(draw_dyadic(&state)), r.z[r.n] = sinkproof_exact_set(50);
        compare(&ends_d, &var_d, &r, 300);
        // The definition knows its shift, and rounds the ends themselves: another statement's.
        if (!r.running) continue;
        r.kept = 0x1p-8L * (1 + 0x1p-50L);
        compare(&kept_d, &kept_var_d, &r, 300);
    }
    report(&ends_d, "bound.softmax-sink bound.exp bound.form-running-max", "every end", SEED);
    report(&var_d, "bound.softmax-sink bound.form-base2", "variances, own and common", SEED);
    report(&kept_d, "bound.unnormalised bound.softmax-sink", "ends of what is rounded first", SEED);
    report(&kept_var_d, "bound.unnormalised", "variances of what is rounded first", SEED);
}

// Of every weight but key 0's both ends, where the logit of key 0 is a set.
static void beside_a_set(distance *d, const row *r, real k) {
    sinkproof_policy policy = policy_of(r);
    sinkproof_setting s = {.policy = &policy, .u = (double)r->u, .odds = 30};
    sinkproof_honest alpha_j[MOST + 1];
    double common;
    must(sinkproof_honest_softmax(&s, AT_A9, r->n, r->z, r->b, alpha_j, &common));
    parts p = parts_of(r);
    real g = gamma_of((real)r->n, r->u) + 2 * gamma_of(2 * ((real)r->n + 1) + 8, 0x1p-53L);
    for (size_t j = 1; j <= r->n; j++) {
        ends worst = weight(r, &p, j, WORST, g, 0);
        near(d, alpha_j[j].lo, worst.lo, worst.hi, k);
        near(d, alpha_j[j].hi, worst.hi, worst.hi, k);
    }
}

static sinkproof_honest reaching(double z, double below, double above) {
    sinkproof_honest x = wide_set(z - below, z + above);
    x.mid = z;
    return x;
}

// A largest logit that is a set, and exponentials about the smallest number beside it; then none
// but what is flushed.
static void unknown_maxima(void) {
    uint64_t state = SEED + 2;
    distance d = {0}, alone = {0};
    for (int i = 0; i < 400; i++) {
        row r = {.n = 1 + draw_below(&state, 4), .u = 0x1p-24L, .declared = 0x1p-20L};
        double reach = i % 2 ? 88 : 709, z = 4 * draw_unit(&state), below = 2 * draw_unit(&state);
        r.narrow = i % 2;
        for (size_t j = 1; j <= r.n; j++)
            r.z[j] = sinkproof_exact_set(-reach + 8 * draw_unit(&state) - 4);
        r.b = r.z[r.n], r.z[r.n] = sinkproof_exact_set(50);
        r.z[0] = reaching(z, below, 2 * draw_unit(&state));
        beside_a_set(&d, &r, r.narrow ? 0x1p30L : 2 * reach + 300); // one step of binary32
        row none = {.n = 2, .u = 0x1p-80L};
        none.z[0] = reaching(0, 0, i / 64.0), none.z[1] = sinkproof_exact_set(-3000);
        none.b = none.z[1], none.z[2] = sinkproof_exact_set(50);
        beside_a_set(&alone, &none, 7);
    }
    report(&d, "bound.softmax-sink bound.exp bound.form-base2", "beside a maximum that is a set",
           SEED + 2);
    report(&alone, "bound.form-base2", "what is flushed beside such a maximum", SEED + 2);
}

// Sums that may err by all there is, and rescalings: above, a weight is 1 and its roundings.
static void without_bounds(void) {
    distance d = {0};
    for (int i = 1; i < 60; i++) {
        row r = {.n = 2 + i % 10, .u = 0x1p-80L, .declared = (real)(i / 10) / 50, .odds = 30};
        for (size_t j = 0; j < r.n; j++) r.z[j] = sinkproof_exact_set(-0.25 * (double)(j % 3));
        r.b = sinkproof_exact_set(-0.5), r.z[r.n] = sinkproof_exact_set(50);
        r.running = r.steep = true;
        compare(&d, &d, &r, 300); // rescalings by 1.1 are off by more than all from 8 of them on
        row sums = {.n = 3, .u = (real)i / 180, .odds = 30}; // gamma_3 is 1 where u is 1 / 6
        sinkproof_policy policy = policy_of(&sums);
        sinkproof_setting s = {.policy = &policy, .u = (double)sums.u, .odds = 30};
        sinkproof_honest alpha_j[4];
        double common;
        for (int j = 0; j < 3; j++) sums.z[j] = sinkproof_exact_set(-0.25 * (1 << j));
        sums.z[3] = sinkproof_exact_set(50);
        must(sinkproof_honest_softmax(&s, AT_A9, 3, sums.z, sums.b, alpha_j, &common));
        for (size_t j = 0; j < 4 && i > 30; j++) near(&d, alpha_j[j].hi, 1 + 2 * sums.u, 2, 4);
    }
    report(&d, "bound.softmax-sink bound.form-running-max", "sums of which nothing is known", SEED);
    // e (1 + eta) of a key just below the maximum is 1, as no number that means anything else.
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = {.policy = &policy, .u = 0, .odds = 30};
    sinkproof_honest z_j[2] = {sinkproof_exact_set(-0x1p-50), sinkproof_exact_set(50)}, alpha_j[2];
    double common;
    must(sinkproof_honest_softmax(&s, AT_A9, 1, z_j, sinkproof_exact_set(0), alpha_j, &common));
    ok(alpha_j[0].lo > 0.49 && alpha_j[0].hi < 0.51 && alpha_j[0].lo < alpha_j[0].hi,
       "bound.softmax-sink a key just below the maximum: %.3g ... %.3g", alpha_j[0].lo,
       alpha_j[0].hi);
}

// Errors of an exponent beyond the range of exp: what is far below may be anything by base 2, whose
// products round the scores themselves, and nothing by forms that round the difference alone.
static void beyond_range(void) {
    static const struct {
        const char *form;
        bool natural, summed;
    } forms[] = {{"definition", true, true},
                 {"running-max", true, true},
                 {"base-2", false, true},
                 {"lse-subtracted", false, false},
                 {"lse-gated", false, true}};
    size_t wrong = 0, cases = 0;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (double top = 1e9; top < 1e13; top *= 1.25)
            for (double far = 90; far < 2000; far *= 1.5, cases++) {
                sinkproof_policy policy = real_policy(forms[f].form);
                policy.inside = SINKPROOF_F32;
                sinkproof_setting s = setting(&policy);
                sinkproof_honest z_j[] = {sinkproof_exact_set(top), sinkproof_exact_set(top - far)};
                sinkproof_honest alpha_j[3];
                double common;
                must(sinkproof_honest_softmax(&s, AT_A9, 2, z_j, sinkproof_exact_set(0), alpha_j,
                                              &common));
                // By products of 2^-24 and more each of a score of 2^29 and more: off by 60 at
                // least.
                double off = top * 0x1p-24;
                bool below = !(off > 2 * far), first = alpha_j[0].lo > 1 - 0x1p-18;
                bool none = alpha_j[1].hi < 0x1p-120 && alpha_j[2].hi < 0x1p-120;
                for (int j = 0; j < 3; j++) {
                    wrong += !(alpha_j[j].lo <= alpha_j[j].mid && alpha_j[j].mid <= alpha_j[j].hi);
                    wrong += !(alpha_j[j].likely_lo <= alpha_j[j].likely_hi);
                }
                if (forms[f].natural) wrong += !first || !none;
                if (strcmp(forms[f].form, "base-2") == 0 && !below)
                    wrong += alpha_j[0].lo != 0 || !(alpha_j[1].hi >= 1);
                if (!forms[f].summed) wrong += alpha_j[0].hi < INFINITY || alpha_j[0].lo > 0;
                if (strcmp(forms[f].form, "lse-gated") == 0) wrong += !(alpha_j[2].hi >= 1);
            }
    ok(wrong == 0,
       "bound.exp bound.softmax-sink bound.form-base2 bound.form-lse scores beyond 10^9: worst=%zu "
       "bound=0 of=%zu",
       wrong, cases);
}

int main(void) {
    beyond_range();
    maximum_first();
    unknown_rows();
    where_nan_begins();
    where_it_begins();
    known_rows();
    unknown_maxima();
    without_bounds();
    return tap_done();
}
