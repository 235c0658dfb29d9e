// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The layer loop (T0 ... F2, doc/10-forward.md): embedding, then per layer attention and experts,
// each behind a norm and added to the residual; a last norm; the logits. It computes nothing
// itself: the numbers come from the stages (the table's, and the residual's sum and the rotation's
// angles, which have no other form), and the observer sees them as soon as they are there.
#include "ref/forward.h"

#include "ref/buffers.h"
#include "ref/session.h"

#include <stdio.h>
#include <string.h>

// Tokens per pass through the layers when nobody looks: bounds the memory of a long prompt.
enum { CHUNK = 256 };

// One chunk on its way: where it is, and what it writes to.
typedef struct chunk {
    sinkproof_session *session;
    const sinkproof_config *config;
    const sinkproof_observer *observer; // or NULL
    sinkproof_buffers b;
    size_t n, first; // tokens, position of the first
    size_t l;        // layer
} chunk;

// Shows the observer a point by its whole name ("F2"); it may put other values in their place.
static void see_whole(const chunk *c, const char *full, size_t rank, const size_t *shape,
                      double *values) {
    const sinkproof_observer *o = c->observer;
    if (o == NULL) return;
    if (o->replace != NULL) o->replace(o->context, full, rank, shape, values);
    o->see(o->context, full, rank, shape, values);
}

// The point `name` of the layer at hand ("03.A1").
static void see(const chunk *c, const char *name, size_t rank, const size_t *shape,
                double *values) {
    char full[48];
    snprintf(full, sizeof full, "%02zu.%s", c->l, name);
    see_whole(c, full, rank, shape, values);
}

static void see_nc(const chunk *c, const char *name, size_t width, double *values_nc) {
    see(c, name, 2, (size_t[]){c->n, width}, values_nc);
}

static void see_heads(const chunk *c, const char *name, size_t heads, double *values_nhd) {
    see(c, name, 3, (size_t[]){c->n, heads, c->config->head_dim}, values_nhd);
}

static void see_end(const chunk *c, const char *name, size_t width, double *values_nc) {
    see_whole(c, name, 2, (size_t[]){c->n, width}, values_nc);
}

// What is read later may be rounded before: queries, and keys and values when they are cached.
static void round_all(const sinkproof_policy *policy, sinkproof_point point, size_t count,
                      double *x) {
    for (size_t i = 0; i < count; i++) x[i] = sinkproof_round_at(policy, point, x[i]);
}

// A2 to A4, and the new keys and values into the cache.
static void project(chunk *c, const sinkproof_layer *layer) {
    const sinkproof_config *config = c->config;
    const sinkproof_stages *stages = c->session->stages;
    const sinkproof_policy *policy = &c->session->policy;
    sinkproof_buffers *b = &c->b;
    size_t heads = config->n_heads, groups = config->n_kv_heads, d = config->head_dim;
    stages->qkv(policy, layer, c->n, b->t_nc, b->q_nhd, b->k_ngd, b->v_ngd, b->work);
    see_heads(c, "A2.q", heads, b->q_nhd);
    see_heads(c, "A2.k", groups, b->k_ngd);
    see_heads(c, "A2.v", groups, b->v_ngd);
    stages->rope(policy, c->n, heads, d, b->cos_nd, b->sin_nd, b->q_nhd);
    stages->rope(policy, c->n, groups, d, b->cos_nd, b->sin_nd, b->k_ngd);
    see_heads(c, "A4.q", heads, b->q_nhd);
    see_heads(c, "A4.k", groups, b->k_ngd);
    size_t width = groups * d, bytes = c->n * width * sizeof(double);
    round_all(policy, SINKPROOF_AT_A5_Q, c->n * heads * d, b->q_nhd);
    round_all(policy, SINKPROOF_AT_A5_K, c->n * width, b->k_ngd);
    round_all(policy, SINKPROOF_AT_A11_V, c->n * width, b->v_ngd);
    memcpy(c->session->k_ljgd[c->l] + c->first * width, b->k_ngd, bytes);
    memcpy(c->session->v_ljgd[c->l] + c->first * width, b->v_ngd, bytes);
}

