// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The stages of the model, one function per step of the mathematics, and the table through which
// the layer loop of forward.c calls them: the reference's, or those of fast/lanes/, which sum in
// the order of vector lanes. The fast path has a loop of its own.
//
// Conventions. Numbers are binary64 and hold values of the policy's format at the point where
// they were rounded; between rounding points arithmetic is binary64. Names carry index sets:
// n or i a token (a query), j a key, h a query head, g a key/value head, d a coordinate of
// a head, c a coordinate of the hidden state, e an expert, k a chosen expert, f a coordinate of
// an expert. Arrays are dense and row-major in the order of their indices. No stage fails and
// none allocates: `work` is scratch of the size that the stage's _work function returns.
// A token's numbers never depend on the other tokens of the call: every sum runs over
// ascending indices. Therefore chunked prefill equals one pass, bit for bit.
#ifndef SINKPROOF_STAGES_H
#define SINKPROOF_STAGES_H

#include "ref/forward.h"
#include "ref/normaliser.h"

// One head's attention over one block of queries. Query row i has the position first + i and
// sees the keys from sinkproof_mask_first(window, first + i) to first + i.
typedef struct sinkproof_block {
    size_t rows, keys; // queries in the block, keys in the cache
    size_t first;      // position of the block's first query
    size_t window;     // keys that a query sees, itself included; 0: all up to itself
    size_t head_dim;
    size_t q_stride;  // from one query (and output) row of this head to the next
    size_t kv_stride; // from one key (and value) row of its key/value head to the next
} sinkproof_block;

// The outputs of the experts for n tokens. `down` is required; the others may be NULL.
typedef struct sinkproof_expert_outputs {
    double *up_raw;   // M5  [n, chosen, 2 inter]
    double *up;       // M6  [n, chosen, 2 inter]
    double *act;      // M8  [n, chosen, inter]
    double *down_raw; // M9  [n, chosen, hidden]
    double *down;     // M10 [n, chosen, hidden]
} sinkproof_expert_outputs;

