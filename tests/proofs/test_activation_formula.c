// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sets of an activation and of a mixture, computed again in long double, in the cases that
// other tests leave open: GELU and SwiGLU on sets that contain zero or may lean; steps that are
// rounded; the margins 2^-50 of binary64's own exp, tanh and square root, which are visible where u
// = 0 or where a declared error is as large as the number itself; the weights of rows without
// bounds; and the mixture's sum with its variance. Other tests check the sums, products and
// rounding points of honest.h. 0.04 CPU seconds.
#include "proofs/bounds/variants.h"
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20270118;
static const real LIBM = 0x1p-50L; // the margin of binary64's functions, as the code declares it
enum { DRAWS = 1000 };

static real far_of(double lo, double hi) {
    return fmaxl(fabsl((real)lo), fabsl((real)hi));
}

// An increasing function of a set: its ends, and the rest by the slope at mid.
static sinkproof_honest curved(real f(real), real slope, real margin, sinkproof_honest t) {
    sinkproof_honest y = {.mid = (double)f(t.mid)};
    y.lo = (double)(f(t.lo) * (1 - margin)), y.hi = (double)(f(t.hi) * (1 + margin));
    y.likely_lo = (double)(f(t.likely_lo) * (1 - margin));
    y.likely_hi = (double)(f(t.likely_hi) * (1 + margin));
    y.var = y.spread = (double)(t.var * slope * slope), y.order = (double)(t.order * slope * slope);
    y.bias = (double)(t.bias * slope);
    return y;
}

typedef struct compared {
    distance ends, moments;
} compared;

// Ends in k roundings of `size`, moments in `times` roundings of their own.
static void compare(compared *c, const sinkproof_honest *y, const sinkproof_honest *z, real size,
                    real k, real times) {
    near(&c->ends, y->lo, z->lo, size, k), near(&c->ends, y->hi, z->hi, size, k);
    near(&c->ends, y->likely_lo, z->likely_lo, size, k);
    near(&c->ends, y->likely_hi, z->likely_hi, size, k);
    near(&c->ends, y->mid, z->mid, size, k);
    near(&c->moments, y->var, z->var, z->var, times);
    near(&c->moments, y->spread, z->spread, z->spread, times);
    near(&c->moments, y->bias, z->bias, z->bias, times);
    near(&c->moments, y->order, z->order, (real)z->var + z->order, times);
}

static void report_both(const compared *c, const char *id, const char *what, uint64_t seed) {
    char text[100];
    snprintf(text, sizeof text, "%s: ends", what);
    report(&c->ends, id, text, seed);
    snprintf(text, sizeof text, "%s: variance, bias, order", what);
    report(&c->moments, id, text, seed);
}

static sinkproof_honest inside_at(const sinkproof_setting *s, sinkproof_point point,
                                  sinkproof_honest x) {
    return sinkproof_honest_at(s, point, sinkproof_honest_inside(s, x));
}

// A set around mid that is as wide as it is far from zero, or wider: it may hold zero.
static sinkproof_honest draw_wide(uint64_t *state, double mid) {
    sinkproof_honest x = draw_set(state, mid);
    double lo = (double)draw_below(state, 64) / 64, hi = (double)draw_below(state, 64) / 64;
    x.lo = mid - lo, x.hi = mid + hi, x.likely_lo = mid - lo / 2, x.likely_hi = mid + hi / 4;
    x.order = 3 * x.var;
    return x;
}

// ---- GELU --------------------------------------------------------------------------------------

static sinkproof_honest held(const sinkproof_setting *s, real c) {
    return sinkproof_honest_declared(sinkproof_exact_set((double)c), (double)(s->u + LIBM), 0);
}

