// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of the mixture sum_e w_e d_e (moe.sum, bound.dot with a handful of terms).
#include "proofs/bounds/bounds.h"

sinkproof_honest sinkproof_honest_mixture(const sinkproof_setting *s, size_t k,
                                          const sinkproof_honest *w_e,
                                          const sinkproof_honest *d_e) {
    bool running = s->policy->at[SINKPROOF_AT_M11_SUM].format != SINKPROOF_REAL &&
                   !s->policy->at[SINKPROOF_AT_M11_SUM].optional;
    sinkproof_honest sum = sinkproof_known(0);
    double total = 0;
    for (size_t e = 0; e < k; e++) {
        sinkproof_honest p = sinkproof_honest_mul(w_e[e], d_e[e]);
        p = sinkproof_honest_at(s, SINKPROOF_AT_M11_PROD, sinkproof_honest_inside(s, p));
        total += fmax(fabs(p.lo), fabs(p.hi));
        sum = e == 0 ? p : sinkproof_honest_add(sum, p);
        if (running && e > 0) {
            sum = sinkproof_honest_inside(s, sum);
            sum = sinkproof_honest_at(s, SINKPROOF_AT_M11_SUM, sum);
        }
    }
    if (!running && !s->mid_only) { // k - 1 additions in any order, each partial sum <= total
        double worst = sinkproof_gamma((double)(k - 1), s->u) * total;
        double var = (double)(k - 1) * s->u * s->u * total * total / 9;
        sum = sinkproof_honest_add(sum, sinkproof_around(0, worst, worst, var, 0));
        if (s->policy->at[SINKPROOF_AT_M11_SUM].format != SINKPROOF_REAL)
            sum = sinkproof_honest_at(s, SINKPROOF_AT_M11_SUM, sum);
    }
    return sinkproof_honest_at(s, SINKPROOF_AT_M11, sinkproof_honest_inside(s, sum));
}
