// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The walk through the model (T0 ... F2, doc/10-forward.md), written out: the embedding; per layer
// attention, then experts or one perceptron, each behind a norm and added to the residual; a last
// norm; the logits. It computes nothing itself: the numbers come from the stages (the table's, and
// the residual's sum and the rotation's angles, which have no other form), and the observer sees
// them as soon as they are there. tests/ref/test_walk.c holds this order, every input and every
// weight to the table of points (ref/points.h).
#include "ref/forward.h"

#include "model/slots.h"
#include "ref/loop.h"

// Tokens per pass through the layers without an observer: bounds the memory of a long prompt.
enum { CHUNK = 256 };

// The residual x_nc through the norm A1, M1 or F1 into t_nc.
static void normalise_residual(token_chunk *c, sinkproof_point point, const sinkproof_matrix *scale,
                               const sinkproof_matrix *shift) {
    const sinkproof_stages *stages = c->session->stages;
    const sinkproof_policy *policy = &c->session->policy;
    chunk_buffers *b = &c->b;
    double eps = c->config->rms_eps;
    if (c->config->norm == SINKPROOF_LAYERNORM)
        stages->layernorm(policy, point, scale, shift, eps, c->n, b->x_nc, b->t_nc, b->work);
    else
        stages->rmsnorm(policy, point, scale, eps, c->n, b->x_nc, b->t_nc, b->work);
}

// A3, in place: a row is one head of one token.
static void normalise_heads(token_chunk *c, const sinkproof_layer *layer) {
    const sinkproof_config *config = c->config;
    const sinkproof_policy *policy = &c->session->policy;
    chunk_buffers *b = &c->b;
    size_t heads = config->n_heads, groups = config->n_kv_heads;
    c->session->stages->rmsnorm(policy, AT_A3, &layer->q_norm, config->rms_eps, c->n * heads,
                                b->q_nhd, b->q_nhd, b->work);
    c->session->stages->rmsnorm(policy, AT_A3, &layer->k_norm, config->rms_eps, c->n * groups,
                                b->k_ngd, b->k_ngd, b->work);
    show_per_head(c, "A3.q", heads, b->q_nhd);
    show_per_head(c, "A3.k", groups, b->k_ngd);
}

// A2 to A4.
static void project_and_rotate(token_chunk *c, const sinkproof_layer *layer) {
    const sinkproof_stages *stages = c->session->stages;
    const sinkproof_policy *policy = &c->session->policy;
    chunk_buffers *b = &c->b;
    size_t heads = c->config->n_heads, groups = c->config->n_kv_heads, d = c->config->head_dim;
    stages->qkv(policy, layer, c->n, b->t_nc, b->q_nhd, b->k_ngd, b->v_ngd, b->work);
    show_per_head(c, "A2.q", heads, b->q_nhd);
    show_per_head(c, "A2.k", groups, b->k_ngd);
    show_per_head(c, "A2.v", groups, b->v_ngd);
    if (c->config->head_norms) normalise_heads(c, layer);
    if (c->config->rotation.kind == SINKPROOF_NO_ROTATION) return;
    stages->rope(policy, c->n, heads, d, b->cos_nd, b->sin_nd, b->q_nhd);
    stages->rope(policy, c->n, groups, d, b->cos_nd, b->sin_nd, b->k_ngd);
    show_per_head(c, "A4.q", heads, b->q_nhd);
    show_per_head(c, "A4.k", groups, b->k_ngd);
}

// A1 to A13.
static void attention_sublayer(token_chunk *c, const sinkproof_layer *layer) {
    const sinkproof_policy *policy = &c->session->policy;
    chunk_buffers *b = &c->b;
    size_t hidden = c->config->hidden;
    normalise_residual(c, AT_A1, &layer->attn_norm, &layer->attn_norm_b);
    show_per_token(c, "A1", hidden, b->t_nc);
    project_and_rotate(c, layer);
    loop_attend(c, layer);
    c->session->stages->output(policy, layer, c->n, b->o_nhd, b->out_nc, b->work);
    show_per_token(c, "A12", hidden, b->out_nc);
    sinkproof_residual(policy, AT_A13, c->n * hidden, b->out_nc, b->x_nc);
    show_per_token(c, "A13", hidden, b->x_nc);
}

