// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One sum of a few terms in a format, in an order, perhaps with a mistake: what the page about
// precision computes. The roundings are those of model/round.c, the bound that of the judge
// (proofs/bounds/honest.c).
#ifndef SINKPROOF_EXPLORE_SUM_H
#define SINKPROOF_EXPLORE_SUM_H

#include <stddef.h>

enum { SUM_TERMS = 16, SUM_SHUFFLES = 200 };

typedef enum sum_order {
    ORDER_FORWARD,
    ORDER_BACKWARD,
    ORDER_PAIRWISE,
    ORDER_LANES, // four sums, of every fourth term, that are added in the end
    ORDER_LARGEST_FIRST,
    ORDER_SMALLEST_FIRST,
    ORDERS
} sum_order;

typedef enum sum_mistake {
    MISTAKE_NONE,
    MISTAKE_LOST,     // the last term is not added
    MISTAKE_TWICE,    // the last term is added twice
    MISTAKE_CUT,      // each sum is cut toward zero instead of rounded
    MISTAKE_NARROWER, // each sum has two bits less
    MISTAKES
} sum_mistake;

enum { SUM_F32, SUM_F16, SUM_BF16, SUM_FORMATS };

typedef struct sum_given {
    double format, order, mistake, terms, seed; // seed: of the last bits of the terms
    double term[SUM_TERMS];
} sum_given;

typedef struct sum_step {
    double left, right, sum, error; // sum is left + right rounded, error what the rounding added
} sum_step;

typedef struct sum_result {
    double term[SUM_TERMS]; // with its last bits, rounded to the format
    double truth, size;     // sum of the terms and of their sizes, both exact
    double nearest, ulp;    // the number of the format that is nearest to the truth, and its ulp
    double got, depth;      // the computed sum; the most additions that a term goes through
    double any, this_order; // bounds: in any order, in an order of this depth
    double steps;
    sum_step step[SUM_TERMS];
    double order[ORDERS];          // honest sums in each order
    double shuffled[SUM_SHUFFLES]; // honest sums in drawn orders, one after the other
} sum_result;

void sum_compute(const sum_given *given, sum_result *result);
void sum_draw(double format, double number, sum_given *given); // for the tests

#endif
