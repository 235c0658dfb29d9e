// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// llama.cpp's names for the architecture gpt-oss: keys and tensors. Private to model/: shared by
// the reader and the writer of GGUF files.
#ifndef SINKPROOF_GGUF_NAMES_H
#define SINKPROOF_GGUF_NAMES_H

#include "model/container.h"

#define SINKPROOF_GGUF_SUFFIX ".gguf"
#define SINKPROOF_GGUF_PREFIX "gpt-oss." // of the keys that define the model

// A key after the prefix, and the number that it holds; the list ends with NULL.
typedef struct sinkproof_gguf_name {
    const char *key;
    size_t offset; // SINKPROOF_KEY(member)
    bool required;
} sinkproof_gguf_name;
extern const sinkproof_gguf_name sinkproof_gguf_names[];

// The tensors of safetensors' manner: "blk.3.attn_q.weight".
extern const sinkproof_layout sinkproof_gguf_layout;
// The name of the one tensor that gate and up may share, the gate in front; NULL: not of that slot.
const char *sinkproof_gguf_fused(sinkproof_slot slot);
// "blk.L.NAME".
void sinkproof_gguf_tensor(size_t l, const char *name, char out[SINKPROOF_TENSOR_NAME]);

bool sinkproof_gguf_write(const sinkproof_container *container, const sinkproof_model *model,
                          const char *path, const sinkproof_writing *how, sinkproof_error *error);

#endif
