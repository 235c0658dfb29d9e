// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A planted mistake for any kind of sink: the sink has the first key's value.
#ifndef SINKPROOF_TESTS_SINK_VALUE_H
#define SINKPROOF_TESTS_SINK_VALUE_H

#include "ref/stages.h"

static inline void values_of_sink(const sinkproof_policy *p, const sinkproof_block *block,
                                  const double *a, const double *v, double *o) {
    sinkproof_reference_stages.values(p, block, a, v, o);
    for (size_t i = 0; i < block->rows; i++)
        for (size_t d = 0; d < block->head_dim; d++) {
            double *x = &o[i * block->q_stride + d];
            *x = round_at(p, AT_A11, *x + a[i * (block->keys + 1) + block->keys] * v[d]);
        }
}

#endif
