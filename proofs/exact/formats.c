// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Number formats, code by code: the decoding and rounding of ref/ against the definition in
// rationals.
#include "proofs/exact/attention.h"

#include "model/bf16.h"
#include "model/mxfp4.h"
#include "model/q8_0.h"
#include "model/round.h"
#include "proofs/truth/exact_dot.h"

#include <math.h>
#include <string.h>

// A number as a row: its value (0 when it has none), and -1, 0 or 1 for an infinity, 2 for NaN.
static row number_row(double x) {
    bool finite = isfinite(x) != 0;
    long kind = finite ? 0 : isnan(x) ? 2 : x > 0 ? 1 : -1;
    return row_join(row_one(q_double(finite ? x : 0)), row_one(q_int(kind)));
}

//> mxfp4.decode
// Code t: the element in the low four bits, the scale byte s in the rest. The element alone, then
// as the low and as the high nibble of the block's first byte, next to its complement.
static row mxfp4_decoded(const instance *m) {
    unsigned code = (unsigned)(m->number % 16), scale = (unsigned)(m->number / 16);
    uint8_t codes[SINKPROOF_MXFP4_BYTES] = {(uint8_t)(code | (15 - code) << 4)};
    uint8_t scales[1] = {(uint8_t)scale};
    double block[SINKPROOF_MXFP4_BLOCK];
    sinkproof_mxfp4_decode(codes, scales, 1, block);
    row alone = number_row(sinkproof_mxfp4_value(code, scale));
    return row_join(alone, row_join(number_row(block[0]), number_row(block[1])));
}
// E2M1: a sign, two bits of exponent, one of fraction: 0, 1/2, 1, 3/2, 2, 3, 4, 6; times 2^(s-127).
static row e2m1(unsigned code, unsigned scale) {
    unsigned exponent = code >> 1 & 3, fraction = code & 1;
    rational size =
        exponent == 0 ? q_frac((long)fraction, 2)
                      : q_mul(q_frac(2 + (long)fraction, 2), q_power(q_int(2), (long)exponent - 1));
    if (code >> 3) size = q_neg(size);
    if (scale == 255) return row_join(row_one(q_int(0)), row_one(q_int(2))); // NaN
    rational value = q_mul(size, q_power(q_int(2), (long)scale - 127));
    return row_join(row_one(value), row_one(q_int(0)));
}
static row mxfp4_defined(const instance *m) {
    unsigned code = (unsigned)(m->number % 16), scale = (unsigned)(m->number / 16);
    return row_join(e2m1(code, scale), row_join(e2m1(code, scale), e2m1(15 - code, scale)));
}
//< mxfp4.decode

//> f16.decode
// Code t: sixteen bits, sign, five of exponent, ten of fraction.
static row decoded_f16(const instance *m) {
    return number_row(sinkproof_f16_value((uint16_t)m->number));
}
static rational f16(unsigned bits) { // finite ones
    long e = bits >> 10 & 31, fraction = bits & 1023;
    rational size = e == 0 ? q_mul(q_int(fraction), q_power(q_int(2), -24))
                           : q_mul(q_int(1024 + fraction), q_power(q_int(2), e - 25));
    return bits >> 15 ? q_neg(size) : size;
}
static row defined_f16(const instance *m) {
    unsigned bits = (unsigned)m->number;
    if ((bits >> 10 & 31) < 31) return row_join(row_one(f16(bits)), row_one(q_int(0)));
    long kind = (bits & 1023) != 0 ? 2 : bits >> 15 ? -1 : 1;
    return row_join(row_one(q_int(0)), row_one(q_int(kind)));
}
//< f16.decode