// A5 to A11 for head h and the queries from row i on. Scores and weights stay behind for an
// observer; attention in one pass leaves the scores alone, and only when somebody looks.
static void attend_block(chunk *c, size_t h, size_t i, const sinkproof_normaliser *normaliser,
                         double *s_ij, double *alpha_ij) {
    const sinkproof_config *config = c->config;
    const sinkproof_stages *stages = c->session->stages;
    const sinkproof_policy *policy = &c->session->policy;
    size_t d = config->head_dim, g = h / (config->n_heads / config->n_kv_heads);
    size_t left = c->n - i;
    sinkproof_block block = {
        .rows = left < c->b.rows ? left : c->b.rows,
        .keys = c->first + c->n,
        .first = c->first + i,
        .window = config->sliding[c->l] ? config->window : 0,
        .head_dim = d,
        .q_stride = config->n_heads * d,
        .kv_stride = config->n_kv_heads * d,
    };
    const double *q_id = c->b.q_nhd + i * block.q_stride + h * d;
    const double *k_jd = c->session->k_ljgd[c->l] + g * d, *v_jd = c->session->v_ljgd[c->l] + g * d;
    double *o_id = c->b.o_nhd + i * block.q_stride + h * d;
    bool one_pass = stages->attention != NULL;
    stages->sink_logits(policy, &block, normaliser, q_id, c->b.b_i);
    if (!one_pass || c->observer != NULL) stages->scores(policy, &block, q_id, k_jd, s_ij);
    if (one_pass) {
        stages->attention(policy, &block, c->b.b_i, q_id, k_jd, v_jd, o_id);
        return;
    }
    stages->softmax_sink(policy, &block, c->b.b_i, s_ij, alpha_ij);
    stages->values(policy, &block, alpha_ij, v_jd, o_id);
}

// A6, A9 and A10 of every head; A6 alone when attention is one pass.
static void see_attention(chunk *c, size_t keys) {
    size_t heads = c->config->n_heads, rows = heads * c->n;
    see(c, "A6", 3, (size_t[]){heads, c->n, keys}, c->b.s_hij);
    if (c->session->stages->attention != NULL) return;
    for (size_t r = 0; r < rows; r++) // A10: the sink's column dropped
        memcpy(c->b.weight_hij + r * keys, c->b.alpha_hij + r * (keys + 1), keys * sizeof(double));
    see(c, "A9", 3, (size_t[]){heads, c->n, keys + 1}, c->b.alpha_hij);
    see(c, "A10", 3, (size_t[]){heads, c->n, keys}, c->b.weight_hij);
}

// A5 to A11.
static void attend(chunk *c, const sinkproof_layer *layer) {
    size_t heads = c->config->n_heads, keys = c->first + c->n;
    for (size_t h = 0; h < heads; h++) {
        sinkproof_normaliser normaliser = // the experts' scratch is free here
            sinkproof_normaliser_of(c->config, layer, h, c->b.work);
        size_t kept = c->observer != NULL ? h : 0; // heads already held for the observer
        for (size_t i = 0; i < c->n; i += c->b.rows)
            attend_block(c, h, i, &normaliser, c->b.s_hij + kept * c->b.rows * keys,
                         c->b.alpha_hij + kept * c->b.rows * (keys + 1));
    }
    if (c->observer != NULL) see_attention(c, keys);
    see_heads(c, "A11", heads, c->b.o_nhd);
}

// A1 to A13.
static void attention_sublayer(chunk *c, const sinkproof_layer *layer) {
    const sinkproof_policy *policy = &c->session->policy;
    const sinkproof_stages *stages = c->session->stages;
    sinkproof_buffers *b = &c->b;
    size_t hidden = c->config->hidden;
    stages->rmsnorm(policy, SINKPROOF_AT_A1, &layer->attn_norm, c->config->rms_eps, c->n, b->x_nc,
                    b->t_nc, b->work);
    see_nc(c, "A1", hidden, b->t_nc);
    project(c, layer);
    attend(c, layer);
    stages->output(policy, layer, c->n, b->o_nhd, b->out_nc, b->work);
    see_nc(c, "A12", hidden, b->out_nc);
    sinkproof_residual(policy, SINKPROOF_AT_A13, c->n * hidden, b->out_nc, b->x_nc);
    see_nc(c, "A13", hidden, b->x_nc);
}

// M2 to M4; the experts are those that the observer leaves.
static void see_router(chunk *c) {
    size_t k = c->config->n_chosen;
    if (c->observer == NULL) return;
    see_nc(c, "M2", c->config->n_experts, c->b.router_ne);
    for (size_t i = 0; i < c->n * k; i++) c->b.chosen_real_nk[i] = (double)c->b.chosen_nk[i];
    see_nc(c, "M3", k, c->b.chosen_real_nk);
    for (size_t i = 0; i < c->n * k; i++) c->b.chosen_nk[i] = (int32_t)c->b.chosen_real_nk[i];
    see_nc(c, "M4", k, c->b.weights_nk);
}

