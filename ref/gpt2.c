// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The layer loop of GPT-2 (T0 ... F2, doc/30-gpt2.md): a learned row for its position is added to
// each token's embedding; then per layer attention without a sink and one perceptron, each after a
// LayerNorm and added to the residual; a last LayerNorm; the logits, by the embedding again. It
// computes nothing itself but T0, the sum of two rows.
#include "ref/loop.h"
#include "model/slots.h"

// A1 to A13.
static void attention_sublayer(sinkproof_chunk *c, const sinkproof_layer *layer) {
    c->session->stages->layernorm(&c->session->policy, SINKPROOF_AT_A1, &layer->attn_norm,
                                  &layer->attn_norm_b, c->config->rms_eps, c->n, c->b.x_nc,
                                  c->b.t_nc, c->b.work);
    see_nc(c, "A1", c->config->hidden, c->b.t_nc);
    sinkproof_loop_project(c, layer);
    sinkproof_loop_attend(c, layer);
    sinkproof_loop_output(c, layer);
}

// M1 to M12.
static void mlp_sublayer(sinkproof_chunk *c, const sinkproof_layer *layer) {
    const sinkproof_policy *policy = &c->session->policy;
    const sinkproof_stages *stages = c->session->stages;
    sinkproof_buffers *b = &c->b;
    size_t n = c->n, hidden = c->config->hidden, inter = c->config->inter;
    double *up_nf = b->work, *act_nf = up_nf + n * inter, *rest = act_nf + n * inter;
    stages->layernorm(policy, SINKPROOF_AT_M1, &layer->mlp_norm, &layer->mlp_norm_b,
                      c->config->rms_eps, n, b->x_nc, b->t_nc, rest);
    see_nc(c, "M1", hidden, b->t_nc);
    stages->linear(policy, SINKPROOF_AT_M6, n, &layer->w_up, &layer->b_up, b->t_nc, up_nf, rest);
    see_nc(c, "M6", inter, up_nf);
    stages->gelu(policy, n * inter, up_nf, act_nf);
    see_nc(c, "M8", inter, act_nf);
    stages->linear(policy, SINKPROOF_AT_M10, n, &layer->w_down, &layer->b_down, act_nf, b->out_nc,
                   rest);
    see_nc(c, "M10", hidden, b->out_nc);
    sinkproof_residual(policy, SINKPROOF_AT_M12, n * hidden, b->out_nc, b->x_nc);
    see_nc(c, "M12", hidden, b->x_nc);
}

void sinkproof_embed_placed(const sinkproof_policy *policy, const sinkproof_matrix *embedding,
                            const sinkproof_matrix *positions, size_t first, size_t n,
                            const int32_t *tokens_n, double *x_nc, double *work) {
    size_t hidden = embedding->cols;
    for (size_t t = 0; t < n; t++) {
        sinkproof_matrix_row(embedding, (size_t)tokens_n[t], x_nc + t * hidden);
        sinkproof_matrix_row(positions, first + t, work);
        sinkproof_residual(policy, SINKPROOF_AT_T0, hidden, work, x_nc + t * hidden);
    }
}

// F1, and F2 unless logits_nv is NULL.
static void finish(sinkproof_chunk *c, double *logits_nv) {
    const sinkproof_session *s = c->session;
    sinkproof_matrix scale = sinkproof_model_final_norm(s->model);
    sinkproof_matrix shift = sinkproof_model_slot(s->model, 0, SINKPROOF_FINAL_NORM_B);
    sinkproof_matrix unembedding = sinkproof_model_unembedding(s->model);
    s->stages->layernorm(&s->policy, SINKPROOF_AT_F1, &scale, &shift, c->config->rms_eps, c->n,
                         c->b.x_nc, c->b.t_nc, c->b.work);
    see_end(c, "F1", c->config->hidden, c->b.t_nc);
    if (logits_nv == NULL) return;
    s->stages->unembed(&s->policy, &unembedding, c->n, c->b.t_nc, logits_nv, c->b.work);
    see_end(c, "F2", c->config->vocab, logits_nv);
}

void sinkproof_loop_gpt2(sinkproof_chunk *c, const int32_t *tokens_n, double *logits_nv) {
    const sinkproof_session *s = c->session;
    sinkproof_matrix embedding = sinkproof_model_embedding(s->model);
    sinkproof_matrix positions = sinkproof_model_slot(s->model, 0, SINKPROOF_POSITIONS);
    //> gpt2.forward
    sinkproof_embed_placed(&s->policy, &embedding, &positions, c->first, c->n, tokens_n, c->b.x_nc,
                           c->b.work);
    see_end(c, "T0", c->config->hidden, c->b.x_nc);
    for (c->l = 0; c->l < c->config->n_layers; c->l++) {
        sinkproof_layer layer = sinkproof_model_layer(s->model, c->l);
        attention_sublayer(c, &layer);
        mlp_sublayer(c, &layer);
    }
    if (logits_nv != NULL || c->observer != NULL) finish(c, logits_nv);
    //< gpt2.forward
    c->session->length += c->n;
}
