// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The written-out walk of ref/forward.c against the table of points (ref/points.h): every point
// that an observer sees is, bit for bit, the table's operation on the table's inputs and weights,
// in every architecture; and a table with one weight or input exchanged does not say the same. 0.2
// CPU s.
#include "ref/stages.h"
#include "ref/walk.h"
#include "tests/shared/opened.h"
#include "tests/shared/reference.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 11, LAYERS = 3, MOST = 64 };
static const int32_t tokens[N] = {1, 5, 9, 3, 77, 12, 4, 8, 100, 2, 6};

typedef struct walk {
    const sinkproof_model *model;
    const sinkproof_config *config;
    sinkproof_policy policy;
    double *seen[LAYERS][TRACE_POINTS]; // NULL: not seen
    size_t order, out_of_order;         // of the points, as the observer sees them
    double *work;
} walk;

static void see(void *context, const char *name, size_t rank, const size_t *shape,
                const double *values) {
    walk *w = context;
    bool layered = strchr(name, '.') != NULL && name[0] >= '0' && name[0] <= '9';
    size_t layer = layered ? strtoul(name, NULL, 10) : 0, count = 1, p = 0;
    const char *point = layered ? strchr(name, '.') + 1 : name;
    while (strcmp(sinkproof_trace_point_name((sinkproof_trace_point)p), point) != 0) p++;
    size_t end = (size_t)p == TRACE_F1 || (size_t)p == TRACE_F2 ? LAYERS : layer;
    size_t place = end * TRACE_POINTS + p;
    w->out_of_order += place < w->order;
    w->order = place;
    for (size_t i = 0; i < rank; i++) count *= shape[i];
    if (count != sinkproof_trace_elements(w->config, (sinkproof_trace_point)p, N)) abort();
    double *kept = w->seen[layer][p] = malloc(count * sizeof *kept);
    if (kept == NULL) abort();
    memcpy(kept, values, count * sizeof *kept);
}

