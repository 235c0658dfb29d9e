// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Where the trace has what attention reads in the place of queries, keys or values.
#ifndef SINKPROOF_JUDGE_READ_SOURCE_H
#define SINKPROOF_JUDGE_READ_SOURCE_H

#include "audit/judge/judge_attending.h"
#include "audit/trace/trace.h"

// of: one of the bits of sinkproof_read_as. NULL: the trace has none, or begins after position 0.
const sinkproof_tensor *sinkproof_read_source(const sinkproof_read_as *read,
                                              const sinkproof_config *config,
                                              const sinkproof_trace *trace, unsigned of,
                                              size_t layer);

#endif
