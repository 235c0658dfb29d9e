// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The table of weights. Their names in a checkpoint are in its container.
#include "model/slots.h"

#include "model/sinks.h"

typedef enum dimension {
    ONE,
    HIDDEN,
    VOCAB,
    EXPERTS,
    HEADS,
    Q_WIDTH,
    KV_WIDTH,
    INTER,
    INTER_2,
    CONTEXT
} dimension;

// Which models have a weight.
typedef enum models {
    ALL,
    CENTRED,
    PLACED,
    ROUTED,
    QKV_BIASED,
    OUTPUT_BIASED,
    PERCEPTRON_BIASED
} models;

//> model.biases
static const struct {
    const char *name;
    unsigned stream; // of the synthetic generator: a number that no other slot has or ever had
    size_t offset;   // in sinkproof_layer
    dimension rows, cols;
    bool stacked;
    models of;
} slots[SINKPROOF_SLOTS] = {
#define IN_LAYER(number, member) #member, number, offsetof(sinkproof_layer, member)
    [SINKPROOF_ATTN_NORM] = {IN_LAYER(0, attn_norm), .rows = ONE, .cols = HIDDEN},
    [SINKPROOF_ATTN_NORM_B] = {IN_LAYER(20, attn_norm_b), ONE, HIDDEN, .of = CENTRED},
    [SINKPROOF_MLP_NORM_B] = {IN_LAYER(21, mlp_norm_b), ONE, HIDDEN, .of = CENTRED},
    [SINKPROOF_W_Q] = {IN_LAYER(1, w_q), .rows = Q_WIDTH, .cols = HIDDEN},
    [SINKPROOF_B_Q] = {IN_LAYER(2, b_q), ONE, Q_WIDTH, .of = QKV_BIASED},
    [SINKPROOF_W_K] = {IN_LAYER(3, w_k), .rows = KV_WIDTH, .cols = HIDDEN},
    [SINKPROOF_B_K] = {IN_LAYER(4, b_k), ONE, KV_WIDTH, .of = QKV_BIASED},
    [SINKPROOF_W_V] = {IN_LAYER(5, w_v), .rows = KV_WIDTH, .cols = HIDDEN},
    [SINKPROOF_B_V] = {IN_LAYER(6, b_v), ONE, KV_WIDTH, .of = QKV_BIASED},
    [SINKPROOF_SINKS] = {IN_LAYER(7, sinks), .rows = ONE, .cols = HEADS},
    [SINKPROOF_W_O] = {IN_LAYER(8, w_o), .rows = HIDDEN, .cols = Q_WIDTH},
    [SINKPROOF_B_O] = {IN_LAYER(9, b_o), ONE, HIDDEN, .of = OUTPUT_BIASED},
    [SINKPROOF_MLP_NORM] = {IN_LAYER(10, mlp_norm), .rows = ONE, .cols = HIDDEN},
    [SINKPROOF_W_ROUTER] = {IN_LAYER(11, w_router), EXPERTS, HIDDEN, .of = ROUTED},
    [SINKPROOF_B_ROUTER] = {IN_LAYER(12, b_router), ONE, EXPERTS, .of = ROUTED},
    [SINKPROOF_W_UP] = {IN_LAYER(13, w_up), .rows = INTER_2, .cols = HIDDEN, .stacked = true},
    [SINKPROOF_B_UP] = {IN_LAYER(14, b_up), ONE, INTER_2, true, PERCEPTRON_BIASED},
    [SINKPROOF_W_DOWN] = {IN_LAYER(15, w_down), .rows = HIDDEN, .cols = INTER, .stacked = true},
    [SINKPROOF_B_DOWN] = {IN_LAYER(16, b_down), ONE, HIDDEN, true, PERCEPTRON_BIASED},
#undef IN_LAYER
    [SINKPROOF_FINAL_NORM_B] = {"final_norm_b", 22, .rows = ONE, .cols = HIDDEN, .of = CENTRED},
    [SINKPROOF_POSITIONS] = {"positions", 23, .rows = CONTEXT, .cols = HIDDEN, .of = PLACED},
    [SINKPROOF_EMBEDDING] = {"embedding", 17, .rows = VOCAB, .cols = HIDDEN},
    [SINKPROOF_FINAL_NORM] = {"final_norm", 18, .rows = ONE, .cols = HIDDEN},
    [SINKPROOF_UNEMBEDDING] = {"unembedding", 19, .rows = VOCAB, .cols = HIDDEN},
};
//< model.biases

static size_t dimension_length(const sinkproof_config *config, dimension d) {
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
        return (config->activation == SINKPROOF_SWIGLU ? 2 : 1) * config->inter;
    case CONTEXT:
        return config->max_context;
    }
    return 0;
}

const char *sinkproof_slot_name(sinkproof_slot slot) {
    return slots[slot].name;
}

unsigned slot_stream(sinkproof_slot slot) {
    return slots[slot].stream;
}

bool sinkproof_slot_is_vector(sinkproof_slot slot, const sinkproof_config *config) {
    if (slot == SINKPROOF_SINKS) return sinkproof_sinks_are_constant(config);
    return slots[slot].rows == ONE;
}
bool sinkproof_slot_is_stacked(sinkproof_slot slot, const sinkproof_config *config) {
    return slots[slot].stacked && !config->dense;
}

bool sinkproof_slot_is_expert_matrix(sinkproof_slot slot, const sinkproof_config *config) {
    return sinkproof_slot_is_stacked(slot, config) && slots[slot].rows != ONE;
}

static bool model_has_kind(const sinkproof_config *config, models of) {
    switch (of) {
    case ALL:
        return true;
    case CENTRED:
        return config->norm == SINKPROOF_LAYERNORM;
    case PLACED:
        return config->rotation.kind == SINKPROOF_NO_ROTATION;
    case ROUTED:
        return !config->dense;
    case QKV_BIASED:
        return !config->unbiased.qkv;
    case OUTPUT_BIASED:
        return !config->unbiased.output;
    case PERCEPTRON_BIASED:
        return !config->unbiased.perceptron;
    }
    return false;
}

//> model.biases
void sinkproof_slot_shape(sinkproof_slot slot, const sinkproof_config *config, size_t *count,
                          size_t *rows, size_t *cols) {
    *count = slots[slot].stacked ? config->n_experts : 1;
    *rows = dimension_length(config, slots[slot].rows);
    *cols = dimension_length(config, slots[slot].cols);
    if (!model_has_kind(config, slots[slot].of)) *count = 0;
    if (slot == SINKPROOF_SINKS) sink_tensor_shape(config, count, rows, cols);
}
//< model.biases

sinkproof_matrix *layer_slot(sinkproof_layer *layer, sinkproof_slot slot) {
    return (sinkproof_matrix *)(void *)((char *)layer + slots[slot].offset);
}
