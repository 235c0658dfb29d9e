// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Models that are constructed, not drawn alone: a synthetic model in which some elements are
// written, so that what it does can be derived (doc/32-no-universal-mechanism.md).
#ifndef SINKPROOF_PLANTED_H
#define SINKPROOF_PLANTED_H

#include "model/slots.h"

// from, from + step, ... up to `to` at most.
typedef struct sinkproof_span {
    size_t from, to, step;
} sinkproof_span;

// A value of bf16 in every element of the spans. What is written later stands.
typedef struct sinkproof_written {
    sinkproof_slot slot;
    sinkproof_span layer, row, col; // layer: of a weight outside the layers 0
    float value;
} sinkproof_written;

// The spread of what is drawn, as model/recipes.c has it, in thousandths.
typedef struct sinkproof_spread_of {
    sinkproof_slot slot;
    int thousandths;
} sinkproof_spread_of;

typedef struct sinkproof_planted {
    const char *name; // of its configuration too: sinkproof_config_named
    const sinkproof_spread_of *spreads;
    size_t n_spreads;
    const sinkproof_written *written;
    size_t n_written;
} sinkproof_planted;

const sinkproof_planted *sinkproof_planted_named(const char *name); // NULL: nothing is planted

// What is written in row r of weight `slot` of layer l, put over the drawn row.
void sinkproof_planted_row(const sinkproof_planted *planted, size_t l, sinkproof_slot slot,
                           size_t r, size_t cols, double *row_c);

#endif
