// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a rounding point leaves of a set, computed again: the ends by MPFR at the format's
// precision, variance and bias from the comments of honest.c.
#include "tests/shared/sets.h"

#include <mpfr.h>

static const uint64_t SEED = 20261124;
enum { DRAWS = 4000 };

// ---- rounding points ---------------------------------------------------------------------------

typedef struct shape {
    sinkproof_format format;
    int bits;
} shape;
static const shape shapes[] = {{SINKPROOF_BF16, 8}, {SINKPROOF_F16, 11}, {SINKPROOF_F32, 24}};
enum { SHAPES = 3 };

static double nearest(int bits, double x) {
    mpfr_t r;
    mpfr_init2(r, bits);
    mpfr_set_d(r, x, MPFR_RNDN);
    double y = mpfr_get_d(r, MPFR_RNDN);
    mpfr_clear(r);
    return y;
}

// The spacing of a format's numbers at x, a normal one.
static real spacing(int bits, double x) {
    return ldexpl(1, ilogb(x) - bits + 1);
}

// What is left of a variance and a bias after a rounding (the comment in honest.c says why).
static real left(real var, real bias, real ulp) {
    real flips = fminl(bias * ulp, ulp * ulp / 4);
    return var > 0 ? var + fminl(0.8L * sqrtl(var) * ulp, ulp * ulp / 2) + flips : flips;
}

// A set around a number of the format or beside one, with a freedom between far below a step and
// many steps. Which of its five numbers are the format's varies.
static sinkproof_honest draw_around(uint64_t *state, const shape *f) {
    double step = ldexp(1, -f->bits), of = nearest(f->bits, 1 + draw_unit(state));
    double size = step * ldexp(1, (int)draw_below(state, 12) - 8);
    uint64_t off = draw(state) % 8; // 5 .. 7: none, or all
    sinkproof_honest x = {of, of, of, of, of, 0, 0, 0, 0};
    if (off == 0) x.lo -= size;
    if (off == 1) x.hi += size;
    if (off == 2) x.likely_lo -= size;
    if (off == 3) x.likely_hi += size;
    if (off == 4) x.mid += size / 2;
    if (off > 5) x = sinkproof_set_around(of + size / 3, size, size / 2, 0, 0);
    if (draw(state) % 3) x.var = size * size / 5, x.bias = size / 9;
    if (draw(state) % 3 == 0) x.order = size * size / 7;
    x.spread = size; // no rounding reads it
    return x;
}

static bool is_of(const shape *f, const sinkproof_honest *x) {
    const double v[] = {x->lo, x->hi, x->likely_lo, x->likely_hi, x->mid};
    bool all = true;
    for (int i = 0; i < 5; i++) all = all && nearest(f->bits, v[i]) == v[i];
    return all;
}

typedef struct rest {
    size_t ends;   // that are not the stated ones
    distance free; // of variances and biases
} rest;

static void meet_free(rest *r, const sinkproof_honest *y, real var, real spread, real bias,
                      real order, real room) {
    near(&r->free, y->var, var, var, 12), near(&r->free, y->spread, spread, spread, 12);
    near(&r->free, y->bias, bias, bias, 12), near(&r->free, y->order, order, order + room, 12);
}

static void fixed_point(rest *r, const shape *f, sinkproof_honest x, sinkproof_honest y) {
    if (is_of(f, &x)) {
        r->ends += unlike(&y, &x);
        return;
    }
    r->ends += !(y.lo == nearest(f->bits, x.lo)) + !(y.hi == nearest(f->bits, x.hi));
    r->ends += !(y.likely_lo == nearest(f->bits, x.likely_lo));
    r->ends += !(y.likely_hi == nearest(f->bits, x.likely_hi));
    r->ends += !(y.mid == nearest(f->bits, x.mid));
    bool free = y.lo != y.hi;
    real ulp = spacing(f->bits, x.mid), spread = left(x.var, x.bias, ulp);
    real order = left((real)x.var + x.order, x.bias, ulp) - spread;
    if (!(ulp * ulp <= 256 * (spread + order))) order = INFINITY; // such steps are seldom taken
    // Sets narrower than a step round apart that much more seldom; the others are left with
    // nothing.
    real width = (real)x.hi - x.lo, seldom = width < ulp ? ulp / width : 1;
    meet_free(r, &y, free ? spread * seldom : 0, spread, free ? x.bias * seldom : 0, order, spread);
}

static size_t hull_ends_unlike(const shape *f, sinkproof_honest x, sinkproof_honest y) {
    return (size_t)(!(y.lo == -larger(-x.lo, -nearest(f->bits, x.lo))) +
                    !(y.hi == larger(x.hi, nearest(f->bits, x.hi))) +
                    !(y.likely_lo == -larger(-x.likely_lo, -nearest(f->bits, x.likely_lo))) +
                    !(y.likely_hi == larger(x.likely_hi, nearest(f->bits, x.likely_hi))) +
                    !(y.mid == x.mid));
}

