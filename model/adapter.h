// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A low-rank adapter of PEFT (LoRA) beside a model: y = W x + s B (A x) at linear layers. W stays
// as it is; the adapter's directory holds A and B of each layer that has them, and what s is.
#ifndef SINKPROOF_ADAPTER_H
#define SINKPROOF_ADAPTER_H

#include "base/error.h"
#include "model/model.h"

// What an adapter adds to a weight: row k of B adds to the weight's row first + k step. Gate and up
// of a dense model are two such parts of one weight, whose rows they have in turn.
typedef struct sinkproof_adapter_part {
    sinkproof_matrix a, b; // [rank, cols], [rows, rank]
    size_t first, step;
    double alpha, scale; // scale: alpha / rank, or alpha / sqrt(rank) where the adapter says so
    bool by_root;        // whether it says so
} sinkproof_adapter_part;
enum { SINKPROOF_ADAPTER_PARTS = 2 };

typedef struct sinkproof_adapter sinkproof_adapter;

// Opens a directory with adapter_config.json and adapter_model.safetensors. Every tensor must be A
// or B of a linear layer of the model, of its shape, and every number finite. What the judge has no
// set for is refused: DoRA, biases, adapters of experts, of embeddings, of other modules.
bool sinkproof_adapter_open(const char *directory, const sinkproof_model *model,
                            sinkproof_adapter **adapter, sinkproof_error *error);
void sinkproof_adapter_close(sinkproof_adapter *adapter);

// The parts that are added to a weight, at most SINKPROOF_ADAPTER_PARTS; returns how many.
size_t sinkproof_adapter_parts(const sinkproof_adapter *adapter, size_t layer, sinkproof_slot slot,
                               const sinkproof_adapter_part **parts);
// How many parts all weights have, and the least and the largest rank among them.
size_t sinkproof_adapter_count(const sinkproof_adapter *adapter, size_t *least, size_t *largest);

// A view of a model with an adapter beside its weights, which the judge alone reads; both must
// outlive it. NULL if memory runs out.
sinkproof_model *sinkproof_model_adapted(const sinkproof_model *model,
                                         const sinkproof_adapter *adapter);
const sinkproof_adapter *sinkproof_model_adapter(const sinkproof_model *model); // or NULL

#endif
