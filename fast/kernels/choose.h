// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Finds the fastest instruction set of a numeric mode on this machine. All sets of a mode give the
// same bits, so only time matters, and it is measured once with a few small products in some
// milliseconds. Measuring is explicit: sinkproof_isa_choose and the engine's default use only the
// order of the tables. The commands measure, and store the result (audit/command/fastest.h).
#ifndef SINKPROOF_CHOOSE_H
#define SINKPROOF_CHOOSE_H

#include "fast/kernels/kernels.h"

enum {
    SINKPROOF_ISA_SETS = 8,    // most tables
    SINKPROOF_ISA_TOKENS = 48, // tokens of the product that represents prompts
    SINKPROOF_ISA_RANK = 16,   // a set is preferred if it is faster by 1/16
    SINKPROOF_ISA_NAMES = 48,  // bytes of two names
};

// A pass of one token streams weights; a pass of several multiplies them. The faster set may
// differ.
typedef enum sinkproof_isa_use {
    SINKPROOF_ISA_ONE,
    SINKPROOF_ISA_MANY,
    SINKPROOF_ISA_USES
} sinkproof_isa_use;

// Processor seconds of a use's products, in the order of the tables; 0: not measured.
typedef struct sinkproof_isa_times {
    double seconds[SINKPROOF_ISA_SETS][SINKPROOF_ISA_USES];
} sinkproof_isa_times;

// Times every table of the NULL-terminated list that runs here, on the calling thread: a product
// with bf16 weights and one with MXFP4 weights (512 x 1024, in the caches), bf16 operands, for each
// use; in turn, the smallest of several times. A set that takes four times as long for one token as
// a later one of its mode is dropped. Error: no memory.
bool sinkproof_isa_measure(const sinkproof_kernels *const *tables, sinkproof_isa_times *times,
                           sinkproof_error *error);

// The fastest measured table of `mode`: the last, unless an earlier one takes less than 16/17 of
// its time. NULL if none was measured. The result depends only on the arguments.
const sinkproof_kernels *sinkproof_isa_fastest(const sinkproof_kernels *const *tables,
                                               const char *mode, sinkproof_isa_use use,
                                               const sinkproof_isa_times *times);

// "avx512", or "avx512bf16+avx512" if passes of one token run on the first and the others on the
// second. `text` has room for SINKPROOF_ISA_NAMES.
const char *sinkproof_isa_names(const sinkproof_kernels *of_one, const sinkproof_kernels *of_many,
                                char *text);

#endif
