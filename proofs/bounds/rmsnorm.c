// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of RMSNorm (bound.rmsnorm).
//
// All d terms of the sum of squares are positive, so any summation order errs relatively by
// at most gamma_(d+3) (squares, additions, the division by d, the addition of eps), or more where
// the policy declares the error of a quotient; the root halves it. Then the declared error of
// rsqrt, two products, and the rounding point. The error of the root is common to the row; those of
// the products belong to each element.
//
// Underflow: a square may lose 2^-150, or 2^-126 where results are flushed; the first of the two
// products may lose as much, and its loss is multiplied by the other factor, the root or the scale.
//
// Likely: centred roundings, and the systematic part of a sum of squares (error_lean).
#include "proofs/bounds/bounds.h"

//> bound.rmsnorm
// Sums over a row's elements. sum, lo, hi: the sum of the squares, and the least and largest
// possible one. fourth: the sum of the fourth powers. in_var: the variance of the sum that the
// variances of the elements cause.
typedef struct row_sums {
    double sum, lo, hi, fourth, in_var;
} row_sums;

static row_sums row_square_sums(size_t d, const sinkproof_honest *x_d) {
    row_sums r = {0};
    for (size_t i = 0; i < d; i++) {
        const sinkproof_honest *x = &x_d[i];
        double square = x->mid * x->mid, big = fmax(fabs(x->lo), fabs(x->hi));
        double small = x->lo > 0 ? x->lo : x->hi < 0 ? -x->hi : 0;
        r.sum += square;
        r.fourth += square * square;
        r.lo += small * small;
        r.hi += big * big;
        r.in_var += 4 * square * x->var;
    }
    return r;
}

// The part of the root's error that may be systematic, relative to the root.
static double root_systematic_error(const sinkproof_setting *s, size_t d,
                                    const sinkproof_honest *x_d, double sum) {
    error_lean lean = lean_of_rounded_sum(sum, s->u);
    for (size_t i = 0; i < d; i++) lean_add(&lean, x_d[i].mid * x_d[i].mid);
    double of_mean = declared_quotient(s) / 2; // of the division by d, halved by the root
    return (sum > 0 ? lean_result(&lean) / (2 * sum) : 0) + of_mean;
}

// Relative variance that the computed sum gives the root. Its rounded partial sums grow up to the
// whole sum.
static double sum_shared_variance(const sinkproof_setting *s, double n, const row_sums *r) {
    double sum = r->sum;
    double shared = sum > 0 ? s->u * s->u / 12 * (n / 3 + n * r->fourth / (6 * sum * sum) + 3) : 0;
    return shared + (sum > 0 ? r->in_var / (4 * sum * sum) : 0);
}

// 1 / sqrt(mean(x^2) + eps).
static sinkproof_honest inverse_rms_set(const sinkproof_setting *s, double n, double eps,
                                        const row_sums *r, double shared, double leaning) {
    double root = 1 / sqrt(r->sum / n + eps);
    double here = sinkproof_gamma(n + 8, 0x1p-53); // this evaluation's own error
    double gamma = quotients_error(s, n + 3, n + 2, 1) + 2 * here;
    // Where results are flushed, the additions and the division may lose as much as a square may.
    double lost = (s->policy->ftz ? 3 * n : n) * setting_underflow(s);
    double least = fmax(r->lo - lost, 0), top = (r->hi + lost) * (1 + gamma);
    double lo = 1 / sqrt(top / n + eps * (1 + gamma)) * (1 - here);
    bool infinite = !(top <= setting_largest(s)); // the sum may overflow (bound.overflow)
    if (infinite) lo = 0;
    double hi =
        1 / sqrt(least * (1 - fmin(gamma, 1)) / n + eps * (1 - fmin(gamma, 1))) * (1 + here);
    double likely = sqrt(2 * s->odds * 3 * shared) + leaning + 2 * here;
    sinkproof_honest set = {
        lo, hi, fmax(lo, root * (1 - likely)), fmin(hi, root * (1 + likely)), root, 0, 0, 0, 0};
    if (infinite || r->lo != r->hi) set.likely_lo = lo, set.likely_hi = hi;
    return sinkproof_honest_declared(set, s->policy->ulp[SINKPROOF_RSQRT] * 2 * s->u, 0);
}

