// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Constructed models: synthetic models in which some elements are set, so that their behaviour can
// be derived (doc/32-no-universal-mechanism.md).
#ifndef SINKPROOF_PLANTED_H
#define SINKPROOF_PLANTED_H

#include "model/slots.h"

// from, from + step, ... up to at most `to`.
typedef struct sinkproof_span {
    size_t from, to, step;
} sinkproof_span;

// A bf16 value for every element of the spans. Later entries override earlier ones.
typedef struct sinkproof_written {
    sinkproof_slot slot;
    sinkproof_span layer, row, col; // layer: 0 for weights outside the layers
    float value;
} sinkproof_written;

// The spread of random elements in thousandths, as in model/recipes.c.
typedef struct sinkproof_spread_of {
    sinkproof_slot slot;
    int thousandths;
} sinkproof_spread_of;

typedef struct sinkproof_planted {
    const char *name; // also of its configuration: sinkproof_config_named
    const sinkproof_spread_of *spreads;
    size_t n_spreads;
    const sinkproof_written *written;
    size_t n_written;
} sinkproof_planted;

const sinkproof_planted *sinkproof_planted_named(const char *name); // NULL: not a planted model

// Overwrites the set elements in row r of weight `slot` of layer l.
void sinkproof_planted_row(const sinkproof_planted *planted, size_t l, sinkproof_slot slot,
                           size_t r, size_t cols, double *row_c);

#endif
