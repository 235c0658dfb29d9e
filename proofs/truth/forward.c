// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The walk through the model over the reals. Nothing is rounded to a storage format: an engine's
// roundings are measured as the distance to this walk.
#include "proofs/truth/forward.h"

#include "base/words.h"
#include "model/slots.h"

#include <stdlib.h>

// The state of one walk: the request, the residual x_nc, the choices.
typedef struct pass {
    const sinkproof_truth_request *request;
    const sinkproof_config *config;
    int32_t *positions_n;
    sinkproof_truth_yarn yarn;
    arb_ptr x_nc;
    size_t *chosen_nk;
    sinkproof_truth_routing *routing;
    sinkproof_error *error;
} pass;

static arb_ptr ball_vector(size_t n) {
    return _arb_vec_init((slong)n);
}

static void ball_vector_release(arb_ptr values, size_t n) {
    _arb_vec_clear(values, (slong)n);
}

// Called at each point: it is seen, then perhaps replaced by an engine's own values.
static void reach_point(pass *p, const char *point, bool layered, size_t layer, size_t rank,
                        const size_t *shape, arb_ptr values) {
    const sinkproof_truth_hooks *hooks = p->request->hooks;
    if (hooks == NULL) return;
    char name[64];
    snprintf(name, sizeof name, "%02zu.%s", layer, point);
    sinkproof_truth_place place = {layered ? name : point, point, layer, rank, shape};
    if (hooks->see != NULL) hooks->see(hooks->context, &place, values);
    if (hooks->replay != NULL) hooks->replay(hooks->context, &place, values);
}

static void reach_point_2(pass *p, const char *point, size_t layer, size_t a, size_t b,
                          arb_ptr values) {
    size_t shape[2] = {a, b};
    reach_point(p, point, true, layer, 2, shape, values);
}

static void reach_point_3(pass *p, const char *point, size_t layer, size_t a, size_t b, size_t c,
                          arb_ptr values) {
    size_t shape[3] = {a, b, c};
    reach_point(p, point, true, layer, 3, shape, values);
}

// J(i) = [first_key, i]: causal, and the last `window` keys on sliding layers (mask.window).
static size_t first_key(const pass *p, size_t layer, size_t i) {
    size_t window = p->config->window;
    return p->config->sliding[layer] && i >= window ? i - window + 1 : 0;
}

// Adds the rows of the positions to the embeddings.
static void add_position_rows(pass *p, double *scratch) {
    size_t hidden = p->config->hidden;
    sinkproof_matrix positions = sinkproof_model_slot(p->request->model, 0, SINKPROOF_POSITIONS);
    arb_ptr row = ball_vector(hidden);
    for (size_t i = 0; i < p->request->n; i++) {
        sinkproof_truth_row(row, &positions, i, scratch);
        _arb_vec_add(p->x_nc + i * hidden, p->x_nc + i * hidden, row, (slong)hidden,
                     p->request->bits);
    }
    ball_vector_release(row, hidden);
}

static void pass_embed(pass *p) {
    size_t n = p->request->n, hidden = p->config->hidden, shape[2] = {n, hidden};
    sinkproof_matrix table = sinkproof_model_embedding(p->request->model);
    double *scratch = malloc(hidden * sizeof *scratch);
    if (scratch == NULL) abort();
    for (size_t i = 0; i < n; i++)
        sinkproof_truth_row(p->x_nc + i * hidden, &table, (size_t)p->request->tokens_n[i], scratch);
    if (p->config->rotation.kind == SINKPROOF_NO_ROTATION) add_position_rows(p, scratch);
    free(scratch);
    reach_point(p, "T0", false, 0, 2, shape, p->x_nc);
}

