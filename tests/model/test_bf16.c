// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Decoding the plain formats against their definition, sign * fraction * 2^exponent, for
// every 16-bit pattern; unaligned, strided, and back.
#include "model/bf16.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

// The definition: `e_bits` of exponent, `f_bits` of fraction, computed with ldexp.
static double by_definition(unsigned bits, int e_bits, int f_bits) {
    int e = (int)(bits >> f_bits) & ((1 << e_bits) - 1), bias = (1 << (e_bits - 1)) - 1;
    unsigned fraction = bits & ((1u << f_bits) - 1);
    double magnitude;
    if (e == (1 << e_bits) - 1)
        magnitude = fraction == 0 ? INFINITY : NAN;
    else if (e == 0)
        magnitude = ldexp(fraction, 1 - bias - f_bits);
    else
        magnitude = ldexp(fraction + (1u << f_bits), e - bias - f_bits);
    return bits >> (e_bits + f_bits) & 1 ? -magnitude : magnitude;
}

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

int main(void) {
    unsigned bf16 = 0, f16 = 0, back = 0, beyond = 0, many = 0;
    uint8_t bytes[1 + 3 * 2 * 256];
    double out[256];
    for (unsigned bits = 0; bits < 65536; bits++) {
        double x = by_definition(bits, 8, 7);
        bf16 += !same(sinkproof_bf16_value((uint16_t)bits), x);
        f16 += !same(sinkproof_f16_value((uint16_t)bits), by_definition(bits, 5, 10));
        back += !isnan(x) && sinkproof_bf16_bits(x) != bits;
    }
    ok(bf16 == 0, "bf16.decode of all 65536 patterns, worst=%u bound=0", bf16);
    ok(f16 == 0, "f16.decode of all 65536 patterns, worst=%u bound=0", f16);
    ok(back == 0, "bf16.round bits of every number are its own, worst=%u bound=0", back);
    ok(isnan(sinkproof_bf16_value(sinkproof_bf16_bits(NAN))), "bf16.round NaN stays NaN");
    for (int e = 128; e < 1024; e++)
        for (int f = SINKPROOF_F32; f <= SINKPROOF_BF16; f++) {
            sinkproof_format format = (sinkproof_format)f;
            beyond += !(sinkproof_round(format, ldexp(1, e)) == INFINITY);
            beyond += !(sinkproof_round(format, -ldexp(1, e)) == -INFINITY);
        }
    ok(beyond == 0, "bf16.round of what lies beyond, of either sign, worst=%u bound=0", beyond);

    for (unsigned start = 0; start < 65536; start += 256) {
        for (unsigned i = 0; i < 256; i++) { // odd address, stride 3
            bytes[1 + 6 * i] = (uint8_t)(start + i);
            bytes[2 + 6 * i] = (uint8_t)((start + i) >> 8);
        }
        sinkproof_decode_many(SINKPROOF_DTYPE_BF16, bytes + 1, 3, 256, out);
        for (unsigned i = 0; i < 256; i++) many += !same(out[i], by_definition(start + i, 8, 7));
        sinkproof_decode_many(SINKPROOF_DTYPE_F16, bytes + 1, 3, 256, out);
        for (unsigned i = 0; i < 256; i++) many += !same(out[i], by_definition(start + i, 5, 10));
    }
    ok(many == 0, "bf16.decode unaligned and strided, worst=%u bound=0", many);

    const uint8_t raw[] = {0xff, 0xdb, 0x0f, 0x49, 0xc0, 0x18, 0x2d, 0x44, 0x54, 0xfb, 0x21,
                           0x09, 0x40, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    ok(element_decode(SINKPROOF_DTYPE_F32, raw + 1) == (double)-3.14159274101257324f,
       "f32.decode little-endian at an odd address");
    ok(element_decode(SINKPROOF_DTYPE_F64, raw + 5) == 3.141592653589793, "f64.decode");
    ok(element_decode(SINKPROOF_DTYPE_I64, raw + 13) == -2 &&
           element_decode(SINKPROOF_DTYPE_I32, raw + 13) == -2 &&
           element_decode(SINKPROOF_DTYPE_U8, raw + 13) == 254,
       "integers decode with their sign");
    ok(isnan(element_decode(SINKPROOF_DTYPE_MXFP4, raw)), "MXFP4 has no element of its own");
    return tap_done();
}
