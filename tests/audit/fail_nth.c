// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Preloaded into a program (LD_PRELOAD, glibc): of the allocations that libsinkproof.so asks for,
// the FAIL_AT-th gets nothing. At the end their number goes to the file FAIL_COUNT.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static long asked, fail_at = -1;
static uintptr_t first, last; // addresses of the library

__attribute__((constructor)) static void find_library(void) {
    char line[1024];
    FILE *maps = fopen("/proc/self/maps", "r");
    if (getenv("FAIL_AT") != NULL) fail_at = atol(getenv("FAIL_AT"));
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        uintptr_t from, to;
        if (strstr(line, "/libsinkproof.so") == NULL) continue;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) != 2) continue;
        if (first == 0) first = from;
        last = to;
    }
    if (maps != NULL) fclose(maps);
}

__attribute__((destructor)) static void tell(void) {
    FILE *out = getenv("FAIL_COUNT") != NULL ? fopen(getenv("FAIL_COUNT"), "w") : NULL;
    if (out == NULL) return;
    fprintf(out, "%ld\n", asked);
    fclose(out);
}

static int fails(void *caller) {
    uintptr_t at = (uintptr_t)caller;
    return at >= first && at < last && __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) == fail_at;
}

void *malloc(size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}
