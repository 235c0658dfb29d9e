// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The lanes' exponential: one float in 512 (`make exhaustive` asks all of them), the floats beside
// every place where the reduction changes n, the edges, and what overflows, underflows or is NaN.
#include "fast/lanes/exp.h"
#include "proofs/bounds/worst.h"
#include "tests/shared/exp_floats.h"
#include "tests/shared/tap.h"

// The worst error at the 128 floats around each of (n + shift) ln 2: shift 1/2, where n changes and
// the reduced argument is largest; 0, where it is smallest.
static exp_worst around(double shift, int first, int last) {
    exp_worst worst = {0};
    for (int n = first; n <= last; n++) {
        double center = (n + shift) * 0x1.62e42fefa39efp-1;
        float x = (float)center;
        for (int i = 0; i < 64; i++) x = nextafterf(x, -INFINITY);
        for (int i = 0; i < 128; i++, x = nextafterf(x, INFINITY)) {
            if (x < -104 || x > 88.722835) continue;
            double error = exp_error((double)sinkproof_lanes_exp(x), exp_entry(x, 0, 0), 24, -149);
            if (sinkproof_is_worse(worst.ulp, error)) worst.ulp = error, worst.at = (double)x;
            worst.floats++;
        }
    }
    return worst;
}

static void edges(void) {
    float largest = sinkproof_lanes_exp(exp_bits(0x42b17217)), half = -0x1.9fe368p+6f;
    ok(sinkproof_lanes_exp(0.0f) == 1 && sinkproof_lanes_exp(-0.0f) == 1,
       "bound.exp lanes: exp(0) = exp(-0) = 1 exactly");
    ok(largest < INFINITY && largest > 0x1.ffff00p+127f &&
           sinkproof_lanes_exp(exp_bits(0x42b17218)) == INFINITY,
       "bound.exp lanes: the last finite result %a, and infinity after it", (double)largest);
    ok(sinkproof_lanes_exp(half) == 0x1p-149f && sinkproof_lanes_exp(-104.0f) == 0,
       "bound.exp lanes: the least subnormal at %a, 0 at -104", (double)half);
    ok(exp_of_tiny_is_one(4093), "bound.exp of tiny numbers is 1, lanes and libm");
    ok(exp_of_far_is_an_end(sinkproof_lanes_exp, 251),
       "bound.exp lanes: infinity, 0 and NaN beyond both ends");
}

static bool within(exp_worst worst, double bound, size_t floats) {
    return worst.ulp + EXP_REFERENCE <= bound && worst.floats >= floats;
}

int main(void) {
    enum { STRIDE = 512 };
    const double normal = SINKPROOF_EXP_ULP, subnormal = EXP_ULP_SUBNORMAL;
    exp_worst sample = exp_floats(exp_binary32(sinkproof_lanes_exp), STRIDE);
    ok(within(sample, normal, 1000000),
       "bound.exp lanes at one float in %d worst=%.6f bound=%.6g ulp at %a of %zu", STRIDE,
       sample.ulp, normal, sample.at, sample.floats);
    exp_worst below = exp_floats(exp_subnormal(sinkproof_lanes_exp), 16);
    ok(within(below, subnormal, 100000),
       "bound.exp lanes, subnormal results worst=%.6f bound=%.6g units of 2^-149 at %a of %zu",
       below.ulp, subnormal, below.at, below.floats);
    exp_worst turn = around(0.5, -125, 127), low = around(0.5, -151, -127),
              zero = around(0, -125, 128);
    ok(within(turn, normal, 30000),
       "bound.exp lanes where n changes worst=%.6f bound=%.6g ulp at %a", turn.ulp, normal,
       turn.at);
    ok(within(low, subnormal, 2000),
       "bound.exp lanes where n changes, subnormal worst=%.6f bound=%.6g units of 2^-149 at %a",
       low.ulp, subnormal, low.at);
    ok(within(zero, normal, 30000), "bound.exp lanes near n ln 2 worst=%.6f bound=%.6g ulp at %a",
       zero.ulp, normal, zero.at);
    edges();
    return tap_done();
}
