// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a trace's metadata say, beside what is given with it: another model than MODEL is refused
// unless any will do; another policy than the one it is judged under is told.
#ifndef SINKPROOF_TRACE_MODEL_H
#define SINKPROOF_TRACE_MODEL_H

#include "audit/trace/trace.h"
#include "ref/policy.h"

// Whether a text is the fingerprint of a model: 16 hexadecimal digits. Anything else under `model`
// (a name, nothing) names no model that could be compared, and contradicts none.
bool sinkproof_is_fingerprint(const char *text);

// Whether the metadata of a file name MODEL or none. The error has both fingerprints and what to
// do.
bool sinkproof_file_is_of(const char *name, const sinkproof_safetensors *file,
                          const sinkproof_model *model, sinkproof_error *error);

// What is to be told at the head of whatever is said of a trace beside a model: that the metadata
// name another one. "" otherwise. False: no memory for a row.
typedef struct sinkproof_note {
    char text[1024];
} sinkproof_note;
bool sinkproof_trace_model_note(const sinkproof_trace *trace, const sinkproof_model *model,
                                sinkproof_note *note, sinkproof_error *error);
// That the metadata declare another policy than `judged`; "" where they declare the same or none.
sinkproof_note sinkproof_declared_note(const char *declared, const sinkproof_policy *judged);

#endif