// Queries or keys: project, then rotate. Returns the rotated [n, heads, head_dim].
static arb_ptr project_and_rotate(pass *p, size_t layer, size_t heads, const sinkproof_matrix *w,
                                  const sinkproof_matrix *b, arb_srcptr t_nc,
                                  const char *projected_point, const char *rotated_point) {
    size_t n = p->request->n, d = p->config->head_dim, size = n * heads * d;
    arb_ptr plain = ball_vector(size), turned = ball_vector(size);
    sinkproof_truth_linear(plain, t_nc, n, w, b, p->request->bits);
    reach_point_3(p, projected_point, layer, n, heads, d, plain);
    if (p->config->rotation.kind == SINKPROOF_NO_ROTATION) {
        ball_vector_release(turned, size);
        return plain;
    }
    sinkproof_truth_rope(turned, plain, n, heads, p->positions_n, &p->yarn, p->request->bits);
    reach_point_3(p, rotated_point, layer, n, heads, d, turned);
    ball_vector_release(plain, size);
    return turned;
}

// Scores of every query against every key, seen before mask and sink: [heads, n, n].
static arb_ptr pass_scores(pass *p, size_t layer, arb_srcptr q, arb_srcptr k) {
    size_t n = p->request->n, heads = p->config->n_heads, kv = p->config->n_kv_heads;
    size_t d = p->config->head_dim;
    arb_ptr z = ball_vector(heads * n * n);
    for (size_t h = 0; h < heads; h++)
        for (size_t i = 0; i < n; i++)
            sinkproof_truth_scores(z + (h * n + i) * n, q + (i * heads + h) * d,
                                   k + h / (heads / kv) * d, n, kv * d, d, p->request->bits);
    reach_point_3(p, "A6", layer, heads, n, n, z);
    return z;
}

// Weights with the sink in the last column (A9), then without it (A10): [heads, n, n].
static arb_ptr pass_weights(pass *p, size_t layer, const sinkproof_layer *w, arb_srcptr q,
                            arb_srcptr z) {
    size_t n = p->request->n, heads = p->config->n_heads, d = p->config->head_dim;
    arb_ptr full = ball_vector(heads * n * (n + 1)), alpha = ball_vector(heads * n * n);
    arb_t b;
    arb_init(b);
    double *scratch = malloc(sinkproof_normaliser_work(p->config) * sizeof *scratch);
    if (scratch == NULL) abort();
    for (size_t h = 0; h < heads; h++) {
        sinkproof_normaliser normaliser = sinkproof_head_normaliser(p->config, w, h, scratch);
        for (size_t i = 0; i < n; i++) {
            arb_ptr row = full + (h * n + i) * (n + 1);
            size_t first = first_key(p, layer, i);
            truth_sink_logit(b, &normaliser, q + (i * heads + h) * d, d, p->request->bits);
            sinkproof_truth_softmax_sink(row + first, row + n, z + (h * n + i) * n + first,
                                         i + 1 - first, b, p->request->bits);
        }
    }
    reach_point_3(p, "A9", layer, heads, n, n + 1, full);
    for (size_t row = 0; row < heads * n; row++)
        for (size_t j = 0; j < n; j++) arb_swap(alpha + row * n + j, full + row * (n + 1) + j);
    reach_point_3(p, "A10", layer, heads, n, n, alpha);
    ball_vector_release(full, heads * n * (n + 1));
    arb_clear(b);
    free(scratch);
    return alpha;
}

static arb_ptr weighted_values(pass *p, size_t layer, arb_srcptr alpha, arb_srcptr v) {
    size_t n = p->request->n, heads = p->config->n_heads, kv = p->config->n_kv_heads;
    size_t d = p->config->head_dim;
    arb_ptr o = ball_vector(n * heads * d);
    for (size_t i = 0; i < n; i++)
        for (size_t h = 0; h < heads; h++) {
            size_t first = first_key(p, layer, i);
            sinkproof_truth_values(o + (i * heads + h) * d, alpha + (h * n + i) * n + first,
                                   v + (first * kv + h / (heads / kv)) * d, i + 1 - first, kv * d,
                                   d, p->request->bits);
        }
    reach_point_3(p, "A11", layer, n, heads, d, o);
    return o;
}

// x += t: the residual stream.
static void add_residual(pass *p, const char *point, size_t layer, arb_srcptr t_nc) {
    size_t n = p->request->n, hidden = p->config->hidden;
    _arb_vec_add(p->x_nc, p->x_nc, t_nc, (slong)(n * hidden), p->request->bits);
    reach_point_2(p, point, layer, n, hidden, p->x_nc);
}

