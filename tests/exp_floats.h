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

#include "proofs/truth/flint.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { EXP_SPLIT = 1 << 12 }; // entries of the lower table; the upper one has half as many

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

// The error of `value` in units in the last place of a `bits`-bit format at the exact result.
static inline double exp_error(double value, exp_pair exact, int bits) {
    double ulp = ldexp(1, ilogb(exact.hi) - (bits - 1));
    return fabs((value - exact.hi) - exact.lo) / ulp;
}

// exp (binary64, bits = 53) or expf (bits = 24) at the floats of binade e, both signs or one,
// where the result neither over- nor underflows; every `stride`-th lower half.
static inline void exp_binade(int e, int sign, int bits, int stride, exp_worst *worst) {
    static exp_pair upper[EXP_SPLIT / 2], lower[EXP_SPLIT];
    const double most = bits == 53 ? 709.7827 : 88.72283,
                 least = bits == 53 ? -708.39641 : -87.33654;
    int q = e - 23; // x = sign (2^11 + h) 2^12 + l, times 2^q
    for (int l = 0; l < EXP_SPLIT; l++) lower[l] = exp_entry(sign * l, q, 0);
    for (int h = 0; h < EXP_SPLIT / 2; h++) {
        double base = sign * ldexp(EXP_SPLIT / 2 + h, q + 12);
        if (base > most || base < least) break;
        // Small results are compared 2^512 times as large, or `lo` would be subnormal.
        int up = base < -300 ? 512 : 0;
        upper[h] = exp_entry(sign * (EXP_SPLIT / 2 + h), q + 12, up);
        for (int l = h % stride; l < EXP_SPLIT; l += stride) {
            double x = base + sign * ldexp(l, q);
            if (x > most || x < least) break;
            exp_pair exact = exp_product(upper[h], lower[l]);
            double value = bits == 53 ? exp(x) : (double)expf((float)x);
            double error = exp_error(up > 0 ? value * 0x1p512 : value, exact, bits);
            if (!(error <= worst->ulp)) worst->ulp = error, worst->at = x;
            worst->floats++;
        }
    }
}

// Every float from 2^-60 up whose exponential neither over- nor underflows.
static inline exp_worst exp_floats(int bits, int stride) {
    exp_worst worst = {0};
    for (int e = -60; e <= 9; e++)
        for (int sign = -1; sign <= 1; sign += 2) exp_binade(e, sign, bits, stride, &worst);
    return worst;
}

// Below 2^-60 the exponential is 1 to within 2^-59, and so a result of 1 errs by less than 2^-6
// ulp: every `stride`-th bit pattern from zero to 2^-60, both signs.
static inline bool exp_of_tiny_is_one(uint32_t stride) {
    bool one = true;
    for (uint32_t bits = 0; bits <= (uint32_t)(127 - 60) << 23; bits += stride) {
        float x;
        memcpy(&x, &bits, sizeof x);
        one = one && exp(x) == 1 && exp(-x) == 1 && expf(x) == 1 && expf(-x) == 1;
    }
    return one;
}

#endif
