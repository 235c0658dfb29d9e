// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The compiler rounds where the code converts: a conversion of binary64 to binary32 and back,
// alone, in pairs side by side and in loops. gcc 12.2 drops the rounding of a pair that it makes
// one vector of; the flags of this project keep it from that.
#include "tests/shared/tap.h"

#include <stdint.h>
#include <string.h>

enum { MANY = 8 };

// Apart, so that no call knows the numbers of another.
#define APART __attribute__((noinline))

APART static double one(double x) {
    return (double)(float)x;
}

APART static void pair(const double *x, double *out) {
    double a = (double)(float)x[0], b = (double)(float)x[1];
    out[0] = a, out[1] = b;
}

APART static void pair_of_sums(const double *x, double *out) {
    double half = x[0] * 0.5, other = x[1] * 0.5;
    double low = (float)(half - other), high = (float)(half + other);
    out[0] = low, out[1] = high;
}

APART static void four(const double *x, double *out) {
    double a = (float)x[0], b = (float)x[1], c = (float)x[2], d = (float)x[3];
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}

APART static void loop(size_t n, const double *x, double *out) {
    for (size_t i = 0; i < n; i++) out[i] = (double)(float)x[i];
}

APART static void whole(const double *x, double *out) {
    for (size_t i = 0; i < MANY; i++) out[i] = (double)(float)x[i];
}

// Numbers of which binary32 keeps 24 bits are told by their lowest 29: all zero after a rounding.
static size_t unrounded(size_t n, const double *x) {
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        wrong += (bits & ((UINT64_C(1) << 29) - 1)) != 0;
    }
    return wrong;
}

int main(void) {
    double x[MANY], y[MANY];
    for (size_t i = 0; i < MANY; i++) x[i] = (double)(i + 1) / 3 + 0x1p-40;
    ok(unrounded(MANY, x) == MANY, "numbers that are none of binary32");
    for (size_t i = 0; i < MANY; i++) y[i] = one(x[i]);
    ok(unrounded(MANY, y) == 0, "a conversion rounds, one by one");
    pair(x, y), pair(x + 2, y + 2);
    ok(unrounded(4, y) == 0, "two side by side round: %zu of 4 did not", unrounded(4, y));
    pair_of_sums(x, y);
    ok(unrounded(2, y) == 0, "two of a difference and a sum: %zu of 2 did not", unrounded(2, y));
    four(x, y);
    ok(unrounded(4, y) == 0, "four side by side: %zu of 4 did not", unrounded(4, y));
    loop(MANY, x, y);
    ok(unrounded(MANY, y) == 0, "in a loop: %zu did not", unrounded(MANY, y));
    whole(x, y);
    ok(unrounded(MANY, y) == 0, "in a loop of eight: %zu did not", unrounded(MANY, y));
    return tap_done();
}
