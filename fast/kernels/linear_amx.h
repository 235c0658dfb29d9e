// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The linear layer on AMX tiles: the kernel that makes "amx" a numeric mode of its own. The
// contract is sinkproof_kernels.linear's; fast/kernels/linear_amx.c states the order.
#ifndef SINKPROOF_LINEAR_AMX_H
#define SINKPROOF_LINEAR_AMX_H

#include "fast/kernels/kernels.h"

void sinkproof_amx_linear(const sinkproof_product *product, size_t first, size_t last,
                          void *scratch);

#endif
