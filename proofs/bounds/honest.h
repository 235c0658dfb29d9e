// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set: every value that an implementation may hold at one element under a policy.
//
// It is emulation with sets. What the policy fixes (a rounding point) is applied to the ends of an
// interval, which is allowed because rounding is monotone; what it leaves open (the order of a sum,
// FMA or not, the declared error of exp) widens the interval. Interval ends are computed with
// directed rounding, so a set is never too small; an operation that is exact in binary64 stays
// exact, so that a tie is still a tie when it is rounded.
#ifndef SINKPROOF_HONEST_H
#define SINKPROOF_HONEST_H

#include "ref/policy.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct sinkproof_honest {
    double lo, hi;               // worst case: outside is a bug, in whatever order the engine sums
    double likely_lo, likely_hi; // if roundings are independent and centred, with the stated odds
    double mid; // the emulation: open parts computed exactly, fixed roundings applied
    double var; // variance of the open part that is still in the value, given its position
    // var before the last rounding, whose direction is then known: the divisor of drift. A product,
    // a sum and a rounding set it from var
    double spread;
    double bias;  // the part of the open error that may be systematic (declared functions)
    double order; // what an order of summation that depends on the values may add to var
} sinkproof_honest;

// Whether all of a set is at least that large: most sets are, and no flush changes them.
static inline bool is_beyond(const sinkproof_honest *x, double size) {
    return x->lo >= size || x->hi <= -size;
}

// The parameters of the judge's arithmetic for one tensor.
typedef struct sinkproof_setting {
    const sinkproof_policy *policy;
    double u;    // unit roundoff of the policy's inner format
    double odds; // L = ln(2 N / rate) for N elements: with probability below `rate`, the sum of
                 // errors of any element exceeds sqrt(2 L V) (Azuma-Hoeffding)
    sinkproof_rounding core; // of a sum: the matrix unit that adds it up; no bits: none
} sinkproof_setting;

static inline bool is_power_of_two(double x) { // x > 0
    return frexp(x, &(int){0}) == 0.5;
}

// The largest size in a set.
static inline double set_largest_size(sinkproof_honest x) {
    return fmax(fabs(x.lo), fabs(x.hi));
}

sinkproof_setting sinkproof_setting_for(const sinkproof_policy *policy, size_t elements,
                                        double rate);

// gamma_n = n u / (1 - n u), rounded up (bound.dot). Infinite when n u >= 1.
double sinkproof_gamma(double n, double u) __attribute__((const));

// x as a set of one number.
static inline sinkproof_honest sinkproof_exact_set(double x) {
    return (sinkproof_honest){x, x, x, x, x, 0, 0, 0, 0};
}

// The double `steps` above x, for steps of 1, 0 and -1: the bit pattern, as an integer, plus or
// minus one. x is not 0, or steps is 0. It has no branch, since the direction of a rounding is
// unpredictable.
static inline double step_by_ulps(double x, int64_t steps) {
    int64_t pattern;
    memcpy(&pattern, &x, sizeof pattern);
    pattern += x > 0 ? steps : -steps;
    memcpy(&x, &pattern, sizeof x);
    return x;
}

// The next double above x and below it. An infinity on that side stays, and so does NaN.
static inline double sinkproof_next_up(double x) {
    if (!(x < INFINITY)) return x;
    return x == 0 ? 0x1p-1074 : step_by_ulps(x, 1);
}
static inline double step_down(double x) {
    return -sinkproof_next_up(-x);
}

// When finite operands overflow, the bound from the other side is the largest double. The sum of
// opposite infinities is unknown; NaN stays.
static inline double overflow_bound(double result, double a, double b, int direction) {
    if (result != result && a == a && b == b) return direction < 0 ? -INFINITY : INFINITY;
    bool beyond = isfinite(a) && isfinite(b) && direction * result < 0;
    return beyond ? copysign(DBL_MAX, result) : result;
}

