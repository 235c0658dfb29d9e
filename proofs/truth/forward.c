// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The walk through the model over the reals: the operations, and the table of points (ref/walk.h)
// that says which point needs which. Nothing is rounded to a storage format: an engine's roundings
// are measured as the distance to this walk.
#include "proofs/truth/forward.h"

#include "base/splitmix.h"
#include "base/words.h"
#include "proofs/truth/check_rows.h"
#include "proofs/truth/share_work.h"
#include "proofs/truth/sliced.h"
#include "ref/walk.h"

#include <stdlib.h>

// The state of one walk: the request, the latest value of every point, the choices.
typedef struct pass {
    const sinkproof_truth_request *request;
    const sinkproof_config *config;
    int32_t *positions_n;
    sinkproof_truth_yarn yarn;
    arb_ptr at[TRACE_POINTS];
    size_t elements[TRACE_POINTS];
    size_t *chosen_nk;
    size_t n_last; // tokens of F1 and F2
    sinkproof_truth_routing *routing;
    sinkproof_truth_checks *checks;
    sinkproof_error *error;
} pass;

// J(i) = [first_key, i]: causal, and the last `window` keys on sliding layers (mask.window).
static size_t first_key(const pass *p, size_t layer, size_t i) {
    size_t window = p->config->window;
    return p->config->sliding[layer] && i >= window ? i - window + 1 : 0;
}

// ---- the operations: `out` from the inputs and weights of a step

typedef void operation(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out);

// A part of an operation, by a thread: of one token, of one head.
typedef struct job {
    const pass *p;
    const sinkproof_walk_step *step;
    const arb_srcptr *in;
    arb_ptr out;
    size_t pieces;
} job;

static void share_pieces(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in,
                         arb_ptr out, size_t pieces, truth_piece *work) {
    job all = {p, step, in, out, pieces};
    truth_share(p->request->threads, pieces, work, &all);
}

// The row of each token, plus that of its position if the model has such rows.
static void embed_tokens(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in,
                         arb_ptr out) {
    size_t hidden = p->config->hidden;
    double *scratch = malloc(hidden * sizeof *scratch);
    if (scratch == NULL) abort();
    arb_ptr placed = ball_vector(hidden);
    (void)in;
    for (size_t i = 0; i < p->request->n; i++) {
        arb_ptr x = out + i * hidden;
        sinkproof_truth_row(x, &step->weights[0], (size_t)p->request->tokens_n[i], scratch);
        if (step->weights[1].count == 0) continue;
        sinkproof_truth_row(placed, &step->weights[1], i, scratch);
        _arb_vec_add(x, x, placed, (slong)hidden, p->request->bits);
    }
    ball_vector_release(placed, hidden);
    free(scratch);
}

// A norm with a shift subtracts the mean. F1 may be of the last token alone.
static void normalise_token(void *context, size_t i, size_t worker) {
    const job *j = context;
    const sinkproof_matrix *w = j->step->weights;
    size_t cols = w[0].cols, first = j->p->elements[j->step->inputs[0].point] / cols - j->pieces;
    arb_srcptr x = j->in[0] + (first + i) * cols;
    double eps = j->p->config->rms_eps;
    (void)worker;
    if (w[1].count > 0)
        sinkproof_truth_layernorm(j->out + i * cols, x, 1, &w[0], &w[1], eps, j->p->request->bits);
    else
        sinkproof_truth_rmsnorm(j->out + i * cols, x, 1, &w[0], eps, j->p->request->bits);
}

static void normalise(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out) {
    share_pieces(p, step, in, out, p->elements[step->point] / step->weights[0].cols,
                 normalise_token);
}

static void project(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out) {
    const sinkproof_matrix *w = step->weights;
    sinkproof_sliced_linear(out, in[0], p->elements[step->point] / w[0].rows, &w[0], &w[1],
                            p->request->bits, p->request->threads, NULL);
}

static void rotate(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out) {
    size_t heads = p->elements[step->point] / (p->request->n * p->config->head_dim);
    sinkproof_truth_rope(out, in[0], p->request->n, heads, p->positions_n, &p->yarn,
                         p->request->bits);
}

// Of every query of a head against every key, before mask and sink.
static void score_head(void *context, size_t h, size_t worker) {
    const job *j = context;
    const pass *p = j->p;
    size_t n = p->request->n, heads = p->config->n_heads, kv = p->config->n_kv_heads;
    size_t d = p->config->head_dim;
    (void)worker;
    for (size_t i = 0; i < n; i++)
        sinkproof_truth_scores(j->out + (h * n + i) * n, j->in[0] + (i * heads + h) * d,
                               j->in[1] + h / (heads / kv) * d, n, kv * d, d, p->request->bits);
}

