// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of the clamped SwiGLU (bound.swiglu):
// (clamp(u) + 1) clamp(g) sigmoid(alpha clamp(g)), rounded as the policy says.
//
// sigmoid(t) = 1 / (1 + E), E = exp(-t): an error eps of E changes it by at most E / (1 + E) eps
// times 1 / (1 - eps), and the sum and the quotient round once each. (1 + tanh(t / 2)) / 2 is
// another form that a policy may admit (bound.form-tanh). If a policy rounds an exponential, it is
// that of |t| (bound.sigmoid-exp).
#include "proofs/bounds/abreast.h"

// The effect of the freedom of t on the sigmoid: none where it is flat, even if t is unbounded.
static sinkproof_honest real_sigmoid(sinkproof_honest t) {
    double mid = sigmoid_of(t.mid), slope = mid * (1 - mid);
    if (!(slope > 0)) t.var = t.bias = t.order = 0;
    return (sinkproof_honest){.lo = sigmoid_of(t.lo) * (1 - libm),
                              .hi = sigmoid_of(t.hi) * (1 + libm),
                              .likely_lo = sigmoid_of(t.likely_lo) * (1 - libm),
                              .likely_hi = sigmoid_of(t.likely_hi) * (1 + libm),
                              .mid = mid,
                              .var = t.var * slope * slope,
                              .bias = t.bias * slope,
                              .order = t.order * slope * slope};
}

// The loss of the quotient where it underflows.
static double quotient_flush_loss(const sinkproof_setting *s) {
    return s->policy->inside == SINKPROOF_F32 ? 0x1p-126 : 0x1p-1022;
}

static double declared_exp_error(const sinkproof_setting *s, sinkproof_honest t) {
    double size = fmin(fmax(fabs(t.lo), fabs(t.hi)), 800); // beyond, exp is 0 or infinite
    return (s->policy->ulp[SINKPROOF_EXP] + s->policy->exp_growth * size) * 2 * s->u;
}

// A positive set with a relative error at each end: the error of a large end may exceed the small
// end, but must not move that end below 0.
static sinkproof_honest widen_to_declared(sinkproof_honest e, double error) {
    error *= 1 + libm;
    e.bias += sinkproof_mul_up(e.hi, error);
    e.lo = add_down(e.lo, -sinkproof_mul_up(e.lo, error));
    e.hi = sinkproof_add_up(e.hi, sinkproof_mul_up(e.hi, error));
    e.likely_lo = add_down(e.likely_lo, -sinkproof_mul_up(e.likely_lo, error));
    e.likely_hi = sinkproof_add_up(e.likely_hi, sinkproof_mul_up(e.likely_hi, error));
    return e;
}

// The sum and the quotient round once each, unless the policy declares the quotient's error.
static sinkproof_honest one_plus_and_quotient(const sinkproof_setting *s, sinkproof_honest y) {
    double declared = declared_quotient(s);
    if (!(declared > 0)) return sinkproof_honest_roundings(s, y, 2);
    return sinkproof_honest_roundings(s, widen_to_declared(y, declared), 1);
}

static sinkproof_honest sigmoid_by_exp(const sinkproof_setting *s, sinkproof_honest t,
                                       sinkproof_honest y) {
    double tail = 1 - sigmoid_of(t.lo); // E / (1 + E), largest at the lower end
    double declared = declared_exp_error(s, t);
    y = sinkproof_honest_declared(y, declared / (1 - declared) * tail * (1 + libm),
                                  quotient_flush_loss(s));
    return one_plus_and_quotient(s, y);
}

//> bound.sigmoid-exp
// e^|t|, rounded at M8.exp. |t| is clamped to 709, where the quotient already underflows.
static sinkproof_honest exp_of_size(const sinkproof_setting *s, sinkproof_honest t) {
    sinkproof_honest x = t;
    x.lo = t.lo > 0 ? t.lo : t.hi < 0 ? -t.hi : 0, x.hi = fmax(-t.lo, t.hi);
    x.likely_lo = t.likely_lo > 0 ? t.likely_lo : t.likely_hi < 0 ? -t.likely_hi : 0;
    x.likely_hi = fmax(-t.likely_lo, t.likely_hi), x.mid = fabs(t.mid);
    x = sinkproof_honest_clamp(x, 0, 709);
    // the square of the slope stays finite; larger exponents contribute nothing
    double slope = exp(fmin(x.mid, 300));
    sinkproof_honest e = {.lo = exp(x.lo) * (1 - libm),
                          .hi = exp(x.hi) * (1 + libm),
                          .likely_lo = exp(x.likely_lo) * (1 - libm),
                          .likely_hi = exp(x.likely_hi) * (1 + libm),
                          .mid = exp(x.mid),
                          .var = x.var * slope * slope,
                          .bias = x.bias * slope,
                          .order = x.order * slope * slope};
    return sinkproof_honest_at(s, AT_M8_EXP, widen_to_declared(e, declared_exp_error(s, t)));
}

