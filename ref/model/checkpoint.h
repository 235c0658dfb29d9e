// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A checkpoint directory: which files belong to it, every tensor in them by name, and the
// views that turn tensors into the weights of a model. Private to ref/model/.
#ifndef SINKPROOF_CHECKPOINT_H
#define SINKPROOF_CHECKPOINT_H

#include "ref/model/model.h"
#include "ref/model/safetensors.h"
#include "ref/model/slots.h"
#include "ref/model/synthetic.h"

// What the values of a tensor must be.
typedef enum sinkproof_role {
    SINKPROOF_ROLE_NONE,    // anything: MXFP4's codes, and tensors of no weight
    SINKPROOF_ROLE_NUMBERS, // finite
    SINKPROOF_ROLE_SINKS,   // finite, or -infinity: no sink
    SINKPROOF_ROLE_SCALES,  // any byte but 255
} sinkproof_role;

typedef struct sinkproof_entry {
    const sinkproof_tensor *tensor;
    const char *path; // of its file
    bool used;        // some weight is a view of it
    sinkproof_role role;
} sinkproof_entry;

typedef struct sinkproof_checkpoint {
    char **paths;
    sinkproof_safetensors **files;
    size_t n_files;
    sinkproof_entry *entries; // ascending in name
    size_t n_entries;
    char **odd; // sentences
    size_t n_odd;
} sinkproof_checkpoint;

struct sinkproof_model {
    char *spec;
    const char *layout;
    sinkproof_config config;
    sinkproof_checkpoint checkpoint;
    sinkproof_synthetic synthetic;
    char **names; // of synthetic weights
    size_t n_names;
    sinkproof_layer *layers;
    sinkproof_matrix outside[3]; // embedding, final norm, unembedding
    bool view;                   // of another model, whose files and names it shares
};

// Opens the files of `directory`: model.safetensors; without it, in the Hugging Face layout
// (hf) the shards that model.safetensors.index.json names, else every *.safetensors.
bool sinkproof_checkpoint_open(const char *directory, bool hf, sinkproof_checkpoint *checkpoint,
                               sinkproof_error *error);
void sinkproof_checkpoint_close(sinkproof_checkpoint *checkpoint);
sinkproof_entry *sinkproof_checkpoint_find(const sinkproof_checkpoint *checkpoint,
                                           const char *name);
void sinkproof_checkpoint_odd(sinkproof_checkpoint *checkpoint, const char *format, ...)
    SINKPROOF_PRINTF(2, 3);

// Opens one more file; the two halves of sinkproof_checkpoint_open.
bool sinkproof_checkpoint_add(sinkproof_checkpoint *checkpoint, const char *directory,
                              const char *file, sinkproof_error *error);
bool sinkproof_checkpoint_shards(sinkproof_checkpoint *checkpoint, const char *directory,
                                 sinkproof_error *error);
bool sinkproof_checkpoint_check_map(sinkproof_checkpoint *checkpoint, const char *directory,
                                    sinkproof_error *error);

// Fills model->layers and model->outside from model->checkpoint; sets the layout.
bool sinkproof_checkpoint_map(sinkproof_model *model, bool hf, sinkproof_error *error);

#endif