static void score(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out) {
    share_pieces(p, step, in, out, p->config->n_heads, score_head);
}

// in[1]: the queries, if the sink's logit follows them. The sink's weight is in the last column.
static void weigh_keys_of_head(void *context, size_t h, size_t worker) {
    const job *j = context;
    const pass *p = j->p;
    size_t n = p->request->n, heads = p->config->n_heads, d = p->config->head_dim;
    sinkproof_layer stored = {.sinks = j->step->weights[0]};
    arb_t b;
    (void)worker;
    arb_init(b);
    double *scratch = malloc(sinkproof_normaliser_work(p->config) * sizeof *scratch);
    if (scratch == NULL) abort();
    sinkproof_normaliser normaliser = sinkproof_head_normaliser(p->config, &stored, h, scratch);
    for (size_t i = 0; i < n; i++) {
        arb_ptr row = j->out + (h * n + i) * (n + 1);
        size_t first = first_key(p, j->step->layer, i);
        arb_srcptr q_d = j->step->n_inputs > 1 ? j->in[1] + (i * heads + h) * d : NULL;
        truth_sink_logit(b, &normaliser, q_d, d, p->request->bits);
        sinkproof_truth_softmax_sink(row + first, row + n, j->in[0] + (h * n + i) * n + first,
                                     i + 1 - first, b, p->request->bits);
    }
    arb_clear(b);
    free(scratch);
}

static void weigh_keys(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in,
                       arb_ptr out) {
    share_pieces(p, step, in, out, p->config->n_heads, weigh_keys_of_head);
}

static void drop_sink(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out) {
    size_t n = p->request->n;
    for (size_t row = 0; row < p->elements[step->point] / n; row++)
        _arb_vec_set(out + row * n, in[0] + row * (n + 1), (slong)n);
}

// The weights are those of A10, which are A9's unless an engine's own replaced them.
static void sum_values_of_token(void *context, size_t i, size_t worker) {
    const job *j = context;
    const pass *p = j->p;
    size_t n = p->request->n, heads = p->config->n_heads, kv = p->config->n_kv_heads;
    size_t d = p->config->head_dim, first = first_key(p, j->step->layer, i);
    (void)worker;
    for (size_t h = 0; h < heads; h++)
        sinkproof_truth_values(j->out + (i * heads + h) * d,
                               p->at[TRACE_A10] + (h * n + i) * n + first,
                               j->in[1] + (first * kv + h / (heads / kv)) * d, i + 1 - first,
                               kv * d, d, p->request->bits);
}

static void sum_values(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in,
                       arb_ptr out) {
    share_pieces(p, step, in, out, p->request->n, sum_values_of_token);
}

static void add_residual(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in,
                         arb_ptr out) {
    _arb_vec_add(out, in[1], in[0], (slong)p->elements[step->point], p->request->bits);
}

