// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradients of the router's softmax over the chosen logits. The choice itself has no gradient:
// an expert that was not chosen gets nothing, however near its logit was.
#include "ref/backward/backward.h"

void sinkproof_router_backward(size_t n_experts, size_t n_chosen, const double *chosen_k,
                               const double *weights_k, const double *dweights_k,
                               double *dlogits_e) {
    double mean = 0;
    for (size_t e = 0; e < n_experts; e++) dlogits_e[e] = 0;
    //> grad.router
    for (size_t k = 0; k < n_chosen; k++) mean += weights_k[k] * dweights_k[k];
    for (size_t k = 0; k < n_chosen; k++)
        dlogits_e[(size_t)chosen_k[k]] = weights_k[k] * (dweights_k[k] - mean);
    //< grad.router
}

void sinkproof_mixture_backward(size_t n_chosen, size_t hidden, const double *weights_k,
                                const double *down_kc, const double *dout_c, double *dweights_k,
                                double *ddown_kc) {
    for (size_t k = 0; k < n_chosen; k++) {
        dweights_k[k] = 0;
        //> grad.mixture
        for (size_t c = 0; c < hidden; c++) {
            dweights_k[k] += dout_c[c] * down_kc[k * hidden + c];
            ddown_kc[k * hidden + c] = weights_k[k] * dout_c[c];
        }
        //< grad.mixture
    }
}
