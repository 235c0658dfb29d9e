// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The bytes of a work file: what a run of `sinkproof truth` knows at the end of a layer. Lines of
// text say which run it is, an empty line ends them, and 64-bit words follow, the lowest byte
// first. The last word is the FNV-1a sum of all bytes before it: damage is seen. It is no
// protection against forgery: who can write the file can write what a resumed run certifies.
#ifndef SINKPROOF_TRUTH_STORE_H
#define SINKPROOF_TRUTH_STORE_H

#include "audit/verify/truth_study.h"

// The state of a walk with its study. `bits` is the precision of this walk, `repeats` of how many
// before it; `points` the bytes of the kept points so far, with their sum.
typedef struct truth_store {
    size_t bits, repeats;
    size_t points;
    uint64_t points_sum;
    sinkproof_truth_state state;
} truth_store;

// The bytes of a file, malloc'ed. NULL if a ball has an exponent beyond 64 bits: such a layer is
// not stored.
uint8_t *store_bytes(const char *identity, const truth_store *store, const truth_study *study,
                     size_t *length);

// Reads the state, and the study's accounts; its configuration and n are set before. The identity
// must be the same; an error names its first line that differs. Nothing in the bytes is trusted.
// After success store_clear frees the balls of the state.
bool store_parse(const uint8_t *bytes, size_t length, const char *name, const char *identity,
                 truth_store *store, truth_study *study, sinkproof_error *error);
void sinkproof_store_clear(truth_store *store, const truth_study *study);

#endif
