// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Five laws of a row, each asked of the numbers that were computed. Over the reals their two sides
// are equal; `bound` is how far apart the roundings of the policy and of binary64 can bring the
// sides of a row that is computed rightly. A residue above it proves a mistake.
//
// The bound of a weight. c = 2^-53 is binary64's unit. The argument of an exponential errs by at
// most R (c + u_max), where R is the range of scores and sink and u_max the unit of A9.max; exp
// errs by an ulp at most, 2c; the sum of n + 1 positive numbers by n c of itself, the quotient by
// c. The logarithm of a weight so errs by at most L = 2 (R (c + u_max) + 2c) + (n + 3) c, and its
// rounding to A9 adds a factor 1 + u and half the least subnormal, eta. Hence |fl(alpha) - alpha|
// <= E alpha + eta with E = e^L (1 + u) - 1. An operation on bounds may itself round: L has one
// unit more than is counted for each step, which covers the products of small numbers too.
#include "doc/explore/row.h"

#include <math.h>
#include <string.h>

static const double c = 0x1p-53;

typedef struct row_errors {
    size_t first, n;    // keys that are seen
    double weight, eta; // E and eta
    double u, u_out, eta_out;
} row_errors;

static double unit(const sinkproof_policy *policy, sinkproof_point at) {
    return sinkproof_unit_roundoff(policy->at[at].format);
}

static row_errors errors_of(const sinkproof_policy *policy, const row_operands *row, double sink) {
    row_errors e = {.first = sinkproof_mask_first(row->window, row->keys - 1)};
    e.n = row->keys - e.first;
    double least = sink, most = sink;
    for (size_t j = e.first; j < row->keys; j++)
        least = fmin(least, row->score[j]), most = fmax(most, row->score[j]);
    double argument = (most - least) * (c + unit(policy, AT_A9_MAX)) * (1 + 4 * c) +
                      sinkproof_format_underflow(policy->at[AT_A9_MAX].format);
    double log_error = 2 * (argument + 3 * c) + (double)(e.n + 4) * c * 1.01;
    e.u = unit(policy, AT_A9), e.eta = sinkproof_format_underflow(policy->at[AT_A9].format);
    e.weight = expm1(log_error) + e.u * exp(log_error) + 4 * c;
    e.u_out = unit(policy, AT_A11) + unit(policy, AT_A11_PART) * (1 + unit(policy, AT_A11)) +
              unit(policy, AT_A11_WEIGHTS);
    e.eta_out = sinkproof_format_underflow(policy->at[AT_A11].format) +
                sinkproof_format_underflow(policy->at[AT_A11_PART].format);
    return e;
}

double row_weight_error(const sinkproof_policy *policy, const row_operands *row) {
    return errors_of(policy, row, row->sink).weight;
}

row_checked nothing_compared(void) {
    return (row_checked){.bound = -1, .holds = 1};
}

void compare_sides(row_checked *law, double left, double right, double bound) {
    double residue = fabs(left - right);
    double strain = residue == 0 ? 0 : residue / bound; // infinite where nothing may differ
    double kept = law->residue == 0 ? 0 : law->residue / law->bound;
    if (!(residue <= bound)) law->holds = 0;
    if (law->bound < 0 || !(strain <= kept) || (strain == kept && residue > law->residue))
        law->left = left, law->right = right, law->residue = residue, law->bound = bound;
}

// sink.mass. The same exponentials stand above and below, so only sum, quotients and roundings err.
static row_checked check_mass(const row_errors *e, const row_operands *row, const double *alpha) {
    row_checked law = nothing_compared();
    double sum = 0, steps = (double)(2 * e->n + 6) * c * 1.01;
    for (size_t j = e->first; j < row->keys; j++) sum += alpha[j];
    compare_sides(&law, sum, 1 - alpha[row->keys],
                  expm1(steps) + e->u * exp(steps) + (double)(e->n + 1) * e->eta);
    return law;
}

// A weight whose exact value is at most `above`: what E and eta make of the one that was computed.
static double above(const row_errors *e, double alpha) {
    return (alpha + e->eta) / (1 - fmin(e->weight, 0.5));
}

// law.shift. Scores and sink plus t are rounded again: by at most D, which is measured. The weights
// then differ by a factor of at most e^(2 D) beside their errors.
static row_checked check_shift(const sinkproof_policy *policy, row_form form, double t,
                               const row_errors *e, const row_operands *row, const double *alpha) {
    row_checked law = nothing_compared();
    row_operands moved = *row;
    double again[ROW_KEYS + 2], out[ROW_SHOWN], off = 0, size = fabs(row->sink);
    moved.sink = round_at(policy, AT_A8, row->sink + t);
    off = fabs(moved.sink - row->sink - t);
    for (size_t j = e->first; j < row->keys; j++) {
        moved.score[j] = round_at(policy, AT_A6, row->score[j] + t);
        off = fmax(off, fabs(moved.score[j] - row->score[j] - t));
        size = fmax(size, fabs(row->score[j]));
    }
    off += 4 * c * (size + fabs(t)); // of the subtractions above
    row_errors f = errors_of(policy, &moved, moved.sink);
    row_attend(policy, form, &moved, again, out);
    for (size_t k = e->first; k <= row->keys; k++)
        compare_sides(&law, again[k], alpha[k],
                      above(e, alpha[k]) * (expm1(2 * off) + f.weight * exp(2 * off) + e->weight) +
                          e->eta + f.eta);
    return law;
}

