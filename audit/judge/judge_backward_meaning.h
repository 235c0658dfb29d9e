// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A backward pass as it may be meant: a known mistake alters one part of it. All members zero are
// the definition, but for `times`.
#ifndef SINKPROOF_JUDGE_BACKWARD_MEANING_H
#define SINKPROOF_JUDGE_BACKWARD_MEANING_H

#include <stdbool.h>
#include <stddef.h>

// Which rows add to a sink's gradient, and which heads.
typedef enum sinkproof_sink_added {
    SINKPROOF_SINK_ALL_ROWS,
    SINKPROOF_SINK_LAST_ROWS, // the last block of `rows` queries, which may be cut short
    SINKPROOF_SINK_GROUP,     // every head has the sum over the heads of its group
    SINKPROOF_SINK_OF_LAYER   // that of another layer
} sinkproof_sink_added;

typedef enum sinkproof_lse_read {
    SINKPROOF_LSE_OWN,
    SINKPROOF_LSE_WITHOUT_SINK, // the weights are recomputed without the sink
    SINKPROOF_LSE_OF_ROW,       // of the row before
    SINKPROOF_LSE_OF_HEAD       // of the next head, in a circle
} sinkproof_lse_read;

typedef struct sinkproof_backward_meaning {
    double times; // 1: a factor of the gradient
    bool no_dlse, renormalised_delta, no_window, no_mask;
    bool delta_of_output; // with altered weights: D is <dO, O>, else a sum over the keys
    bool sink_in_base_2;  // its logit times log2(e), rounded to the narrow format
    sinkproof_lse_read lse;
    sinkproof_sink_added added;
    size_t rows, layer;   // of `added`
    size_t head_of_group; // of keys and values 1 + the one head that is counted; 0: all
    bool bias_of_ones;    // the values' bias has 1 in the place of 1 - alpha_s
} sinkproof_backward_meaning;

extern const sinkproof_backward_meaning backward_as_defined;

#endif
