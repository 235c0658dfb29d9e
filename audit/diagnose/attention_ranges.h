// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Numbers of causes in attention, and what the judge's sets leave open of those that were fitted.
#ifndef SINKPROOF_ATTENTION_RANGES_H
#define SINKPROOF_ATTENTION_RANGES_H

#include "audit/diagnose/attention_screen.h"
#include "audit/diagnose/composed.h"

enum { ATTENTION_NUMBERS = 17 };

// A number of a meaning, and what it is as defined; plain: with that, nothing is left of it.
typedef struct fitted_member {
    double *number, defined;
    bool plain;
} fitted_member;
// Those that are not as defined; returns how many.
size_t attention_numbers_of(sinkproof_attending *m, fitted_member of[ATTENTION_NUMBERS]);

// Of a guess with a number that was fitted: the number that is told and its error, which holds all
// numbers that the sets accept at the point. *accepted: there are some. Of several numbers, those
// that are needed are left. Returns false on error.
bool attention_settle(composing *c, composed_mistake *m, bool *accepted);

#endif
