// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights of one layer as the kernels read them, in one region of memory: panels for the
// matrices, float32 for the vectors. The region is laid out first and filled afterwards, unit by
// unit, so that any number of threads may fill it.
#ifndef SINKPROOF_ENGINE_WEIGHTS_H
#define SINKPROOF_ENGINE_WEIGHTS_H

#include "fast/kernels/panels.h"
#include "model/model.h"

// A matrix with its bias ([16 panels], or NULL).
typedef struct packed_matrix {
    sinkproof_panels weight;
    const float *bias_r;
} packed_matrix;

// The weights of a layer by slot, where the model has them. Norms' shifts are not packed: a norm
// with one is computed from the model.
typedef struct packed_layer {
    const float *vector_c[SINKPROOF_LAYER_SLOTS]; // padded with zeros to a multiple of 32
    packed_matrix matrix[SINKPROOF_LAYER_SLOTS];  // but those of experts,
    packed_matrix *up_e, *down_e;                 // [experts], or one
} packed_layer;

// One tensor to be packed: a matrix into panels, or a vector into floats.
typedef struct pack_job {
    sinkproof_matrix from;
    sinkproof_panel_format format;
    bool vector;
    float absent; // the value of a vector that the model does not store
    uint8_t *to;
    size_t panels;     // 1 for a vector
    size_t first_unit; // in the list
} pack_job;

// The tensors of a region in order.
typedef struct pack_list {
    pack_job *jobs;
    size_t n_jobs, room;
    size_t units; // units of work, each at most a few hundred KiB of panels
    size_t bytes; // of the region
    float sink;   // every head's logit in a model that stores none
} pack_list;

bool pack_list_new(const sinkproof_config *config, pack_list *list, sinkproof_error *error);
void pack_list_free(pack_list *list);

// Lays out layer l (or the final norm and the unembedding) at `memory`, which may be NULL to get
// list->bytes. packed->up_e and down_e have room for the experts. Afterwards units 0 .. units - 1
// fill it, in any order and by any thread.
void pack_layer(const sinkproof_model *model, size_t l, uint8_t *memory, pack_list *list,
                packed_layer *packed);
void pack_norm_and_unembedding(const sinkproof_matrix *norm, const sinkproof_matrix *unembedding,
                               uint8_t *memory, pack_list *list, const float **norm_c,
                               packed_matrix *unembed);

// work: pack_work_doubles doubles.
void pack_unit(const pack_list *list, size_t unit, double *work);
size_t pack_work_doubles(const sinkproof_config *config);

#endif
