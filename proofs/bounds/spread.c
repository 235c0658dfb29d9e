// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Spread (stat.spread): are the errors larger, on the whole, than rounding to nearest makes them?
//
// Random low bits are centred and may stay inside every set, so neither the sets nor drift detect
// them. Their squares do: the squared errors, each over its variance, have a mean of at most 1. A
// square is also at most M, since the likely set is bounded; and for numbers in [0, M] whose means
// add up to mu, the sum reaches a with odds of at most exp(-(a ln(a / mu) - a + mu) / M)
// (Chernoff). This uses only the means, the bounds and independence: neither a normal law nor
// symmetric errors. A class of m alike rows counts as one unit: M m in place of M (Hoelder).
//
// The variance covers every order of summation that keeps the squares of partial sums below S^2 +
// Q, not only orders that do not depend on the values. An error that all elements of a row share is
// a multiple of the row: only the rest is tested. Errors that may lean (declared functions,
// optional roundings) are added to the root of the limit. Where errors are rare whole steps of a
// coarse format, nothing is tested: honest.c marks this by an infinite variance, before it is known
// which elements are near a step.
#include "proofs/bounds/bounds.h"
#include "proofs/bounds/processors.h"

// An element whose square may exceed this many variances is not tested: a few of them, where
// declared errors or underflow outweigh all rounding, would make every sum possible. Where rows
// share a factor, the likely set contains that too; an element's own roundings reach this far with
// odds of 2 exp(-1024 / 6) (Hoeffding: they are bounded by u and have variance u^2 / 3).
static const double LARGEST = 1024;

enum { MANY = 32 }; // elements at a time

// Sums over every MANYth element of a row: of d^2 / v, d c / v, c^2 / v, of elements, of squared
// leans and of squared ulp, each over v; and the largest possible square.
typedef struct row_sums {
    double squares[MANY], factor[MANY], weight[MANY], mean[MANY], bias[MANY], steps[MANY],
        most[MANY];
} row_sums;

// What is read of MANY elements: error, middle, variance, lean, likely ends, ulp.
typedef struct elements {
    double d[MANY], c[MANY], v[MANY], bias[MANY], lo[MANY], hi[MANY], ulp[MANY];
} elements;

static void take_elements(size_t n, const double *v_i, const sinkproof_honest *x_i, elements *e) {
    for (size_t l = 0; l < n; l++) {
        const sinkproof_honest *x = &x_i[l];
        e->d[l] = v_i[l] - x->mid, e->c[l] = x->mid, e->v[l] = x->spread + x->order;
        e->bias[l] = x->bias, e->lo[l] = x->likely_lo, e->hi[l] = x->likely_hi;
        e->ulp[l] = sinkproof_fast_ulp(SINKPROOF_F32, x->mid);
    }
    for (size_t l = n; l < MANY; l++) // not tested: its variance is unbounded
        e->d[l] = e->c[l] = e->bias[l] = e->lo[l] = e->hi[l] = e->ulp[l] = 0, e->v[l] = INFINITY;
}

// sinkproof_add_up; an infinite sum stays.
static inline double sum_up(double a, double b) {
    double s = a + b;
    return step_by_ulps(s, honest_sum_error(a, b, s) > 0 ? 1 : 0);
}

//> stat.spread
FOR_EACH_PROCESSOR
static void add_elements(const elements *e, bool shares, row_sums *row) {
    double which = shares ? 1 : 0;
    for (size_t l = 0; l < MANY; l++) {
        double c = e->c[l], d = e->d[l], v = e->v[l], precision = 1 / v;
        double above = sum_up(e->hi[l], -c), below = sum_up(c, -e->lo[l]);
        double lean = e->bias[l] * e->bias[l], likely = above > below ? above : below;
        double reach = likely * likely;
        double most = reach * precision < LARGEST ? reach * precision : LARGEST;
        double tested = (which > 0 ? lean : reach) <= LARGEST * v ? 1 : 0;
        tested = precision > 0 ? tested : 0, tested = precision < INFINITY ? tested : 0;
        tested = fabs(d) < INFINITY ? tested : 0, tested = fabs(e->bias[l]) < INFINITY ? tested : 0;
        most = most > row->most[l] ? most : row->most[l];
        row->squares[l] += tested > 0 ? d * d * precision : 0;
        row->factor[l] += tested > 0 ? d * c * precision : 0;
        row->weight[l] += tested > 0 ? c * c * precision : 0;
        row->mean[l] += tested;
        row->bias[l] += tested > 0 ? lean * precision : 0;
        row->steps[l] += tested > 0 ? e->ulp[l] * e->ulp[l] * precision : 0;
        row->most[l] = tested > 0 ? most : row->most[l];
    }
}

void spread_add_row(quarter_spread *spread, size_t n, const double *v_i,
                    const sinkproof_honest *x_i, bool shares) {
    row_sums row = {0};
    double squares = 0, factor = 0, weight = 0;
    for (size_t i = 0; i < n; i += MANY) {
        elements e;
        take_elements(n - i < MANY ? n - i : MANY, v_i + i, x_i + i, &e);
        add_elements(&e, shares, &row);
    }
    for (size_t l = 0; l < MANY; l++) {
        squares += row.squares[l], factor += row.factor[l], weight += row.weight[l];
        spread->mean += row.mean[l], spread->bias += row.bias[l], spread->steps += row.steps[l];
        spread->most = fmax(spread->most, row.most[l]);
    }
    if (shares && weight > 0) // without the row's best multiple
        squares = fmax(squares - factor * factor / weight, 0);
    spread->sum += squares;
}

// The smallest a >= mu with (a ln(a / mu) - a + mu) / most >= odds, rounded up.
double spread_reach(double mu, double most, double odds) {
    double room = most * odds / mu, low = 1, high = 2.719 * (1 + room);
    for (int i = 0; i < 60; i++) {
        double r = (low + high) / 2;
        if (r * log(r) - r + 1 < room)
            low = r;
        else
            high = r;
    }
    return high * mu;
}

void spread_judge(const quarter_spread *spread, double largest, double rate,
                  sinkproof_spread_result *r) {
    *r = (sinkproof_spread_result){0, INFINITY, -1, INFINITY};
    double odds = log((SPREAD_QUARTERS + 1) / rate), worst = -1;
    quarter_spread all = {0};
    for (int q = 0; q < SPREAD_QUARTERS; q++) spread_merge(&all, &spread[q]);
    for (int q = 0; q <= SPREAD_QUARTERS; q++) {
        const quarter_spread *part = q == 0 ? &all : &spread[q - 1];
        if (!(part->mean > 0)) continue;
        double reach = spread_reach(part->mean, part->most * largest, odds);
        double root = sqrt(reach) + sqrt(part->bias), limit = root * root;
        if (q == 0 && part->steps > 0) r->noise = sqrt(limit / part->steps);
        if (!(part->sum / limit <= worst)) {
            worst = part->sum / limit;
            r->mean = part->sum / part->mean, r->limit = limit / part->mean, r->part = q;
        }
    }
}
//< stat.spread

void spread_merge(quarter_spread *into, const quarter_spread *from) {
    into->sum += from->sum, into->mean += from->mean, into->bias += from->bias;
    into->steps += from->steps;
    into->most = fmax(into->most, from->most);
}

const char *sinkproof_spread_part_name(int part) {
    static const char *const names[SPREAD_QUARTERS + 1] = {
        "all rows", "first quarter of rows", "second quarter of rows", "third quarter of rows",
        "last quarter of rows"};
    return part >= 0 && part <= SPREAD_QUARTERS ? names[part] : "none";
}
