// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rounding binary64 to a storage format, once (bf16.round). A format with p significant
// bits and smallest normal exponent emin has, around x with 2^e <= |x| < 2^(e+1), the grid
// 2^q Z with q = max(e, emin) - (p - 1). Adding and subtracting c = 1.5 * 2^(q + 52), whose
// last bit in binary64 weighs exactly 2^q, rounds x to that grid to nearest, ties to even.
#include "model/round.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct shape {
    const char *name;
    int bits;       // p, the implicit bit included
    int emin, emax; // exponents of the smallest and the largest normal number
} shape;

static const shape shapes[SINKPROOF_SUM_FORMATS] = {
    [SINKPROOF_REAL] = {"real", 53, -1022, 1023},
    [SINKPROOF_F64] = {"f64", 53, -1022, 1023},
    [SINKPROOF_F32] = {"f32", 24, -126, 127},
    [SINKPROOF_F16] = {"f16", 11, -14, 15},
    [SINKPROOF_BF16] = {"bf16", 8, -126, 127},
    [SINKPROOF_Q8_0] = {"q8_0", 53, -1022, 1023},
    [SINKPROOF_OF_WEIGHT] = {"weight", 53, -1022, 1023},
    [SINKPROOF_TENSOR_CORE] = {"tensor-core", 53, -1022, 1023},
    [SINKPROOF_RANKS] = {"ranks", 53, -1022, 1023},
    [SINKPROOF_BLOCKS] = {"blocks", 53, -1022, 1023},
};

static uint64_t double_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double double_from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// 2^e for -1022 <= e <= 1023.
static double power_of_two(int e) {
    return double_from_bits((uint64_t)(e + 1023) << 52);
}

// floor(log2 |x|) of a finite x; -1023 stands for zero and every binary64 subnormal.
static int double_exponent(double x) {
    return (int)((double_bits(x) >> 52) & 2047) - 1023;
}

// |x| < 2^(emax + 1), so q + 52 <= 127 + 45: c is an ordinary number, and |x| < 2^(q + p) is
// small enough beside it that the sum has c's exponent, whatever the sign of x.
//> bf16.round
static double round_to_grid(const shape *format, double x) {
    int e = double_exponent(x);
    int q = (e > format->emin ? e : format->emin) - (format->bits - 1);
    double c = 1.5 * power_of_two(q + 52);
    double rounded = (x + c) - c;
    if (fabs(rounded) >= 2 * power_of_two(format->emax)) rounded = INFINITY;
    return copysign(rounded, x);
}
//< bf16.round

double sinkproof_round(sinkproof_format format, double x) {
    const shape *s = &shapes[format];
    if (s->bits == 53 || !(fabs(x) < INFINITY)) return x;
    if (fabs(x) >= 2 * power_of_two(s->emax)) return copysign(INFINITY, x);
    return round_to_grid(s, x);
}

double sinkproof_unit_roundoff(sinkproof_format format) {
    return format == SINKPROOF_REAL ? 0 : power_of_two(-shapes[format].bits);
}

double sinkproof_ulp(sinkproof_format format, double x) {
    const shape *s = &shapes[format];
    if (!(fabs(x) < INFINITY)) return fabs(x);
    int e = double_exponent(x);
    if (e > s->emax) e = s->emax;
    if (e < s->emin) e = s->emin;
    int q = e - (s->bits - 1);
    return q < -1022 ? ldexp(1.0, q) : power_of_two(q); // subnormal in binary64
}

// Half of binary64's smallest subnormal is not a binary64 number: the subnormal itself is returned.
double sinkproof_format_underflow(sinkproof_format format) {
    const shape *s = &shapes[format];
    if (format == SINKPROOF_REAL) return 0;
    if (format == SINKPROOF_F64) return ldexp(1.0, -1074);
    return power_of_two(s->emin - s->bits);
}

double sinkproof_format_largest(sinkproof_format format) {
    const shape *s = &shapes[format];
    return (2 - 2 * power_of_two(-s->bits)) * power_of_two(s->emax);
}

const char *sinkproof_format_name(sinkproof_format format) {
    return (unsigned)format < SINKPROOF_SUM_FORMATS ? shapes[format].name : "unknown";
}
