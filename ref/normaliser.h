// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sink of every row of attention: one head's, from the numbers that the model stores for it
// (model/sinks.h has the kinds). A new kind is a row there and, if its logit depends on something
// new, a change of sinkproof_normaliser and of the three functions that compute the logit:
// sinkproof_sink_logits here, truth_sink_logit over the reals,
// sinkproof_honest_sink_logits for the bounds. All other code gets one logit per row.
#ifndef SINKPROOF_NORMALISER_H
#define SINKPROOF_NORMALISER_H

#include "model/model.h"
#include "model/sinks.h"

// One head's.
typedef struct sinkproof_normaliser {
    double logit;        // b in every row; -infinity: no sink
    const double *key_d; // if not NULL, b is the score of this key k* with the row's rotated query
} sinkproof_normaliser;

// The normaliser of head h. work: sinkproof_normaliser_work doubles, which the result may point to.
sinkproof_normaliser sinkproof_head_normaliser(const sinkproof_config *config,
                                               const sinkproof_layer *layer, size_t h,
                                               double *work);
size_t sinkproof_normaliser_work(const sinkproof_config *config);

#endif
