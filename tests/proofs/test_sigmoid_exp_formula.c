// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A sigmoid from a rounded e^|t| (bound.sigmoid-exp), computed again in long double: every end,
// variance and bias of the activation with alpha = 1, up = 0 and the gate t, so that y = t sigma. A
// policy without freedom inside (u = 0) leaves only the few roundings of the sets' own arithmetic,
// so that the margins of exp, 2^-50, are visible.
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20261125;
enum { DRAWS = 1500 };

typedef struct stated {
    real lo, hi, likely_lo, likely_hi, mid, var, bias, order;
} stated;

static sinkproof_honest doubles(const stated *x) {
    return (sinkproof_honest){(double)x->lo,        (double)x->hi,   (double)x->likely_lo,
                              (double)x->likely_hi, (double)x->mid,  (double)x->var,
                              (double)x->var,       (double)x->bias, (double)x->order};
}

static stated of_set(const sinkproof_honest *x) {
    return (stated){x->lo, x->hi, x->likely_lo, x->likely_hi, x->mid, x->var, x->bias, x->order};
}

// An error that may lean: all ends move by it.
static void declared(stated *x, real relative, real absolute) {
    real error = fmaxl(fabsl(x->lo), fabsl(x->hi)) * relative + absolute;
    x->lo -= error, x->hi += error, x->likely_lo -= error, x->likely_hi += error;
    x->bias += error;
}

// n centred roundings: gamma_n in the worst case, sqrt(2 L n) u likely.
static void centred(stated *x, const sinkproof_setting *s, real n) {
    real u = s->u, worst = gamma_of(n, u), likely = sqrtl(2 * n * (real)s->odds) * u * (1 + worst);
    real far = fmaxl(fabsl(x->lo), fabsl(x->hi)),
         likely_far = fmaxl(fabsl(x->likely_lo), fabsl(x->likely_hi));
    real under = u == 0 ? 0 : n * (real)sinkproof_format_underflow(s->policy->inside) * (1 + worst);
    if (worst < likely) likely = worst;
    x->lo -= far * worst + under, x->hi += far * worst + under;
    x->likely_lo -= likely_far * likely + under, x->likely_hi += likely_far * likely + under;
    x->var += n * u * u * x->mid * x->mid / 3;
}

static const real margin = 0x1p-50L; // of exp in binary64, as the code declares it

// The sum and the quotient, which rounds or errs as declared: each end by its own size.
static void two_steps(stated *x, const sinkproof_setting *s) {
    real q = quotient_of(s->policy, s->u) * (1 + margin);
    x->bias += q * x->hi, x->lo *= 1 - q, x->likely_lo *= 1 - q;
    x->hi *= 1 + q, x->likely_hi *= 1 + q;
    centred(x, s, q > 0 ? 1 : 2);
}

// |t| of t in [lo, hi], at most 709: the least and the largest.
static void sizes(real lo, real hi, real *least, real *most) {
    *least = lo <= 0 && hi >= 0 ? 0 : fminl(fabsl(lo), fabsl(hi));
    *most = fmaxl(fabsl(lo), fabsl(hi));
    *least = fminl(*least, 709), *most = fminl(*most, 709);
}

// E = e^|t|: its ends have the margin; var, bias, order go through the slope E. A t of which
// nothing is left below 709 has none.
static stated size_exponential(const sinkproof_setting *s, const sinkproof_honest *t, real e_x) {
    real lo, hi, likely_lo, likely_hi, mid = fminl(fabsl(t->mid), 709);
    sizes(t->lo, t->hi, &lo, &hi), sizes(t->likely_lo, t->likely_hi, &likely_lo, &likely_hi);
    real slope = lo >= 709 || hi <= 0 ? 0 : expl(mid);
    stated e = {expl(lo) * (1 - margin),
                expl(hi) * (1 + margin),
                expl(likely_lo) * (1 - margin),
                expl(likely_hi) * (1 + margin),
                expl(mid),
                t->var * slope * slope,
                t->bias * slope,
                t->order * slope * slope};
    e.bias += e.hi * e_x; // each end errs by its own size
    e.lo *= 1 - e_x, e.hi *= 1 + e_x, e.likely_lo *= 1 - e_x, e.likely_hi *= 1 + e_x;
    sinkproof_honest rounded = sinkproof_honest_at(s, AT_M8_EXP, doubles(&e));
    sinkproof_rounding at = s->policy->at[AT_M8_EXP];
    return at.format == SINKPROOF_F64 && !at.optional ? e : of_set(&rounded);
}

