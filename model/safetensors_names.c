// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The names of a safetensors file's tensors in order.
#include "model/safetensors_file.h"

#include <stdlib.h>
#include <string.h>

// qsort has no context argument: pairs of a name and its index are sorted instead.
typedef struct named {
    const char *name;
    size_t index;
} named;

static int by_name(const void *left, const void *right) {
    return strcmp(((const named *)left)->name, ((const named *)right)->name);
}

bool safetensors_index_names(sinkproof_safetensors *file) {
    named *pairs = malloc((file->count + 1) * sizeof *pairs);
    file->by_name = malloc((file->count + 1) * sizeof *file->by_name);
    if (pairs != NULL && file->by_name != NULL) {
        for (size_t i = 0; i < file->count; i++) pairs[i] = (named){file->tensors[i].name, i};
        qsort(pairs, file->count, sizeof *pairs, by_name);
        for (size_t i = 0; i < file->count; i++) file->by_name[i] = pairs[i].index;
    }
    bool good = pairs != NULL && file->by_name != NULL;
    free(pairs);
    return good;
}
