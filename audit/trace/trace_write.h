// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writing a trace of the reference (or of any engine in this process): the observer's pieces,
// chunk by chunk, become the tensors of "sinkproof-trace-1".
//
// Each point is stored in the format that the policy states there (binary64 where it states
// none; M3 as I32). A chunk does not know the keys that come after it: their columns of A6, A9
// and A10 are zero, as those of masked keys are in A9 and A10.
#ifndef SINKPROOF_TRACE_WRITE_H
#define SINKPROOF_TRACE_WRITE_H

#include "audit/trace/trace.h"
#include "ref/forward.h"

// What every trace of n tokens opens with: who made it of which model, tokens and positions. A
// policy may be NULL. The tensors of the points are declared after it.
bool sinkproof_trace_declare_head(sinkproof_safetensors_writer *out, const sinkproof_model *model,
                                  const char *engine, const char *policy, size_t n,
                                  sinkproof_error *error);

typedef struct sinkproof_trace_writer sinkproof_trace_writer;

// A trace of n tokens for `path`. `points` restricts it: names separated by commas, "A9" for
// every layer, "03.A9" for one, "A4" for A4.q and A4.k; NULL keeps all. Pieces wait in an
// unnamed file beside `path`, not in memory; without a path (NULL) in memory.
bool sinkproof_trace_writer_new(const char *path, const sinkproof_model *model,
                                const sinkproof_policy *policy, const char *engine,
                                const char *points, size_t n, sinkproof_trace_writer **writer,
                                sinkproof_error *error);

// Collects what sinkproof_forward shows; write errors surface in finish.
const sinkproof_observer *sinkproof_trace_writer_observer(sinkproof_trace_writer *writer);

// All n tokens went through: writes `path`. Nothing is there before this returns true.
bool sinkproof_trace_writer_finish(sinkproof_trace_writer *writer, const int32_t *tokens_n,
                                   sinkproof_error *error);
// The same as a trace in memory, of a writer without a path.
bool sinkproof_trace_writer_take(sinkproof_trace_writer *writer, const int32_t *tokens_n,
                                 sinkproof_trace **trace, sinkproof_error *error);
void sinkproof_trace_writer_free(sinkproof_trace_writer *writer);

#endif
