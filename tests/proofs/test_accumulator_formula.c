// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One step of a sum in a known order (bound.accumulator). The ends of the set must be those of all
// results that the step can have; this test computes each of these results. It also checks the unit
// roundoff of a sum in an arbitrary order.
#include "proofs/bounds/running.h"
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20261124;
enum { DRAWS = 400, MOST = 64 };

// Numbers that an engine may hold, and the least and the largest of them.
typedef struct held {
    size_t n;
    double x[MOST];
} held;

static void hold(held *h, double x) {
    must(h->n < MOST);
    h->x[h->n++] = x;
}

// Each number also as `format` has it, where it may or must be.
static held rounded(const held *from, sinkproof_format format, bool may) {
    held to = {0};
    for (size_t i = 0; i < from->n; i++) {
        if (may) hold(&to, from->x[i]);
        hold(&to, sinkproof_round(format, from->x[i]));
    }
    return to;
}

// A number below the smallest normal one may be zero; so may one of a set that reaches below it.
static bool near_zero(const held *h, double tiny) {
    bool below = false, above = false;
    for (size_t i = 0; i < h->n; i++) below |= h->x[i]<tiny, above |= h->x[i]> - tiny;
    return below && above;
}

static number_span ends_of(const held *h) {
    number_span s = {h->x[0], h->x[0], 0};
    for (size_t i = 0; i < h->n; i++) {
        if (h->x[i] < s.lo) s.lo = h->x[i];
        if (h->x[i] > s.hi) s.hi = h->x[i];
    }
    return s;
}

// All results of one sum: the format inside rounds or does not, then the accumulator does.
static number_span plus(const sinkproof_setting *s, sinkproof_rounding acc, number_span sum,
                        number_span term) {
    held h = {0};
    hold(&h, sum.lo + term.lo), hold(&h, sum.hi + term.hi);
    h = rounded(&h, s->policy->inside, true);
    h = rounded(&h, acc.format, acc.optional);
    if (near_zero(&h, s->policy->ftz ? 0x1p-126 : 0)) hold(&h, 0);
    return ends_of(&h);
}

static sinkproof_policy inside(const char *name) {
    sinkproof_policy policy = policy_named(name);
    return policy;
}

// A short dyadic number: sums of two are exact.
static double draw_short(uint64_t *state, int exponent) {
    return ldexp((double)draw_below(state, 1 << 20) - (1 << 19), exponent - 20);
}

static number_span draw_span(uint64_t *state, int exponent, int kind) {
    double mid = draw_short(state, exponent), off = fabs(draw_short(state, exponent - 6));
    number_span x = {mid - off, mid + off, mid};
    if (kind == 1) x.lo = x.hi = mid;
    if (kind == 2) x.lo = 0;
    if (kind == 3) x.hi = 0;
    if (kind == 2 || kind == 3)
        x.lo = fmin(x.lo, x.hi), x.hi = fmax(x.lo, x.hi), x.mid = (x.lo + x.hi) / 2;
    return x;
}

static bool same(number_span x, number_span y) {
    return x.lo == y.lo && x.hi == y.hi;
}

// Sums of any size; around the smallest normal number too, and exactly there.
static void sums(void) {
    const char *names[] = {"f32", "f32,ftz=none", "bf16"};
    const sinkproof_format formats[] = {SINKPROOF_BF16, SINKPROOF_F16, SINKPROOF_F32};
    uint64_t state = SEED;
    size_t other = 0, moved = 0;
    for (int i = 0; i < 12 * DRAWS; i++) {
        sinkproof_policy policy = inside(names[i % 3]);
        policy.inside = i % 3 == 2 ? SINKPROOF_BF16 : SINKPROOF_F32;
        sinkproof_setting s = sinkproof_setting_for(&policy, 1, 1e-9);
        sinkproof_accumulator a = {.acc = {.format = formats[i / 3 % 3], .optional = i / 9 % 2}};
        int exponent = i % 5 == 0 ? -124 - (int)draw_below(&state, 4) : (int)draw_below(&state, 9);
        number_span x = draw_span(&state, exponent, (int)draw_below(&state, 4)),
                    y = draw_span(&state, exponent - 3, (int)draw_below(&state, 4));
        if (i % 4 == 0) y = (number_span){0, 0, 0};
        number_span found = running_plus(&s, &a, x, y), stated = plus(&s, a.acc, x, y);
        other += !same(found, stated);
        other += found.mid != sinkproof_round(a.acc.format, x.mid + y.mid);
        moved += found.lo != x.lo + y.lo || found.hi != x.hi + y.hi;
    }
    ok(other == 0 && moved > DRAWS,
       "bound.accumulator a sum's ends worst=%zu bound=0 of=%d, rounded=%zu seed=%llu", other,
       12 * DRAWS, moved, (unsigned long long)SEED);
}

