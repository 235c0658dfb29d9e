// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest sets of a score, from its sum of products (A5, A6), and of the sink's logit in a row
// (A8).
#include "proofs/bounds/bounds.h"

#include <math.h>
#include <stdlib.h>

double sinkproof_score_terms(const sinkproof_setting *s, size_t n, size_t head_dim) {
    sinkproof_rounding before = s->policy->at[AT_A5];
    bool open = before.format == SINKPROOF_REAL || before.optional;
    return (double)n + (open && !is_power_of_two(sqrt((double)head_dim)) ? 2 : 0);
}

sinkproof_honest sinkproof_honest_score(const sinkproof_setting *s, size_t head_dim,
                                        sinkproof_honest product) {
    sinkproof_honest z = sinkproof_honest_at(s, AT_A5, sinkproof_honest_inside(s, product));
    double scale = 1 / sqrt((double)head_dim);
    z = sinkproof_honest_mul(z, sinkproof_exact_set(scale));
    if (!is_power_of_two(scale)) { // the root and its reciprocal; the product rounds below
        z = sinkproof_honest_roundings(s, z, 2);
        z.bias += 2 * s->u * fabs(z.mid); // the constant is the same in all scores
    }
    return sinkproof_honest_at(s, AT_A6, sinkproof_honest_inside(s, z));
}

//> sink.key-bias
// The sink's logit is the score of one more key, k*, which is stored, not computed: its sum of
// products and its two roundings are those of the other scores (A5, A6), and A8 follows.
static bool learned_key_logits(const sinkproof_setting *s, const double *key_d,
                               const sinkproof_planes *query, sinkproof_honest *b_i) {
    size_t head_dim = query->cols;
    sinkproof_honest *k_d = malloc(head_dim * sizeof *k_d);
    if (k_d == NULL) return false;
    for (size_t d = 0; d < head_dim; d++) k_d[d] = sinkproof_exact_set(key_d[d]);
    sinkproof_planes key = sinkproof_planes_new(k_d, 1, head_dim, head_dim);
    sinkproof_accumulator sum = sinkproof_accumulator_at(s->policy, AT_A5_TERM, AT_A5_ACC);
    double *terms_i = malloc((query->rows + 1) * sizeof *terms_i);
    for (size_t i = 0; terms_i != NULL && i < query->rows; i++)
        terms_i[i] = sinkproof_score_terms(s, head_dim, head_dim);
    bool fine = terms_i != NULL &&
                sinkproof_honest_accumulated(s, &sum, query, &key, terms_i, false, b_i, 1);
    free(terms_i);
    for (size_t i = 0; fine && i < query->rows; i++)
        b_i[i] = sinkproof_honest_at(s, AT_A8, sinkproof_honest_score(s, head_dim, b_i[i]));
    sinkproof_planes_free(&key);
    free(k_d);
    return fine;
}
//< sink.key-bias

bool sinkproof_honest_sink_logits(const sinkproof_setting *s,
                                  const sinkproof_normaliser *normaliser,
                                  const sinkproof_planes *query, sinkproof_honest *b_i) {
    if (normaliser->key_d != NULL) return learned_key_logits(s, normaliser->key_d, query, b_i);
    sinkproof_honest b = sinkproof_honest_at(s, AT_A8, sinkproof_exact_set(normaliser->logit));
    for (size_t i = 0; i < query->rows; i++) b_i[i] = b;
    return true;
}
