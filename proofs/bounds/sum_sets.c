// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest sets of sums of products (bound.linear, bound.overflow), whose S, A and Q linear.c
// computes. Sums of known operands that are rounded to nearest are most of a judgement: their sets
// are computed in vectors, with the same bits.
#include "proofs/bounds/sum_sets.h"
#include "proofs/bounds/processors.h"

//> bound.overflow
// In some order a partial sum may reach the sum of all sizes plus its error. If that exceeds the
// largest number of the format, the sum may be infinite.
static bool may_overflow(double sizes, double worst, double largest) {
    return !(sizes + worst <= largest);
}
//< bound.overflow

//> bound.linear
// A term undergoes at most n - 1 additions, one more for b, and the rounding of its product; a sum
// of integers undergoes the roundings of its product with two scales instead.
row_terms row_error_terms(const sinkproof_setting *s, const sinkproof_planes *x, double terms,
                          bool exact_products, bool biased, bool straddles) {
    double whole = x->whole > 1 ? (double)x->whole : 1, alone = (double)x->sums;
    double n = ceil((terms - alone) / whole) + alone;
    double products = x->whole > 1 ? (double)x->scalings : exact_products ? 0 : 1;
    double roundings = fmax(n - 1, 0) + (biased ? 1 : 0) + products;
    double gamma = sinkproof_gamma(roundings, s->u), here = sinkproof_gamma(2 * terms + 8, 0x1p-53);
    // Short products have no rounding error, but they can still fall below the smallest number;
    // where results are flushed, sums can too.
    bool unit = s->core.bits > 0; // which cuts, by up to twice of what rounding to nearest loses
    double steps =
        s->policy->ftz || unit || x->whole > 1 ? 2 * terms + 2 : terms + (biased ? 1 : 0);
    double under = underflow_bound(s, steps, gamma);
    double largest = setting_largest(s);
    bool leans = s->u > sinkproof_unit_roundoff(SINKPROOF_F32);
    core_terms core = unit ? core_row_terms(s, terms, biased, straddles) : (core_terms){0};
    return (row_terms){n, whole, products, biased, leans, gamma, here, under, largest, core};
}

// Rounding to nearest, in any order. Sums of the squares of the rounded partial sums. paths: for an
// order that is independent of the values. paths + others: for any order that keeps each square
// below S^2 + Q, at most six times as much.
static sum_freedom rounding_freedom(const sinkproof_setting *s, const row_terms *t,
                                    const sum_sizes *z) {
    double n = t->n, mid = z->mid, square = z->square, third = s->u * s->u / 3;
    double once = t->products * square + (t->biased ? mid * mid : 0);
    double paths = (n + 1) * (mid * mid / 3 + square / 6) + once;
    double others = (n + 1) * (mid * mid * 2 / 3 + square * 5 / 6);
    return (sum_freedom){.worst = t->gamma * z->total,
                         .likely = sqrt(2 * s->odds * paths) * s->u,
                         .var = third * paths,
                         .order = third * others};
}

sinkproof_honest sum_set(const sinkproof_setting *s, const row_terms *t, double b, const sums *c,
                         size_t at) {
    double here = t->here;
    double in_worst = c->worst != NULL ? c->worst[at] : 0;
    double in_likely = c->likely != NULL ? c->likely[at] : 0;
    double flushed = c->flushed != NULL ? c->flushed[at] : 0;
    in_worst += flushed, in_likely += flushed;
    double mid = c->mid[at] + b, total = c->abs[at] + fabs(b) + in_worst;
    double square = c->square[at] * t->whole + b * b; // (sum of w numbers)^2 <= w sum of squares
    double slack = (in_worst + total) * here + (total > 0 ? t->under : 0);
    sum_sizes z = core_sum_sizes(mid, total, square, &c->unit, at);
    sum_freedom f = s->core.bits > 0 ? core_freedom(s, &t->core, &z) : rounding_freedom(s, t, &z);
    double worst = f.worst * (1 + 2 * here) + in_worst + slack;
    double likely = f.likely + in_likely + slack;
    if (may_overflow(total, worst, t->largest)) worst = INFINITY;
    if (t->leans || !(worst < INFINITY)) likely = worst;
    double in_var = c->var != NULL ? c->var[at] : 0;
    double bias = t->leans ? worst : (c->bias != NULL ? c->bias[at] : 0) + flushed + f.bias;
    sinkproof_honest x =
        sinkproof_set_around(mid, worst, likely, f.var + in_var + flushed * flushed, bias);
    x.mid += f.shift;
    x.order = f.order + 5 * in_var;
    return x;
}
//< bound.linear