// 1 / (1 + e). Where e may be infinite, the bias is as wide as the set.
static sinkproof_honest inverse_one_plus(const sinkproof_setting *s, sinkproof_honest e) {
    double mid = 1 / (1 + e.mid), slope = mid * mid;
    double share = e.mid < INFINITY ? slope * slope : 0;
    sinkproof_honest y = {.lo = 1 / (1 + e.hi) * (1 - libm),
                          .hi = 1 / (1 + e.lo) * (1 + libm),
                          .likely_lo = 1 / (1 + e.likely_hi) * (1 - libm),
                          .likely_hi = 1 / (1 + e.likely_lo) * (1 + libm),
                          .mid = mid,
                          .var = share > 0 ? e.var * share : 0,
                          .bias = share > 0 ? e.bias * slope : 0,
                          .order = share > 0 ? e.order * share : 0};
    if (!(y.bias < INFINITY)) y.bias = y.hi - y.lo;
    return one_plus_and_quotient(s, sinkproof_honest_declared(y, 0, quotient_flush_loss(s)));
}

// 1 / (1 + e^|t|) is the sigmoid where t < 0; elsewhere the sigmoid is 1 minus it.
static sinkproof_honest sigmoid_by_size(const sinkproof_setting *s, sinkproof_honest t) {
    sinkproof_honest y = inverse_one_plus(s, exp_of_size(s, t));
    sinkproof_honest rest = sinkproof_honest_sub(sinkproof_exact_set(1), y);
    if (t.hi < 0) return y;
    if (t.lo >= 0) return rest;
    return t.mid < 0 ? sinkproof_honest_hull(y, rest) : sinkproof_honest_hull(rest, y);
}

// Where the rounding is optional, the exponential may also be the definition's. Without a rounding,
// it is only the definition's.
static sinkproof_honest sigmoid_by_exponential(const sinkproof_setting *s, sinkproof_honest t,
                                               sinkproof_honest y) {
    sinkproof_rounding at = s->policy->at[AT_M8_EXP];
    if (at.format == SINKPROOF_REAL) return sigmoid_by_exp(s, t, y);
    if (!at.optional) return sigmoid_by_size(s, t);
    return sinkproof_honest_hull(sigmoid_by_exp(s, t, y), sigmoid_by_size(s, t));
}
//< bound.sigmoid-exp

//> bound.form-tanh
// tanh has its declared error, half of the product of gate and tanh may round, and the sum rounds
// once. These absolute errors of about u are all that is left of the sigmoid for very negative t.
// They may be systematic, so they also count in the variance, which gives such elements little
// weight in a drift.
static sinkproof_honest sigmoid_by_tanh(const sinkproof_setting *s, sinkproof_honest t,
                                        sinkproof_honest y) {
    double declared = s->policy->ulp[SINKPROOF_TANH] * 2 * s->u;
    double size = tanh(fmax(fabs(t.lo), fabs(t.hi)) / 2) * (1 + libm);
    double absolute = (declared * (1 + s->u) + s->u) / 2 * size * (1 + s->u) * (1 + libm);
    y = sinkproof_honest_declared(y, s->u * (1 + libm), absolute);
    y.var += absolute * absolute;
    return y;
}
//< bound.form-tanh

static sinkproof_honest sigmoid_set(const sinkproof_setting *s, sinkproof_honest t) {
    sinkproof_honest y = real_sigmoid(t);
    if (!sinkproof_policy_admits(s->policy, SINKPROOF_FORM_OF_M8, SINKPROOF_M8_TANH))
        return sigmoid_by_exponential(s, t, y);
    if (!sinkproof_policy_admits(s->policy, SINKPROOF_FORM_OF_M8, SINKPROOF_FORM_DEFINITION))
        return sigmoid_by_tanh(s, t, y);
    return sinkproof_honest_hull(sigmoid_by_exponential(s, t, y), sigmoid_by_tanh(s, t, y));
}

static sinkproof_honest set_rounded_at(const sinkproof_setting *s, sinkproof_point point,
                                       sinkproof_honest x) {
    return sinkproof_honest_at(s, point, sinkproof_honest_inside(s, x));
}

// The configuration's 1.702 is a decimal, read to half an ulp of binary64.
static sinkproof_honest alpha_set(const sinkproof_setting *s, double alpha) {
    sinkproof_honest x = sinkproof_honest_declared(sinkproof_exact_set(alpha), 0x1p-53, 0);
    return sinkproof_honest_at(s, AT_M8_ALPHA, x);
}

