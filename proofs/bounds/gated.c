// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The log-sum-exp of the keys, rounded before the sink's gate reads it (bound.lse-rounded): an
// engine that keeps it in the storage type. sigmoid(r(LSE) - b) is the gate of a sink whose logit
// is LSE - r(LSE) larger, so the sink's exponential is multiplied by e^(LSE - r(LSE)). An engine
// that rounds every step after it too (A9.gate) joins the sink, LSE' = log(e^LSE + e^b), and
// multiplies by e^(LSE - LSE'). Each step is monotone. The sink has what this gate leaves.
#include "proofs/bounds/softmax_row.h"

bool lse_is_rounded(const sinkproof_setting *s, sinkproof_point point) {
    return point == AT_A9 && (s->policy->at[AT_A9_LSE].format != SINKPROOF_REAL ||
                              s->policy->at[AT_A9_GATE].format != SINKPROOF_REAL);
}

//> bound.lse-rounded
// What was subtracted from all logits of the row before: its maximum, where that is rounded.
sinkproof_honest subtracted_before(const softmax_row *row) {
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

// What LSE is read as.
static range read_lse(sinkproof_rounding at, range lse) {
    if (at.format == SINKPROOF_REAL) return lse;
    range y = {sinkproof_round(at.format, lse.lo), sinkproof_round(at.format, lse.hi)};
    return at.optional ? (range){fmin(y.lo, lse.lo), fmax(y.hi, lse.hi)} : y;
}

static double exp_error_at(const softmax_row *row, double x) {
    return row->declared + row->growth * fmin(fabs(x), 800);
}

// A step whose result is rounded: within `error` of the ends, relatively, before that.
static range rounded_step(sinkproof_format format, range x, double error) {
    error += 0x1p-50; // this evaluation
    double lo = x.lo - fabs(x.lo) * error, hi = x.hi + fabs(x.hi) * error;
    return (range){sinkproof_round(format, lo), sinkproof_round(format, hi)};
}

static range exponential_step(const softmax_row *row, sinkproof_format format, range x) {
    range t = rounded_step(format, x, row->s->u), e = {exp(t.lo), exp(t.hi)};
    return rounded_step(format, e, exp_error_at(row, t.lo));
}

// e^x with x <= 0: of the distance from the larger one.
static range below_larger(const softmax_row *row, sinkproof_format format, range x, range most) {
    range t = {fmin(x.lo - most.hi, 0), fmin(x.hi - most.lo, 0)};
    return exponential_step(row, format, t);
}

// The gate of an LSE within `lse` as it was read. LSE with the sink is log(e^(LSE - m) + e^(b - m))
// + m; the gate is e^(LSE - LSE').
static range rounded_gate(const softmax_row *row, sinkproof_format format, range lse) {
    double u = row->s->u;
    range b = {row->b.lo, row->b.hi}, most = {fmax(lse.lo, b.lo), fmax(lse.hi, b.hi)};
    range keys = below_larger(row, format, lse, most), sink = below_larger(row, format, b, most);
    range both = rounded_step(format, (range){keys.lo + sink.lo, keys.hi + sink.hi}, u);
    range all = rounded_step(format, (range){log(fmax(both.lo, 1)), log(fmax(both.hi, 1))},
                             row->declared_log + u);
    all = rounded_step(format, (range){all.lo + most.lo, all.hi + most.hi}, u);
    range t = {fmin(lse.lo - all.hi, 0), fmin(lse.hi - all.lo, 0)};
    range g = exponential_step(row, format, t);
    return (range){fmax(g.lo, 0), fmin(g.hi, 1)};
}

// Over neighbouring numbers that LSE may be read as, each for itself.
static range gate_of_read(const softmax_row *row, sinkproof_format format, range lse) {
    double step = sinkproof_ulp(format, fmax(fabs(lse.lo), fabs(lse.hi)));
    bool two = row->s->policy->at[AT_A9_LSE].format == format &&
               !row->s->policy->at[AT_A9_LSE].optional && lse.hi - lse.lo <= step;
    if (!two) return rounded_gate(row, format, lse);
    range low = rounded_gate(row, format, (range){lse.lo, lse.lo}),
          high = rounded_gate(row, format, (range){lse.hi, lse.hi});
    return (range){fmin(low.lo, high.lo), fmax(low.hi, high.hi)};
}

// What lies between the sink's numerators is the row's.
static void spread_sink(softmax_row *row, double apart) {
    row->t_j[row->n].var += apart * apart, row->t_j[row->n].bias += apart;
}

static double left_by(double keys, double gate) {
    return gate > 0 ? keys * (1 / gate - 1) : INFINITY;
}

// The emulation: every step exact, then rounded.
static double middle_gate(sinkproof_format format, double lse, double b) {
    double most = fmax(lse, b), both = 0;
    const double x[2] = {lse, b};
    for (int k = 0; k < 2; k++)
        both += sinkproof_round(format, exp(sinkproof_round(format, x[k] - most)));
    double all = sinkproof_round(format, log(sinkproof_round(format, both)));
    all = sinkproof_round(format, all + most);
    return sinkproof_round(format, exp(sinkproof_round(format, lse - all)));
}

// The sink has what the gate leaves.
static void gate_each_step(softmax_row *row, range lse, double mid) {
    sinkproof_rounding at = row->s->policy->at[AT_A9_GATE], of_lse = row->s->policy->at[AT_A9_LSE];
    numerator before = row->e_j[row->n], *e = &row->e_j[row->n];
    range g = gate_of_read(row, at.format, read_lse(of_lse, lse));
    double read = of_lse.format != SINKPROOF_REAL ? sinkproof_round(of_lse.format, mid) : mid;
    double gate = middle_gate(at.format, read, row->b.mid);
    e->lo = left_by(row->keys.lo, g.hi) * (1 - 0x1p-48);
    e->hi = left_by(row->keys.hi, g.lo) * (1 + 0x1p-48);
    e->likely_lo = left_by(row->keys.likely_lo, g.hi) * (1 - 0x1p-48);
    e->likely_hi = left_by(row->keys.likely_hi, g.lo) * (1 + 0x1p-48);
    e->mid = left_by(row->keys.mid, fmax(gate, 0x1p-1000));
    spread_sink(row, g.lo > 0 ? log(g.hi / g.lo) : 1);
    if (!at.optional) return;
    e->lo = fmin(e->lo, before.lo), e->likely_lo = fmin(e->likely_lo, before.likely_lo);
    e->hi = fmax(e->hi, before.hi), e->likely_hi = fmax(e->likely_hi, before.likely_hi);
    e->mid = before.mid;
}

void gate_round_lse(softmax_row *row) {
    const sinkproof_policy *policy = row->s->policy;
    sinkproof_rounding at = policy->at[AT_A9_LSE];
    bool steps = policy->at[AT_A9_GATE].format != SINKPROOF_REAL;
    numerator *e = &row->e_j[row->n];
    if (!row->lse_gated || (at.format == SINKPROOF_REAL && !steps) || !(e->hi > 0)) return;
    sinkproof_honest before = subtracted_before(row);
    range lse = keys_lse(row, before);
    double mid = before.mid + row->m + log(row->keys.mid);
    if (!isfinite(lse.lo) || !isfinite(lse.hi) || !isfinite(mid) || !isfinite(row->b.mid)) {
        e->lo = e->likely_lo = 0, e->hi = e->likely_hi = INFINITY;
        return;
    }
    if (steps) {
        gate_each_step(row, lse, mid);
        return;
    }
    range by = above_rounded(row, at, lse);
    double lo = exp(by.lo) * (1 - 0x1p-50), hi = exp(by.hi) * (1 + 0x1p-50);
    e->lo *= lo, e->likely_lo *= lo, e->hi *= hi, e->likely_hi *= hi;
    spread_sink(row, by.hi - by.lo);
    if (!at.optional) e->mid *= exp(mid - sinkproof_round(at.format, mid));
}
//< bound.lse-rounded