// n rows; the shift b is of models whose norms subtract the mean.
static void pass_norm_rows(const pass *p, arb_ptr t, arb_srcptr x, size_t n,
                           const sinkproof_matrix *w, const sinkproof_matrix *b) {
    if (p->config->norm == SINKPROOF_LAYERNORM)
        sinkproof_truth_layernorm(t, x, n, w, b, p->config->rms_eps, p->request->bits);
    else
        sinkproof_truth_rmsnorm(t, x, n, w, p->config->rms_eps, p->request->bits);
}

static void pass_attention_sublayer(pass *p, size_t layer, const sinkproof_layer *w) {
    const sinkproof_config *c = p->config;
    size_t n = p->request->n, d = c->head_dim, kv_size = n * c->n_kv_heads * d;
    slong bits = p->request->bits;
    arb_ptr t = ball_vector(n * c->hidden), v = ball_vector(kv_size);
    pass_norm_rows(p, t, p->x_nc, n, &w->attn_norm, &w->attn_norm_b);
    reach_point_2(p, "A1", layer, n, c->hidden, t);
    arb_ptr q = project_and_rotate(p, layer, c->n_heads, &w->w_q, &w->b_q, t, "A2.q", "A4.q");
    arb_ptr k = project_and_rotate(p, layer, c->n_kv_heads, &w->w_k, &w->b_k, t, "A2.k", "A4.k");
    sinkproof_truth_linear(v, t, n, &w->w_v, &w->b_v, bits);
    reach_point_3(p, "A2.v", layer, n, c->n_kv_heads, d, v);
    arb_ptr z = pass_scores(p, layer, q, k);
    arb_ptr alpha = pass_weights(p, layer, w, q, z);
    arb_ptr o = weighted_values(p, layer, alpha, v);
    sinkproof_truth_linear(t, o, n, &w->w_o, &w->b_o, bits);
    reach_point_2(p, "A12", layer, n, c->hidden, t);
    add_residual(p, "A13", layer, t);
    ball_vector_release(t, n * c->hidden);
    ball_vector_release(v, kv_size);
    ball_vector_release(q, n * c->n_heads * d);
    ball_vector_release(k, kv_size);
    ball_vector_release(z, c->n_heads * n * n);
    ball_vector_release(alpha, c->n_heads * n * n);
    ball_vector_release(o, n * c->n_heads * d);
}

// Writes one choice into the account: thinnest margin, first ambiguity.
static void account_choice(sinkproof_truth_routing *routing, truth_choice choice,
                           const arb_t margin, size_t layer, size_t token) {
    arf_t low, thinnest;
    arf_init(low);
    arf_init(thinnest);
    arb_get_lbound_arf(low, margin, 64);
    arb_get_lbound_arf(thinnest, routing->margin, 64);
    if (routing->choices == 0 || arf_is_nan(low) || arf_cmp(low, thinnest) < 0) {
        arb_set(routing->margin, margin);
        routing->layer = layer;
        routing->token = token;
    }
    if (choice == CHOICE_AMBIGUOUS && routing->ambiguous++ == 0) {
        arb_set(routing->first_margin, margin);
        routing->first_layer = layer;
        routing->first_token = token;
    }
    routing->ties += choice == CHOICE_TIE;
    routing->choices++;
    arf_clear(low);
    arf_clear(thinnest);
}

static bool valid_selection(const pass *p, size_t layer, const size_t *chosen_k, size_t token) {
    for (size_t k = 0; k < p->config->n_chosen; k++) {
        if (chosen_k[k] >= p->config->n_experts)
            return sinkproof_fail(
                p->error, "%02zu.M3: expert %zu of token %zu where the model has %s", layer,
                chosen_k[k], token, sinkproof_counted(p->config->n_experts, "expert").text);
        for (size_t other = 0; other < k; other++)
            if (chosen_k[other] == chosen_k[k])
                return sinkproof_fail(p->error, "%02zu.M3: token %zu chooses expert %zu twice",
                                      layer, token, chosen_k[k]);
    }
    return true;
}

