// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Fits a number to the values of a point, and prefers a number that an engine would use.
#ifndef SINKPROOF_COMPOSED_FIT_H
#define SINKPROOF_COMPOSED_FIT_H

#include "audit/diagnose/composed.h"

// The numbers t for which base + t (with - base) is near the engine's values in a region.
typedef struct fitted_range {
    double lo, hi, best;
    bool fits; // every element allows the numbers in the range
    // the best number leaves a tenth of the squared errors of the definition, or about what the
    // widths of the sets leave; another fit is not tried
    bool good;
} fitted_range;

// base NULL: zeros. Returns false if the values do not tell: nothing depends on t.
bool fit_number(const composing *c, const sinkproof_region *region, const double *base,
                const double *with, fitted_range *t);

// Fits once more, near t->best: `probe` is the supposed engine with that number. Rounded numbers
// hide less of a small difference. Returns false on error.
bool fit_refine(composing *c, const known_mistake *probe, const sinkproof_region *region,
                const double *base, const double *with, fitted_range *t);

// How many elements are outside in an engine with that number; SIZE_MAX: it cannot occur, or
// *fine is false.
typedef size_t number_count(composing *c, void *of, double number, bool *fine);
// Narrows t to the numbers near t->best that leave none outside, if there are any: rounded numbers
// mislead least squares. Returns false on error.
bool fit_by_count(composing *c, number_count *count, void *of, fitted_range *t);
// The count for a mistake.
size_t composing_count(composing *c, const known_mistake *mistake, bool *fine);

// A number, and what it is called: "2", "1/4 (0.25)", "0.85".
typedef struct chosen_number {
    double value;
    char text[80];
} chosen_number;
enum { FIT_CHOICES = 6 };
// Numbers in the range, those that an engine would rather use first; returns how many.
size_t fit_choose(const composing *c, const fitted_range *t, chosen_number choices[FIT_CHOICES]);

// The middles of the point's sets in an engine with the mistake. The caller frees them; NULL, and
// *fine stays: it cannot occur, or no more is tried at the point.
double *composing_see(composing *c, const known_mistake *mistake, bool *fine);

// Whether a mistake that acts first at `from` shows at the point in question.
bool composing_reaches(const composing *c, sinkproof_trace_point from);

// Of a rotated point: both rotations if both are wrong.
unsigned composing_rotated_points(const composing *c);

// Whether an element of the point is in a region.
bool composing_holds(const composing *c, const sinkproof_region *region, size_t at);

#endif