// y = 1 / (1 + E), and what is left of 1: |dy/dE| = y^2.
static stated one_over(const sinkproof_setting *s, const stated *e, double flushed) {
    real mid = 1 / (1 + e->mid), slope = mid * mid;
    bool none = (double)(slope * slope) == 0; // infinite, or as good as
    stated y = {1 / (1 + e->hi) * (1 - margin),
                1 / (1 + e->lo) * (1 + margin),
                1 / (1 + e->likely_hi) * (1 - margin),
                1 / (1 + e->likely_lo) * (1 + margin),
                mid,
                none ? 0 : e->var * slope * slope,
                none ? 0 : e->bias * slope,
                none ? 0 : e->order * slope * slope};
    if (isinf((double)y.bias)) y.bias = y.hi - y.lo; // E may have overflowed
    sinkproof_honest own = sinkproof_honest_declared(doubles(&y), 0, flushed);
    y = of_set(&own);
    two_steps(&y, s);
    return y;
}

static stated hull(const stated *x, const stated *y) {
    real apart = x->mid - y->mid;
    return (stated){fminl(x->lo, y->lo),
                    fmaxl(x->hi, y->hi),
                    fminl(x->likely_lo, y->likely_lo),
                    fmaxl(x->likely_hi, y->likely_hi),
                    x->mid,
                    fmaxl(x->var, y->var) + apart * apart,
                    fmaxl(x->bias, y->bias),
                    fmaxl(x->order, y->order)};
}

static double flush_of(const sinkproof_setting *s) {
    return s->policy->inside == SINKPROOF_F32 ? 0x1p-126 : 0x1p-1022;
}

// e^|t|'s: y below zero, 1 - y from there on.
static stated by_size(const sinkproof_setting *s, const sinkproof_honest *t, real e_x) {
    stated e = size_exponential(s, t, e_x), y = one_over(s, &e, flush_of(s));
    stated rest = {1 - y.hi,  1 - y.lo, 1 - y.likely_hi, 1 - y.likely_lo,
                   1 - y.mid, y.var,    y.bias,          y.order};
    if (t->hi < 0) return y;
    if (t->lo >= 0) return rest;
    return t->mid < 0 ? hull(&y, &rest) : hull(&rest, &y);
}

static real sigmoid(real t) {
    return 1 / (1 + expl(-t));
}

// The definition's, 1 / (1 + e^-t), as bound.swiglu has it.
static stated by_definition(const sinkproof_setting *s, const sinkproof_honest *t, real e_x) {
    real mid = sigmoid(t->mid), slope = mid * sigmoid(-(real)t->mid);
    stated y = {sigmoid(t->lo) * (1 - margin),
                sigmoid(t->hi) * (1 + margin),
                sigmoid(t->likely_lo) * (1 - margin),
                sigmoid(t->likely_hi) * (1 + margin),
                mid,
                t->var * slope * slope,
                t->bias * slope,
                t->order * slope * slope};
    declared(&y, e_x / (1 - e_x) * sigmoid(-(real)t->lo), flush_of(s));
    two_steps(&y, s);
    return y;
}

