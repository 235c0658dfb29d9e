// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The arithmetic under every honest set: directed sums and products against MPFR, interval
// operations against points drawn from the intervals, rounding points on the ends of intervals, and
// the binary64 functions of libm against Arb, as far as proofs/bounds relies on them.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

#include <float.h>

static const uint64_t SEED = 20250805;

// ---- directed rounding ------------------------------------------------------------------------

enum { WIDE = 2200 }; // bits that hold any sum of two doubles exactly (products need 106)

typedef struct directed {
    size_t pairs, wrong, loose, inexact;
} directed;

// lo <= exact <= hi; equal when exact is a double, neighbours otherwise (`slack` steps allowed).
static void check_ends(directed *d, mpfr_srcptr exact, double lo, double hi, bool may_step) {
    d->pairs++;
    d->wrong += !(mpfr_cmp_d(exact, lo) >= 0 && mpfr_cmp_d(exact, hi) <= 0);
    double nearest = mpfr_get_d(exact, MPFR_RNDN);
    bool is_double = mpfr_cmp_d(exact, nearest) == 0;
    if (may_step) return;
    d->inexact += is_double && !(lo == hi);
    d->loose += !is_double && !(nextafter(lo, INFINITY) == hi);
}

static double draw_double(uint64_t *state) {
    static const double edges[] = {
        0,        0x1p-1074, 0x1.8p-1073, 0x1p-1022, 0x1.fffffffffffffp-1023,
        DBL_MAX,  0x1p1023,  1,           0x1p-53,   0x1.0000000000001p0,
        0x1p-537, 0x1p-480,  0x1.8p-538,  0x1p970,   0x1.fffffffffffffp-1};
    uint64_t kind = draw(state) % 8;
    double sign = draw(state) % 2 ? -1 : 1;
    if (kind == 0) return sign * edges[draw_below(state, sizeof edges / sizeof *edges)];
    if (kind == 1) return draw_number(state, 53, 1100) * 0x1p-60; // subnormals among them
    if (kind == 2) return draw_number(state, 8, 40);
    if (kind == 3) return draw_number(state, 24, 140);
    return draw_number(state, 53, kind == 4 ? 2 : kind == 5 ? 60 : 600);
}

static void directed_sums_and_products(void) {
    enum { PAIRS = 150000 };
    uint64_t state = SEED;
    directed sum = {0}, product = {0};
    mpfr_t exact, x;
    mpfr_init2(exact, WIDE), mpfr_init2(x, 53);
    for (size_t i = 0; i < PAIRS; i++) {
        double a = draw_double(&state), b = draw_double(&state);
        if (i % 4 == 1) b = -a * (1 + (double)draw_below(&state, 5) * 0x1p-52); // cancels
        if (i % 4 == 2) b = sinkproof_ulp(SINKPROOF_F64, a) / 2;                // a tie
        if (!isfinite(a) || !isfinite(b)) continue;
        mpfr_set_d(x, a, MPFR_RNDN);
        mpfr_add_d(exact, x, b, MPFR_RNDN);
        check_ends(&sum, exact, add_down(a, b), sinkproof_add_up(a, b), false);
        mpfr_mul_d(exact, x, b, MPFR_RNDN);
        bool tiny = fabs(a * b) < 0x1p-960; // there one step outward is always taken
        check_ends(&product, exact, sinkproof_mul_down(a, b), sinkproof_mul_up(a, b), tiny);
    }
    mpfr_clear(exact), mpfr_clear(x);
    ok(sum.pairs > 0 && sum.wrong + sum.loose + sum.inexact == 0,
       "bound.dot directed sum worst=%zu bound=0 pairs=%zu loose=%zu inexact=%zu", sum.wrong,
       sum.pairs, sum.loose, sum.inexact);
    ok(product.pairs > 0 && product.wrong + product.loose + product.inexact == 0,
       "bound.dot directed product worst=%zu bound=0 pairs=%zu loose=%zu inexact=%zu",
       product.wrong, product.pairs, product.loose, product.inexact);
}

