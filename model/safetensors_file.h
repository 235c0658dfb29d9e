// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What an opened safetensors file is, for the files of this room that make one.
#ifndef SINKPROOF_SAFETENSORS_FILE_H
#define SINKPROOF_SAFETENSORS_FILE_H

#include "model/safetensors.h"

#include <jansson.h>

struct sinkproof_safetensors {
    json_t *header;            // owns every name and metadata value; of several files the metadata
    sinkproof_tensor *tensors; // in the order of their bytes
    size_t *by_name;           // indices into tensors, ascending in name
    size_t count;
    const uint8_t *bytes; // the file
    size_t length;
    bool mapped;                   // unmap it on close
    sinkproof_safetensors **parts; // the files that it is made of; NULL: it is one
    size_t n_parts;
};

// Fills by_name. Returns false if memory runs out.
bool safetensors_index_names(sinkproof_safetensors *file);

// Makes one of several files, which it takes ownership of, also on failure; names[n] for errors.
// No tensor may be in two of them, but tokens and positions, which must be the same; nor may they
// contradict each other in their metadata.
bool safetensors_join(size_t n, sinkproof_safetensors **files, char *const *names,
                      sinkproof_safetensors **joined, sinkproof_error *error);

#endif
