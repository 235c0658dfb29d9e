// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The census as JSON, and inputs of one kind together. Private to audit/studies/sinks/census*.c.
#ifndef SINKPROOF_CENSUS_JSON_H
#define SINKPROOF_CENSUS_JSON_H

#include "audit/studies/sinks/part.h"

// Inputs of one kind and one T: "random" of "random:64,seed=3". The heads of all of them are
// counted together: each sequence meets the threshold by itself.
enum { SINKPROOF_SHARES = 4 };
extern const size_t sinkproof_census_shares[SINKPROOF_SHARES]; // k: 0, seen, star, published
typedef struct sinkproof_census_kind {
    char name[16];                    // "random", "repeat", "files" or "ids"
    size_t n, first;                  // T; the first input of the kind
    size_t sequences, known;          // inputs, and heads whose weights are known in them
    size_t passing[SINKPROOF_SHARES]; // of those heads
} sinkproof_census_kind;
sinkproof_census_kind sinkproof_census_kind_of(const sinkproof_sinks_job *job, size_t input);

void sinkproof_census_json(const void *state, const sinkproof_sinks_job *job, json_t *results);

#endif
