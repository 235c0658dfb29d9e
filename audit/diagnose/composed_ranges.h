// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The range of a number that was fitted: from an accepted one outwards, the numbers that the
// judge's sets accept at the point, each of them alone. The sets of an engine that computes with c
// accept what it computes, so that its c is among these; the ends of the range are numbers that the
// sets refuse.
#ifndef SINKPROOF_COMPOSED_RANGES_H
#define SINKPROOF_COMPOSED_RANGES_H

#include "audit/diagnose/composed.h"

// A mistake, copied, one of whose numbers is asked about.
typedef struct exact_guess {
    composing *c;
    composed_mistake mistake;
    size_t at; // of the number, in the mistake
} exact_guess;
// number: a member of *m.
exact_guess exact_guess_of(composing *c, const composed_mistake *m, const double *number);
double *exact_number(exact_guess *g);

// Whether the sets accept the mistake with x. Of all below: *fine false: an error.
bool exact_accepts(exact_guess *g, double x, bool *fine);
// Leaves the number at one that is accepted, at most about `reach` from where it is; false: none is
// found.
bool exact_find(exact_guess *g, double reach, bool *fine);
// Whether they accept a number that differs from an accepted one in the digit after its last.
bool exact_has_neighbours(exact_guess *g, bool *fine);

// Numbers that are accepted, from low to high, and beyond them the nearest that were refused.
typedef struct exact_range {
    double low, low_out, high, high_out;
} exact_range;
// From an accepted number. error: what is known of its relative error; 0: nothing.
exact_range exact_range_of(exact_guess *g, double error, bool *fine);
// The number to tell: the fitted one if it is usual and accepted; or one of at most two digits that
// is there by little chance, one with a name as ln(2), one of more digits; or one near the middle,
// with as many digits as the range leaves.
double range_number(const composing *c, const exact_range *r, double fitted);
// The relative error around the number, and around what is printed of it, that holds both ends.
double range_error(const exact_range *r, double number);

#define RANGE_MOST 0.5 // an error from which on no range is told
enum { RANGE_TEXT = 40 };
// " (within 1.2 %)", rounded upwards, or " (estimated)".
void range_text(double error, char text[RANGE_TEXT]);

// Says the range of m->fitted behind the text of an accepted mistake, unless the sets refuse its
// neighbours: then it is exact to its last digit. Returns false on error.
bool composed_say_range(composing *c, composed_mistake *m);

#endif