// The largest double <= a + b and the smallest >= a + b: the error of the rounded sum is itself a
// double (Knuth's two-sum), and its sign is the direction of the step. An exact sum needs none.
static inline double honest_sum_error(double a, double b, double s) {
    double b_part = s - a, a_part = s - b_part;
    return (a - a_part) + (b - b_part);
}
static inline double add_down(double a, double b) {
    double s = a + b;
    if (!isfinite(s)) return overflow_bound(s, a, b, -1);
    return step_by_ulps(s, -(int64_t)(honest_sum_error(a, b, s) < 0));
}
static inline double sinkproof_add_up(double a, double b) {
    double s = a + b;
    if (!isfinite(s)) return overflow_bound(s, a, b, 1);
    return step_by_ulps(s, (int64_t)(honest_sum_error(a, b, s) > 0));
}
// The same for products; fma gives the exact error unless it underflows, where one step outward is
// always enough. A product of two numbers of at most 26 bits is exact: fma is a call where no
// instruction set is assumed.
static inline double product_error(double a, double b, double p) {
    uint64_t x, y;
    memcpy(&x, &a, sizeof x), memcpy(&y, &b, sizeof y);
    return ((x | y) & 0x7ffffff) == 0 ? 0 : fma(a, b, -p);
}
static inline double sinkproof_mul_down(double a, double b) {
    double p = a * b;
    if (!isfinite(p)) return overflow_bound(p, a, b, -1);
    if (p == 0) return a != 0 && b != 0 && (a < 0) != (b < 0) ? -0x1p-1074 : p;
    return step_by_ulps(p, -(int64_t)((fabs(p) < 0x1p-960) | (product_error(a, b, p) < 0)));
}
static inline double sinkproof_mul_up(double a, double b) {
    double p = a * b;
    if (!isfinite(p)) return overflow_bound(p, a, b, 1);
    if (p == 0) return a != 0 && b != 0 && (a < 0) == (b < 0) ? 0x1p-1074 : p;
    return step_by_ulps(p, (int64_t)((fabs(p) < 0x1p-960) | (product_error(a, b, p) > 0)));
}

// fmax and fmin without a call.
static inline double larger_double(double x, double y) {
    return x > y || y != y ? x : y;
}
static inline double smaller_double(double x, double y) {
    return x < y || y != y ? x : y;
}

// sinkproof_ulp, without a call for normal numbers of binary32 and bfloat16.
static inline double sinkproof_fast_ulp(sinkproof_format format, double x) {
    uint64_t pattern;
    memcpy(&pattern, &x, sizeof pattern);
    uint64_t exponent = pattern >> 52 & 2047;
    bool short_range = format == SINKPROOF_F32 || format == SINKPROOF_BF16;
    if (!short_range || exponent < 1023 - 126 || exponent > 1023 + 127)
        return sinkproof_ulp(format, x);
    pattern = (exponent - (format == SINKPROOF_F32 ? 23 : 7)) << 52;
    memcpy(&x, &pattern, sizeof x);
    return x;
}

// The ends of x y, of x in [xl, xh] and y in [yl, yh].
void product_ends(double xl, double xh, double yl, double yh, double *lo, double *hi);

// sinkproof_round without a call: for binary32 by a conversion; for normal numbers of bfloat16 in
// the pattern, to which half a step, less one where the last kept bit is 0, is added before it is
// cut.
static inline double honest_round_number(sinkproof_format format, double x) {
    uint64_t pattern;
    if (format == SINKPROOF_F32) return (double)(float)x;
    memcpy(&pattern, &x, sizeof pattern);
    uint64_t exponent = pattern >> 52 & 2047;
    if (format != SINKPROOF_BF16 || exponent < 1023 - 126 || exponent >= 1023 + 127)
        return sinkproof_round(format, x);
    pattern += 0xfffffffffff + (pattern >> 45 & 1);
    pattern &= ~(uint64_t)0x1fffffffffff;
    memcpy(&x, &pattern, sizeof x);
    return x;
}

