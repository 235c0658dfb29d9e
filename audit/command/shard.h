// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which part of the work a process does: --shard K/N, or its rank, as MPI and Slurm tell it in the
// environment.
#ifndef SINKPROOF_COMMAND_SHARD_H
#define SINKPROOF_COMMAND_SHARD_H

#include "base/error.h"

#include <stddef.h>

typedef struct work_shard {
    size_t at, of;    // the units at, at + of, at + 2 of ...: at < of
    const char *from; // the variable that tells it; NULL: --shard, or nothing
} work_shard;

// Parses "2/4": the second of four.
bool shard_parse(const char *text, work_shard *shard, sinkproof_error *error);

// Reads the rank and the number of ranks of Open MPI, of MPICH's PMI or of a Slurm step, and the
// place in a Slurm array; both together, if both are there. `get` is getenv. Returns false if a
// variable is no number that makes sense.
typedef char *environment(const char *name);
bool shard_of_environment(environment *get, work_shard *shard, sinkproof_error *error);

#endif
