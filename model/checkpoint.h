// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A checkpoint directory: its files, every tensor in them by name, the views that turn tensors into
// the weights of a model, and its writer. All layouts of safetensors files share this; the names of
// each are in its container. Private to model/.
#ifndef SINKPROOF_CHECKPOINT_H
#define SINKPROOF_CHECKPOINT_H

#include "model/model.h"
#include "model/safetensors.h"
#include "model/slots.h"

#include <jansson.h>

// The allowed values of a tensor.
typedef enum tensor_role {
    ROLE_NONE,    // anything: MXFP4's codes, and tensors that are not weights
    ROLE_NUMBERS, // finite
    ROLE_SINKS,   // finite, or -infinity: no sink
    ROLE_SCALES,  // any byte but 255
} tensor_role;

typedef struct checkpoint_entry {
    const sinkproof_tensor *tensor;
    const char *path; // of its file
    bool used;        // some weight is a view of it
    tensor_role role;
} checkpoint_entry;

typedef struct weight_files {
    char **paths;
    sinkproof_safetensors **files;
    size_t n_files;
    checkpoint_entry *entries; // ascending in name
    size_t n_entries;
    char **odd; // sentences
    size_t n_odd;
} weight_files;

// A layout: the names of tensors in safetensors files. "model.layers.3.self_attn.sinks" is
// `layers`, the layer's number, a dot and the slot's name; experts in MXFP4 are two tensors, with
// `blocks` and `scales` after the name. Slots with the same name share one tensor, one after the
// other: the rows of matrices, the columns of biases. A slot without a name in the layout is NULL:
// a model that has this weight is neither read nor written in it.
typedef struct tensor_layout {
    const char *shown; // "hf-mxfp4"
    // the same for experts stored as [experts, in, out], or NULL: unsupported
    const char *dequantized;
    const char *shared; // the slots with a common name: "q, k and v"
    bool plain_experts; // experts are ordinary tensors, [experts, out, in], of any type
    bool transposed;    // matrices of layers are [in, out]; those with the same name share the rows
    bool indexed;       // the shards are listed in model.safetensors.index.json
    const char *layers, *blocks, *scales;
    const char *prefix;        // optional prefix of the names in a file; NULL: none
    const char *const *unread; // suffixes of tensors that are not weights; NULL at the end
    const char *names[SINKPROOF_SLOTS];
    const char *second[SINKPROOF_SLOTS]; // of slots whose odd rows (or, of a vector, elements) are
                                         // a tensor of their own: gate is the first, up the second
} tensor_layout;

// The name of a slot's tensor (of two the first); `suffix` is "", blocks or scales.
enum { TENSOR_NAME = 128 };
void layout_name(const tensor_layout *layout, size_t l, sinkproof_slot slot, const char *suffix,
                 char name[TENSOR_NAME]);
// The name of the second tensor of a slot that has two.
void layout_second_name(const tensor_layout *layout, size_t l, sinkproof_slot slot,
                        char name[TENSOR_NAME]);
// Whether two slots lie in one tensor.
bool layout_slots_share(const tensor_layout *layout, sinkproof_slot a, sinkproof_slot b);
// Whether the layout has a name for a slot; the error begins with `path`.
bool layout_check_slot(const tensor_layout *layout, const char *title, sinkproof_slot slot,
                       const char *path, sinkproof_error *error);
struct sinkproof_container;
// Whether it has a name for every weight of a model.
bool layout_check_model(const struct sinkproof_container *container, const sinkproof_model *model,
                        const char *path, sinkproof_error *error);
// Where a slot begins among those of its name, and the length of them all: of its rows, or of a
// vector's columns.
void layout_slot_place(const tensor_layout *layout, const sinkproof_config *config,
                       sinkproof_slot slot, size_t *first, size_t *whole);

// Whether a slot's tensor is its matrix as [in, out].
bool layout_is_transposed(const tensor_layout *layout, const sinkproof_config *config,
                          sinkproof_slot slot);

// The functions of a container that is a directory of config.json and safetensors files, by its
// layout (container.h says what each does). `open` reads config.json and opens the files:
// model.safetensors; without it the shards that the index names, or every *.safetensors.
struct wanted_weight;
struct sinkproof_writing;
bool checkpoint_open(sinkproof_model *model, sinkproof_error *error);
bool checkpoint_view(const struct wanted_weight *wanted, sinkproof_matrix *out);
bool checkpoint_check_all_used(sinkproof_model *model, sinkproof_error *error);
bool checkpoint_write(const struct sinkproof_container *container, const sinkproof_model *model,
                      const char *directory, const struct sinkproof_writing *how,
                      sinkproof_error *error);

// The whole of the tensor `name` of a layer (of wanted->l; outside the layers of none) as a weight
// of the shape that is wanted.
bool checkpoint_tensor(const struct wanted_weight *wanted, const char *name, sinkproof_matrix *out);
// Adds n tensors of the file `path`, which lives as long.
bool checkpoint_index(weight_files *checkpoint, const char *path, size_t n,
                      const sinkproof_tensor *tensors, sinkproof_error *error);

void checkpoint_close(weight_files *checkpoint);
checkpoint_entry *checkpoint_find(const weight_files *checkpoint, const char *name);
void checkpoint_note_odd(weight_files *checkpoint, const char *format, ...) SINKPROOF_PRINTF(2, 3);

// Opens one more file; and the shards that an index names.
bool checkpoint_add(weight_files *checkpoint, const char *directory, const char *file,
                    sinkproof_error *error);
bool checkpoint_shards(weight_files *checkpoint, const char *directory, sinkproof_error *error);
// Parses an index: its weight_map is an object whose values are names of files beside it.
json_t *checkpoint_load_index(const char *path, sinkproof_error *error);
bool checkpoint_check_map(weight_files *checkpoint, const char *directory, sinkproof_error *error);

#endif