// Another expert's ball lies wholly above a chosen one's: never where the middles chose.
static bool is_contested(const pass *p, const size_t *chosen_k, arb_srcptr logit_e) {
    arb_t margin;
    arb_init(margin);
    truth_margin(margin, chosen_k, logit_e, p->config->n_experts, p->config->n_chosen,
                 p->request->bits);
    bool contested = arb_is_negative(margin);
    arb_clear(margin);
    return contested;
}

// An engine's selection stands in for the truth's.
static bool replay_selection(pass *p, size_t layer, arb_srcptr logit_ne) {
    const sinkproof_truth_hooks *hooks = p->request->hooks;
    if (hooks == NULL || hooks->choose == NULL) return true;
    if (!hooks->choose(hooks->context, layer, p->chosen_nk)) return true;
    for (size_t i = 0; i < p->request->n; i++) {
        const size_t *chosen_k = p->chosen_nk + i * p->config->n_chosen;
        if (!valid_selection(p, layer, chosen_k, i)) return false;
        p->routing->contested += is_contested(p, chosen_k, logit_ne + i * p->config->n_experts);
    }
    return true;
}

// Router logits, the selection, the weights of the chosen: w_nk.
static bool pass_route(pass *p, size_t layer, const sinkproof_layer *w, arb_srcptr t_nc,
                       arb_ptr w_nk) {
    const sinkproof_config *c = p->config;
    size_t n = p->request->n, k = c->n_chosen;
    arb_ptr logit_ne = ball_vector(n * c->n_experts), ids = ball_vector(n * k);
    arb_t margin;
    arb_init(margin);
    sinkproof_truth_linear(logit_ne, t_nc, n, &w->w_router, &w->b_router, p->request->bits);
    reach_point_2(p, "M2", layer, n, c->n_experts, logit_ne);
    for (size_t i = 0; i < n; i++) {
        truth_choice choice =
            sinkproof_truth_topk(p->chosen_nk + i * k, margin, logit_ne + i * c->n_experts,
                                 c->n_experts, k, p->request->bits);
        account_choice(p->routing, choice, margin, layer, i);
    }
    for (size_t s = 0; s < n * k; s++) arb_set_ui(ids + s, p->chosen_nk[s]);
    reach_point_2(p, "M3", layer, n, k, ids);
    bool valid = replay_selection(p, layer, logit_ne);
    for (size_t i = 0; i < n && valid; i++)
        sinkproof_truth_router_weights(w_nk + i * k, p->chosen_nk + i * k,
                                       logit_ne + i * c->n_experts, k, p->request->bits);
    if (valid) reach_point_2(p, "M4", layer, n, k, w_nk);
    arb_clear(margin);
    ball_vector_release(logit_ne, n * c->n_experts);
    ball_vector_release(ids, n * k);
    return valid;
}

// The chosen experts on the normed t, mixed by w_nk and added to the residual.
static void pass_mix_experts(pass *p, size_t layer, const sinkproof_layer *w, arb_srcptr t_nc,
                             arb_srcptr w_nk) {
    const sinkproof_config *c = p->config;
    size_t n = p->request->n, k = c->n_chosen, slots = n * k;
    slong bits = p->request->bits;
    arb_ptr u = ball_vector(slots * 2 * c->inter), y = ball_vector(slots * c->inter);
    arb_ptr out = ball_vector(slots * c->hidden), mixed = ball_vector(n * c->hidden);
    truth_expert_linear(u, t_nc, false, n, p->chosen_nk, k, &w->w_up, bits);
    reach_point_3(p, "M5", layer, n, k, 2 * c->inter, u);
    truth_expert_bias(u, n, p->chosen_nk, k, &w->b_up, bits);
    reach_point_3(p, "M6", layer, n, k, 2 * c->inter, u);
    for (size_t s = 0; s < slots; s++)
        sinkproof_truth_swiglu(y + s * c->inter, u + s * 2 * c->inter, c->inter, c->swiglu, bits);
    reach_point_3(p, "M8", layer, n, k, c->inter, y);
    truth_expert_linear(out, y, true, n, p->chosen_nk, k, &w->w_down, bits);
    reach_point_3(p, "M9", layer, n, k, c->hidden, out);
    truth_expert_bias(out, n, p->chosen_nk, k, &w->b_down, bits);
    reach_point_3(p, "M10", layer, n, k, c->hidden, out);
    for (size_t i = 0; i < n; i++)
        sinkproof_truth_mixture(mixed + i * c->hidden, w_nk + i * k, out + i * k * c->hidden, k,
                                c->hidden, bits);
    reach_point_2(p, "M11", layer, n, c->hidden, mixed);
    add_residual(p, "M12", layer, mixed);
    ball_vector_release(u, slots * 2 * c->inter);
    ball_vector_release(y, slots * c->inter);
    ball_vector_release(out, slots * c->hidden);
    ball_vector_release(mixed, n * c->hidden);
}