// (1 + tanh(t / 2)) / 2: an absolute error, which counts in the variance too.
static stated by_tanh(const sinkproof_setting *s, const sinkproof_honest *t) {
    sinkproof_setting exact = *s;
    exact.u = 0;
    stated y = by_definition(&exact, t, 0);
    real u = s->u, e = s->policy->ulp[SINKPROOF_TANH] * 2 * u, flushed = flush_of(s);
    real far = fmaxl(fabsl((real)t->lo), fabsl((real)t->hi));
    real part = ((e * (1 + u) + u) / 2) * (1 + u) * tanhl(far / 2);
    declared(&y, 0, -flushed), y.bias += 2 * flushed; // the quotient's, which this form has not
    y.bias -= flushed;
    declared(&y, u, part);
    y.var += part * part;
    return y;
}

static stated sigmoid_of(const sinkproof_setting *s, const sinkproof_honest *t) {
    sinkproof_rounding at = s->policy->at[AT_M8_EXP];
    real far = fminl(fmaxl(fabsl((real)t->lo), fabsl((real)t->hi)), 800);
    real e_x = (s->policy->ulp[SINKPROOF_EXP] + s->policy->exp_growth * far) * 2 * s->u;
    if (s->policy->forms[SINKPROOF_FORM_OF_M8] == 1u << SINKPROOF_M8_TANH) return by_tanh(s, t);
    stated one = by_definition(s, t, e_x), other = by_size(s, t, e_x);
    if (at.format == SINKPROOF_REAL) return one;
    return at.optional ? hull(&one, &other) : other;
}

// ---- through the activation ---------------------------------------------------------------------

static sinkproof_honest then(const sinkproof_setting *s, sinkproof_point point,
                             sinkproof_honest x) {
    return sinkproof_honest_at(s, point, sinkproof_honest_inside(s, x));
}

// y = g sigma(alpha g), alpha read to half an ulp of binary64; up = 0.
static sinkproof_honest activation(const sinkproof_setting *s, double alpha, sinkproof_honest g) {
    g = honest_flushed(s, g);
    sinkproof_honest a = sinkproof_exact_set(alpha);
    a.lo = a.likely_lo = add_down(alpha, -alpha * 0x1p-53);
    a.hi = a.likely_hi = sinkproof_add_up(alpha, alpha * 0x1p-53), a.bias = alpha * 0x1p-53;
    sinkproof_honest t = then(s, AT_M8_SCALED, sinkproof_honest_mul(a, g));
    stated sigma = sigmoid_of(s, &t);
    sinkproof_honest gated = then(s, AT_M8_SIGMOID, doubles(&sigma));
    sinkproof_honest y = then(s, AT_M8_SWISH, sinkproof_honest_mul(g, gated));
    y = sinkproof_honest_mul(honest_flushed(s, y), sinkproof_exact_set(1));
    return then(s, AT_M8, y);
}

static sinkproof_honest found_of(const sinkproof_setting *s, double alpha, sinkproof_honest g) {
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    config.swiglu.alpha = alpha, config.swiglu.limit = 1e9;
    return sinkproof_honest_swiglu(s, config.swiglu, g, sinkproof_exact_set(0));
}

static sinkproof_policy policy_of(sinkproof_format inside, sinkproof_format format, bool optional) {
    sinkproof_policy policy = real_policy("definition");
    policy.inside = inside;
    policy.at[AT_M8_EXP] = (sinkproof_rounding){.format = format, .optional = optional};
    policy.at[AT_M8_SWISH].format = SINKPROOF_F64; // no other order of the products
    return policy;
}

// `beside`: what bias and deviation would be if one minus the sigmoid, which the definition's error
// has as a factor and binary64 rounds, were one.
static void compare(distance *d, const sinkproof_honest *x, const sinkproof_honest *y, real beside,
                    real k) {
    real least = 0x1p-1010L; // below, binary64 keeps fewer bits
    real size = fmaxl(fmaxl(fabsl((real)y->lo), fabsl((real)y->hi)), least);
    near(d, x->lo, y->lo, size, k), near(d, x->hi, y->hi, size, k);
    near(d, x->likely_lo, y->likely_lo, size, k), near(d, x->likely_hi, y->likely_hi, size, k);
    near(d, x->mid, y->mid, size, k);
    real middles = size * size * k * 0x1p-53L; // a hull squares what two equal ones are apart
    near(d, x->bias, y->bias, fmaxl(y->bias + beside, least), 2 * k);
    near(d, x->var, y->var, fmaxl(y->var + middles + beside * beside, least), 4 * k);
    if (isfinite(y->order))
        near(d, x->order, y->order, fmaxl(y->order + (real)y->var + middles, least), 4 * k);
    else // nothing is asked of its scatter
        near(d, isfinite(x->order), 0, 1, 1);
}

