// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A gate on the result (doc/24-variants.md), computed from the layer's input.
#include "ref/variants/variant.h"

#include <math.h>

void variant_gate(const sinkproof_policy *policy, const sinkproof_variant *variant,
                  const sinkproof_variant_head *head, const double *x_c, double *gate_d) {
    size_t width = variant->gate == SINKPROOF_GATE_ELEMENT ? head->dim : 1;
    for (size_t d = 0; d < head->dim; d++) gate_d[d] = 1;
    if (variant->gate == SINKPROOF_GATE_NONE) return;
    for (size_t d = 0; d < head->dim; d++) {
        double g = 0;
        for (size_t c = 0; c < head->hidden; c++)
            g += x_c[c] * head->gate_cd[c * width + (width > 1 ? d : 0)];
        g = round_at(policy, AT_A2, g);
        gate_d[d] = round_at(policy, AT_A11, 1 / (1 + exp(-g)));
    }
}
