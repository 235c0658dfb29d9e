// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Files as bytes: small ones are read whole (JSON), large ones mapped. Every file is written under
// a temporary name until it is complete.
#ifndef SINKPROOF_BYTES_H
#define SINKPROOF_BYTES_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SINKPROOF_MAX_JSON = 100 << 20 }; // most bytes of JSON that are parsed

// A regular file of at most SINKPROOF_MAX_JSON bytes, into malloc'ed memory.
bool sinkproof_read_file(const char *path, uint8_t **bytes, size_t *length, sinkproof_error *error);

// A regular file, mapped read-only; nothing is mapped (bytes NULL) when it is empty.
bool map_file(const char *path, const uint8_t **bytes, size_t *length, sinkproof_error *error);
void unmap_file(const uint8_t *bytes, size_t length);
// Gives back the whole pages of a piece of a mapped file. They are read again when they are used.
void forget_mapped(const uint8_t *bytes, size_t length);

// A file under construction: it is written as `temporary`, beside `path`. What is no regular file,
// a device or a pipe, is written to as it is: temporary NULL.
typedef struct sinkproof_output {
    FILE *stream;
    char *path, *temporary;
} sinkproof_output;

bool sinkproof_output_open(sinkproof_output *output, const char *path, sinkproof_error *error);
// An output in memory: after finish *bytes holds *length bytes, which the caller frees, whatever
// finish returned.
bool sinkproof_output_memory(sinkproof_output *output, char **bytes, size_t *length,
                             sinkproof_error *error);
// Closes and renames; after a failure nothing is left behind.
bool sinkproof_output_finish(sinkproof_output *output, sinkproof_error *error);
// Removes the temporary file if finish was not called; harmless after it.
void sinkproof_output_drop(sinkproof_output *output);

// Makes a directory, or accepts an empty one; *made: whether it was made.
bool create_directory(const char *path, bool *made, sinkproof_error *error);

#endif
