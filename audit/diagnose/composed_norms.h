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

// What is fitted is fitted to the elements in the region. *known: the trace has the input. Frees
// with norm_rows_free. Returns false if memory runs out.
bool norm_rows_read(composing *c, const sinkproof_region *region, norm_rows *rows, bool *known);
void norm_rows_free(norm_rows *rows);

// What the divisor of each row is compared with.
typedef struct norm_divisors {
    composing *c;
    norm_rows rows;
    const sinkproof_region *only; // the region that is asked; NULL: all, one after the other
    double *scale_d, *lo_d, *hi_d;
} norm_divisors;

// *known: the trace has the input. Frees with norm_divisors_free. Returns false if memory runs out.
bool norm_divisors_read(composing *c, const sinkproof_region *only, norm_divisors *s, bool *known);
void norm_divisors_free(norm_divisors *s);
// Whether the divisors of the rows with an element outside are near those of the question: all but
// one of eight.
bool norm_divisors_are_near(const norm_divisors *s, sinkproof_norm_squares *of,
                            const double *numbers, const double *table);

// Region r of those that are asked; NULL: there are no more.
const sinkproof_region *norm_divisors_region(const norm_divisors *s, size_t r);
// The next of the point's regions that hold some coordinates alone, from *r on; NULL: none.
const sinkproof_region *norm_region_of_coordinates(const composing *c, size_t *r);

composed_mistake *composed_norm_new(composing *c, mistake_suppose *operate,
                                    const sinkproof_region *region);
const char *composed_norm_words(const composing *c);

#endif
