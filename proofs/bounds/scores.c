// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest sets of a score, from the sum of products that it is made of (A5, A6), and of what
// joins the scores of a row (A8).
#include "proofs/bounds/bounds.h"

#include <math.h>

sinkproof_honest sinkproof_honest_score(const sinkproof_setting *s, size_t head_dim,
                                        sinkproof_honest product) {
    sinkproof_honest z =
        sinkproof_honest_at(s, SINKPROOF_AT_A5, sinkproof_honest_inside(s, product));
    double scale = 1 / sqrt((double)head_dim);
    bool power_of_two = frexp(scale, &(int){0}) == 0.5;
    z = sinkproof_honest_mul(z, sinkproof_known(scale));
    if (!power_of_two) z = sinkproof_honest_roundings(s, z, 2); // the constant and the product
    return sinkproof_honest_at(s, SINKPROOF_AT_A6, sinkproof_honest_inside(s, z));
}

bool sinkproof_honest_sink_logits(const sinkproof_setting *s,
                                  const sinkproof_normaliser *normaliser,
                                  const sinkproof_planes *query, sinkproof_honest *b_i) {
    sinkproof_honest b =
        sinkproof_honest_at(s, SINKPROOF_AT_A8, sinkproof_known(normaliser->logit));
    for (size_t i = 0; i < query->rows; i++) b_i[i] = b;
    return true;
}
