// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Exponentials that are rounded before they are multiplied by the values, and divided by their sum
// afterwards (bound.unnormalised), as in kernels whose matrix unit takes narrow operands. The sum
// consists of the unrounded exponentials and that of the sink, which has no value.
#include "proofs/bounds/softmax_row.h"

//> bound.unnormalised
bool rounds_exponentials(const softmax_row *row, sinkproof_point point) {
    bool rounded = row->s->policy->at[AT_A9_UNNORM].format != SINKPROOF_REAL;
    return rounded && point == AT_A9 && (row->quotient || row->lse_gated);
}

// The rounding steps of the exponential depend on the number that was subtracted. The definition
// subtracts the row's maximum: where the maximum is known, the rounding is applied to the ends.
static bool shift_is_known(const softmax_row *row) {
    return row->m_lo == row->m_hi && !row->base_2 && !row->running && !row->lse_gated;
}

// Otherwise the rounding is that of some unknown number: a relative error of u, and the loss of an
// underflow. The subtracted number is at most the engine's maximum, so an underflow loses no more
// than it would with that maximum.
static sinkproof_honest rounded_at_unknown_scale(sinkproof_format format, double lift,
                                                 sinkproof_honest e) {
    double u = sinkproof_unit_roundoff(format) * (1 + 0x1p-50);
    double lost = sinkproof_format_underflow(format) * lift;
    e.lo = fmax(e.lo * (1 - u) - lost, 0), e.hi = e.hi * (1 + u) + lost;
    e.likely_lo = fmax(e.likely_lo * (1 - u) - lost, 0);
    e.likely_hi = e.likely_hi * (1 + u) + lost;
    e.var += (e.mid * e.mid * u * u + lost * lost) / 3;
    if (e.mid < lost) e.bias += e.mid; // it becomes 0 every time
    if (format == SINKPROOF_TF32_CUT) e.bias += e.mid * u;
    return e;
}

sinkproof_honest kept_exponential(const softmax_row *row, size_t j, double var) {
    const numerator *n = &row->e_j[j];
    sinkproof_honest e = {.lo = n->lo,
                          .hi = n->hi,
                          .likely_lo = n->likely_lo,
                          .likely_hi = n->likely_hi,
                          .mid = n->mid,
                          .var = n->mid * n->mid * var};
    if (n->hi == 0 || !(n->hi < INFINITY)) return e; // masked, or unbounded
    if (shift_is_known(row)) return sinkproof_honest_at(row->s, AT_A9_UNNORM, e);
    return rounded_at_unknown_scale(row->s->policy->at[AT_A9_UNNORM].format, row->lift, e);
}

// The numerator is the rounded exponential, the sum contains the unrounded one.
range kept_range_share(range kept, range e, range others) {
    double largest = e.hi + others.hi, least = e.lo + others.lo;
    return (range){kept.lo > 0 ? kept.lo / largest : 0,
                   isfinite(kept.hi) ? kept.hi / least : INFINITY};
}

// Beside a sink far above all keys their exponentials may be flushed to 0, and so may the least
// sum. But an engine that divides by the sum of the keys alone subtracts their own maximum: one
// term of its sum is e^0, and one is that of j.
double most_of_kept_share(const softmax_row *row, size_t j) {
    sinkproof_format format = row->s->policy->at[AT_A9_UNNORM].format;
    double u = sinkproof_unit_roundoff(format) * (1 + 0x1p-50);
    double flushed = row->s->policy->inside == SINKPROOF_F32 ? 0x1p-126 : 0x1p-1022;
    double lost = flushed * (1 + u) + sinkproof_format_underflow(format);
    if (!(row->one > 0)) return INFINITY;
    return (row->e_j[j].own * (1 + u) + lost / row->one) * (1 + 0x1p-50);
}
//< bound.unnormalised
