// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Constructed models: synthetic models in which some elements are set, so that their behaviour can
// be derived (doc/32-no-universal-mechanism.md).
#ifndef SINKPROOF_PLANTED_H
#define SINKPROOF_PLANTED_H

#include "model/slots.h"

// from, from + step, ... up to at most `to`.
typedef struct index_span {
    size_t from, to, step;
} index_span;

// A bf16 value for every element of the spans. Later entries override earlier ones.
typedef struct planted_value {
    sinkproof_slot slot;
    index_span layer, row, col; // layer: 0 for weights outside the layers
    float value;
} planted_value;

// The spread of random elements in thousandths, as in model/recipes.c.
typedef struct planted_spread {
    sinkproof_slot slot;
    int thousandths;
} planted_spread;

typedef struct planted_model {
    const char *name; // also of its configuration: sinkproof_config_named
    const planted_spread *spreads;
    size_t n_spreads;
    const planted_value *written;
    size_t n_written;
} planted_model;

const planted_model *planted_find(const char *name); // NULL: not a planted model

// Overwrites the set elements in row r of weight `slot` of layer l.
void planted_row_write(const planted_model *planted, size_t l, sinkproof_slot slot, size_t r,
                       size_t cols, double *row_c);

#endif
