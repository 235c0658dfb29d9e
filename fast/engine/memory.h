// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Memory in whole pages, zero when it comes: weights and activations in large pages, so that a
// stream over gigabytes seldom waits for an address; caches as addresses that turn into memory page
// by page.
#ifndef SINKPROOF_MEMORY_H
#define SINKPROOF_MEMORY_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sinkproof_pages {
    uint8_t *data; // NULL: none
    size_t bytes;  // mapped
} sinkproof_pages;

typedef enum sinkproof_paging {
    SINKPROOF_LARGE_PAGES, // large pages where the system has them
    SINKPROOF_LAZY_PAGES,  // only addresses are reserved: a page is taken when it is first written
} sinkproof_paging;

enum { SINKPROOF_LARGE_PAGE = 2 << 20 }; // bytes; such a mapping begins at a multiple of it

// At least `bytes` zero bytes; from 2 MiB on they begin at a multiple of that. `what` stands in the
// error sentence. 0 bytes: none.
bool sinkproof_pages_new(size_t bytes, sinkproof_paging paging, const char *what,
                         sinkproof_pages *pages, sinkproof_error *error);
// Advises large pages where nothing is written yet, from `data` to `data + bytes`, both multiples
// of 2 MiB; `now`: also where something is, by moving it. The contents stay, and advice may be
// ignored.
void sinkproof_pages_advise(uint8_t *data, size_t bytes, bool now);
void sinkproof_pages_free(sinkproof_pages *pages);

#endif