// A square is not negative. Products of it, where it is rounded; otherwise pow may be what is
// called.
static sinkproof_honest third_power(const sinkproof_setting *s, sinkproof_honest x) {
    sinkproof_rounding squared = s->policy->at[AT_M8_SQUARE];
    sinkproof_honest y = sinkproof_honest_mul(x, x);
    y.lo = fmax(y.lo, 0), y.likely_lo = fmax(y.likely_lo, 0);
    y = sinkproof_honest_mul(inside_at(s, AT_M8_SQUARE, y), x);
    if (squared.optional || squared.format == SINKPROOF_REAL)
        y = sinkproof_honest_declared(y, 2 * s->u * s->policy->ulp[SINKPROOF_POW], 0);
    return inside_at(s, AT_M8_CUBE, y);
}

static sinkproof_honest bent(const sinkproof_setting *s, sinkproof_honest t) {
    real declared = 2 * (real)s->u * s->policy->ulp[SINKPROOF_TANH];
    sinkproof_honest y = curved(tanhl, powl(coshl(t.mid), -2), 0, t);
    real leans = far_of(y.lo, y.hi) * declared;
    y = sinkproof_honest_declared(y, (double)(declared + LIBM), setting_underflow(s));
    y.var = y.spread = (double)(y.var + leans * leans);
    return y;
}

static sinkproof_honest stated_gelu(const sinkproof_setting *s, sinkproof_honest x) {
    sinkproof_honest v = honest_flushed(s, x);
    sinkproof_honest t = sinkproof_honest_mul(held(s, 0.044715), third_power(s, v));
    t = sinkproof_honest_add(v, inside_at(s, AT_M8_CUBIC, t));
    t = sinkproof_honest_mul(held(s, sqrtl(2 / acosl(-1))), inside_at(s, AT_M8_SUM, t));
    sinkproof_rounding summed = s->policy->at[AT_M8_SUM];
    bool open = summed.optional || summed.format == SINKPROOF_REAL; // else in this order alone
    t = inside_at(s, AT_M8_INNER, open ? sinkproof_honest_roundings(s, t, 4) : t);
    t = inside_at(s, AT_M8_TANH, bent(s, t));
    t = inside_at(s, AT_M8_ONE, sinkproof_honest_add(t, sinkproof_exact_set(1)));
    t.lo = fmax(t.lo, 0);
    sinkproof_honest y = sinkproof_honest_mul(sinkproof_honest_mul(v, t), sinkproof_exact_set(0.5));
    double var = y.var;
    if (open) y = sinkproof_honest_roundings(s, y, 2);
    y.var = y.spread = var;
    return inside_at(s, AT_M8, y);
}

// tanh and the sum with 1 are rounded, and stepped outward, on either side: of a result whose size
// is x at most that is 8 roundings. A slope 1 - tanh^2, here 1/4 and more, has 4 times as many,
// and its square twice that.
static void gelu_sets(void) {
    static const sinkproof_rounding roundings[] = {{.format = SINKPROOF_REAL},
                                                   {.format = SINKPROOF_BF16},
                                                   {.format = SINKPROOF_BF16, .optional = true}};
    uint64_t state = SEED;
    compared c = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_policy policy = real_policy("definition");
        policy.inside = i % 2 ? SINKPROOF_F32 : SINKPROOF_F64;
        policy.at[AT_M8_SQUARE] = roundings[i / 2 % 3];
        policy.at[AT_M8_CUBE] = roundings[i / 6 % 3];
        sinkproof_setting s = setting(&policy);
        if (i % 7 == 0) s.u = 0;
        double mid = (double)draw_below(&state, 80) / 64 - 0.6171875; // a multiple of 1/128, not 0
        sinkproof_honest x = i % 5 ? draw_wide(&state, mid) : draw_set(&state, mid);
        x.var += 0x1p-16; // of steps of bfloat16 that are not rare
        sinkproof_honest y = sinkproof_honest_gelu(&s, x), z = stated_gelu(&s, x);
        compare(&c, &y, &z, far_of(x.lo, x.hi), 8, 100);
    }
    report_both(&c, "bound.gelu", "sets that hold zero", SEED);
}

