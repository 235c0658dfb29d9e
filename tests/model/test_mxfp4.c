// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// MXFP4 (mxfp4.decode, mxfp4.exact): all 256 scale bytes times 16 codes against a table
// written from the definition of E2M1 and E8M0; the order of the nibbles.
#include "model/bf16.h"
#include "model/mxfp4.h"
#include "tests/shared/tap.h"

#include <math.h>

// E2M1 from its fields: s ee m; ee = 0: m / 2, else (1 + m / 2) 2^(ee - 1).
static double by_definition(unsigned code, unsigned scale) {
    unsigned e = code >> 1 & 3, m = code & 1;
    double magnitude = e == 0 ? ldexp(m, -1) : ldexp(2 + m, (int)e - 2);
    if (scale == 255) return NAN;
    return ldexp(code & 8 ? -magnitude : magnitude, (int)scale - 127);
}

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

int main(void) {
    unsigned value = 0, block = 0, exact = 0, inexact = 0;
    for (unsigned scale = 0; scale < 256; scale++) {
        uint8_t codes[16], s = (uint8_t)scale;
        double out[32];
        for (unsigned code = 0; code < 16; code++) {
            double x = by_definition(code, scale);
            bool in_bf16 = sinkproof_bf16_value(sinkproof_bf16_bits(x)) == x;
            value += !same(sinkproof_mxfp4_value(code, scale), x);
            if (scale <= 252)
                exact += !in_bf16;
            else
                inexact += !in_bf16;
            codes[code] = (uint8_t)(code | (15 - code) << 4);
        }
        sinkproof_mxfp4_decode(codes, &s, 1, out);
        for (unsigned b = 0; b < 16; b++) {
            block += !same(out[2 * b], by_definition(b, scale));
            block += !same(out[2 * b + 1], by_definition(15 - b, scale));
        }
    }
    ok(value == 0, "mxfp4.decode of all 256 x 16 codes, worst=%u bound=0", value);
    ok(block == 0, "mxfp4.decode of blocks: low nibble 2b, high nibble 2b + 1, worst=%u bound=0",
       block);
    ok(exact == 0, "mxfp4.exact: bf16 holds every code for scale bytes 0 to 252, worst=%u bound=0",
       exact);
    // 253: 4 and 6 with either sign; 254: 2, 3, 4, 6; 255: sixteen NaN
    ok(inexact == 4 + 8 + 16, "mxfp4.exact: beyond 252 exactly %u codes are lost", inexact);

    // A probe at each of the 64 positions of two blocks: nothing else moves.
    unsigned moved = 0;
    for (unsigned i = 0; i < 64; i++) {
        uint8_t codes[32] = {0}, scales[2] = {127, 128};
        double out[64];
        codes[i / 2] = (uint8_t)(5 << 4 * (i % 2));
        sinkproof_mxfp4_decode(codes, scales, 2, out);
        for (unsigned j = 0; j < 64; j++) moved += out[j] != (i == j ? (j < 32 ? 3.0 : 6.0) : 0.0);
    }
    ok(moved == 0, "mxfp4.decode probes at 64 positions, worst=%u bound=0", moved);
    return tap_done();
}
