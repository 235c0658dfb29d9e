// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// UNROLL(n) before a loop of at most n iterations unrolls it completely, so that the arrays that it
// indexes stay in registers. Each compiler has its own pragma and ignores the other's. Sanitizer
// builds keep their loops, since instrumenting every copy takes minutes per file.
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