// The step's point as the table says, from its inputs `in`.
static void perform(const walk *w, const sinkproof_walk_step *step, const double *const *in,
                    double *out) {
    sinkproof_trace_point point = step->point;
    const sinkproof_matrix *weights = step->weights;
    size_t layer = step->layer;
    const sinkproof_config *c = w->config;
    const sinkproof_policy *policy = &w->policy;
    size_t d = c->head_dim, width = sinkproof_trace_elements(w->config, point, N) / N,
           k = c->n_chosen, half = d / 2;
    bool queries = point == TRACE_A4_Q;
    sinkproof_block block = {.rows = N,
                             .keys = N,
                             .window = c->sliding[layer] ? c->window : 0,
                             .head_dim = d,
                             .q_stride = c->n_heads * d,
                             .kv_stride = c->n_kv_heads * d};
    sinkproof_layer all = sinkproof_model_layer(w->model, layer);
    sinkproof_point at = AT_M5; // of M3, which rounds nothing
    double *work = w->work, freq[MOST], cosine[N * MOST], sine[N * MOST], b_i[N];
    sinkproof_trace_rounding(point, &at);
    switch (step->operation) {
    case SINKPROOF_EMBED:
        if (weights[1].count > 0)
            sinkproof_embed_placed(policy, &weights[0], &weights[1], 0, N, tokens, out, work);
        else
            sinkproof_embed(policy, &weights[0], N, tokens, out);
        break;
    case SINKPROOF_NORM:
        if (weights[1].count > 0)
            sinkproof_layernorm(policy, at, &weights[0], &weights[1], c->rms_eps, N, in[0], out,
                                work);
        else // a head's query or key is a row
            sinkproof_rmsnorm(policy, at, &weights[0], c->rms_eps, N * width / weights[0].cols,
                              in[0], out, work);
        break;
    case SINKPROOF_LINEAR:
        sinkproof_linear(policy, at, N, &weights[0], &weights[1], in[0], out, work);
        break;
    case SINKPROOF_ROTATE:
        memcpy(out, in[0], N * width * sizeof *out);
        sinkproof_yarn_frequencies(policy, c, freq);
        sinkproof_rope_table(policy, c, freq, 0, N, cosine, sine);
        sinkproof_rope(policy, N, queries ? c->n_heads : c->n_kv_heads, 2 * half, cosine, sine,
                       out);
        break;
    case SINKPROOF_SCORE:
        for (size_t h = 0; h < c->n_heads; h++)
            sinkproof_scores(policy, &block, in[0] + h * d,
                             in[1] + h / (c->n_heads / c->n_kv_heads) * d, out + h * N * N);
        break;
    case SINKPROOF_SOFTMAX:
        for (size_t h = 0; h < c->n_heads; h++) {
            all.sinks = weights[0];
            sinkproof_normaliser normaliser = sinkproof_head_normaliser(c, &all, h, work);
            sinkproof_sink_logits(policy, &block, &normaliser, in[0], b_i);
            sinkproof_softmax_sink(policy, &block, b_i, in[0] + h * N * N, out + h * N * (N + 1));
        }
        break;
    case SINKPROOF_DROP_SINK:
        for (size_t row = 0; row < c->n_heads * N; row++)
            memcpy(out + row * N, in[0] + row * (N + 1), N * sizeof *out);
        break;
    case SINKPROOF_SUM_VALUES:
        for (size_t h = 0; h < c->n_heads; h++)
            sinkproof_values(policy, &block, in[0] + h * N * (N + 1),
                             in[1] + h / (c->n_heads / c->n_kv_heads) * d, out + h * d);
        break;
    case SINKPROOF_ADD:
        memcpy(out, in[1], N * width * sizeof *out);
        sinkproof_residual(policy, at, N * width, in[0], out);
        break;
    case SINKPROOF_CHOOSE:
        for (size_t i = 0; i < N; i++) {
            int32_t chosen[MOST];
            sinkproof_router_choose(c->n_experts, k, in[0] + i * c->n_experts, chosen);
            for (size_t s = 0; s < k; s++) out[i * k + s] = chosen[s];
        }
        break;
    case SINKPROOF_SHARE:
        for (size_t i = 0; i < N; i++) {
            const double *g = in[0] + i * c->n_experts, *e = in[1] + i * k;
            double z = 0;
            for (size_t s = 0; s < k; s++)
                z += out[i * k + s] = exp(g[(size_t)e[s]] - g[(size_t)e[0]]);
            for (size_t s = 0; s < k; s++) out[i * k + s] /= z;
        }
        break;
    case SINKPROOF_MULTIPLY:
        for (size_t s = 0; s < N * k;
             s++) { // the up-projection reads a token's row, the other a slot's
            sinkproof_matrix expert = sinkproof_matrix_at(&weights[0], (size_t)in[1][s]);
            size_t row = point == TRACE_M5 ? s / k : s;
            sinkproof_linear(policy, at, 1, &expert, NULL, in[0] + row * expert.cols,
                             out + s * expert.rows, work);
        }
        break;
    case SINKPROOF_ADD_BIAS:
        for (size_t s = 0; s < N * k; s++) {
            size_t rows = weights[0].cols;
            const double *e = w->seen[layer][TRACE_M3];
            sinkproof_matrix bias = sinkproof_matrix_at(&weights[0], (size_t)e[s]);
            sinkproof_matrix_row(&bias, 0, work);
            for (size_t r = 0; r < rows; r++) out[s * rows + r] = in[0][s * rows + r] + work[r];
        }
        break;
    case SINKPROOF_ACTIVATE:
        if (c->activation == SINKPROOF_SWIGLU)
            sinkproof_swiglu(policy, c->swiglu, N * width, in[0], out);
        else
            sinkproof_gelu(policy, N * width, in[0], out);
        break;
    case SINKPROOF_MIX: {
        int32_t chosen[N * MOST];
        for (size_t s = 0; s < N * k; s++) chosen[s] = (int32_t)in[2][s];
        sinkproof_mixture(policy, N, k, c->hidden, chosen, in[1], in[0], out);
        break;
    }
    }
}

// Elements of the point that are not what the table says; `spoilt`: which weight is another one.
static size_t elements_apart(const walk *w, size_t layer, sinkproof_trace_point point, int spoilt) {
    sinkproof_walk_step step = sinkproof_walk_step_at(w->model, point, layer);
    const double *in[SINKPROOF_MAX_INPUTS] = {NULL};
    size_t count = sinkproof_trace_elements(w->config, point, N), other = (layer + 1) % LAYERS;
    double *out = malloc(count * sizeof *out);
    if (out == NULL) abort();
    for (size_t i = 0; i < step.n_inputs; i++)
        in[i] = w->seen[step.inputs[i].layer][step.inputs[i].point];
    if (spoilt >= 0)
        step.weights[spoilt] = sinkproof_walk_step_at(w->model, point, other).weights[spoilt];
    perform(w, &step, in, out);
    size_t apart = 0;
    for (size_t i = 0; i < count; i++) apart += out[i] != w->seen[layer][point][i];
    free(out);
    return apart;
}

// What is made, read and released along the walk.
typedef struct account {
    int held[LAYERS][TRACE_POINTS]; // 1: made; 2: read; 0: released, or not yet made
    size_t steps, wrong;
} account;

