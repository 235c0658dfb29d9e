// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Where the trace has what attention reads in the place of queries, keys or values.
#ifndef SINKPROOF_JUDGE_READ_SOURCE_H
#define SINKPROOF_JUDGE_READ_SOURCE_H

#include "audit/judge/judge_attending.h"
#include "audit/trace/trace.h"

// of: one of the bits of sinkproof_read_as. The numbers of all rows that are read, those before the
// trace's among them; false: the trace has none, or not of as many rows as of the layer itself.
bool sinkproof_read_source(const sinkproof_read_as *read, const sinkproof_config *config,
                           const sinkproof_trace *trace, unsigned of, size_t layer,
                           sinkproof_tensor *source);

#endif
