// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a file is that is not what was asked for, by its first bytes: for error sentences only.
#ifndef SINKPROOF_SNIFF_H
#define SINKPROOF_SNIFF_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

// "a zip archive (NumPy's .npz, torch.save)"; NULL: nothing that is known.
const char *sinkproof_sniff(const uint8_t *bytes, size_t length);

// The error of a file without a whole header of safetensors: what it is instead, or that it is cut
// short. Returns false.
bool sinkproof_sniff_header(const uint8_t *bytes, size_t length, const char *name,
                            sinkproof_error *error);

// Whether `spec` is a directory, as most containers are; the error says what it is instead, and
// what a MODEL is.
bool sinkproof_sniff_directory(const char *spec, sinkproof_error *error);

#endif
