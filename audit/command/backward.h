// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof run --backward`: the loss of the tokens and its gradients.
#ifndef SINKPROOF_COMMAND_BACKWARD_H
#define SINKPROOF_COMMAND_BACKWARD_H

#include "audit/trace/trace_write.h"
#include "model/model.h"
#include "ref/backward/activations.h"

// Whether a run of the engine has a backward pass.
bool backward_allows(const char *engine, sinkproof_error *error);

// What the loss is, in words, and its value; NAN where a file gives its gradients alone.
typedef struct backward_loss {
    double value;
    size_t tokens; // whose next token it reads
} backward_loss;

// The backward pass of the run that `activations` kept, to `writer` unless it is NULL. The loss is
// the cross-entropy of the next tokens, or what the tensors of `file` are the gradients of.
bool backward_run(const sinkproof_model *model, const sinkproof_policy *policy,
                  const sinkproof_activations *activations, const char *file,
                  sinkproof_trace_writer *writer, backward_loss *loss, sinkproof_error *error);

#endif
