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
//
// A generic policy admits a running maximum at A9 (flash kernels): each new maximum multiplies what
// has been summed by one more exp. The exponents of a term's factors add up to t_j, so their
// roundings stay within exp(|t_j| u), but each factor brings the declared error and one rounding: R
// rescalings err by at most rho = ((1 + declared)(1 + u))^R - 1, R <= n. The numerator may be
// another exp than the term of the denominator, or be rescaled with it; so both get rho, and
// the numerator's own eta no longer cancels. Likely: when the order of the keys has nothing to do
// with their scores, key i is a new maximum with probability 1/i and then rescales a share i/n of
// the sum. E exp(x sum_i B_i i/n) <= exp(e^x - 1): the effective number of rescalings exceeds r
// with probability below exp(r - 1 - r log r), as for a Poisson variable of mean 1.
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
    double own; // how far a generic engine's term of the denominator may be from its numerator
} numerator;

//> bound.exp
// m_lo <= the engine's maximum <= m_hi; m is the shift of this evaluation.
static numerator numerator_of(const sinkproof_setting *s, bool running, sinkproof_honest z,
                              double m, double m_lo, double m_hi) {
    const double libm = 0x1p-50; // binary64 exp here: a few ulp, checked against Arb by the tests
    numerator e = {.mid = exp(z.mid - m), .own = 1};
    if (s->mid_only || z.hi == -INFINITY) return e;
    double declared = s->policy->ulp[SINKPROOF_EXP] * 2 * s->u;
    double far = fmax(fabs(z.lo - m_hi), fabs(z.hi - m_lo));
    double eta = expm1(far * (s->u + 0x1p-52)) * (1 + declared) + declared + libm;
    if (running) e.own = eta < 1 ? (1 + eta) / (1 - eta) : DBL_MAX;
    // A vectorised exp may flush what would be subnormal.
    double flush = s->policy->inside == SINKPROOF_F32 ? 0x1p-126 : 0x1p-1022;
    e.lo = fmax(exp(z.lo - m) * (1 - eta) - flush, 0);
    e.hi = exp(z.hi - m) * (1 + eta) + flush;
    e.likely_lo = fmax(exp(z.likely_lo - m) * (1 - eta) - flush, 0);
    e.likely_hi = exp(z.likely_hi - m) * (1 + eta) + flush;
    return e;
}
//< bound.exp

// What n rescalings of a running maximum may add, relatively: in the worst case and likely.
typedef struct rescaling {
    double worst, likely;
} rescaling;

static rescaling rescaling_of(const sinkproof_setting *s, bool running, double n) {
    if (!running) return (rescaling){0, 0};
    double declared = s->policy->ulp[SINKPROOF_EXP] * 2 * s->u, each = log1p(declared) + s->u;
    double r = 1;
    while (r < n && r * (log(r) - 1) + 1 < s->odds) r++;
    return (rescaling){expm1(n * each) * (1 + 0x1p-50), expm1(fmin(r, n) * each)};
}