// Where nothing is free, g = -1, and 1 - y is not asked: exp (2), its margin, the sum, the
// quotient, its margin, and what is flushed from the one and from the other.
static void margins(void) {
    uint64_t state = SEED;
    distance d = {0};
    sinkproof_policy policy = policy_of(SINKPROOF_F64, SINKPROOF_F64, false);
    sinkproof_setting s = {.policy = &policy, .u = 0, .odds = 30};
    for (int i = 0; i < DRAWS; i++) {
        double alpha = 3 + 60 * draw_unit(&state);
        sinkproof_honest y = activation(&s, alpha, sinkproof_exact_set(-1)),
                         x = found_of(&s, alpha, sinkproof_exact_set(-1));
        compare(&d, &x, &y, 0, 9);
    }
    report(&d, "bound.sigmoid-exp bound.swiglu", "every end without any freedom", SEED);
}

// A set around t, of any width, some with an end at 0.
static sinkproof_honest draw_gate_set(uint64_t *state, double t) {
    int kind = (int)draw_below(state, 6);
    double lo = ldexp(1 + draw_unit(state), kind < 2 ? -20 : -2),
           hi = ldexp(1 + draw_unit(state), kind < 2 ? -20 : -2);
    if (kind == 5) return sinkproof_exact_set(t / 2);
    sinkproof_honest g = {t - lo, t + hi, t - lo / 4, t + hi / 2, t, lo * lo / 8, 0, hi / 64, 0};
    if (kind == 4 && fabs(t) < 2) {
        bool above = draw_below(state, 2);
        if (above) g = (sinkproof_honest){0, 1, 0, 0.5, 0.25, lo, 0, hi, 0};
        if (!above) g = (sinkproof_honest){-1, 0, -0.5, 0, -0.25, lo, 0, hi, 0};
    }
    g.lo /= 2, g.hi /= 2, g.likely_lo /= 2, g.likely_hi /= 2, g.mid /= 2;
    g.spread = g.var, g.order = g.var / 2;
    return g;
}

static double draw_t(uint64_t *state) {
    const double near_edges[] = {-0x1p-3, 0,   0x1p-3, -0.375,  0.5,
                                 0.75,    -85, -87,    11.0898, -11.0898};
    const double far_edges[] = {-150, 170, -200, 200, -690, -708.75, -709.25, -711, 711, 805, -798};
    uint64_t kind = draw_below(state, 8);
    if (kind == 0) return near_edges[draw_below(state, sizeof near_edges / sizeof *near_edges)];
    if (kind == 1) return far_edges[draw_below(state, sizeof far_edges / sizeof *far_edges)];
    return kind < 5 ? draw_dyadic(state) : 10 * draw_dyadic(state);
}

typedef struct numerics {
    sinkproof_format inside, format;
    bool optional, tanh;
    double u, growth, k;
    const char *id, *text;
    double div, rcp; // declared ulp of a quotient and a reciprocal; 0: as rounded
} numerics;

