// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Files as bytes: small ones read whole (JSON), large ones mapped; and the one way in which
// a file is written, under a temporary name until it is complete.
#ifndef SINKPROOF_BYTES_H
#define SINKPROOF_BYTES_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SINKPROOF_MAX_JSON = 100 << 20 }; // bytes of JSON that are ever parsed

// A regular file of at most SINKPROOF_MAX_JSON bytes, into malloc'ed memory.
bool sinkproof_read_file(const char *path, uint8_t **bytes, size_t *length, sinkproof_error *error);

// A regular file, mapped read-only; nothing is mapped (bytes NULL) when it is empty.
bool sinkproof_map_file(const char *path, const uint8_t **bytes, size_t *length,
                        sinkproof_error *error);
void sinkproof_unmap_file(const uint8_t *bytes, size_t length);

// A file under construction: written as `temporary`, which lies beside `path`.
typedef struct sinkproof_output {
    FILE *stream;
    char *path, *temporary;
} sinkproof_output;

bool sinkproof_output_open(sinkproof_output *output, const char *path, sinkproof_error *error);
// One in memory: after finish *bytes holds *length bytes, to be freed, whatever it returned.
bool sinkproof_output_memory(sinkproof_output *output, char **bytes, size_t *length,
                             sinkproof_error *error);
// Closes and renames; on failure nothing is left behind.
bool sinkproof_output_finish(sinkproof_output *output, sinkproof_error *error);
// Removes the temporary file when finish was not reached; harmless after it.
void sinkproof_output_drop(sinkproof_output *output);

#endif
