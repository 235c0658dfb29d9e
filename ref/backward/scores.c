// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradients of the scores s_ij = q_i . k_j / sqrt(head_dim) over the visible keys, and of the
// sink's logit. A key collects from all queries that see it, of all heads of its group.
#include "ref/backward/backward.h"

#include <math.h>

void sinkproof_scores_backward(const sinkproof_block *block, const double *q_id, const double *k_jd,
                               const double *ds_ij, double *dq_id, double *dk_jd) {
    const double scale = 1.0 / sqrt((double)block->head_dim);
    for (size_t i = 0; i < block->rows; i++) {
        size_t position = block->first + i;
        const double *q_d = q_id + i * block->q_stride;
        double *dq_d = dq_id + i * block->q_stride;
        for (size_t j = sinkproof_mask_first(block->window, position); j <= position; j++) {
            const double *k_d = k_jd + j * block->kv_stride;
            double *dk_d = dk_jd + j * block->kv_stride;
            //> grad.qkv
            double ds = ds_ij[i * block->keys + j] * scale;
            for (size_t d = 0; d < block->head_dim; d++) {
                dq_d[d] += ds * k_d[d];
                dk_d[d] += ds * q_d[d];
            }
            //< grad.qkv
        }
    }
}

void sink_logits_backward(const sinkproof_block *block, const sinkproof_normaliser *normaliser,
                          const double *q_id, const double *db_i, double *dsink, double *dq_id) {
    const double scale = 1.0 / sqrt((double)block->head_dim);
    for (size_t i = 0; i < block->rows; i++) {
        //> grad.sink
        if (normaliser->key_d == NULL) { // one logit in every row: the sum over the queries
            *dsink += db_i[i];
            continue;
        }
        //< grad.sink
        const double *q_d = q_id + i * block->q_stride;
        double *dq_d = dq_id + i * block->q_stride, ds = db_i[i] * scale;
        for (size_t d = 0; d < block->head_dim; d++) { // the score of one more key
            dsink[d] += ds * q_d[d];
            dq_d[d] += ds * normaliser->key_d[d];
        }
    }
}