// gamma_n from below: n u / (1 - n u) over the rationals.
static void gamma_is_above(void) {
    double below = 0, above = 0;
    mpfr_t n_u, gamma;
    mpfr_init2(n_u, 200), mpfr_init2(gamma, 200);
    for (int p = 8; p <= 53; p += 1) {
        for (double n = 0; n < 1e6; n = 2 * n + 1) {
            double g = sinkproof_gamma(n, ldexp(1, -p));
            if (n * ldexp(1, -p) >= 1) {
                below += !(g == INFINITY);
                continue;
            }
            mpfr_set_d(n_u, n * ldexp(1, -p), MPFR_RNDN);
            mpfr_ui_sub(gamma, 1, n_u, MPFR_RNDN);
            mpfr_div(gamma, n_u, gamma, MPFR_RNDU);
            below += !(mpfr_get_d(gamma, MPFR_RNDU) <= g);
            if (n > 0 && n * ldexp(1, -p) < 0.5)
                above = sinkproof_keep_worst(above,
                                             (g / mpfr_get_d(gamma, MPFR_RNDN) - 1) / DBL_EPSILON);
        }
    }
    mpfr_clear(n_u), mpfr_clear(gamma);
    ok(below == 0, "bound.dot gamma_n below its value worst=%g bound=0 above by %.2g ulp", below,
       above);
}

// ---- intervals: whatever is drawn from the operands lies in the result -------------------------

static sinkproof_honest draw_set(uint64_t *state) {
    double a = draw_number(state, 24, 6), w = fabs(a) * ldexp(draw_unit(state), -20);
    sinkproof_honest x = sinkproof_set_around(a, w, w / 3, 0, 0);
    return draw(state) % 4 == 0 ? sinkproof_exact_set(a) : x;
}

static double draw_in(uint64_t *state, const sinkproof_honest *x) {
    uint64_t kind = draw(state) % 4;
    if (kind == 0) return x->lo;
    if (kind == 1) return x->hi;
    double v = x->lo + (x->hi - x->lo) * draw_unit(state);
    return v < x->lo ? x->lo : v > x->hi ? x->hi : v;
}

static bool in_set(const sinkproof_honest *x, mpfr_srcptr v) {
    return mpfr_cmp_d(v, x->lo) >= 0 && mpfr_cmp_d(v, x->hi) <= 0;
}

static void interval_operations(void) {
    enum { DRAWS = 60000 };
    uint64_t state = SEED + 1;
    size_t outside = 0, disordered = 0;
    mpfr_t a, v;
    mpfr_init2(a, 53), mpfr_init2(v, WIDE);
    for (size_t i = 0; i < DRAWS; i++) {
        sinkproof_honest x = draw_set(&state), y = draw_set(&state), r[4];
        double p = draw_in(&state, &x), q = draw_in(&state, &y), edge = draw_in(&state, &y);
        r[0] = sinkproof_honest_add(x, y), r[1] = sinkproof_honest_sub(x, y);
        r[2] = sinkproof_honest_mul(x, y);
        r[3] = sinkproof_honest_clamp(x, -fabs(edge), fabs(edge));
        mpfr_set_d(a, p, MPFR_RNDN);
        mpfr_add_d(v, a, q, MPFR_RNDN), outside += !in_set(&r[0], v);
        mpfr_sub_d(v, a, q, MPFR_RNDN), outside += !in_set(&r[1], v);
        mpfr_mul_d(v, a, q, MPFR_RNDN), outside += !in_set(&r[2], v);
        mpfr_set_d(v, fmin(fmax(p, -fabs(edge)), fabs(edge)), MPFR_RNDN);
        outside += !in_set(&r[3], v);
        for (int k = 0; k < 4; k++)
            disordered += !(r[k].lo <= r[k].likely_lo && r[k].likely_lo <= r[k].mid &&
                            r[k].mid <= r[k].likely_hi && r[k].likely_hi <= r[k].hi);
    }
    mpfr_clear(a), mpfr_clear(v);
    ok(outside == 0, "bound.linear interval + - * clamp worst=%zu bound=0 draws=%d", outside,
       DRAWS);
    ok(disordered == 0, "bound.linear lo <= likely <= mid worst=%zu bound=0", disordered);
}

