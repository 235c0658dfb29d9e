// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The metadata `calls`: how many tokens of a sequence came in each call of the engine. "16,16,12"
// are three calls, "36,8x1" nine; the lists of several sequences are separated by semicolons.
// Private to audit/trace/.
#ifndef SINKPROOF_TRACE_CALLS_H
#define SINKPROOF_TRACE_CALLS_H

#include "audit/trace/trace_sequences.h"

// Reads s->calls_n of sequences that are known; said NULL: none.
bool calls_read(const char *name, const char *said, trace_sequences *s, sinkproof_error *error);

// Writes the list of the rows [row, row + rows) as text; false: no room.
bool calls_write(const uint8_t *begins_n, size_t row, size_t rows, char *text, size_t size);

#endif
