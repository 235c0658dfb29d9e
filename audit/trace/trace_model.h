// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Compares a trace's metadata with the arguments given beside it: a trace of another model is
// refused unless any model is allowed; a trace that declares another policy than the judge's gets a
// note.
#ifndef SINKPROOF_TRACE_MODEL_H
#define SINKPROOF_TRACE_MODEL_H

#include "audit/trace/trace.h"
#include "ref/policy.h"

// Whether a text is the fingerprint of a model: 16 hexadecimal digits. Any other text under `model`
// (a name, nothing) cannot be compared, and contradicts no model.
bool sinkproof_is_fingerprint(const char *text);

// Whether the metadata of a file name MODEL or no model. The error holds both fingerprints and what
// to do.
bool sinkproof_file_matches_model(const char *name, const sinkproof_safetensors *file,
                                  const sinkproof_model *model, sinkproof_error *error);

// A note for the head of a report when the metadata name another model; "" otherwise. Returns false
// if memory runs out.
typedef struct sinkproof_note {
    char text[1024];
} sinkproof_note;
bool sinkproof_trace_model_note(const sinkproof_trace *trace, const sinkproof_model *model,
                                sinkproof_note *note, sinkproof_error *error);
// A note that the metadata declare another policy than `judged`; "" if they declare the same or
// none.
sinkproof_note sinkproof_declared_note(const char *declared, const sinkproof_policy *judged);

#endif
