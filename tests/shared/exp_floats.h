// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The exponential at every float32 number, against a reference that is fast enough for all of
// them. x = h + l, h the upper 12 of the 24 significant bits and l the lower 12, both exact; so
// that
//   e^x = e^h e^l,
// two factors from tables of 2^12 entries per exponent, which Arb fills: each a sum of two doubles
// with a relative error below 2^-105. Their product by FMA keeps a relative error below 2^-100.
// Hence an error measured here, plus 2^-46 ulp, is an upper bound of the true one.
#ifndef SINKPROOF_EXP_FLOATS_H
#define SINKPROOF_EXP_FLOATS_H

#include "fast/lanes/lanes.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/flint.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { EXP_SPLIT = 1 << 12 }; // entries of the lower table; the upper one has half as many
#define EXP_REFERENCE 0x1p-46 // ulp: the reference's own error

typedef struct exp_pair {
    double hi, lo; // hi + lo, |lo| <= half an ulp of hi
} exp_pair;

typedef struct exp_worst {
    double ulp, at; // largest error and the argument
    size_t floats;
} exp_worst;

// 2^up e^(k 2^q) as a pair: hi + lo, each the nearest double of what is left.
static inline exp_pair exp_entry(double k, int q, int up) {
    arb_t e;
    arf_t rest;
    arb_init(e);
    arf_init(rest);
    arb_set_d(e, k);
    arb_mul_2exp_si(e, e, q);
    arb_exp(e, e, 256);
    arb_mul_2exp_si(e, e, up);
    exp_pair p = {arf_get_d(arb_midref(e), ARF_RND_NEAR), 0};
    arf_set_d(rest, p.hi);
    arf_sub(rest, arb_midref(e), rest, 256, ARF_RND_NEAR);
    p.lo = arf_get_d(rest, ARF_RND_NEAR);
    arb_clear(e);
    arf_clear(rest);
    return p;
}

static inline exp_pair exp_product(exp_pair a, exp_pair b) {
    double hi = a.hi * b.hi, lo = fma(a.hi, b.hi, -hi);
    lo += a.hi * b.lo + a.lo * b.hi;
    double sum = hi + lo;
    return (exp_pair){sum, (hi - sum) + lo};
}

// The error of `value` in units in the last place of a `bits`-bit format at the exact result, the
// least of them 2^smallest.
static inline double exp_error(double value, exp_pair exact, int bits, int smallest) {
    int unit = ilogb(exact.hi) - (bits - 1);
    return fabs((value - exact.hi) - exact.lo) / ldexp(1, unit > smallest ? unit : smallest);
}

// Which exponential of a float, and where: binary64 where f is NULL (then libm's exp), else
// float32.
typedef struct exp_subject {
    float (*f)(float);
    double least, most; // the arguments
    int smallest;       // exponent of the least unit in the last place: results below are subnormal
} exp_subject;

// Where the result neither over- nor underflows; e^-87.33654 is the last above 2^-126.
static const exp_subject exp_binary64 = {NULL, -708.39641, 709.7827, -1074};

static inline exp_subject exp_binary32(float (*f)(float)) {
    return (exp_subject){f, -87.33654, 88.722835, -149};
}

// Where the result is subnormal, or half the least subnormal and less: down to -104.
static inline exp_subject exp_subnormal(float (*f)(float)) {
    return (exp_subject){f, -104, -87.336545, -149};
}

// The subject at the floats of binade e, both signs or one; every `stride`-th lower half.
static inline void exp_binade(int e, int sign, exp_subject s, int stride, exp_worst *worst) {
    static exp_pair upper[EXP_SPLIT / 2], lower[EXP_SPLIT];
    int q = e - 23; // x = sign (2^11 + h) 2^12 + l, times 2^q
    double nearest = sign * ldexp(1, e), farthest = 2 * nearest;
    if (fmin(nearest, farthest) > s.most || fmax(nearest, farthest) < s.least) return;
    for (int l = 0; l < EXP_SPLIT; l++) lower[l] = exp_entry(sign * l, q, 0);
    for (int h = 0; h < EXP_SPLIT / 2; h++) {
        double base = sign * ldexp(EXP_SPLIT / 2 + h, q + 12),
               next = base + sign * ldexp(1, q + 12);
        if (fmin(base, next) > s.most || fmax(base, next) < s.least) continue;
        // Small results are compared 2^512 times as large, or `lo` would be subnormal.
        int up = base < -300 ? 512 : 0;
        upper[h] = exp_entry(sign * (EXP_SPLIT / 2 + h), q + 12, up);
        for (int l = h % stride; l < EXP_SPLIT; l += stride) {
            double x = base + sign * ldexp(l, q);
            if (x > s.most || x < s.least) continue;
            exp_pair exact = exp_product(upper[h], lower[l]);
            double value = s.f == NULL ? exp(x) : (double)s.f((float)x);
            double error = exp_error(up > 0 ? value * 0x1p512 : value, exact, s.f == NULL ? 53 : 24,
                                     s.smallest + up);
            if (sinkproof_is_worse(worst->ulp, error)) worst->ulp = error, worst->at = x;
            worst->floats++;
        }
    }
}

// Every float of the subject from 2^-60 up.
static inline exp_worst exp_floats(exp_subject s, int stride) {
    exp_worst worst = {0};
    for (int e = -60; e <= 9; e++)
        for (int sign = -1; sign <= 1; sign += 2) exp_binade(e, sign, s, stride, &worst);
    return worst;
}

static inline float exp_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// Below 2^-60 the exponential is 1 to within 2^-59, and so a result of 1 errs by less than 2^-6
// ulp: every `stride`-th bit pattern from zero to 2^-60, both signs.
static inline bool exp_of_tiny_is_one(uint32_t stride) {
    bool one = true;
    for (uint32_t bits = 0; bits <= (uint32_t)(127 - 60) << 23; bits += stride) {
        float x = exp_bits(bits);
        one = one && exp(x) == 1 && exp(-x) == 1 && expf(x) == 1 && expf(-x) == 1;
        one = one && sinkproof_lanes_exp(x) == 1 && sinkproof_lanes_exp(-x) == 1;
    }
    return one;
}

// Every `stride`-th float beyond the two ranges above, infinities too: infinity and 0; NaN for NaN.
static inline bool exp_of_far_is_an_end(float (*f)(float), uint32_t stride) {
    bool far = f(INFINITY) == INFINITY && f(-INFINITY) == 0;
    for (uint64_t bits = 0x42b17218; bits < 1u << 31; bits += stride) { // from 88.72284 on
        float x = exp_bits((uint32_t)bits), up = f(x), down = f(-x);
        if (isnan(x))
            far = far && isnan(up) && isnan(down);
        else
            far = far && up == INFINITY && (x <= 104 || down == 0);
    }
    return far;
}

#endif
