// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The operations on sets that bounds are built from, computed again: ends by MPFR, rounded outward
// once; variances and biases by the laws of independent factors, on numbers so short that nothing
// rounds. A set that became wider still holds, but it finds fewer mistakes.
#include "tests/shared/sets.h"

#include <mpfr.h>

static const uint64_t SEED = 20261123;
enum { DRAWS = 4000 };
static const char MADE[] = "bound.rope bound.swiglu bound.rmsnorm";

// ---- sets whose members are all multiples of 2^-10 ---------------------------------------------

static double some(uint64_t *state, uint64_t below, double unit) {
    return draw(state) % 4 == 0 ? 0 : (double)draw_below(state, below) * unit;
}

// Every member has a value of its own, and is 0 now and then.
static sinkproof_honest draw_short(uint64_t *state) {
    double mid = some(state, 64, 0.125) * (draw(state) % 2 ? 1 : -1);
    double lo = some(state, 32, 0x1p-4), hi = some(state, 32, 0x1p-4);
    sinkproof_honest x = {mid - lo, mid + hi, mid - lo / 4, mid + hi / 2, mid, 0, 0, 0, 0};
    x.var = some(state, 16, 0x1p-6), x.spread = some(state, 16, 0x1p-7);
    x.bias = some(state, 16, 0x1p-5), x.order = some(state, 16, 0x1p-8);
    return x;
}

static double least_product(double a, double b, double c, double d, int sign) {
    double p[4] = {a * c, a * d, b * c, b * d}, best = p[0];
    for (int i = 1; i < 4; i++)
        if (sign * p[i] < sign * best) best = p[i];
    return best;
}

// Independent factors: E x^2 E y^2 - (E x)^2 (E y)^2; biases as |x| + bias of either.
static sinkproof_honest product_of(sinkproof_honest x, sinkproof_honest y) {
    double xx = x.mid * x.mid, yy = y.mid * y.mid, p = fabs(x.mid * y.mid);
    double var = (x.var + xx) * (y.var + yy) - xx * yy;
    double any = (x.var + x.order + xx) * (y.var + y.order + yy) - xx * yy;
    return (sinkproof_honest){least_product(x.lo, x.hi, y.lo, y.hi, 1),
                              least_product(x.lo, x.hi, y.lo, y.hi, -1),
                              least_product(x.likely_lo, x.likely_hi, y.likely_lo, y.likely_hi, 1),
                              least_product(x.likely_lo, x.likely_hi, y.likely_lo, y.likely_hi, -1),
                              x.mid * y.mid,
                              var,
                              var,
                              (fabs(x.mid) + x.bias) * (fabs(y.mid) + y.bias) - p,
                              any - var};
}

static sinkproof_honest sum_of(sinkproof_honest x, sinkproof_honest y, int sign) {
    bool plus = sign > 0;
    return (sinkproof_honest){x.lo + (plus ? y.lo : -y.hi),
                              x.hi + (plus ? y.hi : -y.lo),
                              x.likely_lo + (plus ? y.likely_lo : -y.likely_hi),
                              x.likely_hi + (plus ? y.likely_hi : -y.likely_lo),
                              x.mid + sign * y.mid,
                              x.var + y.var,
                              x.var + y.var,
                              x.bias + y.bias,
                              x.order + y.order};
}

// The middle one of three.
static double middle(double x, double lo, double hi) {
    double low = x < hi ? x : hi;
    return low > lo ? low : lo;
}

static sinkproof_honest clamped(sinkproof_honest x, double lo, double hi) {
    bool inside = x.hi > lo && x.lo < hi; // some member of the set is left as it is
    return (sinkproof_honest){
        middle(x.lo, lo, hi),        middle(x.hi, lo, hi),  middle(x.likely_lo, lo, hi),
        middle(x.likely_hi, lo, hi), middle(x.mid, lo, hi), inside ? x.var : 0,
        inside ? x.spread : 0,       inside ? x.bias : 0,   inside ? x.order : 0};
}

static sinkproof_honest either(sinkproof_honest x, sinkproof_honest y, bool once) {
    double apart = fabs(x.mid - y.mid), var = larger(x.var, y.var) + apart * apart;
    return (sinkproof_honest){-larger(-x.lo, -y.lo),
                              larger(x.hi, y.hi),
                              -larger(-x.likely_lo, -y.likely_lo),
                              larger(x.likely_hi, y.likely_hi),
                              x.mid,
                              var,
                              var,
                              larger(x.bias, y.bias) + (once ? apart : 0),
                              larger(x.order, y.order)};
}

static sinkproof_honest declared(sinkproof_honest x, double relative, double absolute) {
    double error = larger(fabs(x.lo), fabs(x.hi)) * relative + absolute;
    x.lo -= error, x.hi += error, x.likely_lo -= error, x.likely_hi += error, x.bias += error;
    return x;
}

