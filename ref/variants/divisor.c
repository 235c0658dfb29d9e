// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The divisor of a row of similarities (doc/24-variants.md).
#include "ref/variants/variant.h"

#include <math.h>

// If the divisor is homogeneous of degree one in the row's exponentials, dividing e^(s - m) gives
// the same weights as e^s: with the row's maximum as m nothing overflows. The divisors 1 and
// max(|sum|, 1) are not homogeneous: for them e^s is not shifted.
bool variant_subtracts_maximum(const sinkproof_variant *variant) {
    return variant->similarity == SINKPROOF_SIMILARITY_EXP &&
           variant->divisor != SINKPROOF_DIVISOR_ONE &&
           variant->divisor != SINKPROOF_DIVISOR_AT_LEAST_1;
}

static double row_maximum(size_t count, const bool *seen_j, const double *s_j) {
    double m = -INFINITY;
    for (size_t j = 0; j < count; j++)
        if (seen_j[j]) m = fmax(m, s_j[j]);
    return m;
}

static double row_divisor(const sinkproof_variant *variant, size_t count, const bool *seen_j,
                          const double *sim_j) {
    double sum = 0, p = variant->divisor == SINKPROOF_DIVISOR_POWER ? variant->divisor_by : 1;
    //> norm.power
    for (size_t j = 0; j < count; j++)
        if (seen_j[j]) sum += p == 1 ? sim_j[j] : pow(sim_j[j], p);
    //< norm.power
    switch (variant->divisor) {
    case SINKPROOF_DIVISOR_ONE:
        return 1;
    //> norm.scaled
    case SINKPROOF_DIVISOR_SCALED:
        return sum / variant->divisor_by;
    //< norm.scaled
    case SINKPROOF_DIVISOR_POWER:
        return pow(sum, 1 / p);
    //> norm.max-one kernel.identity-max kernel.mlp-max
    case SINKPROOF_DIVISOR_AT_LEAST_1:
        return fmax(fabs(sum), 1);
    //< norm.max-one kernel.identity-max kernel.mlp-max
    case SINKPROOF_DIVISOR_SUM:
        break;
    }
    //> kernel.sigmoid-norm kernel.elu-norm
    return sum;
    //< kernel.sigmoid-norm kernel.elu-norm
}

void variant_divide(const sinkproof_policy *policy, const sinkproof_variant *variant, size_t count,
                    const bool *seen_j, const double *s_j, double *sim_j, double *z,
                    double *alpha_j) {
    bool shifted = variant_subtracts_maximum(variant);
    double m = shifted ? row_maximum(count, seen_j, s_j) : 0;
    //> attn.softmax
    for (size_t j = 0; j < count; j++) {
        sim_j[j] = 0;
        if (!seen_j[j]) continue;
        double s = shifted ? round_at(policy, AT_A9_MAX, s_j[j] - m) : s_j[j];
        sim_j[j] = variant_similarity(variant->similarity, s);
    }
    *z = row_divisor(variant, count, seen_j, sim_j);
    for (size_t j = 0; j < count; j++)
        alpha_j[j] = seen_j[j] ? round_at(policy, AT_A9, sim_j[j] / *z) : 0;
    //< attn.softmax
}
