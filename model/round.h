// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rounding a real number, held in binary64, to a format, once (bf16.round): to nearest, ties to
// even, unless the format says otherwise. Subnormals are kept, overflow gives infinity.
#ifndef SINKPROOF_ROUND_H
#define SINKPROOF_ROUND_H

typedef enum sinkproof_format {
    SINKPROOF_REAL, // no rounding at all; arithmetic stays in binary64
    SINKPROOF_F64,
    SINKPROOF_F32,
    SINKPROOF_F16,
    SINKPROOF_BF16,
    SINKPROOF_FORMATS,
    // formats in which a product may read a number. Ten stored bits and float32's exponent; a tie
    // goes away from zero, or to the even neighbour, or all is cut toward zero:
    SINKPROOF_TF32 = SINKPROOF_FORMATS,
    SINKPROOF_TF32_EVEN,
    SINKPROOF_TF32_CUT,
    // eight bits: four of exponent, no infinity, 448 the largest (IEEE's layout otherwise); five,
    // and 57344. What is larger becomes the largest, or in the second of each NaN or infinity:
    SINKPROOF_E4M3,
    SINKPROOF_E4M3_NAN,
    SINKPROOF_E5M2,
    SINKPROOF_E5M2_INF,
    SINKPROOF_E2M1, // four bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6; what is larger becomes 6
    SINKPROOF_NUMBER_FORMATS,
    // rows whose numbers share a scale (ref/scaled.h): whole numbers from -127 to 127; E4M3 in
    // blocks of 32 by a power of two, that of the largest number or the next; E2M1 in blocks of 16
    SINKPROOF_INT8 = SINKPROOF_NUMBER_FORMATS,
    SINKPROOF_MXFP8,
    SINKPROOF_MXFP8_UP,
    SINKPROOF_NVFP4,
    SINKPROOF_READ_FORMATS,
    // a row that is multiplied by a stored weight may also be rounded to:
    // blocks of 32 whole numbers (ref/operands.h); the same, and the sum of each block in float16;
    // blocks of 256 and a scale in float32
    SINKPROOF_Q8_0 = SINKPROOF_READ_FORMATS,
    SINKPROOF_Q8_1,
    SINKPROOF_Q8_K,
    SINKPROOF_OF_WEIGHT, // the weight's stored format
    SINKPROOF_OPERAND_FORMATS,
    // a sum's only: a matrix unit aligns and cuts blocks of products (ref/tensor_core.c)
    SINKPROOF_TENSOR_CORE = SINKPROOF_OPERAND_FORMATS,
    SINKPROOF_RANKS, // so many equal parts, each rounded, their sum rounded at each addition or not
    SINKPROOF_BLOCKS, // parts of so many products, each rounded
    SINKPROOF_SUM_FORMATS
} sinkproof_format;

// The value of `format` nearest to x. REAL, F64 and formats of rows return x.
double sinkproof_round(sinkproof_format format, double x);

// |round(x) - x| <= u |x| for normal results below the largest: u = 2^-p, p the significand's bits,
// and twice that where x is cut. REAL: 0.
double sinkproof_unit_roundoff(sinkproof_format format);
int round_bits(sinkproof_format format); // p; 53 for REAL

// The distance from |x| to the next larger value of `format` (the smallest subnormal at 0).
// REAL counts as F64.
double sinkproof_ulp(sinkproof_format format, double x);

// Half the smallest subnormal, all of it where x is cut: the absolute error that underflow adds to
// a rounding. REAL: 0.
double sinkproof_format_underflow(sinkproof_format format);

// The largest finite number. REAL counts as F64.
double sinkproof_format_largest(sinkproof_format format);

// "real", "f64", "f32", "f16", "bf16", "tf32", "tf32-even", "tf32-cut", "e4m3", "e4m3-nan", "e5m2",
// "e5m2-inf", "e2m1"; "int8", "mxfp8", "mxfp8-up", "nvfp4"; "q8_0", "q8_1", "q8_k", "weight".
const char *sinkproof_format_name(sinkproof_format format);

#endif
