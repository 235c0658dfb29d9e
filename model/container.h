// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A container: one kind of file, directory or generator that holds a model. It recognises what a
// user names, reads the configuration, finds the tensor of each role (a slot of a layer) and views
// it as a weight; most can write a model too. container.c lists them, and nothing else knows one
// from another: a further container is a file that fills this table and a line in the list.
// Private to model/, but for the names that a user chooses from.
#ifndef SINKPROOF_CONTAINER_H
#define SINKPROOF_CONTAINER_H

#include "model/checkpoint.h"
#include "model/config_reader.h"

// The weight that a role asks for: its slot, and the lengths that the configuration gives it.
typedef struct sinkproof_wanted {
    sinkproof_model *model;
    size_t l; // 0 outside the layers
    sinkproof_slot slot;
    size_t count, rows, cols;
    sinkproof_error *error;
} sinkproof_wanted;

// How a model is written.
typedef struct sinkproof_writing {
    bool dequantize; // MXFP4 as bf16
    bool converts;   // dense weights, and experts that are dequantized, into `dense`
    sinkproof_dtype dense;
    void (*progress)(void *context, size_t layer, size_t n_layers);
    void *context;
} sinkproof_writing;

typedef struct sinkproof_container {
    const char *name;   // "hf": what a user calls it who writes one, or NULL
    const char *title;  // "the original layout"
    const char *holds;  // "Hugging Face's tensors"
    const char *suffix; // of the file that is written; NULL: a directory
    bool dequantizes;   // experts can be written in a floating-point format
    bool converts;      // dense weights can be written in another type than they are stored in

    // Whether `spec` is of this kind. The first of the list that says so opens it.
    bool (*recognises)(const char *spec);
    // Reads model->config and whatever `find` needs; model->spec is set.
    bool (*open)(sinkproof_model *model, sinkproof_error *error);
    // The weight of a role. Its presence, dtype and shape are checked; its values are not.
    bool (*find)(const sinkproof_wanted *wanted, sinkproof_matrix *out);
    // After every role has its tensor: refuses what contradicts the configuration, notes the rest.
    bool (*complete)(sinkproof_model *model, sinkproof_error *error);
    void (*close)(sinkproof_model *model); // model->state; or NULL
    // Writes a model into a new or empty directory, or a new file; on failure nothing is left
    // behind. Or NULL.
    bool (*write)(const struct sinkproof_container *container, const sinkproof_model *model,
                  const char *path, const sinkproof_writing *how, sinkproof_error *error);

    // Of containers whose configuration is a config.json. The first that knows an object reads it.
    bool (*knows_config)(const json_t *object);
    void (*read_config)(sinkproof_config_reader *in);
    // NULL, with an error that opens with `path`, when this config.json cannot say it.
    json_t *(*make_config)(const sinkproof_config *config, bool mxfp4, const char *path,
                           sinkproof_error *error);

    const sinkproof_layout *layout; // of containers whose tensors have names
} sinkproof_container;

struct sinkproof_model {
    char *spec;
    const sinkproof_container *container;
    const char *layout;
    sinkproof_config config;
    sinkproof_checkpoint checkpoint; // the tensors of files, by name; empty without files
    void *state;                     // what the container keeps besides
    sinkproof_layer *layers;
    sinkproof_matrix outside[SINKPROOF_OUTSIDE_SLOTS]; // embedding, final norm, unembedding
    bool view; // of another model, whose files and names it shares
};

// The i-th container of the list, NULL beyond the last.
const sinkproof_container *sinkproof_container_at(size_t i);
// The one that recognises `spec`; never NULL.
const sinkproof_container *sinkproof_container_of(const char *spec);
// The one of a name, or NULL.
const sinkproof_container *sinkproof_container_named(const char *name);

#endif
