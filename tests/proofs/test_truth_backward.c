// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The backward pass of two small models. The truth's gradients, composed stage by stage, against
// the derivative of the loss in forward mode, along a direction of every weight: balls that
// overlap. The reference's gradients against the truth of their own inputs, within the rounding of
// as many operations; and mistakes, which are outside.
#include "base/words.h"
#include "proofs/truth/forward.h"
#include "tests/shared/backward_reference.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#define GPT_OSS(more)                                                                              \
    "{\"model_type\": \"gpt_oss\", \"num_hidden_layers\": 2, \"num_local_experts\": 3,"            \
    " \"num_experts_per_tok\": 2, \"vocab_size\": 13, \"hidden_size\": 32, "                       \
    "\"intermediate_size\": 32,"                                                                   \
    " \"head_dim\": 4, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "                   \
    "\"sliding_window\": 3,"                                                                       \
    " \"max_position_embeddings\": 131072, \"hidden_act\": \"silu\", \"attention_bias\": true,"    \
    " \"tie_word_embeddings\": false, \"rms_norm_eps\": 1e-5, \"swiglu_limit\": 7.0,"              \
    " \"rope_theta\": 150000.0, \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 32.0,"     \
    " \"beta_fast\": 32.0, \"beta_slow\": 1.0, \"original_max_position_embeddings\": 4096,"        \
    " \"truncate\": false}" more "}"
#define LLAMA(type, name)                                                                          \
    "{\"model_type\": \"" type "\", \"architectures\": [\"" name "ForCausalLM\"],"                 \
    " \"num_hidden_layers\": 2, \"vocab_size\": 11, \"hidden_size\": 32,"                          \
    " \"intermediate_size\": 32, \"head_dim\": 4, \"num_attention_heads\": 4,"                     \
    " \"num_key_value_heads\": 2, \"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-5,"        \
    " \"rope_theta\": 10000.0, \"hidden_act\": \"silu\", \"tie_word_embeddings\": true}"

enum { TOKENS = 5 };
static const int32_t tokens[TOKENS] = {3, 7, 3, 9, 1}; // one of them twice

static void keep_truth(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    composed *w = context;
    int p = 0;
    while (p < TRACE_POINTS &&
           strcmp(place->point, sinkproof_trace_point_name((sinkproof_trace_point)p)) != 0)
        p++;
    bool layered = p < TRACE_POINTS && sinkproof_trace_point_is_layered((sinkproof_trace_point)p);
    both x = w->act_lp[(layered ? place->layer : 0) * TRACE_POINTS + (size_t)p % TRACE_POINTS];
    if (p == TRACE_POINTS || x.v == NULL) return;
    _arb_vec_set(x.v, values, (slong)x.n);
    both_size(x);
}

static composed *truth_walk(const sinkproof_model *model, bool reads_more) {
    composed *w = walk_new(model, TOKENS, tokens, reads_more);
    sinkproof_truth_hooks hooks = {.see = keep_truth, .context = w};
    sinkproof_truth_request request = {
        .model = model, .n = TOKENS, .tokens_n = tokens, .bits = DUAL_BITS, .hooks = &hooks};
    sinkproof_truth_result result;
    sinkproof_error error;
    need(sinkproof_truth_forward(&request, &result, &error), &error);
    sinkproof_truth_result_clear(&result);
    compose(w);
    return w;
}

// ---- the truth against forward mode ----------------------------------------------------------