// Each step alone rounded, then none, of numbers near and far. Far from zero a slope is what is
// left of 1: moments are compared near it, where 1/20 and more is left.
static void gelu_steps(void) {
    uint64_t state = SEED + 5;
    compared c = {0}, far = {0};
    for (int p = AT_M8_SQUARE; p <= AT_M8_ONE + 1; p++)
        for (int i = 0; i < 300; i++) {
            sinkproof_policy policy = real_policy("definition");
            if (p <= AT_M8_ONE) policy.at[p].format = SINKPROOF_BF16;
            sinkproof_setting s = setting(&policy);
            double x = (i % 4 ? 2 : 20) * (2 * draw_unit(&state) - 1);
            sinkproof_honest known = sinkproof_exact_set(x), y = sinkproof_honest_gelu(&s, known);
            sinkproof_honest z = stated_gelu(&s, known);
            compare(i % 4 ? &c : &far, &y, &z, fabs(x), 60, 1000);
        }
    report_both(&c, "bound.gelu", "one step rounded", SEED + 5);
    report(&far.ends, "bound.gelu", "one step rounded, far from zero", SEED + 5);
}

// u = 0: the margins of tanh and of both constants. x < 0, so that 1 + tanh is below 1, and all
// that differs are tanh, its margin's step outward and the last step, each a unit below 1 at most.
static void gelu_margins(void) {
    uint64_t state = SEED + 1;
    compared c = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_policy policy = real_policy("definition");
        sinkproof_setting s = setting(&policy);
        s.u = 0;
        sinkproof_honest x = sinkproof_exact_set(-0.5 - draw_unit(&state));
        sinkproof_honest y = sinkproof_honest_gelu(&s, x), z = stated_gelu(&s, x);
        compare(&c, &y, &z, fabs(x.mid) / 2, 3, 100);
    }
    report_both(&c, "bound.gelu", "margins of tanh and constants", SEED + 1);
}

// A square whose ends, but for the one below zero, are numbers of the point's format is unchanged
// by it: zero is one too. In the second the likely one is below zero.
static void gelu_squares(void) {
    const double e = 0x1p-20;
    const sinkproof_honest x[] = {{-2, 1 + e, 1, 1, 1, 0x1p-30, 0, 0, 0},
                                  {-2, 2, -2, 1 + e, 1, 0x1p-30, 0, 0, 0}};
    sinkproof_policy policy = real_policy("definition");
    policy.at[AT_M8_SQUARE] = (sinkproof_rounding){.format = SINKPROOF_BF16, .optional = false};
    sinkproof_setting s = setting(&policy);
    compared c = {0};
    for (int i = 0; i < 2; i++) {
        sinkproof_honest y = sinkproof_honest_gelu(&s, x[i]), z = stated_gelu(&s, x[i]);
        compare(&c, &y, &z, 2, 8, 100);
    }
    report_both(&c, "bound.gelu", "squares that are rounded already", SEED);
}

// ---- SwiGLU, alpha = 1 and up = 0: y = g sigmoid(g) --------------------------------------------

static real sigma(real t) {
    return 1 / (1 + expl(-t));
}

static sinkproof_honest stated_swiglu(const sinkproof_setting *s, sinkproof_honest g) {
    sinkproof_honest t = g; // alpha is 1: there is no product
    real size = fminl(far_of(t.lo, t.hi), 800), rest = sigma(t.mid) * sigma(-(real)t.mid);
    real e = (s->policy->ulp[SINKPROOF_EXP] + s->policy->exp_growth * size) * 2 * s->u;
    sinkproof_honest y = curved(sigma, rest, LIBM, t);
    double relative = (double)(e / (1 - e) * sigma(-(real)t.lo) * (1 + LIBM));
    double lost = s->policy->inside == SINKPROOF_F32 ? 0x1p-126 : 0x1p-1022;
    y = sinkproof_honest_declared(y, relative, lost);
    y = sinkproof_honest_inside(s, sinkproof_honest_roundings(s, y, 2));
    y = sinkproof_honest_inside(s, sinkproof_honest_mul(g, y));
    double var = y.var;
    y = sinkproof_honest_roundings(s, y, 2);
    y.var = y.spread = var;
    return sinkproof_honest_inside(s, y);
}

