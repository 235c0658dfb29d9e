// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights of a layer and those outside, for all architectures, as a table of members and
// shapes. The code that opens, generates, writes and lists checkpoints uses this table, so that no
// two of them can disagree about a shape.
#ifndef SINKPROOF_SLOTS_H
#define SINKPROOF_SLOTS_H

#include "model/model.h"

typedef enum sinkproof_slot {
    SINKPROOF_ATTN_NORM,
    SINKPROOF_ATTN_NORM_B,
    SINKPROOF_W_Q,
    SINKPROOF_B_Q,
    SINKPROOF_W_K,
    SINKPROOF_B_K,
    SINKPROOF_W_V,
    SINKPROOF_B_V,
    SINKPROOF_SINKS,
    SINKPROOF_W_O,
    SINKPROOF_B_O,
    SINKPROOF_MLP_NORM,
    SINKPROOF_MLP_NORM_B,
    SINKPROOF_W_ROUTER,
    SINKPROOF_B_ROUTER,
    SINKPROOF_W_UP,
    SINKPROOF_B_UP,
    SINKPROOF_W_DOWN,
    SINKPROOF_B_DOWN,
    SINKPROOF_LAYER_SLOTS,
    SINKPROOF_EMBEDDING = SINKPROOF_LAYER_SLOTS, // these are outside the layers
    SINKPROOF_FINAL_NORM,
    SINKPROOF_UNEMBEDDING,
    SINKPROOF_FINAL_NORM_B,
    SINKPROOF_POSITIONS,
    SINKPROOF_SLOTS,
    SINKPROOF_OUTSIDE_SLOTS = SINKPROOF_SLOTS - SINKPROOF_LAYER_SLOTS
} sinkproof_slot;

const char *sinkproof_slot_name(sinkproof_slot slot); // "w_q", "embedding"

// Its number for the synthetic generator, below 256. It does not depend on the order of the slots:
// a new slot gets a new number, and no other weight changes.
unsigned slot_stream(sinkproof_slot slot);

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
// The weight of any slot of a model; l is ignored outside the layers.
sinkproof_matrix sinkproof_model_slot(const sinkproof_model *model, size_t l, sinkproof_slot slot);

// A view of a model with another configuration of the same shapes, and weights that `edit` changes
// one after the other. It shares everything else with `model` and must be closed before it; NULL if
// memory runs out.
typedef void weight_edit(void *context, size_t l, sinkproof_slot slot, sinkproof_matrix *weight);
sinkproof_model *sinkproof_model_edited(const sinkproof_model *model,
                                        const sinkproof_config *config, weight_edit *edit,
                                        void *context);

#endif