//> bound.softmax-sink
void sinkproof_honest_softmax(const sinkproof_setting *s, sinkproof_point point, size_t n,
                              const sinkproof_honest *z_j, sinkproof_honest b,
                              sinkproof_honest *alpha_j, double *common) {
    sinkproof_honest *t_j = malloc((n + 1) * sizeof *t_j);
    numerator *e_j = malloc((n + 1) * sizeof *e_j), sum = {0};
    if (t_j == NULL || e_j == NULL) abort();
    bool running = !s->policy->exact && !s->mid_only && point == SINKPROOF_AT_A9;
    for (size_t j = 0; j < n; j++) t_j[j] = z_j[j];
    t_j[n] = b; // the sink is one more term of the denominator
    if (point == SINKPROOF_AT_A9 && s->policy->at[SINKPROOF_AT_A9_MAX].format != SINKPROOF_REAL)
        subtract_maximum(s, n + 1, t_j);
    double m = -INFINITY, m_lo = m, m_hi = m, fourth = 0, in_var = 0, in_bias = 0;
    for (size_t j = 0; j <= n; j++)
        m = fmax(m, t_j[j].mid), m_lo = fmax(m_lo, t_j[j].lo), m_hi = fmax(m_hi, t_j[j].hi);
    for (size_t j = 0; j <= n; j++) {
        e_j[j] = numerator_of(s, running, t_j[j], m, m_lo, m_hi);
        sum.lo += e_j[j].lo, sum.hi += e_j[j].hi;
        sum.likely_lo += e_j[j].likely_lo, sum.likely_hi += e_j[j].likely_hi;
        sum.mid += e_j[j].mid;
    }
    sinkproof_lean lean = sinkproof_lean_of_sum(sum.mid, s->u);
    for (size_t j = 0; j <= n; j++) {
        double a = e_j[j].mid / sum.mid, t = e_j[j].mid > 0 ? t_j[j].mid - m : 0;
        fourth += a * a;
        if (!s->mid_only) sinkproof_lean_add(&lean, e_j[j].mid);
        in_var += a * a * (t_j[j].var + t * t * s->u * s->u / 3);
        in_bias += a * t_j[j].bias;
    }
    double k = (double)n + 1, here = sinkproof_gamma(2 * k + 8, 0x1p-53);
    double leaning = sinkproof_lean_result(&lean) / sum.mid;
    rescaling rho = rescaling_of(s, running, k - 1);
    double gamma = sinkproof_gamma(k - 1, s->u) + 2 * here, two = sinkproof_gamma(2, s->u);
    double partial = s->u * s->u * (k / 3 + k * fourth / 6);
    double likely = fmin(gamma, sqrt(2 * s->odds * partial) + leaning + 2 * here);
    double declared = s->policy->ulp[SINKPROOF_EXP] * 2 * s->u;
    // The factors of the quotient's ends: what its two roundings, the sum and rescalings leave.
    double low = (1 - two) / ((1 + gamma) * (1 + rho.worst)) * fmax(1 - rho.worst, 0);
    double high = rho.worst < 1 && gamma < 1
                      ? (1 + two) / ((1 - gamma) * (1 - rho.worst)) * (1 + rho.worst)
                      : INFINITY;
    double likely_low = (1 - two) / ((1 + likely) * (1 + rho.likely)) * fmax(1 - rho.likely, 0);
    double likely_high = (1 + two) / ((1 - likely) * (1 - rho.likely)) * (1 + rho.likely);
    *common = partial / 3 + in_var;
    for (size_t j = 0; j <= n; j++) {
        const numerator *e = &e_j[j];
        sinkproof_honest a = sinkproof_known(e->mid / sum.mid);
        if (!s->mid_only && e->hi > 0) {
            // The sums' own error counts against what is left when one term is taken out.
            double others_lo = fmax(sum.lo * (1 - here) - e->lo, 0);
            double others_hi = sum.hi * (1 + here) - e->hi;
            a.lo = e->lo / (e->lo * e->own + others_hi) * low;
            a.hi = e->hi / (e->hi / e->own + others_lo) * high;
            others_lo = fmax(sum.likely_lo * (1 - here) - e->likely_lo, 0);
            others_hi = sum.likely_hi * (1 + here) - e->likely_hi;
            a.likely_lo = e->likely_lo / (e->likely_lo * e->own + others_hi) * likely_low;
            a.likely_hi = e->likely_hi / (e->likely_hi / e->own + others_lo) * likely_high;
            a.hi = fmin(a.hi, 1 + 2 * s->u), a.likely_hi = fmin(a.likely_hi, 1 + 2 * s->u);
            double t = e->mid > 0 ? t_j[j].mid - m : 0;
            a.var = a.mid * a.mid * (t_j[j].var + (t * t + 2) * s->u * s->u / 3);
            a.spread = a.var;
            // A running maximum rescales a term once, on the average, above and below.
            a.bias = a.mid * ((running ? 4 : 2) * declared + leaning + t_j[j].bias + in_bias);
        }
        alpha_j[j] = sinkproof_honest_at(s, point, sinkproof_honest_inside(s, a));
    }
    free(t_j), free(e_j);
}
//< bound.softmax-sink
