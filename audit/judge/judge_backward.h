// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges the gradients of a trace (doc/34-backward.md). Each is compared with the honest set that
// its stage makes of the trace's own inputs: the gradients after the stage, the points of the
// forward pass, the weights. A gradient whose inputs the trace lacks is undecided, and says which.
#ifndef SINKPROOF_JUDGE_BACKWARD_H
#define SINKPROOF_JUDGE_BACKWARD_H

#include "audit/judge/judge.h"
#include "audit/judge/judge_backward_meaning.h"
#include "audit/trace/gradients.h"

typedef struct sinkproof_gradient_report {
    sinkproof_gradient of;
    char name[40];         // "03.dA4.q"
    const char *statement; // "grad.qkv"
    sinkproof_verdict verdict;
    size_t elements, several, outside, undecided, nans, infinities;
    size_t open_nans; // where the set is unbounded
    double share_worst;
    size_t worst_at, rank, shape[SINKPROOF_MAX_RANK];
    double worst_value, excess_ulp;
    sinkproof_honest worst_set;
    char missing[160]; // undecided without a set: what the trace lacks, in words; or ""
    char cause[240];   // of a bug: the mistake that explains all of its elements; or ""
} sinkproof_gradient_report;

typedef struct sinkproof_gradient_judgement {
    size_t n_reports;
    sinkproof_gradient_report *reports; // from the logits to the tokens
    sinkproof_verdict verdict;          // the worst of the decided ones; UNDECIDED: none is decided
    size_t undecided;
    const sinkproof_gradient_report *first; // the first bug in the order of the backward pass
    char freedoms[900];                     // what the policy declares, and what the loss reads
} sinkproof_gradient_judgement;

// `layers` as in the judge's options. Frees nothing of an earlier judgement.
bool sinkproof_judge_gradients(const sinkproof_model *model, const sinkproof_trace *trace,
                               const sinkproof_policy *policy, sinkproof_layer_range layers,
                               sinkproof_gradient_judgement *judgement, sinkproof_error *error);
void sinkproof_gradient_judgement_free(sinkproof_gradient_judgement *judgement);

// Whether all elements of one gradient are inside the sets of a backward pass that is altered as
// `meaning` says, and those sets are narrow enough to decide. false also where memory runs out.
bool sinkproof_gradient_explained(const sinkproof_model *model, const sinkproof_trace *trace,
                                  const sinkproof_policy *policy,
                                  const sinkproof_backward_meaning *meaning,
                                  const sinkproof_gradient_report *report);
// The factor by which a gradient differs from the middles of its sets, fitted to those elements
// whose sets are far from 0. false: there are fewer than four such elements.
bool sinkproof_gradient_factor(const sinkproof_model *model, const sinkproof_trace *trace,
                               const sinkproof_policy *policy,
                               const sinkproof_gradient_report *report, double *factor);

#endif
