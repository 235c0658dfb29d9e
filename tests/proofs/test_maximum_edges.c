// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Scores minus their maximum, where some scores have no lower bound. A score of -infinity stays
// -infinity, alone or beside others. From a score that may be any number below its upper end, the
// maximum is subtracted. 0.01 CPU seconds.
#include "tests/shared/sets.h"

#include "proofs/bounds/softmax_row.h"

int main(void) {
    enum { N = 5, NONE = 3 };
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    const sinkproof_honest none = sinkproof_exact_set(-INFINITY);
    sinkproof_honest z_j[N + 1] = {{-2, 1, -1, 0.5, 0.25, 0.01, 0.01, 0.001, 0},
                                   {-INFINITY, 3, -INFINITY, 2, 1, 0.02, 0.02, 0.002, 0},
                                   sinkproof_exact_set(1.75),
                                   none,
                                   sinkproof_exact_set(-40),
                                   none}; // the last is no score
    sinkproof_honest before_j[N + 1], largest = none;
    memcpy(before_j, z_j, sizeof z_j);
    for (int j = 0; j < N; j++) largest = set_larger(largest, z_j[j]);
    logits_subtract_maximum(&s, N, z_j);
    int apart = 0;
    for (int j = 0; j < N; j++) {
        sinkproof_honest t = before_j[j];
        if (j != NONE) {
            t = sinkproof_honest_inside(&s, sinkproof_honest_sub(t, largest));
            t = sinkproof_honest_at(&s, AT_A9_MAX, t);
            t.hi = fmin(t.hi, 0), t.likely_hi = fmin(t.likely_hi, 0);
        }
        apart += !same(&z_j[j], &t);
    }
    apart += !same(&z_j[N], &none);
    ok(apart == 0, "bound.softmax-sink %d scores less their maximum: worst=%d bound=0", N, apart);
    sinkproof_honest all_j[3] = {none, none, none};
    logits_subtract_maximum(&s, 3, all_j);
    apart = 0;
    for (int j = 0; j < 3; j++) apart += !same(&all_j[j], &none);
    ok(apart == 0, "bound.softmax-sink scores of -infinity alone stay so: worst=%d bound=0", apart);
    return tap_done();
}
