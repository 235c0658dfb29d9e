// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One sequence of a trace of several, as a trace of its own.
#ifndef SINKPROOF_TRACE_ALONE_H
#define SINKPROOF_TRACE_ALONE_H

#include "audit/trace/trace.h"

// Copies the rows, the keys and the named prefix of a sequence; the caller closes *alone, whose
// path says which it is. Scores and weights of a layer are left out where the cache of the sequence
// lacks positions, which would have no column; gradients are, since those of weights are sums over
// all sequences.
bool sinkproof_trace_alone(const sinkproof_trace *trace, const sinkproof_config *config,
                           size_t number, sinkproof_trace **alone, sinkproof_error *error);

#endif
