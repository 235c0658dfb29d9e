// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The layer loop (T0 ... F2, doc/10-forward.md): embedding, then per layer attention and experts,
// each behind a norm and added to the residual; a last norm; the logits. It computes nothing
// itself: the numbers come from the stages (the table's, and the residual's sum and the rotation's
// angles, which have no other form), and the observer sees them as soon as they are there.
#include "ref/forward.h"

#include "ref/loop.h"

// Tokens per pass through the layers when nobody looks: bounds the memory of a long prompt.
enum { CHUNK = 256 };

// A2 to A4.
static void project(sinkproof_chunk *c, const sinkproof_layer *layer) {
    const sinkproof_stages *stages = c->session->stages;
    const sinkproof_policy *policy = &c->session->policy;
    sinkproof_buffers *b = &c->b;
    size_t heads = c->config->n_heads, groups = c->config->n_kv_heads, d = c->config->head_dim;
    sinkproof_loop_project(c, layer);
    stages->rope(policy, c->n, heads, d, b->cos_nd, b->sin_nd, b->q_nhd);
    stages->rope(policy, c->n, groups, d, b->cos_nd, b->sin_nd, b->k_ngd);
    see_heads(c, "A4.q", heads, b->q_nhd);
    see_heads(c, "A4.k", groups, b->k_ngd);
}

// A1 to A13.
static void attention_sublayer(sinkproof_chunk *c, const sinkproof_layer *layer) {
    c->session->stages->rmsnorm(&c->session->policy, SINKPROOF_AT_A1, &layer->attn_norm,
                                c->config->rms_eps, c->n, c->b.x_nc, c->b.t_nc, c->b.work);
    see_nc(c, "A1", c->config->hidden, c->b.t_nc);
    project(c, layer);
    sinkproof_loop_attend(c, layer);
    sinkproof_loop_output(c, layer);
}

// M2 to M4; the experts are those that the observer leaves.
static void see_router(sinkproof_chunk *c) {
    size_t k = c->config->n_chosen;
    if (c->observer == NULL) return;
    see_nc(c, "M2", c->config->n_experts, c->b.router_ne);
    for (size_t i = 0; i < c->n * k; i++) c->b.chosen_real_nk[i] = (double)c->b.chosen_nk[i];
    see_nc(c, "M3", k, c->b.chosen_real_nk);
    for (size_t i = 0; i < c->n * k; i++) c->b.chosen_nk[i] = (int32_t)c->b.chosen_real_nk[i];
    see_nc(c, "M4", k, c->b.weights_nk);
}

// M5 to M10.
static void see_experts(sinkproof_chunk *c) {
    const sinkproof_config *config = c->config;
    const sinkproof_expert_outputs *e = &c->b.experts;
    size_t n = c->n, k = config->n_chosen;
    if (c->observer == NULL) return;
    sinkproof_see(c, "M5", 3, (size_t[]){n, k, 2 * config->inter}, e->up_raw);
    sinkproof_see(c, "M6", 3, (size_t[]){n, k, 2 * config->inter}, e->up);
    sinkproof_see(c, "M8", 3, (size_t[]){n, k, config->inter}, e->act);
    sinkproof_see(c, "M9", 3, (size_t[]){n, k, config->hidden}, e->down_raw);
    sinkproof_see(c, "M10", 3, (size_t[]){n, k, config->hidden}, e->down);
}

// M1 to M12.
static void expert_sublayer(sinkproof_chunk *c, const sinkproof_layer *layer) {
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
static void finish(sinkproof_chunk *c, double *logits_nv) {
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

static void run_chunk(sinkproof_chunk *c, const int32_t *tokens_n, double *logits_nv) {
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

// The loop of each architecture.
typedef void loop(sinkproof_chunk *c, const int32_t *tokens_n, double *logits_nv);
static loop *const loops[SINKPROOF_ARCHITECTURES] = {
    [SINKPROOF_GPT_OSS] = run_chunk, [SINKPROOF_GPT2] = sinkproof_loop_gpt2};

bool sinkproof_forward(sinkproof_session *session, size_t n, const int32_t *tokens_n,
                       double *logits_nv, const sinkproof_observer *observer,
                       sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(session->model);
    if (!sinkproof_session_check(session, n, tokens_n, error)) return false;
    if (!sinkproof_session_reserve(session, session->length + n, error)) return false;
    loop *run = loops[config->architecture];
    size_t step = observer != NULL || n < CHUNK ? n : CHUNK;
    for (size_t done = 0; done < n; done += step) {
        sinkproof_chunk c = {.session = session, .config = config, .observer = observer};
        c.n = n - done < step ? n - done : step;
        c.first = session->length;
        bool own_logits = observer != NULL && !observer->no_logits && logits_nv == NULL;
        if (!sinkproof_buffers_new(config, c.n, c.first + c.n, observer != NULL, own_logits, &c.b,
                                   error))
            return false;
        double *logits = logits_nv != NULL ? logits_nv + done * config->vocab : c.b.logits_nv;
        run(&c, tokens_n + done, logits);
        sinkproof_buffers_free(&c.b);
    }
    return true;
}
