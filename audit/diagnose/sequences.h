// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The diagnosis of a trace of several sequences, each by itself: a mistake that acts from a
// position on, or pass by pass, does so in each sequence, and at no common rows of the trace. What
// explains all sequences together is found before; only the rest is asked here.
#ifndef SINKPROOF_DIAGNOSE_SEQUENCES_H
#define SINKPROOF_DIAGNOSE_SEQUENCES_H

#include "audit/diagnose/diagnose.h"

// A sequence, and the findings about it that explain points which no finding of all explains.
typedef struct diagnosed_sequence {
    size_t number;
    bool failed; // nothing is explained
    sinkproof_diagnosis of;
} diagnosed_sequence;

#endif
