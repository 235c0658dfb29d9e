// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Anonymous mappings. Nothing is ever grown or moved: what is reserved lazily costs nothing until
// it is written, so that a cache begins as long as it may become.
#include "fast/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, LARGE = 2 << 20 };

static size_t up_to(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// A mapping that begins at a multiple of LARGE: more is mapped, and what lies outside is given
// back.
static uint8_t *map_large(size_t bytes) {
    uint8_t *all =
        mmap(NULL, bytes + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return MAP_FAILED;
    size_t ahead = (LARGE - (uintptr_t)all % LARGE) % LARGE;
    if (ahead > 0) munmap(all, ahead);
    munmap(all + ahead + bytes, LARGE - ahead);
    madvise(all + ahead, bytes, MADV_HUGEPAGE); // advice only: small pages give the same numbers
    return all + ahead;
}

static uint8_t *map_lazily(size_t bytes) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
}

bool sinkproof_pages_new(size_t bytes, sinkproof_paging paging, const char *what,
                         sinkproof_pages *pages, sinkproof_error *error) {
    *pages = (sinkproof_pages){NULL, 0};
    if (bytes == 0) return true;
    if (bytes > SIZE_MAX / 4) return sinkproof_fail(error, "no memory for %s: too large", what);
    size_t whole = up_to(bytes, paging == SINKPROOF_LARGE_PAGES && bytes >= LARGE ? LARGE : PAGE);
    uint8_t *data =
        paging == SINKPROOF_LARGE_PAGES && bytes >= LARGE ? map_large(whole) : map_lazily(whole);
    if (data == MAP_FAILED)
        return sinkproof_fail(error, "no memory for %s: %zu MiB: %s", what, whole >> 20,
                              strerror(errno));
    *pages = (sinkproof_pages){data, whole};
    return true;
}

void sinkproof_pages_free(sinkproof_pages *pages) {
    if (pages->data != NULL) munmap(pages->data, pages->bytes);
    *pages = (sinkproof_pages){NULL, 0};
}
