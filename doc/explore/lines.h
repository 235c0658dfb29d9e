// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The derivation of chapter 15, line by line, with the numbers of the page's row: two heads of
// width 1, whose values are the two coordinates of the page's values. Head 1 has the row's scores
// and sink; head 2 has the scores in reverse order and the sink's logit 0. The output matrix turns
// by the angle whose sine is 0.6.
#ifndef SINKPROOF_EXPLORE_LINES_H
#define SINKPROOF_EXPLORE_LINES_H

#include "doc/explore/row.h"

enum { LINES = 13, LINE_PARTS = 4, LINE_HEADS = ROW_SHOWN };

// One line's right side: its summands, in the order in which the line has them, and their sum.
typedef struct line_value {
    double part[LINE_PARTS][ROW_SHOWN], total[ROW_SHOWN];
    double residue; // the largest distance of a coordinate from the first line
} line_value;

typedef struct lines_result {
    double alpha[LINE_HEADS][ROW_KEYS], alpha_sink[LINE_HEADS];
    double bound; // of binary64 alone: how far two lines may be apart when the weights are exact
    line_value line[LINES];
} lines_result;

void lines_compute(const row_given *given, lines_result *result);

#endif
