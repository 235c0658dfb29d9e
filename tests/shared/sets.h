// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Honest sets, member by member, for the tests that state an operation a second time.
#ifndef SINKPROOF_TESTS_SETS_H
#define SINKPROOF_TESTS_SETS_H

#include "tests/shared/formulas.h"

// The number of members that differ from the stated ones; a NaN always differs.
static inline size_t unlike(const sinkproof_honest *x, const sinkproof_honest *stated) {
    const double a[] = {x->lo,  x->hi,     x->likely_lo, x->likely_hi, x->mid,
                        x->var, x->spread, x->bias,      x->order};
    const double b[] = {stated->lo,        stated->hi,   stated->likely_lo,
                        stated->likely_hi, stated->mid,  stated->var,
                        stated->spread,    stated->bias, stated->order};
    size_t wrong = 0;
    for (size_t i = 0; i < 9; i++) wrong += !(a[i] == b[i]);
    return wrong;
}

static inline bool same(const sinkproof_honest *x, const sinkproof_honest *y) {
    return unlike(x, y) == 0;
}

static inline double larger(double x, double y) {
    return x > y ? x : y;
}

#endif
