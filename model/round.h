// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rounding a real number, held in binary64, to a storage format: to nearest, ties
// to even, once (bf16.round). Subnormals are kept, overflow gives infinity.
#ifndef SINKPROOF_ROUND_H
#define SINKPROOF_ROUND_H

typedef enum sinkproof_format {
    SINKPROOF_REAL, // no rounding at all; arithmetic stays in binary64
    SINKPROOF_F64,
    SINKPROOF_F32,
    SINKPROOF_F16,
    SINKPROOF_BF16,
    // formats of a number; a row that is multiplied by a stored weight may also be rounded to:
    SINKPROOF_FORMATS,
    SINKPROOF_Q8_0 = SINKPROOF_FORMATS, // blocks of 32 whole numbers with a scale (ref/operands.h)
    SINKPROOF_OF_WEIGHT,                // the weight's stored format
    SINKPROOF_OPERAND_FORMATS,
    // a sum's only: a matrix unit aligns and cuts blocks of products (ref/tensor_core.c)
    SINKPROOF_TENSOR_CORE = SINKPROOF_OPERAND_FORMATS,
    SINKPROOF_RANKS, // so many equal parts, each rounded, their sum rounded at each addition or not
    SINKPROOF_BLOCKS, // parts of so many products, each rounded
    SINKPROOF_SUM_FORMATS
} sinkproof_format;

// The value of `format` nearest to x. REAL, F64 and formats of rows return x.
double sinkproof_round(sinkproof_format format, double x);

// u = 2^-p, p the significand's bits: |round(x) - x| <= u |x| for normal results. REAL: 0.
double sinkproof_unit_roundoff(sinkproof_format format);

// The distance from |x| to the next larger value of `format` (the smallest subnormal at 0).
// REAL counts as F64.
double sinkproof_ulp(sinkproof_format format, double x);

// Half the smallest subnormal: the absolute error that underflow adds to a rounding. REAL: 0.
double sinkproof_format_underflow(sinkproof_format format);

// The largest finite number. REAL counts as F64.
double sinkproof_format_largest(sinkproof_format format);

// "real", "f64", "f32", "f16", "bf16"; "q8_0", "weight".
const char *sinkproof_format_name(sinkproof_format format);

#endif
