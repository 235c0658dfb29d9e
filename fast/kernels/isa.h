// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The instruction sets of this machine (CPUID, XGETBV, and for AMX the kernel's permission), and
// the choice of one. No other code queries the processor.
#ifndef SINKPROOF_ISA_H
#define SINKPROOF_ISA_H

#include "fast/kernels/kernels.h"

// Every table that this build contains, slowest first, NULL-terminated: portable, avx2, avx512,
// avx512bf16, amx on x86-64; portable, neon on aarch64.
const sinkproof_kernels *const *sinkproof_isa_all(void);

// Whether this machine can run it; if not, the reason ("the processor lacks AVX512_BF16").
bool sinkproof_isa_runs(const sinkproof_kernels *kernels, const char **why);

// The table named `name`; NULL: the environment's SINKPROOF_ISA, and without it the fastest of mode
// "lanes" that runs here. An unknown or unsupported name is an error that lists the available ones.
const sinkproof_kernels *sinkproof_isa_choose(const char *name, sinkproof_error *error);

// The processor's own name, such as "AMD EPYC ..."; "unknown" if it has none.
const char *sinkproof_isa_processor(void);

#endif
