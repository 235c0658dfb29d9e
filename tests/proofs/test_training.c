// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sizes of the released models, against the closed form of every layer and against the
// published card; and the tokens that its accelerator hours are worth, as balls.
#include "proofs/exact/parameters.h"
#include "proofs/truth/truth.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 64 };

// The same counts written out, term by term, in place of the table of weights.
static sinkproof_parameters written_out(const sinkproof_config *c) {
    size_t q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim, d = c->hidden;
    size_t attention = (q + 2 * kv) * (d + 1) + c->n_heads + d * (q + 1);
    size_t router = c->n_experts * (d + 1), norms = 2 * d;
    size_t matrices = 2 * c->inter * d + d * c->inter, biases = 2 * c->inter + d;
    size_t shared = c->n_layers * (attention + router + norms) + d, head = c->vocab * d;
    return (sinkproof_parameters){
        .total = shared + c->n_layers * c->n_experts * (matrices + biases) + 2 * head,
        .active = shared + c->n_layers * c->n_chosen * (matrices + biases) + head,
        .mxfp4 = c->n_layers * c->n_experts * matrices};
}

static void counted(const char *name, const char *total, const char *active,
                    const char *gibibytes) {
    sinkproof_config config;
    bool known = sinkproof_config_named(name, &config);
    sinkproof_parameters sizes = sinkproof_parameters_count(&config), stated = written_out(&config);
    size_t bytes = parameters_bytes(sizes);
    size_t apart = (sizes.total != stated.total) + (sizes.active != stated.active) +
                   (sizes.mxfp4 != stated.mxfp4) +
                   (bytes * 32 != stated.mxfp4 * 17 + (stated.total - stated.mxfp4) * 64);
    ok(known && apart == 0,
       "model.parameters %s: total=%zu active=%zu mxfp4=%zu bytes=%zu, as written out worst=%zu "
       "bound=0",
       name, sizes.total, sizes.active, sizes.mxfp4, bytes, apart);
    char printed[3][16];
    snprintf(printed[0], sizeof printed[0], "%.1f", (double)sizes.total / 1e9);
    snprintf(printed[1], sizeof printed[1], "%.1f", (double)sizes.active / 1e9);
    snprintf(printed[2], sizeof printed[2], "%.1f", (double)bytes / 0x1p30);
    ok(strcmp(printed[0], total) == 0 && strcmp(printed[1], active) == 0 &&
           strcmp(printed[2], gibibytes) == 0,
       "model.parameters %s: %s and %s billion, %s GiB, as its card rounds them", name, printed[0],
       printed[1], printed[2]);
}

// GPT-2 by the formula of its blocks: 124,439,808 are the released model's, positions among them.
static void tied(void) {
    sinkproof_config c;
    bool known = sinkproof_config_named("gpt2", &c);
    size_t d = c.hidden, layer = 12 * d * d + 13 * d, head = c.vocab * d;
    sinkproof_parameters sizes = sinkproof_parameters_count(&c);
    size_t met = c.n_layers * layer + 2 * d + head, apart = (sizes.active != met) + sizes.mxfp4;
    ok(known && apart == 0 && sizes.total == 124439808 && sizes.total == met + c.max_context * d,
       "model.parameters gpt2: total=%zu active=%zu, as written out worst=%zu bound=0", sizes.total,
       sizes.active, apart);
}

// Between the two models: as many layers more, as many experts more, and nothing else.
static void two_models(void) {
    sinkproof_config small, large, middle;
    sinkproof_config_named("gpt-oss-20b", &small);
    sinkproof_config_named("gpt-oss-120b", &large);
    middle = small;
    middle.n_layers = large.n_layers;
    config_alternate_windows(&middle);
    double by_layers = (double)sinkproof_parameters_count(&middle).total /
                       (double)sinkproof_parameters_count(&small).total;
    double by_experts = (double)sinkproof_parameters_count(&large).total /
                        (double)sinkproof_parameters_count(&middle).total;
    middle.n_experts = large.n_experts;
    ok(memcmp(&middle, &large, sizeof large) == 0 && by_experts > by_layers,
       "model.parameters from 20b to 120b: layers make it %.2f times as large, experts %.2f times",
       by_layers, by_experts);
}

// [low, high] as a ball.
static void between(arb_t out, const char *low, const char *high) {
    arb_t a, b;
    balls_init(a, b);
    arb_set_str(a, low, BITS);
    arb_set_str(b, high, BITS);
    arb_union(out, a, b, BITS);
    balls_clear(a, b);
}