static sinkproof_honest swish(const sinkproof_setting *s, sinkproof_honest g) {
    static const sinkproof_config config = {.swiglu = {1, 10000, 1}};
    return sinkproof_honest_swiglu(s, config.swiglu, g, sinkproof_exact_set(0));
}

// exp errs by `declared`, and by `growth` more for each unit; u is next to nothing.
static sinkproof_policy exp_policy(double declared, double growth, double u) {
    sinkproof_policy policy = real_policy("definition");
    policy.ulp[SINKPROOF_EXP] = declared / (2 * u), policy.exp_growth = growth / (2 * u);
    return policy;
}

// Powers of two, whose product with the sigmoid does not round. exp, 1 + e, the quotient and the
// margin round, and the end is stepped outward: 6 roundings of it, below the margin's 8.
static void swiglu_margins(void) {
    uint64_t state = SEED + 2;
    distance d = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_policy policy = real_policy("definition");
        sinkproof_setting s = setting(&policy);
        s.u = 0;
        double x = ldexp(1, (int)draw_below(&state, 8) - 4);
        sinkproof_honest g = sinkproof_exact_set(draw(&state) % 2 ? x : -x);
        if (i % 3 == 0) g = (sinkproof_honest){x, 4 * x, x, 4 * x, 2 * x, 0, 0, 0, 0};
        if (i % 3 == 1)
            g.likely_lo = ldexp(g.mid, g.mid < 0), g.likely_hi = ldexp(g.mid, g.mid > 0);
        if (i % 3 == 1) g.lo = g.likely_lo, g.hi = g.likely_hi;
        sinkproof_honest y = swish(&s, g), z = stated_swiglu(&s, g);
        near(&d, y.lo, z.lo, fabs(z.lo), 6), near(&d, y.hi, z.hi, fabs(z.hi), 6);
        near(&d, y.likely_lo, z.likely_lo, fabs(z.likely_lo), 6);
        near(&d, y.likely_hi, z.likely_hi, fabs(z.likely_hi), 6);
        near(&d, y.mid, z.mid, fabs(z.mid), 6);
    }
    report(&d, "bound.swiglu", "margins of exp: ends", SEED + 2);
}

// An error of exp 63 / 64: of y it is 63 times what is left of 1, and its margin is nearly y's own.
static void swiglu_declared(void) {
    compared c = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_policy policy = exp_policy(63.0 / 64, 0, 0x1p-80);
        sinkproof_setting s = {.policy = &policy, .u = 0x1p-80, .odds = 30};
        sinkproof_honest g = sinkproof_exact_set(-4 - (double)i / 256);
        sinkproof_honest y = swish(&s, g), z = stated_swiglu(&s, g);
        compare(&c, &y, &z, far_of(z.lo, z.hi), 6, 100);
    }
    report_both(&c, "bound.swiglu", "a declared error near 1", SEED);
}

// Gates to beyond 800: the error of exp grows no further. What is left of 1 is 1/21 and more: 21
// times two roundings, and its square twice that.
static void swiglu_far(void) {
    uint64_t state = SEED + 3;
    compared c = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_policy policy = exp_policy(0x1p-10, 0x1p-11, 0x1p-24);
        policy.inside = i % 2 ? SINKPROOF_F32 : SINKPROOF_F64;
        sinkproof_setting s = setting(&policy);
        double lo = -700 - (double)draw_below(&state, 300), hi = 4 - (double)draw_below(&state, 8);
        sinkproof_honest g = {lo, hi, lo / 2, hi, hi - 1, 0x1p-12, 0, 0x1p-9, 0x1p-11};
        sinkproof_honest y = swish(&s, g), z = stated_swiglu(&s, g);
        compare(&c, &y, &z, far_of(z.lo, z.hi), 40, 100);
    }
    report_both(&c, "bound.swiglu", "gates beyond 800", SEED + 3);
}