// Below and at the smallest normal number, of either sign.
static void edges(void) {
    const double tiny = 0x1p-126, less = tiny - 0x1p-149;
    const double ends[] = {-1, -tiny, -less, 0, less, tiny, 1};
    enum { ENDS = sizeof ends / sizeof *ends };
    sinkproof_policy policy = inside("f32"), keeps = inside("f32,ftz=none");
    sinkproof_setting s = sinkproof_setting_for(&policy, 1, 1e-9), k = s;
    k.policy = &keeps;
    size_t other = 0;
    for (int lo = 0; lo < ENDS; lo++)
        for (int hi = lo; hi < ENDS; hi++)
            for (int optional = 0; optional < 2; optional++) {
                sinkproof_accumulator a = {.acc = {.format = SINKPROOF_F32, .optional = optional}};
                number_span x = {ends[lo], ends[hi], ends[lo]}, zero = {0, 0, 0};
                bool small = ends[lo] <= less && ends[hi] >= -less;
                number_span may = {small ? fmin(x.lo, 0) : x.lo, small ? fmax(x.hi, 0) : x.hi, 0};
                other += !same(running_plus(&s, &a, x, zero), may);
                other += !same(running_plus(&k, &a, x, zero), x);
                other += !same(running_span_product(&s, &a, x, (number_span){1, 1, 1}), may);
            }
    ok(other == 0, "bound.accumulator what may be read as zero worst=%zu bound=0 of=%d", other,
       3 * ENDS * (ENDS + 1));
}

// Two roundings one after the other: u (1 + u_s) + u_s, u the larger of the two points' own; the
// policy's where neither is wider, or where the order is known.
static void units(void) {
    const sinkproof_format formats[] = {SINKPROOF_REAL, SINKPROOF_BF16, SINKPROOF_F16,
                                        SINKPROOF_F32};
    const sinkproof_format insides[] = {SINKPROOF_F32, SINKPROOF_BF16};
    size_t other = 0;
    distance d = {0};
    for (int i = 0; i < 64; i++) {
        sinkproof_policy policy = inside("f32"), narrow = {0};
        policy.inside = insides[i / 32];
        sinkproof_setting s = sinkproof_setting_for(&policy, 7, 1e-6);
        sinkproof_accumulator a = {.term = {.format = formats[i % 4], .optional = true},
                                   .acc = {.format = formats[i / 4 % 4], .optional = i & 16}};
        sinkproof_setting own = setting_narrowed(&s, &a, &narrow);
        double term = sinkproof_unit_roundoff(a.term.format),
               acc = sinkproof_unit_roundoff(a.acc.format), u = term > acc ? term : acc;
        bool fixed = a.acc.format != SINKPROOF_REAL && !a.acc.optional;
        other += own.odds != s.odds;
        if (fixed || !(u > s.u)) {
            other += own.u != s.u || own.policy != s.policy;
            continue;
        }
        real stated = u * (1 + (real)s.u) + s.u;
        // Exact in long double, and rounded up.
        other += (real)own.u < stated;
        near(&d, own.u, stated, stated, 4);
        other += own.policy != &narrow || narrow.ftz != policy.ftz;
        other += narrow.inside != (acc >= term ? a.acc.format : a.term.format);
    }
    report(&d, "bound.accumulator", "the unit roundoff of any order", SEED);
    ok(other == 0, "bound.accumulator the setting of any order worst=%zu bound=0", other);
}

int main(void) {
    sums();
    edges();
    units();
    return tap_done();
}
