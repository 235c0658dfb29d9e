// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// An exponential that is rounded before it is multiplied by its value (bound.unnormalised),
// computed again in long double from the book's formula: every end and the variance of the rounded
// number, and its share of the sum.
#include "proofs/bounds/softmax_row.h"
#include "tests/shared/sets.h"

static const uint64_t SEED = 20261123;
enum { DRAWS = 300 };

// An exponential's ends, which share no bit pattern and stay in their order.
static numerator draw_numerator(uint64_t *state, int exponent) {
    double mid = ldexp(1 + draw_unit(state) / 2, exponent), step = mid / 16;
    numerator n = {mid - (1 + draw_unit(state)) * 2 * step,
                   mid + (1 + draw_unit(state)) * 2 * step,
                   mid - (1 + draw_unit(state)) / 2 * step,
                   mid + (1 + draw_unit(state)) / 2 * step,
                   mid,
                   1};
    return n;
}

static sinkproof_policy keeping(sinkproof_format format) {
    sinkproof_policy policy = real_policy("definition");
    policy.at[AT_A9_UNNORM] = (sinkproof_rounding){.format = format};
    return policy;
}

static sinkproof_honest plain(const numerator *n, double var) {
    sinkproof_honest e = {n->lo, n->hi, n->likely_lo, n->likely_hi, n->mid, 0, 0, 0, 0};
    e.var = n->mid * n->mid * var;
    return e;
}

// f e (1 - q) - eta <= f k <= f e (1 + q) + eta, q = u (1 + 2^-50); the variance of a uniform error
// of u e is u^2 e^2 / 3, that of eta is eta^2 / 3; below eta nothing is left. eta: beside the
// largest that the maximum may be.
static void somehow(distance *d, const sinkproof_honest *found, const numerator *n, real var,
                    sinkproof_format format, double lift) {
    real q = (real)sinkproof_unit_roundoff(format) * (1 + 0x1p-50L);
    real eta = (real)sinkproof_format_underflow(format) * lift, mid = n->mid;
    near(d, found->lo, fmaxl(n->lo * (1 - q) - eta, 0), n->lo + eta, 3);
    near(d, found->hi, n->hi * (1 + q) + eta, n->hi + 2 * eta, 3);
    near(d, found->likely_lo, fmaxl(n->likely_lo * (1 - q) - eta, 0), n->likely_lo + eta, 3);
    near(d, found->likely_hi, n->likely_hi * (1 + q) + eta, n->likely_hi + 2 * eta, 3);
    near(d, found->mid, mid, mid, 1);
    real free = mid * mid * (var + q * q / 3) + eta * eta / 3, lean = mid < eta ? mid : 0;
    near(d, found->var, free, free, 9), near(d, found->bias, lean, lean, 1);
}

// What leaves the shift unknown: an end of the maximum, and each of the forms.
static void unknown_shift(void) {
    const sinkproof_format formats[] = {SINKPROOF_BF16, SINKPROOF_F16, SINKPROOF_F32};
    uint64_t state = SEED;
    distance d = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_format format = formats[i % 3];
        sinkproof_policy policy = keeping(format);
        sinkproof_setting s = setting(&policy);
        int least = ilogb(sinkproof_format_underflow(format));
        numerator n =
            draw_numerator(&state, i % 5 ? -(int)draw_below(&state, 20) : least - 1 + i % 4);
        softmax_row row = {.s = &s, .quotient = true, .e_j = &n, .m_lo = 1, .m_hi = 1};
        row.lift = i % 7 ? exp(2 * draw_unit(&state)) : 1;
        int why = i / 3 % 4;
        row.m_hi += why == 0, row.base_2 = why == 1;
        row.running = why == 2, row.lse_gated = why == 3;
        double var = ldexp(draw_unit(&state), 2 * ilogb(sinkproof_unit_roundoff(format)));
        sinkproof_honest found = kept_exponential(&row, 0, var);
        somehow(&d, &found, &n, var, format, row.lift);
    }
    report(&d, "bound.unnormalised", "what is kept under some shift", SEED);
}

