// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The backward pass (doc/34-backward.md): from the gradient of a loss L with respect to the logits
// to its gradients with respect to every point and every weight. One function per stage, in a file
// of the stage's name, and the walk back through the model (walk.c).
//
// dX is dL/dX, an array of X's shape. Index letters are those of ref/stages.h. Arithmetic is
// binary64 and rounds nothing else: a policy's roundings have no gradient of their own, so the
// gradient is that of the model over the reals, at the activations of the forward pass. Only what
// is stored may be rounded (sinkproof_loss_gradients.policy). Arrays that
// the comments call "added to" collect what several queries, heads or tokens contribute. A NULL
// gradient is not computed.
#ifndef SINKPROOF_BACKWARD_H
#define SINKPROOF_BACKWARD_H

#include "ref/backward/activations.h"
#include "ref/stages.h"

// ---- the stages ------------------------------------------------------------------------------

// grad.linear: of y_nr = sum_c W_rc x_nc + b_r. dx_nc, dw_rc and db_r are added to; any may be
// NULL. w_c: cols doubles.
void sinkproof_linear_backward(size_t n, const sinkproof_matrix *weight_rc, const double *x_nc,
                               const double *dy_nr, double *dx_nc, double *dw_rc, double *db_r,
                               double *w_c);

// grad.rmsnorm: of y_nc = scale_c x_nc / sqrt(mean_c x_nc^2 + eps). dx_nc and dscale_c are added
// to.
void sinkproof_rmsnorm_backward(const double *scale_c, double eps, size_t n, size_t hidden,
                                const double *x_nc, const double *dy_nc, double *dx_nc,
                                double *dscale_c);

// grad.rotation: turns dx_nhd back in place, by the table of the forward pass.
void sinkproof_rope_backward(size_t n, size_t n_heads, size_t head_dim, const double *cos_nd,
                             const double *sin_nd, double *dx_nhd);

// grad.values: of o_id = sum_j alpha_ij v_jd. dalpha_ij [rows, keys]; dv_jd is added to.
void sinkproof_values_backward(const sinkproof_block *block, const double *alpha_ij,
                               const double *v_jd, const double *do_id, double *dalpha_ij,
                               double *dv_jd);

// grad.softmax, grad.sink: ds_ij [rows, keys] and db_i of the weights alpha_ij [rows, keys + 1].
void sinkproof_softmax_sink_backward(const sinkproof_block *block, const double *alpha_ij,
                                     const double *o_id, const double *do_id,
                                     const double *dalpha_ij, double *ds_ij, double *db_i);

// grad.lse: adds to ds_ij and db_i what a loss that reads each row's log-sum-exp has there. With
// the sink inside it is log(e^b + sum_j e^s_ij), else log(sum_j e^s_ij).
void sinkproof_lse_backward(const sinkproof_block *block, bool with_sink, const double *s_ij,
                            const double *alpha_ij, const double *dlse_i, double *ds_ij,
                            double *db_i);

// grad.qkv: of s_ij = q_i . k_j / sqrt(head_dim) over the visible keys. dq_id and dk_jd are added
// to.
void sinkproof_scores_backward(const sinkproof_block *block, const double *q_id, const double *k_jd,
                               const double *ds_ij, double *dq_id, double *dk_jd);

// The sink's own numbers: of one logit db = sum_i db_i, and of a key k* (sink.key-bias) dk*_d and
// its share of dq_id. dsink is added to: one number, or head_dim.
void sink_logits_backward(const sinkproof_block *block, const sinkproof_normaliser *normaliser,
                          const double *q_id, const double *db_i, double *dsink, double *dq_id);

// grad.router: dlogits_e [n_experts], 0 for the experts that were not chosen. chosen_k: M3, whole
// numbers.
void sinkproof_router_backward(size_t n_experts, size_t n_chosen, const double *chosen_k,
                               const double *weights_k, const double *dweights_k,
                               double *dlogits_e);

// grad.mixture: of out_c = sum_k w_k down_kc.
void sinkproof_mixture_backward(size_t n_chosen, size_t hidden, const double *weights_k,
                                const double *down_kc, const double *dout_c, double *dweights_k,
                                double *ddown_kc);

// grad.swiglu: of one activation of gate and up.
void sinkproof_swiglu_backward(sinkproof_swiglu_numbers numbers, double gate, double up,
                               double dact, double *dgate, double *dup);

// grad.cross-entropy: the mean of -log softmax(logits_nv)_target over the tokens that have a target
// (one of -1 has none), and dlogits_nv. Returns the loss; NAN if no token has a target.
double sinkproof_cross_entropy(size_t n, size_t vocab, const double *logits_nv,
                               const int32_t *targets_n, double *dlogits_nv);

// grad.embedding: dembedding_vc, row of each token, is added to.
void embed_backward(size_t n, size_t hidden, const int32_t *tokens_n, const double *dx_nc,
                    double *dembedding_vc);

// ---- the whole model -------------------------------------------------------------------------

// The gradients with respect to what the loss reads. Any may be NULL: the loss does not read it.
typedef struct sinkproof_loss_gradients {
    const double *dlogits_nv;           // F2
    const double *const *do_lnhd;       // [layers]: A11 of a layer, or NULL
    const double *const *dlse_lhn;      // [layers]: each head's and query's A9.lse, or NULL
    const double *const *dlse_keys_lhn; // [layers]: A9.lse-keys, the log-sum-exp of the keys alone
    // A gradient of a point is rounded as the policy rounds its point; NULL: nothing is.
    const sinkproof_policy *policy;
} sinkproof_loss_gradients;

// Receives each gradient by its name in a trace: "dF2", "03.dA4.q", "03.dsink", "03.dW.q".
typedef struct sinkproof_gradient_observer {
    void (*see)(void *context, const char *name, size_t rank, const size_t *shape,
                const double *values);
    void *context;
} sinkproof_gradient_observer;

// Whether every stage of the model has a backward function: those of GPT-OSS do, and those of Llama
// and its relatives.
bool sinkproof_backward_serves(const sinkproof_config *config, sinkproof_error *error);

// grad.chain: all gradients, from the last layer to the first.
bool sinkproof_backward(const sinkproof_model *model, const sinkproof_activations *activations,
                        const sinkproof_loss_gradients *loss,
                        const sinkproof_gradient_observer *observer, sinkproof_error *error);

// A weight's gradient in a trace: "dW.q", "db.q", "dW.attn_norm", "dsink"; and its shape, that of
// the weight in its container, whose rank is returned: 0 if the model has no such weight.
void sinkproof_gradient_name(sinkproof_slot slot, char name[32]);
size_t sinkproof_gradient_shape(const sinkproof_config *config, sinkproof_slot slot,
                                size_t shape[3]);

#endif
