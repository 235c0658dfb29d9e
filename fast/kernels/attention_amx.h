// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention on AMX tiles. The contracts are those of sinkproof_kernels.attend and .attend_spans;
// the order is that of the mode "amx" (fast/lanes/amx.h).
#ifndef SINKPROOF_ATTENTION_AMX_H
#define SINKPROOF_ATTENTION_AMX_H

#include "fast/kernels/kernels.h"

void amx_attend(const sinkproof_attention *attention, void *scratch);
void amx_attend_spans(const sinkproof_attention *attention, size_t first, size_t last,
                      sinkproof_span_state *state_sh, float *o_shd, void *scratch);

#endif
