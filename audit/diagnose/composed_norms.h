// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Norms of another kind: what is fitted to their rows.
#ifndef SINKPROOF_COMPOSED_NORMS_H
#define SINKPROOF_COMPOSED_NORMS_H

#include "audit/diagnose/composed_fit.h"

// The rows of a norm: the input, the mean square of each row, and the number that multiplies the
// definition's row, by least squares.
typedef struct norm_rows {
    size_t d, n, layer;
    double *x; // [n, d], then the rest
    double *square_n, *factor_n;
    bool *fits_n; // the row is the definition's, but for the factor
} norm_rows;

// *known: the trace has the input. Frees with norm_rows_free. Returns false if memory runs out.
bool norm_rows_read(composing *c, norm_rows *rows, bool *known);
void norm_rows_free(norm_rows *rows);

composed_mistake *composed_norm_new(composing *c, mistake_suppose *operate,
                                    const sinkproof_region *region);
const char *composed_norm_words(const composing *c);

#endif
