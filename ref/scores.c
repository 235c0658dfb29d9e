// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Scores (A5, A6; doc/06-softmax-sink.md): s_ij = q_i . k_j / sqrt(head_dim), for one head and
// every cached key. Masked keys get a score too, as in the published reference.
#include "ref/operands.h"
#include "ref/stages.h"

#include <math.h>

void sinkproof_scores(const sinkproof_policy *policy, const sinkproof_block *block,
                      const double *q_id, const double *k_jd, double *s_ij) {
    const double scale = 1.0 / sqrt((double)block->head_dim);
    const running_points running = running_points_at(policy, AT_A5_TERM, AT_A5_ACC);
    for (size_t i = 0; i < block->rows; i++)
        for (size_t j = 0; j < block->keys; j++) {
            const double *q_d = q_id + i * block->q_stride, *k_d = k_jd + j * block->kv_stride;
            //> attn.score
            double dot = 0;
            for (size_t d = 0; d < block->head_dim; d += running.together)
                dot = running_add(&running, dot, block->head_dim - d, q_d + d, k_d + d, 1);
            dot = round_at(policy, AT_A5, dot);
            s_ij[i * block->keys + j] = round_at(policy, AT_A6, dot * scale);
            //< attn.score
        }
}
