// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What an H200 gave of the backward pass of attention (tests/vectors/gpu/backward.safetensors):
// cases of 33 tokens, 4 query heads on 2 of keys, of size 64.
#ifndef SINKPROOF_TESTS_BACKWARD_FILE_H
#define SINKPROOF_TESTS_BACKWARD_FILE_H

#include "model/safetensors.h"
#include "tests/shared/tap.h"

#include <stdlib.h>

static const char *const FILE_NAME = "tests/vectors/gpu/backward.safetensors";
enum { N = 33, HEADS = 4, GROUPS = 2, DIM = 64 };

// The tensor "which/of/name" as doubles, *n of them; the caller frees them. Ends the test without.
static inline double *backward_numbers(const sinkproof_safetensors *file, const char *which,
                                       const char *of, const char *name, size_t *n) {
    char full[96];
    snprintf(full, sizeof full, "%s/%s/%s", which, of, name);
    const sinkproof_tensor *t = sinkproof_safetensors_find(file, full);
    if (t == NULL) {
        printf("Bail out! %s: no tensor %s\n", FILE_NAME, full);
        exit(1);
    }
    *n = sinkproof_tensor_elements(t);
    double *x = calloc(*n + 1, sizeof *x);
    must(x != NULL);
    for (size_t i = 0; i < *n; i++) x[i] = sinkproof_tensor_value(t, i);
    return x;
}

#endif
