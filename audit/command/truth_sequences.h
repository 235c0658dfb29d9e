// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sequences of the trace of `truth --local` and `--route`, each a prompt of its own.
#ifndef SINKPROOF_TRUTH_SEQUENCES_H
#define SINKPROOF_TRUTH_SEQUENCES_H

#include "audit/command/inputs.h"
#include "audit/trace/trace.h"

// Of a trace of several sequences: *sequences has them, and prompts their names; else NULL, and no
// prompt. `alone`: the command takes one sequence only. All have to begin at position 0. What is
// open is closed in any case.
bool truth_sequences_open(const sinkproof_trace *trace, const sinkproof_config *config, bool alone,
                          sinkproof_trace ***sequences, input_list *prompts,
                          sinkproof_error *error);
void truth_sequences_close(const sinkproof_trace *trace, sinkproof_trace **sequences);

#endif