// ---- rows of any design -------------------------------------------------------------------------

// The gate sigmoid(g) with declared errors e of exp: e / (1 - e), 63 where e is 63 / 64; the upper
// end is nearly that error, and moves with its margin, 2^-49, by 16 roundings.
static void gates(void) {
    distance d = {0}, far = {0};
    real margin = 2 * LIBM, u = 0x1p-80L;
    for (int i = 0; i < DRAWS; i++) {
        bool beyond = i % 2;
        double g = beyond ? 700 + i / 2 % 200 : (double)i / 64 - 8;
        sinkproof_policy policy =
            beyond ? exp_policy(0x1p-10, 0x1p-11, 0x1p-80) : exp_policy(63.0 / 64, 0, 0x1p-80);
        sinkproof_setting s = {.policy = &policy, .u = 0x1p-80, .odds = 30};
        sinkproof_honest y = sinkproof_honest_variant_gate(&s, g);
        real e = beyond ? 0x1p-10L + 0x1p-11L * fminl((real)g, 800) : 63.0L / 64, of = sigma(g);
        real hi = of * (1 + margin), by = ((e / (1 - e) + 3 * u) * hi + 0x1p-1022L) * (1 + margin);
        real lo = of * (1 - margin) - by;
        near(beyond ? &far : &d, y.hi, hi + by, hi + by, 10);
        near(beyond ? &far : &d, y.lo, fmaxl(lo, 0), hi, 10);
        near(&d, y.mid, of, of, 10);
    }
    report(&d, "bound.similarity", "a gate's declared error near 1", SEED);
    report(&far, "bound.similarity", "a gate beyond 800", SEED);
}

// Weights score / max(|sum|, 1) where a score is infinite: an infinite number over a set that
// reaches infinity has no bounds, and a number over it none but zero and itself.
static void without_bounds(void) {
    sinkproof_variant variant = {.similarity = SINKPROOF_SIMILARITY_SCORE,
                                 .divisor = SINKPROOF_DIVISOR_AT_LEAST_1};
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    const bool seen_j[2] = {true, true};
    size_t wrong = 0;
    for (double sign = -1; sign <= 1; sign += 2)
        for (int i = 0; i < 4; i++) {
            double x = ldexp(3, i);
            sinkproof_honest s_j[2] = {sinkproof_exact_set(sign * HUGE_VAL),
                                       sinkproof_exact_set(x)};
            sinkproof_honest a_j[2];
            must(sinkproof_honest_variant_weights(&s, &variant, 2, seen_j, s_j, a_j));
            bool none = a_j[0].lo == -INFINITY && a_j[0].hi == INFINITY &&
                        a_j[0].likely_lo == -INFINITY && a_j[0].likely_hi == INFINITY;
            // x moved by what its quotient rounds, 2 u, and the margin.
            real by = x * (2 * 0x1p-24L + 2 * LIBM) * (1 + 2 * LIBM);
            distance d = {0};
            near(&d, a_j[1].lo, -by, by, 10), near(&d, a_j[1].hi, x + by, x, 10);
            if (none && d.worst <= 1) continue;
            wrong++;
            note("[%g, %g] and [%g, %g]", a_j[0].lo, a_j[0].hi, a_j[1].lo, a_j[1].hi);
        }
    ok(wrong == 0, "bound.similarity rows with an infinite score: worst=%zu bound=0", wrong);
}

// ---- the mixture --------------------------------------------------------------------------------

