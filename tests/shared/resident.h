// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The memory that this process holds, for tests of leaks.
#ifndef SINKPROOF_TESTS_RESIDENT_H
#define SINKPROOF_TESTS_RESIDENT_H

#include <stddef.h>
#include <stdio.h>

#ifdef SINKPROOF_WATCHED
// By default the sanitizer keeps up to 256 MB of freed memory, which is not a leak.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "quarantine_size_mb=1";
}
#endif

// Resident pages.
static size_t resident(void) {
    size_t total = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu %zu", &total, &pages) != 2) pages = 0;
    if (file != NULL) fclose(file);
    return pages;
}

#endif
