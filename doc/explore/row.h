// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One row of attention as the page computes it: the scores of one query, its sink, two-dimensional
// values with a bias. The stages are those of ref/, unmodified; this file only calls them. Compiled
// to WebAssembly for the page, and by the tests for this machine.
#ifndef SINKPROOF_EXPLORE_ROW_H
#define SINKPROOF_EXPLORE_ROW_H

#include "ref/stages.h"

enum { ROW_KEYS = 16, ROW_DIM = 64, ROW_SHOWN = 2 }; // a head of GPT-OSS; values have 2 coordinates

// How the row is computed: rightly, or with one of the mistakes of chapter 21.
typedef enum row_form {
    FORM_RIGHT,
    FORM_SCALED,       // the sink's logit is multiplied by 1/sqrt(head_dim), as a score is
    FORM_DROPPED,      // no sink
    FORM_MAX_ONLY,     // the sink is in the maximum and not in the sum
    FORM_RENORMALISED, // the keys' weights are divided by their sum
    FORM_PER_PART,     // two parts of the keys, the sink in each of them
    FORM_LSE_ROUNDED,  // the gate reads the log-sum-exp in bfloat16
    FORMS
} row_form;

typedef enum row_law { LAW_MASS, LAW_SHIFT, LAW_KEY, LAW_SOFTMAX1, LAW_GATE, LAWS } row_law;

enum { ROW_REAL, ROW_F32, ROW_BF16, ROW_F16, ROW_POLICIES };

// What is asked. All numbers are doubles: the page writes them into memory as one array.
typedef struct row_given {
    double policy, form, keys, window; // window: keys that are seen, 1 ... keys
    double sink, shift;                // shift: t of law.shift
    double bias[ROW_SHOWN];
    double score[ROW_KEYS];
    double value[ROW_KEYS][ROW_SHOWN]; // without the bias
} row_given;

// A law of the row: its two sides differ by `residue`, where rounding alone can make them differ by
// `bound`. Of several numbers these are the ones whose residue is the largest beside its bound.
typedef struct row_checked {
    double left, right, residue, bound, holds;
} row_checked;

// What is computed. Keys outside the window have the weight 0.
typedef struct row_result {
    double first;                      // the first key that is seen
    double score[ROW_KEYS];            // A6
    double sink;                       // A8
    double alpha[ROW_KEYS];            // A9
    double alpha_sink;                 // A9
    double value[ROW_KEYS][ROW_SHOWN]; // A2.v: value and bias, rounded
    double out[ROW_SHOWN];             // A11
    double most, divisor;              // m and Z of sink.stable, of the right form
    double lse, gate;                  // of the keys; sigmoid(lse - b), in binary64
    row_checked law[LAWS];
} row_result;

sinkproof_policy row_policy(const row_given *given);
void row_compute(const row_given *given, row_result *result);

// The weights and the output of a row whose scores are rounded already; alpha has keys + 1 numbers.
typedef struct row_operands {
    size_t keys, window;
    double score[ROW_KEYS + 1], sink;
    double value[(ROW_KEYS + 1) * ROW_DIM];
} row_operands;
void row_attend(const sinkproof_policy *policy, row_form form, const row_operands *row,
                double *alpha, double out[ROW_SHOWN]);
void form_softmax(const sinkproof_policy *policy, row_form form, const sinkproof_block *block,
                  double sink, const double *score, double *alpha);
void check_laws(const sinkproof_policy *policy, row_form form, double shift,
                const row_operands *row, row_result *result);

// A law before any sides are compared; then the pair that is nearest to its bound, or farthest
// above it. NaN never holds.
row_checked nothing_compared(void);
void compare_sides(row_checked *law, double left, double right, double bound);
// E of laws.c: the largest relative error of a weight.
double row_weight_error(const sinkproof_policy *policy, const row_operands *row);
sinkproof_block row_block(size_t keys, size_t window);

// The numbered state of a pseudo-random row, for the tests.
void row_draw(double policy, double form, double number, row_given *given);

#endif
