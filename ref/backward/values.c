// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradients of the weighted values o_id = sum_j alpha_ij v_jd. The sink has no value: the
// gradient with respect to its weight is 0. The query heads of a group read one value, so its
// gradient is the sum of theirs: dv_jd is added to, head by head.
#include "ref/backward/backward.h"

void sinkproof_values_backward(const sinkproof_block *block, const double *alpha_ij,
                               const double *v_jd, const double *do_id, double *dalpha_ij,
                               double *dv_jd) {
    for (size_t i = 0; i < block->rows; i++) {
        size_t position = block->first + i;
        const double *alpha_j = alpha_ij + i * (block->keys + 1);
        const double *do_d = do_id + i * block->q_stride;
        double *dalpha_j = dalpha_ij + i * block->keys;
        for (size_t j = 0; j < block->keys; j++) dalpha_j[j] = 0;
        for (size_t j = sinkproof_mask_first(block->window, position); j <= position; j++) {
            const double *v_d = v_jd + j * block->kv_stride;
            double *dv_d = dv_jd + j * block->kv_stride;
            //> grad.values grad.group
            for (size_t d = 0; d < block->head_dim; d++) {
                dalpha_j[j] += do_d[d] * v_d[d];
                dv_d[d] += alpha_j[j] * do_d[d];
            }
            //< grad.values grad.group
        }
    }
}
