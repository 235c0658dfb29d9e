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

// The allowed values of a tensor.
typedef enum sinkproof_role {
    SINKPROOF_ROLE_NONE,    // anything: MXFP4's codes, and tensors that are not weights
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

// A layout: the names of tensors in safetensors files. "model.layers.3.self_attn.sinks" is
// `layers`, the layer's number, a dot and the slot's name; experts in MXFP4 are two tensors, with
// `blocks` and `scales` after the name. Slots with the same name share one tensor, one after the
// other: the rows of matrices, the columns of biases. A slot without a name in the layout is NULL:
// a model that has this weight is neither read nor written in it.
typedef struct sinkproof_layout {
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
} sinkproof_layout;

// The name of a slot's tensor (of two the first); `suffix` is "", blocks or scales.
enum { SINKPROOF_TENSOR_NAME = 128 };
void sinkproof_layout_name(const sinkproof_layout *layout, size_t l, sinkproof_slot slot,
                           const char *suffix, char name[SINKPROOF_TENSOR_NAME]);
// The name of the second tensor of a slot that has two.
void sinkproof_layout_second(const sinkproof_layout *layout, size_t l, sinkproof_slot slot,
                             char name[SINKPROOF_TENSOR_NAME]);
// Whether two slots lie in one tensor.
bool sinkproof_layout_shares(const sinkproof_layout *layout, sinkproof_slot a, sinkproof_slot b);
// Whether the layout has a name for a slot; the error begins with `path`.
struct sinkproof_container;
bool sinkproof_layout_has(const struct sinkproof_container *container, sinkproof_slot slot,
                          const char *path, sinkproof_error *error);
// Whether it has a name for every weight of a model.
bool sinkproof_layout_holds(const struct sinkproof_container *container,
                            const sinkproof_model *model, const char *path, sinkproof_error *error);
// Where a slot begins among those of its name, and the length of them all: of its rows, or of a
// vector's columns.
void sinkproof_layout_place(const sinkproof_layout *layout, const sinkproof_config *config,
                            sinkproof_slot slot, size_t *first, size_t *whole);

// Whether a slot's tensor is its matrix as [in, out].
bool sinkproof_layout_turns(const sinkproof_layout *layout, const sinkproof_config *config,
                            sinkproof_slot slot);

// The functions of a container that is a directory of config.json and safetensors files, by its
// layout (container.h says what each does). `open` reads config.json and opens the files:
// model.safetensors; without it the shards that the index names, or every *.safetensors.
struct sinkproof_wanted;
struct sinkproof_writing;
bool sinkproof_checkpoint_open(sinkproof_model *model, sinkproof_error *error);
bool sinkproof_checkpoint_view(const struct sinkproof_wanted *wanted, sinkproof_matrix *out);
bool sinkproof_checkpoint_complete(sinkproof_model *model, sinkproof_error *error);
bool sinkproof_checkpoint_write(const struct sinkproof_container *container,
                                const sinkproof_model *model, const char *directory,
                                const struct sinkproof_writing *how, sinkproof_error *error);

// The whole of the tensor `name` of a layer (of wanted->l; outside the layers of none) as a weight
// of the shape that is wanted.
bool sinkproof_checkpoint_tensor(const struct sinkproof_wanted *wanted, const char *name,
                                 sinkproof_matrix *out);
// Adds n tensors of the file `path`, which lives as long.
bool sinkproof_checkpoint_index(sinkproof_checkpoint *checkpoint, const char *path, size_t n,
                                const sinkproof_tensor *tensors, sinkproof_error *error);

void sinkproof_checkpoint_close(sinkproof_checkpoint *checkpoint);
sinkproof_entry *sinkproof_checkpoint_find(const sinkproof_checkpoint *checkpoint,
                                           const char *name);
void sinkproof_checkpoint_odd(sinkproof_checkpoint *checkpoint, const char *format, ...)
    SINKPROOF_PRINTF(2, 3);

// Opens one more file; and the shards that an index names.
bool sinkproof_checkpoint_add(sinkproof_checkpoint *checkpoint, const char *directory,
                              const char *file, sinkproof_error *error);
bool sinkproof_checkpoint_shards(sinkproof_checkpoint *checkpoint, const char *directory,
                                 sinkproof_error *error);
bool sinkproof_checkpoint_check_map(sinkproof_checkpoint *checkpoint, const char *directory,
                                    sinkproof_error *error);

#endif