// ---- rounding points ---------------------------------------------------------------------------

static sinkproof_policy rounding_at_a4(sinkproof_format format, bool optional) {
    sinkproof_policy policy = policy_named("f32");
    policy.at[AT_A4] = (sinkproof_rounding){.format = format, .optional = optional};
    return policy;
}

// Fixed: exactly the values of rounded members, ends reached. Optional: those and the members.
static void rounding_points(sinkproof_format format) {
    enum { DRAWS = 20000, INNER = 4 };
    uint64_t state = SEED + 2;
    sinkproof_policy fixed = rounding_at_a4(format, false), either = rounding_at_a4(format, true);
    sinkproof_setting s = sinkproof_setting_for(&fixed, 1, STANDARD_RATE), t = s;
    t.policy = &either;
    size_t outside = 0, loose = 0, apart = 0;
    for (size_t i = 0; i < DRAWS; i++) {
        sinkproof_honest x = draw_set(&state);
        sinkproof_honest r = sinkproof_honest_at(&s, AT_A4, x);
        sinkproof_honest o = sinkproof_honest_at(&t, AT_A4, x);
        sinkproof_honest inside = sinkproof_honest_inside(&s, x);
        loose += !(r.lo == sinkproof_round(format, x.lo) && r.hi == sinkproof_round(format, x.hi));
        loose += !(r.mid == sinkproof_round(format, x.mid) && r.lo <= r.mid && r.mid <= r.hi);
        for (int k = 0; k < INNER; k++) {
            double v = draw_in(&state, &x), y = sinkproof_round(format, v), z = (double)(float)v;
            outside += !(y >= r.lo && y <= r.hi);
            outside += !(y >= o.lo && y <= o.hi && v >= o.lo && v <= o.hi);
            outside += !(z >= inside.lo && z <= inside.hi && v >= inside.lo && v <= inside.hi);
        }
        double y = sinkproof_round(format, x.mid), half = sinkproof_ulp(format, y) / 2;
        sinkproof_honest tie = // a sum that falls on a tie, and its two neighbours
            sinkproof_honest_add(sinkproof_exact_set(y), sinkproof_exact_set(half));
        sinkproof_honest one = sinkproof_honest_at(&s, AT_A4, tie);
        apart +=
            !(tie.lo == tie.hi && one.lo == one.hi && one.lo == sinkproof_round(format, y + half));
    }
    const char *name = sinkproof_format_name(format);
    ok(outside == 0, "bf16.round members of a set at a %s point worst=%zu bound=0", name, outside);
    ok(loose == 0, "bf16.round ends of a set at a %s point worst=%zu bound=0", name, loose);
    ok(apart == 0, "bf16.round a tie stays one value at a %s point worst=%zu bound=0", name, apart);
}

