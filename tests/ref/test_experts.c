// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Linear layers and the mixture of experts: exact on integers, the same bits for any company of
// tokens, grouped by expert or one by one; the order of the mixture's sum.
#include "tests/shared/reference.h"

enum { N = 19, HIDDEN = 40, INTER = 24, EXPERTS = 5, CHOSEN = 3 };

static double w_up[EXPERTS * 2 * INTER * HIDDEN], b_up[EXPERTS * 2 * INTER];
static double w_down[EXPERTS * HIDDEN * INTER], b_down[EXPERTS * HIDDEN];
static double t[N * HIDDEN], work[1 << 17];
static int32_t chosen[N * CHOSEN];

// y = W x + b in integers, for every count of tokens from 1 to N.
static void test_linear(void) {
    enum { ROWS = 13 };
    static double w[ROWS * HIDDEN], b[ROWS], x[N * HIDDEN], y[N * ROWS];
    sinkproof_policy real = policy_of("real-f64");
    uint64_t state = 37;
    size_t wrong = 0;
    fill_integers(&state, 1 << 20, ROWS * HIDDEN, w);
    fill_integers(&state, 1 << 20, ROWS, b);
    fill_integers(&state, 1 << 20, N * HIDDEN, x);
    sinkproof_matrix weight = matrix_of(w, 1, ROWS, HIDDEN), bias = matrix_of(b, 1, 1, ROWS);
    for (size_t n = 1; n <= N; n++) {
        sinkproof_linear(&real, AT_A2, n, &weight, &bias, x, y, work);
        for (size_t i = 0; i < n; i++)
            for (size_t r = 0; r < ROWS; r++) {
                int64_t sum = (int64_t)b[r];
                for (size_t c = 0; c < HIDDEN; c++)
                    sum += (int64_t)w[r * HIDDEN + c] * (int64_t)x[i * HIDDEN + c];
                wrong += y[i * ROWS + r] != (double)sum;
            }
    }
    ok(wrong == 0, "attn.qkv linear layers on integers worst=%zu bound=0 seed=37", wrong);
}

static void draw_layer(uint64_t *state, sinkproof_layer *layer) {
    fill_reals(state, 1, EXPERTS * 2 * INTER * HIDDEN, w_up);
    fill_reals(state, 1, EXPERTS * 2 * INTER, b_up);
    fill_reals(state, 1, EXPERTS * HIDDEN * INTER, w_down);
    fill_reals(state, 1, EXPERTS * HIDDEN, b_down);
    fill_reals(state, 1, N * HIDDEN, t);
    for (size_t i = 0; i < N; i++) { // distinct experts, in any order
        double g[EXPERTS];
        fill_reals(state, 1, EXPERTS, g);
        sinkproof_router_choose(EXPERTS, CHOSEN, g, chosen + i * CHOSEN);
    }
    *layer = (sinkproof_layer){.w_up = matrix_of(w_up, EXPERTS, 2 * INTER, HIDDEN),
                               .b_up = matrix_of(b_up, EXPERTS, 1, 2 * INTER),
                               .w_down = matrix_of(w_down, EXPERTS, HIDDEN, INTER),
                               .b_down = matrix_of(b_down, EXPERTS, 1, HIDDEN)};
}

// One token and one chosen expert, written out.
static void plain_expert(const sinkproof_policy *p, const sinkproof_config *config, size_t e,
                         const double *t_c, double *down_c) {
    double up[2 * INTER], act[INTER];
    for (size_t r = 0; r < 2 * INTER; r++) {
        double dot = 0;
        for (size_t c = 0; c < HIDDEN; c++) dot += w_up[(e * 2 * INTER + r) * HIDDEN + c] * t_c[c];
        dot = round_at(p, AT_M5, dot);
        up[r] = round_at(p, AT_M6, dot + b_up[e * 2 * INTER + r]);
    }
    sinkproof_swiglu(p, config->swiglu, config->inter, up, act);
    for (size_t c = 0; c < HIDDEN; c++) {
        double dot = 0;
        for (size_t f = 0; f < INTER; f++) dot += w_down[(e * HIDDEN + c) * INTER + f] * act[f];
        dot = round_at(p, AT_M9, dot);
        down_c[c] = round_at(p, AT_M10, dot + b_down[e * HIDDEN + c]);
    }
}