// Rounded or not, as the engine chose: half a step more of bias, unless nothing can round.
static void optional_point(rest *r, const shape *f, sinkproof_honest x, sinkproof_honest y) {
    real ulp = spacing(f->bits, x.mid);
    bool rounds = x.lo != x.hi || nearest(f->bits, x.mid) != x.mid;
    real bias = x.bias + (rounds ? ulp / 2 : 0), spread = left(x.var, bias, ulp);
    r->ends += hull_ends_unlike(f, x, y);
    meet_free(r, &y, spread, spread, bias, left((real)x.var + x.order, bias, ulp) - spread, spread);
}

// Inside: rounded or kept in a wider register, independently each time.
static void inside_point(rest *r, const shape *f, sinkproof_honest x, sinkproof_honest y) {
    real ulp = spacing(f->bits, x.mid);
    bool rounds = x.var > 0 || nearest(f->bits, x.mid) != x.mid;
    real var = x.var + (rounds ? ulp * ulp / 12 : 0);
    r->ends += hull_ends_unlike(f, x, y);
    meet_free(r, &y, var, var, x.bias, x.order, 0);
}

static void points(void) {
    uint64_t state = SEED;
    rest fixed = {0}, optional = {0}, inside = {0};
    size_t unchanged = 0;
    for (int i = 0; i < DRAWS; i++) {
        const shape *f = &shapes[i % SHAPES];
        sinkproof_honest x = draw_around(&state, f), y = x;
        sinkproof_policy policy = real_policy("definition");
        policy.inside = f->format;
        sinkproof_setting s = setting(&policy);
        sinkproof_point at = AT_A2;
        policy.at[at] = (sinkproof_rounding){.format = f->format, .optional = false};
        fixed_point(&fixed, f, x, sinkproof_honest_rounded(f->format, x));
        fixed_point(&fixed, f, x, sinkproof_honest_at(&s, at, x));
        sinkproof_honest two[2] = {x, x};
        sinkproof_honest_store(f->format, 1, two);
        fixed_point(&fixed, f, x, two[0]);
        unchanged += unlike(&two[1], &x); // beyond the row
        policy.at[at].optional = true;
        optional_point(&optional, f, x, sinkproof_honest_at(&s, at, x));
        inside_point(&inside, f, x, sinkproof_honest_inside(&s, x));
        policy.at[at].format = SINKPROOF_REAL;
        y = sinkproof_honest_at(&s, at, x), unchanged += unlike(&y, &x);
        // A row: inside first, then the point.
        policy.at[at] = (sinkproof_rounding){.format = SINKPROOF_BF16, .optional = i % 2 == 0};
        sinkproof_honest row[3] = {x, x, x};
        sinkproof_honest_finish(&s, at, 2, row);
        y = sinkproof_honest_at(&s, at, sinkproof_honest_inside(&s, x));
        unchanged += unlike(&row[0], &y) + unlike(&row[1], &y) + unlike(&row[2], &x);
    }
    const char *ids = "bound.rope bound.swiglu bound.operands bound.softmax-sink";
    ok(fixed.ends + optional.ends + inside.ends == 0,
       "%s ends at a rounding point as stated worst=%zu bound=0 draws=%d", ids,
       fixed.ends + optional.ends + inside.ends, DRAWS);
    report(&fixed.free, ids, "freedom after a rounding", SEED);
    report(&optional.free, ids, "freedom after a rounding that is left open", SEED);
    report(&inside.free, ids, "freedom after a rounding inside", SEED);
    ok(unchanged == 0, "%s rows in place, no point no change, worst=%zu bound=0", ids, unchanged);
}

// One step squared is 256 variances, and one unit less: whether spread.c asks such a set at all.
static void seldom(void) {
    double ulp = 0x1p-7, off = ulp / 4;
    sinkproof_honest x = {1, 1 + off, 1, 1 + off, 1, 0, 0, ulp / 256, 0};
    sinkproof_honest y = sinkproof_honest_rounded(SINKPROOF_BF16, x);
    x.bias = ulp / 256 * (1 - 0x1p-53);
    sinkproof_honest z = sinkproof_honest_rounded(SINKPROOF_BF16, x);
    ok(y.order == 0 && z.order == INFINITY && y.spread == ulp * ulp / 256,
       "bound.rope bound.swiglu a step that is seldom taken: its square is over 256 variances");
    // What a bias adds grows with it to a quarter of a step's square.
    x.var = 0, x.bias = ulp / 8;
    y = sinkproof_honest_rounded(SINKPROOF_BF16, x);
    x.bias = 8 * ulp;
    z = sinkproof_honest_rounded(SINKPROOF_BF16, x);
    ok(y.spread == ulp * ulp / 8 && z.spread == ulp * ulp / 4,
       "bound.rope bound.swiglu a bias flips steps, at the most every second one");
}

int main(void) {
    points();
    seldom();
    return tap_done();
}
