// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The spread of synthetic weights. A row of fan_in weights of spread s maps an input of root
// mean square 1 to an output of spread s sqrt(fan_in), so every matrix is drawn with
// s = target / sqrt(fan_in), and the targets follow the signal through a layer:
//
//   embedding 1; a norm's scale is uniform in (0.5, 1.5), so normed inputs have size about 1
//   q and k 1.05 each: scores have spread 1.05^2 times YaRN's concentration squared, 1.81: 2
//   v 1; the mixture over keys and sink leaves about 0.4 of it; output projection 1.5: 0.6
//   router logits 1.5: the chosen experts' weights are unequal, margins sometimes thin
//   gate and up 3: two in a hundred gates beyond the clamp at 7; swish(gate) (up + 1) is near 7
//   down 0.17 of that: each expert contributes about 1.1, the mixture of the chosen ones about 0.6
//   72 sublayers of 0.6 on top of an embedding of 1: a residual of about 5 after 36 layers
//
// Only + - * / of binary64 are used, which IEEE 754 fixes to the bit.
#include "model/synthetic.h"

// Spreads in thousandths, so that they are exact. Slots without one are a norm's scale or the
// sinks.
static const int targets[SINKPROOF_SLOTS] = {
    [SINKPROOF_W_Q] = 1050,         [SINKPROOF_B_Q] = 250,          [SINKPROOF_W_K] = 1050,
    [SINKPROOF_B_K] = 250,          [SINKPROOF_W_V] = 1000,         [SINKPROOF_B_V] = 200,
    [SINKPROOF_W_O] = 1500,         [SINKPROOF_B_O] = 100,          [SINKPROOF_W_ROUTER] = 1500,
    [SINKPROOF_B_ROUTER] = 300,     [SINKPROOF_W_UP] = 3000,        [SINKPROOF_B_UP] = 500,
    [SINKPROOF_W_DOWN] = 170,       [SINKPROOF_B_DOWN] = 150,       [SINKPROOF_EMBEDDING] = 1000,
    [SINKPROOF_UNEMBEDDING] = 2500, [SINKPROOF_POSITIONS] = 500,    [SINKPROOF_ATTN_NORM_B] = 100,
    [SINKPROOF_MLP_NORM_B] = 100,   [SINKPROOF_FINAL_NORM_B] = 100,
};

// The variance of t, 2^33 / 12 up to a unit (two uniform numbers of width 2^16).
static const double triangular_variance = 4294967296.0 / 6;
// The mean square of the 16 E2M1 values, and of 2^-geometric.
static const double code_mean_square = 68.5 / 8, geometric_mean_square = 4.0 / 7;

// gain 2^exponent so that gain^2 4^exponent var(t) = variance, 64 <= gain <= 127.
static void set_bf16_scale(element_recipe *recipe, double variance) {
    double square = variance / triangular_variance;
    for (recipe->exponent = 0; square < 64 * 64; recipe->exponent--) square *= 4;
    for (recipe->gain = 64; (recipe->gain + 1) * (recipe->gain + 1) <= square;) recipe->gain++;
}

// The scale byte leaves a factor in [1, 4) of mean square, which the boost supplies: one step
// up (a factor 4) with probability p multiplies the mean square by 1 + 3 p.
static void set_mxfp4_scale(element_recipe *recipe, double variance) {
    double ratio = variance / (code_mean_square * geometric_mean_square);
    for (recipe->scale = 127; ratio < 1; recipe->scale--) ratio *= 4;
    for (; ratio >= 4; recipe->scale++) ratio /= 4;
    recipe->boost = (int)((ratio - 1) / 3 * 256);
}

static element_recipe *slot_recipe(synthetic_model *synthetic, sinkproof_slot slot) {
    return &synthetic->recipes[slot_stream(slot)];
}

// The variance that gives outputs a spread of `thousandths` / 1000 for an input of size 1.
static double slot_variance(const sinkproof_config *config, sinkproof_slot slot, int thousandths) {
    size_t count, rows, cols;
    sinkproof_slot_shape(slot, config, &count, &rows, &cols);
    bool spread_over_inputs = !sinkproof_slot_is_vector(slot, config) &&
                              slot != SINKPROOF_EMBEDDING && slot != SINKPROOF_POSITIONS;
    double fan_in = spread_over_inputs ? (double)cols : 1;
    return (double)thousandths * thousandths / 1e6 / fan_in;
}

void synthetic_recipes_init(synthetic_model *synthetic, const sinkproof_config *config,
                            uint64_t seed) {
    // 1 + t / 2^17; and 10 t / 2^16.
    static const element_recipe norm = {
        .uniform = true, .offset = 1 << 17, .gain = 1, .exponent = -17};
    static const element_recipe sinks = {.uniform = true, .gain = 10, .exponent = -16};
    *synthetic = (synthetic_model){.seed = seed};
    for (int i = 0; i < SINKPROOF_SLOTS; i++) {
        sinkproof_slot slot = (sinkproof_slot)i;
        element_recipe *recipe = slot_recipe(synthetic, slot);
        double variance = slot_variance(config, slot, targets[i]);
        if (sinkproof_slot_is_expert_matrix(slot, config))
            set_mxfp4_scale(recipe, variance);
        else if (targets[i] > 0)
            set_bf16_scale(recipe, variance);
        else
            *recipe = slot == SINKPROOF_SINKS ? sinks : norm;
    }
}

void synthetic_recipes_plant(synthetic_model *synthetic, const sinkproof_config *config,
                             const planted_model *planted) {
    synthetic->planted = planted;
    for (size_t i = 0; i < planted->n_spreads; i++) {
        sinkproof_slot slot = planted->spreads[i].slot;
        double variance = slot_variance(config, slot, planted->spreads[i].thousandths);
        set_bf16_scale(slot_recipe(synthetic, slot), variance);
    }
}
