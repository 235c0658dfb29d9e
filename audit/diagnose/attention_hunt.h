// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the families of guesses share with the screen that keeps the nearest.
#ifndef SINKPROOF_ATTENTION_HUNT_H
#define SINKPROOF_ATTENTION_HUNT_H

#include "audit/diagnose/attention_screen.h"

enum { KEPT = 12 }; // of a family
typedef struct hunt {
    const attention_view *view;
    attention_guesses *out;
    unsigned family;
    size_t n_kept;
    attention_guess kept[KEPT];
    double spent; // multiplications, as of emulations
} hunt;

// Offers a guess of the current family.
void hunt_offer(hunt *h, const sinkproof_attending *how);
// Fits *number, a member of *how, from some starts, and offers the nearest; `positive`: no other. A
// number larger than `most`, or smaller than its inverse, is none: then the sink is left out.
void hunt_offer_fitted(hunt *h, sinkproof_attending *how, double *number, bool positive,
                       double most);

typedef void guess_family(hunt *h);
guess_family *attention_family(size_t i); // NULL: there are fewer

#endif
