// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Queries, keys and values (A2, doc/04-qkv.md): three affine maps of the normed input.
// Head h owns the coordinates h head_dim ... (h + 1) head_dim - 1 of the query; there are fewer
// key/value heads: query head h reads key/value head h / (n_heads / n_kv_heads).
#include "ref/stages.h"

void stage_qkv(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
               const double *t_nc, double *q_nhd, double *k_ngd, double *v_ngd, double *work) {
    //> attn.qkv
    sinkproof_linear(policy, AT_A2, n, &layer->w_q, &layer->b_q, t_nc, q_nhd, work);
    sinkproof_linear(policy, AT_A2, n, &layer->w_k, &layer->b_k, t_nc, k_ngd, work);
    sinkproof_linear(policy, AT_A2, n, &layer->w_v, &layer->b_v, t_nc, v_ngd, work);
    //< attn.qkv
}
