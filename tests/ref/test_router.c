// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The router: ties, order, and softmax over the chosen logits against softmax over all,
// renormalised.
#include "tests/shared/reference.h"

#include <math.h>

enum { EXPERTS = 32, CHOSEN = 4 };

static void test_ties(void) {
    const double equal[6] = {1, 1, 1, 1, 1, 1}, mixed[6] = {0, 2, -1, 2, 3, 2};
    int32_t k[4];
    sinkproof_router_choose(6, 4, equal, k);
    ok(k[0] == 0 && k[1] == 1 && k[2] == 2 && k[3] == 3, "router.topk all equal");
    sinkproof_router_choose(6, 3, mixed, k);
    ok(k[0] == 4 && k[1] == 1 && k[2] == 3, "router.topk the lower index wins a tie");
    const double broken[4] = {NAN, 1, NAN, 2};
    sinkproof_router_choose(4, 4, broken, k);
    int seen = 1 << k[0] | 1 << k[1] | 1 << k[2] | 1 << k[3];
    ok(seen == 15, "router.topk NaN logits still choose distinct experts");
}

// An expert is chosen exactly when fewer than CHOSEN experts beat it (larger logit, or equal and a
// lower index), and its rank is that number.
static void test_ranks(void) {
    double g[EXPERTS];
    int32_t k[CHOSEN];
    uint64_t state = 29;
    size_t wrong = 0;
    for (int trial = 0; trial < 1000; trial++) {
        for (size_t e = 0; e < EXPERTS; e++) g[e] = next_integer(&state, 12) / 4; // many ties
        sinkproof_router_choose(EXPERTS, CHOSEN, g, k);
        for (size_t e = 0; e < EXPERTS; e++) {
            size_t beaten = 0;
            for (size_t f = 0; f < EXPERTS; f++) beaten += g[f] > g[e] || (g[f] == g[e] && f < e);
            if (beaten < CHOSEN) wrong += k[beaten] != (int32_t)e;
        }
    }
    ok(wrong == 0, "router.topk ranks worst=%zu bound=0 seed=29", wrong);
}

// M2 to M4 through the stage: w_k = e^g_k / sum over the chosen. Relative error of a weight: the
// shift's rounding moves e^x by |x| u, exp 2 u, the sum of k terms k + (their own shifts), one
// division.
static void test_weights(void) {
    enum { HIDDEN = 16 };
    sinkproof_policy policy = policy_of("real-f64");
    static double w[EXPERTS * HIDDEN], b[EXPERTS], x[HIDDEN], g[EXPERTS], weights[CHOSEN],
        work[1024];
    int32_t k[CHOSEN];
    uint64_t state = 31;
    double worst = 0, worst_all = 0;
    size_t wrong = 0, unnormalised = 0;
    for (int trial = 0; trial < 500; trial++) {
        fill_integers(&state, 8, EXPERTS * HIDDEN, w);
        fill_integers(&state, 8, EXPERTS, b);
        for (size_t c = 0; c < HIDDEN; c++) x[c] = next_integer(&state, 8) / 16;
        sinkproof_layer layer = {.w_router = matrix_of(w, 1, EXPERTS, HIDDEN),
                                 .b_router = matrix_of(b, 1, 1, EXPERTS)};
        sinkproof_router(&policy, &layer, 1, CHOSEN, x, g, k, weights, work);
        for (size_t e = 0; e < EXPERTS; e++) { // small integers: the logits are exact
            double exact = b[e];
            for (size_t c = 0; c < HIDDEN; c++) exact += w[e * HIDDEN + c] * x[c];
            wrong += g[e] != exact;
        }
        long double chosen = 0, all = 0, full = 0;
        for (size_t i = 0; i < CHOSEN; i++) chosen += expl(g[k[i]] - g[k[0]]);
        for (size_t e = 0; e < EXPERTS; e++) all += expl(g[e] - g[k[0]]);
        for (size_t i = 0; i < CHOSEN; i++) full += expl(g[k[i]] - g[k[0]]) / all;
        for (size_t i = 0; i < CHOSEN; i++) {
            long double e = expl(g[k[i]] - g[k[0]]), after = e / chosen, before = e / all / full;
            double span = g[k[0]] - g[k[CHOSEN - 1]];
            double bound = gamma53(2 * (span + 2) + (double)CHOSEN + 1);
            keep_worst(&worst, (double)(fabsl(weights[i] - after) / after) / bound);
            keep_worst(&worst_all, (double)(fabsl(weights[i] - before) / before) / bound);
            unnormalised += (double)(fabsl(weights[i] - e / all) / after) > bound;
        }
    }
    ok(wrong == 0, "router.topk exact logits worst=%zu bound=0 seed=31", wrong);
    ok(worst <= 1, "router.softmax-after ref worst=%.3g bound=1 seed=31", worst);
    ok(worst_all <= 1,
       "router.softmax-after = softmax, top-k, renormalise worst=%.3g bound=1 seed=31", worst_all);
    ok(unnormalised > 0, "router.softmax-after without renormalising %zu of 2000 weights are wrong",
       unnormalised);
}

int main(void) {
    test_ties();
    test_ranks();
    test_weights();
    return tap_done();
}
