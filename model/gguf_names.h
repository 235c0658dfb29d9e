// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// llama.cpp's names for the architectures that are read: keys and tensors. Private to model/:
// shared by the reader and the writer of GGUF files.
#ifndef SINKPROOF_GGUF_NAMES_H
#define SINKPROOF_GGUF_NAMES_H

#include "model/container.h"
#include "model/gguf.h"

#define GGUF_SUFFIX ".gguf"

// A key after the prefix, and the number that it holds; the list ends with NULL.
typedef struct gguf_name {
    const char *key;
    size_t offset; // CONFIG_KEY(member)
    bool required;
} gguf_name;

// The tensors of safetensors' manner: "blk.3.attn_q.weight".
extern const tensor_layout gguf_layout, gguf_llama_layout;

// An architecture of llama.cpp's; the list ends with NULL.
typedef struct gguf_kind {
    const char *name;   // "general.architecture"
    const char *prefix; // of the keys that define the model
    sinkproof_architecture architecture;
    const tensor_layout *layout;
    const gguf_name *numbers;
    const char *const *more; // keys that can only have one value here, or change nothing
    bool turned;             // the coordinates of a rotated pair lie side by side
} gguf_kind;
extern const gguf_kind gguf_kinds[];

// The kind of a file, NULL: none of the list; and the one in which a configuration is written.
const gguf_kind *gguf_kind_of_file(const gguf_file *file);
struct file_cursor;
bool gguf_check_architecture(struct file_cursor *in, const gguf_file *file);
const gguf_kind *gguf_kind_for_config(const sinkproof_config *config);
// Reads model->config; the tensors are in model->checkpoint.
bool gguf_read_config(const gguf_file *file, const gguf_kind *kind, sinkproof_model *model,
                      sinkproof_error *error);
// Whether the keys can state a configuration; the error opens with `path`.
bool gguf_can_state_config(const sinkproof_config *config, const char *path,
                           sinkproof_error *error);

// Where a row of queries or keys lies in a file that keeps pairs side by side, and which row lies
// there; the last argument is head_dim.
sinkproof_read_from gguf_row_side_by_side, gguf_row_in_halves;
// Whether such a file turns the rows of a slot; a reading that turns them.
bool gguf_reorders_slot(sinkproof_slot slot);
void gguf_reorder_rows(sinkproof_read_from *from, size_t head_dim, bool vector,
                       sinkproof_reading *reading);

// The name of the one tensor that gate and up may share, the gate in front; NULL: not of that slot.
const char *gguf_fused_name(sinkproof_slot slot);
// "blk.L.NAME".
void gguf_tensor_name(size_t l, const char *name, char out[TENSOR_NAME]);

bool gguf_write(const sinkproof_container *container, const sinkproof_model *model,
                const char *path, const sinkproof_writing *how, sinkproof_error *error);

#endif
