// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Scores, weighted values and the output projection on small integers, where every sum is exact:
// the right head, the right strides, the right keys; and heads side by side equal the sum over
// heads.
#include "tests/shared/reference.h"

enum { N = 11, HEADS = 6, KV = 2, DIM = 4, WIDTH = HEADS * DIM, HIDDEN = 10, FIRST = 3 };
enum { KEYS = FIRST + N }; // FIRST tokens were cached before

static double q[N * WIDTH], k[KEYS * KV * DIM], v[KEYS * KV * DIM], o[N * WIDTH];

static sinkproof_block block_of(size_t window) {
    return (sinkproof_block){.rows = N,
                             .keys = KEYS,
                             .first = FIRST,
                             .window = window,
                             .head_dim = DIM,
                             .q_stride = WIDTH,
                             .kv_stride = KV * DIM};
}

static void draw(uint64_t *state) {
    fill_integers(state, 50, N * WIDTH, q);
    fill_integers(state, 50, KEYS * KV * DIM, k);
    fill_integers(state, 50, KEYS * KV * DIM, v);
}

// s = q . k / 2 (head_dim 4), of every key, masked or not.
static void test_scores(void) {
    sinkproof_policy real = policy_of("real-f64");
    sinkproof_block block = block_of(0);
    uint64_t state = 53;
    double s[N * KEYS];
    size_t wrong = 0;
    draw(&state);
    for (size_t h = 0; h < HEADS; h++) {
        size_t g = h / (HEADS / KV);
        sinkproof_scores(&real, &block, q + h * DIM, k + g * DIM, s);
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < KEYS; j++) {
                int sum = 0;
                for (size_t d = 0; d < DIM; d++)
                    sum += (int)q[(i * HEADS + h) * DIM + d] * (int)k[(j * KV + g) * DIM + d];
                wrong += s[i * KEYS + j] != (double)sum / 2;
            }
    }
    ok(wrong == 0, "attn.score exact on integers worst=%zu bound=0 seed=53", wrong);
}

// Both roundings: q . k in bf16, then times 1/2, which is exact.
static void test_score_rounding(void) {
    sinkproof_policy policy = policy_of("openai-bf16");
    sinkproof_block block = block_of(0);
    uint64_t state = 59;
    double s[N * KEYS];
    size_t wrong = 0, rounded = 0;
    draw(&state);
    sinkproof_scores(&policy, &block, q, k, s);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < KEYS; j++) {
            double sum = 0;
            for (size_t d = 0; d < DIM; d++) sum += q[i * WIDTH + d] * k[j * KV * DIM + d];
            wrong += s[i * KEYS + j] != sinkproof_round(SINKPROOF_BF16, sum) / 2;
            rounded += s[i * KEYS + j] != sum / 2;
        }
    ok(wrong == 0 && rounded > 0,
       "attn.score in bf16 worst=%zu bound=0 (%zu of %d rounded) seed=59", wrong, rounded,
       N * KEYS);
}

// Weights that are integers over 16: sums are exact. The sink's column and masked keys add nothing,
// whatever stands there.
static void test_values(size_t window) {
    sinkproof_policy real = policy_of("real-f64");
    sinkproof_block block = block_of(window);
    uint64_t state = 61;
    double alpha[N * (KEYS + 1)];
    size_t wrong = 0;
    draw(&state);
    for (size_t i = 0; i < N * (KEYS + 1); i++) alpha[i] = next_integer(&state, 16) / 16;
    for (size_t h = 0; h < HEADS; h++) {
        size_t g = h / (HEADS / KV);
        sinkproof_values(&real, &block, alpha, v + g * DIM, o + h * DIM);
        for (size_t i = 0; i < N; i++)
            for (size_t d = 0; d < DIM; d++) {
                double sum = 0;
                for (size_t j = 0; j < KEYS; j++) {
                    bool seen = j <= FIRST + i && (window == 0 || j + window > FIRST + i);
                    if (seen) sum += alpha[i * (KEYS + 1) + j] * v[(j * KV + g) * DIM + d];
                }
                wrong += o[(i * HEADS + h) * DIM + d] != sum;
            }
    }
    ok(wrong == 0, "sink.attn-values window=%zu exact on integers worst=%zu bound=0 seed=61",
       window, wrong);
}

// [head_1 ... head_H] W^O + b^O against the sum over heads of head_h W^O_h, the block rows of W^O.
static void test_output(void) {
    static double w[HIDDEN * WIDTH], b[HIDDEN], out[N * HIDDEN], work[4096];
    sinkproof_policy real = policy_of("real-f64");
    uint64_t state = 67;
    size_t wrong = 0;
    fill_integers(&state, 1000, HIDDEN * WIDTH, w);
    fill_integers(&state, 1000, HIDDEN, b);
    fill_integers(&state, 1000, N * WIDTH, o);
    sinkproof_layer layer = {.w_o = matrix_of(w, 1, HIDDEN, WIDTH),
                             .b_o = matrix_of(b, 1, 1, HIDDEN)};
    stage_output(&real, &layer, N, o, out, work);
    for (size_t i = 0; i < N; i++)
        for (size_t c = 0; c < HIDDEN; c++) {
            double sum = b[c];
            for (size_t h = 0; h < HEADS; h++)
                for (size_t d = 0; d < DIM; d++)
                    sum += o[(i * HEADS + h) * DIM + d] * w[c * WIDTH + h * DIM + d];
            wrong += out[i * HIDDEN + c] != sum;
        }
    ok(wrong == 0, "sink.attn-concat = the sum over heads worst=%zu bound=0 seed=67", wrong);
}

int main(void) {
    test_scores();
    test_score_rounding();
    test_values(0);
    test_values(1);
    test_values(5);
    test_output();
    return tap_done();
}