static const numerics cases[] = {
    {SINKPROOF_F64, SINKPROOF_F64, false, false, 0, 0, 30, "bound.sigmoid-exp", "f64, u = 0", 0, 0},
    {SINKPROOF_F64, SINKPROOF_F64, true, false, 0, 0, 30, "bound.sigmoid-exp", "f64?, u = 0", 0, 0},
    {SINKPROOF_F32, SINKPROOF_F64, false, false, 0x1p-24, 0, 60, "bound.sigmoid-exp", "f64", 0, 0},
    {SINKPROOF_F32, SINKPROOF_BF16, false, false, 0x1p-24, 0.5, 60, "bound.sigmoid-exp", "bf16", 0,
     0},
    {SINKPROOF_F32, SINKPROOF_BF16, true, false, 0x1p-24, 0.5, 60, "bound.sigmoid-exp", "bf16?", 0,
     0},
    {SINKPROOF_F32, SINKPROOF_F16, false, false, 0x1p-24, 0, 60, "bound.sigmoid-exp", "f16", 0, 0},
    {SINKPROOF_F32, SINKPROOF_REAL, false, false, 0x1p-24, 0, 60, "bound.sigmoid-exp", "real", 0,
     0},
    {SINKPROOF_F32, SINKPROOF_REAL, false, true, 0x1p-24, 0, 60, "bound.form-tanh", "tanh", 0, 0},
    {SINKPROOF_F64, SINKPROOF_REAL, false, true, 0x1p-24, 0, 60, "bound.form-tanh", "tanh, f64", 0,
     0},
    {SINKPROOF_F32, SINKPROOF_BF16, true, false, 0x1p-24, 0, 60, "bound.quotient", "div", 64, 0},
    {SINKPROOF_F32, SINKPROOF_REAL, false, false, 0x1p-24, 0, 60, "bound.quotient", "rcp", 0, 9},
};

static void any_set(const numerics *c) {
    uint64_t state = SEED + 1;
    distance d = {0};
    sinkproof_policy policy = policy_of(c->inside, c->format, c->optional);
    policy.exp_growth = c->growth;
    if (c->div > 0) policy.ulp[SINKPROOF_DIV] = c->div;
    if (c->rcp > 0) policy.ulp[SINKPROOF_RCP] = c->rcp;
    if (c->tanh) policy.forms[SINKPROOF_FORM_OF_M8] = 1u << SINKPROOF_M8_TANH;
    sinkproof_setting s = {.policy = &policy, .u = c->u, .odds = 30};
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_honest g = draw_gate_set(&state, draw_t(&state));
        sinkproof_honest y = activation(&s, 2, g), x = found_of(&s, 2, g);
        real far = fmaxl(fabsl((real)g.lo), fabsl((real)g.hi)), beside = far * far * 0x1p-50L;
        beside += far * (2 * g.bias + 2 * sqrtl(g.var) + (10 + 800 * c->growth) * c->u);
        if (c->tanh || !(c->optional || c->format == SINKPROOF_REAL)) beside = 0;
        compare(&d, &x, &y, beside, c->k);
    }
    char what[64];
    snprintf(what, sizeof what, "%s, every end", c->text);
    report(&d, c->id, what, SEED + 1);
}

// A gate below the smallest normal number is read as zero, before anything is made of it.
static void small_gates(void) {
    sinkproof_policy policy = policy_of(SINKPROOF_F32, SINKPROOF_REAL, false);
    policy.ftz = true;
    sinkproof_setting s = {.policy = &policy, .u = 0x1p-24, .odds = 30};
    distance d = {0};
    for (int i = 0; i < 8; i++) {
        sinkproof_honest g = sinkproof_exact_set(ldexp(i % 2 ? 1.25 : -1.5, -124 - i / 2));
        sinkproof_honest y = activation(&s, 2, g), x = found_of(&s, 2, g);
        real size = fmaxl(fabsl((real)y.lo), fabsl((real)y.hi));
        near(&d, x.lo, y.lo, size, 60), near(&d, x.hi, y.hi, size, 60);
        near(&d, x.bias, y.bias, y.bias, 120);
    }
    report(&d, "bound.swiglu", "gates that may be read as zero", SEED);
}

int main(void) {
    small_gates();
    margins();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) any_set(&cases[i]);
    return tap_done();
}
