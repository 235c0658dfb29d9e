// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Evidence by counting about a whole model: its biases, its parameters, and the number of tokens
// that corresponds to its hours of training.
#include "audit/verify/verify_draw.h"
#include "model/model.h"
#include "proofs/exact/parameters.h"
#include "proofs/truth/truth.h"

#include <math.h>

// model.biases: each linear layer of a block has one bias for each of its outputs.
void verify_biases(verify_measure *result, uint64_t seed) {
    (void)seed;
    sinkproof_error error = {""};
    sinkproof_model *model = NULL;
    if (!sinkproof_model_open("synthetic:tiny", &model, &error)) return; // nothing is counted
    for (size_t l = 0; l < sinkproof_model_config(model)->n_layers; l++) {
        sinkproof_layer layer = sinkproof_model_layer(model, l);
        const sinkproof_matrix *w[] = {&layer.w_q,      &layer.w_k,  &layer.w_v,   &layer.w_o,
                                       &layer.w_router, &layer.w_up, &layer.w_down};
        const sinkproof_matrix *b[] = {&layer.b_q,      &layer.b_k,  &layer.b_v,   &layer.b_o,
                                       &layer.b_router, &layer.b_up, &layer.b_down};
        for (size_t k = 0; k < sizeof w / sizeof *w; k++) {
            double outputs = (double)(w[k]->count * w[k]->rows);
            double numbers = (double)(b[k]->count * b[k]->rows * b[k]->cols);
            verify_add_comparison(result, fabs(numbers - outputs), 0);
        }
    }
    sinkproof_model_close(model);
}

// model.parameters: the table of weights against the written-out sizes of every layer.
void verify_parameters(verify_measure *result, uint64_t seed) {
    (void)seed;
    static const char *const names[] = {"gpt-oss-20b", "gpt-oss-120b"};
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        sinkproof_config c;
        if (!sinkproof_config_named(names[m], &c)) continue; // nothing is counted
        size_t q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim, d = c.hidden;
        size_t attention = (q + 2 * kv) * (d + 1) + c.n_heads + d * (q + 1) + d;
        size_t router = c.n_experts * (d + 1) + d, head = c.vocab * d;
        size_t expert = 2 * c.inter * (d + 1) + d * (c.inter + 1);
        size_t shared = c.n_layers * (attention + router) + d;
        sinkproof_parameters n = sinkproof_parameters_count(&c);
        double total = (double)(shared + c.n_layers * c.n_experts * expert + 2 * head);
        double active = (double)(shared + c.n_layers * c.n_chosen * expert + head);
        verify_add_comparison(result, fabs((double)n.total - total), 0);
        verify_add_comparison(result, fabs((double)n.active - active), 0);
    }
}

// train.tokens: 2.1 million hours at 989.5 Tflop/s, both known to their rounding: any hours and
// peak in these ranges give a number of tokens in the ball. The tokens of a random pair err by six
// roundings.
void verify_tokens(verify_measure *result, uint64_t seed) {
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-120b", &config)) return; // nothing is measured
    double active = (double)sinkproof_parameters_count(&config).active;
    arb_t hours, peak, used, tokens;
    balls_init(hours, peak, used, tokens);
    for (int k = 0; k < 400; k++) {
        double h = between(&seed, 2.05e6, 2.15e6), p = between(&seed, 989.25e12, 989.75e12);
        double u = between(&seed, 0.2, 0.6), drawn = h * p * u * 3600 / 6 / active;
        arb_set_d(hours, 2.1e6);
        mag_set_d(arb_radref(hours), 0.05e6);
        arb_set_d(peak, 989.5e12);
        mag_set_d(arb_radref(peak), 0.25e12);
        arb_set_d(used, u);
        sinkproof_truth_training_tokens(tokens, &config, hours, peak, used, VERIFY_BITS);
        double off = fabs(drawn - arf_get_d(arb_midref(tokens), ARF_RND_NEAR));
        double roundings = sinkproof_gamma(7, 0x1p-53) * drawn;
        verify_add_comparison(result, off, mag_get_d(arb_radref(tokens)) + roundings);
    }
    balls_clear(hours, peak, used, tokens);
}
