// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How much memory this process holds, for tests that ask whether something is left behind.
#ifndef SINKPROOF_TESTS_RESIDENT_H
#define SINKPROOF_TESTS_RESIDENT_H

#include <stddef.h>
#include <stdio.h>

#ifdef __SANITIZE_ADDRESS__
// The sanitizer holds back what was freed, 256 MB of it unless it is told: memory that nobody lost.
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
