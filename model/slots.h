// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights of a layer and those outside, for all architectures, as one table of names and
// shapes. The code that opens, generates, writes, lists and packs weights uses this table, so that
// no two of them can disagree about a shape. A new weight is a row.
#ifndef SINKPROOF_SLOTS_H
#define SINKPROOF_SLOTS_H

#include "model/config.h"
#include "model/matrix.h"

// W(slot, name, its number for the synthetic generator, shape, whether the model c has it).
// The number is one below 256 that no other slot has or ever had: it does not depend on the order
// of the rows, so that a new weight changes no other.
// Shapes. A MATRIX(rows, cols) multiplies a column of cols numbers; a BIAS is that of the matrix in
// the row before it; SCALE and SHIFT are a norm's. STACK and STACK_BIAS: the same for each expert.
// SINKS is a number for each head; other kinds of sinks (sinks.h) have other shapes. up_rows is
// inter, or 2 inter for SwiGLU: even rows are the gate, odd rows are up.
// clang-format off
//> model.biases
#define SINKPROOF_LAYER_WEIGHTS(W) \
    W(ATTN_NORM, attn_norm, 0, SCALE(c->hidden), true) \
    W(ATTN_NORM_B, attn_norm_b, 20, SHIFT(c->hidden), c->norm == SINKPROOF_LAYERNORM) \
    W(W_Q, w_q, 1, MATRIX(c->n_heads * c->head_dim, c->hidden), true) \
    W(B_Q, b_q, 2, BIAS(c->n_heads * c->head_dim), !c->unbiased.qkv) \
    W(W_K, w_k, 3, MATRIX(c->n_kv_heads * c->head_dim, c->hidden), true) \
    W(B_K, b_k, 4, BIAS(c->n_kv_heads * c->head_dim), !c->unbiased.qkv) \
    W(W_V, w_v, 5, MATRIX(c->n_kv_heads * c->head_dim, c->hidden), true) \
    W(B_V, b_v, 6, BIAS(c->n_kv_heads * c->head_dim), !c->unbiased.qkv) \
    W(Q_NORM, q_norm, 24, SCALE(c->head_dim), c->head_norms) \
    W(K_NORM, k_norm, 25, SCALE(c->head_dim), c->head_norms) \
    W(SINKS, sinks, 7, SINKS(c->n_heads), true) \
    W(W_O, w_o, 8, MATRIX(c->hidden, c->n_heads * c->head_dim), true) \
    W(B_O, b_o, 9, BIAS(c->hidden), !c->unbiased.output) \
    W(MLP_NORM, mlp_norm, 10, SCALE(c->hidden), true) \
    W(MLP_NORM_B, mlp_norm_b, 21, SHIFT(c->hidden), c->norm == SINKPROOF_LAYERNORM) \
    W(W_ROUTER, w_router, 11, MATRIX(c->n_experts, c->hidden), !c->dense) \
    W(B_ROUTER, b_router, 12, BIAS(c->n_experts), !c->dense) \
    W(W_UP, w_up, 13, STACK(up_rows(c), c->hidden), true) \
    W(B_UP, b_up, 14, STACK_BIAS(up_rows(c)), !c->unbiased.perceptron) \
    W(W_DOWN, w_down, 15, STACK(c->hidden, c->inter), true) \
    W(B_DOWN, b_down, 16, STACK_BIAS(c->hidden), !c->unbiased.perceptron)
#define SINKPROOF_OUTSIDE_WEIGHTS(W) \
    W(EMBEDDING, embedding, 17, MATRIX(c->vocab, c->hidden), true) \
    W(FINAL_NORM, final_norm, 18, SCALE(c->hidden), true) \
    W(UNEMBEDDING, unembedding, 19, MATRIX(c->vocab, c->hidden), true) \
    W(FINAL_NORM_B, final_norm_b, 22, SHIFT(c->hidden), c->norm == SINKPROOF_LAYERNORM) \
    W(POSITIONS, positions, 23, MATRIX(c->max_context, c->hidden), \
      c->rotation.kind == SINKPROOF_NO_ROTATION)
//< model.biases
// clang-format on

typedef enum sinkproof_slot {
#define SLOT_ENUM(id, ...) SINKPROOF_##id,
    SINKPROOF_LAYER_WEIGHTS(SLOT_ENUM) SINKPROOF_LAYER_SLOTS,
    SINKPROOF_LAST_IN_LAYER = SINKPROOF_LAYER_SLOTS - 1,
    SINKPROOF_OUTSIDE_WEIGHTS(SLOT_ENUM) SINKPROOF_SLOTS,
#undef SLOT_ENUM
    SINKPROOF_OUTSIDE_SLOTS = SINKPROOF_SLOTS - SINKPROOF_LAYER_SLOTS
} sinkproof_slot;

// The weights of one layer by name: w_q, b_q ...
typedef struct sinkproof_layer {
#define SLOT_MEMBER(id, name, ...) sinkproof_matrix name;
    SINKPROOF_LAYER_WEIGHTS(SLOT_MEMBER)
#undef SLOT_MEMBER
} sinkproof_layer;

// What a weight is to the computation that it enters.
typedef enum sinkproof_slot_kind {
    SINKPROOF_SCALE,
    SINKPROOF_SHIFT,
    SINKPROOF_MATRIX,
    SINKPROOF_BIAS, // of the slot before
    SINKPROOF_SINK
} sinkproof_slot_kind;
sinkproof_slot_kind sinkproof_slot_kind_of(sinkproof_slot slot, const sinkproof_config *config);

const char *sinkproof_slot_name(sinkproof_slot slot); // "w_q", "embedding"
unsigned slot_stream(sinkproof_slot slot);            // its number for the synthetic generator

// Whether rows is 1 and not in the container's shape.
bool sinkproof_slot_is_vector(sinkproof_slot slot, const sinkproof_config *config);
bool sinkproof_slot_is_stacked(sinkproof_slot slot, const sinkproof_config *config); // per expert
// MXFP4, or dequantized.
bool sinkproof_slot_is_expert_matrix(sinkproof_slot slot, const sinkproof_config *config);

// count, rows and cols of a slot under a configuration; count 0: its model has no such weight.
void sinkproof_slot_shape(sinkproof_slot slot, const sinkproof_config *config, size_t *count,
                          size_t *rows, size_t *cols);

// The member of a layer; slot < SINKPROOF_LAYER_SLOTS.
sinkproof_matrix *layer_slot(sinkproof_layer *layer, sinkproof_slot slot);

#endif
