// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What takes a share of every row of attention beside its keys. The model's configuration says of
// which kind it is ("attention_sink"); a table says of each kind what a layer stores for it, in its
// tensor `sinks`, and what one head's rows then take. A new kind is a row of that table and, where
// its logit is made of something new, of sinkproof_normaliser and of the three that make the logit:
// sinkproof_sink_logits here, sinkproof_truth_sink_logit over the reals,
// sinkproof_honest_sink_logit for the bounds. All else sees a logit a row.
#ifndef SINKPROOF_NORMALISER_H
#define SINKPROOF_NORMALISER_H

#include "ref/model/model.h"

// One head's.
typedef struct sinkproof_normaliser {
    double logit;        // b, of every row; -infinity: none
    const double *key_d; // or NULL; k*, whose score with the row's rotated query is b instead
} sinkproof_normaliser;

// A kind's name. 0 is "logit", what every published checkpoint has.
const char *sinkproof_normaliser_name(size_t kind);
bool sinkproof_normaliser_named(const char *name, size_t *kind); // false: no such kind
// All names, for an error's sentence: "logit, off-by-one or key".
const char *sinkproof_normaliser_names(char *text, size_t size);

// The tensor `sinks` of a layer, one row or number for each head; count 0: the layer has none.
void sinkproof_normaliser_shape(const sinkproof_config *config, size_t *count, size_t *rows,
                                size_t *cols);
// Whether all rows of a head have one logit: then the tensor, if there is one, is a vector.
bool sinkproof_normaliser_is_constant(const sinkproof_config *config);

// Of head h. work: sinkproof_normaliser_work doubles, which the result may point to.
sinkproof_normaliser sinkproof_normaliser_of(const sinkproof_config *config,
                                             const sinkproof_layer *layer, size_t h, double *work);
size_t sinkproof_normaliser_work(const sinkproof_config *config);

#endif
