// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A function with this mark is compiled for the vectors of several processors; the program's loader
// chooses one. The order of every sum is the same, and so are the bits.
#ifndef SINKPROOF_BOUNDS_PROCESSORS_H
#define SINKPROOF_BOUNDS_PROCESSORS_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#endif
