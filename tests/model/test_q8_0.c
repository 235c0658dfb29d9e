// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// ggml's formats: float16 written (all patterns, and halfway numbers), Q8_0 decoded for every scale
// and byte, encoded within its bound and as ggml's own arithmetic does it, and MXFP4 in blocks of
// 17 bytes there and back, a probe at each place.
#include "base/splitmix.h"
#include "model/bf16.h"
#include "model/mxfp4.h"
#include "model/q8_0.h"
#include "proofs/bounds/worst.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static void test_f16(void) {
    unsigned back = 0, halfway = 0;
    for (unsigned bits = 0; bits < 65536; bits++) {
        double x = sinkproof_f16_value((uint16_t)bits);
        back += !isnan(x) && f16_bits_rounded(x) != bits;
        if ((bits & 0x7fff) >= 0x7bff) continue;
        // between two neighbours: the even one, and on either side the nearer one
        double next = sinkproof_f16_value((uint16_t)(bits + 1)), middle = (x + next) / 2;
        uint16_t even = (uint16_t)(bits % 2 == 0 ? bits : bits + 1);
        halfway += f16_bits_rounded(middle) != even;
        halfway += f16_bits_rounded(nextafter(middle, x)) != bits;
        halfway += f16_bits_rounded(nextafter(middle, next)) != bits + 1;
    }
    ok(back == 0, "f16.decode bits of every number are its own, worst=%u bound=0", back);
    ok(halfway == 0, "f16.decode a number is written as the nearest one, worst=%u bound=0",
       halfway);
    ok(f16_bits_rounded(65519.99) == 0x7bff && f16_bits_rounded(65520) == 0x7c00 &&
           f16_bits_rounded(-1e9) == 0xfc00 && isnan(sinkproof_f16_value(f16_bits_rounded(NAN))),
       "f16.decode beyond the largest is infinite, NaN stays one");
}

// d q for every finite d and a byte at every place of the block.
static void test_decode(void) {
    unsigned wrong = 0, wide = 0;
    for (unsigned bits = 0; bits < 65536; bits++) {
        uint8_t block[2 * SINKPROOF_Q8_0_BYTES] = {(uint8_t)bits, (uint8_t)(bits >> 8)};
        double out[2 * SINKPROOF_Q8_0_BLOCK], d = sinkproof_f16_value((uint16_t)bits);
        if (!isfinite(d)) continue;
        out[SINKPROOF_Q8_0_BLOCK] = 7; // behind the block nothing is written
        for (unsigned i = 0; i < 32; i++) block[2 + i] = (uint8_t)(bits * 7 + i * 8);
        sinkproof_q8_0_decode(block, 1, out);
        for (unsigned i = 0; i < 32; i++) {
            int q = (int)((bits * 7 + i * 8) & 255);
            wrong += !same(out[i], d * (q > 127 ? q - 256 : q));
            wide += (double)(float)out[i] != out[i];
        }
        wrong += out[SINKPROOF_Q8_0_BLOCK] != 7;
    }
    ok(wrong == 0, "q8.decode of every finite scale, worst=%u bound=0", wrong);
    ok(wide == 0, "q8.decode float32 holds every weight, worst=%u bound=0", wide);
}

static double draw(uint64_t *state) {
    *state += sinkproof_golden;
    return (double)(int64_t)sinkproof_mix(*state) * 0x1p-63;
}

// What the sources of ggml do, written once more: float by float.
static void by_ggml(const float *x, uint8_t *block) {
    float most = 0;
    for (int i = 0; i < 32; i++)
        if (fabsf(x[i]) > most) most = fabsf(x[i]);
    const float d = most / ((1 << 7) - 1), inverse = d != 0 ? 1.0f / d : 0.0f;
    uint16_t half = f16_bits_rounded(d);
    memcpy(block, &half, 2);
    for (int i = 0; i < 32; i++) {
        volatile float product = x[i] * inverse;
        block[2 + i] = (uint8_t)(int8_t)roundf(product);
    }
}

