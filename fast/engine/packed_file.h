// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Packed weights in a file, so that they are packed once: a header page (the kind of file, the
// model, the number of bytes), then the weights as in memory. An opened file is a mapping that is
// read page by page and shared by several processes. Only its header, its model's fingerprint and
// its length are checked, but no value of its weights makes a reader leave its bounds.
#ifndef SINKPROOF_PACKED_FILE_H
#define SINKPROOF_PACKED_FILE_H

#include "fast/engine/memory.h"

// Maps the file's weights. If there is no such file, *found is false and nothing else happens.
// Errors: not packed weights, another model's, another length, unreadable.
bool packed_file_open(const char *path, uint64_t fingerprint, size_t bytes, bool *found,
                      sinkproof_pages *pages, sinkproof_error *error);

// Writes the file completely or not at all.
bool packed_file_write(const char *path, uint64_t fingerprint, const sinkproof_pages *pages,
                       size_t bytes, sinkproof_error *error);

#endif
