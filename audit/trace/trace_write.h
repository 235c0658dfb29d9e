// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writes a trace of the reference, or of any engine in this process: the pieces that the observer
// receives, chunk by chunk, become the tensors of "sinkproof-trace-1".
//
// Each point is stored in the format to which the policy rounds it (binary64 where it does not
// round; M3 as I32). A chunk does not know the keys that come after it: their columns of A6, A9 and
// A10 are zero, like those of masked keys in A9 and A10.
#ifndef SINKPROOF_TRACE_WRITE_H
#define SINKPROOF_TRACE_WRITE_H

#include "audit/trace/trace.h"
#include "ref/forward.h"

// Writes the head of every trace of n tokens: the engine, the model, tokens and positions. `policy`
// may be NULL. The caller declares the tensors of the points after it.
bool trace_declare_head(sinkproof_safetensors_writer *out, const sinkproof_model *model,
                        const char *engine, const char *policy, size_t n, sinkproof_error *error);

typedef struct sinkproof_trace_writer sinkproof_trace_writer;

// A writer for a trace of n tokens at `path`. `points` restricts it: names separated by commas,
// "A9" for every layer, "03.A9" for one, "A4" for A4.q and A4.k; NULL keeps all. Pieces are stored
// in an unnamed file beside `path`; if `path` is NULL, in memory.
bool sinkproof_trace_writer_new(const char *path, const sinkproof_model *model,
                                const sinkproof_policy *policy, const char *engine,
                                const char *points, size_t n, sinkproof_trace_writer **writer,
                                sinkproof_error *error);

// The observer to pass to sinkproof_forward; write errors are reported by finish.
const sinkproof_observer *sinkproof_trace_writer_observer(sinkproof_trace_writer *writer);

// One tensor more, binary64, as it stands: a gradient ("03.dA11"). Errors are reported by finish.
void sinkproof_trace_writer_add(sinkproof_trace_writer *writer, const char *name, size_t rank,
                                const size_t *shape, const double *values);

// What the metadata say of the loss: "cross-entropy", or the points that it reads, separated by
// commas. Returns false for a text that has no room.
bool sinkproof_trace_writer_loss(sinkproof_trace_writer *writer, const char *loss);

// Call it after all n tokens: writes `path`, which does not exist before this returns true.
bool sinkproof_trace_writer_finish(sinkproof_trace_writer *writer, const int32_t *tokens_n,
                                   sinkproof_error *error);
// The same as a trace in memory, for a writer without a path.
bool sinkproof_trace_writer_take(sinkproof_trace_writer *writer, const int32_t *tokens_n,
                                 sinkproof_trace **trace, sinkproof_error *error);
void sinkproof_trace_writer_free(sinkproof_trace_writer *writer);

#endif