// x scale r: two products in any order. The root r has a systematic error of `leaning` times its
// size.
static sinkproof_honest weigh_unrounded(const sinkproof_setting *s, sinkproof_honest x,
                                        double scale_i, sinkproof_honest r, double leaning) {
    double under = setting_underflow(s);
    sinkproof_honest scale = honest_flushed(s, sinkproof_exact_set(scale_i));
    sinkproof_honest y = sinkproof_honest_mul(x, scale);
    y = sinkproof_honest_roundings(s, sinkproof_honest_mul(y, r), 2);
    if (y.lo != 0 || y.hi != 0) // an exact zero loses nothing
        y = sinkproof_honest_declared(y, 0, under * (1 + s->u) * fmax(fabs(r.hi), fabs(scale_i)));
    y.bias += leaning * fabs(y.mid);
    return y;
}
//< bound.rmsnorm

//> bound.norm-rounded
// x r, rounded as the policy says (A1.norm), times the scale: the order is fixed.
static sinkproof_honest weigh_rounded(const sinkproof_setting *s, sinkproof_point before,
                                      sinkproof_honest x, double scale_i, sinkproof_honest r,
                                      double leaning) {
    sinkproof_honest scale = honest_flushed(s, sinkproof_exact_set(scale_i));
    sinkproof_honest normed = sinkproof_honest_roundings(s, sinkproof_honest_mul(x, r), 1);
    normed.bias += leaning * fabs(normed.mid);
    normed = sinkproof_honest_at(s, before, normed);
    return sinkproof_honest_inside(s, sinkproof_honest_mul(normed, scale));
}

static sinkproof_honest weigh_element(const sinkproof_setting *s, sinkproof_point point,
                                      sinkproof_honest x, double scale_i, sinkproof_honest r,
                                      double leaning) {
    sinkproof_point before = sinkproof_point_before_weight(point);
    sinkproof_rounding at = s->policy->at[before];
    sinkproof_honest once = weigh_unrounded(s, x, scale_i, r, leaning);
    if (at.format == SINKPROOF_REAL) return once;
    sinkproof_honest twice = weigh_rounded(s, before, x, scale_i, r, leaning);
    return at.optional ? sinkproof_honest_choice(once, twice) : twice;
}
//< bound.norm-rounded

static bool has_unknown(size_t d, const sinkproof_honest *x_d) {
    bool found = false;
    for (size_t i = 0; i < d; i++) found = found || sinkproof_is_unknown(&x_d[i]);
    return found;
}

//> bound.rmsnorm
void sinkproof_honest_rmsnorm(const sinkproof_setting *s, sinkproof_point point,
                              const sinkproof_norm *norm, const sinkproof_honest *x_d,
                              sinkproof_honest *y_d, double *common) {
    size_t d = norm->d;
    *common = 0;
    if (has_unknown(d, x_d)) { // the root may be NaN and multiplies every element
        for (size_t i = 0; i < d; i++) y_d[i] = sinkproof_unknown_set(0);
        return;
    }
    row_sums sums = row_square_sums(d, x_d);
    double shared = sum_shared_variance(s, (double)d, &sums),
           leaning = root_systematic_error(s, d, x_d, sums.sum);
    sinkproof_honest r = inverse_rms_set(s, (double)d, norm->eps, &sums, shared, leaning);
    for (size_t i = 0; i < d; i++) {
        sinkproof_honest x = honest_flushed(s, x_d[i]);
        y_d[i] =
            sinkproof_honest_at(s, point, weigh_element(s, point, x, norm->scale_d[i], r, leaning));
    }
    *common = shared;
}
//< bound.rmsnorm
