// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Estimates the bits that a run in balls loses. Through a product with a matrix of K random
// columns, values grow by sqrt(K) times a weight's size, radii by K times its mean: by sqrt(2K/pi)
// more. A layer has four products in a row (queries, keys and values; the output; the perceptron's
// two), and a score is another, of d' terms. Two constants stand for the losses of norms,
// exponentials, activation and the sums of attention, and of the first and the last step: no
// measured shape lost more (tests/audit/test_truth_bits.py).
#include "audit/verify/truth_bits.h"

#include <math.h>

static const double layer_rest = 4, ends = 8;

static double product_loss(size_t columns) { // log2 sqrt(2K/pi)
    static const double pi = 3.14159265358979323846;
    return columns > 1 ? 0.5 * log2(2 * (double)columns / pi) : 0;
}

// Of one layer.
static double layer_loss(const sinkproof_config *config) {
    return 2 * product_loss(config->hidden) + product_loss(config->n_heads * config->head_dim) +
           product_loss(config->inter) + product_loss(config->head_dim) + layer_rest;
}

double sinkproof_truth_loss(const sinkproof_config *config, size_t layers) {
    return (double)layers * layer_loss(config) + product_loss(config->hidden) + ends;
}

long sinkproof_truth_bits_for(double lost) {
    double wanted = 64 * ceil((lost + TRUTH_BITS_LEFT) / 64);
    if (!(wanted > TRUTH_BITS_LEAST)) return TRUTH_BITS_LEAST;
    return wanted < 1 << 20 ? (long)wanted : 1 << 20;
}

size_t sinkproof_truth_last_layer(const sinkproof_config *config, size_t layers, double bits) {
    double each = layer_loss(config);
    for (size_t layer = 0; layer < layers; layer++)
        if (!((double)(layer + 1) * each + ends < bits)) return layer;
    return layers;
}
