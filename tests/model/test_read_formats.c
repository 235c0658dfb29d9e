// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Formats in which a product reads numbers (bound.scaled, bound.operands): every code of eight bits
// and four against a second decoder, which builds a number from its bits as a sum; every midpoint
// and what lies beside it; what is beyond the largest number; NaN. TF32 at every tenth-bit boundary
// of drawn numbers, against whole-number arithmetic on the pattern of binary32.
#include "model/container.h"
#include "model/round.h"
#include "model/slots.h"
#include "tests/shared/few.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct small_format {
    const char *name;
    sinkproof_format saturates, overflows; // the second: NaN or infinity, or the same
    int exponent_bits, fraction_bits, bias;
    unsigned codes; // finite ones from 0 on
    double largest, beyond;
} small_format;

static const small_format formats[] = {
    {"e4m3", SINKPROOF_E4M3, SINKPROOF_E4M3_NAN, 4, 3, 7, 0x7f, 448, NAN},
    {"e5m2", SINKPROOF_E5M2, SINKPROOF_E5M2_INF, 5, 2, 15, 0x7c, 57344, INFINITY},
    {"e2m1", SINKPROOF_E2M1, SINKPROOF_E2M1, 2, 1, 1, 8, 6, 6},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

// The value of a code: its leading bit and those of the fraction, each with its weight.
static double code_value(const small_format *f, unsigned code) {
    int field = (int)(code >> f->fraction_bits);
    double weight = 1, value = 0;
    for (int e = field > 0 ? field : 1; e < f->bias; e++) weight /= 2;
    for (int e = f->bias; e < field; e++) weight *= 2;
    value = field > 0 ? weight : 0;
    for (int b = f->fraction_bits - 1; b >= 0; b--) {
        weight /= 2;
        if (code >> b & 1) value += weight;
    }
    return value;
}

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static unsigned wrong(sinkproof_format format, double x, double expected) {
    return !same(sinkproof_round(format, x), expected) +
           !same(sinkproof_round(format, -x), isnan(expected) ? NAN : -expected);
}

static void check_codes(const small_format *f, sinkproof_format format, double beyond) {
    unsigned kept = 0, middles = 0, beside = 0, steps = 0;
    for (unsigned code = 0; code + 1 < f->codes; code++) {
        double low = code_value(f, code), high = code_value(f, code + 1);
        double middle = (low + high) / 2;
        kept += wrong(format, low, low) + wrong(format, high, high);
        middles += wrong(format, middle, code % 2 == 0 ? low : high);
        beside += wrong(format, nextafter(middle, 0), low);
        beside += wrong(format, nextafter(middle, INFINITY), high);
        steps += sinkproof_ulp(format, low) != high - low;
    }
    double last = code_value(f, f->codes - 1), before = code_value(f, f->codes - 2);
    double middle = last + (last - before) / 2; // the next number would be even, or is NaN's code
    bool even = f->codes % 2 == 1;              // the largest number is
    beside += wrong(format, nextafter(middle, 0), last);
    middles += wrong(format, middle, even ? last : beyond);
    beside += wrong(format, nextafter(middle, INFINITY), beyond);
    beside += wrong(format, 1e300, beyond) + wrong(format, INFINITY, beyond);
    beside += wrong(format, NAN, NAN) + !same(sinkproof_round(format, -0x1p-1074), -0.0);
    ok(kept == 0 && last == f->largest && sinkproof_format_largest(format) == last,
       "bound.scaled %s keeps its %u numbers up to %g, worst=%u bound=0",
       sinkproof_format_name(format), f->codes, last, kept);
    ok(middles == 0 && beside == 0,
       "bound.scaled %s at and beside every midpoint and beyond, worst=%u bound=0",
       sinkproof_format_name(format), middles + beside);
    double u = sinkproof_unit_roundoff(format), least = code_value(f, 1);
    ok(steps == 0 && round_bits(format) == f->fraction_bits + 1 &&
           u == 1 / ldexp(1, f->fraction_bits + 1) &&
           sinkproof_format_underflow(format) == least / 2,
       "bound.scaled %s: bits, steps, unit roundoff, underflow, worst=%u bound=0",
       sinkproof_format_name(format), steps);
}

// ---- TF32

static uint32_t pattern_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static float from_pattern(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The thirteen last bits of the pattern are dropped: after half of their weight was added, after
// half less one where the last kept bit is 0, or as they are.
static void check_tf32(void) {
    const uint32_t mask = 0x1fff, stride = (uint32_t)or_few(4051, 400009);
    size_t away = 0, even = 0, cut = 0, count = 0, ties = 0;
    for (uint64_t i = 0; i <= UINT32_MAX; i += stride) {
        uint32_t bits = (uint32_t)i;
        if (count % 8 == 0) bits = (bits & ~mask) | 0x1000, ties++;
        float x = from_pattern(bits);
        count++;
        if (isnan(x)) continue;
        bool finite = isfinite(x);
        float kept = from_pattern(bits & ~mask);
        float up = finite ? from_pattern((bits + 0x1000) & ~mask) : x;
        float near = finite ? from_pattern((bits + 0xfff + (bits >> 13 & 1)) & ~mask) : x;
        away += !same(sinkproof_round(SINKPROOF_TF32, (double)x), (double)up);
        even += !same(sinkproof_round(SINKPROOF_TF32_EVEN, (double)x), (double)near);
        cut += !same(sinkproof_round(SINKPROOF_TF32_CUT, (double)x), (double)kept);
    }
    ok(away == 0 && even == 0 && cut == 0 && ties > 1000,
       "bound.operands tf32 of %zu numbers, %zu of them ties, worst=%zu bound=0", count, ties,
       away + even + cut);
    ok(isnan(sinkproof_round(SINKPROOF_TF32, NAN)) &&
           isnan(sinkproof_round(SINKPROOF_TF32_CUT, NAN)) &&
           sinkproof_round(SINKPROOF_TF32, (double)from_pattern(0x7f7fffff)) == INFINITY &&
           sinkproof_round(SINKPROOF_TF32_CUT, (double)from_pattern(0x7f7fffff)) ==
               (double)from_pattern(0x7f7fe000),
       "bound.operands tf32 at the end of the range");
    ok(sinkproof_unit_roundoff(SINKPROOF_TF32) == 0x1p-11 &&
           sinkproof_unit_roundoff(SINKPROOF_TF32_CUT) == 0x1p-10 &&
           sinkproof_format_underflow(SINKPROOF_TF32) == 0x1p-137 &&
           sinkproof_format_underflow(SINKPROOF_TF32_CUT) == 0x1p-136 &&
           round_bits(SINKPROOF_TF32_CUT) == 11,
       "bound.operands constants of tf32: what is cut loses twice as much");
    float x = from_pattern(pattern_of(1.0f) | 0x1000); // half a step above 1
    ok(sinkproof_round(SINKPROOF_TF32, (double)x) == 1 + 0x1p-10 &&
           sinkproof_round(SINKPROOF_TF32_EVEN, (double)x) == 1 &&
           sinkproof_round(SINKPROOF_TF32, nextafter((double)x, 0)) == 1,
       "bound.operands tf32 rounds once: what is just below a tie in binary64 is no tie");
}

// ---- weights

static bool multiplies(sinkproof_slot slot, const sinkproof_config *c) {
    bool row = slot == SINKPROOF_EMBEDDING || slot == SINKPROOF_POSITIONS; // it is looked up
    return sinkproof_slot_kind_of(slot, c) == SINKPROOF_MATRIX && !row;
}

// A format in which products read changes the matrices that multiply a vector and no other weight.
static void check_weights(void) {
    sinkproof_model *model = open_model("synthetic:tiny,layers=1");
    const sinkproof_config *c = sinkproof_model_config(model);
    sinkproof_model *kept = sinkproof_model_kept(model, SINKPROOF_E4M3);
    size_t apart = 0, slots = 0, changed = 0;
    must(kept != NULL);
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        sinkproof_matrix w = sinkproof_model_slot(model, 0, (sinkproof_slot)s);
        sinkproof_matrix k = sinkproof_model_slot(kept, 0, (sinkproof_slot)s);
        if (w.count == 0) continue;
        double stored[1024], read[1024];
        sinkproof_matrix first = sinkproof_matrix_at(&w, 0), same_one = sinkproof_matrix_at(&k, 0);
        must(first.cols <= 1024);
        sinkproof_matrix_row(&first, 0, stored), sinkproof_matrix_row(&same_one, 0, read);
        bool rounds = multiplies((sinkproof_slot)s, c);
        slots++, changed += rounds;
        for (size_t i = 0; i < first.cols; i++)
            apart +=
                !same(read[i], rounds ? sinkproof_round(SINKPROOF_E4M3, stored[i]) : stored[i]);
    }
    ok(apart == 0 && changed == 8 && slots > 2 * changed,
       "bound.operands %zu of %zu weights are read in a product's format, worst=%zu bound=0",
       changed, slots, apart);
    sinkproof_model_close(kept);
    sinkproof_model_close(model);
}

int main(void) {
    check_weights();
    for (int k = 0; k < FORMATS; k++) {
        const small_format *f = &formats[k];
        check_codes(f, f->saturates, f->largest);
        if (f->overflows != f->saturates) check_codes(f, f->overflows, f->beyond);
    }
    check_tf32();
    return tap_done();
}
