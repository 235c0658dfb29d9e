// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What an operation may read where a value was stored rounded and may still be available unrounded
// (bound.unrounded). The set contains the stored value and every possible unrounded value, but
// nothing further away than half a step, and nothing outside the known set of the unrounded value.
// After a stored infinity it contains every number.
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20261124;

// Numbers x of a known set, and what may be read where x was stored.
static void read_unrounded(sinkproof_format format) {
    uint64_t state = SEED;
    tally own = {0}, stored_alone = {0}, beyond = {0};
    double widest = 0;
    size_t narrower = 0;
    for (size_t i = 0; i < 200000; i++) {
        int exponent = (int)draw_below(&state, 32) - 20;
        double x = (float)ldexp(i % 5 ? draw_gauss(&state) : i % 2 ? 1 : -1, exponent);
        double room = i % 3 == 0 ? INFINITY : fabs(x) * ldexp(draw_unit(&state), -20);
        double v = sinkproof_round(format, x), step = sinkproof_ulp(format, v);
        sinkproof_honest set = {.lo = x - room, .hi = x + room, .mid = x};
        sinkproof_honest read = sinkproof_honest_read(format, v, set),
                         stored = sinkproof_exact_set(v);
        meet(&own, &read, x), meet(&own, &read, v), meet(&stored_alone, &stored, x);
        meet(&beyond, &read, v + (i % 2 ? 0.501 : -0.501) * step);
        widest = sinkproof_keep_worst(widest, (read.hi - read.lo) / step);
        narrower += read.hi - read.lo < 0.51 * step && read.bias <= 0.51 * step;
    }
    const char *name = sinkproof_format_name(format);
    inside_ok(&own, "bound.unrounded", name);
    ok(stored_alone.outside > 0, "bound.unrounded %s: %zu of %zu are not the stored number", name,
       stored_alone.outside, stored_alone.checked);
    ok(beyond.outside == beyond.checked && widest <= 1,
       "bound.unrounded %s: nothing beyond half a step, worst=%.17g bound=1", name, widest);
    ok(narrower > 100000,
       "bound.unrounded %s: where the set is narrow, half as much: %zu of 200000", name, narrower);
}

static bool is(sinkproof_honest x, double lo, double hi, double bias) {
    return x.lo == lo && x.hi == hi && x.likely_lo == lo && x.likely_hi == hi && x.bias == bias;
}

// Around 1 a bfloat16 step is 2^-7, below it 2^-8.
static void by_hand(void) {
    sinkproof_honest any = {.lo = -INFINITY, .hi = INFINITY};
    sinkproof_honest some = {.lo = 1 - 0x1p-12, .hi = 1 + 0x1p-12};
    sinkproof_honest above = {.lo = 1 + 0x1p-12, .hi = 1 + 0x1p-11};
    sinkproof_honest other = {.lo = 2, .hi = 3};
    const sinkproof_format f = SINKPROOF_BF16;
    ok(is(sinkproof_honest_read(f, 1, any), 1 - 0x1p-9, 1 + 0x1p-8, 0x1p-8) &&
           is(sinkproof_honest_read(f, -1, any), -1 - 0x1p-8, -1 + 0x1p-9, 0x1p-8),
       "bound.unrounded the step below a power of two is the smaller one");
    ok(is(sinkproof_honest_read(f, 0, any), -0x1p-134, 0x1p-134, 0x1p-134),
       "bound.unrounded around zero half the smallest subnormal");
    ok(is(sinkproof_honest_read(f, 1, some), 1 - 0x1p-12, 1 + 0x1p-12, 0x1p-12) &&
           is(sinkproof_honest_read(f, 1, above), 1, 1 + 0x1p-11, 0x1p-11),
       "bound.unrounded what is known of the number, and the stored one");
    ok(is(sinkproof_honest_read(f, 1, other), 1, 1, 0) &&
           is(sinkproof_honest_read(SINKPROOF_REAL, 1, any), 1, 1, 0),
       "bound.unrounded another number than the operation makes, or no rounding: what is stored");
    ok(is(sinkproof_honest_read(f, INFINITY, any), -INFINITY, INFINITY, 0) &&
           is(sinkproof_honest_read(f, -INFINITY, some), -INFINITY, INFINITY, 0),
       "bound.unrounded of a stored infinity nothing is known");
}

int main(void) {
    read_unrounded(SINKPROOF_BF16);
    read_unrounded(SINKPROOF_F16);
    by_hand();
    return tap_done();
}
