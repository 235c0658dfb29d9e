// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A container: one kind of file, directory or generator that holds a model. It recognises the
// user's path, reads the configuration, finds the tensor of each role (a slot of a layer) and views
// it as a weight; most can also write a model. container.c lists them, and no other code
// distinguishes them: a new container is a file that fills this table and a line in the list.
// Private to model/, except for the names that a user chooses from.
#ifndef SINKPROOF_CONTAINER_H
#define SINKPROOF_CONTAINER_H

#include "model/checkpoint.h"
#include "model/config_reader.h"

// The weight of a role: its slot, and its shape by the configuration.
typedef struct wanted_weight {
    sinkproof_model *model;
    size_t l; // 0 outside the layers
    sinkproof_slot slot;
    size_t count, rows, cols;
    sinkproof_error *error;
} wanted_weight;

// Options for writing a model.
typedef struct sinkproof_writing {
    bool dequantize; // write MXFP4 as bf16
    bool converts;   // convert dense weights, and dequantized experts, to `dense`
    sinkproof_dtype dense;
    void (*progress)(void *context, size_t layer, size_t n_layers);
    void *context;
} sinkproof_writing;

typedef struct sinkproof_container {
    const char *name;   // "hf": the user's name for it when writing, or NULL
    const char *title;  // "the original layout"
    const char *holds;  // "Hugging Face's tensors"
    const char *suffix; // of the written file; NULL: a directory
    bool dequantizes;   // experts can be written in a floating-point format
    bool converts;      // dense weights can be written in another type than stored

    // Whether `spec` is of this kind. The first container in the list that recognises it opens it.
    bool (*recognises)(const char *spec);
    // Reads model->config and the data for `find`; model->spec is set.
    bool (*open)(sinkproof_model *model, sinkproof_error *error);
    // Finds the weight of a role, and checks its presence, dtype and shape, but not its values.
    bool (*find)(const wanted_weight *wanted, sinkproof_matrix *out);
    // Called after every role has its tensor: refuses contradictions to the configuration, notes
    // other oddities.
    bool (*complete)(sinkproof_model *model, sinkproof_error *error);
    void (*close)(sinkproof_model *model); // frees model->state; or NULL
    // Writes a model into a new or empty directory, or a new file; after a failure nothing is left
    // behind. Or NULL.
    bool (*write)(const struct sinkproof_container *container, const sinkproof_model *model,
                  const char *path, const sinkproof_writing *how, sinkproof_error *error);

    // For containers with a config.json. The first that recognises an object reads it.
    bool (*knows_config)(const json_t *object);
    void (*read_config)(config_reader *in);
    // NULL, with an error that begins with `path`, if this config.json cannot express it.
    json_t *(*make_config)(const sinkproof_config *config, bool mxfp4, const char *path,
                           sinkproof_error *error);

    const tensor_layout *layout; // for containers whose tensors have names
} sinkproof_container;

struct sinkproof_model {
    char *spec;
    const sinkproof_container *container;
    const char *layout;
    const tensor_layout *tensors; // the container's, unless `open` finds another in the file
    sinkproof_config config;
    weight_files checkpoint; // the tensors of files by name; empty without files
    void *state;             // the container's own data
    sinkproof_layer *layers;
    sinkproof_matrix outside[SINKPROOF_OUTSIDE_SLOTS]; // embedding, final norm, unembedding
    const struct sinkproof_adapter *adapter; // beside the weights, of a view (adapter.h); or NULL
    bool view; // a view of another model, which shares its files and names
};

// The i-th container in the list; NULL if i is too large.
const sinkproof_container *sinkproof_container_at(size_t i);
// The container that recognises `spec`; never NULL.
const sinkproof_container *container_recognise(const char *spec);
// The container with that name, or NULL.
const sinkproof_container *sinkproof_container_named(const char *name);

#endif
