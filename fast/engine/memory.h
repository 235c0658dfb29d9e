// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Memory in whole pages, initially zero: weights and activations in large pages, so that a stream
// over gigabytes seldom misses the TLB; caches as reserved addresses whose pages are allocated when
// they are first written.
#ifndef SINKPROOF_MEMORY_H
#define SINKPROOF_MEMORY_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sinkproof_pages {
    uint8_t *data; // NULL: none
    size_t bytes;  // mapped
} sinkproof_pages;

typedef enum page_use {
    SINKPROOF_LARGE_PAGES, // large pages where the system has them
    SINKPROOF_LAZY_PAGES,  // only addresses are reserved: a page is allocated on its first write
} page_use;

enum { LARGE_PAGE = 2 << 20 }; // bytes; the alignment of such a mapping

// At least `bytes` zero bytes; mappings of at least 2 MiB are aligned to that. `what` is used in
// the error. 0 bytes: no mapping.
bool sinkproof_pages_new(size_t bytes, page_use paging, const char *what, sinkproof_pages *pages,
                         sinkproof_error *error);
// Advises large pages from `data` to `data + bytes`, both multiples of 2 MiB, where nothing is
// written yet; `now`: also where something is, by moving it. The contents stay, and the system may
// ignore the advice.
void pages_advise(uint8_t *data, size_t bytes, bool now);
void sinkproof_pages_free(sinkproof_pages *pages);

#endif
