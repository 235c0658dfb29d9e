// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of RMSNorm (bound.rmsnorm).
//
// All d terms of the sum of squares are positive, so any summation order errs relatively by
// at most gamma_(d+3) (squares, additions, the division by d, the addition of eps); the root
// halves it. Then the declared error of rsqrt, two products, and the rounding point. What
// the root adds is common to the row; the products are each element's own.
//
// Underflow: a square may lose 2^-150, or 2^-126 where results are flushed; the first of the two
// products may, and what it loses is multiplied by the other factor, the root or the scale.
//
// Likely: centred roundings, and what may lean in a sum of squares (sinkproof_lean).
#include "proofs/bounds/bounds.h"

//> bound.rmsnorm
void sinkproof_honest_rmsnorm(const sinkproof_setting *s, sinkproof_point point, size_t d,
                              const sinkproof_honest *x_d, const double *scale_d, double eps,
                              sinkproof_honest *y_d, double *common) {
    double sum = 0, sum_lo = 0, sum_hi = 0, fourth = 0, in_var = 0;
    double under = sinkproof_setting_underflow(s);
    for (size_t i = 0; i < d; i++) {
        const sinkproof_honest *x = &x_d[i];
        double square = x->mid * x->mid, big = fmax(fabs(x->lo), fabs(x->hi));
        double small = x->lo > 0 ? x->lo : x->hi < 0 ? -x->hi : 0;
        sum += square;
        fourth += square * square;
        sum_lo += small * small;
        sum_hi += big * big;
        in_var += 4 * square * x->var;
    }
    sinkproof_lean lean = sinkproof_lean_of_sum(sum, s->u);
    for (size_t i = 0; i < d; i++) sinkproof_lean_add(&lean, x_d[i].mid * x_d[i].mid);
    double n = (double)d, root = 1 / sqrt(sum / n + eps);
    double leaning =
        sum > 0 ? sinkproof_lean_result(&lean) / (2 * sum) : 0; // of the root, relative
    double here = sinkproof_gamma(n + 8, 0x1p-53);              // this evaluation's own error
    double declared = s->policy->ulp[SINKPROOF_RSQRT] * 2 * s->u;
    double gamma = sinkproof_gamma(n + 3, s->u) + 2 * here;
    // Where results are flushed, additions and the division lose as much as a square.
    double lost = (s->policy->ftz ? 3 * n : n) * under, least = fmax(sum_lo - lost, 0);
    double top = (sum_hi + lost) * (1 + gamma);
    double lo = 1 / sqrt(top / n + eps * (1 + gamma)) * (1 - here);
    bool infinite = !(top <= sinkproof_setting_largest(s)); // the sum may be (bound.overflow)
    if (infinite) lo = 0;
    double hi =
        1 / sqrt(least * (1 - fmin(gamma, 1)) / n + eps * (1 - fmin(gamma, 1))) * (1 + here);
    // relative variance of the computed sum: its rounded partial sums grow to the whole
    double shared = sum > 0 ? s->u * s->u / 12 * (n / 3 + n * fourth / (6 * sum * sum) + 3) : 0;
    shared += sum > 0 ? in_var / (4 * sum * sum) : 0;
    double likely = sqrt(2 * s->odds * 3 * shared) + leaning + 2 * here;
    sinkproof_honest r = {
        lo, hi, fmax(lo, root * (1 - likely)), fmin(hi, root * (1 + likely)), root, 0, 0, 0, 0};
    if (infinite || sum_lo != sum_hi) r.likely_lo = lo, r.likely_hi = hi;
    r = sinkproof_honest_declared(r, declared, 0);
    for (size_t i = 0; i < d; i++) {
        sinkproof_honest x = sinkproof_honest_flushed(s, x_d[i]);
        sinkproof_honest scale = sinkproof_honest_flushed(s, sinkproof_known(scale_d[i]));
        sinkproof_honest y = sinkproof_honest_mul(x, scale);
        y = sinkproof_honest_roundings(s, sinkproof_honest_mul(y, r), 2);
        if (y.lo != 0 || y.hi != 0) // nothing is lost of an exact zero
            y = sinkproof_honest_declared(y, 0,
                                          under * (1 + s->u) * fmax(fabs(r.hi), fabs(scale_d[i])));
        y.bias += leaning * fabs(y.mid);
        y_d[i] = sinkproof_honest_at(s, point, y);
    }
    *common = shared;
}
//< bound.rmsnorm
