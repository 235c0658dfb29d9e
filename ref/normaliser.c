// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One head's normaliser, and the sink's logit in each row (before A8).
#include "ref/normaliser.h"

#include "ref/stages.h"

size_t sinkproof_normaliser_work(const sinkproof_config *config) {
    return config->n_heads > config->head_dim ? config->n_heads : config->head_dim;
}

sinkproof_normaliser sinkproof_head_normaliser(const sinkproof_config *config,
                                               const sinkproof_layer *layer, size_t h,
                                               double *work) {
    //> sink.softmax1
    if (sinkproof_sinks_stored(config) == SINKPROOF_SINK_NOTHING)
        return (sinkproof_normaliser){.logit = sinkproof_sinks_constant(config)};
    //< sink.softmax1
    if (sinkproof_sinks_stored(config) == SINKPROOF_SINK_KEY) {
        sinkproof_matrix_row(&layer->sinks, h, work);
        return (sinkproof_normaliser){.key_d = work};
    }
    sinkproof_matrix_row(&layer->sinks, 0, work);
    return (sinkproof_normaliser){.logit = work[h]};
}

void sinkproof_sink_logits(const sinkproof_policy *policy, const sinkproof_block *block,
                           const sinkproof_normaliser *normaliser, const double *q_id,
                           double *b_i) {
    if (normaliser->key_d == NULL) {
        for (size_t i = 0; i < block->rows; i++) b_i[i] = normaliser->logit;
        return;
    }
    //> sink.key-bias
    sinkproof_block star = *block; // one more key, that no rotation turned: A5 and A6 as for others
    star.keys = 1;
    sinkproof_scores(policy, &star, q_id, normaliser->key_d, b_i);
    //< sink.key-bias
}
