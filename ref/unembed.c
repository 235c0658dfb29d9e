// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The two ends of the model: a token becomes its row of the embedding (T0, no scaling), plus the
// row of its position where nothing is rotated; and the last hidden state becomes one logit per
// word (F2: no bias, no cap; tied to T0 or not).
#include "ref/stages.h"

void sinkproof_embed(const sinkproof_policy *policy, const sinkproof_matrix *embedding, size_t n,
                     const int32_t *tokens_n, double *x_nc) {
    size_t hidden = embedding->cols;
    for (size_t t = 0; t < n; t++) {
        double *x_c = x_nc + t * hidden;
        sinkproof_matrix_row(embedding, (size_t)tokens_n[t], x_c);
        for (size_t c = 0; c < hidden; c++) x_c[c] = round_at(policy, AT_T0, x_c[c]);
    }
}

void sinkproof_embed_placed(const sinkproof_policy *policy, const sinkproof_matrix *embedding,
                            const sinkproof_matrix *positions, size_t first, size_t n,
                            const int32_t *tokens_n, double *x_nc, double *work) {
    size_t hidden = embedding->cols;
    for (size_t t = 0; t < n; t++) {
        sinkproof_matrix_row(embedding, (size_t)tokens_n[t], x_nc + t * hidden);
        sinkproof_matrix_row(positions, first + t, work);
        sinkproof_residual(policy, AT_T0, hidden, work, x_nc + t * hidden);
    }
}

void stage_unembed(const sinkproof_policy *policy, const sinkproof_matrix *unembedding, size_t n,
                   const double *x_nc, double *logits_nv, double *work) {
    sinkproof_linear(policy, AT_F2, n, unembedding, NULL, x_nc, logits_nv, work);
}
