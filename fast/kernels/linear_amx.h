// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The linear layer on AMX tiles, the kernel that makes "amx" a separate numeric mode. The contract
// is that of sinkproof_kernels.linear; fast/kernels/linear_amx.c states the order.
#ifndef SINKPROOF_LINEAR_AMX_H
#define SINKPROOF_LINEAR_AMX_H

#include "fast/kernels/kernels.h"
#include "fast/kernels/unroll.h"

enum { AMX_FEW = 4 }; // most tokens for which vectors stream the weights

void amx_linear(const sinkproof_product *product, size_t first, size_t last, void *scratch);

// fast/kernels/few_amx.c: panels first .. last - 1 of a product of 1 to AMX_FEW tokens,
// bf16 operands, weights BF16 or MXFP4, in the mode's order, even where tiles could not be used.
void amx_linear_few(const sinkproof_product *product, size_t first, size_t last);

#endif
