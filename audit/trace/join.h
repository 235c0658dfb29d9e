// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One trace of the traces of several processes (ranks), each of which holds a part of some tensors.
// The files' metadata say how: `rank`, `ranks` and `split`.
#ifndef SINKPROOF_JOIN_H
#define SINKPROOF_JOIN_H

#include "base/error.h"

#include <stddef.h>

typedef struct joined_ranks {
    size_t ranks, n;               // n: tokens
    size_t parted, whole, partial; // tensors put together, the same on every rank, left out
} joined_ranks;

// Writes the joined trace to `out`, completely or not at all. Nothing in the files is trusted.
bool sinkproof_trace_join(const char *const *paths, size_t count, const char *out,
                          joined_ranks *joined, sinkproof_error *error);

#endif