static bool follow(void *context, const sinkproof_walk_step *step) {
    account *a = context;
    for (size_t i = 0; i < step->n_inputs; i++) {
        int *held = &a->held[step->inputs[i].layer][step->inputs[i].point];
        a->wrong += *held == 0; // read before it was made, or after its last reader
        *held = step->last[i] ? 0 : 2;
    }
    a->held[step->layer][step->point] = 1;
    a->steps++;
    return true;
}

static bool stop_at_a2(void *context, const sinkproof_walk_step *step) {
    account *a = context;
    a->steps++;
    return step->point != TRACE_A2_Q;
}

// Each value that a point reads is there, and is released by the last point that reads it.
static void check_readers(const char *spec, const char *what) {
    sinkproof_model *model = open_model(spec);
    account all = {.steps = 0}, some = {.steps = 0};
    size_t unread = 0, kept = 0, points = 0;
    bool whole = sinkproof_walk(model, follow, &all);
    for (size_t l = 0; l < LAYERS; l++)
        for (int p = 0; p < TRACE_POINTS; p++)
            unread += all.held[l][p] == 1, kept += all.held[l][p] == 2,
                points += sinkproof_trace_point_exists(sinkproof_model_config(model),
                                                       (sinkproof_trace_point)p, l);
    ok(whole && all.steps == points && all.wrong == 0 && kept == 0 && unread == LAYERS + 1,
       "model.forward %s: %zu steps; each value is released by its last reader; unread are A10 and "
       "F2: %zu",
       what, all.steps, unread);
    ok(!sinkproof_walk(model, stop_at_a2, &some) && some.steps == 3,
       "model.forward %s: the walk ends where it is told to", what);
    sinkproof_model_close(model);
}

static void check(const char *spec, const char *what) {
    walk *w = calloc(1, sizeof *w);
    sinkproof_error error;
    sinkproof_model *model = open_model(spec);
    if (w == NULL || (w->work = malloc(((size_t)1 << 20) * sizeof *w->work)) == NULL) abort();
    w->model = model, w->config = sinkproof_model_config(model), w->policy = policy_of("real-f64");
    sinkproof_session *session = sinkproof_session_new(model, &w->policy);
    sinkproof_observer observer = {.context = w, .see = see};
    need(session != NULL && sinkproof_forward(session, N, tokens, NULL, &observer, &error), &error);
    size_t missing = 0, apart = 0, points = 0, spoilt = 0, noticed = 0;
    for (size_t l = 0; l < LAYERS; l++)
        for (int p = 0; p < TRACE_POINTS; p++) {
            sinkproof_trace_point point = (sinkproof_trace_point)p;
            sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
            bool there = sinkproof_trace_point_exists(w->config, point, l);
            missing += there != (w->seen[l][p] != NULL);
            if (!there || w->seen[l][p] == NULL) continue;
            points++;
            apart += elements_apart(w, l, point, -1);
            if (!sinkproof_trace_point_is_layered(point)) continue;
            size_t n = sinkproof_trace_weights(w->config, point, slots);
            for (int i = 0; i < (int)n; i++)
                spoilt++, noticed += elements_apart(w, l, point, i) > 0;
        }
    ok(missing == 0 && w->out_of_order == 0,
       "model.forward %s: the points of the table, in its order: %zu", what, points);
    ok(apart == 0,
       "model.forward %s: each is the table's operation on its inputs and weights, bit for bit: "
       "worst=%zu bound=0",
       what, apart);
    ok(spoilt > 0 && noticed == spoilt,
       "model.forward %s: %zu of %zu weights of another layer are noticed", what, noticed, spoilt);
    for (size_t l = 0; l < LAYERS; l++)
        for (int p = 0; p < TRACE_POINTS; p++) free(w->seen[l][p]);
    sinkproof_session_free(session);
    sinkproof_model_close(model);
    free(w->work);
    free(w);
}

int main(void) {
    check("synthetic:tiny,layers=3", "GPT-OSS");
    check("synthetic:tiny-gpt2,layers=3", "gpt2.forward GPT-2");
    check("synthetic:tiny-llama,layers=3", "Llama");
    check("synthetic:tiny-qwen3,layers=3", "Qwen3");
    check_readers("synthetic:tiny,layers=3,sink=key", "GPT-OSS, keys as sinks");
    check_readers("synthetic:tiny-gpt2,layers=3,sink=key", "gpt2.forward GPT-2, keys as sinks");
    check_readers("synthetic:tiny-llama,layers=3", "Llama");
    check_readers("synthetic:tiny-qwen3,layers=3", "Qwen3");
    return tap_done();
}
