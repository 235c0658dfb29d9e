// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The arrays that one chunk of tokens needs in a layer, carved from one allocation. Every layer
// reuses them; only the key/value cache outlives a chunk.
#ifndef SINKPROOF_BUFFERS_H
#define SINKPROOF_BUFFERS_H

#include "ref/stages.h"

typedef struct chunk_buffers {
    size_t rows;                      // query rows per block of attention
    double *x_nc, *t_nc, *out_nc;     // residual, normed input, a sublayer's output
    double *freq_d, *cos_nd, *sin_nd; // rotation
    double *q_nhd, *k_ngd, *v_ngd, *o_nhd;
    double *b_i;                            // sink logits of the rows of a block
    double *s_hij, *alpha_hij, *weight_hij; // [heads or 1, rows, keys (+ 1)]; weight: A10
    double *router_ne, *weights_nk, *chosen_real_nk;
    int32_t *chosen_nk;
    sinkproof_expert_outputs experts;
    double *logits_nv; // NULL unless an observer wants them and the caller does not
    double *work;
    void *memory;
} chunk_buffers;

// For n tokens with `keys` keys in the cache after them. An observed chunk keeps everything that
// the observer sees; otherwise attention keeps one head and `rows` queries at a time.
bool buffers_new(const sinkproof_config *config, size_t n, size_t keys, bool observed, bool logits,
                 chunk_buffers *buffers, sinkproof_error *error);
void buffers_free(chunk_buffers *buffers);

#endif
