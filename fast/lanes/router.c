// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The router in lane arithmetic: a linear layer, the reference's choice, a softmax over the chosen.
#include "fast/lanes/stages.h"

// w_k = e_k / sum, e_k = exp(z_k - z_first): the first of the chosen is the largest.
static void softmax_chosen(const sinkproof_policy *policy, size_t n_chosen, const double *logits_e,
                           const int32_t *chosen_k, double *weights_k) {
    float largest = (float)logits_e[chosen_k[0]], sum = 0;
    for (size_t k = 0; k < n_chosen; k++) {
        float e_k = sinkproof_lanes_exp((float)logits_e[chosen_k[k]] - largest);
        weights_k[k] = e_k;
        sum += e_k;
    }
    for (size_t k = 0; k < n_chosen; k++)
        weights_k[k] = round_at(policy, AT_M4, (float)weights_k[k] / sum);
}

void lanes_router(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                  size_t n_chosen, const double *t_nc, double *logits_ne, int32_t *chosen_nk,
                  double *weights_nk, double *work) {
    size_t n_experts = layer->w_router.rows;
    lanes_linear(policy, AT_M2, n, &layer->w_router, &layer->b_router, t_nc, logits_ne, work);
    for (size_t t = 0; t < n; t++) {
        const double *logits_e = logits_ne + t * n_experts;
        int32_t *chosen_k = chosen_nk + t * n_chosen;
        sinkproof_router_choose(n_experts, n_chosen, logits_e, chosen_k);
        softmax_chosen(policy, n_chosen, logits_e, chosen_k, weights_nk + t * n_chosen);
    }
}
