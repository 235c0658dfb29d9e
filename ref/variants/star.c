// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The star of a row: its score, and its value (doc/24-variants.md).
#include "ref/variants/variant.h"

#include <math.h>
#include <string.h>

bool sinkproof_variant_has_column(const sinkproof_variant *variant) {
    return variant->star != SINKPROOF_STAR_NONE && variant->star != SINKPROOF_STAR_TOKEN;
}

double variant_star_score(const sinkproof_policy *policy, const sinkproof_variant *variant,
                          const sinkproof_variant_head *head, const double *q_d, double *work) {
    double *k_d = work, dot = 0;
    size_t dim = head->dim;
    switch (variant->star) {
    case SINKPROOF_STAR_SCORE:
        return round_at(policy, AT_A8, head->logit);
    case SINKPROOF_STAR_ZERO:
        return 0;
    case SINKPROOF_STAR_NONE:
    case SINKPROOF_STAR_TOKEN:
        return -INFINITY;
    case SINKPROOF_STAR_KEY:
        break;
    }
    size_t learned = variant->star_dims > 0 && variant->star_dims < dim ? variant->star_dims : dim;
    memset(k_d, 0, dim * sizeof *k_d);
    memcpy(k_d, head->key_d, learned * sizeof *k_d);
    sinkproof_variant_feature(policy, variant, head, k_d, work + dim);
    for (size_t d = 0; d < dim; d++) dot += q_d[d] * k_d[d];
    dot = round_at(policy, AT_A5, dot);
    if (!variant->unscaled) dot /= sqrt((double)dim);
    return round_at(policy, AT_A8, dot);
}

void variant_star_value(const sinkproof_variant *variant, const sinkproof_variant_head *head,
                        double *v_d) {
    double m = variant->star_times, even = m / sqrt((double)head->dim);
    for (size_t d = 0; d < head->dim; d++) switch (variant->star_value) {
        case SINKPROOF_STAR_VALUE_NONE:
            v_d[d] = 0;
            break;
        case SINKPROOF_STAR_VALUE_LEARNED:
            v_d[d] = head->value_d[d];
            break;
        case SINKPROOF_STAR_VALUE_FIRST:
            v_d[d] = d == 0 ? m : 0;
            break;
        case SINKPROOF_STAR_VALUE_EVEN:
            v_d[d] = even;
            break;
        }
}
