// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Code for the vectors of several processors. The order of every sum is the same, and so are the
// bits.
#ifndef SINKPROOF_BOUNDS_PROCESSORS_H
#define SINKPROOF_BOUNDS_PROCESSORS_H

#include <stdbool.h>

// Whether this processor runs the files *_avx2.c and *_avx512.c: it has the sets that the Makefile
// compiles them for (SET_avx2, SET_avx512), but for f16c, which none of these files uses.
static inline bool processor_runs_avx2(void) {
#if defined __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static inline bool processor_runs_avx512(void) {
#if defined __x86_64__
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
#else
    return false;
#endif
}

// A function with this mark is compiled several times; the program's loader chooses one.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#endif
