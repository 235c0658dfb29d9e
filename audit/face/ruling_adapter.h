// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The model of a trial whose engine has a low-rank adapter beside its weights.
#ifndef SINKPROOF_RULING_ADAPTER_H
#define SINKPROOF_RULING_ADAPTER_H

#include "audit/trace/trace.h"
#include "model/adapter.h"

typedef struct ruled_adapter {
    sinkproof_adapter *adapter; // NULL: there is none
    sinkproof_model *view;      // the model with it
    char said[512];             // a sentence
} ruled_adapter;

// Opens an adapter's directory for a model; refuses a trace with gradients. Closed by the caller,
// also on failure.
bool ruled_adapter_open(const char *directory, const sinkproof_model *model,
                        const sinkproof_trace *trace, ruled_adapter *opened,
                        sinkproof_error *error);
// Whether no adapter is missing: one that the trace's metadata say was beside the weights.
bool ruled_adapter_is_given(const sinkproof_trace *trace, sinkproof_error *error);
void ruled_adapter_close(ruled_adapter *opened);

#endif