// The statement that a weight's gradient is the evidence of.
static const char *id_of(sinkproof_slot slot) {
    switch (slot) {
    case SINKPROOF_SINKS:
        return "grad.sink grad.lse";
    case SINKPROOF_B_V:
        return "grad.value-bias";
    case SINKPROOF_W_V:
        return "grad.values grad.group";
    case SINKPROOF_W_Q:
        return "grad.softmax grad.qkv grad.rotation";
    case SINKPROOF_W_K:
        return "grad.qkv grad.rotation grad.group";
    case SINKPROOF_B_Q:
    case SINKPROOF_B_K:
        return "grad.qkv";
    case SINKPROOF_ATTN_NORM:
    case SINKPROOF_MLP_NORM:
    case SINKPROOF_FINAL_NORM:
    case SINKPROOF_Q_NORM:
    case SINKPROOF_K_NORM:
        return "grad.rmsnorm";
    case SINKPROOF_W_ROUTER:
    case SINKPROOF_B_ROUTER:
        return "grad.router";
    case SINKPROOF_W_UP:
    case SINKPROOF_B_UP:
        return "grad.swiglu";
    case SINKPROOF_W_DOWN:
    case SINKPROOF_B_DOWN:
        return "grad.mixture";
    case SINKPROOF_EMBEDDING:
        return "grad.embedding grad.chain";
    case SINKPROOF_UNEMBEDDING:
        return "grad.cross-entropy";
    default:
        return "grad.linear";
    }
}

static void gradient_of(sinkproof_slot slot, size_t layer, char full[64]) {
    char name[32];
    sinkproof_gradient_name(slot, name);
    if (slot < SINKPROOF_LAYER_SLOTS)
        snprintf(full, 64, "%02zu.%s", layer, name);
    else
        snprintf(full, 64, "%s", name);
}

// One weight, in every layer: the sum of its gradient along the direction is the derivative.
static void along_slot(const char *model, composed *w, sinkproof_slot slot) {
    size_t layers = slot < SINKPROOF_LAYER_SLOTS ? w->c->n_layers : 1;
    bool agree = true, moves = true;
    double radius = -INFINITY;
    arb_t forward, sum, step;
    balls_init(forward, sum, step);
    for (size_t l = 0; l < layers; l++) {
        char full[64];
        gradient_of(slot, l, full);
        named_gradient *g = find(w, full);
        dual_loss(w->model, (direction){slot, l}, TOKENS, tokens, w->reads_more, forward);
        arb_zero(sum);
        for (size_t i = 0; i < g->of.n; i++) {
            arb_set_d(step, direction_at(i));
            arb_addmul(sum, step, g->of.v + i, DUAL_BITS);
        }
        agree = agree && g->of.n > 0 && arb_overlaps(sum, forward);
        moves = moves && !arb_contains_zero(forward); // a derivative of 0 would compare nothing
        radius = fmax(radius, fmax(sinkproof_truth_relative_log2(sum),
                                   sinkproof_truth_relative_log2(forward)));
    }
    ok(agree && moves && radius < -53, "%s %s in forward mode, %s of %s: overlap=%d radius=2^%.0f",
       id_of(slot), model, sinkproof_slot_name(slot), sinkproof_counted(layers, "layer").text,
       agree, radius);
    balls_clear(forward, sum, step);
}

static void against_forward_mode(const char *name, const sinkproof_model *model, bool reads_more) {
    composed *w = truth_walk(model, reads_more);
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        size_t count, rows, cols;
        sinkproof_slot slot = (sinkproof_slot)s;
        sinkproof_slot_shape(slot, w->c, &count, &rows, &cols);
        if (count == 0 || (slot == SINKPROOF_UNEMBEDDING && w->c->tied)) continue;
        along_slot(name, w, slot);
    }
    walk_free(w);
}

// ---- the reference against the truth of its inputs -------------------------------------------

static void against_reference(const char *name, const sinkproof_model *model, bool reads_more) {
    composed *w = reference_walk(model, TOKENS, tokens, reads_more);
    compose(w);
    ok(w->outside == 0 && w->worst <= 1,
       "grad.rounded grad.chain %s%s, the reference's: elements=%zu outside=%zu worst=%.3g bound=1 "
       "at %s",
       name, reads_more ? ", reading LSE" : "", w->elements, w->outside, w->worst, w->at);
    reference_free(w);
}

// ---- mistakes --------------------------------------------------------------------------------

typedef struct mistake {
    const char *what, *name, *id;
    void (*make)(const composed *w, double *x, size_t n);
} mistake;

