// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The router (M2 to M4, doc/08-router.md): a logit per expert; the largest few are chosen, and a
// softmax over the chosen logits alone gives their weights. The bias affects both the choice and
// the weights.
#include "ref/stages.h"

#include <math.h>

static bool is_chosen(size_t count, const int32_t *chosen_k, size_t e) {
    for (size_t k = 0; k < count; k++)
        if (chosen_k[k] == (int32_t)e) return true;
    return false;
}

void sinkproof_router_choose(size_t n_experts, size_t n_chosen, const double *logits_e,
                             int32_t *chosen_k) {
    //> router.topk
    for (size_t k = 0; k < n_chosen; k++) {
        size_t best = n_experts;
        for (size_t e = 0; e < n_experts; e++) {
            if (is_chosen(k, chosen_k, e)) continue;
            if (best == n_experts || logits_e[e] > logits_e[best])
                best = e; // a tie keeps the lower
        }
        chosen_k[k] = (int32_t)best;
    }
    //< router.topk
}

// w_k = e^(g_k - g_0) / sum_k' e^(g_k' - g_0), g the chosen logits: g_0 is the largest.
static void softmax_chosen(const sinkproof_policy *policy, size_t n_chosen, const double *logits_e,
                           const int32_t *chosen_k, double *weights_k) {
    //> router.softmax-after
    double z = 0;
    for (size_t k = 0; k < n_chosen; k++) {
        weights_k[k] = exp(logits_e[chosen_k[k]] - logits_e[chosen_k[0]]);
        z += weights_k[k];
    }
    for (size_t k = 0; k < n_chosen; k++) weights_k[k] = round_at(policy, AT_M4, weights_k[k] / z);
    //< router.softmax-after
}

void sinkproof_router(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                      size_t n_chosen, const double *t_nc, double *logits_ne, int32_t *chosen_nk,
                      double *weights_nk, double *work) {
    size_t n_experts = layer->w_router.rows;
    sinkproof_linear(policy, AT_M2, n, &layer->w_router, &layer->b_router, t_nc, logits_ne, work);
    for (size_t t = 0; t < n; t++) {
        const double *logits_e = logits_ne + t * n_experts;
        int32_t *chosen_k = chosen_nk + t * n_chosen;
        sinkproof_router_choose(n_experts, n_chosen, logits_e, chosen_k);
        softmax_chosen(policy, n_chosen, logits_e, chosen_k, weights_nk + t * n_chosen);
    }
}
