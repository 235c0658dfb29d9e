// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Keys and values of the tokens before sequences that begin later, where the trace names these
// tokens (`prefix`): their sets, computed from the tokens through all layers as if nothing of them
// were traced.
#ifndef SINKPROOF_JUDGE_PREFIX_H
#define SINKPROOF_JUDGE_PREFIX_H

#include "audit/judge/judge_internal.h"

struct judge_prefix {
    size_t n, n_layers;
    sinkproof_honest **of; // [n_layers][2]: keys, values [n, kv_heads, head_dim]
};

judge_prefix *prefix_new(size_t n, size_t n_layers); // NULL without memory
void prefix_free(judge_prefix *prefix);
// Keeps the sets of a point of the walk, if it is one of keys or values, and if all are bounded: an
// unbounded one would leave rows undecided that do not read it.
bool prefix_keep(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                 const sinkproof_honest *x);
// The kept sets; NULL: none.
const sinkproof_honest *sinkproof_prefix_sets(const judge_prefix *prefix,
                                              const sinkproof_config *config,
                                              sinkproof_trace_point point, size_t layer);
// A trace of the tokens that are named alone, sequence by sequence, and what is to be computed of
// it.
sinkproof_trace *prefix_trace(const sinkproof_model *model, const sinkproof_trace *trace,
                              const sinkproof_policy *policy, sinkproof_stretch *stretch,
                              sinkproof_error *error);

#endif
