// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A9.max of the honest set of the softmax with a sink (bound.softmax-sink): the row's maximum is
// subtracted, and the difference rounded, before anything else.
#include "proofs/bounds/softmax_row.h"

sinkproof_honest set_larger(sinkproof_honest x, sinkproof_honest y) {
    return (sinkproof_honest){.lo = fmax(x.lo, y.lo),
                              .hi = fmax(x.hi, y.hi),
                              .likely_lo = fmax(x.likely_lo, y.likely_lo),
                              .likely_hi = fmax(x.likely_hi, y.likely_hi),
                              .mid = fmax(x.mid, y.mid)};
}

// After the subtraction no logit is above 0.
void logits_subtract_maximum(const sinkproof_setting *s, size_t n, sinkproof_honest *z_j) {
    sinkproof_honest m = sinkproof_exact_set(-INFINITY);
    for (size_t j = 0; j < n; j++) m = set_larger(m, z_j[j]);
    for (size_t j = 0; j < n; j++) {
        if (z_j[j].hi == -INFINITY) continue;
        sinkproof_honest t = sinkproof_honest_inside(s, sinkproof_honest_sub(z_j[j], m));
        t = sinkproof_honest_at(s, AT_A9_MAX, t);
        t.hi = fmin(t.hi, 0), t.likely_hi = fmin(t.likely_hi, 0);
        z_j[j] = t;
    }
}

//> bound.overflow
// A difference of two infinities is NaN. So every weight of the row may be NaN if some logit may be
// +infinity, or if all logits may be -infinity.
bool weights_may_be_nan(size_t n, const sinkproof_honest *z_j, sinkproof_honest b) {
    bool infinite = !(b.hi < INFINITY), empty = b.lo == -INFINITY;
    for (size_t j = 0; j < n; j++) {
        infinite = infinite || !(z_j[j].hi < INFINITY);
        empty = empty && z_j[j].lo == -INFINITY;
    }
    return infinite || empty;
}
//< bound.overflow

bool scores_exceed_exp(size_t n, const sinkproof_honest *z_j, sinkproof_honest b) {
    bool wide = b.lo != b.hi && !(b.hi - b.lo < 0x1p9);
    for (size_t j = 0; j < n; j++)
        wide = wide || (z_j[j].lo != z_j[j].hi && !(z_j[j].hi - z_j[j].lo < 0x1p9));
    return wide;
}
