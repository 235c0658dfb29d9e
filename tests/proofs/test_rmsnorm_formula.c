// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The set of RMSNorm (bound.rmsnorm), computed again in long double from the book's formula: short
// rows, also of sets; rows that are long enough for the likely ends to lie inside the worst ends;
// rows that lean; squares that underflow and are flushed; sums that may be infinite. Where only
// binary64's own roundings are left, the ends agree to the last unit.
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20260124;
enum { MOST = 1024, DRAWS = 200 };

typedef struct row {
    size_t n;
    double eps, scale[MOST];
    sinkproof_honest x[MOST + 1]; // the last is no element: whoever reads it, errs
} row;

typedef struct root {
    sinkproof_honest set;
    real leans, shared;
} root;

// 1 / sqrt(mean(x^2) + eps), as the book has it.
static root stated_root(const sinkproof_setting *s, const row *r) {
    static double squares[MOST];
    real n = r->n, u = s->u, sum = 0, lo = 0, hi = 0, fourth = 0, own = 0;
    for (size_t c = 0; c < r->n; c++) {
        const sinkproof_honest *x = &r->x[c];
        real small = fmaxl(0, fmaxl(x->lo, -x->hi)), big = fmaxl(-x->lo, x->hi), mid = x->mid;
        squares[c] = (double)(mid * mid), sum += mid * mid, fourth += mid * mid * mid * mid;
        lo += small * small, hi += big * big, own += mid * mid * x->var;
    }
    real here = gamma_of(n + 8, 0x1p-53L), gamma = gamma_of(n + 3, u);
    real declared = quotient_of(s->policy, u);
    if (declared > 0) gamma = (1 + gamma_of(n + 2, u)) * (1 + declared) - 1;
    gamma += 2 * here;
    real under =
        fmaxl(sinkproof_format_underflow(s->policy->inside), s->policy->ftz ? 0x1p-126L : 0);
    real lost = (s->policy->ftz ? 3 * n : n) * under, top = (hi + lost) * (1 + gamma);
    real mid = 1 / sqrtl(sum / n + r->eps);
    bool none = top > sinkproof_format_largest(s->policy->inside);
    real low = none ? 0 : (1 - here) / sqrtl(top / n + r->eps * (1 + gamma));
    real high = (1 + here) / sqrtl((fmaxl(lo - lost, 0) / n + r->eps) * (1 - gamma));
    root m = {.leans = sum > 0 ? lean_of(r->n, squares, (double)sum) / (2 * sum) : 0};
    m.leans += declared / 2;
    if (sum > 0)
        m.shared = u * u / 12 * (n / 3 + n * fourth / (6 * sum * sum) + 3) + own / (sum * sum);
    real likely = sqrtl(6 * (real)s->odds * m.shared) + m.leans + 2 * here;
    real l_low = fmaxl(low, mid * (1 - likely)), l_high = fminl(high, mid * (1 + likely));
    if (none || lo != hi) l_low = low, l_high = high;
    real off = s->policy->ulp[SINKPROOF_RSQRT] * 2 * u * high;
    m.set = (sinkproof_honest){(double)(low - off),
                               (double)(high + off),
                               (double)(l_low - off),
                               (double)(l_high + off),
                               (double)mid,
                               0,
                               0,
                               (double)off,
                               0};
    return m;
}

