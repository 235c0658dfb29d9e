// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The cause of failing calls of one kernel: which known mistakes explain all of them. Each call is
// a trace of one layer that holds the kernel's inputs and outputs.
#ifndef SINKPROOF_CALL_CAUSES_H
#define SINKPROOF_CALL_CAUSES_H

#include "audit/diagnose/mistakes.h"
#include "audit/judge/judge.h"

enum {
    CAUSES_MOST_CALLS = 8,   // that fail
    CAUSES_MOST_PASSING = 4, // that pass
    CAUSES_MOST_ALIKE = 6,   // mistakes that are listed
    CAUSE_ID = 96,
    CAUSE_TEXT = 384
};

typedef struct sinkproof_kernel_call {
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    unsigned points; // the outputs, a bit for each sinkproof_trace_point
    size_t pass;     // rows that came in each pass over a cache; 0: all at once, as far as is known
} sinkproof_kernel_call;

// A mistake under which no element of any call is outside. The calls together show the difference
// that it makes (audit/judge/judge_evidence.h).
typedef struct sinkproof_call_cause {
    char id[CAUSE_ID], text[CAUSE_TEXT]; // of the mistake
    size_t piece, rows; // of the first call: where a second piece begins (0: none), and all rows
    size_t explained;   // calls with every element inside; the sets of the others decide nothing
    size_t against;     // passing calls that it puts outside
} sinkproof_call_cause;

typedef struct sinkproof_call_causes {
    size_t asked;   // calls with elements outside under the policy
    size_t passing; // calls without, which a mistake of the kernel may not put outside
    size_t n, more;
    sinkproof_call_cause alike[CAUSES_MOST_ALIKE]; // those with nothing against them, if any
} sinkproof_call_causes;

// Tries every mistake of the catalogue, alone, on as many of the calls as the limits allow; then,
// for attention, what its largest failing call suggests (attention_screen.h). Returns false if
// memory runs out or a call cannot be judged.
bool sinkproof_find_call_causes(const sinkproof_kernel_call *calls, size_t n,
                                const sinkproof_policy *policy, double rate,
                                sinkproof_call_causes *causes, sinkproof_error *error);

#endif
