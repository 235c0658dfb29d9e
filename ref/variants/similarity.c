// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The similarity of a query and a key (doc/24-variants.md): a feature of each, and a function of
// their score.
#include "ref/variants/variant.h"

#include <math.h>

// elu(x) + 1: e^x below 0, x + 1 above; positive everywhere.
double feature_elu_plus_one(double x) {
    //> kernel.elu kernel.elu-norm kernel.elu-linear kernel.elu-linear-raw
    return x < 0 ? exp(x) : x + 1;
    //< kernel.elu kernel.elu-norm kernel.elu-linear kernel.elu-linear-raw
}

double variant_similarity(sinkproof_similarity similarity, double s) {
    switch (similarity) {
    case SINKPROOF_SIMILARITY_EXP:
        return exp(s);
    //> kernel.sigmoid kernel.sigmoid-norm
    case SINKPROOF_SIMILARITY_SIGMOID:
        return 1 / (1 + exp(-s));
    //< kernel.sigmoid kernel.sigmoid-norm
    case SINKPROOF_SIMILARITY_ELU_PLUS_ONE:
        return feature_elu_plus_one(s);
    case SINKPROOF_SIMILARITY_SCORE:
        break;
    }
    return s;
}

// y_r = sum_d W_rd x_d
static void multiply_matrix(size_t dim, const double *w_dd, const double *x_d, double *y_d) {
    for (size_t r = 0; r < dim; r++) {
        y_d[r] = 0;
        for (size_t d = 0; d < dim; d++) y_d[r] += w_dd[r * dim + d] * x_d[d];
    }
}

void sinkproof_variant_feature(const sinkproof_policy *policy, const sinkproof_variant *variant,
                               const sinkproof_variant_head *head, double *x_d, double *work) {
    size_t dim = head->dim;
    if (variant->feature == SINKPROOF_FEATURE_SELF) return;
    if (variant->feature == SINKPROOF_FEATURE_MLP) {
        //> kernel.mlp kernel.mlp-max
        double *inner_d = work;
        multiply_matrix(dim, head->mlp_1_dd, x_d, inner_d);
        for (size_t d = 0; d < dim; d++) inner_d[d] = round_at(policy, AT_A4, fmax(inner_d[d], 0));
        multiply_matrix(dim, head->mlp_2_dd, inner_d, x_d);
        //< kernel.mlp kernel.mlp-max
    } else {
        //> kernel.elu-linear kernel.elu-linear-raw
        for (size_t d = 0; d < dim; d++) x_d[d] = feature_elu_plus_one(x_d[d]);
        //< kernel.elu-linear kernel.elu-linear-raw
    }
    for (size_t d = 0; d < dim; d++) x_d[d] = round_at(policy, AT_A4, x_d[d]);
}