// The largest distance of an honest value from mid: worst case, and likely.
static inline double sinkproof_radius(const sinkproof_honest *x) {
    return larger_double(sinkproof_add_up(x->hi, -x->mid), sinkproof_add_up(x->mid, -x->lo));
}
static inline double likely_radius(const sinkproof_honest *x) {
    return larger_double(sinkproof_add_up(x->likely_hi, -x->mid),
                         sinkproof_add_up(x->mid, -x->likely_lo));
}

// The likely distance, rounded to nearest, where no bound depends on it.
static inline double sinkproof_likely_distance(const sinkproof_honest *x) {
    return larger_double(x->likely_hi - x->mid, x->mid - x->likely_lo);
}

// Any number, and NaN: where sums may overflow, and after an unknown input. Its distance from mid
// is no random error.
static inline sinkproof_honest sinkproof_unknown_set(double mid) {
    return (sinkproof_honest){-INFINITY, INFINITY, -INFINITY, INFINITY, mid, 0, 0, INFINITY, 0};
}
static inline bool sinkproof_is_unknown(const sinkproof_honest *x) {
    return x->lo == -INFINITY && x->hi == INFINITY;
}

// [mid - worst, mid + worst], with the likely set clipped to it. If infinities cancel, nothing is
// known.
static inline sinkproof_honest sinkproof_set_around(double mid, double worst, double likely,
                                                    double var, double bias) {
    if (!(worst < INFINITY) || mid != mid) return sinkproof_unknown_set(mid);
    likely = likely <= worst ? likely : worst;
    return (sinkproof_honest){add_down(mid, -worst),
                              sinkproof_add_up(mid, worst),
                              add_down(mid, -likely),
                              sinkproof_add_up(mid, likely),
                              mid,
                              var,
                              var,
                              bias,
                              0};
}

// Not calls: copying all members of three sets would cost more than the sums.
static inline sinkproof_honest sinkproof_honest_add(sinkproof_honest x, sinkproof_honest y) {
    double var = x.var + y.var;
    return (sinkproof_honest){add_down(x.lo, y.lo),
                              sinkproof_add_up(x.hi, y.hi),
                              add_down(x.likely_lo, y.likely_lo),
                              sinkproof_add_up(x.likely_hi, y.likely_hi),
                              x.mid + y.mid,
                              var,
                              var,
                              x.bias + y.bias,
                              x.order + y.order};
}

static inline sinkproof_honest sinkproof_honest_sub(sinkproof_honest x, sinkproof_honest y) {
    return sinkproof_honest_add(x, (sinkproof_honest){-y.hi, -y.lo, -y.likely_hi, -y.likely_lo,
                                                      -y.mid, y.var, y.spread, y.bias, y.order});
}

sinkproof_honest sinkproof_honest_mul(sinkproof_honest x, sinkproof_honest y);
sinkproof_honest sinkproof_honest_clamp(sinkproof_honest x, double lo, double hi);

// The union of two sets as an interval; the emulation is the first one's.
sinkproof_honest sinkproof_honest_hull(sinkproof_honest x, sinkproof_honest y);

// The same where an engine chooses once: the distance is the same each time, hence systematic.
sinkproof_honest sinkproof_honest_choice(sinkproof_honest x, sinkproof_honest y);

// The inner format may round here or not (FMA, a wider register): the hull of both.
void sinkproof_honest_round_inside(const sinkproof_setting *s, sinkproof_honest *x);
static inline sinkproof_honest sinkproof_honest_inside(const sinkproof_setting *s,
                                                       sinkproof_honest x) {
    sinkproof_honest_round_inside(s, &x);
    return x;
}

// Rounds a set to a format once: its ends, and the remaining freedom. A set that was already
// rounded to the format is unchanged.
sinkproof_honest sinkproof_honest_rounded(sinkproof_format format, sinkproof_honest x);

