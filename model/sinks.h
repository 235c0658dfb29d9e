// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The kinds of sinks that a model may declare ("attention_sink" in config.json), and the numbers
// that a layer stores for each head in its tensor `sinks`. ref/normaliser.c computes a row's logit
// from them.
#ifndef SINKPROOF_SINKS_H
#define SINKPROOF_SINKS_H

#include "model/config.h"

// What a layer stores for each head.
typedef enum sinkproof_stored_sink {
    SINKPROOF_SINK_NOTHING,
    SINKPROOF_SINK_NUMBER,
    SINKPROOF_SINK_KEY, // head_dim numbers
} sinkproof_stored_sink;

sinkproof_stored_sink sinkproof_sinks_stored(const sinkproof_config *config);

// The logit of every row if a layer stores nothing; -infinity: no sink.
double sinkproof_sinks_constant(const sinkproof_config *config);

// A kind's name. 0 is "logit", the kind of every published checkpoint.
const char *sinkproof_sinks_name(size_t kind);
bool sink_kind_find(const char *name, size_t *kind); // false: no such kind
// All names for an error: "logit, off-by-one, key or none".
const char *sink_kind_names(char *text, size_t size);

// The tensor `sinks` of a layer, one row or number for each head; count 0: the layer has none.
void sink_tensor_shape(const sinkproof_config *config, size_t *count, size_t *rows, size_t *cols);
// Whether all rows of a head have one logit: then the tensor, if there is one, is a vector.
bool sinkproof_sinks_are_constant(const sinkproof_config *config);

#endif
