// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What takes a share of every row of attention beside its keys: one head's, made of what the model
// stores for it (model/sinks.h has the kinds). A new kind is a row there and, where its logit
// is made of something new, a change of sinkproof_normaliser and of the three that make the logit:
// sinkproof_sink_logits here, sinkproof_truth_sink_logit over the reals,
// sinkproof_honest_sink_logits for the bounds. All else sees a logit a row.
#ifndef SINKPROOF_NORMALISER_H
#define SINKPROOF_NORMALISER_H

#include "model/model.h"
#include "model/sinks.h"

// One head's.
typedef struct sinkproof_normaliser {
    double logit;        // b, of every row; -infinity: none
    const double *key_d; // or NULL; k*, whose score with the row's rotated query is b instead
} sinkproof_normaliser;

// Of head h. work: sinkproof_normaliser_work doubles, which the result may point to.
sinkproof_normaliser sinkproof_normaliser_of(const sinkproof_config *config,
                                             const sinkproof_layer *layer, size_t h, double *work);
size_t sinkproof_normaliser_work(const sinkproof_config *config);

#endif
