// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weighted values (A11, doc/07-values-output.md): o_id = sum_j alpha_ij v_jd over the visible keys.
// The sink took its share of the weights and adds no value.
#include "ref/operands.h"
#include "ref/scaled.h"
#include "ref/stages.h"

void sinkproof_values(const sinkproof_policy *policy, const sinkproof_block *block,
                      const double *alpha_ij, const double *v_jd, double *o_id) {
    const running_points running = running_points_at(policy, AT_A11_TERM, AT_A11_ACC);
    for (size_t i = 0; i < block->rows; i++) {
        const double *alpha_j = alpha_ij + i * (block->keys + 1);
        double *o_d = o_id + i * block->q_stride;
        size_t position = block->first + i;
        //> sink.attn-values law.constant-value
        for (size_t d = 0; d < block->head_dim; d++) o_d[d] = 0;
        for (size_t j = sinkproof_mask_first(block->window, position); j <= position;
             j += running.together) {
            double weight_j[SINKPROOF_CORE_BLOCK];
            size_t left = position + 1 - j;
            for (size_t k = 0; k < left && k < running.together; k++) weight_j[k] = alpha_j[j + k];
            sinkproof_scaled_read(policy->at[AT_A11_WEIGHTS], 1, 1,
                                  left < running.together ? left : running.together, weight_j);
            for (size_t d = 0; d < block->head_dim; d++)
                o_d[d] = running_add(&running, o_d[d], left, weight_j,
                                     v_jd + j * block->kv_stride + d, block->kv_stride);
        }
        for (size_t d = 0; d < block->head_dim; d++) // all keys are one part
            o_d[d] = round_at(policy, AT_A11, round_at(policy, AT_A11_PART, o_d[d]));
        //< sink.attn-values law.constant-value
    }
}
