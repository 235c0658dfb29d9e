// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The masks against their definition, and through the softmax: hidden keys weigh exactly nothing.
#include "tests/shared/reference.h"

// The definition, key by key: j <= i and, with a window, j > i - window.
static bool visible(size_t window, long i, long j) {
    return j <= i && (window == 0 || j > i - (long)window);
}

static void test_definition(size_t window, const char *id) {
    size_t wrong = 0, checked = 0;
    for (long i = 0; i < 300; i++)
        for (long j = 0; j < 300; j++, checked++) {
            bool seen = j <= i && j >= (long)sinkproof_mask_first(window, (size_t)i);
            wrong += seen != visible(window, i, j);
        }
    ok(wrong == 0, "%s window=%zu worst=%zu bound=0 of %zu pairs", id, window, wrong, checked);
}

// Zero scores and a zero sink: every visible key weighs 1 / (visible + 1), every other one 0.
static void test_weights(size_t window, const char *id) {
    enum { N = 20 };
    sinkproof_policy policy = policy_of("real-f64");
    static double s[N * N], alpha[N * (N + 1)], b_i[N];
    sinkproof_block block = {.rows = N, .keys = N, .first = 0, .window = window, .head_dim = 4};
    sinkproof_softmax_sink(&policy, &block, b_i, s, alpha);
    size_t wrong = 0;
    for (long i = 0; i < N; i++) {
        long count = 0;
        for (long j = 0; j < N; j++) count += visible(window, i, j);
        for (long j = 0; j <= N; j++) {
            double expected = j == N || visible(window, i, j) ? 1.0 / (double)(count + 1) : 0;
            wrong += alpha[i * (N + 1) + j] != expected;
        }
        wrong += count != (window == 0 || i + 1 < (long)window ? i + 1 : (long)window);
    }
    ok(wrong == 0, "%s weights window=%zu worst=%zu bound=0", id, window, wrong);
}

int main(void) {
    test_definition(0, "mask.causal");
    for (size_t w = 1; w <= 3; w++) test_definition(w, "mask.window");
    for (size_t w = 127; w <= 129; w++) test_definition(w, "mask.window");
    test_weights(0, "mask.causal");
    test_weights(1, "mask.window");
    test_weights(8, "mask.window");
    return tap_done();
}