// In binary64 q itself is as small as its own margin, and what underflows can be seen beside it.
static void margins(void) {
    sinkproof_policy policy = keeping(SINKPROOF_F64);
    sinkproof_setting s = setting(&policy);
    distance d = {0};
    uint64_t state = SEED + 1;
    for (int i = 0; i < DRAWS; i++) {
        numerator n = draw_numerator(&state, -1074 + i % 8);
        softmax_row row = {.s = &s, .e_j = &n, .m_lo = 1, .m_hi = 1, .running = true, .lift = 1};
        sinkproof_honest found = kept_exponential(&row, 0, 0);
        real eta = sinkproof_format_underflow(SINKPROOF_F64);
        // A product is rounded to a multiple of 2^-1074.
        near(&d, found.lo, fmaxl(n.lo - eta, 0), 0x1p-1074L, 0x1p52L);
        near(&d, found.likely_lo, fmaxl(n.likely_lo - eta, 0), 0x1p-1074L, 0x1p52L);
        near(&d, found.hi, n.hi + eta, 0x1p-1074L, 0x1p52L);
        near(&d, found.likely_hi, n.likely_hi + eta, 0x1p-1074L, 0x1p52L);
    }
    report(&d, "bound.unnormalised", "the least numbers of binary64", SEED + 1);
}

// Where the shift is known it is the rounding point, applied to the set; masked keys, and those of
// which nothing is known, are as they were.
static void known_shift(void) {
    uint64_t state = SEED + 2;
    sinkproof_policy policy = keeping(SINKPROOF_BF16);
    sinkproof_setting s = setting(&policy);
    size_t other = 0;
    for (int i = 0; i < DRAWS; i++) {
        numerator n = draw_numerator(&state, -(int)draw_below(&state, 20));
        if (i % 8 == 1) n.lo = 0;
        if (i % 8 == 2) n.hi = 1, n.likely_hi = 1;
        softmax_row row = {.s = &s, .e_j = &n, .m_lo = -2, .m_hi = -2, .lift = 1};
        double var = ldexp(draw_unit(&state), -20);
        sinkproof_honest found = kept_exponential(&row, 0, var);
        sinkproof_honest e = plain(&n, var);
        e = sinkproof_honest_rounded(SINKPROOF_BF16, e);
        other += !same(&found, &e);
        row.running = true;
        n.hi = 1;
        found = kept_exponential(&row, 0, 0);
        other += !(found.hi > 1);
        for (int open = 0; open < 2; open++) {
            n = open ? (numerator){.hi = INFINITY, .mid = 1, .likely_hi = 2} : (numerator){0};
            row.running = i % 2;
            found = kept_exponential(&row, 0, 0.25), e = plain(&n, 0.25);
            other += !same(&found, &e);
        }
    }
    ok(other == 0,
       "bound.unnormalised under a known shift the point itself worst=%zu bound=0 of=%d", other,
       4 * DRAWS);
}

// k / (e + others): the least over the most, and the other way round.
static void shares(void) {
    uint64_t state = SEED + 3;
    distance d = {0};
    for (int i = 0; i < DRAWS; i++) {
        numerator k = draw_numerator(&state, -3), n = draw_numerator(&state, -3),
                  o = draw_numerator(&state, -2 + i % 5);
        range found = kept_range_share((range){i % 7 ? k.lo : 0, k.hi}, (range){n.lo, n.hi},
                                       (range){o.lo, o.hi});
        real least = (real)(i % 7 ? k.lo : 0) / ((real)n.hi + o.hi),
             most = (real)k.hi / ((real)n.lo + o.lo);
        near(&d, found.lo, least, least, 2), near(&d, found.hi, most, most, 2);
    }
    // Nothing over nothing is nothing, and no bound stays none.
    range none = kept_range_share((range){0, INFINITY}, (range){0, INFINITY}, (range){0, 0});
    range tiny = kept_range_share((range){-1, 1}, (range){1, 1}, (range){1, 1});
    range below = kept_range_share((range){-INFINITY, 1}, (range){1, 1}, (range){1, 1});
    range empty = kept_range_share((range){0, 1}, (range){0, 0}, (range){0, 0});
    report(&d, "bound.unnormalised", "the share of a sum", SEED + 3);
    ok(none.lo == 0 && none.hi == INFINITY && tiny.lo == 0 && tiny.hi == 0.5 && below.lo == 0 &&
           below.hi == 0.5 && empty.lo == 0,
       "bound.unnormalised the shares at the edges");
}

