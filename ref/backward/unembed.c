// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The two ends: the loss over next tokens with its gradient, and the rows of the embedding.
#include "ref/backward/backward.h"

#include <math.h>

static double largest(size_t n, const double *x_n) {
    double most = x_n[0];
    for (size_t i = 1; i < n; i++) most = fmax(most, x_n[i]);
    return most;
}

double sinkproof_cross_entropy(size_t n, size_t vocab, const double *logits_nv,
                               const int32_t *targets_n, double *dlogits_nv) {
    size_t count = 0;
    double sum = 0;
    for (size_t t = 0; t < n; t++) count += targets_n[t] >= 0;
    for (size_t t = 0; t < n; t++) {
        const double *z_v = logits_nv + t * vocab;
        double *dz_v = dlogits_nv + t * vocab, m = largest(vocab, z_v), z = 0;
        for (size_t v = 0; v < vocab; v++) dz_v[v] = 0;
        if (targets_n[t] < 0) continue;
        //> grad.cross-entropy
        for (size_t v = 0; v < vocab; v++) z += exp(z_v[v] - m);
        sum += log(z) - (z_v[targets_n[t]] - m);
        for (size_t v = 0; v < vocab; v++) {
            double target = v == (size_t)targets_n[t] ? 1 : 0;
            dz_v[v] = (exp(z_v[v] - m) / z - target) / (double)count;
        }
        //< grad.cross-entropy
    }
    return sum / (double)count;
}

void embed_backward(size_t n, size_t hidden, const int32_t *tokens_n, const double *dx_nc,
                    double *dembedding_vc) {
    for (size_t t = 0; t < n; t++) {
        //> grad.embedding
        double *row_c = dembedding_vc + (size_t)tokens_n[t] * hidden;
        for (size_t c = 0; c < hidden; c++) row_c[c] += dx_nc[t * hidden + c];
        //< grad.embedding
    }
}