static void test_encode(void) {
    uint64_t state = 5;
    double worst = 0;
    unsigned differ = 0, large = 0, bad = 0;
    for (int t = 0; t < 20000; t++) {
        double x[32], out[32], most = 0, size = ldexp(1, t % 24 - 8);
        float single[32];
        uint8_t block[SINKPROOF_Q8_0_BYTES], other[SINKPROOF_Q8_0_BYTES];
        for (int i = 0; i < 32; i++) {
            x[i] = single[i] = (float)(draw(&state) * size);
            most = fmax(most, fabs(x[i]));
        }
        bad += !sinkproof_q8_0_encode(x, 1, block);
        by_ggml(single, other);
        differ += memcmp(block, other, sizeof block) != 0;
        sinkproof_q8_0_decode(block, 1, out);
        double scale = (double)((float)most / 127);
        if (scale < 0x1p-14) continue;
        large++;
        for (int i = 0; i < 32; i++)
            worst = sinkproof_keep_worst(worst, fabs(x[i] - out[i]) / scale);
    }
    ok(differ == 0 && bad == 0, "q8.encode is ggml's, byte for byte, worst=%u bound=0", differ);
    ok(large > 1000 && worst <= 9.0 / 16,
       "q8.encode error in scales of %u blocks worst=%.6f bound=%g", large, worst, 9.0 / 16);
    const double zeros[32] = {0}, ties[32] = {127, 0.5, -0.5, 1.5, 2.5, -2.5};
    double huge[32] = {0, 127 * 65519.0}, far[32] = {0, 127 * 65520.0};
    uint8_t block[SINKPROOF_Q8_0_BYTES];
    double out[32];
    sinkproof_q8_0_encode(zeros, 1, block);
    sinkproof_q8_0_decode(block, 1, out);
    ok(memcmp(out, zeros, sizeof out) == 0, "q8.encode zeros stay zeros");
    sinkproof_q8_0_encode(ties, 1, block);
    sinkproof_q8_0_decode(block, 1, out);
    ok(out[0] == 127 && out[1] == 1 && out[2] == -1 && out[3] == 2 && out[4] == 3 && out[5] == -3,
       "q8.encode ties go away from zero");
    ok(sinkproof_q8_0_encode(huge, 1, block) && !sinkproof_q8_0_encode(far, 1, block),
       "q8.encode a scale that float16 has not is refused");
}

// Element i of a block of ggml's in the order of safetensors, and every block back to its bytes.
static void test_ggml(void) {
    unsigned moved = 0, back = 0;
    for (unsigned i = 0; i < 64; i++) {
        uint8_t blocks[2 * SINKPROOF_MXFP4_GGML_BYTES] = {0}, codes[32], scales[2], only[2];
        double out[64];
        blocks[0] = 127;
        blocks[17] = 128;
        blocks[17 * (i / 32) + 1 + i % 16] = (uint8_t)(5 << 4 * (i % 32 / 16));
        sinkproof_mxfp4_from_ggml(blocks, 2, codes, scales);
        sinkproof_mxfp4_from_ggml(blocks, 2, NULL, only);
        sinkproof_mxfp4_decode(codes, scales, 2, out);
        for (unsigned j = 0; j < 64; j++) moved += out[j] != (i == j ? (j < 32 ? 3.0 : 6.0) : 0.0);
        moved += memcmp(scales, only, 2) != 0;
    }
    ok(moved == 0, "mxfp4.ggml probes at 64 positions, worst=%u bound=0", moved);
    for (unsigned t = 0; t < 1000; t++) {
        uint8_t codes[32], scales[2], blocks[34], again[32], scales_again[2];
        uint64_t state = t;
        for (int i = 0; i < 32; i++) codes[i] = (uint8_t)(int)(draw(&state) * 128);
        for (int i = 0; i < 2; i++) scales[i] = (uint8_t)(int)(draw(&state) * 128);
        mxfp4_to_ggml(codes, scales, 2, blocks);
        sinkproof_mxfp4_from_ggml(blocks, 2, again, scales_again);
        back += memcmp(codes, again, 32) != 0 || memcmp(scales, scales_again, 2) != 0;
    }
    ok(back == 0, "mxfp4.ggml there and back, worst=%u bound=0", back);
}

int main(void) {
    test_f16();
    test_decode();
    test_encode();
    test_ggml();
    return tap_done();
}
