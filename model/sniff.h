// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Recognises a file of the wrong kind by its first bytes, for errors only.
#ifndef SINKPROOF_SNIFF_H
#define SINKPROOF_SNIFF_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

// "a zip archive (NumPy's .npz, torch.save)"; NULL: unknown.
const char *sniff_format(const uint8_t *bytes, size_t length);

// The error about a file without a whole safetensors header: its actual kind, or that it is cut
// short. Returns false.
bool sniff_header(const uint8_t *bytes, size_t length, const char *name, sinkproof_error *error);

// Whether `spec` is a directory, as most containers are; the error names its actual kind, and what
// a MODEL is.
bool sniff_directory(const char *spec, sinkproof_error *error);

#endif
