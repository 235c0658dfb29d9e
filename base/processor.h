// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Whether this processor runs the files *_avx2.c and *_avx512.c of proofs/: it has the sets that
// the Makefile compiles them for (SET_avx2, SET_avx512), but for f16c, which none of these files
// uses.
#ifndef SINKPROOF_PROCESSOR_H
#define SINKPROOF_PROCESSOR_H

#include <stdbool.h>

static inline bool sinkproof_processor_runs_avx2(void) {
#if defined __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static inline bool sinkproof_processor_runs_avx512(void) {
#if defined __x86_64__
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
#else
    return false;
#endif
}

#endif