// k - 1 sums in any order.
static sinkproof_honest stated_mixture(const sinkproof_setting *s, size_t k,
                                       const sinkproof_honest *w_e, const sinkproof_honest *d_e) {
    real u = s->u, n = (real)k - 1, total = 0;
    sinkproof_honest sum = {0};
    for (size_t e = 0; e < k; e++) {
        sinkproof_honest w = honest_flushed(s, w_e[e]);
        sinkproof_honest d = honest_flushed(s, d_e[e]);
        sinkproof_honest p = sinkproof_honest_inside(s, sinkproof_honest_mul(w, d));
        total += far_of(p.lo, p.hi);
        sum = e == 0 ? p : sinkproof_honest_add(sum, p);
    }
    real by = gamma_of(n + 1, u) * total + (s->policy->ftz ? n * 0x1p-126L : 0);
    sum.lo = (double)(sum.lo - by), sum.hi = (double)(sum.hi + by);
    sum.likely_lo = (double)(sum.likely_lo - by), sum.likely_hi = (double)(sum.likely_hi + by);
    sum.var += (double)(n * (u * total / 3) * (u * total / 3));
    return sinkproof_honest_inside(s, sum);
}

// Sums of k products, their errors and the ends round at most 2 k + 8 times.
static void mixtures(bool tiny) {
    uint64_t state = SEED + 4;
    compared c = {0};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_honest w_e[8], d_e[8];
        size_t k = 1 + draw_below(&state, 8);
        sinkproof_policy policy = real_policy("definition");
        if (tiny) policy.inside = SINKPROOF_F32, policy.ftz = true;
        sinkproof_setting s = setting(&policy);
        real size = 0;
        for (size_t e = 0; e < k; e++) {
            w_e[e] = tiny ? sinkproof_exact_set(ldexp(draw_dyadic(&state), -52))
                          : draw_set(&state, draw_unit(&state));
            d_e[e] = tiny    ? sinkproof_exact_set(ldexp(draw_dyadic(&state), -52))
                     : i % 2 ? draw_wide(&state, draw_dyadic(&state))
                             : sinkproof_exact_set(draw_dyadic(&state));
            size += far_of(w_e[e].lo, w_e[e].hi) * far_of(d_e[e].lo, d_e[e].hi);
        }
        sinkproof_honest y = sinkproof_honest_mixture(&s, k, w_e, d_e);
        sinkproof_honest z = stated_mixture(&s, k, w_e, d_e);
        compare(&c, &y, &z, size, 2 * (real)k + 8, 4 * (real)k + 20);
    }
    report_both(&c, "moe.sum", tiny ? "sums that may be flushed" : "sums in any order", SEED + 4);
}

// 1 + 2^-8 + 2^-30 is above the middle of two numbers of bfloat16; float32 may make it that middle.
static void running(void) {
    sinkproof_policy policy = real_policy("definition");
    policy.inside = SINKPROOF_F32;
    policy.at[AT_M11_SUM] = (sinkproof_rounding){.format = SINKPROOF_BF16, .optional = false};
    sinkproof_setting s = setting(&policy);
    const sinkproof_honest w_e[2] = {sinkproof_exact_set(1), sinkproof_exact_set(1)};
    const sinkproof_honest d_e[2] = {sinkproof_exact_set(1), sinkproof_exact_set(0x1p-8 + 0x1p-30)};
    sinkproof_honest y = sinkproof_honest_mixture(&s, 2, w_e, d_e);
    ok(y.lo == 1 && y.hi == 1 + 0x1p-7 && y.mid == 1 + 0x1p-7,
       "moe.sum a running sum that is rounded twice: %a to %a", y.lo, y.hi);
}

int main(void) {
    gelu_sets();
    gelu_steps();
    gelu_margins();
    gelu_squares();
    swiglu_margins();
    swiglu_declared();
    swiglu_far();
    gates();
    without_bounds();
    mixtures(false);
    mixtures(true);
    running();
    return tap_done();
}