//> gpt2.forward
// M1 to M12 in a model without a router.
static bool pass_mlp(pass *p, size_t layer, const sinkproof_layer *w) {
    const sinkproof_config *c = p->config;
    size_t n = p->request->n, hidden = c->hidden, inter = c->inter, width = w->w_up.rows;
    arb_ptr t = ball_vector(n * hidden), u = ball_vector(n * width), y = ball_vector(n * inter);
    pass_norm_rows(p, t, p->x_nc, n, &w->mlp_norm, &w->mlp_norm_b);
    reach_point_2(p, "M1", layer, n, hidden, t);
    sinkproof_truth_linear(u, t, n, &w->w_up, &w->b_up, p->request->bits);
    reach_point_2(p, "M6", layer, n, width, u);
    if (c->activation == SINKPROOF_SWIGLU)
        sinkproof_truth_swiglu(y, u, n * inter, c->swiglu, p->request->bits);
    else
        sinkproof_truth_gelu_tanh(y, u, n * inter, p->request->bits);
    reach_point_2(p, "M8", layer, n, inter, y);
    sinkproof_truth_linear(t, y, n, &w->w_down, &w->b_down, p->request->bits);
    reach_point_2(p, "M10", layer, n, hidden, t);
    add_residual(p, "M12", layer, t);
    ball_vector_release(t, n * hidden);
    ball_vector_release(u, n * width);
    ball_vector_release(y, n * inter);
    return true;
}
//< gpt2.forward

static bool mixture_of_experts(pass *p, size_t layer, const sinkproof_layer *w) {
    if (p->config->dense) return pass_mlp(p, layer, w);
    size_t size = p->request->n * p->config->hidden, slots = p->request->n * p->config->n_chosen;
    arb_ptr t = ball_vector(size), w_nk = ball_vector(slots);
    sinkproof_truth_rmsnorm(t, p->x_nc, p->request->n, &w->mlp_norm, p->config->rms_eps,
                            p->request->bits);
    reach_point_2(p, "M1", layer, p->request->n, p->config->hidden, t);
    bool valid = pass_route(p, layer, w, t, w_nk);
    if (valid) pass_mix_experts(p, layer, w, t, w_nk);
    ball_vector_release(t, size);
    ball_vector_release(w_nk, slots);
    return valid;
}

static void pass_unembed(pass *p, sinkproof_truth_result *result) {
    size_t hidden = p->config->hidden, n = result->n, skip = p->request->n - n;
    size_t normed_shape[2] = {n, hidden}, shape[2] = {n, result->vocab};
    sinkproof_matrix scale = sinkproof_model_final_norm(p->request->model);
    sinkproof_matrix shift = sinkproof_model_slot(p->request->model, 0, SINKPROOF_FINAL_NORM_B);
    sinkproof_matrix table = sinkproof_model_unembedding(p->request->model);
    arb_ptr normed = ball_vector(n * hidden);
    pass_norm_rows(p, normed, p->x_nc + skip * hidden, n, &scale, &shift);
    reach_point(p, "F1", false, 0, 2, normed_shape, normed);
    sinkproof_truth_linear(result->logits_nv, normed, n, &table, NULL, p->request->bits);
    reach_point(p, "F2", false, 0, 2, shape, result->logits_nv);
    ball_vector_release(normed, n * hidden);
}