// Whether the two products may meet in any order.
static bool order_is_open(const sinkproof_setting *s) {
    sinkproof_rounding at = s->policy->at[AT_M8_SWISH];
    return at.optional || at.format == SINKPROOF_REAL;
}

//> bound.swiglu
sinkproof_honest sinkproof_honest_swiglu(const sinkproof_setting *s,
                                         sinkproof_swiglu_numbers numbers, sinkproof_honest gate,
                                         sinkproof_honest up) {
    double limit = numbers.limit;
    sinkproof_honest g = sinkproof_honest_clamp(gate, -INFINITY, limit); // clamped above only
    sinkproof_honest l = sinkproof_honest_clamp(up, -limit, limit);
    g = honest_flushed(s, g), l = honest_flushed(s, l);
    sinkproof_honest t = g, shifted = l;
    if (numbers.alpha != 1) {
        sinkproof_honest alpha = alpha_set(s, numbers.alpha);
        t = set_rounded_at(s, AT_M8_SCALED, sinkproof_honest_mul(alpha, g));
    }
    sinkproof_honest gated = set_rounded_at(s, AT_M8_SIGMOID, sigmoid_set(s, t));
    sinkproof_honest swish = set_rounded_at(s, AT_M8_SWISH, sinkproof_honest_mul(g, gated));
    if (numbers.offset != 0)
        shifted = set_rounded_at(s, AT_M8_UP,
                                 sinkproof_honest_add(l, sinkproof_exact_set(numbers.offset)));
    sinkproof_honest y = sinkproof_honest_mul(honest_flushed(s, swish), shifted);
    // Where no rounding is fixed on the way, g, the quotient and u + offset may meet in any order:
    // each of the two products then rounds something else than it does above.
    double var = y.var, spread = y.spread;
    if (order_is_open(s)) y = sinkproof_honest_roundings(s, y, 2);
    y.var = var, y.spread = spread; // the number of roundings does not change
    return set_rounded_at(s, AT_M8, y);
}
//< bound.swiglu

// ---- a row

bool swiglu_terms_of(const sinkproof_setting *s, sinkproof_swiglu_numbers numbers,
                     swiglu_terms *t) {
    const sinkproof_policy *p = s->policy;
    *t = (swiglu_terms){
        .u = s->u,
        .limit = numbers.limit,
        .offset = numbers.offset,
        .scales = numbers.alpha != 1,
        .by_exp = sinkproof_policy_admits(p, SINKPROOF_FORM_OF_M8, SINKPROOF_FORM_DEFINITION),
        .by_tanh = sinkproof_policy_admits(p, SINKPROOF_FORM_OF_M8, SINKPROOF_M8_TANH),
        .open = order_is_open(s),
        .alpha = alpha_set(s, numbers.alpha),
        .exp_ulp = p->ulp[SINKPROOF_EXP],
        .exp_growth = p->exp_growth,
        .tanh_error = p->ulp[SINKPROOF_TANH] * 2 * s->u,
        .flush_loss = quotient_flush_loss(s),
        .two = widths_of_roundings(s, 2),
        .scaled = p->at[AT_M8_SCALED],
        .sigmoid = p->at[AT_M8_SIGMOID],
        .swish = p->at[AT_M8_SWISH],
        .up = p->at[AT_M8_UP],
        .result = p->at[AT_M8]};
    t->by_exp = t->by_exp || !t->by_tanh;
    return p->inside == SINKPROOF_F32 && p->at[AT_M8_EXP].format == SINKPROOF_REAL &&
           !(declared_quotient(s) > 0) && rounds_abreast(t->scaled) && rounds_abreast(t->sigmoid) &&
           rounds_abreast(t->swish) && rounds_abreast(t->up) && rounds_abreast(t->result);
}

void sinkproof_honest_swiglu_row(const sinkproof_setting *s, sinkproof_swiglu_numbers numbers,
                                 size_t n, const sinkproof_honest *gate_n,
                                 const sinkproof_honest *up_n, size_t stride,
                                 sinkproof_honest *y_n) {
    swiglu_terms terms;
    const sets_abreast *abreast = sets_abreast_here();
    bool many = abreast != NULL && swiglu_terms_of(s, numbers, &terms), odd_n[ABREAST];
    for (size_t i = 0; i < n; i += ABREAST) {
        size_t some = n - i < ABREAST ? n - i : ABREAST, first = i * stride;
        if (many)
            abreast->swiglu(&terms, some, gate_n + first, up_n + first, stride, y_n + i, odd_n);
        for (size_t l = 0; l < some; l++)
            if (!many || odd_n[l])
                y_n[i + l] = sinkproof_honest_swiglu(s, numbers, gate_n[first + l * stride],
                                                     up_n[first + l * stride]);
    }
}
