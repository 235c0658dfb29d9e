// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Decodes the plain number formats exactly. Bytes are combined by shifts, so that neither the
// machine's byte order nor the file's alignment matters.
#include "model/bf16.h"

#include "model/round.h"

#include <math.h>
#include <string.h>

static uint64_t little_endian(const uint8_t *bytes, int n) {
    uint64_t value = 0;
    for (int i = 0; i < n; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static double f32_value(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double f64_value(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

//> bf16.decode
double sinkproof_bf16_value(uint16_t bits) {
    return f32_value((uint32_t)bits << 16);
}
//< bf16.decode

//> f16.decode
// Exponent field 0: fraction * 2^-24. Field 31: infinity and NaN. Else 1.fraction * 2^(e-15).
double sinkproof_f16_value(uint16_t bits) {
    int e = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude;
    if (e == 31)
        magnitude = fraction == 0 ? INFINITY : NAN;
    else if (e == 0)
        magnitude = fraction * 0x1p-24;
    else
        magnitude = f64_value((uint64_t)(e - 15 + 1023) << 52 | (uint64_t)fraction << 42);
    return bits >> 15 ? -magnitude : magnitude;
}
//< f16.decode

uint16_t f16_bits_rounded(double x) {
    double rounded = sinkproof_round(SINKPROOF_F16, x), magnitude = fabs(rounded);
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) return 0x7e00;
    if (magnitude > 65504) return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x1p-14) return (uint16_t)(sign | (uint16_t)(magnitude * 0x1p24));
    int e = ilogb(magnitude);
    return (uint16_t)(sign | ((e + 15) << 10) | ((int)ldexp(magnitude, 10 - e) & 1023));
}

uint16_t sinkproof_bf16_bits(double x) {
    if (isnan(x)) return 0x7fc0;
    // exact: bf16 is a subset of binary32
    float rounded = (float)sinkproof_round(SINKPROOF_BF16, x);
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (uint16_t)(bits >> 16);
}

double element_decode(sinkproof_dtype dtype, const uint8_t *bytes) {
    switch (dtype) {
    case SINKPROOF_DTYPE_BF16:
        return sinkproof_bf16_value((uint16_t)little_endian(bytes, 2));
    case SINKPROOF_DTYPE_F16:
        return sinkproof_f16_value((uint16_t)little_endian(bytes, 2));
    case SINKPROOF_DTYPE_F32:
        return f32_value((uint32_t)little_endian(bytes, 4));
    case SINKPROOF_DTYPE_F64:
        return f64_value(little_endian(bytes, 8));
    case SINKPROOF_DTYPE_U8:
        return bytes[0];
    case SINKPROOF_DTYPE_I32:
        return (int32_t)(uint32_t)little_endian(bytes, 4);
    case SINKPROOF_DTYPE_I64:
        return (double)(int64_t)little_endian(bytes, 8);
    default: // blocks
        return NAN;
    }
}

double sinkproof_element_encode(sinkproof_dtype dtype, double x, uint8_t *bytes) {
    float single = (float)x;
    uint32_t bits;
    if (dtype == SINKPROOF_DTYPE_F32)
        memcpy(&bits, &single, sizeof bits);
    else
        bits = dtype == SINKPROOF_DTYPE_BF16 ? sinkproof_bf16_bits(x) : f16_bits_rounded(x);
    for (size_t i = 0; i < sinkproof_dtype_size(dtype); i++) bytes[i] = (uint8_t)(bits >> 8 * i);
    return element_decode(dtype, bytes);
}

void sinkproof_decode_many(sinkproof_dtype dtype, const uint8_t *bytes, size_t stride, size_t n,
                           double *out_n) {
    if (dtype == SINKPROOF_DTYPE_BF16) { // most of a checkpoint: a fast loop
        for (size_t i = 0; i < n; i++, bytes += 2 * stride)
            out_n[i] = sinkproof_bf16_value((uint16_t)(bytes[0] | bytes[1] << 8));
        return;
    }
    if (dtype == SINKPROOF_DTYPE_F32) { // most of a trace
        for (size_t i = 0; i < n; i++, bytes += 4 * stride)
            out_n[i] = f32_value((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 |
                                 (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24);
        return;
    }
    size_t step = stride * sinkproof_dtype_size(dtype);
    for (size_t i = 0; i < n; i++, bytes += step) out_n[i] = element_decode(dtype, bytes);
}