typedef struct sinkproof_stages {
    // T0: x_nc = the token's row of the embedding.
    void (*embed)(const sinkproof_policy *policy, const sinkproof_matrix *embedding, size_t n,
                  const int32_t *tokens_n, double *x_nc);

    // A1, M1, F1 (rmsnorm.forward): out_nc = scale_c x_nc / sqrt(mean_c x_nc^2 + eps).
    void (*rmsnorm)(const sinkproof_policy *policy, sinkproof_point point,
                    const sinkproof_matrix *scale, double eps, size_t n, const double *x_nc,
                    double *out_nc, double *work);

    // The same with the mean subtracted and a shift added (layernorm.forward). work: 2 hidden.
    void (*layernorm)(const sinkproof_policy *policy, sinkproof_point point,
                      const sinkproof_matrix *scale, const sinkproof_matrix *shift, double eps,
                      size_t n, const double *x_nc, double *out_nc, double *work);
    // M8 of one perceptron for all tokens: of n pairs of gate and up (swiglu.clamped), or
    // y_n = gelu(x_n) (gelu.tanh).
    void (*swiglu)(const sinkproof_policy *policy, sinkproof_swiglu_numbers numbers, size_t n,
                   const double *gate_up_2n, double *act_n);
    void (*gelu)(const sinkproof_policy *policy, size_t n, const double *x_n, double *y_n);

    // M6 and M10 of such a perceptron (mlp.linear): y_nr = sum_c W_rc x_nc + b_r.
    void (*linear)(const sinkproof_policy *policy, sinkproof_point point, size_t n,
                   const sinkproof_matrix *weight_rc, const sinkproof_matrix *bias_r,
                   const double *x_nc, double *y_nr, double *work);

    // A2 (attn.qkv): q_nhd, k_ngd, v_ngd from the normed input t_nc.
    void (*qkv)(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                const double *t_nc, double *q_nhd, double *k_ngd, double *v_ngd, double *work);

    // A4 (rope.rotate): rotates x_nhd in place by the table's angles.
    void (*rope)(const sinkproof_policy *policy, size_t n, size_t n_heads, size_t head_dim,
                 const double *cos_nd, const double *sin_nd, double *x_nhd);

    // A5, A6 (attn.score): s_ij for every key, masked ones included.
    void (*scores)(const sinkproof_policy *policy, const sinkproof_block *block, const double *q_id,
                   const double *k_jd, double *s_ij);

    // b_i: the sink's logit in row i, before A8 rounds it; q_id are the queries that `scores` uses.
    void (*sink_logits)(const sinkproof_policy *policy, const sinkproof_block *block,
                        const sinkproof_normaliser *normaliser, const double *q_id, double *b_i);

    // A7 to A10 (sink.alpha, sink.alpha-sink): alpha_ij is [rows, keys + 1], the sink's weight
    // in the last column, 0 where the mask hides a key.
    void (*softmax_sink)(const sinkproof_policy *policy, const sinkproof_block *block,
                         const double *b_i, const double *s_ij, double *alpha_ij);

    // A11: o_id = sum_j alpha_ij v_jd. The sink has no value: the weights sum to less than 1.
    void (*values)(const sinkproof_policy *policy, const sinkproof_block *block,
                   const double *alpha_ij, const double *v_jd, double *o_id);

    // A5 to A11 in one pass (sink.attn-values), or NULL. If present, it alone computes o_id, and
    // softmax_sink and values may be NULL; `scores` then serves an observer, and must show what the
    // pass computed. An observer sees neither A9 nor A10: a pass over the keys in pieces never
    // stores normalised weights.
    void (*attention)(const sinkproof_policy *policy, const sinkproof_block *block,
                      const double *b_i, const double *q_id, const double *k_jd, const double *v_jd,
                      double *o_id);

    // A12: out_nc = o_n Wo^T + b.
    void (*output)(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                   const double *o_nhd, double *out_nc, double *work);

    // M2 to M4 (router.topk, router.softmax-after): logits_ne, the chosen experts in descending
    // order of logit (the lower index first in a tie), and their weights.
    void (*router)(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                   size_t n_chosen, const double *t_nc, double *logits_ne, int32_t *chosen_nk,
                   double *weights_nk, double *work);

    // M5 to M10: the chosen experts of every token.
    void (*experts)(const sinkproof_policy *policy, const sinkproof_config *config,
                    const sinkproof_layer *layer, size_t n, const double *t_nc,
                    const int32_t *chosen_nk, const sinkproof_expert_outputs *out, double *work);

    // M11 (moe.sum): out_nc = sum_k w_nk down_nkc.
    void (*mixture)(const sinkproof_policy *policy, size_t n, size_t n_chosen, size_t hidden,
                    const int32_t *chosen_nk, const double *weights_nk, const double *down_nkc,
                    double *out_nc);

    // F2: logits_nv = x_n Wu^T.
    void (*unembed)(const sinkproof_policy *policy, const sinkproof_matrix *unembedding, size_t n,
                    const double *x_nc, double *logits_nv, double *work);
} sinkproof_stages;

extern const sinkproof_stages sinkproof_reference_stages;

// A session whose layer loop calls these stages. `stages` outlives the session.
sinkproof_session *sinkproof_session_with(const sinkproof_model *model,
                                          const sinkproof_policy *policy,
                                          const sinkproof_stages *stages);

// ---- the reference's stages, one file each -------------------------------------------------

// y_nr = sum_c W_rc x_nc (+ b_r), rounded at `point`; bias may be NULL. The row stride of x and
// y is W's cols and rows. work: sinkproof_linear_work doubles.
void sinkproof_linear(const sinkproof_policy *policy, sinkproof_point point, size_t n,
                      const sinkproof_matrix *weight_rc, const sinkproof_matrix *bias_r,
                      const double *x_nc, double *y_nr, double *work);
size_t sinkproof_linear_work(size_t n, size_t rows, size_t cols);

void sinkproof_embed(const sinkproof_policy *policy, const sinkproof_matrix *embedding, size_t n,
                     const int32_t *tokens_n, double *x_nc);
// The same plus the rows of the positions from `first` on, rounded once. work: hidden doubles.
void sinkproof_embed_placed(const sinkproof_policy *policy, const sinkproof_matrix *embedding,
                            const sinkproof_matrix *positions, size_t first, size_t n,
                            const int32_t *tokens_n, double *x_nc, double *work);
