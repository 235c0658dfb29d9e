// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Exponentials in base 2 at the edge of what is flushed (bound.form-base2): large scores, all
// roundings in the worst direction, subnormal numbers kept. A weight that the worst engine flushes
// is inside its set, and a slightly larger one is not.
#include "proofs/bounds/worst.h"
#include "tests/shared/formulas.h"

static const real U = 0x1p-24L;

// A maximum m and a key below it: how far below, so that an engine that errs all it may, one way,
// is left with 2^-126 and not more. Its scores are off by Y, its maximum by M, the constants by
// kappa, the difference by v, the exponential by e.
static real edge_of(real m, real declared, real *shared) {
    real two = gamma_of(2, U), far = 126 * logl(2), top = (1 + two) * two * m;
    for (int i = 0; i < 60; i++) { // a contraction: every error but M's is far below `far`
        real own = (1 + two) * two * fabsl(m - far);
        real after = U * ((1 + two) * far + own + top);
        far = 126 * logl(2) + log1pl(-declared) - two * far - own - after - top;
    }
    *shared = top;
    return far;
}

// The set of the key's weight beside a maximum that weighs all but nothing less than 1.
static sinkproof_honest weight_of(const sinkproof_policy *policy, double m, double z) {
    sinkproof_setting s = sinkproof_setting_for(policy, 2, STANDARD_RATE);
    sinkproof_honest z_j[2] = {sinkproof_exact_set(m), sinkproof_exact_set(z)}, alpha_j[3];
    double common;
    must(sinkproof_honest_softmax(&s, AT_A9, 2, z_j, sinkproof_exact_set(-INFINITY), alpha_j,
                                  &common));
    return alpha_j[1];
}

static void flushed(const char *forms) {
    char text[80];
    snprintf(text, sizeof text, "f32,A9=real,ftz=none,A9.form=%s", forms);
    sinkproof_policy policy = policy_named(text);
    real declared = policy.ulp[SINKPROOF_EXP] * 2 * U;
    size_t outside = 0, blind = 0, cases = 0;
    double worst = 0;
    for (double m = 100; m < 1e6; m *= 1.25, cases++) {
        real shared, far = edge_of(m, declared, &shared);
        double at = (double)(m - far), beyond = (double)(m - far + 2 * shared + 1e-5L);
        sinkproof_honest edge = weight_of(&policy, m, nextafter(at, -INFINITY));
        outside += !(edge.lo <= 0 && edge.hi > 0);
        worst = sinkproof_keep_worst(worst, edge.lo / 0x1p-126);
        blind += !(weight_of(&policy, m, beyond).lo > 0);
    }
    ok(outside == 0 && blind == 0,
       "bound.form-base2 %s: flushed at the edge, inside worst=%.3g bound=0 outside=%zu of=%zu, "
       "%zu sets hold 0 beyond it",
       forms, worst, outside, cases, blind);
}

int main(void) {
    flushed("base-2");
    return tap_done();
}