static bool valid_request(const sinkproof_truth_request *request, const sinkproof_config *config,
                          sinkproof_error *error) {
    if (config->rotation.kind == SINKPROOF_NO_ROTATION && request->n > config->max_context)
        return sinkproof_fail(error, "%s exceed the model's context of %zu",
                              sinkproof_counted(request->n, "token").text, config->max_context);
    if (request->n == 0 || request->n > INT32_MAX)
        return sinkproof_fail(error, "truth needs at least one token");
    if (request->bits < 32 || request->bits > 1 << 20)
        return sinkproof_fail(error, "truth needs 32 to 1048576 bits of working precision, not %ld",
                              (long)request->bits);
    for (size_t i = 0; i < request->n; i++)
        if (request->tokens_n[i] < 0 || (size_t)request->tokens_n[i] >= config->vocab)
            return sinkproof_fail(error, "token %zu is %ld, the vocabulary has %s", i,
                                  (long)request->tokens_n[i],
                                  sinkproof_counted(config->vocab, "entry").text);
    if (request->n > config->max_context)
        return sinkproof_fail(error, "%s, the model's context is %zu",
                              sinkproof_counted(request->n, "token").text, config->max_context);
    return true;
}

static void result_init(sinkproof_truth_result *result, const sinkproof_truth_request *request,
                        const sinkproof_config *config) {
    *result = (sinkproof_truth_result){.n = request->last_logits ? 1 : request->n,
                                       .vocab = config->vocab};
    result->logits_nv = ball_vector(result->n * result->vocab);
    result->routing.margin = ball_vector(1);
    result->routing.first_margin = ball_vector(1);
    arb_pos_inf(result->routing.margin);
    arb_pos_inf(result->routing.first_margin);
}

//> model.forward
bool sinkproof_truth_forward(const sinkproof_truth_request *request, sinkproof_truth_result *result,
                             sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(request->model);
    if (!valid_request(request, config, error)) return false;
    size_t n = request->n;
    pass p = {.request = request, .config = config, .routing = &result->routing, .error = error};
    p.positions_n = malloc(n * sizeof *p.positions_n);
    p.chosen_nk = malloc(n * config->n_chosen * sizeof *p.chosen_nk);
    if (p.positions_n == NULL || p.chosen_nk == NULL) abort();
    for (size_t i = 0; i < n; i++) p.positions_n[i] = (int32_t)i;
    p.x_nc = ball_vector(n * config->hidden);
    sinkproof_truth_yarn_init(&p.yarn, config, request->bits);
    result_init(result, request, config);

    bool valid = true;
    pass_embed(&p);
    for (size_t layer = 0; layer < config->n_layers && valid; layer++) {
        sinkproof_layer w = sinkproof_model_layer(request->model, layer);
        pass_attention_sublayer(&p, layer, &w);
        valid = mixture_of_experts(&p, layer, &w);
        if (request->hooks != NULL && request->hooks->progress != NULL)
            request->hooks->progress(request->hooks->context, layer + 1, config->n_layers);
    }
    if (valid) pass_unembed(&p, result);

    sinkproof_truth_yarn_clear(&p.yarn);
    ball_vector_release(p.x_nc, n * config->hidden);
    free(p.positions_n);
    free(p.chosen_nk);
    if (!valid) sinkproof_truth_result_clear(result);
    return valid;
}
//< model.forward

void sinkproof_truth_result_clear(sinkproof_truth_result *result) {
    ball_vector_release(result->logits_nv, result->n * result->vocab);
    ball_vector_release(result->routing.margin, 1);
    ball_vector_release(result->routing.first_margin, 1);
}

size_t sinkproof_truth_argmax(arb_srcptr logit_v, size_t vocab, bool *certified, arb_ptr gap,
                              slong bits) {
    size_t best;
    arb_t margin;
    arb_init(margin);
    truth_choice choice = sinkproof_truth_topk(&best, margin, logit_v, vocab, 1, bits);
    *certified = choice == CHOICE_CERTIFIED;
    if (gap != NULL) arb_set(gap, margin);
    arb_clear(margin);
    return best;
}