void stage_unembed(const sinkproof_policy *policy, const sinkproof_matrix *unembedding, size_t n,
                   const double *x_nc, double *logits_nv, double *work);
// x_nc = x_nc + t_nc, rounded (A13, M12).
void sinkproof_residual(const sinkproof_policy *policy, sinkproof_point point, size_t count,
                        const double *t, double *x);

// work: cols doubles.
void sinkproof_rmsnorm(const sinkproof_policy *policy, sinkproof_point point,
                       const sinkproof_matrix *scale, double eps, size_t n, const double *x_nc,
                       double *out_nc, double *work);

// work: 2 cols doubles.
void sinkproof_layernorm(const sinkproof_policy *policy, sinkproof_point point,
                         const sinkproof_matrix *scale, const sinkproof_matrix *shift, double eps,
                         size_t n, const double *x_nc, double *out_nc, double *work);
double sinkproof_gelu_one(const sinkproof_policy *policy, double x);
void sinkproof_gelu(const sinkproof_policy *policy, size_t n, const double *x_n, double *y_n);

void stage_qkv(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
               const double *t_nc, double *q_nhd, double *k_ngd, double *v_ngd, double *work);

// The ends of YaRN's ramp, in pairs of coordinates (yarn.truncate).
void sinkproof_yarn_range(const sinkproof_config *config, bool truncate, double *low, double *high);
double sinkproof_yarn_concentration(const sinkproof_config *config);
// freq_d[head_dim / 2]: radians per position of each pair of coordinates.
void sinkproof_yarn_frequencies(const sinkproof_policy *policy, const sinkproof_config *config,
                                double *freq_d);
// cos_nd, sin_nd [n, head_dim / 2]: cosine and sine times the concentration, positions first + n.
void sinkproof_rope_table(const sinkproof_policy *policy, const sinkproof_config *config,
                          const double *freq_d, size_t first, size_t n, double *cos_nd,
                          double *sin_nd);
void sinkproof_rope(const sinkproof_policy *policy, size_t n, size_t n_heads, size_t head_dim,
                    const double *cos_nd, const double *sin_nd, double *x_nhd);

// The first key that the query at position i sees; the last is i itself.
size_t sinkproof_mask_first(size_t window, size_t i);

void sinkproof_scores(const sinkproof_policy *policy, const sinkproof_block *block,
                      const double *q_id, const double *k_jd, double *s_ij);
void sinkproof_sink_logits(const sinkproof_policy *policy, const sinkproof_block *block,
                           const sinkproof_normaliser *normaliser, const double *q_id, double *b_i);
void sinkproof_softmax_sink(const sinkproof_policy *policy, const sinkproof_block *block,
                            const double *b_i, const double *s_ij, double *alpha_ij);
void sinkproof_values(const sinkproof_policy *policy, const sinkproof_block *block,
                      const double *alpha_ij, const double *v_jd, double *o_id);
void stage_output(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                  const double *o_nhd, double *out_nc, double *work);

// chosen_k: the n_chosen largest logits of one row, descending, the lower index first in a tie.
void sinkproof_router_choose(size_t n_experts, size_t n_chosen, const double *logits_e,
                             int32_t *chosen_k);
void sinkproof_router(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                      size_t n_chosen, const double *t_nc, double *logits_ne, int32_t *chosen_nk,
                      double *weights_nk, double *work);

// M7, M8 (swiglu.clamped): n activations from 2 n numbers, gate and up interleaved.
double sinkproof_swiglu_one(const sinkproof_policy *policy, sinkproof_swiglu_numbers numbers,
                            double gate, double up);
void sinkproof_swiglu(const sinkproof_policy *policy, sinkproof_swiglu_numbers numbers, size_t n,
                      const double *gate_up_2n, double *act_n);

void stage_experts(const sinkproof_policy *policy, const sinkproof_config *config,
                   const sinkproof_layer *layer, size_t n, const double *t_nc,
                   const int32_t *chosen_nk, const sinkproof_expert_outputs *out, double *work);
size_t stage_experts_work(const sinkproof_config *config, size_t n);
void sinkproof_mixture(const sinkproof_policy *policy, size_t n, size_t n_chosen, size_t hidden,
                       const int32_t *chosen_nk, const double *weights_nk, const double *down_nkc,
                       double *out_nc);

#endif