// n roundings on the way to a number: float32 products and quotients by factors of at most 1 (an
// underflow on the way is not made larger afterwards).
static void roundings_on_the_way(void) {
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, 20000, STANDARD_RATE);
    uint64_t state = SEED + 3;
    tally t = {0};
    mpfr_t exact;
    mpfr_init2(exact, 400);
    for (size_t i = 0; i < 20000; i++) {
        size_t n = 1 + draw_below(&state, 6);
        float x = (float)draw_number(&state, 24, 20), y;
        if (i % 8 == 0) x *= 0x1p-125f; // down to the subnormals
        y = x;
        mpfr_set_d(exact, x, MPFR_RNDN);
        for (size_t k = 0; k < n; k++) {
            float f = (float)(0.5 + 0.5 * draw_unit(&state));
            bool quotient = draw(&state) % 2;
            y = quotient ? y / (2 * f) : y * f;
            if (quotient)
                mpfr_div_d(exact, exact, 2 * f, MPFR_RNDN);
            else
                mpfr_mul_d(exact, exact, f, MPFR_RNDN);
        }
        sinkproof_honest r = sinkproof_exact_set(mpfr_get_d(exact, MPFR_RNDN));
        r.lo = r.likely_lo = mpfr_get_d(exact, MPFR_RNDD);
        r.hi = r.likely_hi = mpfr_get_d(exact, MPFR_RNDU);
        r = sinkproof_honest_roundings(&s, r, (double)n);
        meet(&t, &r, y);
    }
    mpfr_clear(exact);
    inside_ok(&t, "bound.dot", "products and quotients on the way");
}

// ---- libm against Arb --------------------------------------------------------------------------

typedef void (*arb_function)(arb_t, const arb_t, slong);

typedef struct libm_case {
    const char *name;
    double (*function)(double);
    arb_function truth;
    double from, to;
    bool logarithmic;          // arguments spread over their exponents
    double relative, absolute; // the margin that proofs/bounds assumes
} libm_case;

// The worst error in ulp of the result (ulp of 1 for an absolute margin), and the share of the
// margin.
static void check_function(const libm_case *c) {
    enum { POINTS = 20000 };
    uint64_t state = SEED + 4;
    double worst_ulp = 0, worst_share = 0, worst_at = 0;
    arb_t x, y;
    balls_init(x, y);
    for (size_t i = 0; i < POINTS; i++) {
        double u = draw_unit(&state), at = c->from + (c->to - c->from) * u;
        if (c->logarithmic)
            at = copysign(exp2(log2(fabs(c->from)) + log2(fabs(c->to) / fabs(c->from)) * u), c->to);
        if (i % 3 == 0) at = (float)at;
        double got = c->function(at);
        arb_set_d(x, at);
        c->truth(y, x, 200);
        double error = sinkproof_truth_distance(y, got);
        double margin = c->relative * fabs(got) + c->absolute;
        double ulp = sinkproof_ulp(SINKPROOF_F64, c->absolute > 0 ? 0.5 : got);
        worst_ulp = sinkproof_keep_worst(worst_ulp, error / ulp);
        if (sinkproof_is_worse(worst_share, error / margin))
            worst_share = error / margin, worst_at = at;
    }
    balls_clear(x, y);
    double ulps = c->absolute > 0 ? c->absolute / 0x1p-53 : c->relative / 0x1p-52; // at the least
    ok(worst_share <= 1, "bound.exp libm %s on %g .. %g worst=%.3f bound=%.0f ulp share=%.3f at %a",
       c->name, c->from, c->to, worst_ulp, ulps, worst_share, worst_at);
}

