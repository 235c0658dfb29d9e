// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of the softmax with a sink (bound.softmax-sink).
//
// With t_j = z_j - m, m the row's maximum with the sink, the engine computes
// e_j = exp(t_j (1 + d)) (1 + eps), |d| <= u, |eps| <= the declared error of exp, so
// e_j lies within a factor 1 ± eta_j of the real one, eta_j = exp(|t_j| u) (1 + declared) - 1:
// no second-order term is dropped. The sum of n + 1 positive terms errs by gamma_n whatever its
// order, the quotient by two roundings. Weight i is largest when its own numerator is largest
// and every other is smallest: alpha_i = e_i / (e_i + sum of the others).
#include "proofs/bounds/bounds.h"

#include <float.h>
#include <stdlib.h>

sinkproof_honest sinkproof_honest_score(const sinkproof_setting *s, size_t head_dim,
                                        sinkproof_honest product) {
    sinkproof_honest z =
        sinkproof_honest_at(s, SINKPROOF_AT_A5, sinkproof_honest_inside(s, product));
    double scale = 1 / sqrt((double)head_dim);
    bool power_of_two = frexp(scale, &(int){0}) == 0.5;
    z = sinkproof_honest_mul(z, sinkproof_known(scale));
    if (!power_of_two) z = sinkproof_honest_roundings(s, z, 2); // the constant and the product
    return sinkproof_honest_at(s, SINKPROOF_AT_A6, sinkproof_honest_inside(s, z));
}

// A9.max: the row's maximum is subtracted and the difference rounded; no logit stays above 0.
static void subtract_maximum(const sinkproof_setting *s, size_t n, sinkproof_honest *z_j) {
    sinkproof_honest m = sinkproof_known(-INFINITY);
    for (size_t j = 0; j < n; j++) {
        m.lo = fmax(m.lo, z_j[j].lo), m.hi = fmax(m.hi, z_j[j].hi);
        m.likely_lo = fmax(m.likely_lo, z_j[j].likely_lo);
        m.likely_hi = fmax(m.likely_hi, z_j[j].likely_hi);
        m.mid = fmax(m.mid, z_j[j].mid);
    }
    for (size_t j = 0; j < n; j++) {
        if (z_j[j].hi == -INFINITY) continue;
        sinkproof_honest t = sinkproof_honest_inside(s, sinkproof_honest_sub(z_j[j], m));
        t = sinkproof_honest_at(s, SINKPROOF_AT_A9_MAX, t);
        t.hi = fmin(t.hi, 0), t.likely_hi = fmin(t.likely_hi, 0);
        z_j[j] = t;
    }
}

typedef struct numerator {
    double lo, hi, likely_lo, likely_hi, mid;
} numerator;

//> bound.exp
static numerator numerator_of(const sinkproof_setting *s, sinkproof_honest z, double m) {
    const double libm = 0x1p-50; // binary64 exp here: a few ulp, checked against Arb by the tests
    numerator e = {.mid = exp(z.mid - m)};
    if (s->mid_only || z.hi == -INFINITY) return e;
    double declared = s->policy->ulp[SINKPROOF_EXP] * 2 * s->u;
    double far = fmax(fabs(z.lo - m), fabs(z.hi - m));
    double eta = expm1(far * s->u) * (1 + declared) + declared + libm;
    // A vectorised exp may flush what would be subnormal.
    double flush = s->policy->inside == SINKPROOF_F32 ? 0x1p-126 : 0x1p-1022;
    e.lo = fmax(exp(z.lo - m) * (1 - eta) - flush, 0);
    e.hi = exp(z.hi - m) * (1 + eta) + flush;
    e.likely_lo = fmax(exp(z.likely_lo - m) * (1 - eta) - flush, 0);
    e.likely_hi = exp(z.likely_hi - m) * (1 + eta) + flush;
    return e;
}
//< bound.exp

//> bound.softmax-sink
void sinkproof_honest_softmax(const sinkproof_setting *s, sinkproof_point point, size_t n,
                              const sinkproof_honest *z_j, sinkproof_honest b,
                              sinkproof_honest *alpha_j, double *common) {
    sinkproof_honest *t_j = malloc((n + 1) * sizeof *t_j);
    numerator *e_j = malloc((n + 1) * sizeof *e_j), sum = {0};
    if (t_j == NULL || e_j == NULL) abort();
    for (size_t j = 0; j < n; j++) t_j[j] = z_j[j];
    t_j[n] = b; // the sink is one more term of the denominator
    if (point == SINKPROOF_AT_A9 && s->policy->at[SINKPROOF_AT_A9_MAX].format != SINKPROOF_REAL)
        subtract_maximum(s, n + 1, t_j);
    double m = -INFINITY, fourth = 0, in_var = 0, in_bias = 0;
    for (size_t j = 0; j <= n; j++) m = fmax(m, t_j[j].mid);
    for (size_t j = 0; j <= n; j++) {
        e_j[j] = numerator_of(s, t_j[j], m);
        sum.lo += e_j[j].lo, sum.hi += e_j[j].hi;
        sum.likely_lo += e_j[j].likely_lo, sum.likely_hi += e_j[j].likely_hi;
        sum.mid += e_j[j].mid;
    }
    for (size_t j = 0; j <= n; j++) {
        double a = e_j[j].mid / sum.mid, t = e_j[j].mid > 0 ? t_j[j].mid - m : 0;
        fourth += a * a;
        in_var += a * a * (t_j[j].var + t * t * s->u * s->u / 3);
        in_bias += a * t_j[j].bias;
    }
    double k = (double)n + 1, here = sinkproof_gamma(2 * k + 8, 0x1p-53);
    double gamma = sinkproof_gamma(k - 1, s->u) + 2 * here, two = sinkproof_gamma(2, s->u);
    double partial = s->u * s->u * (k / 3 + k * fourth / 6);
    double likely = fmin(gamma, sqrt(2 * s->odds * partial) + 2 * here);
    double declared = s->policy->ulp[SINKPROOF_EXP] * 2 * s->u;
    *common = partial / 3 + in_var;
    for (size_t j = 0; j <= n; j++) {
        const numerator *e = &e_j[j];
        sinkproof_honest a = sinkproof_known(e->mid / sum.mid);
        if (!s->mid_only && e->hi > 0) {
            a.lo = e->lo / (e->lo + (sum.hi - e->hi) * (1 + here)) * (1 - two) / (1 + gamma);
            a.hi = e->hi / (e->hi + fmax(sum.lo - e->lo, 0) * (1 - here)) * (1 + two) / (1 - gamma);
            a.likely_lo = e->likely_lo /
                          (e->likely_lo + (sum.likely_hi - e->likely_hi) * (1 + here)) * (1 - two) /
                          (1 + likely);
            a.likely_hi = e->likely_hi /
                          (e->likely_hi + fmax(sum.likely_lo - e->likely_lo, 0) * (1 - here)) *
                          (1 + two) / (1 - likely);
            a.hi = fmin(a.hi, 1 + 2 * s->u), a.likely_hi = fmin(a.likely_hi, 1 + 2 * s->u);
            double t = e->mid > 0 ? t_j[j].mid - m : 0;
            a.var = a.mid * a.mid * (t_j[j].var + (t * t + 2) * s->u * s->u / 3);
            a.spread = a.var;
            a.bias = a.mid * (2 * declared + t_j[j].bias + in_bias);
        }
        alpha_j[j] = sinkproof_honest_at(s, point, sinkproof_honest_inside(s, a));
    }
    free(t_j), free(e_j);
}
//< bound.softmax-sink
