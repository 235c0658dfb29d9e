// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The census as JSON, and its summary of inputs of one kind. Private to
// audit/studies/sinks/census*.c.
#ifndef SINKPROOF_CENSUS_JSON_H
#define SINKPROOF_CENSUS_JSON_H

#include "audit/studies/sinks/part.h"

// Inputs of one kind and one T: "random" in "random:64,seed=3". Their heads are counted together;
// each sequence is compared with the threshold separately.
enum { CENSUS_SHARES = 4 };
extern const size_t census_shares[CENSUS_SHARES]; // k: 0, seen, star, published
typedef struct census_kind {
    char name[16];                 // "random", "repeat", "files" or "ids"
    size_t n, first;               // T; the first input of the kind
    size_t sequences;              // number of inputs
    size_t known[CENSUS_SHARES];   // of heads in them whose weight is known
    size_t passing[CENSUS_SHARES]; // of those that pass
} census_kind;
census_kind census_input_kind(const sinkproof_sinks_job *job, size_t input);

void census_json(const void *state, const sinkproof_sinks_job *job, json_t *results);

#endif