static void test_grouping(const char *policy_name) {
    static double down[N * CHOSEN * HIDDEN], expected[HIDDEN];
    sinkproof_policy policy = policy_of(policy_name);
    sinkproof_config config = {.n_experts = EXPERTS,
                               .n_chosen = CHOSEN,
                               .hidden = HIDDEN,
                               .inter = INTER,
                               .swiglu = {1.702, 7, 1}};
    sinkproof_expert_outputs out = {.down = down};
    sinkproof_layer layer;
    uint64_t state = 41;
    size_t wrong = 0;
    draw_layer(&state, &layer);
    stage_experts(&policy, &config, &layer, N, t, chosen, &out, work);
    for (size_t slot = 0; slot < N * CHOSEN; slot++) {
        plain_expert(&policy, &config, (size_t)chosen[slot], t + slot / CHOSEN * HIDDEN, expected);
        wrong += differing(HIDDEN, expected, down + slot * HIDDEN);
    }
    ok(stage_experts_work(&config, N) <= sizeof work / sizeof *work && wrong == 0,
       "moe.sum experts grouped or one by one, %s worst=%zu bound=0 seed=41", policy_name, wrong);
}

// Integers: the order of the experts does not change the real sum; the bias inside counts once.
static void test_mixture_exact(void) {
    sinkproof_policy real = policy_of("real-f64");
    double down[CHOSEN * HIDDEN], weights[CHOSEN], out[HIDDEN], again[HIDDEN];
    uint64_t state = 43;
    const int32_t order[CHOSEN] = {4, 0, 2};
    size_t wrong = 0;
    fill_integers(&state, 1000, CHOSEN * HIDDEN, down);
    for (size_t k = 0; k < CHOSEN; k++) weights[k] = next_integer(&state, 8) / 16;
    sinkproof_mixture(&real, 1, CHOSEN, HIDDEN, order, weights, down, out);
    for (size_t c = 0; c < HIDDEN; c++) {
        double sum = 0;
        for (size_t k = 0; k < CHOSEN; k++) sum += weights[k] * down[k * HIDDEN + c];
        wrong += out[c] != sum;
    }
    double swapped[CHOSEN * HIDDEN];
    memcpy(swapped, down + HIDDEN, 2 * HIDDEN * sizeof *down);
    memcpy(swapped + 2 * HIDDEN, down, HIDDEN * sizeof *down);
    const double turned[CHOSEN] = {weights[1], weights[2], weights[0]};
    const int32_t turned_order[CHOSEN] = {0, 2, 4};
    sinkproof_mixture(&real, 1, CHOSEN, HIDDEN, turned_order, turned, swapped, again);
    ok(wrong == 0 && differing(HIDDEN, out, again) == 0,
       "moe.sum exact in any order worst=%zu bound=0 seed=43", wrong);
}

// A rounded running sum goes in ascending expert order. In bf16 (8 bits) 1 + 2^-8 is a tie that
// falls back to 1, so 1 + 2^-8 + 2^-8 stays 1, whereas 2^-8 + 2^-8 + 1 is 1 + 2^-7.
static void test_mixture_order(void) {
    sinkproof_policy hf = policy_of("hf-bf16");
    const double weights[CHOSEN] = {1, 1, 1}, down[CHOSEN] = {1, 0x1p-8, 0x1p-8};
    const int32_t small_first[CHOSEN] = {4, 0, 2}, small_last[CHOSEN] = {0, 2, 4};
    double a, b;
    sinkproof_mixture(&hf, 1, CHOSEN, 1, small_first, weights, down, &a);
    sinkproof_mixture(&hf, 1, CHOSEN, 1, small_last, weights, down, &b);
    ok(a == 1 + 0x1p-7 && b == 1, "moe.sum running sum in ascending expert order");
}

int main(void) {
    test_linear();
    test_grouping("real-f64");
    test_grouping("f32");
    test_grouping("openai-bf16");
    test_mixture_exact();
    test_mixture_order();
    return tap_done();
}
