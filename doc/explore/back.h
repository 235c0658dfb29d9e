// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One row backwards: a loss L = <dO, o> + dLSE log(e^b + sum_j e^s_j), and its gradients by the
// functions of ref/backward/, rightly or with a mistake.
#ifndef SINKPROOF_EXPLORE_BACK_H
#define SINKPROOF_EXPLORE_BACK_H

#include "doc/explore/row.h"

typedef enum back_form {
    BACK_RIGHT,
    BACK_SIGN,         // the sink's gradient without its minus sign
    BACK_PER_PART,     // the sink's gradient counted once in each of two parts of the keys
    BACK_RENORMALISED, // D from an output whose weights sum to 1
    BACK_SINKLESS,     // the weights are computed again, without the sink
    BACK_LSE_LOST,     // the loss's share of the log-sum-exp is left out
    BACK_FORMS
} back_form;

typedef enum back_law { BACK_SUM, BACK_DELTA, BACK_BIAS, BACK_SLOPE, BACK_LAWS } back_law;

enum { BACK_CURVE = 65 };

// Doubles alone, as in row_given. The row's policy is binary64's, its form the right one.
typedef struct back_given {
    row_given row;
    double form;
    double d_out[ROW_SHOWN], d_lse; // dO and dLSE: what the loss has at the output and at LSE
} back_given;

typedef struct back_result {
    double first, alpha[ROW_KEYS], alpha_sink, out[ROW_SHOWN];
    double lse, loss;                // LSE with the sink in it
    double d_alpha[ROW_KEYS], delta; // delta: D
    double d_score[ROW_KEYS], d_sink;
    double d_value[ROW_KEYS][ROW_SHOWN];
    double curve[BACK_CURVE]; // L over the sink's logit, from -8 to 8
    row_checked law[BACK_LAWS];
} back_result;

void back_compute(const back_given *given, back_result *result);
void back_draw(double form, double number, back_given *given); // for the tests

#endif
