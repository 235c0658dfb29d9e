// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The log-sum-exp of the keys, rounded before the sink's gate reads it (bound.lse-rounded): an
// engine that keeps it in the storage type. sigmoid(r(LSE) - b) is the gate of a sink whose logit
// is LSE - r(LSE) larger, so the sink's exponential is multiplied by e^(LSE - r(LSE)).
#include "proofs/bounds/softmax_row.h"

bool lse_is_rounded(const sinkproof_setting *s, sinkproof_point point) {
    return point == AT_A9 && s->policy->at[AT_A9_LSE].format != SINKPROOF_REAL;
}

//> bound.lse-rounded
// What was subtracted from all logits of the row before: its maximum, where that is rounded.
static sinkproof_honest subtracted_before(const softmax_row *row) {
    if (row->s->policy->at[AT_A9_MAX].format == SINKPROOF_REAL) return sinkproof_exact_set(0);
    sinkproof_honest m = row->b;
    for (size_t j = 0; j < row->n; j++) m = set_larger(m, row->z_j[j]);
    return m;
}

// LSE of the keys in an engine.
static range keys_lse(const softmax_row *row, sinkproof_honest before) {
    double u = row->s->u, log_n = log((double)row->n + 1) + 0x1p-40;
    double error = sinkproof_gamma(row->base_2 ? 7 : 2, u) * (row->keys_top + log_n + 1) +
                   row->declared_log * (log_n + 1) + 2 * sinkproof_gamma((double)row->n + 1, u);
    error += (fabs(row->m) + set_largest_size(before) + log_n) * 0x1p-50; // this evaluation
    return (range){before.lo + row->m + log(row->keys.lo) - error,
                   before.hi + row->m + log(row->keys.hi) + error};
}

// How far LSE is above its rounded value: a rounding errs by half a step at most.
static range above_rounded(const softmax_row *row, sinkproof_rounding at, range lse) {
    double half = sinkproof_ulp(at.format, fmax(fabs(lse.lo), fabs(lse.hi))) / 2;
    range y = {fmax(lse.lo - sinkproof_round(at.format, lse.hi), -half),
               fmin(lse.hi - sinkproof_round(at.format, lse.lo), half)};
    if (at.optional) y.lo = fmin(y.lo, 0), y.hi = fmax(y.hi, 0);
    double argument = half * (row->s->u + row->growth) + 0x1p-50; // of the gate's exponential
    return (range){y.lo - argument, y.hi + argument};
}

void gate_round_lse(softmax_row *row) {
    sinkproof_rounding at = row->s->policy->at[AT_A9_LSE];
    numerator *e = &row->e_j[row->n];
    if (!row->lse_gated || at.format == SINKPROOF_REAL || !(e->hi > 0)) return;
    sinkproof_honest before = subtracted_before(row);
    range lse = keys_lse(row, before);
    double mid = before.mid + row->m + log(row->keys.mid),
           shift = mid - sinkproof_round(at.format, mid);
    if (!isfinite(lse.lo) || !isfinite(lse.hi) || !isfinite(shift)) {
        e->lo = e->likely_lo = 0, e->hi = e->likely_hi = INFINITY;
        return;
    }
    range by = above_rounded(row, at, lse);
    double lo = exp(by.lo) * (1 - 0x1p-50), hi = exp(by.hi) * (1 + 0x1p-50);
    e->lo *= lo, e->likely_lo *= lo, e->hi *= hi, e->likely_hi *= hi;
    double apart = by.hi - by.lo; // shared by the row
    row->t_j[row->n].var += apart * apart, row->t_j[row->n].bias += apart;
    if (!at.optional) e->mid *= exp(shift);
}
//< bound.lse-rounded