// Every element of the row's set, to within k roundings.
static void compare(const sinkproof_setting *s, const row *r, real k, distance *d) {
    static sinkproof_honest y[MOST];
    double common;
    sinkproof_honest_rmsnorm(s, AT_A1, &(sinkproof_norm){r->n, r->scale, r->eps}, r->x, y, &common);
    root m = stated_root(s, r);
    near(d, common, m.shared, m.shared, k);
    double under = setting_underflow(s);
    for (size_t c = 0; c < r->n; c++) {
        sinkproof_honest x = honest_flushed(s, r->x[c]);
        sinkproof_honest w = honest_flushed(s, sinkproof_exact_set(r->scale[c]));
        sinkproof_honest z = sinkproof_honest_mul(sinkproof_honest_mul(x, w), m.set);
        bool zero = z.lo == 0 && z.hi == 0;
        z = sinkproof_honest_roundings(s, z, 2);
        double other = fmax(m.set.hi, fabs(r->scale[c]));
        if (!zero) z = sinkproof_honest_declared(z, 0, under * (1 + s->u) * other);
        // What underflows has fewer bits than 53.
        real size = fmax(fabs(z.lo), fabs(z.hi)) + 0x1p-1021, bias = z.bias;
        near(d, y[c].lo, z.lo, size, k), near(d, y[c].hi, z.hi, size, k);
        near(d, y[c].likely_lo, z.likely_lo, size, k);
        near(d, y[c].likely_hi, z.likely_hi, size, k);
        near(d, y[c].mid, z.mid, size, k), near(d, y[c].order, z.order, z.order, k);
        near(d, y[c].var, z.var, z.var + 0x1p-1021L, 2 * k);
        bias += m.leans * fabs(z.mid);
        near(d, y[c].bias, bias, bias + 0x1p-1021L, k);
    }
}

static void fill(row *r, size_t n, double x, double eps) {
    r->n = n, r->eps = eps;
    for (size_t c = 0; c < n; c++) r->x[c] = sinkproof_exact_set(x), r->scale[c] = 1;
    r->x[n] = sinkproof_exact_set(1000.0625);
}

// Known elements, equal ones, and sets, one of which holds zero.
static void short_rows(void) {
    static row r;
    uint64_t state = SEED + 3;
    distance d = {0};
    for (int i = 0; i < 2 * DRAWS; i++) {
        sinkproof_policy policy = real_policy("definition");
        sinkproof_setting s = setting(&policy);
        fill(&r, 1 + draw_below(&state, 12), 1.5, i % 3 ? 0.5 : 0x1p-20);
        for (size_t c = 0; c < r.n; c++) {
            if (i % 7) r.x[c] = sinkproof_exact_set(draw_dyadic(&state));
            if (i % 2) r.x[c] = draw_set(&state, c == 0 ? 0x1p-12 : r.x[c].mid);
            r.scale[c] = draw_dyadic(&state);
        }
        compare(&s, &r, 4 * (real)r.n + 40, &d);
    }
    report(&d, "bound.rmsnorm", "short rows", SEED + 3);
}

// Numbers whose squares no sum rounds, so that K does not grow with the row.
static void long_rows(void) {
    static row r;
    uint64_t state = SEED;
    distance d = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_policy policy = real_policy("definition");
        sinkproof_setting s = setting(&policy);
        if (i % 4 == 0) policy.ulp[SINKPROOF_DIV] = 40;
        s.odds = i % 3 ? 30 : 0.2;
        fill(&r, i % 2 ? MOST - 1 - draw_below(&state, 300) : 1 + draw_below(&state, 99), 1,
             i % 5 ? 0.5 : 0x1p-20);
        for (size_t c = 0; c < r.n; c++) {
            r.x[c] = sinkproof_exact_set(draw_dyadic(&state));
            if (i % 7 == 0 && c % 2) r.x[c] = draw_set(&state, r.x[c].mid);
            r.scale[c] = draw_dyadic(&state);
        }
        compare(&s, &r, i % 7 == 0 ? 40 + 4 * r.n : 40, &d);
    }
    report(&d, "bound.rmsnorm bound.quotient", "long rows", SEED);
}

