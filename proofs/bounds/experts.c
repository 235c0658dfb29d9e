// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of the mixture sum_e w_e d_e (moe.sum, bound.dot with a handful of terms).
#include "proofs/bounds/bounds.h"

// The running sum of the products, rounded after each addition, in the order given.
static sinkproof_honest running_sum(const sinkproof_setting *s, size_t k,
                                    const sinkproof_honest *p_e) {
    sinkproof_honest sum = p_e[0];
    for (size_t e = 1; e < k; e++) {
        sinkproof_honest exact = sinkproof_honest_add(sum, p_e[e]);
        sum = sinkproof_honest_at(s, SINKPROOF_AT_M11_SUM, sinkproof_honest_inside(s, exact));
    }
    return sum;
}

// k - 1 additions in any order: each partial sum is at most sum |p|.
static sinkproof_honest any_sum(const sinkproof_setting *s, size_t k, const sinkproof_honest *p_e) {
    sinkproof_honest sum = p_e[0];
    double total = fmax(fabs(sum.lo), fabs(sum.hi)), n = (double)k - 1;
    for (size_t e = 1; e < k; e++) {
        sum = sinkproof_honest_add(sum, p_e[e]);
        total += fmax(fabs(p_e[e].lo), fabs(p_e[e].hi));
    }
    if (s->mid_only) return sum;
    double worst = sinkproof_gamma(n + 1, s->u) * total;
    return sinkproof_honest_add(
        sum, sinkproof_around(0, worst, worst, n * s->u * s->u * total * total / 9, 0));
}

static sinkproof_honest hull(sinkproof_honest x, sinkproof_honest y) {
    x.lo = fmin(x.lo, y.lo), x.hi = fmax(x.hi, y.hi);
    x.likely_lo = fmin(x.likely_lo, y.likely_lo), x.likely_hi = fmax(x.likely_hi, y.likely_hi);
    x.var = x.spread = fmax(x.var, y.var) + (x.mid - y.mid) * (x.mid - y.mid);
    x.bias = fmax(x.bias, y.bias);
    return x;
}

//> moe.sum
sinkproof_honest sinkproof_honest_mixture(const sinkproof_setting *s, size_t k,
                                          const sinkproof_honest *w_e,
                                          const sinkproof_honest *d_e) {
    sinkproof_honest p_e[SINKPROOF_MAX_CHOSEN];
    for (size_t e = 0; e < k; e++) {
        sinkproof_honest p = sinkproof_honest_inside(s, sinkproof_honest_mul(w_e[e], d_e[e]));
        p_e[e] = sinkproof_honest_at(s, SINKPROOF_AT_M11_PROD, p);
    }
    sinkproof_rounding running = s->policy->at[SINKPROOF_AT_M11_SUM];
    sinkproof_honest sum;
    if (running.format == SINKPROOF_REAL || s->mid_only)
        sum = any_sum(s, k, p_e);
    else if (!running.optional)
        sum = running_sum(s, k, p_e);
    else
        sum = hull(any_sum(s, k, p_e), running_sum(s, k, p_e));
    return sinkproof_honest_at(s, SINKPROOF_AT_M11, sinkproof_honest_inside(s, sum));
}
//< moe.sum
