// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// UNROLL(n) before a loop of at most n turns: it becomes its body so many times, and what it
// indexes lies in registers. Each compiler has words of its own for that, and passes over the
// other's. A build that a sanitizer watches keeps its loops: to watch every copy takes minutes a
// file.
#ifndef SINKPROOF_FAST_UNROLL_H
#define SINKPROOF_FAST_UNROLL_H

#if defined(SINKPROOF_WATCHED)
#define UNROLL(n)
#elif defined(__clang__)
#define UNROLL(n) _Pragma("clang loop unroll(full)")
#else
#define UNROLL_SAID(words) _Pragma(#words)
#define UNROLL(n)          UNROLL_SAID(GCC unroll n)
#endif

#endif