// M2 to M4; the observer may replace the experts.
static void show_router_points(token_chunk *c) {
    size_t k = c->config->n_chosen;
    if (c->observer == NULL) return;
    show_per_token(c, "M2", c->config->n_experts, c->b.router_ne);
    for (size_t i = 0; i < c->n * k; i++) c->b.chosen_real_nk[i] = (double)c->b.chosen_nk[i];
    show_per_token(c, "M3", k, c->b.chosen_real_nk);
    for (size_t i = 0; i < c->n * k; i++) c->b.chosen_nk[i] = (int32_t)c->b.chosen_real_nk[i];
    show_per_token(c, "M4", k, c->b.weights_nk);
}

// M5 to M10.
static void show_expert_points(token_chunk *c) {
    const sinkproof_config *config = c->config;
    const sinkproof_expert_outputs *e = &c->b.experts;
    size_t n = c->n, k = config->n_chosen;
    if (c->observer == NULL) return;
    show_layer_point(c, "M5", 3, (size_t[]){n, k, 2 * config->inter}, e->up_raw);
    show_layer_point(c, "M6", 3, (size_t[]){n, k, 2 * config->inter}, e->up);
    show_layer_point(c, "M8", 3, (size_t[]){n, k, config->inter}, e->act);
    show_layer_point(c, "M9", 3, (size_t[]){n, k, config->hidden}, e->down_raw);
    show_layer_point(c, "M10", 3, (size_t[]){n, k, config->hidden}, e->down);
}

// M2 to M11: the chosen experts of every token, mixed.
static void mix_experts(token_chunk *c, const sinkproof_layer *layer) {
    const sinkproof_config *config = c->config;
    const sinkproof_policy *policy = &c->session->policy;
    const sinkproof_stages *stages = c->session->stages;
    chunk_buffers *b = &c->b;
    stages->router(policy, layer, c->n, config->n_chosen, b->t_nc, b->router_ne, b->chosen_nk,
                   b->weights_nk, b->work);
    show_router_points(c);
    stages->experts(policy, config, layer, c->n, b->t_nc, b->chosen_nk, &b->experts, b->work);
    show_expert_points(c);
    stages->mixture(policy, c->n, config->n_chosen, config->hidden, b->chosen_nk, b->weights_nk,
                    b->experts.down, b->out_nc);
    show_per_token(c, "M11", config->hidden, b->out_nc);
}

// M6 to M10 where one perceptron takes all tokens.
static void apply_perceptron(token_chunk *c, const sinkproof_layer *layer) {
    const sinkproof_config *config = c->config;
    const sinkproof_policy *policy = &c->session->policy;
    const sinkproof_stages *stages = c->session->stages;
    chunk_buffers *b = &c->b;
    size_t n = c->n, inter = config->inter, width = layer->w_up.rows;
    double *up_nr = b->work, *act_nf = up_nr + n * width, *rest = act_nf + n * inter;
    //> gpt2.forward
    stages->linear(policy, AT_M6, n, &layer->w_up, &layer->b_up, b->t_nc, up_nr, rest);
    show_per_token(c, "M6", width, up_nr);
    if (config->activation == SINKPROOF_SWIGLU)
        stages->swiglu(policy, config->swiglu, n * inter, up_nr, act_nf);
    else
        stages->gelu(policy, n * inter, up_nr, act_nf);
    show_per_token(c, "M8", inter, act_nf);
    stages->linear(policy, AT_M10, n, &layer->w_down, &layer->b_down, act_nf, b->out_nc, rest);
    show_per_token(c, "M10", config->hidden, b->out_nc);
    //< gpt2.forward
}