// sink.concat-slice, sink.zero-pad: an ordinary softmax of the reference over one key more, the
// first, whose score is b and whose value is zero. The sums run in the same order: equal to the
// bit.
static row_checked check_key(const sinkproof_policy *policy, const row_errors *e,
                             const row_operands *row, const double *alpha, const double *out) {
    row_checked law = nothing_compared();
    row_operands longer = {.keys = e->n + 1, .window = e->n + 1, .sink = -INFINITY};
    double other[ROW_KEYS + 2], o[ROW_SHOWN];
    longer.score[0] = row->sink;
    memcpy(longer.score + 1, row->score + e->first, e->n * sizeof *row->score);
    memcpy(longer.value + ROW_DIM, row->value + e->first * ROW_DIM,
           e->n * ROW_DIM * sizeof *row->value);
    row_attend(policy, FORM_RIGHT, &longer, other, o);
    compare_sides(&law, alpha[row->keys], other[0], 0);
    for (size_t j = 0; j < e->n; j++) compare_sides(&law, alpha[e->first + j], other[1 + j], 0);
    for (size_t d = 0; d < ROW_SHOWN; d++) compare_sides(&law, out[d], o[d], 0);
    return law;
}

// sink.softmax1: the form at b = 0 against e^s / (1 + sum e^s), literally, in binary64.
static row_checked check_softmax1(const sinkproof_policy *policy, row_form form,
                                  const row_operands *row) {
    row_checked law = nothing_compared();
    row_operands zero = *row;
    double alpha[ROW_KEYS + 2], out[ROW_SHOWN], z = 1;
    zero.sink = 0;
    row_errors e = errors_of(policy, &zero, 0);
    row_attend(policy, form, &zero, alpha, out);
    for (size_t j = e.first; j < row->keys; j++) z += exp(row->score[j]);
    double literal = (double)(e.n + 8) * c * 1.01; // of the right side: exp twice, sum, quotient
    for (size_t k = e.first; k <= row->keys; k++) {
        double right = (k < row->keys ? exp(row->score[k]) : 1) / z;
        compare_sides(&law, alpha[k], right,
                      right * (1 + 2 * literal) * (e.weight + literal) + e.eta);
    }
    return law;
}

// How much the right sides of sink.gate err in binary64: differences of scores, exponentials, their
// sum, its logarithm, and the sums that follow.
static double gate_error(const row_errors *e, const row_operands *row) {
    double most = -INFINITY, least = INFINITY, of_sum = log((double)e->n);
    for (size_t j = e->first; j < row->keys; j++)
        most = fmax(most, row->score[j]), least = fmin(least, row->score[j]);
    return ((double)e->n + 12 + most - least + 4 * (fabs(most) + of_sum + fabs(row->sink))) * c *
           1.01;
}

// sink.gate: 1 - alpha_s = sigmoid(LSE - b), and the output is the ordinary softmax's times it.
static row_checked check_gate(const row_errors *e, const row_operands *row,
                              const row_result *result) {
    row_checked law = nothing_compared();
    double alpha_s = result->alpha_sink, right = gate_error(e, row);
    compare_sides(&law, 1 - alpha_s, result->gate,
                  e->weight * above(e, alpha_s) + e->eta + right + 2 * c);
    for (size_t d = 0; d < ROW_SHOWN; d++) {
        double soft = 0, bound = 0, size = 0;
        for (size_t j = e->first; j < row->keys; j++) {
            double v = row->value[j * ROW_DIM + d], share = exp(row->score[j] - result->lse);
            soft += share * v, size += share * fabs(v) * result->gate;
            bound += (e->weight * share * result->gate + e->eta) * fabs(v);
        }
        bound = bound * (1 + 8 * c) + size * ((double)(2 * e->n + 8) * c + 4 * right);
        double out = size + bound; // at least the size of what A11 rounds
        compare_sides(&law, result->out[d], soft * result->gate,
                      bound + out * e->u_out * (1 + e->u_out) + e->eta_out);
    }
    return law;
}

void check_laws(const sinkproof_policy *policy, row_form form, double shift,
                const row_operands *row, row_result *result) {
    row_errors e = errors_of(policy, row, row->sink);
    double alpha[ROW_KEYS + 1];
    memcpy(alpha, result->alpha, row->keys * sizeof *alpha);
    alpha[row->keys] = result->alpha_sink;
    result->law[LAW_MASS] = check_mass(&e, row, alpha);
    result->law[LAW_SHIFT] = check_shift(policy, form, shift, &e, row, alpha);
    result->law[LAW_KEY] = check_key(policy, &e, row, alpha, result->out);
    result->law[LAW_SOFTMAX1] = check_softmax1(policy, form, row);
    result->law[LAW_GATE] = check_gate(&e, row, result);
}
