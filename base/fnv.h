// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// FNV-1a of 64 bits (Fowler, Noll and Vo): tells bytes apart by chance, and is no protection
// against tampering.
#ifndef SINKPROOF_FNV_H
#define SINKPROOF_FNV_H

#include <stddef.h>
#include <stdint.h>

#define SINKPROOF_FNV_NOTHING UINT64_C(0xcbf29ce484222325) // the hash of no bytes

// The hash of what `hash` is of and n bytes more.
static inline uint64_t sinkproof_fnv(uint64_t hash, const void *bytes, size_t n) {
    const uint8_t *byte = (const uint8_t *)bytes;
    for (size_t i = 0; i < n; i++) hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
