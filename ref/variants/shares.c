// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The share of a head's attention that one key takes, in any design (doc/27-training.md). Weights
// that need not sum to 1 are measured as shares of their row, as in the lecture's tables.
#include "ref/variants/variant.h"

#include <math.h>

//> train.sinks train.star
// The j-th of the `columns` weights of one row: unchanged if softmax makes the row sum to 1, else
// its size as a share of the row's sizes.
static double weight_share(const sinkproof_variant *variant, size_t columns, const double *alpha_j,
                           size_t j) {
    double size = 0;
    if (variant->similarity == SINKPROOF_SIMILARITY_EXP &&
        variant->divisor == SINKPROOF_DIVISOR_SUM)
        return alpha_j[j];
    for (size_t every = 0; every < columns; every++) size += fabs(alpha_j[every]);
    return size > 0 ? fabs(alpha_j[j]) / size : 0;
}
//< train.sinks train.star

// The mean share of column j over the rows from `from` on.
static double mean_share(const sinkproof_variant *variant, const sinkproof_variant_result *r,
                         size_t from, size_t j) {
    //> train.sinks train.star
    double sum = 0;
    for (size_t i = from; i < r->rows; i++)
        sum += weight_share(variant, r->keys + 1, r->alpha_ij + i * (r->keys + 1), j);
    return sum / (double)(r->rows - from);
    //< train.sinks train.star
}

double variant_alpha(const sinkproof_variant *variant, const sinkproof_variant_result *r,
                     size_t k) {
    //> train.sinks
    size_t at = k + (variant->star == SINKPROOF_STAR_TOKEN); // the text's keys follow such a star
    return mean_share(variant, r, at, at);
    //< train.sinks
}

double variant_alpha_star(const sinkproof_variant *variant, const sinkproof_variant_result *r) {
    //> train.star
    bool token = variant->star == SINKPROOF_STAR_TOKEN;
    return mean_share(variant, r, token, token ? 0 : r->keys); // over the rows of the text
    //< train.star
}
