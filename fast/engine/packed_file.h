// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Packed weights kept in a file, so that packing happens once: a page of header (what it is, which
// model's, how many bytes), then the weights as they lie in memory. Opened, it is a mapping that is
// read page by page and that several processes share. It is trusted as far as its header, its
// model's fingerprint and its length go; whatever numbers it holds, no reader goes astray over
// them.
#ifndef SINKPROOF_PACKED_FILE_H
#define SINKPROOF_PACKED_FILE_H

#include "fast/engine/memory.h"

// Maps the file's weights. *found is false, and nothing else happens, when there is no such file.
// Errors: not packed weights, another model's, another length, unreadable.
bool sinkproof_packed_open(const char *path, uint64_t fingerprint, size_t bytes, bool *found,
                           sinkproof_pages *pages, sinkproof_error *error);

// Writes it, whole or not at all.
bool sinkproof_packed_write(const char *path, uint64_t fingerprint, const sinkproof_pages *pages,
                            size_t bytes, sinkproof_error *error);

#endif