// o (1 + q) + (phi (1 + q) + eta) / a, a = 1 - what e^0 may err. In base 2 the maximum times
// log2(e) and its scale err too, as in bound.form-base2.
static void most(void) {
    const sinkproof_format formats[] = {SINKPROOF_BF16, SINKPROOF_F16, SINKPROOF_F32};
    uint64_t state = SEED + 4;
    distance d = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_policy policy = keeping(formats[i % 3]);
        if (i % 4 == 0) policy.inside = SINKPROOF_F32;
        sinkproof_setting s = setting(&policy);
        numerator n = {.own = 1 + draw_unit(&state) / 8};
        softmax_row row = {.s = &s, .e_j = &n, .base_2 = i % 2, .running = i % 5 == 0};
        row.declared = draw_unit(&state) / 16, row.growth = draw_unit(&state) / 64;
        const sinkproof_honest z = sinkproof_exact_set(100 * draw_unit(&state));
        sinkproof_honest t_j[2];
        row.z_j = &z, row.n = 1, row.t_j = t_j, row.b = sinkproof_exact_set(-1);
        shift_by_maximum(&row, AT_A9);
        real q = (real)sinkproof_unit_roundoff(formats[i % 3]) * (1 + 0x1p-50L), u = s.u;
        real eta = sinkproof_format_underflow(formats[i % 3]);
        real phi = policy.inside == SINKPROOF_F32 ? 0x1p-126L : 0x1p-1022L;
        real two = 2 * u / (1 - 2 * u), error = 0, top = fmaxl(z.mid, 1);
        if (row.base_2) {
            error = (1 + two) * two * top + (u + 0x1p-52L) * (1 + two) * two * 2 * top;
            if (row.running) error += (1 + two) * 2 * u * top;
            error += row.growth * error;
        }
        real a = 1 - expm1l(error) * (1 + row.declared) - row.declared;
        real bound = n.own * (1 + q) + (phi * (1 + q) + eta) / a;
        near(&d, most_of_kept_share(&row, 0), bound, bound, 0x1p8L);
    }
    report(&d, "bound.unnormalised", "the most of a share", SEED + 4);
    sinkproof_policy policy = keeping(SINKPROOF_BF16);
    sinkproof_setting s = setting(&policy);
    numerator n = {.own = 1};
    softmax_row row = {.s = &s, .e_j = &n, .one = 0};
    ok(most_of_kept_share(&row, 0) == INFINITY, "bound.unnormalised no bound where e^0 may be 0");
}

// Which rows round: a point, a format, and weights that are quotients or gated ones.
static void which(void) {
    sinkproof_policy rounds = keeping(SINKPROOF_BF16), leaves = keeping(SINKPROOF_REAL);
    size_t other = 0;
    for (int i = 0; i < 16; i++) {
        bool at = i & 1, kept = i & 2, quotient = i & 4, gated = i & 8;
        sinkproof_setting s = setting(kept ? &rounds : &leaves);
        softmax_row row = {.s = &s, .quotient = quotient, .lse_gated = gated};
        sinkproof_point point = at ? AT_A9 : AT_A11;
        other += rounds_exponentials(&row, point) != (at && kept && (quotient || gated));
    }
    ok(other == 0, "bound.unnormalised the rows that round worst=%zu bound=0 of=16", other);
}

int main(void) {
    unknown_shift();
    margins();
    known_shift();
    shares();
    most();
    which();
    return tap_done();
}
