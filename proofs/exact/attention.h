// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The derivation's symbols alpha_ijh, x_j, W^V_h, b^V_h and W^O_h, for a random instance. Query
// head h reads the key/value head g(h); in the derivation's own notation g(h) is h.
#ifndef SINKPROOF_EXACT_ATTENTION_H
#define SINKPROOF_EXACT_ATTENTION_H

#include "proofs/exact/exact.h"

typedef exact_instance instance;

// The first key at or after j that the query sees, n if there is none. All of them:
// for (j = next_seen(m, 0); j < n; j = next_seen(m, j + 1)).
static inline size_t next_seen(const instance *m, size_t j) {
    while (j < m->tokens && !m->sees[j]) j++;
    return j;
}

static inline size_t kv_head(const instance *m, size_t h) { // g(h)
    return h / (m->heads / m->kv_heads);
}
static inline rational e_score(const instance *m, size_t j, size_t h) { // e^(s_ijh)
    return m->e.at[h * m->e.cols + j];
}
static inline row x_of(const instance *m, size_t j) { // x_j
    return matrix_row(m->x, j);
}
static inline matrix w_value(const instance *m, size_t h) { // W^V_h
    return m->wv[kv_head(m, h)];
}
static inline row b_value(const instance *m, size_t h) { // b^V_h
    return m->bv[kv_head(m, h)];
}
static inline matrix w_output(const instance *m, size_t h) { // W^O_h: block row h of W^O
    return matrix_block(m->wo, h * m->head_dim, m->head_dim);
}
static inline row value_of(const instance *m, size_t j) { // v_j of head 0: any row
    return matrix_row(m->u, j);
}

#define sum_exp    exact_sum_exp
#define alpha      exact_attention_alpha
#define alpha_sink exact_attention_alpha_sink

rational sum_exp(const instance *m, size_t h);         // sum_j' e^(s_ij'h) over J(i)
rational alpha(const instance *m, size_t j, size_t h); // alpha_ijh
rational alpha_sink(const instance *m, size_t h);      // alpha_s,ih

// The tables of statements and of wrong forms, one of each kind in each file. The last entry of a
// table has no id.
extern const sinkproof_exact_statement exact_attention[];
extern const sinkproof_exact_statement exact_softmax_sink[];
extern const sinkproof_exact_statement exact_merges[];
extern const sinkproof_exact_statement exact_key_bias[];
extern const sinkproof_exact_statement exact_formats[];
extern const sinkproof_exact_statement exact_router[];
extern const sinkproof_exact_statement exact_laws[];
extern const sinkproof_exact_statement exact_repeat[];
extern const sinkproof_exact_statement exact_terms[];
extern const sinkproof_exact_statement exact_gradients[];
extern const sinkproof_exact_statement exact_attention_wrong[];
extern const sinkproof_exact_statement exact_softmax_sink_wrong[];
extern const sinkproof_exact_statement exact_merges_wrong[];
extern const sinkproof_exact_statement exact_key_bias_wrong[];
extern const sinkproof_exact_statement exact_formats_wrong[];
extern const sinkproof_exact_statement exact_router_wrong[];
extern const sinkproof_exact_statement exact_laws_wrong[];
extern const sinkproof_exact_statement exact_repeat_wrong[];
extern const sinkproof_exact_statement exact_terms_wrong[];
extern const sinkproof_exact_statement exact_gradients_wrong[];

#endif
