// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Memory for numbers.
#ifndef SINKPROOF_BOUNDS_DOUBLES_H
#define SINKPROOF_BOUNDS_DOUBLES_H

#include <stdlib.h>

// n numbers, for the caller to free; or NULL, for want of memory alone.
static inline double *allocate_doubles(size_t n) {
    return malloc((n > 0 ? n : 1) * sizeof(double));
}

#endif
