// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How the matrix unit of a GPU adds up (bound.tensor-core). A sum takes a block of products at a
// time. With e the largest exponent among the block's products and the sum so far, each of these
// numbers is cut, toward zero, to a multiple of 2^(e - bits); what is left is added exactly, and
// the result is cut to float32, or to `bits` fraction bits if these are fewer. Nothing is rounded
// to nearest. The exponent of a product is the sum of its factors' exponents: its size may be
// almost 2^(e + 2).
//
// "tensor-core(25,16)": 25 bits, blocks of 16, and as many partial sums as an engine likes, which
// float32 adds up. "tensor-core(25,16,4)": four at most. The reference has one.
//
// Source: arXiv 2511.10909 (ten GPUs), 2512.07004; measured on an H200 (doc/13-every-bound.md).
#ifndef SINKPROOF_TENSOR_CORE_H
#define SINKPROOF_TENSOR_CORE_H

#include "ref/policy.h"

enum { SINKPROOF_CORE_BITS = 40, SINKPROOF_CORE_BLOCK = 64 }; // the most that a policy may state

// The units of known GPUs for operands of 16 bits: "hopper" is tensor-core(25,16). NULL ends it.
typedef struct sinkproof_core_name {
    const char *name;
    unsigned char bits, block;
} sinkproof_core_name;
extern const sinkproof_core_name core_names[];

// The sum after n <= SINKPROOF_CORE_BLOCK products a_k b_(k stride), k < n. Operands have 26
// significant bits at most: their products are exact in binary64.
double sinkproof_core_add(sinkproof_rounding core, double sum, size_t n, const double *a_k,
                          const double *b_k, size_t stride);

#endif
