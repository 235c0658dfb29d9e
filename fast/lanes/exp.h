// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The constants of the lanes' exponential, in this one place, and its steps. fast/lanes/exp.c is
// these steps in scalar code; a body with vectors follows them lane by lane and has the same bits.
// The constants come from proofs/bounds/exp.sollya. Every step is one IEEE float32 operation, round
// to nearest even, subnormals kept; fma(a, b, c) = a b + c rounded once.
//
//   1. x = HIGH < x ? HIGH : x          a comparison with NaN is false: NaN stays NaN;
//      x = x < LOW ? LOW : x            +inf becomes HIGH, -inf LOW
//   2. t = fma(x, LOG2E, ROUND)         ROUND = 1.5 2^23 + 254: t = 254 + n above 1.5 2^23, where
//      n = t - ROUND                    n is x LOG2E to the nearest integer (exact), -150 .. 128
//   3. r = fma(n, -LN2_HI, x)           exact
//      r = fma(n, -LN2_LO, r)           x - n ln 2, |r| < 0.3466
//   4. p = C6, then p = fma(p, r, C5), C4, C3, C2, 1 and 1 in turn: six steps
//   5. h = bits(t) >> 1                 logical or arithmetic; integers of 32 bits
//      f = the float whose bits are h << 23                  2^(floor(n / 2)): as 254 = 2 127, the
//      g = the float whose bits are (bits(t) - h) << 23      2^(n - floor(n / 2))    bias is in t
//   6. (p f) g                          p f is exact: rounded once, also to a subnormal
//
// The edges. HIGH gives n = 128 and overflows to infinity in step 6; LOW gives less than half the
// smallest subnormal, so 0. NaN goes through step 3 to the end, whatever step 5 makes of its bits
// (only that it is NaN is promised, not which). exp(0) = exp(-0) = 1 exactly: n = 0, r = x, and
// the last step is fma(p, r, 1).
//
// In vectors. Step 1: x86's MINPS a, b is a < b ? a : b and MAXPS a, b is a > b ? a : b, so with x
// as the *second* operand (min(HIGH, x), max(LOW, x)) they are step 1; with x first NaN would be
// lost. NEON's FMIN and FMAX keep NaN in either place (FMINNM and FMAXNM lose it). A comparison
// and a selection are right everywhere. Where x <= 0 (or NaN) is known, the line with HIGH may be
// left out. AVX-512's VSCALEFPS p, n is p 2^n rounded once: the same as steps 5 and 6.
// Rounding x LOG2E first and to an integer after is *not* step 2: two roundings.
#ifndef SINKPROOF_LANES_EXP_H
#define SINKPROOF_LANES_EXP_H

#define EXP_HIGH   89.0f
#define EXP_LOW    (-104.0f)
#define EXP_LOG2E  0x1.715476p+0f    // log2 e, nearest
#define EXP_ROUND  0x1.8001fcp+23f   // 1.5 2^23 + 2 127
#define EXP_LN2_HI 0x1.62e43p-1f     // ln 2, nearest
#define EXP_LN2_LO (-0x1.05c61p-29f) // ln 2 - LN2_HI, nearest
#define EXP_C2     0x1.fffffap-2f
#define EXP_C3     0x1.555492p-3f
#define EXP_C4     0x1.555a26p-5f
#define EXP_C5     0x1.12397ep-7f
#define EXP_C6     0x1.694c8ep-10f

// bound.exp, proved in proofs/formal/LanesExp.v: the error in ulp of e^x where that is at least
// 2^-126, and in units of 2^-149 where it is less.
#define SINKPROOF_EXP_ULP 0.93
#define EXP_ULP_SUBNORMAL 0.965

#endif