// 2.1 million hours, rounded to two digits; 1979 Tflop/s with sparsity, half of it without, rounded
// to a whole number: both as wide as their rounding.
static void tokens_at(arb_t tokens, const char *used) {
    sinkproof_config config;
    arb_t hours, peak, u;
    balls_init(hours, peak, u);
    sinkproof_config_named("gpt-oss-120b", &config);
    between(hours, "2.05e6", "2.15e6");
    between(peak, "989.25e12", "989.75e12");
    arb_set_str(u, used, BITS);
    sinkproof_truth_training_tokens(tokens, &config, hours, peak, u, BITS);
    balls_clear(hours, peak, u);
}

// The ends of the ball against the same quotient of whole numbers in long double, whose four
// roundings (2^-62 of it) are far below the ball's own ends.
static void tokens_of_hours(void) {
    arb_t tokens, low, high;
    balls_init(tokens, low, high);
    static const char *const used[] = {"0.25", "0.3", "0.4", "0.5", "1"};
    for (size_t k = 0; k < sizeof used / sizeof *used; k++) {
        tokens_at(tokens, used[k]);
        sinkproof_config config;
        sinkproof_config_named("gpt-oss-120b", &config);
        long double n = (long double)sinkproof_parameters_count(&config).active;
        long double one = strtold(used[k], NULL) * 3600 / 6 / n;
        long double ends[2] = {one * 2.05e6L * 989.25e12L, one * 2.15e6L * 989.75e12L};
        double lower = arf_get_d(arb_midref(tokens), ARF_RND_NEAR) - mag_get_d(arb_radref(tokens));
        double upper = arf_get_d(arb_midref(tokens), ARF_RND_NEAR) + mag_get_d(arb_radref(tokens));
        // The product of two balls of relative radii r, p is too low by 2 r p; radii are rounded up
        // to 30 bits, 2^-25 in all.
        double r = 0.05 / 2.1, p = 0.25 / 989.5, slack = 2 * r * p / ((1 - r) * (1 - p)) + 0x1p-25;
        double worst = (double)fmaxl(fabsl(lower / ends[0] - 1), fabsl(upper / ends[1] - 1));
        ok(lower <= ends[0] && ends[1] <= upper && worst <= slack,
           "train.tokens at %s of the peak: %.1f to %.1f T tokens, ends worst=%.2g bound=%.2g",
           used[k], lower / 1e12, upper / 1e12, worst, slack);
    }
    // "Over 60 T": the share of the peak at which the hours are worth 60 T tokens.
    tokens_at(tokens, "1");
    arb_set_str(low, "60e12", BITS);
    arb_div(tokens, low, tokens, BITS);
    arb_set_str(low, "0.241", BITS);
    arb_set_str(high, "0.254", BITS);
    ok(arb_gt(tokens, low) && arb_lt(tokens, high),
       "train.tokens 60 T tokens are a use of %.4f of the peak, enclosed in (0.241, 0.254)",
       arf_get_d(arb_midref(tokens), ARF_RND_NEAR));
    balls_clear(tokens, low, high);
}

// What 6 N leaves out: scores and weighted values, 4 d_h H operations a key, three times for
// training; over a sequence of T tokens a sliding layer has w keys a query at most, a full one
// (T + 1) / 2 on average.
static void what_6n_leaves_out(void) {
    sinkproof_config c;
    sinkproof_config_named("gpt-oss-120b", &c);
    double linear = 6 * (double)sinkproof_parameters_count(&c).active;
    for (size_t t = 4096; t <= 131072; t *= 32) {
        double sum = 0;
        for (size_t l = 0; l < c.n_layers; l++)
            for (size_t i = 1; i <= t; i++)
                sum += (double)(c.sliding[l] && i > c.window ? c.window : i);
        double attention = 12 * (double)(c.n_heads * c.head_dim) * sum / (double)t;
        ok(attention / linear > (t == 4096 ? 0.06 : 1.8) &&
               attention / linear < (t == 4096 ? 0.065 : 1.95),
           "train.tokens attention adds %.3f of 6 N at %zu tokens", attention / linear, t);
    }
}

int main(void) {
    counted("gpt-oss-20b", "20.9", "3.6", "12.8");
    counted("gpt-oss-120b", "116.8", "5.1", "60.8");
    tied();
    two_models();
    tokens_of_hours();
    what_6n_leaves_out();
    flint_cleanup();
    return tap_done();
}