// M1 to M12.
static void mlp_sublayer(token_chunk *c, const sinkproof_layer *layer) {
    size_t hidden = c->config->hidden;
    normalise_residual(c, AT_M1, &layer->mlp_norm, &layer->mlp_norm_b);
    show_per_token(c, "M1", hidden, c->b.t_nc);
    if (c->config->dense)
        apply_perceptron(c, layer);
    else
        mix_experts(c, layer);
    sinkproof_residual(&c->session->policy, AT_M12, c->n * hidden, c->b.out_nc, c->b.x_nc);
    show_per_token(c, "M12", hidden, c->b.x_nc);
}

// T0: a token's row; where nothing is rotated the row of its position joins it.
static void embed_tokens(token_chunk *c, const int32_t *tokens_n) {
    const sinkproof_session *s = c->session;
    sinkproof_matrix embedding = sinkproof_model_embedding(s->model);
    sinkproof_matrix positions = sinkproof_model_slot(s->model, 0, SINKPROOF_POSITIONS);
    //> gpt2.forward
    if (c->config->rotation.kind == SINKPROOF_NO_ROTATION)
        sinkproof_embed_placed(&s->policy, &embedding, &positions, c->first, c->n, tokens_n,
                               c->b.x_nc, c->b.work);
    //< gpt2.forward
    else
        s->stages->embed(&s->policy, &embedding, c->n, tokens_n, c->b.x_nc);
    show_end_point(c, "T0", c->config->hidden, c->b.x_nc);
}

// F1, and F2 unless logits_nv is NULL.
static void finish_logits(token_chunk *c, double *logits_nv) {
    const sinkproof_session *s = c->session;
    sinkproof_matrix scale = sinkproof_model_final_norm(s->model);
    sinkproof_matrix shift = sinkproof_model_slot(s->model, 0, SINKPROOF_FINAL_NORM_B);
    sinkproof_matrix unembedding = sinkproof_model_unembedding(s->model);
    normalise_residual(c, AT_F1, &scale, &shift);
    show_end_point(c, "F1", c->config->hidden, c->b.t_nc);
    if (logits_nv == NULL) return;
    s->stages->unembed(&s->policy, &unembedding, c->n, c->b.t_nc, logits_nv, c->b.work);
    show_end_point(c, "F2", c->config->vocab, logits_nv);
}

static void run_chunk(token_chunk *c, const int32_t *tokens_n, double *logits_nv) {
    sinkproof_session *s = c->session;
    if (c->config->rotation.kind != SINKPROOF_NO_ROTATION) {
        sinkproof_yarn_frequencies(&s->policy, c->config, c->b.freq_d);
        sinkproof_rope_table(&s->policy, c->config, c->b.freq_d, c->first, c->n, c->b.cos_nd,
                             c->b.sin_nd);
    }
    //> model.forward gpt2.forward
    embed_tokens(c, tokens_n);
    for (c->l = 0; c->l < c->config->n_layers; c->l++) {
        sinkproof_layer layer = sinkproof_model_layer(s->model, c->l);
        attention_sublayer(c, &layer);
        mlp_sublayer(c, &layer);
    }
    if (logits_nv != NULL || c->observer != NULL) finish_logits(c, logits_nv);
    //< model.forward gpt2.forward
    s->length += c->n;
}

bool sinkproof_forward(sinkproof_session *session, size_t n, const int32_t *tokens_n,
                       double *logits_nv, const sinkproof_observer *observer,
                       sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(session->model);
    if (!session_check(session, n, tokens_n, error)) return false;
    if (!session_reserve(session, session->length + n, error)) return false;
    size_t step = observer != NULL || n < CHUNK ? n : CHUNK;
    for (size_t done = 0; done < n; done += step) {
        token_chunk c = {.session = session, .config = config, .observer = observer};
        c.n = n - done < step ? n - done : step;
        c.first = session->length;
        bool own_logits = observer != NULL && !observer->no_logits && logits_nv == NULL;
        if (!buffers_new(config, c.n, c.first + c.n, observer != NULL, own_logits, &c.b, error))
            return false;
        double *logits = logits_nv != NULL ? logits_nv + done * config->vocab : c.b.logits_nv;
        run_chunk(&c, tokens_n + done, logits);
        buffers_free(&c.b);
    }
    return true;
}
