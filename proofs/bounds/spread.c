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

// An element whose square may exceed this many variances is not tested: a few of them, where
// declared errors or underflow outweigh all rounding, would make every sum possible. Where rows
// share a factor, the likely set contains that too; an element's own roundings reach this far with
// odds of 2 exp(-1024 / 6) (Hoeffding: they are bounded by u and have variance u^2 / 3).
static const double LARGEST = 1024;

typedef struct row_sums {
    double squares, factor, weight; // sums of d^2 / v, d c / v and c^2 / v
} row_sums;

//> stat.spread
void spread_add_row(quarter_spread *spread, size_t n, const double *v_i,
                    const sinkproof_honest *x_i, bool shares) {
    row_sums row = {0};
    for (size_t i = 0; i < n; i++) {
        const sinkproof_honest *x = &x_i[i];
        double c = x->mid, d = v_i[i] - c, v = x->spread + x->order;
        double reach = likely_radius(x), ulp = sinkproof_fast_ulp(SINKPROOF_F32, c);
        double precision = 1 / v;
        if (!(precision > 0 && precision < INFINITY) || !isfinite(d) || !isfinite(x->bias))
            continue;
        if (!((shares ? x->bias * x->bias : reach * reach) <= LARGEST * v)) continue;
        row.squares += d * d * precision;
        row.factor += d * c * precision;
        row.weight += c * c * precision;
        spread->mean++;
        spread->bias += x->bias * x->bias * precision;
        spread->steps += ulp * ulp * precision;
        spread->most = fmax(spread->most, fmin(reach * reach * precision, LARGEST));
    }
    if (shares && row.weight > 0) // without the row's best multiple
        row.squares = fmax(row.squares - row.factor * row.factor / row.weight, 0);
    spread->sum += row.squares;
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
