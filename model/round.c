// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rounding binary64 to a storage format, once (bf16.round). A format with p significant
// bits and smallest normal exponent emin has, around x with 2^e <= |x| < 2^(e+1), the grid
// 2^q Z with q = max(e, emin) - (p - 1). Adding and subtracting c = 1.5 * 2^(q + 52), whose
// last bit in binary64 weighs exactly 2^q, rounds x to that grid to nearest, ties to even.
#include "model/round.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum beyond { INFINITE, LARGEST, NOT_A_NUMBER } beyond; // what follows the largest number
typedef enum ties { EVEN, AWAY, CUT } ties;                     // CUT: nothing is rounded up

typedef struct shape {
    const char *name;
    int bits;       // p, the implicit bit included
    int emin, emax; // exponents of the smallest and the largest normal number
    beyond beyond;
    ties ties;
    int missing; // codes at the top that are no numbers
} shape;

#define WIDE(name)                                                                                 \
    { name, 53, -1022, 1023, INFINITE, EVEN, 0 }

static const shape shapes[SINKPROOF_SUM_FORMATS] = {
    [SINKPROOF_REAL] = WIDE("real"),
    [SINKPROOF_F64] = WIDE("f64"),
    [SINKPROOF_F32] = {"f32", 24, -126, 127, INFINITE, EVEN, 0},
    [SINKPROOF_F16] = {"f16", 11, -14, 15, INFINITE, EVEN, 0},
    [SINKPROOF_BF16] = {"bf16", 8, -126, 127, INFINITE, EVEN, 0},
    [SINKPROOF_TF32] = {"tf32", 11, -126, 127, INFINITE, AWAY, 0},
    [SINKPROOF_TF32_EVEN] = {"tf32-even", 11, -126, 127, INFINITE, EVEN, 0},
    [SINKPROOF_TF32_CUT] = {"tf32-cut", 11, -126, 127, INFINITE, CUT, 0},
    [SINKPROOF_E4M3] = {"e4m3", 4, -6, 8, LARGEST, EVEN, 1},
    [SINKPROOF_E4M3_NAN] = {"e4m3-nan", 4, -6, 8, NOT_A_NUMBER, EVEN, 1},
    [SINKPROOF_E5M2] = {"e5m2", 3, -14, 15, LARGEST, EVEN, 0},
    [SINKPROOF_E5M2_INF] = {"e5m2-inf", 3, -14, 15, INFINITE, EVEN, 0},
    [SINKPROOF_E2M1] = {"e2m1", 2, 0, 2, LARGEST, EVEN, 0},
    [SINKPROOF_INT8] = WIDE("int8"),
    [SINKPROOF_MXFP8] = WIDE("mxfp8"),
    [SINKPROOF_MXFP8_UP] = WIDE("mxfp8-up"),
    [SINKPROOF_NVFP4] = WIDE("nvfp4"),
    [SINKPROOF_Q8_0] = WIDE("q8_0"),
    [SINKPROOF_Q8_1] = WIDE("q8_1"),
    [SINKPROOF_Q8_K] = WIDE("q8_k"),
    [SINKPROOF_OF_WEIGHT] = WIDE("weight"),
    [SINKPROOF_TENSOR_CORE] = WIDE("tensor-core"),
    [SINKPROOF_RANKS] = WIDE("ranks"),
    [SINKPROOF_BLOCKS] = WIDE("blocks"),
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
    return copysign(rounded, x);
}
//< bf16.round

// The same, but that a tie goes away from zero, or all is cut toward zero. Whole numbers below 2^p
// and the remainder are exact.
static double round_size_to_grid(const shape *format, double x) {
    int e = double_exponent(x);
    int q = (e > format->emin ? e : format->emin) - (format->bits - 1);
    double step = power_of_two(q), below = floor(fabs(x) / step) * step;
    bool up = format->ties == AWAY && fabs(x) - below >= step / 2;
    return copysign(up ? below + step : below, x);
}

// The largest finite number.
static double largest_number(const shape *s) {
    double step = power_of_two(s->emax - s->bits + 1);
    return (2 - 2 * power_of_two(-s->bits)) * power_of_two(s->emax) - s->missing * step;
}

// Where |x| exceeds the largest number.
static double beyond_largest(const shape *s, double x) {
    if (s->beyond == LARGEST) return copysign(largest_number(s), x);
    return s->beyond == NOT_A_NUMBER ? NAN : copysign(INFINITY, x);
}

double sinkproof_round(sinkproof_format format, double x) {
    const shape *s = &shapes[format];
    if (s->bits == 53 || x != x) return x;
    int e = double_exponent(x);
    if (e > s->emax) return beyond_largest(s, x);
    double rounded = s->ties == EVEN ? round_to_grid(s, x) : round_size_to_grid(s, x);
    if (e < s->emax) return rounded; // at most 2^emax, a number of every format
    return fabs(rounded) > largest_number(s) ? beyond_largest(s, x) : rounded;
}

double sinkproof_unit_roundoff(sinkproof_format format) {
    const shape *s = &shapes[format];
    return format == SINKPROOF_REAL ? 0 : power_of_two(s->ties == CUT ? 1 - s->bits : -s->bits);
}

int round_bits(sinkproof_format format) {
    return shapes[format].bits;
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
    return power_of_two(s->emin - s->bits + (s->ties == CUT));
}

double sinkproof_format_largest(sinkproof_format format) {
    return largest_number(&shapes[format]);
}

const char *sinkproof_format_name(sinkproof_format format) {
    return (unsigned)format < SINKPROOF_SUM_FORMATS ? shapes[format].name : "unknown";
}