// Squares a quarter of a spacing above a multiple of it: a running sum rounds them all one way.
static void leaning_rows(void) {
    static row r;
    uint64_t state = SEED + 1;
    distance d = {0};
    size_t lean = 0;
    for (int i = 0; i < 60; i++) {
        sinkproof_policy policy = real_policy("definition");
        sinkproof_setting s = setting(&policy);
        double size = ldexp(1, i % 13 - 9);
        fill(&r, 150 + draw_below(&state, 100), 1, size * size / 2);
        r.x[r.n] = sinkproof_exact_set(size * 1000.0625);
        for (size_t c = 0; c < r.n; c++) {
            double sign = draw(&state) % 2 ? -1 : 1;
            r.x[c] = sinkproof_exact_set(sign * size *
                                         (1 + 0x1p-19 * (c % 3 != 0) + 0x1p-22 * (c == 0)));
            r.scale[c] = draw_dyadic(&state);
        }
        lean += stated_root(&s, &r).leans > 0;
        compare(&s, &r, 4 * r.n + 40, &d);
    }
    report(&d, "bound.rmsnorm", "rows that lean", SEED);
    ok(lean == 60, "bound.rmsnorm rows that lean: %zu of 60", lean);
}

// Squares near what underflows or is flushed, below and above it; sums above the largest number.
static void ranges(void) {
    static row r;
    uint64_t state = SEED + 2;
    distance d = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_policy policy = real_policy("definition");
        policy.inside = SINKPROOF_F32, policy.ftz = i % 2;
        sinkproof_setting s = setting(&policy);
        int power = policy.ftz ? -63 : -75;
        double size = i % 10 == 9 ? 0x1p64 : ldexp(1, power + i / 2 % 14);
        fill(&r, 1 + draw_below(&state, 40), 0, ldexp(1, 2 * power + 1));
        for (size_t c = 0; c < r.n; c++) {
            if (i % 3 || c == 0) r.x[c] = sinkproof_exact_set(size * draw_dyadic(&state));
            r.scale[c] = draw_dyadic(&state) * (c % 4 ? 1 : ldexp(1, -power));
        }
        compare(&s, &r, 60, &d);
    }
    report(&d, "bound.rmsnorm", "what underflows or overflows", SEED);
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    distance zero = {0}, small = {0};
    policy.inside = SINKPROOF_F32;
    fill(&r, 2, 0x1p-200, 1), r.scale[0] = 3, r.scale[1] = -3, compare(&s, &r, 60, &small);
    report(&small, "bound.rmsnorm", "what a scale makes of it", SEED);
    policy.inside = SINKPROOF_F64;
    fill(&r, 4, 0, 1), r.x[4] = sinkproof_exact_set(0), compare(&s, &r, 1, &zero);
    report(&zero, "bound.rmsnorm", "a row of zeros", SEED);
}

// With u = 0 binary64's own terms are left, whole units v = 2^-53 whose squares vanish.
static void whole_units(void) {
    static row r;
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    s.u = 0;
    // here = 12: the sum is 1 +- 24, its root the half, and 12 more; then outward by what next to
    // nothing is lost, one unit below 1 and two above.
    fill(&r, 4, 1, 0);
    sinkproof_honest y[4];
    double common, v = 0x1p-53;
    sinkproof_norm norm = {4, r.scale, 0};
    sinkproof_honest_rmsnorm(&s, AT_A1, &norm, r.x, y, &common);
    ok(y[0].lo == 1 - 25 * v && y[0].hi == 1 + 26 * v && y[0].mid == 1,
       "bound.rmsnorm ends in whole units: %g of -25, %g of 26", (y[0].lo - 1) / v,
       (y[0].hi - 1) / v);
    // A set that ends at zero loses what underflows there as well.
    r.x[0] = (sinkproof_honest){.hi = 1, .likely_hi = 1, .mid = 0.5};
    r.x[1] = (sinkproof_honest){.lo = -1, .likely_lo = -1, .mid = -0.5};
    policy.inside = SINKPROOF_F32;
    sinkproof_honest_rmsnorm(&s, AT_A1, &norm, r.x, y, &common);
    ok(y[0].lo < 0 && y[0].lo > -0x1p-148 && y[1].hi > 0 && y[1].hi < 0x1p-148,
       "bound.rmsnorm what underflows at an end of zero");
}

int main(void) {
    short_rows();
    long_rows();
    leaning_rows();
    ranges();
    whole_units();
    return tap_done();
}
