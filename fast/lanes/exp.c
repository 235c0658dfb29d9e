// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The lanes' exponential (bound.exp): x = n ln 2 + r, e^x = 2^n e^r, a polynomial for e^r. The
// steps are those of exp.h, which says why each edge comes out right. No table and no branch, so
// that sixteen lanes can do it side by side.
#include "fast/lanes/exp.h"

#include "fast/lanes/lanes.h"

#include <math.h>
#include <string.h>

static float float_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

//> bound.exp
float sinkproof_lanes_exp(float x) {
    x = EXP_HIGH < x ? EXP_HIGH : x;
    x = x < EXP_LOW ? EXP_LOW : x;
    float t = fmaf(x, EXP_LOG2E, EXP_ROUND);
    float n = t - EXP_ROUND;
    float r = fmaf(n, -EXP_LN2_HI, x);
    r = fmaf(n, -EXP_LN2_LO, r);
    float p = EXP_C6;
    p = fmaf(p, r, EXP_C5);
    p = fmaf(p, r, EXP_C4);
    p = fmaf(p, r, EXP_C3);
    p = fmaf(p, r, EXP_C2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    uint32_t bits, half;
    memcpy(&bits, &t, sizeof bits);
    half = bits >> 1;
    return p * float_from_bits(half << 23) * float_from_bits((bits - half) << 23);
}
//< bound.exp