static void libm_functions(void) {
    static const libm_case cases[] = {
        {"exp", exp, arb_exp, -708, 0, false, 0x1p-50, 0},
        {"exp", exp, arb_exp, -0x1p-60, -1, true, 0x1p-50, 0},
        {"exp", exp, arb_exp, 0, 709, false, 0x1p-50, 0},
        {"expm1", expm1, arb_expm1, 0x1p-60, 1, true, 0x1p-50, 0},
        {"log", log, arb_log, 0x1p-30, 0x1p30, true, 0x1p-50, 0},
        {"cos", cos, arb_cos, 0, 8, false, 0, 0x1p-50},
        {"cos", cos, arb_cos, 0, 131072, false, 0, 0x1p-50},
        {"cos", cos, arb_cos, 0x1p-40, 131072, true, 0, 0x1p-50},
        {"sin", sin, arb_sin, 0, 8, false, 0, 0x1p-50},
        {"sin", sin, arb_sin, 0, 131072, false, 0, 0x1p-50},
        {"sin", sin, arb_sin, 0x1p-40, 131072, true, 0, 0x1p-50},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_function(&cases[i]);
}

// theta^e as the frequencies need it.
static void libm_pow(void) {
    uint64_t state = SEED + 5;
    double worst = 0;
    arb_t x, e, y;
    balls_init(x, e, y);
    for (size_t i = 0; i < 20000; i++) {
        double theta = i % 2 ? 150000 : 10000 + floor(1e6 * draw_unit(&state));
        double exponent = i % 4 < 2 ? (double)(i % 128) / 128 : draw_unit(&state);
        double got = pow(theta, exponent);
        arb_set_d(x, theta), arb_set_d(e, exponent);
        arb_pow(y, x, e, 200);
        worst = sinkproof_keep_worst(worst, sinkproof_truth_distance(y, got) / (0x1p-52 * got));
    }
    balls_clear(x, e, y);
    ok(worst <= 16, "bound.exp libm pow of theta worst=%.3f bound=16 ulp", worst);
}

static void nan_is_the_worst(void) {
    ok(isnan(sinkproof_keep_worst(sinkproof_keep_worst(0, NAN), 1)) &&
           isnan(sinkproof_keep_worst(1, NAN)) && sinkproof_keep_worst(1, 2) == 2 &&
           sinkproof_keep_worst(2, 1) == 2,
       "the worst error: a NaN is worse than any, and stays");
    ok(isnan(sinkproof_keep_least(sinkproof_keep_least(0, NAN), -1)) &&
           isnan(sinkproof_keep_least(1, NAN)) && sinkproof_keep_least(1, 2) == 1 &&
           sinkproof_keep_least(2, 1) == 1,
       "the least share: a NaN is below any, and stays");
}

// What stands without a call in the inner loops is what the call would give, in every bit.
static void shortcuts_equal_the_calls(void) {
    enum { DRAWN = 100000 };
    static const sinkproof_format formats[] = {SINKPROOF_BF16, SINKPROOF_F16, SINKPROOF_F32,
                                               SINKPROOF_F64};
    static const double edges[] = {0x1p-126, 0x1.fffffffffffffp-127, 0x1p-149, 0x1p-150, 0x1p127,
                                   0x1p128,  0x1.fffffep127,         0,        INFINITY, NAN};
    enum { EDGES = sizeof edges / sizeof *edges };
    uint64_t state = SEED;
    size_t steps = 0, largest = 0;
    for (size_t i = 0; i < DRAWN + 2 * EDGES; i++) {
        double x = i < 2 * EDGES ? (i % 2 ? -edges[i / 2] : edges[i / 2]) : draw_double(&state);
        double y = draw_double(&state);
        for (size_t f = 0; f < 4; f++) {
            double step = sinkproof_fast_ulp(formats[f], x), ulp = sinkproof_ulp(formats[f], x);
            steps += !(step == ulp || (isnan(step) && isnan(ulp)));
        }
        double larger = larger_double(x, y), other = larger_double(y, x);
        largest += !(larger == fmax(x, y) && other == fmax(y, x));
    }
    ok(steps == 0, "a step is the ulp: %d numbers in four formats, wrong=%zu bound=0", DRAWN,
       steps);
    ok(largest == 0, "the larger is fmax: %d pairs, NaN left out of one, wrong=%zu bound=0", DRAWN,
       largest);
}

int main(void) {
    nan_is_the_worst();
    shortcuts_equal_the_calls();
    directed_sums_and_products();
    gamma_is_above();
    interval_operations();
    rounding_points(SINKPROOF_BF16);
    rounding_points(SINKPROOF_F16);
    rounding_points(SINKPROOF_F32);
    roundings_on_the_way();
    libm_functions();
    libm_pow();
    return tap_done();
}