// ---- a row

enum { MANY = 32 };

typedef struct plain_sums {
    double mid[MANY], abs[MANY], square[MANY], b[MANY];
} plain_sums;

typedef struct plain_sets {
    double lo[MANY], hi[MANY], likely_lo[MANY], likely_hi[MANY], mid[MANY], var[MANY], order[MANY];
    uint64_t odd[MANY]; // not 0: left to sum_set, as a sum that may overflow
} plain_sets;

// Of finite sums.
static inline double sum_down(double a, double b) {
    double s = a + b;
    return step_by_ulps(s, honest_sum_error(a, b, s) < 0 ? -1 : 0);
}
static inline double sum_up(double a, double b) {
    double s = a + b;
    return step_by_ulps(s, honest_sum_error(a, b, s) > 0 ? 1 : 0);
}

// sum_set and rounding_freedom without freedom of the operands.
FOR_EACH_PROCESSOR
static void set_plain_sums(const row_terms *t, double u, double odds, const plain_sums *c,
                           plain_sets *x) {
    double n = t->n, third = u * u / 3, with_b = t->biased ? 1 : 0;
    for (size_t l = 0; l < MANY; l++) {
        double b = c->b[l], mid = c->mid[l] + b, total = c->abs[l] + fabs(b);
        double square = c->square[l] * t->whole + b * b;
        double under = total > 0 ? t->under : 0, slack = total * t->here + under;
        double once = t->products * square + (with_b > 0 ? mid * mid : 0);
        double paths = (n + 1) * (mid * mid / 3 + square / 6) + once;
        double others = (n + 1) * (mid * mid * 2 / 3 + square * 5 / 6);
        double worst = t->gamma * total * (1 + 2 * t->here) + slack;
        double likely = sqrt(2 * odds * paths) * u + slack;
        likely = likely <= worst ? likely : worst;
        uint64_t odd = total + worst <= t->largest ? 0 : 1;
        odd |= fabs(mid) <= t->largest ? 0 : 1, odd |= likely < INFINITY ? 0 : 1;
        x->lo[l] = sum_down(mid, -worst), x->hi[l] = sum_up(mid, worst);
        x->likely_lo[l] = sum_down(mid, -likely), x->likely_hi[l] = sum_up(mid, likely);
        x->mid[l] = mid, x->var[l] = third * paths, x->order[l] = third * others, x->odd[l] = odd;
    }
}

static bool sums_are_plain(const sinkproof_setting *s, const sums *c, const row_terms *t) {
    return c->worst == NULL && c->flushed == NULL && s->core.bits == 0 && !t->leans &&
           t->largest <= 0x1p200;
}

// n <= MANY sums from `at` on.
static void set_some(const sinkproof_setting *s, const sums *c, const row_terms *t, size_t at,
                     size_t n, const double *b_r, sinkproof_honest *out_r) {
    plain_sums in;
    plain_sets x;
    for (size_t l = 0; l < MANY; l++) {
        size_t of = l < n ? l : n - 1;
        in.mid[l] = c->mid[at + of], in.abs[l] = c->abs[at + of];
        in.square[l] = c->square[at + of], in.b[l] = b_r != NULL ? b_r[of] : 0;
    }
    set_plain_sums(t, s->u, s->odds, &in, &x);
    for (size_t l = 0; l < n; l++)
        out_r[l] = x.odd[l] != 0 ? sum_set(s, t, in.b[l], c, at + l)
                                 : (sinkproof_honest){.lo = x.lo[l],
                                                      .hi = x.hi[l],
                                                      .likely_lo = x.likely_lo[l],
                                                      .likely_hi = x.likely_hi[l],
                                                      .mid = x.mid[l],
                                                      .var = x.var[l],
                                                      .spread = x.var[l],
                                                      .order = x.order[l]};
}

void sums_row(const sinkproof_setting *s, const sums *c, const row_terms *t, size_t i, size_t rows,
              const double *b_r, sinkproof_honest *out_r) {
    if (!sums_are_plain(s, c, t)) {
        for (size_t r = 0; r < rows; r++)
            out_r[r] = sum_set(s, t, b_r != NULL ? b_r[r] : 0, c, i * rows + r);
        return;
    }
    for (size_t r = 0; r < rows; r += MANY)
        set_some(s, c, t, i * rows + r, rows - r < MANY ? rows - r : MANY,
                 b_r != NULL ? b_r + r : NULL, out_r + r);
}
