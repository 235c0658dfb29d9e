// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The plain number formats of checkpoints: bf16, f16, f32, f64, and integers, little-endian in
// memory at any alignment. Decoding to binary64 is exact except for I64 beyond 2^53.
#ifndef SINKPROOF_BF16_H
#define SINKPROOF_BF16_H

#include "model/matrix.h"

#include <stddef.h>
#include <stdint.h>

// bf16 is the upper half of binary32: sign, 8 exponent bits, 7 fraction bits.
double sinkproof_bf16_value(uint16_t bits);
// IEEE binary16: sign, 5 exponent bits, 10 fraction bits.
double sinkproof_f16_value(uint16_t bits);

// The bits of x rounded to f16 (bf16.round), infinite beyond its range. NaN becomes a quiet NaN.
uint16_t f16_bits_rounded(double x);
// The bits of x rounded to bf16 (bf16.round). NaN becomes a quiet NaN.
uint16_t sinkproof_bf16_bits(double x);

// The element of `dtype` at `bytes`; NaN for block formats, which have no single elements.
double element_decode(sinkproof_dtype dtype, const uint8_t *bytes);

// x rounded to BF16, F16 or F32, as bytes; returns the number that they hold.
double sinkproof_element_encode(sinkproof_dtype dtype, double x, uint8_t *bytes);

// n elements of a float dtype, `stride` elements apart, into out_n.
void sinkproof_decode_many(sinkproof_dtype dtype, const uint8_t *bytes, size_t stride, size_t n,
                           double *out_n);

#endif
