// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of GELU by tanh (bound.gelu): x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))),
// rounded as the policy says. The two terms of the tanh's argument have the same sign, so that any
// grouping of its products has a relative error. The constants are decimals or roots, rounded once
// to the inner format. tanh and the sum with 1 err by about u, which for very negative x is the
// size of the result.
#include "proofs/bounds/bounds.h"

static const double libm = 0x1p-50; // binary64 tanh and sqrt here: a few ulp

static sinkproof_honest set_rounded_at(const sinkproof_setting *s, sinkproof_point point,
                                       sinkproof_honest x) {
    return sinkproof_honest_at(s, point, sinkproof_honest_inside(s, x));
}

// A constant as an engine holds it.
static sinkproof_honest rounded_constant(const sinkproof_setting *s, double c) {
    return sinkproof_honest_declared(sinkproof_exact_set(c), s->u + libm, 0);
}

// x^3 by products, or by pow with a declared error.
static sinkproof_honest set_cubed(const sinkproof_setting *s, sinkproof_honest x) {
    sinkproof_honest square = sinkproof_honest_mul(x, x);
    if (square.lo < 0) square.lo = 0;
    if (square.likely_lo < 0) square.likely_lo = 0;
    square = set_rounded_at(s, AT_M8_SQUARE, square);
    sinkproof_honest cube = sinkproof_honest_mul(square, x);
    if (s->policy->at[AT_M8_SQUARE].format == SINKPROOF_REAL ||
        s->policy->at[AT_M8_SQUARE].optional)
        cube = sinkproof_honest_declared(cube, s->policy->ulp[SINKPROOF_POW] * 2 * s->u, 0);
    return set_rounded_at(s, AT_M8_CUBE, cube);
}

// Where tanh is flat, nothing of t's freedom is left, even if t is unbounded.
static sinkproof_honest tanh_set(const sinkproof_setting *s, sinkproof_honest t) {
    double mid = tanh(t.mid), slope = 1 - mid * mid;
    if (!(slope > 0)) t.var = t.bias = t.order = 0;
    sinkproof_honest y = {.lo = tanh(t.lo),
                          .hi = tanh(t.hi),
                          .likely_lo = tanh(t.likely_lo),
                          .likely_hi = tanh(t.likely_hi),
                          .mid = mid,
                          .var = t.var * slope * slope,
                          .bias = t.bias * slope,
                          .order = t.order * slope * slope};
    double declared = s->policy->ulp[SINKPROOF_TANH] * 2 * s->u;
    double reach = fmax(fabs(y.lo), fabs(y.hi)) * declared;
    y = sinkproof_honest_declared(y, declared + libm, setting_underflow(s));
    y.var += reach * reach; // may lean: such elements weigh little in a drift
    return y;
}

//> bound.gelu
sinkproof_honest sinkproof_honest_gelu(const sinkproof_setting *s, sinkproof_honest x) {
    sinkproof_honest v = honest_flushed(s, x), cube = set_cubed(s, v);
    sinkproof_honest cubic =
        set_rounded_at(s, AT_M8_CUBIC, sinkproof_honest_mul(rounded_constant(s, 0.044715), cube));
    sinkproof_honest sum = set_rounded_at(s, AT_M8_SUM, sinkproof_honest_add(v, cubic));
    sinkproof_honest inner = sinkproof_honest_mul(rounded_constant(s, sqrt(2 / acos(-1))), sum);
    // Where no intermediate rounding is fixed, the factors may be multiplied in another order.
    sinkproof_rounding open = s->policy->at[AT_M8_SUM];
    bool free = open.optional || open.format == SINKPROOF_REAL;
    if (free) inner = sinkproof_honest_roundings(s, inner, 4);
    sinkproof_honest t =
        set_rounded_at(s, AT_M8_TANH, tanh_set(s, set_rounded_at(s, AT_M8_INNER, inner)));
    sinkproof_honest one =
        set_rounded_at(s, AT_M8_ONE, sinkproof_honest_add(t, sinkproof_exact_set(1)));
    if (one.lo < 0) one.lo = 0; // tanh is at least -1 in every engine considered
    sinkproof_honest y = sinkproof_honest_mul(v, one);
    y = sinkproof_honest_mul(y, sinkproof_exact_set(0.5));
    double var = y.var, spread = y.spread;
    if (free) y = sinkproof_honest_roundings(s, y, 2);
    y.var = var, y.spread = spread; // the number of roundings does not change
    return set_rounded_at(s, AT_M8, y);
}
//< bound.gelu