// M5 to M10.
static void see_experts(chunk *c) {
    const sinkproof_config *config = c->config;
    const sinkproof_expert_outputs *e = &c->b.experts;
    size_t n = c->n, k = config->n_chosen;
    if (c->observer == NULL) return;
    see(c, "M5", 3, (size_t[]){n, k, 2 * config->inter}, e->up_raw);
    see(c, "M6", 3, (size_t[]){n, k, 2 * config->inter}, e->up);
    see(c, "M8", 3, (size_t[]){n, k, config->inter}, e->act);
    see(c, "M9", 3, (size_t[]){n, k, config->hidden}, e->down_raw);
    see(c, "M10", 3, (size_t[]){n, k, config->hidden}, e->down);
}

// M1 to M12.
static void expert_sublayer(chunk *c, const sinkproof_layer *layer) {
    const sinkproof_config *config = c->config;
    const sinkproof_policy *policy = &c->session->policy;
    const sinkproof_stages *stages = c->session->stages;
    sinkproof_buffers *b = &c->b;
    size_t n = c->n, hidden = config->hidden;
    stages->rmsnorm(policy, SINKPROOF_AT_M1, &layer->mlp_norm, config->rms_eps, n, b->x_nc, b->t_nc,
                    b->work);
    see_nc(c, "M1", hidden, b->t_nc);
    stages->router(policy, layer, n, config->n_chosen, b->t_nc, b->router_ne, b->chosen_nk,
                   b->weights_nk, b->work);
    see_router(c);
    stages->experts(policy, config, layer, n, b->t_nc, b->chosen_nk, &b->experts, b->work);
    see_experts(c);
    stages->mixture(policy, n, config->n_chosen, hidden, b->chosen_nk, b->weights_nk,
                    b->experts.down, b->out_nc);
    see_nc(c, "M11", hidden, b->out_nc);
    sinkproof_residual(policy, SINKPROOF_AT_M12, n * hidden, b->out_nc, b->x_nc);
    see_nc(c, "M12", hidden, b->x_nc);
}

// F1, and F2 unless logits_nv is NULL.
static void finish(chunk *c, double *logits_nv) {
    const sinkproof_model *model = c->session->model;
    const sinkproof_stages *stages = c->session->stages;
    sinkproof_matrix norm = sinkproof_model_final_norm(model);
    sinkproof_matrix unembedding = sinkproof_model_unembedding(model);
    stages->rmsnorm(&c->session->policy, SINKPROOF_AT_F1, &norm, c->config->rms_eps, c->n,
                    c->b.x_nc, c->b.t_nc, c->b.work);
    see_end(c, "F1", c->config->hidden, c->b.t_nc);
    if (logits_nv == NULL) return;
    stages->unembed(&c->session->policy, &unembedding, c->n, c->b.t_nc, logits_nv, c->b.work);
    see_end(c, "F2", c->config->vocab, logits_nv);
}

static void run_chunk(chunk *c, const int32_t *tokens_n, double *logits_nv) {
    sinkproof_session *s = c->session;
    sinkproof_matrix embedding = sinkproof_model_embedding(s->model);
    sinkproof_yarn_frequencies(&s->policy, c->config, c->b.freq_d);
    sinkproof_rope_table(&s->policy, c->config, c->b.freq_d, c->first, c->n, c->b.cos_nd,
                         c->b.sin_nd);
    //> model.forward
    s->stages->embed(&s->policy, &embedding, c->n, tokens_n, c->b.x_nc);
    see_end(c, "T0", c->config->hidden, c->b.x_nc);
    for (c->l = 0; c->l < c->config->n_layers; c->l++) {
        sinkproof_layer layer = sinkproof_model_layer(s->model, c->l);
        attention_sublayer(c, &layer);
        expert_sublayer(c, &layer);
    }
    if (logits_nv != NULL || c->observer != NULL) finish(c, logits_nv);
    //< model.forward
    s->length += c->n;
}

bool sinkproof_forward(sinkproof_session *session, size_t n, const int32_t *tokens_n,
                       double *logits_nv, const sinkproof_observer *observer,
                       sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(session->model);
    if (!sinkproof_session_check(session, n, tokens_n, error)) return false;
    if (!sinkproof_session_reserve(session, session->length + n, error)) return false;
    size_t step = observer != NULL || n < CHUNK ? n : CHUNK;
    for (size_t done = 0; done < n; done += step) {
        chunk c = {.session = session, .config = config, .observer = observer};
        c.n = n - done < step ? n - done : step;
        c.first = session->length;
        bool own_logits = observer != NULL && !observer->no_logits && logits_nv == NULL;
        if (!sinkproof_buffers_new(config, c.n, c.first + c.n, observer != NULL, own_logits, &c.b,
                                   error))
            return false;
        double *logits = logits_nv != NULL ? logits_nv + done * config->vocab : c.b.logits_nv;
        run_chunk(&c, tokens_n + done, logits);
        sinkproof_buffers_free(&c.b);
    }
    return true;
}
