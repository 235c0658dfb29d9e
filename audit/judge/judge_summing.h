// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the softmax's exponentials and their sum are, where they are computed otherwise than
// defined. A comment begins with the definition's value.
#ifndef SINKPROOF_JUDGE_SUMMING_H
#define SINKPROOF_JUDGE_SUMMING_H

#include "model/round.h"

#include <stdbool.h>
#include <stddef.h>

// What the weights are, in the place of e^x over the sum: x = z - m, and m is the largest of scores
// and sink. N is `number`; t = x / ln(2).
typedef enum sinkproof_weighing {
    SINKPROOF_WEIGH_SOFTMAX,
    SINKPROOF_WEIGH_UNDIVIDED,  // e^x
    SINKPROOF_WEIGH_LINEAR,     // 2^t is taken as 2^floor(t - N) (1 + t - N - floor(t - N))
    SINKPROOF_WEIGH_SERIES2,    // e^z as 1 + z + z^2 / 2
    SINKPROOF_WEIGH_SIGMOID,    // 1 / (1 + e^-z), undivided and without the sink
    SINKPROOF_WEIGH_RELU,       // z above 0, over the sum of these
    SINKPROOF_WEIGH_AGAIN,      // the softmax of the weights and of the sink's
    SINKPROOF_WEIGH_POLYNOMIAL, // 2^floor(t) times the series of 2^u, u = t - floor(t), to degree N
    SINKPROOF_WEIGH_CUBIC,      // 2^floor(t) times the cubic polynomial of FlashAttention-4
    SINKPROOF_WEIGH_POWER,      // (1 + x / N)^N
    SINKPROOF_WEIGH_CLAMPED,    // e^x of x that is not below -N
    SINKPROOF_WEIGH_STEPS,      // e^x of x rounded to a multiple of 1 / N: a table
    SINKPROOF_WEIGH_STEPS_DOWN, // of x rounded down to one
    SINKPROOF_WEIGH_STEPS_TWO,  // 2^t of t rounded down to one
    SINKPROOF_WEIGH_TWICE       // e^x over the square of the sum
} sinkproof_weighing;

// How many slots without a key are read, with the score 0 and no value; a query reads `end` slots.
typedef enum sinkproof_empty_slots {
    SINKPROOF_EMPTY_COUNTED, // a number for every query
    SINKPROOF_EMPTY_TAIL,    // those that fill the last tile of `unit` slots
    SINKPROOF_EMPTY_OPENED,  // the same, and a whole tile where the last one is full
    SINKPROOF_EMPTY_NEXT,    // that whole tile alone
    SINKPROOF_EMPTY_ROOM     // those that fill `unit` slots
} sinkproof_empty_slots;

// The maximum that is subtracted from the sink's logit, where it is not the same as the scores'.
typedef enum sinkproof_sink_top {
    SINKPROOF_TOP_ALL,
    SINKPROOF_TOP_OWN,   // the logit itself: it counts e^0
    SINKPROOF_TOP_FIRST, // that of the first tile of `tile` keys that the query sees
    SINKPROOF_TOP_LAST   // that of the last one
} sinkproof_sink_top;

typedef struct sinkproof_summing {
    sinkproof_empty_slots empty;
    size_t unit;
    bool from_seen; // false: slots are counted from the first key that is seen
    sinkproof_sink_top sink_top;
    bool top_of_keys; // false: the maxima are those of the scores alone, without the sink
    // 0: the sum is rounded to `format` behind each term, of `tile` keys that are added up exactly
    // before; or in `lanes`, which take one key after another, and are added up in pairs
    sinkproof_format format;
    size_t tile, lanes;
    bool sink_first;    // false: the sink is the first term, not the last
    bool terms_rounded; // false: each term is rounded too
    bool backwards;     // false: from the last key to the first
    double number;      // N of the weighing
} sinkproof_summing;

// A score's part of the sum, or what stands in its place, under a maximum.
double sinkproof_weighed(sinkproof_weighing weighing, double number, double z, double top);
bool sinkproof_weighing_divides(sinkproof_weighing weighing);

// The empty slots of a query that sees keys [first, end).
double sinkproof_empty_count(const sinkproof_summing *s, double counted, size_t first, size_t end);

// Of keys first + [0, n), those [*from, *to) whose maximum the sink has.
void sinkproof_top_keys(const sinkproof_summing *s, size_t first, size_t n, size_t *from,
                        size_t *to);

// The sum of the exponentials of keys first + [0, n) and of the sink, which is rounded; it grows
// with each of them.
double sinkproof_summed(const sinkproof_summing *s, size_t first, size_t n, const double *e_j,
                        double sink);

#endif