static void operations(void) {
    uint64_t state = SEED;
    size_t wrong[6] = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_honest x = draw_short(&state), y = draw_short(&state), got, stated;
        got = sinkproof_honest_add(x, y), stated = sum_of(x, y, 1);
        wrong[0] += unlike(&got, &stated);
        got = sinkproof_honest_sub(x, y), stated = sum_of(x, y, -1);
        wrong[0] += unlike(&got, &stated);
        got = sinkproof_honest_mul(x, y), stated = product_of(x, y);
        wrong[1] += unlike(&got, &stated);
        // A clamp at an end of the set, or anywhere.
        double at = some(&state, 32, 0.25), low = i % 3 ? -at : x.hi, high = i % 3 ? at : x.hi + at;
        if (i % 3 == 1) low = x.lo - at, high = x.lo;
        got = sinkproof_honest_clamp(x, low, high), stated = clamped(x, low, high);
        wrong[2] += unlike(&got, &stated);
        got = sinkproof_honest_hull(x, y), stated = either(x, y, false);
        wrong[3] += unlike(&got, &stated);
        got = sinkproof_honest_choice(x, y), stated = either(x, y, true);
        wrong[4] += unlike(&got, &stated);
        double relative = some(&state, 8, 0x1p-6), absolute = some(&state, 8, 0x1p-8);
        got = sinkproof_honest_declared(x, relative, absolute);
        stated = declared(x, relative, absolute);
        wrong[5] += unlike(&got, &stated);
    }
    static const char *const names[] = {"sum and difference", "product",  "clamp",
                                        "either of two",      "a choice", "a declared error"};
    for (int o = 0; o < 6; o++)
        ok(wrong[o] == 0, "%s %s of sets as stated worst=%zu bound=0 draws=%d", MADE, names[o],
           wrong[o], DRAWS);
}

// ---- ends --------------------------------------------------------------------------------------

// The least (sign 1) or the largest product of any ends, rounded outward once.
static double product_end(sinkproof_honest x, sinkproof_honest y, int sign) {
    const double a[2] = {x.lo, x.hi}, b[2] = {y.lo, y.hi};
    mpfr_t p, best;
    mpfr_init2(p, 106), mpfr_init2(best, 106);
    for (int c = 0; c < 4; c++) {
        mpfr_set_d(p, a[c / 2], MPFR_RNDN);
        mpfr_mul_d(p, p, b[c % 2], MPFR_RNDN);
        if (c == 0 || sign * mpfr_cmp(p, best) < 0) mpfr_set(best, p, MPFR_RNDN);
    }
    double end = mpfr_get_d(best, sign > 0 ? MPFR_RNDD : MPFR_RNDU);
    mpfr_clear(p), mpfr_clear(best);
    return end;
}

// a + b, rounded once.
static double sum_end(double a, double b, mpfr_rnd_t to) {
    mpfr_t s;
    mpfr_init2(s, 2200); // holds any sum of two doubles
    mpfr_set_d(s, a, MPFR_RNDN);
    mpfr_add_d(s, s, b, MPFR_RNDN);
    double end = mpfr_get_d(s, to);
    mpfr_clear(s);
    return end;
}

static double draw_long(uint64_t *state) {
    double size = ldexp(1 + draw_unit(state), (int)draw_below(state, 9) - 4);
    return draw(state) % 2 ? size : -size;
}

// Sets of one number, of a few neighbours (whose products round alike), and wide ones; some reach
// so far that products overflow.
static sinkproof_honest draw_ends(uint64_t *state) {
    uint64_t kind = draw(state) % 8;
    double a = draw_long(state), b = a;
    for (uint64_t n = draw(state) % 4; kind < 4 && n > 0; n--) b = nextafter(b, INFINITY);
    if (kind == 4) b = fabs(draw_long(state)) + a;
    if (kind == 5) a = -fabs(a), b = fabs(draw_long(state));
    if (kind == 6) b = a > 0 ? 2 * a : a / 2;
    if (draw(state) % 16 == 0) a *= 0x1p+515, b *= 0x1p+515;
    sinkproof_honest x = {a, b, a, b, a, 0, 0, 0, 0};
    return x;
}

static void ends(void) {
    uint64_t state = SEED + 1;
    size_t wrong = 0, open = 0;
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_honest x = draw_ends(&state), y = draw_ends(&state);
        sinkproof_honest p = sinkproof_honest_mul(x, y), s = sinkproof_honest_add(x, y);
        wrong += !(p.lo == product_end(x, y, 1)) + !(p.hi == product_end(x, y, -1));
        wrong += !(p.likely_lo == p.lo) + !(p.likely_hi == p.hi);
        wrong += !(s.lo == sum_end(x.lo, y.lo, MPFR_RNDD));
        wrong += !(s.hi == sum_end(x.hi, y.hi, MPFR_RNDU));
        wrong += !(s.likely_lo == s.lo) + !(s.likely_hi == s.hi);
        sinkproof_honest none = x; // an end without bound, of either factor
        if (i % 2)
            none.lo = none.likely_lo = -INFINITY;
        else
            none.hi = none.likely_hi = INFINITY;
        sinkproof_honest q = sinkproof_honest_mul(none, y), r = sinkproof_honest_mul(y, none);
        open += !(q.lo == -INFINITY && q.hi == INFINITY && q.likely_lo == -INFINITY &&
                  q.likely_hi == INFINITY && r.lo == -INFINITY && r.hi == INFINITY);
        q = sinkproof_honest_declared(none, 0x1p-4, 1);
        open += unlike(&q, &none);
    }
    ok(wrong == 0, "%s ends rounded outward once, as MPFR does, worst=%zu bound=0 draws=%d", MADE,
       wrong, DRAWS);
    ok(open == 0, "%s a set without an end has none after a product, worst=%zu bound=0", MADE,
       open);
}

int main(void) {
    operations();
    ends();
    return tap_done();
}
