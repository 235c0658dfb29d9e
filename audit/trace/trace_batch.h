// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A padded batch in a trace's file: tokens [b, n] and an attention_mask [b, n] beside them.
#ifndef SINKPROOF_TRACE_BATCH_H
#define SINKPROOF_TRACE_BATCH_H

#include "audit/trace/trace.h"

bool holds_batch(const sinkproof_safetensors *file);

// Writes the batch without its padding, as sequences end to end (cu_seqlens), into *bytes, which
// the caller frees.
bool batch_pack(const char *name, const sinkproof_safetensors *file, const sinkproof_config *config,
                char **bytes, size_t *length, sinkproof_error *error);

#endif
