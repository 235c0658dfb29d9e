// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The softmax in the form that is asked: the reference's, or a wrong one. A wrong form calls the
// reference wherever its mistake is in what the reference is given.
#include "doc/explore/row.h"

#include <math.h>

// Mistakes of the sum: the sink counted `times` times in it, 0 or 2. The maximum contains the sink.
static void sink_counted(const sinkproof_policy *policy, const sinkproof_block *block, double times,
                         double sink, const double *score, double *alpha) {
    size_t first = sinkproof_mask_first(block->window, block->first);
    double b = round_at(policy, AT_A8, sink), m = b;
    for (size_t j = first; j < block->keys; j++) m = fmax(m, score[j]);
    double e_sink = times * exp(round_at(policy, AT_A9_MAX, b - m)), z = e_sink;
    for (size_t j = 0; j < block->keys; j++)
        alpha[j] = j < first ? 0 : exp(round_at(policy, AT_A9_MAX, score[j] - m));
    for (size_t j = first; j < block->keys; j++) z += alpha[j];
    for (size_t j = first; j < block->keys; j++) alpha[j] = round_at(policy, AT_A9, alpha[j] / z);
    alpha[block->keys] = round_at(policy, AT_A9, e_sink / z);
}

static void renormalise(const sinkproof_policy *policy, size_t keys, double *alpha) {
    double sum = 0;
    for (size_t j = 0; j < keys; j++) sum += alpha[j];
    for (size_t j = 0; j < keys; j++) alpha[j] = round_at(policy, AT_A9, alpha[j] / sum);
}

void form_softmax(const sinkproof_policy *policy, row_form form, const sinkproof_block *block,
                  double sink, const double *score, double *alpha) {
    sinkproof_policy changed = *policy;
    if (form == FORM_MAX_ONLY || form == FORM_PER_PART) {
        sink_counted(policy, block, form == FORM_PER_PART ? 2 : 0, sink, score, alpha);
        return;
    }
    if (form == FORM_LSE_ROUNDED)
        changed.at[AT_A9_LSE] = (sinkproof_rounding){.format = SINKPROOF_BF16};
    if (form == FORM_SCALED) sink = sink / sqrt((double)block->head_dim);
    if (form == FORM_DROPPED) sink = -INFINITY;
    sinkproof_softmax_sink(&changed, block, &sink, score, alpha);
    if (form == FORM_RENORMALISED) renormalise(policy, block->keys, alpha);
}
