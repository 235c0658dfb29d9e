// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rounding once (bf16.round). Every number of a 16-bit format is kept; between each two
// neighbours the midpoint goes to the even one, and the binary64 numbers next to the
// midpoint, which a detour through binary32 would merge with it, go to the nearer one.
#include "model/bf16.h"
#include "model/round.h"
#include "tests/shared/few.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct sixteen {
    sinkproof_format format;
    const char *name;
    unsigned infinity; // its bits
    double (*value)(uint16_t bits);
} sixteen;

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static unsigned wrong(sinkproof_format format, double x, double expected) {
    bool good =
        same(sinkproof_round(format, x), expected) && same(sinkproof_round(format, -x), -expected);
    return !good;
}

static void check_sixteen(const sixteen *f) {
    unsigned kept = 0, ties = 0, near = 0;
    for (unsigned bits = 0; bits < 65536; bits++)
        kept +=
            !same(sinkproof_round(f->format, f->value((uint16_t)bits)), f->value((uint16_t)bits));
    ok(kept == 0, "bf16.round %s keeps all 65536 of its numbers, worst=%u bound=0", f->name, kept);
    for (unsigned bits = 0; bits < f->infinity; bits++) {
        double low = f->value((uint16_t)bits), high = f->value((uint16_t)(bits + 1));
        // beyond the largest number, the grid goes on as if infinity were the next point
        double step = bits == 0 ? high : low - f->value((uint16_t)(bits - 1));
        double middle = bits + 1 == f->infinity ? low + step / 2 : low + (high - low) / 2;
        ties += wrong(f->format, middle, bits % 2 == 0 ? low : high);
        near += wrong(f->format, nextafter(middle, 0), low);
        near += wrong(f->format, nextafter(middle, INFINITY), high);
        near += wrong(f->format, nextafter(low, INFINITY), low);
        if (isfinite(high)) near += wrong(f->format, nextafter(high, 0), high);
    }
    ok(ties == 0, "bf16.round %s takes every midpoint to the even neighbour, worst=%u bound=0",
       f->name, ties);
    ok(near == 0, "bf16.round %s beside every midpoint and number, worst=%u bound=0", f->name,
       near);
}

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The usual integer formulation on binary32: add half of the last place minus one, plus the
// last bit, and cut. Every float whose bits are start, start + stride, ...
static uint64_t floats_wrong(uint32_t stride, uint64_t *checked) {
    uint64_t bad = 0;
    for (uint64_t i = 0; i <= UINT32_MAX; i += stride, ++*checked) {
        uint32_t bits = (uint32_t)i;
        float x = from_bits(bits);
        double expected = from_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
        if (isnan(x))
            bad += !isnan(sinkproof_round(SINKPROOF_BF16, x));
        else
            bad += !(sinkproof_round(SINKPROOF_BF16, x) == expected);
    }
    return bad;
}

static void check_f32(void) {
    unsigned bad = 0;
    uint32_t bits = 0;
    const size_t midpoints = or_few(1000000, 100000);
    for (size_t i = 0; i < midpoints; i++, bits = (bits + 2654435761u) & 0x7fffffff) {
        if (bits >= 0x7f7fffff) continue;
        double low = from_bits(bits), high = from_bits(bits + 1), middle = low + (high - low) / 2;
        bad += wrong(SINKPROOF_F32, middle, bits % 2 == 0 ? low : high);
        bad += wrong(SINKPROOF_F32, nextafter(middle, 0), low);
        bad += wrong(SINKPROOF_F32, nextafter(middle, INFINITY), high);
    }
    ok(bad == 0, "bf16.round f32 at and beside %zu midpoints, worst=%u bound=0", midpoints, bad);
}

static void check_scale(const sixteen *f) {
    unsigned bad = 0;
    for (unsigned bits = 1; bits + 1 < f->infinity; bits++) {
        double low = f->value((uint16_t)bits), high = f->value((uint16_t)(bits + 1));
        bad += sinkproof_ulp(f->format, low) != high - low;
        bad += sinkproof_ulp(f->format, -nextafter(high, 0)) != high - low;
    }
    bad += sinkproof_ulp(f->format, 0) != f->value(1);
    bad += sinkproof_format_underflow(f->format) != f->value(1) / 2;
    double one_and = nextafter(1 + sinkproof_unit_roundoff(f->format), 2);
    bad += sinkproof_round(f->format, 1 + sinkproof_unit_roundoff(f->format)) != 1;
    bad += sinkproof_round(f->format, one_and) != 1 + 2 * sinkproof_unit_roundoff(f->format);
    ok(bad == 0, "bf16.round %s: ulp, unit roundoff and underflow, worst=%u bound=0", f->name, bad);
}

int main(void) {
    const sixteen formats[] = {{SINKPROOF_BF16, "bf16", 0x7f80, sinkproof_bf16_value},
                               {SINKPROOF_F16, "f16", 0x7c00, sinkproof_f16_value}};
    for (int i = 0; i < 2; i++) {
        check_sixteen(&formats[i]);
        check_scale(&formats[i]);
    }
    // A prime stride meets every residue; SINKPROOF_EXHAUSTIVE=1 visits all 2^32.
    const char *all = getenv("SINKPROOF_EXHAUSTIVE");
    uint64_t checked = 0,
             bad = floats_wrong(all != NULL && all[0] == '1' ? 1 : (uint32_t)or_few(19, 211),
                                &checked);
    ok(bad == 0, "bf16.round bf16 of %llu floats, worst=%llu bound=0", (unsigned long long)checked,
       (unsigned long long)bad);
    check_f32();
    double trap = 1 + 0x1p-8 + 0x1p-40; // binary32 would make it a tie, and even is 1
    ok(sinkproof_round(SINKPROOF_BF16, trap) == 1 + 0x1p-7, "bf16.round is not done twice");
    ok(sinkproof_round(SINKPROOF_REAL, trap) == trap &&
           sinkproof_round(SINKPROOF_F64, trap) == trap,
       "bf16.round real and f64 change nothing");
    ok(sinkproof_round(SINKPROOF_F16, 65520) == INFINITY &&
           sinkproof_round(SINKPROOF_F16, nextafter(65520, 0)) == 65504 &&
           sinkproof_round(SINKPROOF_BF16, -1e300) == -INFINITY &&
           sinkproof_round(SINKPROOF_F32, 1e300) == INFINITY,
       "bf16.round overflows to infinity at the midpoint beyond the largest number");
    ok(same(sinkproof_round(SINKPROOF_F16, -0x1p-1074), -0.0), "bf16.round keeps the sign of zero");
    ok(sinkproof_unit_roundoff(SINKPROOF_F32) == 0x1p-24 &&
           sinkproof_format_underflow(SINKPROOF_F32) == 0x1p-150 &&
           sinkproof_unit_roundoff(SINKPROOF_REAL) == 0 &&
           sinkproof_format_underflow(SINKPROOF_REAL) == 0,
       "bf16.round constants of f32 and real");
    return tap_done();
}
