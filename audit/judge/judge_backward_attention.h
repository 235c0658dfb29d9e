// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention's row going back, apart from any trace: sets from arrays of sets.
#ifndef SINKPROOF_JUDGE_BACKWARD_ATTENTION_H
#define SINKPROOF_JUDGE_BACKWARD_ATTENTION_H

#include "audit/judge/judge_backward_meaning.h"
#include "proofs/bounds/gradient_sums.h"

// What attention goes back from. Of n rows, `heads` query heads over `groups` of keys and values of
// `dim` coordinates. Arrays are [n, heads, dim] or [n, groups, dim], and by head [heads, n, n] or
// [heads, n, n + 1]; NULL: not known.
typedef struct sinkproof_backward_inputs {
    const sinkproof_policy *policy;
    const sinkproof_gradient_arithmetic *arithmetic;
    const sinkproof_backward_meaning *meaning;
    size_t n, heads, groups, dim, window; // window 0: none
    const size_t *begins_n;               // the first row of each row's sequence; NULL: row 0
    double rate;
    const sinkproof_near *q, *k, *v, *out, *dout;
    const sinkproof_near *scores;         // of [heads, n, n]
    const sinkproof_near *weights;        // [heads, n, n + 1], as they were stored
    const sinkproof_near *dweights;       // [heads, n, dweights_row]
    const sinkproof_near *dscores;        // [heads, n, n]
    size_t dweights_row;                  // n, or n + 1
    const double *sink_h;                 // logits; -infinity: none
    const double *dlse_hn, *dlse_keys_hn; // NULL: the loss does not read it
} sinkproof_backward_inputs;

// What is asked for; NULL: not. Filled with sets; of masked keys 0.
typedef struct sinkproof_backward_outputs {
    sinkproof_near *dweights, *dscores; // [heads, n, n]
    sinkproof_near *dq, *dk, *dv;
    sinkproof_near *dsink_hn; // the share of each row
    sinkproof_near *dsink_h;
} sinkproof_backward_outputs;

// What one of the outputs needs and the inputs lack: "A4.q" and the like, or NULL.
const char *attention_back_lacks(const sinkproof_backward_inputs *in,
                                 const sinkproof_backward_outputs *out);

// Returns false if memory runs out.
bool attention_back(const sinkproof_backward_inputs *in, const sinkproof_backward_outputs *out);

#endif