//> mxfp4.ggml
// Code t: an element, a code and a scale; its nibble alone is not the code 0. Reading back gives
// the code at the element, and 0 at all others.
static row codes_from_ggml(const instance *m) {
    unsigned i = (unsigned)(m->number % 32), code = (unsigned)(m->number / 32 % 15) + 1;
    uint8_t block[SINKPROOF_MXFP4_GGML_BYTES] = {(uint8_t)(m->number / 480 % 255)};
    uint8_t codes[SINKPROOF_MXFP4_BYTES], scale;
    double out[SINKPROOF_MXFP4_BLOCK], others = 0;
    block[1 + i % 16] = (uint8_t)(code << (i < 16 ? 0 : 4));
    sinkproof_mxfp4_from_ggml(block, 1, codes, &scale);
    sinkproof_mxfp4_decode(codes, &scale, 1, out);
    for (unsigned j = 0; j < SINKPROOF_MXFP4_BLOCK; j++)
        if (j != i) others += fabs(out[j]);
    return row_join(number_row(out[i]), number_row(others));
}
static row defined_ggml(const instance *m) {
    unsigned code = (unsigned)(m->number / 32 % 15) + 1, scale = (unsigned)(m->number / 480 % 255);
    return row_join(e2m1(code, scale), row_join(row_one(q_int(0)), row_one(q_int(0))));
}
//< mxfp4.ggml

//> q8.decode
// Code t: the bits of d (finite), with two bytes that depend on t at both ends of the block.
static uint8_t block_byte(const instance *m, unsigned which) {
    return (uint8_t)(m->number * 37 + which * 131);
}
static unsigned scale_bits(const instance *m) {
    return (unsigned)(m->number % 31 << 10 | m->number / 31 % 1024 | m->number % 2 << 15);
}
static row decoded_q8(const instance *m) {
    uint8_t block[SINKPROOF_Q8_0_BYTES] = {(uint8_t)scale_bits(m), (uint8_t)(scale_bits(m) >> 8)};
    double out[SINKPROOF_Q8_0_BLOCK];
    block[2] = block_byte(m, 0);
    block[33] = block_byte(m, 1);
    sinkproof_q8_0_decode(block, 1, out);
    return row_join(number_row(out[0]), row_join(number_row(out[31]), number_row(out[16])));
}
static row times_scale(const instance *m, int q) {
    return row_join(row_one(q_mul(f16(scale_bits(m)), q_int(q))), row_one(q_int(0)));
}
static row defined_q8(const instance *m) {
    return row_join(times_scale(m, (int8_t)block_byte(m, 0)),
                    row_join(times_scale(m, (int8_t)block_byte(m, 1)), times_scale(m, 0)));
}
//< q8.decode

//> mxfp4.exact
// The value is in bf16: rounding does not change it, for s <= 252.
static row rounded_weight(const instance *m) {
    double x = sinkproof_mxfp4_value((unsigned)(m->number % 16), (unsigned)(m->number / 16));
    return number_row(sinkproof_round(SINKPROOF_BF16, x));
}
static row mxfp4_weight(const instance *m) {
    return e2m1((unsigned)(m->number % 16), (unsigned)(m->number / 16));
}
//< mxfp4.exact

// Every bf16 x, the two ends and the middle of the interval to its upper neighbour, and one float32
// next to each: between these points rounding to bf16 cannot change.
enum { POINTS = 6 };
static const uint32_t below[POINTS] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};

static double drawn_float(const instance *m) {
    uint32_t image = (uint32_t)(m->number / POINTS) << 16 | below[m->number % POINTS];
    float x;
    memcpy(&x, &image, 4);
    return (double)x;
}

//> bf16.round
static row bf16_rounded(const instance *m) {
    return number_row(sinkproof_round(SINKPROOF_BF16, drawn_float(m)));
}
// The nearer neighbour; in the middle the one whose last bit is 0. A number nearer to 2^128 than to
// the largest bf16 becomes infinite.
static row nearest_even(const instance *m) {
    uint32_t pattern = (uint32_t)(m->number / POINTS);
    double x = drawn_float(m), down = sinkproof_bf16_value((uint16_t)pattern);
    if (!isfinite(x)) return number_row(x);
    double up = sinkproof_bf16_value((uint16_t)(pattern + 1)), size = copysign(0x1p128, x);
    rational to_down = q_sub(q_double(x), q_double(down));
    rational to_up = q_sub(q_double(isinf(up) ? size : up), q_double(x));
    int order = mpq_cmp(q_abs(to_down), q_abs(to_up));
    bool take_down = order < 0 || (order == 0 && pattern % 2 == 0);
    return number_row(take_down ? down : up);
}
//< bf16.round

