// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "proofs/bounds/abreast.h"

#include "base/processor.h"

size_t sets_abreast_all(const sets_abreast **of) {
    size_t n = 0;
    (void)of;
#if defined __x86_64__ // elsewhere the two are not compiled
    if (sinkproof_processor_runs_avx2()) of[n++] = &sets_abreast_avx2;
    if (sinkproof_processor_runs_avx512()) of[n++] = &sets_abreast_avx512;
#endif
    return n;
}

const sets_abreast *sets_abreast_here(void) {
    const sets_abreast *of[SETS_ABREAST_MOST] = {NULL};
    size_t n = sets_abreast_all(of);
    return n > 0 ? of[n - 1] : NULL;
}