static void negate(const composed *w, double *x, size_t n) {
    (void)w;
    for (size_t i = 0; i < n; i++) x[i] = -x[i];
}
static void forget(const composed *w, double *x, size_t n) {
    (void)w;
    memset(x, 0, n * sizeof *x);
}
static void halve_group(const composed *w, double *x, size_t n) { // of two heads one is counted
    (void)w;
    for (size_t i = 0; i < n; i++) x[i] *= 0.5;
}
static void nudge(const composed *w, double *x, size_t n) { // a part in 2^32
    (void)w, (void)n;
    x[0] *= 1 + 0x1p-32;
}
static void full_bias(const composed *w, double *x, size_t n) { // 1 in place of 1 - alpha_s
    for (size_t i = 0; i < n; i++) {
        size_t d = w->c->head_dim, g = i / d, group = w->c->n_heads / w->c->n_kv_heads;
        const double *do_nhd = NULL;
        for (size_t k = 0; k < w->count; k++)
            if (strcmp(w->list[k].name, "01.dA11") == 0) do_nhd = w->list[k].ref;
        x[i] = 0;
        for (size_t t = 0; t < TOKENS; t++)
            for (size_t h = g * group; h < (g + 1) * group; h++)
                x[i] += do_nhd[(t * w->c->n_heads + h) * d + i % d];
    }
}

static const mistake mistakes[] = {
    {"without its sign", "00.dsink", "grad.sink", negate},
    {"missing", "01.dsink", "grad.sink", forget},
    {"of one head of the group", "00.dA2.v", "grad.group", halve_group},
    {"of one head of the group", "01.dA4.k", "grad.group", halve_group},
    {"with 1 in place of 1 - alpha_s", "01.db.v", "grad.value-bias", full_bias},
    {"a part in 2^32 off", "00.dA6", "grad.softmax", nudge},
    {"a part in 2^32 off", "01.dA4.q", "grad.qkv", nudge},
    {"a part in 2^32 off", "00.dA10", "grad.values", nudge},
    {"a part in 2^32 off", "00.dM6", "grad.swiglu", nudge},
    {"a part in 2^32 off", "01.dM1", "grad.router", nudge},
    {"a part in 2^32 off", "00.dA2.q", "grad.rotation", nudge},
    {"a part in 2^32 off", "00.dA13", "grad.rmsnorm", nudge},
    {"a part in 2^32 off", "01.dM4", "grad.mixture", nudge},
    {"a part in 2^32 off", "dF2", "grad.cross-entropy", nudge},
    {"a part in 2^32 off", "00.dW.o", "grad.linear", nudge},
};

static void plant(const sinkproof_model *model) {
    for (size_t m = 0; m < sizeof mistakes / sizeof *mistakes; m++) {
        composed *w = reference_walk(model, TOKENS, tokens, true);
        named_gradient *g = find(w, mistakes[m].name);
        must(g->ref != NULL);
        mistakes[m].make(w, g->ref, g->ref_n);
        compose(w);
        ok(w->outside > 0, "%s a gradient %s, %s: outside=%zu", mistakes[m].id, mistakes[m].name,
           mistakes[m].what, w->outside);
        reference_free(w);
    }
}

int main(void) {
    sinkproof_model *model = open_config(GPT_OSS("")),
                    *llama = open_config(LLAMA("llama", "Llama"));
    sinkproof_model *qwen3 = open_config(LLAMA("qwen3", "Qwen3"));
    sinkproof_model *keyed = open_config(GPT_OSS(", \"attention_sink\": \"key\""));
    against_forward_mode("GPT-OSS", model, true);
    against_forward_mode("GPT-OSS with keys for sinks", keyed, true);
    against_forward_mode("Llama", llama, false);
    against_forward_mode("Qwen3", qwen3, true);
    for (int reads_more = 0; reads_more < 2; reads_more++)
        against_reference("GPT-OSS", model, reads_more);
    against_reference("GPT-OSS with keys for sinks", keyed, true);
    against_reference("Llama", llama, false);
    against_reference("Qwen3", qwen3, true);
    plant(model);
    sinkproof_model_close(model);
    sinkproof_model_close(keyed);
    sinkproof_model_close(llama);
    sinkproof_model_close(qwen3);
    return tap_done();
}
