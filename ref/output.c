// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Output projection (A12, doc/07-values-output.md): the heads side by side, times W^O, plus b^O;
// and the residual sums (A13, M12).
#include "ref/stages.h"

void stage_output(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                  const double *o_nhd, double *out_nc, double *work) {
    //> sink.attn-concat
    sinkproof_linear(policy, AT_A12, n, &layer->w_o, &layer->b_o, o_nhd, out_nc, work);
    //< sink.attn-concat
}

void sinkproof_residual(const sinkproof_policy *policy, sinkproof_point point, size_t count,
                        const double *t, double *x) {
    for (size_t c = 0; c < count; c++) x[c] = round_at(policy, point, x[c] + t[c]);
}
