// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The table of weights. Sources: doc/99-bibliography.md#openai-source and
// doc/99-bibliography.md#transformers.
#include "ref/model/slots.h"

typedef enum dimension {
    ONE,
    HIDDEN,
    VOCAB,
    EXPERTS,
    HEADS,
    Q_WIDTH,
    KV_WIDTH,
    INTER,
    INTER_2
} dimension;

//> model.biases
static const struct {
    const char *name, *hf, *openai;
    size_t offset; // in sinkproof_layer
    dimension rows, cols;
    bool stacked;
} slots[SINKPROOF_SLOTS] = {
#define IN_LAYER(member) #member, .offset = offsetof(sinkproof_layer, member)
    [SINKPROOF_ATTN_NORM] = {IN_LAYER(attn_norm), .hf = "input_layernorm.weight",
                             .openai = "attn.norm.scale", .rows = ONE, .cols = HIDDEN},
    [SINKPROOF_W_Q] = {IN_LAYER(w_q), .hf = "self_attn.q_proj.weight", .openai = "attn.qkv.weight",
                       .rows = Q_WIDTH, .cols = HIDDEN},
    [SINKPROOF_B_Q] = {IN_LAYER(b_q), .hf = "self_attn.q_proj.bias", .openai = "attn.qkv.bias",
                       .rows = ONE, .cols = Q_WIDTH},
    [SINKPROOF_W_K] = {IN_LAYER(w_k), .hf = "self_attn.k_proj.weight", .openai = "attn.qkv.weight",
                       .rows = KV_WIDTH, .cols = HIDDEN},
    [SINKPROOF_B_K] = {IN_LAYER(b_k), .hf = "self_attn.k_proj.bias", .openai = "attn.qkv.bias",
                       .rows = ONE, .cols = KV_WIDTH},
    [SINKPROOF_W_V] = {IN_LAYER(w_v), .hf = "self_attn.v_proj.weight", .openai = "attn.qkv.weight",
                       .rows = KV_WIDTH, .cols = HIDDEN},
    [SINKPROOF_B_V] = {IN_LAYER(b_v), .hf = "self_attn.v_proj.bias", .openai = "attn.qkv.bias",
                       .rows = ONE, .cols = KV_WIDTH},
    [SINKPROOF_SINKS] = {IN_LAYER(sinks), .hf = "self_attn.sinks", .openai = "attn.sinks",
                         .rows = ONE, .cols = HEADS},
    [SINKPROOF_W_O] = {IN_LAYER(w_o), .hf = "self_attn.o_proj.weight", .openai = "attn.out.weight",
                       .rows = HIDDEN, .cols = Q_WIDTH},
    [SINKPROOF_B_O] = {IN_LAYER(b_o), .hf = "self_attn.o_proj.bias", .openai = "attn.out.bias",
                       .rows = ONE, .cols = HIDDEN},
    [SINKPROOF_MLP_NORM] = {IN_LAYER(mlp_norm), .hf = "post_attention_layernorm.weight",
                            .openai = "mlp.norm.scale", .rows = ONE, .cols = HIDDEN},
    [SINKPROOF_W_ROUTER] = {IN_LAYER(w_router), .hf = "mlp.router.weight",
                            .openai = "mlp.gate.weight", .rows = EXPERTS, .cols = HIDDEN},
    [SINKPROOF_B_ROUTER] = {IN_LAYER(b_router), .hf = "mlp.router.bias", .openai = "mlp.gate.bias",
                            .rows = ONE, .cols = EXPERTS},
    [SINKPROOF_W_UP] = {IN_LAYER(w_up), .hf = "mlp.experts.gate_up_proj",
                        .openai = "mlp.mlp1_weight", .rows = INTER_2, .cols = HIDDEN,
                        .stacked = true},
    [SINKPROOF_B_UP] = {IN_LAYER(b_up), .hf = "mlp.experts.gate_up_proj_bias",
                        .openai = "mlp.mlp1_bias", .rows = ONE, .cols = INTER_2, .stacked = true},
    [SINKPROOF_W_DOWN] = {IN_LAYER(w_down), .hf = "mlp.experts.down_proj",
                          .openai = "mlp.mlp2_weight", .rows = HIDDEN, .cols = INTER,
                          .stacked = true},
    [SINKPROOF_B_DOWN] = {IN_LAYER(b_down), .hf = "mlp.experts.down_proj_bias",
                          .openai = "mlp.mlp2_bias", .rows = ONE, .cols = HIDDEN, .stacked = true},
#undef IN_LAYER
    [SINKPROOF_EMBEDDING] = {"embedding", .hf = "model.embed_tokens.weight",
                             .openai = "embedding.weight", .rows = VOCAB, .cols = HIDDEN},
    [SINKPROOF_FINAL_NORM] = {"final_norm", .hf = "model.norm.weight", .openai = "norm.scale",
                              .rows = ONE, .cols = HIDDEN},
    [SINKPROOF_UNEMBEDDING] = {"unembedding", .hf = "lm_head.weight",
                               .openai = "unembedding.weight", .rows = VOCAB, .cols = HIDDEN},
};
//< model.biases

static size_t length(const sinkproof_config *config, dimension d) {
    switch (d) {
    case ONE:
        return 1;
    case HIDDEN:
        return config->hidden;
    case VOCAB:
        return config->vocab;
    case EXPERTS:
        return config->n_experts;
    case HEADS:
        return config->n_heads;
    case Q_WIDTH:
        return config->n_heads * config->head_dim;
    case KV_WIDTH:
        return config->n_kv_heads * config->head_dim;
    case INTER:
        return config->inter;
    case INTER_2:
        return 2 * config->inter;
    }
    return 0;
}

const char *sinkproof_slot_name(sinkproof_slot slot) {
    return slots[slot].name;
}
const char *sinkproof_slot_hf(sinkproof_slot slot) {
    return slots[slot].hf;
}
const char *sinkproof_slot_openai(sinkproof_slot slot) {
    return slots[slot].openai;
}
bool sinkproof_slot_is_vector(sinkproof_slot slot) {
    return slots[slot].rows == ONE;
}
bool sinkproof_slot_is_stacked(sinkproof_slot slot) {
    return slots[slot].stacked;
}

bool sinkproof_slot_is_expert_matrix(sinkproof_slot slot) {
    return slots[slot].stacked && slots[slot].rows != ONE;
}

//> model.biases
void sinkproof_slot_shape(sinkproof_slot slot, const sinkproof_config *config, size_t *count,
                          size_t *rows, size_t *cols) {
    *count = slots[slot].stacked ? config->n_experts : 1;
    *rows = length(config, slots[slot].rows);
    *cols = length(config, slots[slot].cols);
}
//< model.biases

sinkproof_matrix *sinkproof_slot_of(sinkproof_layer *layer, sinkproof_slot slot) {
    return (sinkproof_matrix *)(void *)((char *)layer + slots[slot].offset);
}

sinkproof_matrix sinkproof_model_slot(const sinkproof_model *model, size_t l, sinkproof_slot slot) {
    if (slot == SINKPROOF_EMBEDDING) return sinkproof_model_embedding(model);
    if (slot == SINKPROOF_FINAL_NORM) return sinkproof_model_final_norm(model);
    if (slot == SINKPROOF_UNEMBEDDING) return sinkproof_model_unembedding(model);
    sinkproof_layer layer = sinkproof_model_layer(model, l);
    return *sinkproof_slot_of(&layer, slot);
}
