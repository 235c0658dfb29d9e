// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The values that an operation may read where the stored value is rounded and the unrounded one may
// still be available (bound.unrounded).
#include "proofs/bounds/bounds.h"

//> bound.unrounded
// The numbers that round to v lie within half a step on either side; below a power of two the step
// towards zero is the smaller one.
static void interval_rounding_to(sinkproof_format format, double v, double *lo, double *hi) {
    double size = fabs(v), outward = sinkproof_ulp(format, size) / 2;
    double inward = size > 0 ? sinkproof_ulp(format, step_down(size)) / 2 : outward;
    *lo = add_down(v, v > 0 ? -inward : -outward);
    *hi = sinkproof_add_up(v, v < 0 ? inward : outward);
}

// The emulation reads the stored value. Its distance from the unrounded value is the same at every
// read, so it is systematic.
sinkproof_honest sinkproof_honest_read(sinkproof_format format, double v,
                                       sinkproof_honest unrounded) {
    sinkproof_honest x = sinkproof_exact_set(v);
    double lo = v, hi = v;
    if (format == SINKPROOF_REAL) return x;
    if (!isfinite(v)) // stored as an infinity, while the unrounded value may be finite
        return (sinkproof_honest){-INFINITY, INFINITY, -INFINITY, INFINITY, v, 0, 0, 0, 0};
    interval_rounding_to(format, v, &lo, &hi);
    lo = fmax(lo, unrounded.lo), hi = fmin(hi, unrounded.hi);
    // the stored value cannot come from this set, and its own point has reported it
    if (!(lo <= hi)) return x;
    x.lo = x.likely_lo = fmin(v, lo), x.hi = x.likely_hi = fmax(v, hi);
    x.bias = fmax(hi - v, v - lo);
    return x;
}
//< bound.unrounded
