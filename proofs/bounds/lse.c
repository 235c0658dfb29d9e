// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The log-sum-exp of a row as a tensor (bound.lse-rounded, before the gate; bound.form-lse for the
// roundings).
#include "proofs/bounds/softmax_row.h"

#include <stdlib.h>

// The logarithm of the computed sum, over the keys or with the sink.
static sinkproof_honest summed_lse(softmax_row *row, bool with_sink) {
    numerator sum = {0};
    shift_by_maximum(row, AT_A9);
    fill_exponentials(row);
    for (size_t j = 0; j < row->n + with_sink; j++) add_numerator(&sum, &row->e_j[j]);
    sinkproof_honest before = subtracted_before(row);
    double n = (double)row->n + 1, top = fmax(row->top, set_largest_size(before));
    double log_sum = log(fmax(sum.hi, 1)) + row->m_hi - row->m_lo + 0x1p-40;
    double rescaled = row_rescaling(row, n).worst, gamma = 2 * sinkproof_gamma(n, row->s->u);
    double error = lse_error(row, top, log_sum) + gamma + rescaled;
    error += (fabs(row->m) + set_largest_size(before) + log_sum) * 0x1p-50; // this evaluation
    if (!(gamma < 1) || !(rescaled < 1)) return sinkproof_unknown_set(0);
    double lo = before.lo + row->m + log(sum.lo) - error;
    double hi = before.hi + row->m + log(sum.hi) + error;
    double mid = before.mid + row->m + log(sum.mid);
    return (sinkproof_honest){lo, hi, lo, hi, mid, 0, 0, INFINITY, 0};
}

bool sinkproof_honest_lse(const sinkproof_setting *s, size_t n, const sinkproof_honest *z_j,
                          sinkproof_honest b, bool with_sink, sinkproof_honest *lse) {
    bool steps = with_sink && s->policy->at[AT_A9_GATE].format != SINKPROOF_REAL;
    *lse = sinkproof_unknown_set(0);
    if (steps || weights_may_be_nan(n, z_j, b) || scores_exceed_exp(n, z_j, b)) return true;
    softmax_row row = softmax_row_begin(s, AT_A9, n, z_j, b);
    row.t_j = malloc((n + 1) * sizeof *row.t_j);
    row.e_j = malloc((n + 1) * sizeof *row.e_j);
    bool fine = row.t_j != NULL && row.e_j != NULL;
    if (fine) *lse = sinkproof_honest_at(s, AT_A9_LSE, summed_lse(&row, with_sink));
    free(row.t_j), free(row.e_j);
    return fine;
}
