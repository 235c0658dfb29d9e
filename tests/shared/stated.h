// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The distance of a value from the book's formula, in roundings of its evaluation.
#ifndef SINKPROOF_TESTS_STATED_H
#define SINKPROOF_TESTS_STATED_H

#include "tests/shared/bounds_engine.h"

typedef long double real;

typedef struct distance {
    size_t compared;
    double worst; // |found - stated| / (gamma_K scale)
} distance;

// gamma_K at 2^-53, and 2^-9 of it for the long doubles.
static inline real gamma_k(real k) {
    return k * 0x1p-53L / (1 - k * 0x1p-53L) * (1 + 0x1p-9L);
}

static inline void near(distance *d, double found, real stated, real scale, real k) {
    real apart = fabsl(found - stated), room = gamma_k(k) * scale;
    double share = apart == 0 ? 0 : (double)(apart / room);
    d->compared++;
    if (isinf(found) && (double)stated == found) return;
    if (!(share <= d->worst) && d->worst == d->worst) d->worst = share;
}

static inline double draw_dyadic(uint64_t *state) { // a multiple of 1/8 in [-4, 4], not 0
    double x = (double)draw_below(state, 32) / 8 + 0.125;
    return draw(state) % 2 ? -x : x;
}

static inline void report(const distance *d, const char *id, const char *what, uint64_t seed) {
    ok(d->compared > 0 && d->worst <= 1, "%s %s as stated worst=%.3g bound=1 values=%zu seed=%llu",
       id, what, d->worst, d->compared, (unsigned long long)seed);
}

#endif
