// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "proofs/bounds/abreast.h"

size_t sets_abreast_all(const sets_abreast **of) {
    size_t n = 0;
    (void)of;
#if defined __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        of[n++] = &sets_abreast_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        of[n++] = &sets_abreast_avx512;
#endif
    return n;
}

const sets_abreast *sets_abreast_here(void) {
    const sets_abreast *of[SETS_ABREAST_MOST] = {NULL};
    size_t n = sets_abreast_all(of);
    return n > 0 ? of[n - 1] : NULL;
}
