// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Anonymous mappings. Nothing is ever grown or moved: lazily reserved memory costs nothing until it
// is written, so that a cache is reserved in its full length.
#include "fast/engine/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, LARGE = LARGE_PAGE };

static size_t round_up_to(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// A mapping that begins at a multiple of LARGE: more is mapped, and the excess is unmapped.
static uint8_t *map_aligned(size_t bytes, int flags) {
    uint8_t *all = mmap(NULL, bytes + LARGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (all == MAP_FAILED) return MAP_FAILED;
    size_t ahead = (LARGE - (uintptr_t)all % LARGE) % LARGE;
    if (ahead > 0) munmap(all, ahead);
    munmap(all + ahead + bytes, LARGE - ahead);
    return all + ahead;
}

void pages_advise(uint8_t *data, size_t bytes, bool now) {
    madvise(data, bytes, MADV_HUGEPAGE); // only advice: small pages give the same numbers
#if defined(MADV_COLLAPSE)
    if (now) madvise(data, bytes, MADV_COLLAPSE);
#else
    enum { COLLAPSE = 25 }; // Linux 6.1; older kernels refuse it
    if (now) madvise(data, bytes, COLLAPSE);
#endif
}

bool sinkproof_pages_new(size_t bytes, page_use paging, const char *what, sinkproof_pages *pages,
                         sinkproof_error *error) {
    *pages = (sinkproof_pages){NULL, 0};
    if (bytes == 0) return true;
    if (bytes > SIZE_MAX / 4) return sinkproof_fail(error, "no memory for %s: too large", what);
    bool large = bytes >= LARGE, lazy = paging == SINKPROOF_LAZY_PAGES;
    size_t whole = round_up_to(bytes, large ? LARGE : PAGE);
    int flags = lazy ? MAP_NORESERVE : 0;
    uint8_t *data = large ? map_aligned(whole, flags)
                          : mmap(NULL, whole, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (data == MAP_FAILED)
        return sinkproof_fail(error, "no memory for %s: %zu MiB: %s", what, whole >> 20,
                              strerror(errno));
    if (large && !lazy) pages_advise(data, whole, false);
    *pages = (sinkproof_pages){data, whole};
    return true;
}

void sinkproof_pages_free(sinkproof_pages *pages) {
    if (pages->data != NULL) munmap(pages->data, pages->bytes);
    *pages = (sinkproof_pages){NULL, 0};
}
