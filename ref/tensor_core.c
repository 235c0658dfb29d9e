// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One block of a matrix unit's sum (bound.tensor-core).
#include "ref/tensor_core.h"

#include <limits.h>
#include <math.h>

const sinkproof_core_name core_names[] = {
    {"volta", 23, 4},   {"turing", 24, 4},     {"ampere", 24, 8}, {"ada", 24, 8},
    {"hopper", 25, 16}, {"blackwell", 25, 16}, {NULL, 0, 0},
};

enum { F32_FRACTION = 23, F32_LEAST = -126, NONE = INT_MIN };

// x cut toward zero to a multiple of 2^q.
static double cut(double x, int q) {
    return ldexp(trunc(ldexp(x, -q)), q);
}

static int larger_int(int a, int b) {
    return a > b ? a : b;
}

static int exponent_of(double x) {
    return x == 0 ? NONE : ilogb(x);
}

//> bound.tensor-core
double sinkproof_core_add(sinkproof_rounding core, double sum, size_t n, const double *a_k,
                          const double *b_k, size_t stride) {
    int e = exponent_of(sum);
    for (size_t k = 0; k < n; k++) {
        double a = a_k[k], b = b_k[k * stride];
        if (!isfinite(a) || !isfinite(b)) return sum + a * b;
        if (a != 0 && b != 0) e = larger_int(e, ilogb(a) + ilogb(b));
    }
    if (e == NONE || !isfinite(sum)) return sum;
    double aligned = cut(sum, e - core.bits);
    for (size_t k = 0; k < n; k++) aligned += cut(a_k[k] * b_k[k * stride], e - core.bits);
    if (aligned == 0) return 0;
    int fraction = core.bits < F32_FRACTION ? core.bits : F32_FRACTION;
    double y = cut(aligned, larger_int(ilogb(aligned), F32_LEAST) - fraction);
    return fabs(y) > sinkproof_format_largest(SINKPROOF_F32) ? copysign(INFINITY, y) : y;
}
//< bound.tensor-core
