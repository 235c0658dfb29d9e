// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks of one tensor of a trace; `file` is its path, for errors. Private to audit/trace/.
#ifndef SINKPROOF_TRACE_CHECKS_H
#define SINKPROOF_TRACE_CHECKS_H

#include "model/config.h"
#include "model/safetensors.h"

// Whether it is NAME.radius beside a tensor NAME, of a trace of the truth (truth_file.h).
bool trace_is_radius(const sinkproof_safetensors *file, const sinkproof_tensor *tensor);

// "[3, 64]"
void trace_print_shape(size_t rank, const size_t *shape, char *text, size_t size);
bool trace_check_shape(const char *file, const sinkproof_tensor *tensor, size_t rank,
                       const size_t *shape, sinkproof_error *error);
// Whether it has integers, or else floating-point numbers.
bool trace_check_dtype(const char *file, const sinkproof_tensor *tensor, bool integer,
                       sinkproof_error *error);
// Element i of a tensor of integers, I32 or I64.
int64_t trace_index_at(const sinkproof_tensor *tensor, size_t i);
// Whether every integer is in [0, limit).
bool trace_check_range(const char *file, const sinkproof_tensor *tensor, size_t limit,
                       sinkproof_error *error);
// Whether each token's chosen experts are distinct.
bool trace_check_chosen(const char *file, const sinkproof_config *config,
                        const sinkproof_tensor *tensor, sinkproof_error *error);

#endif
