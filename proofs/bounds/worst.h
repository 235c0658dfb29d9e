// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The largest and the smallest of some measurements. fmax(worst, seen) drops a NaN, so that an
// engine that computes only NaN is off "by at most 0", and `if (!(seen <= worst)) worst = seen`
// keeps it only until the next number. Here a NaN is worse than every number; once seen it stays,
// and fails each later comparison.
#ifndef SINKPROOF_WORST_H
#define SINKPROOF_WORST_H

#include <stdbool.h>

static inline bool sinkproof_is_worse(double worst, double seen) { // than the worst so far
    return worst == worst && !(seen <= worst);
}

static inline double sinkproof_keep_worst(double worst, double seen) {
    return sinkproof_is_worse(worst, seen) ? seen : worst;
}

static inline double sinkproof_keep_least(double least, double seen) {
    return least != least || seen >= least ? least : seen;
}

static inline long double keep_worst_long(long double worst, long double seen) {
    return worst == worst && !(seen <= worst) ? seen : worst;
}

static inline long double keep_least_long(long double least, long double seen) {
    return least != least || seen >= least ? least : seen;
}

#endif