// Writes one choice into the account: thinnest margin, first ambiguity.
static void note_choice(sinkproof_truth_routing *routing, truth_choice choice, const arb_t margin,
                        size_t layer, size_t token) {
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

static void choose(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out) {
    size_t k = p->config->n_chosen, experts = p->config->n_experts;
    arb_t margin;
    arb_init(margin);
    for (size_t i = 0; i < p->request->n; i++) {
        truth_choice choice = sinkproof_truth_topk(
            p->chosen_nk + i * k, margin, in[0] + i * experts, experts, k, p->request->bits);
        note_choice(p->routing, choice, margin, step->layer, i);
    }
    for (size_t s = 0; s < p->request->n * k; s++) arb_set_ui(out + s, p->chosen_nk[s]);
    arb_clear(margin);
}

static void share(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out) {
    size_t k = p->config->n_chosen;
    (void)step;
    for (size_t i = 0; i < p->request->n; i++)
        sinkproof_truth_router_weights(out + i * k, p->chosen_nk + i * k,
                                       in[0] + i * p->config->n_experts, k, p->request->bits);
}

static void multiply(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out) {
    size_t rows = p->elements[step->inputs[0].point] / step->weights[0].cols;
    bool per_slot = rows > p->request->n;
    truth_expert_linear(out, in[0], per_slot, p->request->n, p->chosen_nk, p->config->n_chosen,
                        &step->weights[0], p->request->bits, p->request->threads);
}

static void add_bias(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out) {
    _arb_vec_set(out, in[0], (slong)p->elements[step->point]);
    truth_expert_bias(out, p->request->n, p->chosen_nk, p->config->n_chosen, &step->weights[0],
                      p->request->bits);
}

// The activation of one token by one expert.
static void activate_one(void *context, size_t piece, size_t worker) {
    const job *j = context;
    const pass *p = j->p;
    size_t count = p->elements[j->step->point] / j->pieces;
    size_t before = p->elements[j->step->inputs[0].point] / j->pieces;
    arb_ptr out = j->out + piece * count;
    arb_srcptr in = j->in[0] + piece * before;
    (void)worker;
    if (p->config->activation == SINKPROOF_SWIGLU)
        sinkproof_truth_swiglu(out, in, count, p->config->swiglu, p->request->bits);
    else
        sinkproof_truth_gelu_tanh(out, in, count, p->request->bits);
}

static void activate(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out) {
    share_pieces(p, step, in, out, p->elements[step->point] / p->config->inter, activate_one);
}

static void mix_token(void *context, size_t i, size_t worker) {
    const job *j = context;
    size_t k = j->p->config->n_chosen, hidden = j->p->config->hidden;
    (void)worker;
    sinkproof_truth_mixture(j->out + i * hidden, j->in[1] + i * k, j->in[0] + i * k * hidden, k,
                            hidden, j->p->request->bits);
}

static void mix(pass *p, const sinkproof_walk_step *step, const arb_srcptr *in, arb_ptr out) {
    share_pieces(p, step, in, out, p->request->n, mix_token);
}

// ---- the walk

static operation *const operations[] = {
    [SINKPROOF_EMBED] = embed_tokens,
    [SINKPROOF_NORM] = normalise,
    [SINKPROOF_LINEAR] = project,
    [SINKPROOF_ROTATE] = rotate,
    [SINKPROOF_SCORE] = score,
    [SINKPROOF_SOFTMAX] = weigh_keys,
    [SINKPROOF_DROP_SINK] = drop_sink,
    [SINKPROOF_SUM_VALUES] = sum_values,
    [SINKPROOF_ADD] = add_residual,
    [SINKPROOF_CHOOSE] = choose,
    [SINKPROOF_SHARE] = share,
    [SINKPROOF_MULTIPLY] = multiply,
    [SINKPROOF_ADD_BIAS] = add_bias,
    [SINKPROOF_ACTIVATE] = activate,
    [SINKPROOF_MIX] = mix,
};

static void release_point(pass *p, sinkproof_trace_point point) {
    ball_vector_release(p->at[point], p->elements[point]);
    p->at[point] = NULL;
}

// Shows a point's values, which may then be replaced by an engine's own.
static void show_point(const pass *p, const sinkproof_walk_step *step, size_t n, arb_ptr values) {
    const sinkproof_truth_hooks *hooks = p->request->hooks;
    const char *point = sinkproof_trace_point_name(step->point);
    char name[64];
    size_t shape[3], rank = sinkproof_trace_shape(p->config, step->point, n, shape);
    if (hooks == NULL) return;
    snprintf(name, sizeof name, "%02zu.%s", step->layer, point);
    bool layered = sinkproof_trace_point_is_layered(step->point);
    sinkproof_truth_place place = {layered ? name : point, point, step->layer, rank, shape};
    if (hooks->see != NULL) hooks->see(hooks->context, &place, values);
    if (hooks->replay != NULL) hooks->replay(hooks->context, &place, values);
}

// Checks drawn results of a product: of a token, or of one that its expert multiplied.
static void check_product(pass *p, const sinkproof_walk_step *step, arb_srcptr in, arb_srcptr out) {
    bool of_experts = step->operation == SINKPROOF_MULTIPLY;
    if ((!of_experts && step->operation != SINKPROOF_LINEAR) || p->request->check_rows == 0) return;
    size_t rows = step->weights[0].rows, cols = step->weights[0].cols;
    size_t results = p->elements[step->point] / rows;
    size_t share = results / (p->elements[step->inputs[0].point] / cols); // that one input has
    uint64_t state = step->layer * TRACE_POINTS + step->point;
    p->checks->products++;
    for (size_t k = 0; k < p->request->check_rows; k++) {
        size_t i = sinkproof_draw(&state) % results, r = sinkproof_draw(&state) % rows;
        sinkproof_matrix w = step->weights[0];
        if (of_experts) w = sinkproof_matrix_at(&w, p->chosen_nk[i]);
        const sinkproof_matrix *b = of_experts ? NULL : &step->weights[1];
        truth_row found = truth_check_row(&w, b, r, in + i / share * cols, out + i * rows + r);
        p->checks->rows += found != TRUTH_ROW_UNCHECKED;
        p->checks->broken += found == TRUTH_ROW_BROKEN;
        p->checks->unchecked += found == TRUTH_ROW_UNCHECKED;
    }
}

// Whether the walk began behind this step.
static bool is_done(const pass *p, const sinkproof_walk_step *step) {
    size_t done = p->request->start != NULL ? p->request->start->layers : 0;
    bool layered = sinkproof_trace_point_is_layered(step->point);
    return layered ? step->layer < done : step->point == TRACE_T0 && done > 0;
}

// Begins the walk behind the layers that are done.
static void take_start(pass *p) {
    const sinkproof_truth_state *start = p->request->start;
    if (start == NULL || start->layers == 0) return;
    size_t count = p->request->n * p->config->hidden;
    p->elements[TRACE_M12] = count;
    p->at[TRACE_M12] = ball_vector(count);
    _arb_vec_set(p->at[TRACE_M12], start->values, (slong)count);
    sinkproof_truth_routing own = *p->routing; // keeps its balls
    *p->routing = start->routing;
    arb_set(p->routing->margin = own.margin, start->routing.margin);
    arb_set(p->routing->first_margin = own.first_margin, start->routing.first_margin);
    *p->checks = start->checks;
}

static bool end_layer(pass *p, size_t layer, arb_ptr values) {
    const sinkproof_truth_hooks *hooks = p->request->hooks;
    sinkproof_truth_state state = {layer + 1, values, *p->routing, *p->checks};
    return hooks == NULL || hooks->layer == NULL || hooks->layer(hooks->context, &state, p->error);
}

static bool walk_point(void *context, const sinkproof_walk_step *step) {
    pass *p = context;
    if (is_done(p, step)) return true;
    arb_srcptr in[SINKPROOF_MAX_INPUTS] = {NULL};
    bool last = step->point == TRACE_F1 || step->point == TRACE_F2;
    size_t n = last ? p->n_last : p->request->n;
    size_t count = sinkproof_trace_elements(p->config, step->point, n);
    for (size_t i = 0; i < step->n_inputs; i++) in[i] = p->at[step->inputs[i].point];
    arb_ptr out = ball_vector(count);
    p->elements[step->point] = count;
    operations[step->operation](p, step, in, out);
    check_product(p, step, in[0], out);
    show_point(p, step, n, out);
    bool valid = step->operation != SINKPROOF_CHOOSE || replay_selection(p, step->layer, in[0]);
    for (size_t i = 0; i < step->n_inputs; i++)
        if (step->last[i]) release_point(p, step->inputs[i].point);
    release_point(p, step->point); // of the layer before, if nothing reads it
    p->at[step->point] = out;
    return valid && (step->point != TRACE_M12 || end_layer(p, step->layer, out));
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
    if (request->start != NULL && request->start->layers > config->n_layers)
        return sinkproof_fail(error, "truth cannot begin behind %s of %zu",
                              sinkproof_counted(request->start->layers, "layer").text,
                              config->n_layers);
    if (request->n > config->max_context)
        return sinkproof_fail(error, "%s, the model's context is %zu",
                              sinkproof_counted(request->n, "token").text, config->max_context);
    return true;
}

static void result_init(sinkproof_truth_result *result, const sinkproof_truth_request *request,
                        const sinkproof_config *config) {
    *result = (sinkproof_truth_result){.n = request->last_logits ? 1 : request->n,
                                       .vocab = config->vocab};
    result->routing.margin = ball_vector(1);
    result->routing.first_margin = ball_vector(1);
    arb_pos_inf(result->routing.margin);
    arb_pos_inf(result->routing.first_margin);
}

//> model.forward gpt2.forward
bool sinkproof_truth_forward(const sinkproof_truth_request *request, sinkproof_truth_result *result,
                             sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(request->model);
    if (!valid_request(request, config, error)) return false;
    size_t n = request->n;
    result_init(result, request, config);
    pass p = {.request = request,
              .config = config,
              .positions_n = malloc(n * sizeof *p.positions_n),
              .chosen_nk = malloc(n * config->n_chosen * sizeof *p.chosen_nk),
              .n_last = result->n,
              .routing = &result->routing,
              .checks = &result->checks,
              .error = error};
    if (p.positions_n == NULL || p.chosen_nk == NULL) abort();
    for (size_t i = 0; i < n; i++) p.positions_n[i] = (int32_t)i;
    sinkproof_truth_yarn_init(&p.yarn, config, request->bits);
    take_start(&p);

    bool valid = sinkproof_walk(request->model, walk_point, &p);
    result->logits_nv = p.at[TRACE_F2], p.at[TRACE_F2] = NULL;

    for (int point = 0; point < TRACE_POINTS; point++)
        release_point(&p, (sinkproof_trace_point)point);
    sinkproof_truth_yarn_clear(&p.yarn);
    free(p.positions_n);
    free(p.chosen_nk);
    if (!valid) sinkproof_truth_result_clear(result);
    return valid;
}
//< model.forward gpt2.forward

void sinkproof_truth_result_clear(sinkproof_truth_result *result) {
    ball_vector_release(result->logits_nv, result->n * result->vocab);
    ball_vector_release(result->routing.margin, 1);
    ball_vector_release(result->routing.first_margin, 1);
}
