// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What becomes of the numbers of a tensor, as a supposed mistake changes them: each number alone,
// or the numbers of a row together.
#ifndef SINKPROOF_JUDGE_CHANGE_H
#define SINKPROOF_JUDGE_CHANGE_H

#include "model/round.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum sinkproof_change_kind {
    SINKPROOF_UNCHANGED,
    // each number
    SINKPROOF_CHANGE_CLAMP,  // to [a, b]
    SINKPROOF_CHANGE_CAP,    // a tanh(x / a)
    SINKPROOF_CHANGE_SIZE,   // |x|
    SINKPROOF_CHANGE_SQUARE, // x^2
    SINKPROOF_CHANGE_SIGMOID,
    SINKPROOF_CHANGE_TABLE, // a code of MXFP4: that of the table
    SINKPROOF_CHANGE_ROUND, // to a format, or to whole numbers up to `levels`, under a scale
    // a row
    SINKPROOF_CHANGE_OVER_SUM,
    SINKPROOF_CHANGE_OVER_LARGEST, // size
    SINKPROOF_CHANGE_OVER_LENGTH,  // the root of the sum of squares
    SINKPROOF_CHANGE_OVER_RMS,     // the root of their mean plus a, if it is positive
    SINKPROOF_CHANGE_SOFTMAX,
    SINKPROOF_CHANGE_LOG_SOFTMAX,
    SINKPROOF_CHANGE_CENTRED, // less the mean
    SINKPROOF_CHANGE_SHIFTED, // plus a times the largest size
    // codes from 0 to `levels` between the smallest and the largest number, less b, times their
    // step, plus a times the smallest: as they are stored with a zero point where a is 1 and b is 0
    SINKPROOF_CHANGE_CODED,
    SINKPROOF_CHANGE_OVERSCALED // codes of the largest size over the largest code, times scale^a
} sinkproof_change_kind;

// Which numbers share the scale of a rounding: their largest size over the largest code.
typedef enum sinkproof_change_scale {
    SINKPROOF_UNSCALED,
    SINKPROOF_SCALED_BY_TENSOR,
    SINKPROOF_SCALED_BY_ROW,
    SINKPROOF_SCALED_BY_BLOCK, // `block` numbers of a row
    SINKPROOF_SCALED_BY_POWER, // the same; the scale is a power of two, as in MXFP4 and MXFP8
    // the same, of the largest size over the largest code: rounded up, to the nearest, or down
    SINKPROOF_SCALED_BY_POWER_UP,
    SINKPROOF_SCALED_BY_POWER_NEAREST,
    SINKPROOF_SCALED_BY_POWER_DOWN
} sinkproof_change_scale;

// What becomes of a number between two codes.
typedef enum sinkproof_ties {
    SINKPROOF_TIES_TO_EVEN,
    SINKPROOF_TIES_AWAY, // from zero
    SINKPROOF_TIES_DOWN, // to the smaller size
    SINKPROOF_CUT        // every number goes to the smaller size
} sinkproof_ties;

typedef struct sinkproof_change {
    sinkproof_change_kind kind;
    double a, b;
    sinkproof_format format; // of a rounding; or, with `levels`, none; of the sum of a row
    double levels;
    sinkproof_ties ties;
    sinkproof_change_scale scale;
    size_t block;
    const double *table; // of SINKPROOF_CODES numbers: for 0, 0.5 .. 6, then for those negated
    bool wide; // of a point by heads or slots: a row is all that a token has, not a head's part
} sinkproof_change;

static inline bool sinkproof_change_is_of_rows(const sinkproof_change *c) {
    return c->kind >= SINKPROOF_CHANGE_OVER_SUM;
}

// The place of a code's value in a table.
enum { SINKPROOF_CODES = 16 };
size_t sinkproof_code_index(double value);

// Changes x[n], a row: what is taken over the row (a scale, a sum) is that of like[n], which may be
// x. amax: the largest size in the tensor, which matters only where it gives the scale.
void sinkproof_change_row(const sinkproof_change *c, double amax, size_t n, const double *like,
                          double *x);

#endif
