// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Fewer draws: a landing sets FEW=1 where it runs tests of one code again, built by another
// compiler or under sanitizers (.ci/run). What is run there is of the same kinds, and less of each.
#ifndef SINKPROOF_TESTS_FEW_H
#define SINKPROOF_TESTS_FEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static inline bool asks_few(void) {
    const char *said = getenv("FEW");
    return said != NULL && said[0] != '\0';
}

// So many, or under FEW=1 so few.
static inline size_t or_few(size_t all, size_t few) {
    return asks_few() ? few : all;
}

#endif