// The rounding point of the policy: a fixed one is applied to the ends, an optional one gives the
// hull of the rounded and the unrounded set.
void sinkproof_honest_round_at(const sinkproof_setting *s, sinkproof_rounding at,
                               sinkproof_honest *x);
static inline sinkproof_honest sinkproof_honest_at(const sinkproof_setting *s,
                                                   sinkproof_point point, sinkproof_honest x) {
    sinkproof_rounding at = s->policy->at[point];
    if (at.format != SINKPROOF_REAL) sinkproof_honest_round_at(s, at, &x);
    return x;
}

// A row of n results, in place: rounded to the inner format or not, then the rounding point of the
// policy.
void sinkproof_honest_finish(const sinkproof_setting *s, sinkproof_point point, size_t n,
                             sinkproof_honest *x_i);
// A row of n sets, in place: rounded to the format in which they are stored.
void sinkproof_honest_store(sinkproof_format format, size_t n, sinkproof_honest *x_i);

// Below this a processor may read an operand as zero and flush a result to zero (bound.ftz): the
// smallest normal number of float32, which bfloat16 shares, or of binary64. Subnormal numbers of
// binary16 are normal numbers of float32 and stay. 0 if the policy says ftz=none.
double flushed_below(const sinkproof_setting *s);

// The largest loss of one rounding in addition to u |x|.
double setting_underflow(const sinkproof_setting *s);

// The largest number of the inner format. A set with an intermediate result that may exceed it is
// unbounded (bound.overflow).
double setting_largest(const sinkproof_setting *s);

// The largest such loss of n roundings, each amplified by the later ones.
double underflow_bound(const sinkproof_setting *s, double n, double gamma);

// An operand as a processor may read it, or a result as it may store it: the hull with 0 where the
// set reaches below the smallest normal number.
void flush_small(const sinkproof_setting *s, sinkproof_honest *x);
static inline sinkproof_honest honest_flushed(const sinkproof_setting *s, sinkproof_honest x) {
    if (!is_beyond(&x, 0x1p-126)) flush_small(s, &x);
    return x;
}

// n roundings of the inner format somewhere on the way to x: gamma_n in the worst case, sqrt(2 L n)
// u (1 + gamma_n) likely (bound.dot-likely: n centred roundings of one number).
typedef struct rounding_widths {
    double worst, likely; // relative
    double under;         // the loss of underflows
    double variance;      // relative, times 3
} rounding_widths;
rounding_widths widths_of_roundings(const sinkproof_setting *s, double n);
sinkproof_honest sinkproof_honest_roundings(const sinkproof_setting *s, sinkproof_honest x,
                                            double n);

// The possible lean of a sum of positive terms p_k (bound.dot-likely). Partial sums are whole
// multiples of their spacing h, so the rounding of p_k depends on p_k modulo h: it is centred only
// if these residues are. Small terms are all lost (p < h / 2), equal terms all round alike, squares
// of short numbers have small residues (an odd square is 1 modulo 8). E(h) = sum_k (p_k rounded to
// h) - p_k. Ties to even are counted as errors: a sum that a tie made even stays even where terms
// are even multiples, and then ties lean too. An order that does not depend on the values has some
// average of E over the spacings between the last one and those of several lanes. The lean is the
// largest |E| beyond three standard deviations of centred roundings, h sqrt(n / 12).
enum { HONEST_SPACINGS = 10 };
typedef struct error_lean {
    size_t terms;
    double spacing, errors[HONEST_SPACINGS],
        ties[HONEST_SPACINGS]; // b: in units of spacing 2^-b
} error_lean;

error_lean lean_of_rounded_sum(double sum, double u);
void lean_add(error_lean *lean, double term);
double lean_result(const error_lean *lean);

// A declared function error: x (1 ± relative) ± absolute, possibly systematic.
sinkproof_honest sinkproof_honest_declared(sinkproof_honest x, double relative, double absolute);

#endif
