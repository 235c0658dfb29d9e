// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradients of the softmax with a sink. A score raises its own weight and lowers all others,
// and the sink's logit is a score like any other. With D_i = sum_j alpha_ij dalpha_ij, the gradient
// of a score is alpha_ij (dalpha_ij - D_i). The sink's weight is multiplied by no value, so its
// dalpha is 0, and the gradient of its logit is -alpha_s,i D_i. D_i is also <dO_i, O_i>: head_dim
// products in place of one per key, and no sum over keys that the forward pass has not made
// already.
#include "ref/backward/backward.h"

#include <math.h>

void sinkproof_softmax_sink_backward(const sinkproof_block *block, const double *alpha_ij,
                                     const double *o_id, const double *do_id,
                                     const double *dalpha_ij, double *ds_ij, double *db_i) {
    size_t keys = block->keys;
    for (size_t i = 0; i < block->rows; i++) {
        const double *alpha_j = alpha_ij + i * (keys + 1), *dalpha_j = dalpha_ij + i * keys;
        const double *o_d = o_id + i * block->q_stride, *do_d = do_id + i * block->q_stride;
        double alpha_sink = alpha_j[keys];
        //> grad.sink
        double delta = 0; // D_i
        for (size_t d = 0; d < block->head_dim; d++) delta += do_d[d] * o_d[d];
        db_i[i] = -(alpha_sink * delta);
        //< grad.sink
        //> grad.softmax
        for (size_t j = 0; j < keys; j++) // 0 where the mask hides a key
            ds_ij[i * keys + j] = alpha_j[j] * (dalpha_j[j] - delta);
        //< grad.softmax
    }
}

// softmax(s)_j over the visible keys alone. It is alpha_j / (1 - alpha_sink), but that is 0/0 where
// the sink has all weight to rounding.
static double weight_without_sink(size_t first, size_t last, const double *s_j, size_t j) {
    double sum = 0;
    for (size_t k = first; k <= last; k++) sum += exp(s_j[k] - s_j[j]);
    return 1 / sum;
}

void sinkproof_lse_backward(const sinkproof_block *block, bool with_sink, const double *s_ij,
                            const double *alpha_ij, const double *dlse_i, double *ds_ij,
                            double *db_i) {
    size_t keys = block->keys;
    for (size_t i = 0; i < block->rows; i++) {
        const double *alpha_j = alpha_ij + i * (keys + 1), *s_j = s_ij + i * keys;
        size_t last = block->first + i, first = sinkproof_mask_first(block->window, last);
        double *ds_j = ds_ij + i * keys;
        //> grad.lse
        for (size_t j = first; j <= last; j++) {
            double p = with_sink ? alpha_j[j] : weight_without_sink(first, last, s_j, j);
            ds_j[j] += p * dlse_i[i];
        }
        if (with_sink) db_i[i] += alpha_j[keys] * dlse_i[i];
        //< grad.lse
    }
}
