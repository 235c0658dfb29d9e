// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sixteen float32 lanes on the instruction set for which this translation unit is compiled. Every
// kernel body (fast/kernels/NAME.inc) uses only these names; a new instruction set is a new file
// that defines them. Each is one IEEE operation per lane, rounded to nearest even, subnormals kept,
// so that every set gives the same bits.
//
//   v16, v16i, v16m             sixteen floats; sixteen 32-bit words; sixteen booleans
//   v16_load, v16_store         at any alignment
//   v16_set1, v16_add, v16_sub, v16_mul, v16_div
//   v16_fma(a, b, c)            a b + c, rounded once
//   v16_lt(a, b)                a < b, false if either is NaN
//   v16_select(m, a, b)         a where m, else b
//   v16_least(a, b)             a where a < b, else b (also if either is NaN)
//   v16_most(a, b)              a where b < a, else b (also if either is NaN)
//   v16_bits, v16_of            the words of floats and back
//   v16i_load, v16i_set1, v16i_add, v16i_sub, v16i_and, v16i_or, v16i_lt (signed)
//   v16i_shl, v16i_shr, v16i_sra   by a constant: left, logical right, arithmetic right
//   v16i_select(m, a, b)
//   v16_cvt                     signed words to floats
//   v16_e2m1(v, shift)          the number of the MXFP4 code in each word from bit `shift` on, a
//                               multiple of 4 and a constant
//   v16_e8m0(bytes)             2^(s - 127) for sixteen scale bytes
//   v16_f16(halves)             sixteen binary16 numbers
//   v16_deinterleave(p, &e, &o) the even and the odd elements of 32 floats
//   v16i_store16(p, v)          the low halves of sixteen words
//   v16_sum, v16_max            reduce the lanes, halves first: lane l and l + 8, then 4, 2, 1;
//                               v16_max needs lanes without NaN
#ifndef SINKPROOF_FAST_LANES_H
#define SINKPROOF_FAST_LANES_H

#include "fast/kernels/unroll.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define V16 static inline __attribute__((always_inline, unused))

#if defined(LANES_PORTABLE)
#include "fast/kernels/lanes_portable.h"
#elif defined(__AVX512F__)
#include "fast/kernels/lanes_avx512.h"
#elif defined(__AVX2__)
#include "fast/kernels/lanes_avx2.h"
#elif defined(__ARM_NEON)
#include "fast/kernels/lanes_neon.h"
#endif

// Products of pairs of bf16 numbers, which only some sets have. Nothing calls these elsewhere.
#ifndef LANES_PAIRS
#define LANES_PAIRS       0
#define LANES_PAIR_PANELS 1
V16 v16 v16_dot2(v16 sum, v16i a, v16i b) {
    (void)a, (void)b;
    return sum;
}
V16 v16i v16i_e2m1_pairs(v16i v, unsigned shift) {
    (void)shift;
    return v;
}
V16 v16i v16i_least_pairs(v16i least, v16i words) {
    (void)words;
    return least;
}
#endif

// p 2^n, rounded once, if one instruction does that. n is a whole number.
#ifndef LANES_SCALE
#define LANES_SCALE 0
V16 v16 v16_scale(v16 p, v16 n) {
    (void)n;
    return p;
}
#endif

// The dword of two bf16 numbers, sixteen times.
V16 v16i v16i_set1_pair(const uint16_t *pair) {
    int32_t both;
    memcpy(&both, pair, sizeof both);
    return v16i_set1(both);
}

V16 v16 v16_zero(void) {
    return v16_set1(0.0f);
}

// A dword holds two bf16 numbers; bf16 is the upper half of float32.
V16 v16 v16_bf16_even(v16i pairs) {
    return v16_of(v16i_shl(pairs, 16));
}

V16 v16 v16_bf16_odd(v16i pairs) {
    return v16_of(v16i_and(pairs, v16i_set1((int32_t)0xffff0000u)));
}

#endif
