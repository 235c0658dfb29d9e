// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sets of gradient sums, written out a second time: what each policy declares going back, the
// radius of a sum, and that of a weight which is recomputed from a log-sum-exp. A set that became
// wider or narrower than its formula fails.
#include "proofs/bounds/gradient_sums.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *policy;
    double u, narrow_u;
    bool kept, through_maximum, stored_between;
} declared[] = {{"real-f64", 0x1p-53, 0, false, true, false},
                {"f32", 0x1p-24, 0, false, true, false},
                {"bf16-operands", 0x1p-24, 0x1p-8, false, true, true},
                {"openai-bf16", 0x1p-24, 0x1p-8, true, false, true},
                {"hf-bf16", 0x1p-24, 0x1p-8, true, true, true},
                {"hf-llama-bf16", 0x1p-24, 0x1p-8, true, false, true},
                {"bf16", 0x1p-24, 0x1p-8, false, true, true},
                {"f16", 0x1p-24, 0x1p-11, false, true, true},
                {"flash-bf16", 0x1p-24, 0x1p-8, false, false, false},
                {"vllm-bf16", 0x1p-24, 0x1p-8, false, false, false},
                {"f32,acc=bf16", 0x1p-8, 0, false, true, false}};

static void policies(void) {
    for (size_t p = 0; p < sizeof declared / sizeof *declared; p++) {
        sinkproof_policy policy;
        sinkproof_gradient_arithmetic a;
        sinkproof_point where;
        must(sinkproof_policy_parse(declared[p].policy, &policy, NULL));
        bool stated = sinkproof_gradient_arithmetic_of(&policy, &a, &where);
        ok(stated && a.u == declared[p].u && a.narrow_u == declared[p].narrow_u &&
               a.weights_kept == declared[p].kept &&
               a.through_maximum == declared[p].through_maximum &&
               a.stored_between == declared[p].stored_between,
           "grad.rounded what %s declares going back: u=%g narrow=%g kept=%d maximum=%d stored=%d",
           declared[p].policy, a.u, a.narrow_u, a.weights_kept, a.through_maximum,
           a.stored_between);
    }
    sinkproof_policy policy;
    sinkproof_gradient_arithmetic a;
    sinkproof_point where;
    must(sinkproof_policy_parse("f32,A5.k=e4m3", &policy, NULL));
    ok(!sinkproof_gradient_arithmetic_of(&policy, &a, &where) && where == AT_A5_K,
       "grad.rounded of a format of eight bits nothing is stated, and its point is named");
}

static double gamma_of(double k, double u) {
    return k * u / (1 - k * u);
}

static bool is_near(double got, double formula, double share) {
    return got >= formula && got <= formula * (1 + share);
}

static void sums(void) {
    const char *const names[] = {"f32", "bf16", "real-f64"};
    for (size_t p = 0; p < 3; p++) {
        sinkproof_policy policy;
        sinkproof_gradient_arithmetic a;
        sinkproof_point where;
        must(sinkproof_policy_known(names[p], &policy) &&
             sinkproof_gradient_arithmetic_of(&policy, &a, &where));
        const sinkproof_near x[3] = {{2, 0.125}, {-1, 0}, {0.5, 0.25}},
                             y[3] = {{3, 0}, {4, 0}, {-8, 1}};
        sinkproof_near z = sinkproof_gradient_dot(&a, 3, x, 1, y, 1, 2, 1);
        double size = 2.125 * 3 + 4 + 0.75 * 9, open = 0.125 * 3 + (0.25 * 9 + 0.5);
        double grown = (1 + gamma_of(5, a.u)) * (1 + gamma_of(1, a.narrow_u));
        double radius = (grown - 1 + gamma_of(7, 0x1p-53)) * size + grown * open;
        ok(z.mid == 6 - 4 - 4 && is_near(z.off, radius, 1e-9),
           "grad.rounded a sum under %s: radius=%.17g formula=%.17g", names[p], z.off, radius);
    }
}

static void weights(void) {
    sinkproof_policy policy;
    sinkproof_gradient_arithmetic a;
    sinkproof_point where;
    must(sinkproof_policy_known("f32", &policy) &&
         sinkproof_gradient_arithmetic_of(&policy, &a, &where));
    const sinkproof_near z[3] = {{1, 0}, {-2, 0}, {3.5, 0}};
    double lse = log(exp(1.0) + exp(-2.0) + exp(3.5) + exp(0.25));
    sinkproof_near l = sinkproof_near_lse(&a, 3, z, 0.25), p = sinkproof_near_weight(&a, z[0], l);
    // Three sums and the exponentials, the span of the scores, the logarithm, the maximum and
    // base 2.
    double units = 3 + 4 + 4 * 2 + 4 * 5.5 + (2 * 2 + 4) * (lse - 3.5 + 1) + 6 * (lse + 3.5);
    ok(fabs(l.mid - lse) <= l.off && is_near(l.off, units * a.u, 1e-5),
       "grad.rounded a log-sum-exp of float32: %.6g of its unit roundoff, formula=%.6g",
       l.off / a.u, units);
    double weight = exp(1 - lse), off = weight * (l.off + 8 * a.u * (1 + 2 * fabs(lse)));
    ok(fabs(p.mid - weight) <= p.off && p.off > weight * l.off && p.off < 1.5 * off,
       "grad.rounded a weight recomputed from it: %.3g of the formula", p.off / off);
}

int main(void) {
    policies();
    sums();
    weights();
    return tap_done();
}