// 24 random terms: integers below 2^8 times powers of two, so that the certificate holds.
enum { TERMS = 24 };
static void draw_terms(const instance *m, bool wide, double a_k[TERMS], double b_k[TERMS]) {
    uint64_t z = m->number * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (size_t k = 0; k < TERMS; k++) {
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb) + k;
        int spread = wide ? 60 : 8;
        a_k[k] = ldexp((double)(z >> 56) - 128, (int)(z >> 20 & 63) % spread);
        b_k[k] = ldexp((double)(z >> 48 & 255) - 128, -((int)(z >> 30 & 63) % spread));
    }
}
static row dot_summed(const instance *m, bool wide) { // ascending, then descending with FMA
    double a_k[TERMS], b_k[TERMS], up = 0, down = 0;
    draw_terms(m, wide, a_k, b_k);
    for (size_t k = 0; k < TERMS; k++) up += a_k[k] * b_k[k];
    for (size_t k = TERMS; k-- > 0;) down = fma(a_k[k], b_k[k], down);
    return row_join(number_row(up), number_row(down));
}

//> bound.dot-exact
// Under the certificate, two orders of summation, with and without FMA, against the real sum.
static row summed_certified(const instance *m) {
    return dot_summed(m, false);
}
static row real_sum(const instance *m) {
    double a_k[TERMS], b_k[TERMS], value;
    draw_terms(m, false, a_k, b_k);
    bool certified = sinkproof_dot_certified(TERMS, a_k, b_k, &value);
    rational sum = q_int(0);
    for (size_t k = 0; k < TERMS; k++) sum = q_add(sum, q_mul(q_double(a_k[k]), q_double(b_k[k])));
    row one = row_join(row_one(sum), row_one(q_int(certified ? 0 : 3)));
    return row_join(one, one);
}
//< bound.dot-exact

const sinkproof_exact_statement exact_formats[] = {
    {"mxfp4.decode", SINKPROOF_EXACT_CODES, "the code as ref/ decodes it", "E2M1(code) 2^(s - 127)",
     mxfp4_decoded, mxfp4_defined, 4096},
    {"mxfp4.exact", SINKPROOF_EXACT_CODES, "the value rounded to bf16", "the value", rounded_weight,
     mxfp4_weight, 253 * 16},
    {"f16.decode", SINKPROOF_EXACT_CODES, "the bits as ref/ decodes them",
     "sign, 2^(e - 15) (1 + f / 2^10)", decoded_f16, defined_f16, 65536},
    {"mxfp4.ggml", SINKPROOF_EXACT_CODES, "the element as ref/ reads it from a block",
     "E2M1(code) 2^(s - 127) at that element", codes_from_ggml, defined_ggml, 480 * 255},
    {"q8.decode", SINKPROOF_EXACT_CODES, "the block as ref/ decodes it", "d q", decoded_q8,
     defined_q8, 31 * 1024},
    {"bf16.round", SINKPROOF_EXACT_CODES, "a float32 as ref/ rounds it to bf16",
     "the nearest bf16, the even one in a tie", bf16_rounded, nearest_even, 65536 * POINTS},
    {"bound.dot-exact", SINKPROOF_EXACT_CODES, "two orders of a binary64 sum",
     "the rational sum, certified", summed_certified, real_sum, 1000},
    {0},
};

// ---- wrong forms ----------------------------------------------------------------------------

static row weight_254(const instance *m) { // beyond the range of the statement
    instance other = {.number = 253 * 16 + m->number};
    return mxfp4_weight(&other);
}
static row rounded_254(const instance *m) {
    instance other = {.number = 253 * 16 + m->number};
    return rounded_weight(&other);
}
static row summed_wide(const instance *m) {
    return row_slice(dot_summed(m, true), 0, 2);
}
static row summed_wide_backwards(const instance *m) {
    return row_slice(dot_summed(m, true), 2, 2);
}

const sinkproof_exact_statement exact_formats_wrong[] = {
    {"mxfp4.exact", SINKPROOF_EXACT_CODES, "the value rounded to bf16, s = 253 or 254", "the value",
     rounded_254, weight_254, 32},
    {"bound.dot-exact", SINKPROOF_EXACT_CODES, "without the certificate: ascending",
     "descending with FMA", summed_wide, summed_wide_backwards, 1000},
    {0},
};
