// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A product of one weight with the rows of an input, plus a bias, in binary64: what a supposed
// mistake in the weight makes of it, and numbers that are fitted to the trace.
#ifndef SINKPROOF_COMPOSED_PRODUCT_H
#define SINKPROOF_COMPOSED_PRODUCT_H

#include "audit/diagnose/composed_made.h"

// v = w x + b for each of n rows. Of experts: each row of a slot by the weights of its expert, with
// no bias.
typedef struct dense_product {
    size_t n, outs, ins;
    double *x_nc, *w_rc, *b_r, *v_nr; // w_rc: one matrix behind another
    const int32_t *expert_n;          // NULL: one matrix
} dense_product;

enum { DENSE_WORK = 1 << 27 }; // multiplications: a larger product is not looked at

// Whether the point is such a product, and of one matrix.
bool dense_product_is(sinkproof_trace_point point);
// The matrix of a row.
const double *dense_matrix(const dense_product *p, size_t i);
// Reads it. *known: the trace and the model have all of it, and it is not too large. Freed whatever
// this returns; false: no memory.
bool dense_product_read(const sinkproof_making *of, dense_product *p, bool *known);
void dense_product_free(dense_product *p);

// Reads the point's product, and searches by each in turn until a cause is found.
typedef bool dense_search(const operation *o, const dense_product *p);
// Also of experts.
bool compose_products(composing *c, size_t n, dense_search *const *searches);
// Of one matrix.
bool compose_dense(composing *c, size_t n, dense_search *const *searches);

// The weights of `slot` as rows; NULL: there are none with `ins` columns, or no memory. *rows: how
// many.
double *dense_weights(const sinkproof_model *model, size_t layer, sinkproof_slot slot, size_t ins,
                      size_t *rows);

// What is between a product that is rounded to the trace's format before its bias is added and one
// that is not; 0 where the format is not narrow.
double dense_rounding(const sinkproof_making *of, double product);

double dense_dot(const double *x_c, const double *w_c, size_t cols);
// The widths of what other weights make: the largest of the sets of the row, as their sizes are
// about the same.
void dense_widths(const sinkproof_making *of, const dense_product *p, const double *y,
                  double *width);

// Writes indices as runs: "0-15, 32" behind the text; at most `most` of them, then "...".
size_t write_runs(char *text, size_t size, size_t n, const uint8_t *marks, size_t most);

#endif
